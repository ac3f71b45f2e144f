"""Plain command lines, which click does not see: they ask for what click would have them ask for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import click
import pytest
from click.testing import CliRunner

from gradcli import __main__
from gradcli.cli import main
from gradcli.commands import SHORT, argv
from gradcli.commands.click_commands import click_command
from gradcli.commands.declarations import declaration
from gradcli.commands.request import Request
from tests.sweep import sweep

COMMANDS = {name: declaration(name) for name in ("grad", "graph")}
both = pytest.mark.parametrize("command", COMMANDS)

PLAIN = [
    ["2*dot(x,x)", "--x", "0,1,2,3"],
    ["a*x + b", "--x", "3", "--b", "-5", "--a", " -4,1.5"],
    ["y = a*x; y.sum() + pi", "--x", "0:4", "--a", "1,2;3,4"],
    ["linalg.norm(x)", "--x", "[1, 2]"],
    ["x**2", "--x", "1e300"],
    ["2.0", *()],
    ["x", "--x=1"],
    ["ä", "--ä", "1"],
    # errors of the run are told alike
    ["x*2", "--x", "1,2,3"],
    ["x.backward()", "--x", "1"],
    ["x[3]", "--x", "1,2"],
    ["x", "--x", "1,two"],
    ["x + y", "--x", "1,2", "--y", "1,2,3"],
    ["log(x)", "--x", "0"],
    ["print(x); x", "--x", "1"],
    ["x.to('int64')", "--x", "1"],
]
OTHERS = [
    ["x*", "--x", "1"],
    ["x", "--x"],
    ["x", "--x", "1", "--x", "2"],
    ["x", "--x", "--y"],
    ["x", "--x", "-"],
    ["x", "--x", "-:0"],
    ["x", "--x", "@data.csv"],
    ["x", "--x", "1±0.1"],
    ["x", "--x", "1.0(2)"],
    ["x", "--x", "randn(3)"],
    ["x", "--x", ""],
    ["x", "--y", "1"],
    ["x*y", "--y", "1"],
    ["x", "-x", "1"],
    ["-x", "--x", "1"],
    ["-", "--x", "1"],
    ["", "--x", "1"],
    [" ", "--x", "1"],
    ["seed*x", "--x", "1", "--seed", "2"],
    ["seed*x", "--x", "1"],
    ["x", "--x", "1", "--json"],
    ["x", "--x", "1", "--dtype", "float32"],
    ["x", "y"],
    ["nosuch(x)", "--x", "1"],
    ["e*x", "--x", "1"],
    ["--help"],
    [],
]


def by_click(words: list[str], monkeypatch: pytest.MonkeyPatch) -> Request:
    """The request that click makes of a line."""
    found: list[Any] = []
    declared = declaration(words[0])
    monkeypatch.setattr(
        declared, "run", lambda _, request, options: found.append((request, options))
    )
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    ((request, options),) = found
    assert options == declared.defaults(), "options that were not given"
    return request


def facts(request: Request) -> dict[str, Any]:
    """All that a request says, to be compared."""
    known: dict[str, Any] = {n: getattr(request, n) for n in dir(request) if n[0] != "_"}
    del known["error_for"]
    program, style = known.pop("program"), known.pop("style")
    style = {name: getattr(style, name) for name in type(style).__slots__}
    rows = [(kind, word, span) for kind, word, _, span in program.walk()]
    return {**known, "source": program.source, "rows": rows, **style}


# Of other commands: plain lines, and lines that look like these.
LINES = [
    "eval 2*x --x 3",
    "jacobian sin(x) --x 0,1",
    "hessian sum(x**3) --x 1,2",
    "jvp x**2 --x 3",
    "minimize (x-1)**2 --x 0",
    "root x**2-2 --x 1",
    "root x**2==2 --x 1",
    "root x**2==y --x 1 --y 2",
    "diff exp(-x**2) --wrt x",
    "diff sin(x)*y",
    "diff a*b --wrt a,b",
    "diff tanh(A@x)",
    "diff x@x --x 1,2",
    "diff 2",
    "diff y=x**2;y",
    "diff x**2;x**3",
    "eval x;2*x --x 1",
    "simplify sin(x)**2+cos(x)**2",
    "simplify x+x --x 3",
    "taylor exp(x) --x 0",
    "taylor exp(x)",
    "diff e**x",
    "diff sum((A@x-b)**2) --wrt x",
    "hessian x --x 1,2",
]
MORE = [
    "diff f(x)",
    "diff log(x",
    "diff x[0]**2 --wrt x[0]",
    "diff x**2 --wrt y",
    "diff x*a --a 2*b",
    "diff format*x",
    "diff x**2 --order 2",
    "diff np*x",
    "diff x^2",
    "simplify x --format latex",
    "grad x**2 --x 3 --wrt x",
    "jacobian x",
    "map x t.csv",
    "minimize x**2 --x 1 --bounds x=0:1",
]


@sweep("line", LINES, parts=2, often=1)
def test_a_plain_line_of_others_asks_for_what_click_would_have_it(line, monkeypatch):
    words = line.split()
    plain = argv.plain_request(words)
    assert plain is not None
    assert facts(plain[1]) == facts(by_click(words, monkeypatch))


@sweep("line", LINES, parts=2, often=1)
def test_a_plain_line_of_others_prints_what_click_would_have_it(line, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gradcli", *line.split()])
    assert said(__main__._command) == said(main.main)


@pytest.mark.parametrize("line", MORE)
def test_other_lines_of_others_are_clicks(line):
    assert argv.plain_request(line.split()) is None


@both
@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_a_plain_line_asks_for_what_click_would_have_it(command, words, monkeypatch):
    words = [command, *words]
    plain = argv.plain_request(words)
    assert plain is not None
    _, found = plain
    wanted = by_click(words, monkeypatch)
    assert facts(found) == facts(wanted)
    assert list(found.texts) == list(wanted.texts)


def said(program: Callable[[], object]) -> tuple[object, str, str]:
    """Exit code, standard output and standard error of what reads `sys.argv`."""
    with (
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
        pytest.raises(SystemExit) as leaving,
    ):
        program()
    return leaving.value.code or 0, out.getvalue(), err.getvalue()


@both
@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_a_plain_line_prints_what_click_would_have_it(command, words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gradcli", command, *words])
    found = said(__main__._command)
    assert found == said(main.main)
    assert any(found[1:])


@sweep("words", [PLAIN[0], PLAIN[6]], name=" ".join, parts=2, often=1)
def test_a_plain_line_is_the_short_way_from_its_start(words):
    """In processes of their own: what is imported, and what the console script adds."""
    lines = [["-c", f"import sys; sys.argv[0] = 'gradcli'; from {home} import main; main()"]
             for home in ("gradcli.__main__", "gradcli.cli")]  # fmt: skip
    first, second = (
        subprocess.run(
            [sys.executable, *line, "grad", *words], capture_output=True, text=True, check=False
        )
        for line in lines
    )
    assert (first.returncode, first.stdout, first.stderr) == (
        second.returncode,
        second.stdout,
        second.stderr,
    )


@sweep("words", OTHERS, name=lambda words: " ".join(words) or "nothing", parts=1)
def test_other_lines_are_clicks(words):
    assert argv.plain_request(["grad", *words]) is None
    assert argv.plain_request(["graph", *words]) is None


@pytest.mark.parametrize("name", ["GRADCLI_DTYPE", "_GRADCLI_COMPLETE"])
def test_settings_are_clicks(name, monkeypatch):
    monkeypatch.setenv(name, "float32")
    assert argv.plain_request(["grad", "x", "--x", "1"]) is None


@pytest.mark.parametrize("command", sorted(SHORT))
def test_no_option_is_taken_for_a_variable(command):
    declared = click_command(declaration(command))
    options = declared.get_params(click.Context(declared))
    written = [text for o in options for text in (*o.opts, *o.secondary_opts) if text[:2] == "--"]
    assert {*written} == {name for name in declaration(command).declared() if name[:2] == "--"}


# What a start of these has no use for: click and what it imports; what only other lines need.
UNUSED = {
    **dict.fromkeys(("grad", "graph"), ()),
    "diff": ("numpy.typing", "gradcli.transforms.traced_matrices", "gradcli.formulas.print.latex"),
    "simplify": ("numpy.typing", "gradcli.transforms.traced_matrices"),
    "jacobian": ("numpy.typing", "fractions"),
    "root": ("scipy", "hashlib", "subprocess"),
    "minimize": ("scipy", "hashlib", "subprocess"),
    "taylor": ("scipy",),
}


@sweep("command", list(UNUSED), parts=4, often=1)
def test_a_plain_line_needs_no_click(command):
    code = (
        "import sys\nfrom gradcli.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
        f"heavy = {{'click', 'rich', 'lark', 'gettext', 'uuid', *{UNUSED[command]}}} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    point = {"graph": "0,1,2,3", "grad": "0,1,2,3"}.get(command, "1.5")
    line = {"jacobian": ["sin(x)"], "root": ["x**2 - 2"], "taylor": ["exp(x)"]}.get(command)
    words = [
        *(line or ["2*dot(x,x)" if "," in point else "2*x*x"]),
        *(["--x", point] if command not in ("diff", "simplify") else []),
    ]
    argv = [sys.executable, "-c", code, command, *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr

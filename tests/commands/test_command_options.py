"""Options that grow out of the expression: every pitfall of design.md, section 3."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from gradcli.cli import Program, main
from gradcli.commands.click_commands import click_command
from gradcli.commands.declarations import EXPRESSION, Option, declare
from gradcli.engine.system import process
from tests.sweep import sweep


@declare(
    "probe",
    *EXPRESSION,
    Option("--seed, --gradient VALUE"),
    Option("-o FILE", name="path"),
    Option("--format FORMAT", name="form"),
    examples=(),
)
def probe(ctx, request, options) -> None:
    """Say what was understood."""
    seed, path = options.seed, options.path
    click.echo(f"expression={request.source!r} values={request.texts} seed={seed!r} o={path!r}")


class _Probing(Program):
    def get_command(self, ctx, cmd_name):
        return click_command(probe)

    def resolve_command(self, ctx, args):
        return args[0], click_command(probe), args[1:]


group = _Probing("gradcli", context_settings={"help_option_names": ["-h", "--help"]})


def run(*args, **kwargs):
    return CliRunner().invoke(group, ["probe", *args], prog_name="gradcli", **kwargs)


OK = [
    (["2*dot(x,x)", "--x", "0,1,2,3"], {"x": "0,1,2,3"}),
    (["--x", "0,1,2,3", "2*dot(x,x)"], {"x": "0,1,2,3"}),
    # R1: exactly one value, whatever that starts with
    (["2*x", "--x", "-1,2"], {"x": "-1,2"}),
    (["2*x", "--x=-1,2"], {"x": "-1,2"}),
    (["2*x", "--x", "-1e3"], {"x": "-1e3"}),
    (["2*x", "--x=-1e3"], {"x": "-1e3"}),
    (["2*x", "--x", "-o"], {"x": "-o"}),
    (["2*x", "--x", "-h"], {"x": "-h"}),
    (["2*x", "--x", "-inf"], {"x": "-inf"}),
    (["x+1", "--x", "--1"], {"x": "--1"}),
    (["x+1", "--x=--pi"], {"x": "--pi"}),
    (["x+1", "--x", "-pi"], {"x": "-pi"}),
    (["x", "--x", "--"], {"x": "--"}),
    (["x", "--x", ""], {"x": ""}),
    (["x", "--x="], {"x": ""}),
    (["x", "--x", "a=b"], {"x": "a=b"}),
    (["x*w", "--x", "1,2;3,4", "--w", "[[1,2],[3,4]]"], {"x": "1,2;3,4", "w": "[[1,2],[3,4]]"}),
    (["x+y", "--x", "inf,-inf,nan", "--y", "1+2j"], {"x": "inf,-inf,nan", "y": "1+2j"}),
    (["x", "--x", "@data.npy"], {"x": "@data.npy"}),
    (["x", "--x", "-"], {"x": "-"}),
    (["x", "--x", "0:4"], {"x": "0:4"}),
    (["x", "--x", "randn(3)"], {"x": "randn(3)"}),
    (["θ*2", "--θ", "3"], {"θ": "3"}),
    (["ﬁ*2", "--ﬁ", "3"], {"fi": "3"}),  # Python reads the ligature as two letters
    (["w_1*2", "--w_1", "3"], {"w_1": "3"}),
    (["X*x", "--X", "3", "--x", "2"], {"X": "3", "x": "2"}),
    (["e*t*i*j", "--e", "1", "--t", "2", "--i", "3", "--j", "4"],
     {"e": "1", "t": "2", "i": "3", "j": "4"}),
    # R2: a single dash is an expression unless it is a declared short option
    (["-x**2", "--x", "3"], {"x": "3"}),
    (["-x", "--x", "3"], {"x": "3"}),
    (["-1*x", "--x", "3"], {"x": "3"}),
    (["--x", "3", "-x"], {"x": "3"}),
    (["x", "--x", "1", "-o", "-"], {"x": "1"}),
    (["x", "--x", "1", "-o", "-x"], {"x": "1"}),
    # R3: what is not --identifier, and all after --
    (["--x*2", "--x", "3"], {"x": "3"}),
    (["--x-2", "--x", "3"], {"x": "3"}),
    (["--(x)", "--x", "3"], {"x": "3"}),
    (["--x", "3", "--", "-x"], {"x": "3"}),
    (["--x", "3", "--", "--x"], {"x": "3"}),
    # a declared option wins over a variable of its name
    (["seed*2", "--let", "seed=3", "--seed", "1"], {"seed": "3"}),
    (["json*help*let", "--let", "json=3", "--let", "help=2", "--let", "let=a=b"],
     {"json": "3", "help": "2", "let": "a=b"}),
    (["x+seed", "--let=seed=-3", "--x", "1"], {"x": "1", "seed": "-3"}),
    (["x", "--let", "x=1"], {"x": "1"}),
    (["x", "--x", "1", "--json"], {"x": "1"}),
    (["--json", "x", "--x", "1"], {"x": "1"}),
    (["x", "--x", "1", "--seed", "-1,1"], {"x": "1"}),
    # names with a meaning of their own are variables only when bound
    (["pi*x", "--x", "1"], {"x": "1"}),
    (["pi*x", "--x", "1", "--pi", "3"], {"x": "1", "pi": "3"}),
    (["sum + x", "--sum", "1", "--x", "2"], {"sum": "1", "x": "2"}),
    (["x.sum()", "--x", "1,2"], {"x": "1,2"}),
    (["y = 2*x; y", "--x", "1"], {"x": "1"}),
    (["2+3"], {}),
]  # fmt: skip


@sweep(("argv", "values"), OK, parts=1)
def test_bound(argv, values):
    result = run(*argv)
    assert result.exit_code == 0, result.output
    assert f"values={values} " in result.output


def test_values_of_declared_options_keep_their_dashes():
    assert "seed='-1,1'" in run("x", "--x", "1", "--seed", "-1,1").output
    assert "seed='--1'" in run("x", "--x", "1", "--gradient", "--1").output
    assert "o='-x'" in run("x", "--x", "1", "-o", "-x").output


def test_the_expression_may_come_from_a_file_or_standard_input(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("\ufeff2*x\n", encoding="utf-8")
    for argv in (["-f", str(path)], ["-f", "-"], ["-"]):
        result = run(*argv, "--x", "3", input="2*x\n")
        assert "expression='2*x\\n' values={'x': '3'}" in result.output


BAD = [
    (["2*x"], "no value for x\n    2*x\n      ^\nhint: add --x VALUE"),
    (["x*yy"], "no value for x\n    x*yy\n    ^\n"),
    (["1 + foo(2)"], "no function is called `foo`\n    1 + foo(2)\n        ^^^\n"),
    (["sine(2)"], "hint: did you mean `sin"),
    (["2*x", "--x"], "--x needs a value"),
    (["2*x*w", "--x", "--w", "3"], "--x needs a value, but --w follows it"),
    (["2*x", "--x", "--seed", "3"], "--x needs a value, but --seed follows it"),
    (["2*x", "--seed", "--x", "3"], "--seed needs a value, but --x follows it"),
    (["2*x", "--x", "--wrt", "x"], "--x needs a value, but --wrt follows it"),
    (["2*x", "--y", "3"], "--y is neither an option nor a variable of the expression (variables: x)"),
    (["2*x", "--y", "3"], "did you mean `--x`"),
    (["2*x", "--x", "1", "--sed", "1"], "did you mean `--seed`"),
    (["2*x", "--x", "1", "--x", "2"], "variable x is bound twice"),
    (["2*x", "--let", "x=1", "--x", "2"], "variable x is bound twice"),
    (["seed*2", "--seed", "3"],
     "no value for seed, which has the name of an option\n    seed*2\n    ^^^^\n"
     "hint: set it with --let seed=VALUE"),
    (["2*json", "--json", "3"], "the variable is set with --let json=3"),
    (["2*x", "--x", "1", "extra"], "unexpected argument 'extra'"),
    (["sum(x)", "pyproject.toml"], "a column of a table is a variable's value: --x @pyproject.toml:COLUMN"),
    (["2*x", "--x", "1", "-ofile"], "write a space after a short option: -o file"),
    (["2*x", "--x", "1", "--unit", "m"], "gradcli eval and fit write a unit behind a result; --units N"),
    (["2*x", "--x", "1", "--no-such", "1"], "no such option --no-such"),
    (["2*x", "--x", "1", "--norms"], "--norms is an option of gradcli graph"),
    (["2*x", "--x", "1", "--no-grd", "x"], "did you mean `--no-grad`"),
    (["2*/x", "--x", "1"], "\n    2*/x\n      ^\n"),
    (["sin(2"], "`(` is never closed\n    sin(2\n       ^\n"),
    (["x^2", "--x", "1"], "`^` is not a power here\n    x^2\n     ^\nhint: here it is written x**2; --math"),
    (["x", "--let", "x"], "--let wants NAME=VALUE, not 'x'"),
    (["x", "--let", "=1"], "--let wants NAME=VALUE, not '=1'"),
    (["x", "--let", "y=1", "--x", "1"], "y is not a variable of the expression (variables: x)"),
    (["x*y", "--x", "-", "--y", "-"], "only one of --x and --y can be read from standard input"),
    (["-", "--x", "-"], "only one of EXPR and --x can be read from standard input"),
    (["x", "--x", "-", "--seed", "-"], "only one of --x and --seed can be read from standard"),
    (["x", "--x", "1", "--json", "--plain"], "--json and --plain cannot be used together"),
    (["x", "--x", "1", "--wrt", "y"], "--wrt: 'y' is not a variable of the expression (there are: x)"),
    (["x", "--x", "1", "--dtype", "int8"], "'int8' is not one of"),
    (["x", "--x", "1", "--precision", "0"], "0 is not in the range 1<=x<=17"),
    (["x", "--x", "1", "--precision", "a"], "'a' is not a valid integer"),
    ([""], "the expression is empty"),
    (["x", "--x", "1", "-f", "nowhere"], "the expression is given twice"),
    (["-f", "nowhere/e.txt"], "cannot read nowhere/e.txt: No such file or directory"),
    (["-f", "."], "cannot read .: Is a directory"),
    ([], "no expression"),
    (["x", "--load", "nowhere.py", "--x", "1"], "--load: cannot read nowhere.py"),
]  # fmt: skip


@sweep(("argv", "message"), BAD, parts=1)
def test_refused(argv, message):
    result = run(*argv, input="x")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith('{"error"' if "--json" in argv else "gradcli: error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bad_environment_variable_is_named():
    result = run("x", "--x", "1", env={"GRADCLI_DTYPE": "int8"})
    assert result.exit_code == 2
    assert "GRADCLI_DTYPE" in result.stderr


def test_help_lists_the_variables():
    for argv in (["2*dot(x,w)", "--help"], ["2*dot(x,w)", "-h"], ["-h", "2*dot(x,w)", "--x", "1"]):
        text = run(*argv).output
        assert "Variables of EXPR:\n  --x VALUE  Value of x.\n  --w VALUE  Value of w." in text
        assert "--help-all" in text
    assert "Variables of EXPR" not in run("--help").output
    assert "Variables of EXPR" not in run("pi*inf*torch.sin(2)", "--help").output


EVALUATING = ("eval", "grad", "diff", "jacobian", "hessian", "jvp", "graph", "check")


@sweep("command", EVALUATING, parts=1)
def test_help_shows_examples_that_run(command):
    text = CliRunner().invoke(main, [command, "--help"]).output
    assert text.count("\n") <= 24
    examples = text.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert len(examples) == 2
    for example in examples:
        result = CliRunner().invoke(main, shlex.split(example)[1:])
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("expression", ["2*(x", "--no-such", "x +"])
def test_help_survives_a_broken_expression(expression):
    result = run(expression, "--help")
    assert result.exit_code == 0
    assert "Usage: " in result.output


def test_no_glob_is_expanded_on_windows(monkeypatch):
    """click would take `2*x` for a pattern of file names."""
    seen = []
    monkeypatch.setattr("sys.argv", ["gradcli", "eval", "2*x", "--x", "1"])
    monkeypatch.setattr("os.name", "nt")
    monkeypatch.setattr("click.core._expand_args", lambda args: seen.append(args), raising=False)
    monkeypatch.setattr(main, "_run", lambda arguments, *_: seen.append(arguments) or 0)
    with pytest.raises(SystemExit):
        main.main()
    assert seen == [["eval", "2*x", "--x", "1"]]


@pytest.mark.parametrize(
    ("started", "own"),
    [("bin/gradcli", True), ("gradcli/__main__.py", True), ("pytest/__main__.py", False)],
)
def test_a_process_is_left_at_once_if_it_is_ours(monkeypatch, started, own):
    left = []
    monkeypatch.setattr("sys.argv", [started])
    monkeypatch.setattr("os._exit", left.append)
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: None)
    with contextlib.suppress(SystemExit):
        process._leave(SystemExit(3))
    assert left == [3] * own


COMPLETIONS = [
    ("gradcli grad '2*dot(x,w)' --", 3, {"--x", "--w", "--seed", "--let"}, {"--dot"}),
    ("gradcli grad '2*dot(x,w)' --x 1,2 --", 5, {"--w"}, {"--x"}),
    ("gradcli grad '2*dot(x,' --", 3, {"--seed"}, set()),
    ("gradcli grad --", 2, {"--seed"}, set()),
    ("gradcli eval x --color ", 4, {"auto", "always", "never"}, set()),
    ("gradcli gr", 1, {"grad", "graph"}, {"eval"}),
    ("gradcli completion ", 2, {"bash", "zsh", "fish"}, set()),
]


@sweep(("line", "word", "wanted", "unwanted"), COMPLETIONS, parts=1)
def test_completion(line, word, wanted, unwanted):
    env = {"COMP_WORDS": line, "COMP_CWORD": str(word), "_GRADCLI_COMPLETE": "bash_complete"}
    output = CliRunner(env=env).invoke(main, [], prog_name="gradcli").output
    found = {line.partition(",")[2] for line in output.splitlines()}
    assert wanted <= found
    assert not (unwanted & found)


LIGHT = [
    (["--help"], {}),
    (["--version"], {}),
    (["grad", "--help"], {}),
    (["grad", "2*dot(x,w)+pi", "--help"], {}),
    (["completion", "bash"], {}),
    (["ops"], {}),
    (["ops", "abs"], {}),
    (["ops", "gauss"], {}),
    ([], {"COMP_WORDS": "gradcli grad '2*dot(x,w)' --", "COMP_CWORD": "3",
          "_GRADCLI_COMPLETE": "bash_complete"}),
]  # fmt: skip


@sweep(("argv", "env"), LIGHT, parts=1)
def test_nothing_heavy_is_imported(argv, env):
    code = (
        "import sys\nfrom gradcli.cli import main\n"
        "try:\n    main.main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
        "heavy = {'numpy', 'lark', 'rich', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *argv],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_derivative_needs_no_generator_of_random_numbers():
    """`numpy.random` takes a tenth of the time in which NumPy is there."""
    code = (
        "import sys\nfrom gradcli.cli import main\n"
        "try:\n    main.main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
        "print('numpy.random' in sys.modules)\n"
    )
    argv = [sys.executable, "-c", code, "diff", "exp(-x**2)", "--wrt", "x"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-2*x*exp(-x**2)", "False"]


def test_a_gradient_imports_no_more_than_it_needs():
    """A module costs a quarter of a millisecond of the start: what is rare is imported where it is used."""
    code = (
        "import sys\nfrom gradcli.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
        "print(*sys.modules)\n"
    )
    argv = [sys.executable, "-c", code, "grad", "2*dot(x,x)", "--x", "0,1,2,3"]
    result, modules = subprocess.run(
        argv, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert result == "x.grad = [0, 4, 8, 12]"
    imported = set(modules.split())
    folders = {"gradcli.engine", "gradcli.operators"}  # an empty `__init__` each
    assert len({m for m in imported if m.startswith("gradcli.")} - folders) <= 68
    rare = {
        "click",
        "locale",
        "unicodedata",
        "rich",
        "lark",
        "scipy",
        "gradcli.engine.registry.batching_helpers",
    }
    rare |= {
        f"gradcli.engine.core.{m}" for m in ("views", "out", "watched_pass", "batch_rows", "random")
    }
    assert not imported & rare


SHAPED = [
    (["eval", "x.shape", "--shape", "x=2,3"], "torch.Size([2, 3])\n"),
    (["grad", "sum(x*w)", "--shape", "x=3", "--w", "1,2,3", "--wrt", "x"], "x.grad = [1, 2, 3]\n"),
    (
        ["jacobian", "A@x", "--shape", "A=2,3", "--x", "1,2,3", "--wrt", "x", "--precision", "3"],
        None,
    ),
    (["jvp", "2*x", "--shape", "x=2", "--vector", "1,1"], "jvp = [2, 2]\n"),
    (["graph", "x*y", "--shape", "x=", "--shape", "y=2x2"], None),
    (["hessian", "sum(x**2)", "--shape", "x=2"], "x.hessian = [[2, 0], [0, 2]]\n"),
]


@sweep(("argv", "out"), SHAPED, parts=1)
def test_variables_of_shape_are_drawn(argv, out):
    argv = [*argv, "--manual-seed", "1"]
    result = CliRunner().invoke(main, argv, prog_name="gradcli")
    assert result.exit_code == 0 and "is randn(" in result.stderr
    assert out is None or result.stdout == out
    assert CliRunner().invoke(main, argv, prog_name="gradcli").stdout == result.stdout


def test_a_shape_goes_to_a_variable_without_a_value():
    for argv, words in (
        (["grad", "x", "--x", "1", "--shape", "x=2"], "x has a value, which has a shape"),
        (["grad", "x", "--x", "1", "--shape", "y=2"], "'y' is not a variable"),
        (["grad", "2*shape", "--shape", "3"], "hint: --let shape=3"),
    ):
        result = CliRunner().invoke(main, argv, prog_name="gradcli")
        assert result.exit_code == 2 and words in result.stderr


@pytest.mark.parametrize(
    ("argv", "noted"),
    [
        (["diff", "x*units", "--units", "2"], True),
        (["diff", "x*units", "--let", "units=2"], False),
        (["diff", "x*units", "--units", "2", "--let", "units=2"], False),
        (["eval", "x", "--x", "2", "--units", "2"], False),
        (["diff", "x*log(x)", "--units", "none"], False),
    ],
)
def test_an_option_that_is_called_like_a_variable_is_said(argv, noted):
    err = CliRunner().invoke(main, argv).stderr
    words = "--units is an option here; the variable units is given by --let units=VALUE"
    assert (words in " ".join(err.split())) == noted, err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["eval", "x", "--x", "2", "--units", "m/s^2"], "--units does nothing; results have no units"),
        (["eval", "x", "--x", "2", "--header", "2", "--separator", ";"], "--header, --separator do nothing"),
        (["diff", "x**2", "--skip-lines", "2"], "--skip-lines does nothing"),
        (["eval", "x", "--x", "-", "--separator", ";"], ""),
        (["eval", "x", "--x", "1,5", "--decimal", ","], ""),
    ],
)  # fmt: skip
def test_options_of_tables_say_so_where_no_table_is_read(argv, words):
    err = CliRunner().invoke(main, argv, input="1;2").stderr
    assert err == (f"gradcli: note: no table is read, so that {words}\n" if words else "")

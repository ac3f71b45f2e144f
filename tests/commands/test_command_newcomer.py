"""What somebody new types: wrong options, wrong files, values that no line has room for."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from gradcli.commands import COMMANDS
from tests.commands.running import run
from tests.commands.terminal import GRADCLI, environment, in_terminal, piped
from tests.sweep import sweep


def test_lists_and_modules_are_told_from_tensors_and_functions() -> None:
    assert "a list is no vector: write `tensor(" in run("eval", "[[1,2],[3,4]] @ [5,6]").stderr
    assert "that is a module" in run("eval", "random()").stderr


@sweep(
    ("argv", "words"),
    [
        (["eval", "x", "-x", "1"], "a variable takes two dashes: --x"),
        (["eval", "x", "--let", "x"], "as in --let seed=3"),
        (["eval", "x", "--x", "1", "--no-grad"], "write --no-grad NAMES|all"),
        (["eval", "x", "--x", "1", "--dtype", "flaot32"], "did you mean `float32`?"),
        (["graph", "x*x", "--x", "1", "--format", "mermiad"], "did you mean `mermaid`?"),
        (["grad", "x", "--x", "1", "--check"], "gradcli check EXPR"),
        (["grad", "x", "--x", "1", "--repeat", "2"], "--passes N --retain-graph"),
        (["grad", "y=x*x; y", "--x", "1", "--hook", "y: gard"], "did you mean `grad`?"),
        (["derivative", "x**2"], "did you mean `diff`?"),
        (["solve", "x**2 - 2"], "did you mean `root`?"),
        (["integrate", "x**2"], "there are no integrals and no limits"),
        (["--color", "always", "grad"], "a command's options come after it"),
        (["grad", "a-b*x", "--a-b", "1", "--x", "2"], "no dashes in it"),
        (["--verison"], "did you mean `--version`?"),
        (["-V"], "did you mean `--version`?"),
        (["version"], "did you mean `--version`?"),
        (["eval", "sinn(x)", "--x", "1"], "did you mean `sin` or"),
        (["eval", "logg(x)", "--x", "1"], "did you mean `log` or"),
        (["grad", "x*y", "y=1,2;3,4", "--x", "1"], "its value by an option: --y '1,2;3,4'"),
        (
            ["completion"],
            "missing argument 'SHELL'\nhint: there are bash, zsh, powershell, pwsh, fish",
        ),
        (["completion", "bash", "zsh"], "put several words in quotes"),
        (["eval", "x", "--x", r"@C:\no\d.csv"], r"--x: C:\no\d.csv: No such file"),
        (["eval", "x", "--x", r"@C:\no\d.dat:b"], r"--x: C:\no\d.dat: No such file"),
        (["eval", "**2 + x", "--x", "1"], "a shell replaces $x: leave out the $"),
        (["eval", "mse(x, y)", "--x", "1", "--y", "2"], "did you mean `nn.functional.mse_loss`?"),
        (["fit", __file__, "T == a*L", "--a", "1"], f"fit 'T == a*L' {__file__}"),
        (["ops", "x.sin"], "did you mean `sin`?"),
        (["ops", "sin(x)"], "did you mean `sin`?"),
    ],
    parts=1,
)
def test_the_hint_helps(argv, words):
    result = run(*argv)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_a_broken_spreadsheet_is_refused(tmp_path):
    (tmp_path / "d.xlsx").write_bytes(b"PK\x03\x04 and so on")
    for argv in (
        ["map", "x", str(tmp_path / "d.xlsx")],
        ["eval", "x", "--x", f"@{tmp_path}/d.xlsx:x"],
    ):
        assert "d.xlsx: a workbook" in run(*argv).stderr


def test_a_closed_pipe_under_a_program_s_own_print(tmp_path):
    path = tmp_path / "loop.py"
    path.write_text("for i in range(100000): print(i)")
    program = [*GRADCLI, "run", str(path)]
    process = subprocess.Popen(
        program, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"0\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def test_constants_are_shown(tmp_path):
    assert run("ops", "pi").stdout == "pi = 3.141592653589793\n"
    assert json.loads(run("ops", "inf", "--json").stdout) == {
        "name": "inf",
        "value": "inf",
        "notes": [],
    }
    assert run("ops", "F.relu").stdout.startswith("nn.functional.relu(")


def test_a_program_is_no_expression(tmp_path):
    path = tmp_path / "p.py"
    path.write_text("y = 1")
    result = run("run", str(path), "--x", "3")
    assert "of the program (variables: none)" in result.stderr
    assert "needs a value" not in run("run", str(path), "--json").stderr


def test_what_a_program_prints_is_apart_from_the_object():
    result = run("grad", "print(x); x*x", "--x", "1", "--json")
    assert json.loads(result.stdout)["value"] == 1.0
    assert result.stderr == "tensor(1., requires_grad=True)\n"
    assert "the value is None, not a tensor" in run("grad", "print(x)", "--x", "1").stderr


def test_a_stream_without_an_ellipsis():
    done = piped("grad", "x+a", "--x", "3", "--a", "4,2", PYTHONIOENCODING="ascii")
    assert "sum(...) or mean(...)" in done.stderr


def test_a_tuple_is_told_by_its_fields():
    result = run("grad", "max(x, dim=0)", "--x", "1,2")
    assert "the value is a tuple of values and indices, not a tensor" in result.stderr


@pytest.mark.parametrize(
    "argv",
    [["grad", "max(x, 0)", "--x", "1"], ["diff", "max(x, 0)"], ["diff", "sum(max(x, 0))"]],
    ids=str,
)
def test_the_larger_of_two_is_not_the_largest_along_a_dimension(argv):
    assert "clamp(x, min=0)" in run(*argv).stderr.splitlines()[-1]


def test_a_complex_result_has_a_remedy():
    assert "(…).real" in run("grad", "x*x", "--x", "1+2j").stderr


def test_binary_files(tmp_path):
    path = tmp_path / "b.npy"
    path.write_bytes(b"\x00\xff\xfe" * 100)
    result = run("eval", "x", "--x", f"@{path}")
    assert result.exit_code == 2
    assert "pickle" not in result.stderr


def test_values_without_bounds():
    assert len(run("eval", "10**100000").stdout) == 100_002
    deep = "[" * 5000 + "1" + "]" * 5000
    assert run("eval", deep).stdout == f"{deep}\n"
    result = run("eval", deep, "--json")
    assert result.exit_code == 1
    assert "fault in gradcli" not in result.stderr
    assert (
        run("eval", "(x,), [x, 2], 'a'", "--x", "1,2").stdout == "(([1, 2],), [[1, 2], 2], 'a')\n"
    )


def test_anomalies_of_a_value():
    assert run("eval", "exp(x)", "--x", "1", "--detect-anomaly").exit_code == 0
    result = run("eval", "exp(1000*x).sum()", "--x", "1,2", "--detect-anomaly")
    assert result.exit_code == 1
    assert "Function 'ExpBackward0' computed inf values in the forward pass." in result.stderr
    assert "    ^^^^^^^^^^^\n" in result.stderr
    assert run("eval", "log(0*ones(2))", "--detect-anomaly").exit_code == 1


@sweep("command", COMMANDS, parts=1)
def test_help_shows_examples_before_options(command):
    text = run(command, "--help").stdout
    assert 0 < text.index("Example") < text.index("Options:")
    own, _, rest = text.partition("Input and output:")
    assert not rest or "  --json" not in own


@sweep("command", COMMANDS, parts=1)
def test_help_fits_a_screen_and_says_where_the_rest_is(command):
    short, whole = run(command, "--help").stdout, run(command, "--help-all").stdout
    assert len(short.splitlines()) <= 24
    assert run("help", command).stdout == short
    if short != whole:
        last = short.splitlines()[-1]
        assert last.startswith(f"gradcli {command} --help-all lists all options (")
        listed = re.findall(r"^  (--?[\w-]+)", whole, re.MULTILINE)
        shown = re.findall(r"^  (--?[\w-]+)", short, re.MULTILINE)
        missing = set(listed) - set(shown) - {"-h", "--help-all", "--x"}
        assert f"({len(missing)} more)" in last


def test_the_help_of_a_command_that_is_none():
    assert "did you mean `grad`?" in run("help", "gard").stderr
    assert run("help").stdout == run("--help").stdout


def test_help_says_what_an_option_does() -> None:
    shown = run("help", "math").stdout
    assert shown.startswith("--math\n  Read EXPR as mathematics") and "of: eval, grad" in shown
    assert run("help", "-o").exit_code == 2 and "Write .svg" in run("help", "--", "-o").stdout


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        (["-x**2", "--x", "3"], "x.grad = -6\n"),
        (["-sum(x)", "--x", "1,2"], "x.grad = [-1, -1]\n"),
        ([r"-\log x", "--math", "--x", "2"], "x.grad = -0.5\n"),
    ],
)
def test_an_expression_in_place_of_a_command_may_begin_with_a_minus(
    argv: list[str], answer: str
) -> None:
    assert run(*argv).stdout == answer
    assert "no such option" in run("-x=3").stderr


def test_narrow_terminals():
    for argv in (["grad", "--help"], ["grad", "x+ones(2)", "--x", "1,2"], ["--help"]):
        _, screen = in_terminal(*argv, columns=40, NO_COLOR="1")
        lines = screen.splitlines()
        prose = [s for s in lines if not s.startswith(("    ", "gradcli: error"))]
        assert max(map(len, prose)) <= 40


def test_bare_values_have_no_names():
    assert run("grad", "a*x", "--a", "1", "--x", "2", "--bare").stdout == "2\n1\n"
    assert run("diff", "a*x", "--bare").stdout == "x\na\n"
    assert run("eval", "x", "--x", "1,2", "--bare").stdout == "1,2\n"

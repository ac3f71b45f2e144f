"""What every command promises: exit codes, streams, colour, pipes, no traceback."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time

import click
import pytest

from gradcli.cli import main
from gradcli.commands import COMMANDS
from gradcli.version import __version__
from tests.commands.running import run
from tests.commands.terminal import GRADCLI, environment, in_terminal, piped
from tests.sweep import sweep

MAIN_JOB = ["grad", "2*dot(x,x)", "--x", "0,1,2,3"]


CODES = [
    (MAIN_JOB, 0),
    (["--version"], 0),
    (["--help"], 0),
    (["grad", "-h"], 0),
    (["grad", "x+a", "--x", "3", "--a", "4,2"], 1),
    (["eval", "x+a", "--x", "3,3,3", "--a", "4,2"], 1),
    (["eval", "1/0"], 1),
    (["grad", "2*x"], 2),
    (["grad", "2*/x", "--x", "3"], 2),
    (["eval", "x", "--x", "1,,2"], 2),
    (["eval", "x", "--x", "1,2;3"], 2),
    (["eval", "x", "--x", "@nowhere.npy"], 2),
    (["eval", "x", "--x", ""], 2),
    (["eval", "foo(2)"], 2),
    (["graph", "x", "--x", "1", "--format", "bmp"], 2),
    (["graph", "x", "--x", "1", "-o", "nowhere/at/all.svg"], 2),
    (["ops", "no_such_function"], 2),
    (["completion", "tcsh"], 2),
    (["nonsense"], 2),
    (["--nonsense"], 2),
    (["grad", "y, z = 2*x, x", "--x", "3"], 1),
    (["grad", "2", ], 1),
    (["grad", "max(x, dim=0)", "--x", "3,4"], 1),
    (["grad", "x", "--x", "1", "--retain", "y"], 2),
    (["grad", "y = x.shape; x", "--x", "1", "--retain", "y"], 2),
    (["grad", "y = x.detach(); x", "--x", "1", "--retain", "y"], 1),
    (["grad", "x", "--x", "1", "--hook", "x = 2"], 2),
    (["grad", "x", "--x", "1", "--hook", "y: 2*grad"], 2),
    (["grad", "x", "--x", "1", "--hook", "x: 2*grad*z"], 2),
    (["grad", "x", "--x", "1", "--hook", "x: 2*"], 2),
    (["grad", "x", "--x", "1", "--hook", "x: grad + ones(3)"], 1),
    (["grad", "x*x", "--x", "1,2", "--seed", "1,2,3"], 1),
    (["eval", "x", "--x", "tensor([1,2])", "--wrt", "x"], 1),
    (["eval", "x", "--x", "1", "--manual-seed", str(2**70)], 2),
]  # fmt: skip


@sweep(("argv", "code"), CODES, parts=1)
def test_exit_codes_and_streams(argv, code):
    result = run(*argv)
    assert result.exit_code == code, result.output
    assert bool(result.stdout) == (code == 0)
    if code:
        assert result.stderr.startswith("gradcli: error: ")
        assert "fault in gradcli" not in result.stderr
        assert "\x1b" not in result.stderr
    else:
        assert result.stderr == ""
        assert "\x1b" not in result.stdout


FAILING = [
    (argv, code)
    for argv, code in CODES
    if code and argv[0] not in ("completion", "nonsense", "--nonsense")  # which take no --json
]


@sweep(("argv", "code"), FAILING, parts=1)
def test_errors_as_json(argv, code):
    result = run(*argv, "--json")
    assert result.exit_code in (code, 2)
    assert result.stdout == ""
    found = json.loads(result.stderr)["error"]
    assert list(found)[:4] == ["type", "message", "span", "hint"]
    assert isinstance(found["type"], str) and found["message"]
    assert found["span"] is None or len(found["span"]) == 2


def test_json_behind_a_variable_is_the_option():
    result = run("eval", "x", "--x", "--json")
    assert result.exit_code == 2
    assert (
        json.loads(result.stderr)["error"]["message"] == "--x needs a value, but --json follows it"
    )


@sweep("command", COMMANDS, parts=1)
def test_every_command_has_help(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()[2].split()) >= 4
    loaded = main.get_command(click.Context(main), command)
    assert loaded is not None
    # what the group says without loading the command is what the command says of itself
    assert loaded.get_short_help_str(100).split()[:3] == COMMANDS[command].split()[:3]


def test_version():
    assert run("--version").stdout == f"gradcli {__version__}\n"


def test_no_command_shows_the_help_and_fails():
    result = run()
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Usage: gradcli")


def test_did_you_mean():
    assert "did you mean `grad` or `graph`?" in run("gradd").stderr
    assert "gradcli eval prints the value" in run("2*3").stderr
    assert run("x**2", "--x", "3").stdout == "x.grad = 6\n"  # an expression is for grad
    assert "--wrt x" in run("diff", "sin(x)", "x").stderr
    assert "@meas.csv:COLUMN" in run("grad", "x**2", "--x", "meas.csv").stderr
    assert "did you mean `softmax`" in run("ops", "sofmax").stderr


def test_an_unexpected_exception_is_one_line(monkeypatch):
    def fail(*_, **__):
        raise KeyError("three\nlines\nlong")

    monkeypatch.setattr("gradcli.commands.answers.results", fail)
    result = run("eval", "1")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "GRADCLI_DEBUG=1" in result.stderr
    shown = run("eval", "1", env={"GRADCLI_DEBUG": "1"})
    assert shown.exit_code == 1
    assert "Traceback" in shown.stderr
    for error, words in ((MemoryError(), "out of memory"), (OSError(28, "No space"), "No space")):
        monkeypatch.setattr("gradcli.commands.answers.results", _raiser(error))
        assert words in run("eval", "1").stderr


def _raiser(error):
    def fail(*_, **__):
        raise error

    return fail


def test_ctrl_c():
    monkeypatched = pytest.MonkeyPatch()
    with monkeypatched.context() as patch:
        patch.setattr("gradcli.commands.answers.results", _raiser(KeyboardInterrupt()))
        result = run("eval", "1")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr == ""


@pytest.mark.long
def test_ctrl_c_in_a_process():
    process = subprocess.Popen(
        [*GRADCLI, "eval", "-"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    "command", [[*GRADCLI, "eval", "x", "--x", "0:100000"], [*GRADCLI, "--help"]]
)
def test_a_closed_pipe_ends_quietly(command):
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert err == b""


@pytest.mark.parametrize(
    "command, unbuffered",
    [
        ("eval 1", ""),
        ("eval 1", "1"),
        ("grad 'print(x); x*x' --x 1", ""),
        ("map x -", ""),
        ("--help", ""),
    ],
)
def test_a_full_disk_is_said(command, unbuffered):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*GRADCLI, *shlex.split(command)], input="x\n1\n", env=environment(PYTHONUNBUFFERED=unbuffered),
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_any_locale_will_do():
    done = piped("eval", "θ", "--θ", "1,2", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    done = piped("eval", "θ + ", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@sweep(
    ("words", "code", "out"),
    [
        ("eval x --x - <&-", 2, ""),
        ("eval 2 >&-", 1, ""),
        ("eval 2/ 2>&-", 2, ""),
        ("eval 2/ 2>&- >&-", 2, ""),
        ("diff 'dot(x, y)' 2>&-", 0, "x.grad = y\ny.grad = x\n"),  # has a note
        ("eval 'x[[None, 0]]' --x 1,2 2>&-", 0, "[1]\n"),  # has a warning
    ],
    parts=3,
    often=1,
)
def test_streams_that_are_closed(words, code, out):
    command = f"{shlex.join(GRADCLI)} {words}"
    done = subprocess.run(
        ["bash", "-c", command], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, out)
    assert "fault" not in done.stderr and "Traceback" not in done.stderr


def test_same_input_same_bytes():
    argv = ["grad", "sum(randn(3)*x)", "--x", "1,2,3", "--manual-seed", "7", "--json"]
    assert run(*argv).stdout == run(*argv).stdout


COLOURS = [
    ({}, [], True),
    ({"NO_COLOR": "1"}, [], False),
    ({"NO_COLOR": "1"}, ["--color", "always"], True),
    ({"TERM": "dumb"}, [], False),
    ({}, ["--color", "never"], False),
]


@sweep(("env", "more", "coloured"), COLOURS, parts=5, often=2)
def test_colour_on_a_terminal(env, more, coloured):
    code, screen = in_terminal(*MAIN_JOB, *more, **env)
    assert code == 0
    assert ("\x1b[" in screen) is coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", screen) == "x.grad = [0, 4, 8, 12]\n"
    code, screen = in_terminal("eval", "2*/3", *more, **env)
    assert code == 2
    assert ("\x1b[" in screen) is coloured


@sweep(
    ("env", "more", "coloured"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "0"}, [], False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, [], False),  # as rich 15
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, ["--color", "always"], True),
        ({}, ["--color", "always"], True),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
    ],
    parts=1,
)
def test_colour_in_a_pipe(env, more, coloured):
    clean = {"NO_COLOR": None, "FORCE_COLOR": None, "TERM": "xterm"}
    result = run(*MAIN_JOB, *more, env={**clean, **env}, color=True)
    assert ("\x1b[" in result.stdout) is coloured
    result = run("eval", "2*/3", *more, env={**clean, **env}, color=True)
    assert ("\x1b[" in result.stderr) is coloured


def test_json_and_plain_are_never_coloured():
    for form in ("--json", "--plain"):
        code, screen = in_terminal(*MAIN_JOB, form)
        assert code == 0
        assert "\x1b" not in screen


def test_a_graph_goes_to_a_file_whole(tmp_path):
    for name, start in (("g.json", "{"), ("g.dot", "digraph"), ("g.svg", "<"), ("g.html", "<")):
        path = tmp_path / name
        result = run("graph", "x*x", "--x", "3", "-o", str(path))
        assert (result.exit_code, result.output) == (0, "")
        assert path.read_text().lstrip().startswith(start)
    assert sorted(os.listdir(tmp_path)) == ["g.dot", "g.html", "g.json", "g.svg"]


def test_plain_reads_back():
    for expression, values in [
        ("x", "0,1,2,3"),
        ("x*3", "0.1,1e-7,1e300"),
        ("x", "1,2;3,4"),
        ("x", "5"),
        ("x", "5,"),
        ("x", "zeros(0)"),
        ("x", "zeros(0,3)"),
        ("x", "zeros(1,2,3)"),
        ("x", "[[1],[2]]"),
        ("x", "nan,inf,-inf"),
        ("-x", "0,1"),
        ("x", "1+2j,3-4j"),
        ("x", "randn(4)"),
        ("x", "randn(3,2)"),
        ("x", "3.5,"),
    ]:
        first = run("eval", expression, "--x", values, "--plain", "--manual-seed", "1")
        assert first.exit_code == 0, first.stderr
        again = run("eval", "x", "--x", "-", "--plain", input=first.stdout)
        assert again.stdout == first.stdout, (expression, values)
        shape = json.loads(run("eval", "x", "--x", "-", "--json", input=first.stdout).stdout)[
            "shape"
        ]
        wanted = run("eval", expression, "--x", values, "--json").stdout
        assert shape == json.loads(wanted)["shape"], values

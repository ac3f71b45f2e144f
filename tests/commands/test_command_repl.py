"""`gradcli repl` in a pipe and in a terminal that is really one."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from tests.commands.terminal import GRADCLI, environment


def repl(text, *options):
    result = CliRunner().invoke(main, ["repl", *options], prog_name="gradcli", input=text)
    return result.exit_code, result.stdout, result.stderr


def test_in_a_pipe_there_are_no_prompts():
    text = "x = arange(4.0, requires_grad=True)\ny = 2*dot(x, x)\ny.backward()\nx.grad\n"
    assert repl(text) == (0, "tensor([ 0.,  4.,  8., 12.])\n", "")


def test_errors_go_to_standard_error_and_the_session_goes_on():
    code, out, err = repl("x = ones(2, requires_grad=True)\nx.backward()\n1/0\n2\n")
    assert (code, out) == (1, "2\n")
    assert err.startswith("error: grad can be implicitly created only for scalar outputs\n")
    assert "error: division by zero\n    1/0\n    ^^^\n" in err


@pytest.mark.parametrize("text, code", [("1 +\n", 2), ("nope\n", 2), ("f(\n", 2), ("", 0)])
def test_exit_codes(text, code):
    assert repl(text)[0] == code


def test_options(tmp_path):
    (tmp_path / "mine.py").write_text("def triple(x):\n    return 3*x\n")
    assert repl("ones(1).dtype\n", "--dtype", "float32")[1] == "torch.float32\n"
    assert repl("triple(2)\n", "--load", str(tmp_path / "mine.py"))[1] == "6\n"
    code, _, err = repl("while True: pass\n\n", "--max-steps", "9")
    assert code == 1 and "more than 9 steps" in err
    assert repl("randn(1)\n", "--manual-seed", "1") == repl("randn(1)\n", "--manual-seed", "1")


def test_a_graph_of_what_no_node_is_called():
    code, _, err = repl("x = ones(2, requires_grad=True)\ngraph sum(x) --only Pow\n")
    assert code == 2
    assert "--only: no node is called 'Pow'" in err


def test_graph_and_help():
    code, out, err = repl("x = ones(2, requires_grad=True)\ngraph sum(x)\nhelp exp\n")
    assert (code, err) == (0, "")
    assert "SumBackward0" in out and "AccumulateGrad x" in out
    assert "node        ExpBackward0" in out


def test_save_and_run_again(tmp_path):
    path = tmp_path / "session.py"
    text = (
        f"x = tensor([1.0, 2.0], requires_grad=True)\nsum(x*x).backward()\nx.grad\n:save {path}\n"
    )
    assert repl(text)[1] == "tensor([2., 4.])\n"
    assert CliRunner().invoke(main, ["run", str(path)]).stdout == "tensor([2., 4.])\n"
    assert repl(f":load {path}\n")[1] == "tensor([2., 4.])\n"


class Terminal:
    """A session in a terminal: what is typed, and what appears."""

    def __init__(self, tmp_path):
        self.ours, theirs = pty.openpty()
        env = environment(
            GRADCLI_HISTORY=str(tmp_path / "history"),
            TERM="xterm",
            NO_COLOR="1",
            PROMPT_TOOLKIT_NO_CPR="1",
        )  # this terminal does not say where its cursor is
        self.process = subprocess.Popen(
            [*GRADCLI, "repl"], env=env, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=lambda: _own_terminal(theirs),
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def wait_for(self, text, seconds=20.0):
        """Read until the text has appeared; what appeared before and with it."""
        while text not in self.seen:
            ready, _, _ = select.select([self.ours], [], [], seconds)
            assert ready, f"{text!r} is not in {self.seen!r}"
            data = os.read(self.ours, 65536).decode(errors="replace")
            self.seen = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", self.seen + data)
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def interrupt(self, wanted):
        """Type Ctrl-C until it is heard: the prompt drops one that comes while it starts."""
        for _ in range(20):
            self.type("\x03")
            ready, _, _ = select.select([self.ours], [], [], 1)
            if ready:
                return self.wait_for(wanted)
        raise AssertionError(f"Ctrl-C is not heard: {self.seen!r}")

    def type(self, text):
        os.write(self.ours, text.encode())


def _own_terminal(descriptor):
    import fcntl
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests run in the background


@pytest.fixture
def terminal(tmp_path):
    found = Terminal(tmp_path)
    yield found
    found.process.kill()
    found.process.wait()
    os.close(found.ours)


@pytest.mark.needs("prompt_toolkit")
def test_in_a_terminal(terminal, tmp_path):
    terminal.wait_for(">>>")
    terminal.type("x = arange(4.0, requires_grad=True)\r")
    terminal.wait_for(">>>")
    terminal.type("def f(a):\r")
    terminal.wait_for("...")
    terminal.type("return 2*a\r\r")  # the indentation is there already
    terminal.wait_for(">>>")
    terminal.type("f(x)\r")
    terminal.wait_for("tensor([0., 2., 4., 6.], grad_fn=<MulBackward0>)")
    terminal.wait_for(">>>")
    terminal.type("softm\t")
    terminal.wait_for("softmax(")
    terminal.interrupt(">>>")  # ends the line
    terminal.type(
        "\x1b[200~for i in range(2):\n    a = i\n\n    print(a + 40)\n\x1b[201~\r"
    )  # pasted
    terminal.wait_for("40\r\n41\r\n")
    terminal.type("!echo $((6*7))\r")
    terminal.wait_for("42\r\n")
    terminal.type("while True: pass\r\r")
    time.sleep(0.3)
    terminal.interrupt("interrupted")  # ends a computation
    terminal.wait_for(">>>")
    terminal.type("1 + 1\r")
    terminal.wait_for("2\r\n")
    terminal.wait_for(">>>")  # between two lines the terminal would swallow Ctrl-D
    terminal.type("\x04")  # Ctrl-D ends the session
    assert terminal.process.wait(timeout=10) == 0
    from prompt_toolkit.history import FileHistory

    kept = [*FileHistory(tmp_path / "history").load_history_strings()][::-1]
    assert [text.strip() for text in kept[:3]] == [
        "x = arange(4.0, requires_grad=True)",
        "def f(a):\n    return 2*a",
        "f(x)",
    ]


def test_in_a_terminal_without_prompt_toolkit(monkeypatch, capsys):
    from gradcli.commands import line_editor
    from gradcli.commands.repl import Console
    from gradcli.commands.session import Session

    typed = iter(["def f(a):", "    return 2*a", "", "f(4)", "x = [1,", "2]", "x"])
    prompts = []

    def read(prompt):
        prompts.append(prompt)
        if (line := next(typed, None)) is None:
            raise EOFError
        return line

    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    monkeypatch.delitem(sys.modules, "gradcli.commands.prompt", raising=False)
    monkeypatch.setattr("builtins.input", read)
    console = Console("never", True)
    line_editor.read_terminal(Session(console), dict, console.note)
    out, err = capsys.readouterr()
    assert out == "8\n[1, 2]\n\n"
    assert err == f"note: {line_editor.MISSING}\n"
    assert prompts == [">>> ", "... ", "... ", ">>> ", ">>> ", "... ", ">>> ", ">>> "]

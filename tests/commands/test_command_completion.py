"""Completion as a real bash does it, with everything that bash does to words on the way."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import sys

import pytest

from gradcli.commands.shells import rejoined
from tests.commands.terminal import environment, piped
from tests.sweep import sweep

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


class Bash:
    """An interactive bash that completes gradcli."""

    def __init__(self, folder):
        script = folder / "gradcli"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gradcli "$@"\n')
        script.chmod(0o755)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            path = f"{folder}{os.pathsep}{os.environ['PATH']}"
            env = environment(PATH=path, PS1="$ ", TERM="dumb", PYTHONPATH=os.getcwd())
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)
        self.seen = ""
        self.wait_for("$ ")
        self.run('bind "set bell-style none"; bind "set enable-bracketed-paste off"')
        self.run('bind "set show-all-if-ambiguous on"; bind "set completion-query-items 999"')
        self.run('bind "set page-completions off"; eval "$(gradcli completion bash)"')

    def run(self, command):
        os.write(self.fd, f"{command}; echo do''ne\n".encode())
        self.wait_for("done\r\n")
        self.wait_for("$ ")  # bash listens again: what comes earlier is not edited but echoed

    def wait_for(self, mark):
        while mark not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], 20)
            assert ready, self.seen
            self.seen += os.read(self.fd, 65536).decode()
        before, _, self.seen = self.seen.partition(mark)
        return before

    def complete(self, line):
        """What appears for a line and a Tab, up to a word typed behind it."""
        os.write(self.fd, f"{line}\t#END".encode())
        seen = self.wait_for("#END")
        os.write(self.fd, b"\x15")
        self.run(":")
        return seen


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    found = Bash(tmp_path_factory.mktemp("bin"))
    yield found
    os.close(found.fd)
    os.waitpid(found.pid, 0)


ONE = [
    ("gradcli hess", "gradcli hessian"),
    ("gradcli ops softm", "gradcli ops softmax "),
    ('gradcli grad "y = a*x; y + bb" --x 1 --b', "--bb "),
    ('gradcli grad "y = a*x; y + bb" --x=1 --a 0:4 --b', "--bb "),
    ('gradcli grad "y = a*x; y" --x 1 --wrt x,', "--wrt x,a "),
    ('gradcli grad "yy = a*x; yy" --retain y', "--retain yy "),
    ("gradcli eval x --color=al", "--color=always "),
    ("gradcli completion z", "completion zsh "),
]


@sweep(("line", "wanted"), ONE, parts=1)
def test_one_candidate_is_inserted(bash, line, wanted):
    assert wanted in bash.complete(line).replace("\x07", "")


def test_several_are_listed(bash):
    shown = bash.complete('gradcli grad "2*dot(x,w)" --')
    assert {"--x", "--w", "--seed", "--load"} <= set(re.findall(r"--[\w-]+", shown))


def test_files(bash, tmp_path):
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "prog.py").write_text("sum(kappa)\n")
    assert "data.csv " in bash.complete(f'gradcli grad "sum(x)" --x @{tmp_path}/da')
    assert "prog.py " in bash.complete(f"gradcli run {tmp_path}/pr")
    assert "prog.py " in bash.complete(f"gradcli eval -f {tmp_path}/pr")
    assert "--kappa " in bash.complete(f"gradcli run {tmp_path}/prog.py --k")


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "word", "wanted"),
    [
        ("gradcli", "ja", "jacobian\tPrint the Jacobian: all first derivatives of a vector.\n"),
        ("gradcli\ngrad\na*x", "--", "--let\tSet a variable"),
        ("gradcli\ncompletion", "po", "powershell\t\n"),
    ],
)
def test_powershell_asks_in_lines(words: str, word: str, wanted: str) -> None:
    """The script asks so; PowerShell itself is not at hand."""
    instruction = {
        "_GRADCLI_COMPLETE": "powershell_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": word,
    }
    assert piped(**instruction).stdout.startswith(wanted)
    script = piped("completion", "powershell").stdout
    assert script.count("{") == script.count("}") and "_GRADCLI_COMPLETE" in script
    assert piped("completion", "pwsh").stdout == script


@sweep(
    ("words", "wanted"),
    [
        (["--x", "=", "1", "--y"], ["--x=1", "--y"]),
        (["0", ":", "4"], ["0:4"]),
        (["--x", "=@", "a.csv", "--y"], ["--x=@a.csv", "--y"]),
        (["--x", "@", "a.csv", "--y"], ["--x", "@a.csv", "--y"]),
        (["--x", "="], ["--x", "="]),
        (["--x", "@"], ["--x", "@"]),
        ([], []),
    ],
    parts=1,
)
def test_words_are_put_together_again(words, wanted):
    assert rejoined(words) == wanted

"""`gradcli batch`: what each line of a file answers, in order, as it does alone."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path
from xml.etree import ElementTree

import pytest

import gradcli
from gradcli.commands.batch import Lines
from tests.commands.running import outcome
from tests.sweep import sweep

LINES = """\
# squares
grad "x**2" --x 3
gradcli eval "1/x" --x 0,4

"x**3" --x 2
diff "sin(x)*x"
ops tanh --plain
root "x**2 == 2" --x 1
"""


def batch(tmp_path: Path, text: str, *options: str) -> tuple[int, str, str]:
    path = tmp_path / "lines.txt"
    path.write_text(text)
    return outcome("batch", str(path), *options)


@pytest.mark.parametrize("jobs", [[], ["--jobs", "3"]], ids=" ".join)
def test_answers_are_those_of_the_lines_alone(tmp_path: Path, jobs: list[str]) -> None:
    alone = [
        outcome("grad", "x**2", "--x", "3"),
        outcome("eval", "1/x", "--x", "0,4"),
        outcome("grad", "x**3", "--x", "2"),
        outcome("diff", "sin(x)*x"),
        outcome("ops", "tanh", "--plain"),
        outcome("root", "x**2 == 2", "--x", "1"),
    ]
    assert batch(tmp_path, LINES, *jobs) == (0, "".join(out for _, out, _ in alone), "")


@pytest.mark.long
def test_lines_do_not_know_of_each_other(tmp_path: Path) -> None:
    one = 'eval "rand(3)" --manual-seed 1\n'
    code, out, _ = batch(tmp_path, 2 * one)
    first, second = out.splitlines()
    assert code == 0 and first == second
    assert batch(tmp_path, "eval x --x 1\neval x\n")[0] == 2


FAILS = [
    ('grad "x***2" --x 3', 2, "a value is missing"),
    ("eval 1/0", 1, "division by zero"),
    ("repl", 2, "repl cannot be a line of a batch"),
    ("batch lines.txt", 2, "batch cannot be a line of a batch"),
    ("gradcli", 2, "there is no command after gradcli"),
    ('eval "1 +', 2, "no closing quotation"),
    ("gard x --x 1", 2, "gard"),
]


@sweep(("line", "code", "said"), FAILS, parts=7, often=2)
def test_a_line_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, line: str, code: int, said: str
) -> None:
    text = f"eval 1+1\n{line}\neval 2+2\n"
    found = batch(tmp_path, text)
    assert found[:2] == (code, "2\n4\n")
    told, *error = found[2].splitlines()
    assert told == f"gradcli: line 2 failed, exit code {code}: {line}"
    assert said in "\n".join(error)
    assert batch(tmp_path, text, "--stop")[:2] == (code, "2\n")


def test_the_exit_code_is_the_worst(tmp_path: Path) -> None:
    assert batch(tmp_path, "eval 1/0\neval x\neval 1\n")[0] == 2
    assert batch(tmp_path, "# nothing\n") == (0, "", "")


def test_a_ci_server_is_given_a_report(tmp_path: Path) -> None:
    report = tmp_path / "r.xml"
    text = 'check "x**2" --against "3*x" --x 3\neval "1 < 2"\neval "a\x1b"\n'
    code, out, err = batch(tmp_path, text, "--quiet", "--junit", str(report))
    assert code == 2 and out.startswith("wrong gradient") and "True" not in out
    assert err.endswith("gradcli: note: 2 of 3 lines failed\n")
    root = ElementTree.parse(report).getroot()
    assert root.attrib == {"tests": "3", "failures": "1", "errors": "1"}
    first, second, third = root.iter("testcase")
    assert first.attrib["name"] == 'check "x**2" --against "3*x" --x 3'
    failure, error = first.find("failure"), third.find("error")
    assert failure is not None and failure.attrib["message"].startswith(
        "wrong gradient: x: given 9"
    )
    assert second.find("failure") is None and second.findtext("system-out") == "True"
    assert error is not None and error.text and "\x1b" not in error.text
    assert batch(tmp_path, "eval 1\n", "--junit", str(tmp_path))[2].startswith(
        f"gradcli: error: cannot write {tmp_path}: "
    )


def test_json_is_an_object_a_line(tmp_path: Path) -> None:
    code, out, err = batch(tmp_path, 'grad "x*x" --x 3\neval 1/0\neval 1 --plain\n', "--json")
    first, second, third = map(json.loads, out.splitlines())
    assert (code, err) == (1, "")
    assert (first["line"], first["code"], first["answer"]["wrt"]["x"]["grad"]) == (1, 0, 6.0)
    assert second["answer"] is None and "division by zero" in second["error"]["message"]
    assert (third["command"], third["answer"]) == ("eval 1 --plain", 1)


def test_lines_come_from_standard_input_and_a_file_has_to_be_there() -> None:
    assert outcome("batch", "-", stdin="eval 1+1\neval 3\n") == (0, "2\n3\n", "")
    code, out, err = outcome("batch", "no-such-file")
    assert (code, out) == (2, "")
    assert err.startswith("gradcli: error: cannot read no-such-file: ")


@pytest.mark.long
def test_a_line_runs_as_soon_as_it_is_there() -> None:
    """The first answer comes while the pipe is open: nothing waits for the end of the input."""
    for jobs in ([], ["--jobs", "3"]):
        words = [sys.executable, "-m", "gradcli", "batch", "-", *jobs]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            for number in (2, 3):
                process.stdin.write(f"eval {number}\n".encode())
                process.stdin.flush()
                assert process.stdout.readline().decode() == f"{number}\n"
            process.stdin.close()
            assert process.stdout.read() == b""


class Endless:
    """A pipe without an end, as `yes` writes one."""

    read = 0

    def read1(self, size: int) -> bytes:
        self.read += size
        return (b"eval 1\n" * size)[:size]


def test_lines_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Endless()
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=pipe))
    lines = Lines("-", False)
    numbers = [line.number for _ in range(1000) if (line := lines.next()) is not None]
    assert numbers == [*range(1, 1001)] and pipe.read == len(lines.held) + 7000 == 1 << 16
    monkeypatch.setattr(pipe, "read1", lambda size: b"x" * size)
    with pytest.raises(gradcli.LanguageError, match="longer than 1 MiB"):
        while lines.next() is not None:
            pass

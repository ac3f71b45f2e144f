"""`gradcli check @answers.csv:task --against @answers.csv:answer`: the answers of a class, a row each."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path

import pytest

from tests.commands import running

run = partial(running.run, "check")

# -- (task, answer, what is said; nothing of what is right) ------------------------------------------
ROWS = [
    ("x^2 sin x", "2x sin x + x^2 cos x", ""),
    ("x^2 sin x", "x(2 sin x + x cos x)", ""),
    ("x^2 sin x", "2x cos x", "this is u'*v' in the place of u'*v + u*v', the product rule"),
    ("x^2 sin x", "2x sin x - x^2 cos x", "this is u'*v - u*v' in the place of u'*v + u*v'"),
    ("sin(x)/x", "cos(x)", "this is u'/v' in the place of (u'*v - u*v')/v**2, the quotient rule"),
    ("sin(x)/x", "(sin(x) - x cos(x))/x^2", "given / true = -1: the sign"),
    ("sin(x)/x", "x cos(x) - sin(x)", "this is u'*v - u*v' in the place of (u'*v - u*v')/v**2"),
    ("x^3", "3x^3", "this is n*u**n*u' in the place of n*u**(n - 1)*u', the power rule"),
    ("x^3", "x^2", "a factor 3 is missing; the derivative is 3*x**2"),
    ("3x^2 + 5", "6x + 5", "the derivative of the constant 5 is 0"),
    ("3x^2 + 5", "6x + 2", "the derivative is 6*x"),
    ("exp(3x)", "exp(3x)", "the inner derivative of `exp(3*x)` is missing"),
    ("x^2", "y=2x", ""),
    ("sin(3x)", "3cos3x", ""),
    ("5", "0", ""),
    ("5", "1", "the derivative is 0"),
    ("x^4", "x^5/5", "this is an antiderivative"),
    ("|x|", "1", "right for x > 0 only"),
    ("2^x", "x 2^(x-1)", "this is v*u**(v - 1) in the place of u**v*log(u)*v'"),
    ("e^x", "x e^(x-1)", "the rule of an exponential, with u = e, v = x"),
    ("e^(3x)", "3e^3x", "right if 3e^(3x) is meant: brackets are missing in the exponent"),
    (r"\sqrt{x}", "1/2√x", "right as 1/(2√x): brackets are missing below the line"),
    ("ln(3x)", "1/(3x)", "the inner derivative of `log(3*x)` is missing"),
    (
        "sin(3x^2+1)",
        "cos(6x)",
        "this is f'(u') in the place of f'(u)*u', the chain rule, with f = sin",
    ),
    ("log(x)", "1/(x ln 10)", "right if log is log10; here it is the natural logarithm"),
    ("x^3", "3x^2 + C", "right without + C: a derivative has no constant of integration"),
    ("x^3", "3t^2", "right with x in the place of t"),
    ("(x+1)^2", "2(x+1", "right with the `)` that is missing at its end"),
    ("x^2", "2x dx", "right without dx"),
    ("x^2", "keine Ahnung", "this is text, and no formula"),
    ("x^3", "3x^2 +", "it cannot be read: the text ends where a value is missing"),
    ("x^3", "", "there is no answer"),
    ("a x^2", "2 a x", "add --wrt"),
]


@pytest.fixture
def sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    with open("a.csv", "w", newline="") as file:
        csv.writer(file).writerows([("task", "answer"), *(row[:2] for row in ROWS)])
    return "@a.csv"


@pytest.mark.long
def test_each_row_is_right_or_wrong_and_why(sheet: str) -> None:
    result = run(f"{sheet}:task", "--against", f"{sheet}:answer", "--math", "--json")
    assert result.exit_code == 1 and "note: 5 of 33 right, 7 unreadable" in result.stderr
    for (task, answer, said), one in zip(ROWS, json.loads(result.stdout), strict=True):
        assert one["row"] == {"task": task, "answer": answer}
        assert one["ok"] == (not said)
        why = "; the derivative is ".join(filter(None, (one["mistake"], one["derivative"])))
        assert said.removeprefix("the derivative is ") in why


@pytest.mark.long
def test_text_and_table_say_the_same(sheet: str) -> None:
    asked = (f"{sheet}:task", "--against", f"{sheet}:answer", "--math")
    text, table = run(*asked).stdout, run(*asked, "--csv").stdout
    rows = list(csv.DictReader(table.splitlines()))
    verdicts = [line.split()[0] for line in text.splitlines() if not line.startswith(" ")]
    assert [row["verdict"] for row in rows] == verdicts
    assert " ".join(rows[2]["why"].split()) in " ".join(text.split())


def test_what_cannot_be_read_is_not_called_wrong(sheet: str) -> None:
    Path("b.csv").write_text("d\n2*x\n3*x\n3*(\n")
    result = run("x**2", "--against", "@b.csv:d", "--csv")
    assert [row["verdict"] for row in csv.DictReader(result.stdout.splitlines())] == [
        *("right", "wrong", "unreadable")
    ]
    assert json.loads(run("x**2", "--against", "@b.csv:d", "--json").stdout)[2]["ok"] is False


def test_decimal_commas(sheet: str) -> None:
    Path("b.csv").write_text("t;d\n0,5x^2;1,0x\n")
    asked = ("@b.csv:t", "--against", "@b.csv:d", "--math")
    assert run(*asked, "--decimal", ",").exit_code == 0
    assert "--decimal , reads it so" in run(*asked).stdout
    said = running.run("grad", "0,5*x**2", "--x", "1,5", "--decimal", ",").stdout
    assert said == "x.grad = 1.5\n"
    assert "for 3.5 add --decimal ," in running.run("eval", "3,5*2").stderr


def test_one_task_for_all(sheet: str) -> None:
    Path("b.csv").write_text("who;d\nA;3*x**2\nB;3*x\n")
    result = run("x**3", "--against", "@b.csv:d")
    assert result.stdout.startswith("right  A  3*x**2\nwrong  B  3*x\n    ")
    assert result.exit_code == 1 and run("x**3", "--against", "3*x**2").exit_code == 0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["@a.csv:task"], "hint: as in gradcli check @a.csv:task --against @a.csv:COLUMN"),
        (["@a.csv:tsk", "--against", "@a.csv:answer"], "did you mean `task`"),
        (["@b.csv:task", "--against", "@b.csv:answer"], "cannot read b.csv"),
        (["a.csv", "--against", "answer"], "gradcli check @a.csv:COLUMN --against @a.csv:COLUMN"),
    ],
)
def test_what_is_no_sheet(sheet: str, argv: list[str], words: str) -> None:
    result = run(*argv)
    assert result.exit_code == 2 and words in result.stderr

"""What a first-year student types: each line is answered, or refused with a remedy that runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.commands.running import run
from tests.sweep import sweep

pytestmark = pytest.mark.long

TRUTHS = (
    "x**2 == 3*x",
    "x > 1",
    "(x > 0) & (x < 1)",
    "not x",
    "isnan(x)",
    "1 < x < 2",
    "y = x != 1; y",
)
COMMANDS = (
    *("diff", "check", "check --against 2*x", "grad --x 1.5", "jvp --x 1.5 --vector 1"),
    *("jacobian --x 1.5", "hessian --x 1.5", "taylor --x 1.5", "minimize --x 1.5"),
)


def said(line: str) -> str:
    """The line's exit code, what it printed, and what it said."""
    result = run(*shlex.split(line))
    return f"{result.exit_code}\n{result.stdout}{result.stderr}"


def remedies(line: str) -> list[str]:
    """The command lines in a hint."""
    hint = run(*shlex.split(line)).stderr.partition("\nhint: ")[2]
    return [m[1] for m in re.finditer(r"gradcli ((?:'[^']*'|[^;'\n])+)", hint)]


@sweep(("command", "text"), [(c, t) for c in COMMANDS for t in TRUTHS])
def test_the_slope_of_a_truth_value_is_no_answer(command: str, text: str) -> None:
    verb, *options = command.split()
    result = run(verb, text, *options)
    assert result.exit_code in (1, 2) and not result.stdout, result.output
    assert "hint: " in result.stderr


@sweep(
    ("line", "words"),
    [
        (
            "check 'x**2 == 3*x'",
            "this is an equation, which is true or false: there is no gradient",
        ),
        (
            "check 'x**2+y**2 == 1' --against=-x/y",
            "check 'x**2+y**2 == 1' --of y --wrt x --against -x/y",
        ),
        ("check x**2 --of y --against 2*x", "--of is for an equation"),
        ("check x**2 --against '2*x == 2*x'", "--against: the formula is an equation"),
        ("check 'argmax(x)' --x 1,2", "the value is a whole number: there is no gradient"),
        (
            "minimize 'x**2 == 3*x' --x 1",
            "the difference of its sides has a derivative: x**2 - (3*x)",
        ),
    ],
)
def test_an_equation_is_refused_with_a_remedy(line: str, words: str) -> None:
    answer = said(line)
    assert answer[0] in "12" and words in answer


def test_the_remedies_run() -> None:
    for line in ("check 'x**2 == 3*x'", "check 'x**2+y**2 == 1' --against=-x/y"):
        for remedy in remedies(line):
            assert said(re.sub(r" solves.*| compares.*", "", remedy))[0] in "01", remedy


@sweep(
    ("line", "code", "words"),
    [
        ("check 'x**2 + y**2 == 1' --of y --wrt x --against=-x/y", 0, "ok: x (max error"),
        ("check 'x^2+y^2=1' --math --of y --against x/y", 1, "given / true = -1: the sign"),
        ("check 'x^2+y^2=1' --math --of y --against '-1/y^3' --order 2", 0, "ok: x"),
        # Right on a part of the curve: an equation gives several functions.
        ("check 'x**2 + y**2 == 1' --of y --against=-x/sqrt(1-x**2)", 1, "gives several functions"),
        ("check 'x*exp(y) == y - 1' --of y --against 'exp(y)/(1 - x*exp(y))'", 0, "6 points"),
        ("check 'x**2 + y**2 == 25' --of y --against=-x/y --x 3 --y 4", 0, "ok: x"),
        ("check 'x**2 + y**2 == 25' --of y --against=-x/y --x 3 --y 5", 2, "does not hold"),
        ("check 'x**2 + y**2 == -1' --of y --against=-x/y", 2, "no point was found"),
        ("check 'x + y + z == 1' --of y --against=-1", 2, "add --wrt"),
        ("check 'x + y + z == 1' --of y --wrt z --against=-1", 0, "ok: z"),
    ],
)
def test_the_derivative_of_an_implicit_function_is_checked(
    line: str, code: int, words: str
) -> None:
    answer = said(line)
    assert answer[0] == str(code) and words in answer, answer


FILES = {
    "sheet": "# sheet 1\nx**2\nsin(x)\n\nx*y\n",
    "math": "x^2 + 1\nx^3 ln x\nf(t) = t^2\n",
    "mixed": "f(x) = x^2\nx^2 + y^2 = 7\n",
    "program": "y = x**2\nz = sin(y)\nz*2\n",
    "steps": "h = 0.5\nx**2*h\n",
    "several": "y = (x +\n 1)\ny**2\n",
    "curves": "x**2 + y**2 == 1\nx*y == 3\n",
    "wrong": "x**2\nx^2\n",
    "printed": "print(x)\nx**2\n",
    "unknown": "f(x)*x\ng(x)\n",
    "refused": "x**2\nargmax(x) > 0\nx**3\n",
}


@sweep(
    ("line", "code", "stdout"),
    [
        ("diff -f sheet", 0, "# x**2|2*x|# sin(x)|cos(x)|# x*y|x.grad = y|y.grad = x"),
        ("diff -f sheet --bare", 0, "2*x|cos(x)|y|x"),
        ("diff -f sheet --wrt x --format latex", 0, r"\frac{\mathrm{d}f}{\mathrm{d}x} = 2 x|"),
        ("diff -f mixed --math --of y --wrt x", 0, "# f(x) = x^2|2*x|# x^2 + y^2 = 7|-x/y"),
        ("diff -f math --math", 0, "# x^2 + 1|2*x|# x^3 ln x|x**2*(3*log(x) + 1)|# f(t) = t^2|2*t"),
        (
            "grad -f sheet --x 2 --y 3",
            0,
            "# x**2|x.grad = 4|# sin(x)|x.grad = -0.4161468365471424|",
        ),
        ("eval -f sheet --x 2 --y 3", 0, "# x**2|4|# sin(x)|0.9092974268256817|# x*y|6"),
        ("simplify -f sheet", 0, "# x**2|x**2|"),
        ("diff -f curves --of y --wrt x", 0, "# x**2 + y**2 == 1|-x/y|# x*y == 3|-y/x"),
        ("diff -f refused", 2, "# x**2|2*x|# argmax(x) > 0|# x**3|3*x**2"),
        ("diff -f sheet --wrt x --at 2 --y 3", 0, "# x**2|2*x = 4 at x = 2|# sin(x)|"),
        ("diff -f unknown", 0, "# f(x)*x|f(x) + x*func.grad(f)(x)|# g(x)|func.grad(g)(x)"),
        # Programs: their lines read each other, or are steps.
        ("eval -f printed --x 2", 0, "tensor(2., requires_grad=True)|4"),
        ("diff -f program", 0, "4*x*cos(x**2)"),
        ("diff -f steps", 0, "x"),
        ("diff -f several", 0, "2*(x + 1)"),
        ("diff -f wrong", 2, ""),
    ],
)
def test_a_file_of_formulas_is_answered_line_by_line(
    line: str, code: int, stdout: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("formulas")
    words = shlex.split(line)
    (folder / words[2]).write_text(FILES[words[2]], encoding="utf-8")
    words[2] = str(folder / words[2])
    result = run(*words)
    assert result.exit_code == code, result.output
    assert "|".join(result.stdout.splitlines()).startswith(stdout)
    if code and stdout:
        assert "line 2: argmax(x) > 0" in result.stderr


def test_a_file_of_formulas_is_a_list_in_json(tmp_path: Path) -> None:
    (tmp_path / "refused").write_text(FILES["refused"], encoding="utf-8")
    result = run("diff", "-f", str(tmp_path / "refused"), "--json")
    first, second, third = json.loads(result.stdout)
    assert (first["line"], first["derivatives"], third["formula"]) == (1, {"x": "2*x"}, "x**3")
    assert "true or false" in second["error"]["message"] and result.exit_code == 2


@sweep(
    ("line", "words"),
    [
        (
            "diff 'x**2; x**3'",
            "note: `x**2` has no effect, and its value is not used; a file of formulas",
        ),
        ("grad 'x**2; x**3' --x 2", "note: `x**2` has no effect"),
        (
            "eval 'x; sin(x); x**3' --x 2",
            "2 statements have no effect, and their values are not used",
        ),
        ("minimize 'x; (x-1)**2' --x 0", "note: `x` has no effect"),
        (
            "diff 'a = x**2; b = sin(x)'",
            "note: `a = x**2` has no effect, and its value is not used",
        ),
        ("plot 'x; x**2' --x 0:1", "several curves are one expression: x, x**2"),
        # What is read, or does something.
        ("root 'x + y == 3; x*y == 2' --x 0 --y 5", ""),
        ("diff 'f(x); x'", "`f(x)` has no effect"),
        ("diff 'f(x)=x^2; g(x)=sin(x)' --math", "`f = lambda x: x**2` has no effect"),
        ("eval 'print(x); x**2' --x 2", ""),
        ("eval 'y = x.clone(); y.zero_(); y' --x 2 --no-grad x", ""),
        ("eval 'add(x, 1, out=x); x' --x 2 --no-grad x", ""),
        ("grad 'manual_seed(1); x*rand(())' --x 2", ""),
        ("diff 'x*y' --wrt x --along 1", ""),
        ("check 'h = 2*x; h**2' --against 4*h --wrt x", ""),
    ],
)
def test_no_statement_is_dropped_silently(line: str, words: str) -> None:
    result = run(*shlex.split(line))
    assert words in result.stderr if words else not result.stderr
    assert result.exit_code == 0, result.output


def test_a_batch_of_formulas_says_the_way(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("x**2\n", encoding="utf-8")
    result = run("batch", str(tmp_path / "lines"))
    assert f"gradcli diff -f {tmp_path / 'lines'}" in result.stderr and result.exit_code == 2


@sweep(
    ("line", "words"),
    [
        ("diff 'f(x,y) = x^2 y + sin(xy)' --math", "x.grad = y*(2*x + cos(x*y))"),
        ("diff 'xyz + x + y + z' --math --wrt x", "y*z + 1"),
        (
            "diff 'x y + xy' --math",
            "xy is the product x y; a name of its own needs a value, --xy VALUE",
        ),
        ("diff 'sin(xy)' --math --wrt x,y", "x.grad = y*cos(x*y)"),
        ("diff 'x^3+y^3=6xy' --math --of y", "(2*y - x**2)/(y**2 - 2*x)"),
        ("diff 'a x^2 + bx' --math --wrt x", "`bx` is one name, or the product b x?"),
        ("diff 'x xy' --math --xy 3", "read as x*xy"),
        ("diff '|Ax-b|^2' --math --shape A=3,2 --shape b=3 --wrt x", "2*A.T@(A@x - b)"),
        ("check 'x^2 y' --math --wrt x --against 2xy", "ok: x"),
        ("check '‖Ax-b‖^2' --math --shape A=3,2 --wrt x --against \"2A'(Ax-b)\"", "ok: x"),
    ],
)
def test_letters_that_are_variables_make_a_product(line: str, words: str) -> None:
    assert words in said(line)


@sweep(
    ("line", "code", "words"),
    [
        ("minimize 'x^3-3x+1' --x=-2 --maximize --math", 2, 'gradcli minimize "-(x**3 - 3*x + 1)"'),
        ("minimize x**3 --maximize --x=-2", 2, "--maximize is neither an option nor a variable"),
        ("grad x^2 --x 3 --foo --math", 2, "--foo is neither an option nor a variable"),
        ("grad x**2 --x --json", 2, "--x needs a value, but --json follows it"),
        ("grad x**2 --x -3", 0, "x.grad = -6"),
        ("eval x*y --x -y --y 3", 2, "--x"),
        # One meaning of --at: the point, of one variable a number alone.
        ("diff x**2 --at 2", 0, "2*x = 4 at x = 2"),
        ("diff x**2 --at=-2", 0, "2*x = -4 at x = -2"),
        ("diff x**2 --at x=2", 0, "2*x = 4 at x = 2"),
        ("diff x**2 --x 2 --at", 0, "2*x = 4 at x = 2"),
        ("diff x**2 --at pi/4", 0, "at x = pi/4"),
        ("diff a*x**2 --wrt x --at 2 --a 3", 0, "2*a*x = 12 at a = 3, x = 2"),
        ("diff 'sum(x**2)' --at 1,2", 0, "2*x = [2, 4]"),
        ("diff x*y --at 2", 2, "hint: write --at x=2,y=…"),
        ("grad x**2 --at 2", 0, "x.grad = 4"),
        ("taylor 'sin(x)' --at 0 --order 3", 0, "x - x**3/6"),
        ("eval at*2 --at 3", 0, "6"),
        ("diff x**2 --x 1 --at 3", 2, "every variable has a value"),
        ("diff 'x**2+y**2==25' --of y --at x=3,y=4", 0, "-x/y = -0.75 at x = 3, y = 4"),
        ("diff 'x**2+y**2==25' --of y --at x=3,y=5", 0, "the equation does not hold at this point"),
        # A stray word behind a flag.
        (
            "diff x^2 --math 3",
            2,
            "unexpected argument '3'\nhint: --math takes no value: leave 3 out",
        ),
        ("diff math*x --math 3", 2, "--let math=3"),
    ],
)
def test_options(line: str, code: int, words: str) -> None:
    answer = said(line)
    assert answer[0] == str(code) and words in answer, answer


@sweep(
    ("line", "code", "words"),
    [
        ('check x^3 --math --against "f\'(x) = 5x^2"', 1, "given / true = 5/3"),
        ("check x^3 --math --against 'dy/dx = 3x^2'", 0, "ok: x"),
        ('check x^3 --math --against "y\' = 3x^2"', 0, "ok: x"),
        ("check x^3 --math --against 'd²y/dx² = 6x'", 0, "ok: x"),
        (r"check x^3 --math --against '\frac{d^2 y}{dx^2} = 6x'", 0, "ok: x"),
        ("check 'f(x) = x^3' --math --against \"f''(x) = 6x\"", 0, "ok: x"),
        ("check 'x^2 y' --math --against '∂f/∂x = 2xy'", 0, "ok: x"),
        ("check 'f(x,y) = x^2 y' --math --against 'f_x = 2xy'", 0, "ok: x"),
        ("check x**2*y --against 'y.grad = x**2'", 0, "ok: y"),
        ("check 'x^2+y^2=1' --math --against 'dy/dx = -x/y'", 0, "ok: x"),
        ("check 'x^2 y' --math --wrt y --against '∂f/∂x = 2xy'", 2, "is by x, and --wrt says y"),
        (
            "check x^3 --math --order 3 --against \"f''(x) = 6x\"",
            2,
            "is of order 2, and --order says 3",
        ),
        (
            "check 'y = x**3' --against \"z' = 3*x**2\"",
            2,
            "--against is of z, and the program gives y",
        ),
    ],
)
def test_the_left_side_of_a_formula_says_what_it_is(line: str, code: int, words: str) -> None:
    answer = said(line)
    assert answer[0] == str(code) and words in answer, answer


VALUED = (
    *("diff", "check", "simplify", "grad --x 2", "eval --x 2", "taylor --x 0", "hessian --x 2"),
    *("jacobian --x 2", "jvp --x 2 --vector 1", "minimize --x 2", "graph --x 2"),
)


@sweep(("command",), [(c,) for c in VALUED])
def test_what_is_assigned_last_is_the_value(command: str) -> None:
    verb, *options = command.split()
    texts = ("y = x**2", "y = x**2; y", "a = x**2; y = a")
    found, wanted, several = (run(verb, text, *options) for text in texts)
    assert found.exit_code == 0, found.output
    assert found.stdout == wanted.stdout
    note = "note: the value is that of y, which is assigned last"
    assert note in several.stderr and note not in found.stderr  # of one statement it is plain


@sweep(
    ("line", "words"),
    [
        ("diff 'dy/dx x^3 ln x' --math", "x**2*(3*log(x) + 1)"),
        ("diff '∂²/∂x∂y (x^2 y^3)' --math", "6*x*y**2"),
        ("diff 'd^2/dx^2 x^3' --math", "6*x"),
        ("diff dx/dt --math", "the derivative of x needs the formula of x"),
        ("eval dx/dt --math --dx 1 --dt 2", "dx/dt is the quotient of the variables dx and dt"),
        ("diff 'd^2/4' --math", "d/2"),
        ('eval "f(x)=x^3; f\'(2)" --math', "12"),
        ('eval "f(x)=x^3; f\'(-2)" --math', "12"),
        ('eval "f(x)=x^3; f\'(2*3)" --math', "108"),
        ("eval \"f(x)=x^3; f''(x+1)\" --math --x 2", "18"),
        ('eval "f(x)=x^3; f\'(tensor(2.0))" --math', "12"),
        ("eval \"x'(A+B)x\" --math --x 1,2 --A '1,2;3,4' --B '1,0;0,1'", "32"),
    ],
)
def test_derivatives_as_they_are_written(line: str, words: str) -> None:
    assert words in said(line)


@sweep(
    ("line", "words"),
    [
        ("diff e^2x --math", "e^2x is read as e^2*x; write e^(2x) for the other"),
        ("diff x^1/3 --math", "x^1/3 is read as (x^1)/3; write x^(1/3) for the root"),
        ("diff 2x", "here it is written 2*x; --math reads it as it is"),
        ("diff x**2 --format latex", r"\frac{\mathrm{d}f}{\mathrm{d}x} = 2 x"),
        ("diff x**2 --order 2 --format latex", r"\frac{\mathrm{d}^{2}f}{\mathrm{d}x^{2}} = 2"),
        (r"diff 'f(x,y) = x^2 y; \frac{\partial f}{\partial x}' --math", "2*x*y"),
        (r"diff 'f(x,y) = x^2 y; \nabla f' --math", "stack([2*x*y, x**2])"),
        ("diff 'x^x' --math --format latex", r"\ln\left(x\right)"),
        ("diff 'log x + x^x' --math --format latex", r"\log\left(x\right)"),
        ("diff 'ln x' --math --format latex --show-steps", "derivative of ln"),
        ("diff 'log_2 x' --math --format latex", r"\frac{1}{\ln\left(2\right) x}"),
        ("simplify 'log_2 x' --math --format latex", r"\log_{2}\left(x\right)"),
        ("diff 'ln(1+x)' --math --order n --format latex", r"\left(n - 1\right)!"),
        (
            "diff '1/x' --math --order n --format latex",
            r"\mathrm{d}^{n}f}{\mathrm{d}x^{n}} = \left(-1\right)^{n} x^{-n - 1} n!",
        ),
        ("diff 'x^3 ln x' --math --format latex", r"3 \ln\left(x\right) + 1"),
        ("diff 'x^3 log x' --math --format latex", r"3 \log\left(x\right) + 1"),
        ("simplify 'ln(x)^2' --math --format latex", r"\ln"),
        ("diff x*y --wrt x --format latex", r"\frac{\partial f}{\partial x} = y"),
        (
            "diff 'x**2+y**2==1' --of y --wrt x --format latex",
            r"\frac{\mathrm{d}y}{\mathrm{d}x} = ",
        ),
        ("plot 'x**3 - 3*x + 1' --at 2 --x 0:1", "tangent at 2: slope 9, y = 9*x - 15"),
        ("plot 'x**2' --at 0 --x=-1:1", "tangent at 0: slope 0, y = 0"),
        ("plot 'x**3 - 3*x + 1' --at 2 --x 0:1 --json", '"d/dx (x**3 - 3*x + 1)"'),
        ("minimize x**3-3*x --x=-2", 'gradcli root "d/dx (x**3-3*x) = 0" --math --x -10:10 --all'),
        ("root 'd/dx (x**3-3*x) = 0' --math --x=-10:10 --all", "x = -1\nx = 1"),
        # Of a number, not of elements.
        ("root '|x| x = 2' --x=-3:3 --all --math", "note: read as abs(x)*x == 2\n"),
        ("root 'x**2 + 1' --x=-1:1 --all", "no root was found in this interval"),
    ],
)
def test_what_a_reader_is_told(line: str, words: str) -> None:
    assert words in said(line)

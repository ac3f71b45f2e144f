"""What `diff` prints is proved first: a wrong text is found, in every format that can be run."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra.generic_points import Generic, many_points, sample
from gradcli.formulas.ask import proof
from gradcli.formulas.ask.proof import Claim, Difference, points, prove, proved
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.derive.symbolic_shapes import at_other_shapes
from gradcli.formulas.print.printed_text import Printed, printed
from tests.commands import running
from tests.sweep import sweep

run = partial(running.run, "diff")


def claim(
    source: str,
    order: int = 1,
    form: str = "text",
    wrt: list[str] | None = None,
    **shapes: tuple[int, ...],
) -> Any:
    """(the claim, a point) of a program of variables of these shapes."""
    arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
    found = differentiate(language.parse(source), arrays, wrt, order=order)
    return Claim(found, printed(found, form), {}), arrays


@sweep("form", ["text", "latex", "python", "numpy", "torch", "jax"], parts=1)
@pytest.mark.parametrize("order", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_right_ones_are_proved(form: str, order: int) -> None:
    source = "sum(tanh(A@x)*y) + sum(x**3)*exp(-s)"
    made, arrays = claim(source, order, form, A=(3, 2), x=(2,), y=(3,), s=())
    assert prove(made, arrays, given=False) is None
    assert prove(made, arrays, given=True) is None


@sweep(
    ("source", "wrong"),
    [
        ("sum(y*(A@x))", "A.T*y"),
        ("sum(y*(A@x))", "A@y"),
        ("sum(y*(A@x))", "1.000001*A.T@y"),
        ("sum(x**2)", "2*x + where(x < 0, 1e-5, 0)"),
        ("sum(x**2)", "2*sum(x)"),
        ("sum(log(x))", "1/x + 0*log(x - 1)"),
    ],
    parts=1,
)
def test_wrong_ones_are_found(source: str, wrong: str) -> None:
    made, arrays = claim(source, A=(2, 2), x=(2,), y=(2,))
    made.wrt = ["x"]
    made.parsed = {"x": language.parse(wrong)}
    with pytest.raises((Difference, language.LanguageError)):
        prove(made, arrays, given=False)


@sweep("seed", range(8), parts=1)
def test_a_point_of_both_signs_has_negative_numbers_in_every_variable(seed: int) -> None:
    made = list(points({"x": np.ones(2), "s": np.ones(()), "n": np.arange(3)}, seed))
    assert (made[1]["x"] < 0).any() and made[1]["s"] < 0
    assert all((point["n"] == np.arange(3)).all() for point in made)


def test_generic_numbers() -> None:
    """SplitMix64's first numbers, and the same stream however it is cut."""
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert Generic(0).uniform(0, 1, (3,)).tolist() == [(n >> 11) * 2.0**-53 for n in first]
    cut, whole = Generic(7), Generic(7).uniform(-2, 3, (2, 3)).ravel()
    parts = [cut.uniform(-2, 3, s) for s in ((), (2, 1), (3,))]
    assert np.concatenate([p.ravel() for p in parts]).tolist() == whole.tolist()
    many = Generic(1).uniform(-2, 3, (100_000,))
    assert -2 <= many.min() < -1.99 and 2.99 < many.max() < 3 and abs(many.mean() - 0.5) < 0.01


def test_what_fails_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "printed", lambda *_: Printed("text", {"x": "3*x"}))
    result = run("x**2", "--x", "2")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is not what grad gives" in result.stderr and "report" in result.stderr
    error = json.loads(run("x**2", "--x", "2", "--json").stderr)["error"]
    assert "is not what grad gives" in error["message"]
    monkeypatch.undo()
    assert run("x**2", "--x", "2", "--no-verify").stdout == "2*x\n"


def test_a_higher_order_that_is_nowhere_finite_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    made, arrays = claim("x**4", 2, x=())
    made.parsed = {"x": language.parse("x/0*0")}
    stage, nan = proof._stage, {"x": np.array(np.nan)}
    monkeypatch.setattr(proof, "_stage", lambda by, arrays: (stage(by, arrays)[0], nan))
    with pytest.raises(Difference, match="nan"):
        prove(made, arrays, given=False)


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["norm(x)", "--x", "0,0"], "where(norm(x) == 0, 0, x/norm(x)) = [0, 0]"),
        (["norm(x)", "--x", "3,4"], "x/norm(x) = [0.6, 0.8]"),
        (["sinc(x)", "--x", "0"], " = 0 at x = 0"),
        (["prod(x)", "--x", "0,2,3"], " = [6, 0, 0]"),
        (["cumprod(x, 0).sum()", "--x", "0,2,3"], " = [9, 0, 0]"),
    ],
)
def test_singular_points_keep_what_the_rules_do_there(argv: list[str], shown: str) -> None:
    result = run(*argv, "--at")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().endswith(shown) and "at this point" not in result.stderr


@pytest.mark.parametrize(
    ("argv", "shown", "note"),
    [
        (["F.softplus(x)", "--x", "3"], "sigmoid(x)*sigmoid(-x)", ""),
        (["F.softplus(x)", "--x", "25"], "sigmoid(x)*sigmoid(-x)", ""),
        (
            ["F.softplus(x, 2, 3)", "--x", "1", "--order", "1"],
            "where(2*x > 3, 1, sigmoid(2*x))",
            "",
        ),
        (["F.elu(x)", "--x", "0"], "where(x > 0, 0, exp(x))", "1. instead of 0."),
        (
            ["sinc(x)", "--x", "0"],
            "where(abs(x) < 1/100, pi**4*x**2/10 - pi**6*x**4/168 - pi**2/3, "
            "(2 - pi**2*x**2)*sin(pi*x)/(pi*x**3) - 2*cos(pi*x)/x**2)",
            "",
        ),
        (
            ["sinc(2*x)*x", "--x", "0"],
            "where(abs(2*x) < 1/100, 8*pi**4*x**3/3 - 8*pi**6*x**5/15 - 4*pi**2*x, "
            "-2*pi*sin(2*pi*x))",
            "",
        ),
    ],
)
def test_higher_orders_are_those_of_grad(argv: list[str], shown: str, note: str) -> None:
    """At the user's point: they are written as the tape has them there, or a note says the number."""
    result = run("--order", "2", *argv)
    assert (result.exit_code, result.stdout) == (0, shown + "\n")
    assert note in result.stderr if note else result.stderr == ""


@pytest.mark.parametrize(
    ("argv", "shown", "note"),
    [
        (["x/x", "--x", "0"], "0", "grad gives: 0 instead of nan"),
        (["exp(log(x))", "--x", "0"], "1", "grad gives: 1 instead of nan"),
        (
            ["x**0.5*x**0.5", "--x", "0,1"],
            "ones_like(x)",
            "grad gives: [1., 1.] instead of [nan,  1.]",
        ),
        (["norm(x)/norm(x)", "--x", "0,0"], "zeros_like(x)", "[0., 0.] instead of [nan, nan]"),
        (["exp(x)/exp(x)", "--x", "1000"], "0", "grad gives: 0 instead of nan"),
        (["xlogy(x, x)", "--x", "0"], "log(x) + 1", "grad gives: -inf instead of nan"),
        (["x**3/x", "--x", "0", "--order", "2"], "2", ""),
        (["x/x", "--x", "0", "--jacobian"], "0", ""),
        (["x/x", "--x", "2"], "0", ""),
        (["sqrt(x)", "--x", "0"], "1/(2*sqrt(x))", ""),
        (["sin(x)/x", "--x", "0"], "(cos(x) - sin(x)/x)/x", "not a number: jacobian gives 0."),
        (["log(x)", "--x", "-1"], "1/x", ""),
    ],
)
def test_points_where_the_tape_is_not_finite_are_said(
    argv: list[str], shown: str, note: str
) -> None:
    """An expression that is simpler than the program may have a value where the tape has none."""
    result = run(*argv)
    assert (result.exit_code, result.stdout) == (0, shown + "\n")
    assert note in result.stderr if note else result.stderr == ""


def test_what_the_last_digits_decide_is_said() -> None:
    """Column sums that are equal but for their last digits: text and tape take one each."""
    H = "0.9999,0.9999,0.9999;0.9999,0.9999,-0.9999;0.9999,-0.9999,0.9999"
    result = run("linalg.cond(x*s, 1)", "--x", H, "--s", "1.03", "--wrt", "x")
    assert result.exit_code == 0 and result.stdout.startswith("s*")
    assert "at this point the expression does not give what grad gives" in result.stderr


def test_what_is_left_of_larger_numbers_is_no_jump() -> None:
    """The third derivative of this sum is zero, and both sides leave a few of the last digits."""
    A = "1.31,0.19,-0.56,-0.25;0.45,1.28,0.31,0.18;1.18,1.25,1.37,-0.51;-0.64,0.34,0.37,-0.65"
    result = run("h = linalg.det(X)\nh if h else h*1", "--X", A, "--order", "3")
    assert result.exit_code == 0, result.output


def test_the_sign_of_nan_is_numpys_own_in_its_code() -> None:
    told = run("sign(log(x))*x", "--x", "-1", "--format", "numpy")
    assert told.exit_code == 0 and "np.sign(np.log(x))" in told.stdout
    assert "nan instead of 0" in told.stderr
    assert run("sign(log(x))*x", "--x", "2", "--format", "numpy").stderr == ""


def test_pythons_arithmetic_may_raise_at_the_given_point() -> None:
    assert run("1/x", "--x", "0", "--format", "python").exit_code == 0


def test_a_point_beyond_the_expressions_numbers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "2*x + 0*exp(x/100)"
    monkeypatch.setattr(proof, "printed", lambda *_: Printed("text", {"x": text}))
    result = run("x**2", "--x", "1e6")
    assert (result.exit_code, result.stdout) == (0, text + "\n")
    assert "does not give what grad gives: nan instead of 2000000." in result.stderr
    assert run("x**2", "--x", "3").stderr == ""


def test_nothing_is_finite_nothing_is_said() -> None:
    assert run("log(-x**2)").stdout == "2/x\n"


@pytest.mark.parametrize("form", ["python", "numpy"])
def test_nan_is_compared_with_nan(form: str) -> None:
    """The logarithm is NaN everywhere: its sign is 0 here, NaN in NumPy, an error in Python."""
    result = run("sign(log(-x**2 - 1))", "--format", form)
    assert result.exit_code == 1 and "nan is not 0" in result.stderr
    assert run("log(-x**2 - 1)*x", "--format", form).exit_code == 0
    for text in ("sign(sqrt(x - 50))*x", "relu(log(x - 1000))"):  # finite farther off
        assert run(text, "--format", form).exit_code == 0


def test_small_functions_are_proved_too() -> None:
    made, arrays = claim("sum(1e-13*x**2)", x=(3,))
    assert prove(made, arrays, given=True) is None
    made.parsed = {"x": language.parse("-2e-13*x")}
    with pytest.raises(Difference):
        prove(made, arrays, given=True)


def test_values_are_those_of_large_arrays() -> None:
    made, arrays = claim("sum(x**2)", x=(200_001,))
    assert prove(made, arrays, given=True) is None
    made.parsed = {"x": language.parse("2.001*x")}
    with pytest.raises(Difference):
        prove(made, {"x": np.ones(200_001)}, given=True)


def test_a_program_that_refuses_other_points_is_printed_for_its_own() -> None:
    result = run("assert a[0] == 4; dot(x, a)", "--x", "1,2", "--a", "4,5", "--wrt", "x")
    assert (result.exit_code, result.stdout) == (0, "a\n"), result.output


def test_a_number_beyond_the_largest_is_refused() -> None:
    """At x = 1e-200 the gradient is 2e+200: no factor of it is infinite."""
    for source in ("(x*1e200)**2", "(x*1e200)**-2"):
        assert "a constant that no number holds" in run(source, "--x", "1").stderr
    assert run("(x*1e30)**2", "--x", "1").stdout == "2e+60*x\n"


def test_large_matrices_are_worked_out_in_few_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def spied(arrays: Any, *args: Any, **how: Any) -> Any:
        sizes.append(arrays["x"].size)
        return at_other_shapes(arrays, *args, **how)

    monkeypatch.setattr(proof, "at_other_shapes", spied)
    found = gradcli.diff("sum(x**3)/x.numel()", x=np.linspace(0.1, 1, 400), order=2)
    assert found == "6*diag(x)/x.shape[0]"
    assert sizes and max(sizes) < 100


@pytest.mark.parametrize(
    ("source", "order", "text"),
    [
        (
            "where(x != 0, sin(x)/x, 1)",
            2,
            "where(x != 0, ((2 - x**2)*sin(x) - 2*x*cos(x))/x**3, -1/3)",
        ),
        ("where(x == 0, 1, (exp(x) - 1)/x)", 1, "where(x != 0, (exp(x) - expm1(x)/x)/x, 1/2)"),
        ("where(x == 3, 9, x**2)", 1, "where(x != 3, 2*x, 6)"),
        ("where(x == 3, 8, x**2)", 1, "where(x == 3, 0, 2*x)"),  # it jumps there
        ("where(x != 0, abs(x), 0)", 1, "where(x != 0, sign(x), 0)"),  # it has a kink there
        ("where(x != 0, sin(a*x)/x, a)", 1, "where(x != 0, (a*cos(a*x) - sin(a*x)/x)/x, 0)"),
    ],
)
def test_a_removable_point_has_the_limit(source: str, order: int, text: str) -> None:
    arrays = {n: np.float64(0.7) for n in "xa" if n in source.replace("where", "")}
    _, made, _ = proved(language.parse(source), arrays, ["x"], given=False, order=order)
    assert made.by["x"] == text


def test_a_search_for_points_is_bounded_by_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program that is real nowhere near its numbers, as it has too many of them."""
    tried = []
    holds = Claim.holds

    def counted(self: Claim, *args: Any, **how: Any) -> bool:
        tried.append(args)
        return holds(self, *args, **how)

    monkeypatch.setattr(Claim, "holds", counted)
    source = "*".join(f"sqrt(x{k} - {10 * k + 200})" for k in range(60))
    arrays = {f"x{k}": np.float64(0.7) for k in range(60)}
    proved(language.parse(source), arrays, ["x0"], given=False)
    assert len(tried) < 50


def test_small_values_cost_few_runs_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small values the tape's digits are measured, and points that show nothing are passed by."""
    made, arrays = claim("1e-8*x*y", x=(), y=())
    tiny, _ = claim("1e-30*x*y", x=(), y=())
    ran: list[Claim] = []
    run = Claim.run
    monkeypatch.setattr(Claim, "run", lambda self, at: ran.append(self) or run(self, at))
    assert prove(made, arrays, given=False) is None and made.is_shown
    assert prove(tiny, arrays, given=False) is None and not tiny.is_shown
    assert ran.count(made) == ran.count(tiny) == proof.ENOUGH


@pytest.mark.long
def test_python_proves_at_the_points_of_the_command() -> None:
    """In double precision, also where the default dtype is single."""
    text = " + ".join(f"sin({k}*x)**2*exp(-x/{k})/(x + {k})" for k in range(1, 25))
    assert len(gradcli.diff(text, wrt="x")) > 500


# Where a function saturates, numbers have few digits or none, text and tape others; and powers overflow.
SATURATING = [
    ("tanh(6*x**2*y)", 2),
    ("logaddexp(x, 20*x)", 3),
    ("F.silu(20*x)", 3),
    ("tanh(hypot(x/1000, 100*y))", 2),
    ("erfc(20*y**2)**3", 2),
    ("sigmoid(erf(x))", 4),
    ("atan2(exp(20*x), x - 10000)", 3),
    ("exp(x)**(1.5*x)", 2),
    ("exp(x)**y*exp(x + 2*y) + exp(x)**y*sin(x)", 1),
]


@pytest.mark.long
@sweep(("source", "order"), SATURATING)
def test_what_has_lost_its_digits_is_no_fault(source: str, order: int) -> None:
    result = run(source, "--order", str(order))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("special.ndtr(2*y - 100*x**2)", "-100*sqrt(2/pi)*x*exp(-4*(y - 50*x**2)**2)"),
        ("tanh(30*x)", "30/cosh(30*x)**4"),
        ("exp(-1000*x**2)", "0"),
        ("exp(-1000*x**2)", "-2001*x*exp(-1000*x**2)"),
        ("x**2", "2*x + 1/(x - x)"),
        ("x**2", "2*x + exp(10000*x**2 + 10000) - exp(10000*x**2 + 10000)"),
    ],
)
def test_what_is_zero_or_infinite_shows_nothing(source: str, wrong: str) -> None:
    made, arrays = claim(source, wrt=["x"], **{n: () for n in "xy" if n in source})
    made.parsed = {"x": language.parse(wrong)}
    with pytest.raises(Difference):
        prove(made, arrays, given=False)


class Changed(ast.NodeTransformer):
    """Changes one place of a text: a sign, an operator, a number, a factor."""

    def __init__(self, place: int) -> None:
        self.left = place

    def _is_here(self) -> bool:
        self.left -= 1
        return self.left == -1

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """A sum as a difference, a product as a quotient, a part times -1, 2 or 1.001."""
        self.generic_visit(node)
        swapped = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
        if (other := swapped.get(type(node.op))) is not None and self._is_here():
            return ast.BinOp(node.left, other(), node.right)
        for factor in (-1, 2, 1.001):
            if self._is_here():
                return ast.BinOp(ast.Constant(factor), ast.Mult(), node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A number as the next one, or the one before."""
        for step in (1, -1):
            if self._is_here():
                return ast.Constant(node.value + step)
        return node


def changed_texts(text: str) -> Iterator[str]:
    """All texts with one change."""
    for place in count():
        visitor = Changed(place)
        made = ast.unparse(ast.fix_missing_locations(visitor.visit(ast.parse(text, mode="eval"))))
        if visitor.left >= 0:
            return
        yield made


def values_of(text: str, where: list[dict[str, Any]]) -> Any:
    """The values of a text at points, nan where it has none."""
    program, found = language.parse(text), []
    for point in where:
        with np.errstate(all="ignore"):
            found.append(float(language.run(program, {n: wrap(v) for n, v in point.items()}).value))
    return np.array(found)


CHANGED = [
    ("x**3*sin(y*x)", 1),
    ("log(x**2 + y)/x", 1),
    ("x*exp(-x**2/y)", 2),
    ("x**y", 2),
    ("tanh(3*x*y)", 2),
    ("sqrt(x**2 + y**2)", 2),
    ("1/(1 + exp(-y*x))", 3),
    ("erf(x)*y", 2),
    ("(x + y)/(x**2 + 2)", 2),
    ("x**2*atan(y/x)", 1),
]


@pytest.mark.long
@sweep(("source", "order"), CHANGED)
def test_changed_texts_are_found(source: str, order: int) -> None:
    made, arrays = claim(source, order, wrt=["x"], **{n: () for n in "xy" if n in source})
    text, where = made.made.by["x"], list(islice(many_points(arrays), 24))
    own = values_of(text, where)
    fine, wrong = np.isfinite(own), 0
    for other in islice(changed_texts(text), 0, None, 3):
        apart = np.abs(values_of(other, where) - own)[fine]
        if (apart <= 1e-6 * np.abs(own[fine])).all():
            continue  # as -1*x - y**2 for -x - y**2/1
        wrong += 1
        made.parsed = {"x": language.parse(other)}
        with pytest.raises((Difference, language.LanguageError)):
            prove(made, arrays, given=False)
    assert wrong > 3

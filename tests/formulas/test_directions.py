"""Derivatives along directions, and formulas over derivatives: of any shape, proved by forward mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from gradcli import language
from gradcli.cli import main
from gradcli.engine.core.tensor import wrap
from gradcli.formulas.ask import composed_derivatives, directional_derivatives
from gradcli.formulas.ask.proof import Difference, prove, proved
from gradcli.formulas.print.printed_text import printed
from gradcli.language.rewritten_sources import read
from tests.sweep import sweep

S, V, M, N = (), (3,), (2, 2), (2, 3)
LAYERS = {"x": (1, 1, 4, 4), "w": (1, 1, 2, 2)}


def arrays_of(shapes: dict[str, Any]) -> dict[str, Any]:
    numbers = np.random.default_rng(7)
    return {n: numbers.uniform(0.5, 1.5, s) for n, s in shapes.items()}


@sweep(
    ("source", "shapes", "along", "text"),
    [
        ("A@x", {"A": M, "x": M}, {"x": "V"}, "A@V"),
        ("x@A", {"A": M, "x": M}, {"x": "V"}, "V@A"),
        ("x@x", {"x": M}, {"x": "V"}, "V@x + x@V"),
        ("x.T@x", {"x": M}, {"x": "V"}, "x.T@V + V.T@x"),
        ("linalg.inv(x)", {"x": M}, {"x": "V"}, "-linalg.inv(x)@V@linalg.inv(x)"),
        ("x**2", {"x": M}, {"x": "V"}, "2*x*V"),
        ("outer(x[0], x[1])", {"x": M}, {"x": "V"}, "outer(V[0], x[1]) + outer(x[0], V[1])"),
        ("A@x", {"A": M, "x": (2,)}, {"A": "V", "x": "W"}, "V@x + A@W"),
        ("sum(x**2)", {"x": V}, {"x": "V"}, "2*x@V"),
        ("x*t", {"x": V, "t": S}, {"t": "V"}, "V*x"),
        ("trace(A@x)", {"A": M, "x": M}, {"x": "V"}, "sum(V*A.T)"),
        ("cat([x, x**2])", {"x": V}, {"x": "V"}, "cat([V, 2*x*V])"),
        ("A[:, None]*x", {"A": N, "x": (4, 3)}, {"x": "V"}, "V*A[:, None, :]"),
        ("F.conv2d(x, w)", LAYERS, {"w": "V"}, "conv2d(x, V)"),
        ("einsum('ijk,kl->ijl', T, x)", {"T": (2, 3, 4), "x": (4, 2)}, {"x": "V"}, "T@V"),
        ("3*y", {"x": V, "y": (2,)}, {"x": "V"}, "zeros(2)"),
        ("x@x", {"x": V}, {"x": "ones(3)"}, "2*sum(x)"),
        ("x*abs(x)", {"x": V}, {"x": "V"}, "2*abs(x)*V"),
    ],
    parts=2,
)
def test_a_direction(source: str, shapes: Any, along: Any, text: str) -> None:
    names = {v: shapes[x] for x, v in along.items() if v.isidentifier()}
    arrays = arrays_of({**shapes, **names})
    way = directional_derivatives.way([*along], [*along.values()])
    program = language.parse(read(source, {}, [*along], along=", ".join(along.values())).source)
    found, made, _ = proved(program, arrays, [*along], given=False, **way)
    (shown,) = made.by.values()
    assert language.parse(shown) is not None
    if text != "zeros(2)":
        assert shown == text
    # the sizes of what is printed are those of the value, at numbers as well
    tensors = {n: wrap(a) for n, a in arrays.items()}
    value = language.run(language.parse(source), tensors).value
    got = language.run(language.parse(shown), tensors).value
    assert tuple(got.shape) == tuple(value.shape) == found.shape


@sweep(
    ("source", "shapes", "way", "label", "wrong"),
    [
        ("A@x", {"A": M, "x": M}, directional_derivatives.way(["x"], ["A"]), "x", "A*A"),
        ("A@x", {"A": M, "x": M}, directional_derivatives.way(["x"], ["A"]), "x", "(A@A)[None]"),
    ],
    parts=1,
)
def test_a_wrong_text_is_not_proved(
    source: str, shapes: Any, way: Any, label: str, wrong: str
) -> None:
    arrays = arrays_of(shapes)
    found = way["find"](language.parse(source), arrays, [label])
    made = printed(found)
    made.by[label] = wrong
    with pytest.raises(Difference):
        prove(way["claim"](found, made, {}), arrays, given=True)


FIELD = {"x": S, "y": S, "z": S}


@sweep(
    ("source", "shapes", "asked", "formula"),
    [
        # a formula that puts gradients together wrongly, though each of them is right
        ("x**2 + y**3 - 1", {"x": S, "y": S}, {"of": "y"}, "_g_x/_g_y"),
        ("x**2*y + y**3 - 1", {"x": S, "y": S}, {"of": "y", "order": 2}, "-_H_x_x/_g_y"),
        ("A@y - x**2", {"A": M, "x": (2,), "y": (2,)}, {"of": "y"}, "-linalg.solve(_J_y, _J_x).T"),
        ("stack([x*y, y*z, z*x])", FIELD, {"operator": "div"}, "_J_x[0] + _J_y[1] - _J_z[2]"),
        ("stack([x*y, y*z, z*x])", FIELD, {"operator": "curl"}, "stack([_J_x[0]]*3)"),
        ("x*y*z", FIELD, {"operator": "grad"}, "stack([_g_x, _g_z, _g_y])"),
        ("x**2*y**2*z", FIELD, {"operator": "laplacian"}, "_H_x_x + _H_y_y - _H_x_y"),
        ("(v@v)**2", {"v": V}, {"operator": "laplacian"}, "sum(_H_v)"),
    ],
    parts=1,
)
def test_a_wrong_formula_is_not_proved(source: str, shapes: Any, asked: Any, formula: str) -> None:
    """Formulas are made of derivatives that are right; what they make of them is proved as well."""
    arrays, program = arrays_of(shapes), language.parse(source)
    wrt = [n for n in shapes if n not in ("A", asked.get("of"))]
    want = composed_derivatives.AskedDerivative(**asked)
    right = want.way(program, arrays, wrt, {})
    found, made, _ = proved(program, arrays, wrt, given=True, **right)
    assert made.by
    label = next(iter(found.by))
    (formulas, read, left, meaning) = right["find"].args
    wrong = composed_derivatives.way({**formulas, label: formula}, read, left, meaning)
    found = wrong["find"](program, arrays, wrt)
    with pytest.raises(Difference):
        prove(wrong["claim"](found, printed(found), {}), arrays, given=True)


@sweep(
    ("line", "latex"),
    [
        # rows and columns of a matrix are told apart
        ("sum(x*A*A) --shape x=3", r"\left[2 {x}_{j} {A}_{ij}\right]_{ij}"),
        ("sum(x[:,None]*A*A) --shape x=2", r"\left[2 {x}_{i} {A}_{ij}\right]_{ij}"),
        ("sum((A - mean(A, 0))**2)",
         r"2 \left[{A}_{ij} - {\operatorname{mean}_{i}\left(A\right)}_{j}\right]_{ij}"),
        ("sum(exp(x[:,None]*A)) --shape x=2", r"\left[{x}_{i} e^{{x}_{i} {A}_{ij}}\right]_{ij}"),
        # in a power of a function, in a denominator, of rows that become vectors
        ("sum(tanh((A@y).reshape(1, 1)*y[None])) --shape A=1,3 --shape y=3",
         r"\mathbf{1} \left(y \left(\sum_{i} {y}_{i} \left(1 - \tanh^{2}\left({y}_{i} "
         r"\left(\sum_{j} {A}_{0j} {y}_{j}\right)\right)\right)\right)\right)^{\top}"),
        ("sum(X/((2+cosh(A))*sinh(A))) --shape X=2,3",
         r"-\frac{X}{\left(\cosh\left(A\right) + 2\right)^{\circ 2}} - \frac{X}{\sinh\left(A\right) "
         r"\odot \tanh\left(A\right) \odot \left(\cosh\left(A\right) + 2\right)}"),
        ("sum((X@A.reshape(3))**2) --shape A=1,3 --shape X=2,3",
         r"\mathbf{1} \left(2 X^{\top} X A^{\top}\right)^{\top}"),
        ("tanh(sum(X@A)) --shape X=2,3 --shape A=3",
         r"X^{\top} \left(\left(1 - \tanh^{2}\left(\mathbf{1}^{\top} \left(X A\right)\right)\right) "
         r"\mathbf{1}\right)"),
        # of three dimensions
        ("sum(x*A*A) --shape x=3 --shape A=4,2,3", r"\left[2 {x}_{k} {A}_{ijk}\right]_{ijk}"),
        ("sum(bmm(A, B)*C) --shape A=2,3,4 --shape B=2,4,5 --shape C=2,3,5",
         r"\left[\sum_{l} {C}_{ijl} {B}_{ikl}\right]_{ijk}"),
        ("sum(A.reshape(6)*x) --shape A=1,2,3 --shape x=6",
         r"\operatorname{reshape}_{1 \times 2 \times 3}\left(x\right)"),
        # where matrices say all, they are written
        ("sum((A@x - b)**2) --shape x=3", r"2 \left(A x - b\right) x^{\top}"),
        ("sum(sin(A)*B)", r"\cos\left(A\right) \odot B"),
    ],
    parts=1,
)  # fmt: skip
def test_latex_keeps_every_index(line: str, latex: str) -> None:
    source, *options = line.split(" --")
    more = [f"--{o}" for option in options for o in [option.replace(" ", "=", 1)]]
    shape = [] if any("A=" in o for o in more) else ["--shape=A=2,3"]
    if "B" in source and not any("B=" in o for o in more):
        shape.append("--shape=B=2,3")
    line_ = ["diff", source, "--wrt", "A", "--format", "latex", "--plain", *more, *shape]
    done = CliRunner().invoke(main, line_)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.strip() == latex


@sweep(
    ("arguments", "expected"),
    [
        ("A@x --wrt x --along V --shape A=m,n --shape x=n,k", "A@V\n"),
        ("F.conv2d(x,w) --wrt w --along V --shape x=1,1,4,4 --shape w=1,1,2,2", "conv2d(x, V)\n"),
        # one of several results of a call
        ("sort(x)[0] --along V --shape x=3", "gather(V, -1, sort(x)[1])\n"),
        ("topk(x,2)[0] --along V --shape x=3", "gather(V, -1, topk(x, k=2)[1])\n"),
        ("sort(A,1)[0] --along V --shape A=2,3", "gather(V, 1, sort(A, 1)[1])\n"),
        ("x**2 --along 1,1,1 --x 1,2", "its direction tensor([1,1,1]) has shape (3,)"),
        ("x**2 --along ones(2,2) --x 1,2", "x has shape (2,), and its direction ones(2,2) has"),
    ],
    parts=1,
)
def test_the_shape_of_a_direction_is_that_of_its_variable(arguments: str, expected: str) -> None:
    done = CliRunner().invoke(main, ["diff", *arguments.split(" ")])
    assert expected in (done.stderr if done.exit_code else done.stdout)


def test_in_c_several_variables_have_one_result() -> None:
    line = "x@A@x --along v,M --wrt x,A --format c".split(" ")
    done = CliRunner().invoke(main, ["diff", *line])
    assert done.exit_code == 0, done.stderr
    assert "double *x_A_grad" in done.stdout

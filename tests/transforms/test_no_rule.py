"""What the tape refuses, or holds constant, no other way to differentiate makes a number of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.core.primitive import NotImplementedNode
from gradcli.engine.registry import table
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import Expression
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.transforms import traced_matrices
from tests.engine.registry import samples
from tests.fuzz.pairs import Case, summed

func = gradcli.func
# Beside the samples of the table: operands of all kinds.
PROGRAMS = [
    *("floor_divide(x, y)", "floor_divide(x, 2)", "floor_divide(2, x)", "x//y", "2//x", "heaviside(x, y)"),
    *("scatter(x, 0, tensor([0, 1]), y, reduce='add')", "histogram(x, 2)[0]"),
    *("special.zeta(x + 2, y)", "igamma(x, y)", "igammac(x, y)", "unique(x)", "unique_consecutive(x)"),
    *("dot(x, floor_divide(y, 2))", "histc(x, 3)"),
    # By weights of losses and their like, that PyTorch takes for constants.
    *("F.binary_cross_entropy(x/4, y, y)", "F.binary_cross_entropy_with_logits(x, y, pos_weight=x)"),
    *("F.nll_loss(x[None], tensor([1]), y)", "F.multi_margin_loss(x, tensor(1), weight=y)"),
    *("F.soft_margin_loss(x, y)", "F.batch_norm(x*ones(3, 2), x.detach(), y)"),
    *("x.detach()", "x.view(float32)", "zeros_like(x)", "sign(x.detach())", "(x > 0).to(float64)"),
]  # fmt: skip


def cases() -> Iterator[Case]:
    """Programs, and the samples whose rows have no rule."""
    values = {"x": np.array([1.5, 2.25]), "y": np.array([0.5, 0.75])}
    for program in PROGRAMS:
        yield Case(program, values)
    table.load()
    named = {
        r.public_name
        for r in table.PRIMITIVES
        if not r.vjps or issubclass(r.node_type, NotImplementedNode)
    }
    for text in samples.texts():
        if text.partition("(")[0].rpartition(".")[2] in named:
            source, tensors = samples.program(text)
            for k, out in enumerate(samples.outputs(source, tensors)):
                if out.is_floating_point():
                    many = len(samples.outputs(source, tensors)) > 1
                    arrays = {n: np.asarray(t.array) for n, t in tensors.items()}
                    yield Case(f"({source})[{k}]" if many else source, arrays)


def tape(case: Case) -> Any:
    """The gradients; None where they are refused."""
    leaves = case.tensors(track=True)
    try:
        value = case.run(leaves)
        if value.requires_grad:
            value.backward(gradcli.ones_like(value))
    except (RuntimeError, NotImplementedError, gradcli.language.LanguageError):
        return None
    return [leaves[n].grad.numpy() for n in case.wrt if leaves[n].grad is not None]


def ways(case: Case) -> dict[str, Callable[[], list[Any]]]:
    """Every other way to differentiate, as functions that give all numbers they find."""
    total, tensors = summed(case), case.tensors()
    at = tuple(tensors[n] for n in case.wrt)
    every = tuple(range(len(at)))
    vectors = {n: gradcli.ones_like(tensors[n]) for n in case.wrt}

    def value(*given: Any) -> Any:
        return case.run({**tensors, **dict(zip(case.wrt, given, strict=True))})

    def scalar(*given: Any) -> Any:
        return value(*given).sum()

    def numbers(found: Any) -> list[Any]:
        return [np.asarray(f.detach().numpy() if hasattr(f, "detach") else f) for f in found]

    def hessian() -> list[Any]:
        found = traced_matrices.hessian(total.program, total.tensors(), total.wrt)
        return [b for m in found.values() for b in m.by.values()]

    def compiled() -> list[Any]:
        _, grads = gradcli.compile(total.source, wrt=total.wrt).value_and_grad(**tensors)
        return [g for g in grads.values() if g is not None]

    def printed() -> list[Any]:
        found: dict[str, Expression] = differentiate(
            case.program, case.values, case.wrt, follow=True
        ).by
        zero = {n: np.zeros(a.shape) for n, a in case.values.items()}
        texts = {n: to_text(e) for n, e in found.items()}
        return [zero[n] if t == "0" or t.startswith("zeros") else t for n, t in texts.items()]

    def jacobian(mode: str) -> Callable[[], list[Any]]:
        return lambda: list(
            traced_matrices.jacobian(case.program, tensors, case.wrt, mode=mode).by.values()
        )

    return {
        "jacobian, reverse": jacobian("reverse"),
        "jacobian, forward": jacobian("forward"),
        "jvp": lambda: numbers([traced_matrices.jvp(case.program, tensors, vectors)[1]]),
        "hessian": hessian,
        "compile": compiled,
        "diff": printed,
        "func.grad": lambda: numbers(func.grad(scalar, every)(*at)),
        "func.jvp": lambda: numbers([func.jvp(value, at, tuple(vectors.values()))[1]]),
        "func.jacrev": lambda: numbers(func.jacrev(value, every)(*at)),
        "func.jacfwd": lambda: numbers(func.jacfwd(value, every)(*at)),
        "vmap": lambda: numbers(
            func.vmap(func.grad(scalar, every))(*(gradcli.stack([a, a]) for a in at))
        ),
    }


@pytest.mark.filterwarnings("ignore")
def test_no_rule_is_no_derivative_of_zero() -> None:
    gradcli.set_default_dtype(gradcli.float64)
    tried, wrong = 0, []
    try:
        for case in cases():
            expected = tape(case)
            if expected is not None and any(g.any() for g in expected):
                continue
            tried += 1
            for name, differentiated in ways(case).items():
                try:
                    found = differentiated()
                except (RuntimeError, NotImplementedError, gradcli.language.LanguageError):
                    continue
                if expected is None or any(isinstance(f, str) or np.any(f) for f in found):
                    wrong.append(f"{name} of {case.source}: {found}")
    finally:
        gradcli.set_default_dtype(gradcli.float32)
    assert not wrong
    assert tried > 25

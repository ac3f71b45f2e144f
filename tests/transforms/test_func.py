"""torch.func: what it gives and refuses, as PyTorch recorded it; operators run once for all entries."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gradcli
from gradcli import language
from gradcli.cli import main
from gradcli.torch import func
from tests.golden.record_answers import RECORDED
from tests.sweep import sweep
from tests.transforms.func_programs import CALLS, PROGRAMS, answer, call_space, plain, space
from tests.transforms.tape_programs import PROGRAMS as TAPE

ANSWERS = json.loads((Path(__file__).parent / "func.json").read_text())
EXPECTED: dict[str, str] = json.loads(RECORDED.read_text(encoding="utf-8"))
TAPE_ANSWERS = json.loads((Path(__file__).parent / "tape.json").read_text())


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert isinstance(found, dict) and found.keys() == expected.keys()
        for key, value in expected.items():
            same(found[key], value)
    elif isinstance(expected, list) and expected and isinstance(expected[0], (list, dict)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e)
    elif isinstance(expected, (list, float)):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    else:
        assert found == expected


@sweep("name", PROGRAMS)
def test_values(name: str) -> None:
    with warnings.catch_warnings():
        if "cross" not in PROGRAMS[name] and "conv" not in PROGRAMS[name]:
            warnings.simplefilter("error")  # one would say that an operator ran entry by entry
        else:
            warnings.simplefilter("ignore")
        found = plain(eval(PROGRAMS[name], space(gradcli, func)))
    same(found, ANSWERS["values"][name])


def test_calls() -> None:
    """In their order: random numbers are those of one seed."""
    gradcli.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {name: answer(s, call_space(gradcli, func)) for name, s in CALLS.items()}
    assert found.pop("jvp of remainder of a number") == [-2.0, -2.0]  # torch has no rule for it
    assert found.pop("grad nontensor") == 1.0  # numbers are points here, as arrays are
    for name, expected in ANSWERS["calls"].items():
        if name not in found:
            continue
        if isinstance(expected, dict) and "words" in expected:
            words = expected["words"].replace("torch.", "gradcli.")
            assert found[name]["error"] == expected["error"], (name, found[name])
            assert found[name]["words"].replace("torch.", "gradcli.") == words, name
        else:
            same(found[name], expected)


def test_gradcheck_of_batched_gradients() -> None:
    x = gradcli.tensor([0.5, -1.0, 2.0], requires_grad=True, dtype=gradcli.float64)
    check = gradcli.autograd.gradcheck
    assert check(lambda x: x.sin() * x.sum(), x, check_batched_grad=True)

    class OnlyTheFirst(gradcli.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            seen.append(g)
            return 2 * x * g * (1 if len(seen) != wrong else 2)

    seen: list[Any] = []
    wrong = 0
    assert check(OnlyTheFirst.apply, x, check_batched_grad=True, check_undefined_grad=False)
    wrong, seen = len(seen), []
    with pytest.raises(RuntimeError, match="failed while testing batched gradient computation"):
        check(OnlyTheFirst.apply, x, check_batched_grad=True, check_undefined_grad=False)


def test_an_operator_that_does_not_know_says_so() -> None:
    x = gradcli.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.warns(UserWarning, match="batching rule for aten::renorm"):
        found = func.vmap(lambda a: gradcli.renorm(a[None], 2, 0, 1.0))(x)
    np.testing.assert_allclose(found[1].numpy(), gradcli.renorm(x[1:], 2, 0, 1.0).numpy())


WRITES = [n for n in TAPE if n.startswith("write") and "detached" not in n and "no_grad" not in n]


@sweep("name", WRITES, parts=1)
def test_writes_in_place(name: str) -> None:
    """Tangents and gradients follow what is written, through views, one by one or in batches."""
    alone = name == "write of a row"  # into zeros that are the same for all entries: refused
    source, value = TAPE[name]
    program, answer = language.parse(source), TAPE_ANSWERS[name]
    x = gradcli.tensor(value)

    def function(v: Any) -> Any:
        return language.run(program, {"x": v}).value

    for jacobian in (func.jacfwd, func.jacrev):
        same(jacobian(function)(x).tolist(), answer["jacobian"])
        if not alone:
            both = func.vmap(jacobian(function))(gradcli.stack([x * 2, x]))
            same(both[1].tolist(), answer["jacobian"])
    hessian = func.hessian(lambda v: function(v).sum())
    same(hessian(x).tolist(), answer["hessian"])
    if not alone:
        same(func.vmap(hessian)(gradcli.stack([x * 2, x]))[1].tolist(), answer["hessian"])


@pytest.mark.parametrize("dtype", [gradcli.float32, gradcli.float64])
def test_a_jacobian_of_many_entries(dtype: Any) -> None:
    """Entries so many that zeros are left out: products keep their operands' dtype."""
    rows = gradcli.linspace(-1, 1, 2000, dtype=dtype).reshape(200, 10)
    x = gradcli.linspace(0, 0.5, 10, dtype=dtype)
    expected = (1 - (rows @ x).tanh() ** 2)[:, None] * rows
    for function in (lambda x: (rows @ x).tanh(), lambda x: (x @ rows.T).tanh()):
        assert gradcli.allclose(func.jacrev(function)(x), expected, atol=1e-6)


OF_FUNCTIONS = [p for p in EXPECTED if re.search(r"vmap|torch\.func\.|autograd\.functional", p)]


@sweep("program", lambda: OF_FUNCTIONS)
def test_functions_of_functions_in_the_language(program: str) -> None:
    """A program's `func.grad` and its like answer what torch's do: the recorded rows, as expressions."""
    try:
        found = repr(language.run(language.parse(program), {}).value)
    except Exception as error:
        found = str(error)
    wanted = EXPECTED[program]
    assert wanted.partition(": ")[2] in found if "Error: " in wanted else found == wanted


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (
            'eval "func.vmap(func.grad(lambda x: sin(x)))(x)"',
            "[0.5403023058681398, -0.41614683654714",
        ),
        ('grad "func.grad(lambda x: sum(x**3))(x).sum()"', "x.grad = [6, 12, 18]"),
        ('diff "sum(func.grad(lambda x: sum(sin(x)))(x))"', "-sin(x)"),
        ('jacobian "func.grad(lambda x: sum(x**3))(x)" --sparse', "x.jacobian[0, 0] = 6"),
        ('check "func.grad(lambda x: sum(x**3))(x).sum()"', "ok: x"),
    ],
)
def test_functions_of_functions_in_commands(command: str, answer: str) -> None:
    given = [] if command.startswith("diff") else ["--x", "1,2,3"]
    found = CliRunner().invoke(main, [*shlex.split(command), *given])
    assert found.stdout.startswith(answer), found.output


def test_a_linear_function_depends_on_what_was_closed_over() -> None:
    """Where torch's is a constant of what it was traced with, and under `grad` reads what nobody wrote."""
    w = gradcli.tensor(2.0, requires_grad=True)
    x = gradcli.tensor([1.0, 2.0], requires_grad=True)
    calls = []
    _, along = func.linearize(lambda a: calls.append(a) or w * a**2, x)
    made = along(gradcli.ones(2)).sum() + along(gradcli.tensor([1.0, 0.0])).sum()
    found = gradcli.autograd.grad(made, (w, x))
    assert [g.tolist() for g in found] == [8.0, [8.0, 4.0]] and len(calls) == 1
    inside = func.grad(lambda a: func.linearize(lambda b: b * b * a, a)[1](a).sum())(x)
    assert inside.tolist() == [6.0, 24.0]


def test_nested_tangents_of_logcumsumexp_have_no_logarithms_of_gradients() -> None:
    """The orders of log(e**t + e**(1 + 2*t) + e**(2 + 3*t)) at 0, by mpmath; PyTorch's third is NaN."""
    start = gradcli.tensor([0.0, 1.0, 2.0], dtype=gradcli.float64)
    line = gradcli.tensor([1.0, 2.0, 3.0], dtype=gradcli.float64)

    def along(f: Any) -> Any:
        return lambda x: func.jvp(f, (x,), (line,))[1]

    function = lambda x: gradcli.logcumsumexp(x, 0)[-1]  # noqa: E731
    for wanted in (
        2.5752103826044414,
        0.42440454468925445,
        -0.3474734435899095,
        0.06239353390972137,
    ):
        function = along(function)
        assert function(start).item() == pytest.approx(wanted, rel=1e-11)

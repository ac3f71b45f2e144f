"""Each library's value and gradients of a problem, as a function `call() -> (value, gradients)`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tests.benchmarks.problems import Arrays, Problem, targets

Call = Callable[[], tuple[Any, dict[str, Any]]]


def threads() -> int:
    """How many threads a library may use."""
    return int(os.environ.get("BENCHMARK_THREADS", "2"))


def gradcli(
    problem: Problem, arrays: Arrays, count: int | None = None, native: bool = False
) -> Call:
    import gradcli as g

    program: Any = problem.source
    if problem.formula is None:
        fixed = g.tensor(targets(len(next(iter(arrays.values())))))

        def program(x: Any) -> Any:
            return g.nn.functional.cross_entropy(x, fixed)

    compiled = g.compile(program, threads=count or threads(), native=native)
    return lambda: compiled.value_and_grad(**arrays)


def tape(problem: Problem, arrays: Arrays) -> Call:
    """gradcli without a plan."""
    import gradcli as g
    from gradcli import language
    from gradcli.engine.core.tensor import wrap

    leaves = {n: wrap(a, True) for n, a in arrays.items()}
    fixed = g.tensor(targets(len(next(iter(arrays.values())))))
    program = g.parse(problem.source)

    def call() -> tuple[Any, dict[str, Any]]:
        for leaf in leaves.values():
            leaf.grad = None
        if problem.formula is None:
            value = g.nn.functional.cross_entropy(leaves["x"], fixed)
        else:
            value = language.run(program, leaves).value
        value.backward()
        return value.item(), {n: leaf.grad.numpy() for n, leaf in leaves.items()}

    return call


def torch(problem: Problem, arrays: Arrays) -> Call:
    import torch as t

    t.set_num_threads(threads())
    leaves = {n: t.from_numpy(a).requires_grad_() for n, a in arrays.items()}
    fixed = t.from_numpy(targets(len(next(iter(arrays.values())))))

    def call() -> tuple[Any, dict[str, Any]]:
        for leaf in leaves.values():
            leaf.grad = None
        if problem.formula is None:
            value = t.nn.functional.cross_entropy(leaves["x"], fixed)
        else:
            value = problem.formula(t, **leaves)
        value.backward()
        return value.item(), {n: leaf.grad.numpy() for n, leaf in leaves.items()}

    return call


def inductor(problem: Problem, arrays: Arrays) -> Call:
    """torch.compile."""
    import torch as t

    t.set_num_threads(threads())
    leaves = {n: t.from_numpy(a).requires_grad_() for n, a in arrays.items()}
    fixed = t.from_numpy(targets(len(next(iter(arrays.values())))))

    def function(**given: Any) -> Any:
        if problem.formula is None:
            return t.nn.functional.cross_entropy(given["x"], fixed)
        return problem.formula(t, **given)

    compiled = t.compile(function, dynamic=False)

    def call() -> tuple[Any, dict[str, Any]]:
        for leaf in leaves.values():
            leaf.grad = None
        value = compiled(**leaves)
        value.backward()
        return value.item(), {n: leaf.grad.numpy() for n, leaf in leaves.items()}

    return call


def jax(problem: Problem, arrays: Arrays) -> Call:
    import jax as j
    import jax.numpy as jnp

    j.config.update("jax_enable_x64", True)
    names = list(arrays)
    fixed = targets(len(next(iter(arrays.values()))))

    def function(*given: Any) -> Any:
        named = dict(zip(names, given, strict=True))
        if problem.formula is not None:
            return problem.formula(jnp, **named)
        logs = j.nn.log_softmax(named["x"], axis=1)
        return -jnp.take_along_axis(logs, fixed[:, None], 1).mean()

    compiled = j.jit(j.value_and_grad(function, argnums=tuple(range(len(names)))))
    given = j.block_until_ready([jnp.asarray(a) for a in arrays.values()])

    def call() -> tuple[Any, dict[str, Any]]:
        value, grads = j.block_until_ready(compiled(*given))
        return float(value), dict(zip(names, grads, strict=True))

    return call


def autograd(problem: Problem, arrays: Arrays) -> Call:
    import autograd.numpy as anp
    from autograd import value_and_grad

    names = list(arrays)
    fixed = targets(len(next(iter(arrays.values()))))

    def function(given: Any) -> Any:
        named = dict(zip(names, given, strict=True))
        if problem.formula is not None:
            return problem.formula(anp, **named)
        x = named["x"]
        z = x - anp.max(x, axis=1, keepdims=True)
        logs = z - anp.log(anp.sum(anp.exp(z), axis=1, keepdims=True))
        return -anp.mean(logs[anp.arange(len(fixed)), fixed])

    both = value_and_grad(function)
    given = tuple(arrays.values())

    def call() -> tuple[Any, dict[str, Any]]:
        value, grads = both(given)
        return float(value), dict(zip(names, grads, strict=True))

    return call


def mygrad(problem: Problem, arrays: Arrays) -> Call:
    import mygrad as mg
    from mygrad.nnet.losses import softmax_crossentropy

    fixed = targets(len(next(iter(arrays.values()))))

    def call() -> tuple[Any, dict[str, Any]]:
        leaves = {n: mg.tensor(a, copy=False) for n, a in arrays.items()}
        if problem.formula is None:
            value = softmax_crossentropy(leaves["x"], fixed)
        else:
            value = problem.formula(mg, **leaves)
        value.backward()
        return value.item(), {n: leaf.grad for n, leaf in leaves.items()}

    return call


def numexpr(problem: Problem, arrays: Arrays) -> Call:
    """The gradient is written down by hand: numexpr does not differentiate."""
    import numexpr as ne

    ne.set_num_threads(threads())
    assert problem.numexpr is not None
    value, slope = problem.numexpr

    def call() -> tuple[Any, dict[str, Any]]:
        found = ne.evaluate(value, local_dict=arrays)
        return float(found), {"x": ne.evaluate(slope, local_dict=arrays)}

    return call


def sympy(problem: Problem, arrays: Arrays) -> Call:
    """One element's formula, differentiated symbolically, as NumPy code with shared subexpressions."""
    import sympy as sp

    class Names:
        """NumPy's names for one element of a sum."""

        exp, sin, tanh = sp.exp, sp.sin, sp.tanh
        sum = staticmethod(lambda x: x)
        dot = staticmethod(lambda x, y: x * y)

    x = sp.Symbol("x")
    assert problem.formula is not None
    formula = problem.formula(Names, x)
    both = sp.lambdify(x, [formula, formula.diff(x)], "numpy", cse=True)

    def call() -> tuple[Any, dict[str, Any]]:
        values, slopes = both(arrays["x"])
        return values.sum(), {"x": slopes}

    return call


LIBRARIES = {f.__name__: f for f in (gradcli, tape, torch, jax, autograd, mygrad, numexpr, sympy)}

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


def gradcli(problem: Problem, arrays: Arrays) -> Call:
    import gradcli as g

    if "t" in problem.source:
        fixed = g.tensor(targets(len(arrays["x"])))
    if problem.formula is None:
        compiled = g.compile(lambda x: g.nn.functional.cross_entropy(x, fixed), threads=threads())
    else:
        compiled = g.compile(problem.source, threads=threads())
    return lambda: compiled.value_and_grad(**arrays)


def tape(problem: Problem, arrays: Arrays) -> Call:
    """gradcli without a plan."""
    import gradcli as g
    from gradcli import language
    from gradcli.engine.tensor import wrap

    leaves = {n: wrap(a, True) for n, a in arrays.items()}
    fixed = g.tensor(targets(len(arrays["x"])))
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
    fixed = t.from_numpy(targets(len(arrays["x"])))

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


def jax(problem: Problem, arrays: Arrays) -> Call:
    import jax as j
    import jax.numpy as jnp

    j.config.update("jax_enable_x64", True)
    names = list(arrays)
    fixed = targets(len(arrays["x"]))

    def function(*given: Any) -> Any:
        named = dict(zip(names, given, strict=True))
        if problem.formula is not None:
            return problem.formula(jnp, **named)
        logs = j.nn.log_softmax(named["x"], axis=1)
        return -jnp.take_along_axis(logs, fixed[:, None], 1).mean()

    compiled = j.jit(j.value_and_grad(function, argnums=tuple(range(len(names)))))
    given = [jnp.asarray(a) for a in arrays.values()]

    def call() -> tuple[Any, dict[str, Any]]:
        value, grads = j.block_until_ready(compiled(*given))
        return float(value), dict(zip(names, grads, strict=True))

    return call


def autograd(problem: Problem, arrays: Arrays) -> Call:
    import autograd.numpy as anp
    from autograd import value_and_grad

    names = list(arrays)
    fixed = targets(len(arrays["x"]))

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

    fixed = targets(len(arrays["x"]))

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
    """The value and the gradient written down by hand: numexpr does not differentiate."""
    import numexpr as ne

    ne.set_num_threads(threads())
    x = arrays["x"]

    def call() -> tuple[Any, dict[str, Any]]:
        value = ne.evaluate("sum(exp(-x**2)*sin(3*x))", local_dict={"x": x})
        grad = ne.evaluate("exp(-x**2)*(3*cos(3*x) - 2*x*sin(3*x))", local_dict={"x": x})
        return float(value), {"x": grad}

    return call


LIBRARIES = {f.__name__: f for f in (gradcli, tape, torch, jax, autograd, mygrad, numexpr)}

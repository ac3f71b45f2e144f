"""Functions of several variables as functions of one vector, with their derivatives as compiled programs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from gradcli.columns.compiler.compiled_function import CompiledFunction
from gradcli.columns.optimize.least_squares import Array
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve
from gradcli.language import as_tensor, parse, run
from gradcli.language.equations import RELATIONS, all_sides, sides
from gradcli.language.located_errors import LanguageError, error_at
from gradcli.language.no_derivative import without_derivative
from gradcli.language.program import Program
from gradcli.language.scope_checks import assigned_names
from gradcli.torch import func

_INPUTS = 10_000  # numbers of an input, of larger ones it is not asked how they move a root


class Space:
    """The variables of a problem, laid out one after the other in a vector.

    start: arrays by name. fixed: what programs may read besides.
    """

    def __init__(self, start: Mapping[str, Array], fixed: Mapping[str, Any]) -> None:
        self.start = {n: np.asarray(a, np.float64) for n, a in start.items()}
        self.fixed = dict(fixed)
        self.size = sum(a.size for a in self.start.values())

    def flat(self) -> Array:
        """Where it starts."""
        return np.concatenate([np.ravel(a) for a in self.start.values()])

    def shaped(self, x: Any) -> dict[str, Any]:
        """A vector as variables by name; an array or a tensor."""
        found, at = {}, 0
        for name, array in self.start.items():
            found[name] = x[at : at + array.size].reshape(array.shape)
            at += array.size
        return found

    def scalar(self, program: Program) -> Callable[[Any], Any]:
        """The program's value, one real number, as a function of a vector."""

        def function(x: Any) -> Any:
            value = run(program, {**self.fixed, **self.shaped(x)}, write=_silent).value
            if (error := without_derivative(program, value, "minimum to look for")) is not None:
                raise error
            if not isinstance(value, Tensor) or value.numel() != 1 or value.is_complex():
                shape = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
                raise _refused(program, f"the value must be one real number, but has {shape}")
            return value.reshape(())

        return function

    def objective(self, program: Program) -> Compiled:
        """The program's value, one real number, with its derivatives."""
        made = Compiled(self.scalar(program), self.size)
        made.closed = partial(self._hessian, program)
        return made

    def _hessian(self, program: Program, x: Array) -> Array:
        """The Hessian of the program's value by the route whose error is least."""
        from gradcli.transforms import removable

        tensors = {n: v for n, v in self.fixed.items() if isinstance(v, Tensor)}
        names = {n: v for n, v in self.fixed.items() if n not in tensors}
        tensors |= {n: as_tensor(np.array(a)) for n, a in self.shaped(x).items()}
        own = list(self.start)
        found, _ = removable.hessian(program, tensors, own, names)
        rows = [
            [np.reshape(found[n].by[m], (self.start[n].size, self.start[m].size)) for m in own]
            for n in own
        ]
        return np.asarray(np.block(rows), np.float64)

    def differences(self, program: Program) -> Differences:
        """The sides of a program's equations; any other value, the `x**2 - 2` of a root, is to be 0."""
        return Differences(self, *all_sides(program))

    def relations(self, texts: Iterable[str], objective: Program) -> list[tuple[str, Compiled]]:
        """Constraints, `x + y == 1` or `x >= 0`: each relation, and the difference of its sides."""
        return [
            (relation, Compiled(difference, self.size))
            for text in texts
            for relation, difference in self.differences_of(text, objective)
        ]

    def differences_of(
        self, text: str, objective: Program
    ) -> list[tuple[str, Callable[[Any], Any]]]:
        """The relations of one text, and the difference of the sides of each as a function of a vector.

        They may read what the program of the value assigns, which then runs before them.
        """
        program, assigned = parse(text), set(assigned_names(objective))
        names = program.free_variables()
        for name in names:
            if name not in self.start and name not in self.fixed and name not in assigned:
                raise LanguageError(
                    f"--subject: {name} is not a variable of the expression",
                    kind="name",
                    hint=f"there are {', '.join(self.start)}",
                )
        before = None if assigned.isdisjoint(names) else objective
        made = Differences(self, *sides(program, RELATIONS), before)
        return [(relation, partial(made.part, k)) for k, relation in enumerate(made.relations)]


class Differences:
    """`left - right` of all equations, and values that are to be 0, one after the other, as a vector.

    before: a program whose names they read.
    """

    def __init__(
        self, space: Space, program: Program, relations: list[str], before: Program | None = None
    ) -> None:
        self.space, self.program, self.relations = space, program, relations
        self.before = before

    def __call__(self, x: Any) -> Any:
        """At a point, a tensor."""
        return resolve("cat")(self.parts(x))

    def part(self, number: int, x: Any) -> Any:
        """Those of one of them."""
        return self.parts(x)[number]

    def sizes(self, x: Any) -> Any:
        """|left| + |right|, beside which a difference of theirs is rounding."""
        return resolve("cat")(self._made(x, lambda one, other: one.abs() + other.abs()))

    def moved_by_inputs(self, x: Any) -> Array:
        """What the differences change by where each number that is fixed does, by its own size.

        Of a side that cancels, `price(S, K) - quote`, it is that of rounding where `sizes` is not.
        """
        space = self.space
        inputs = {
            n: t.detach()
            for n, t in space.fixed.items()
            if isinstance(t, Tensor) and t.is_floating_point() and t.numel() <= _INPUTS
        }

        def made(given: dict[str, Any]) -> Any:
            other = copy(space)
            other.fixed = {**space.fixed, **given}
            return Differences(other, self.program, self.relations, self.before)(x)

        found = func.jacrev(made)(inputs) if inputs else {}
        total = 0.0
        for name, jac in found.items():
            change = np.abs(jac.array * inputs[name].array)
            total = total + np.nan_to_num(change.reshape(len(jac.array), -1).sum(1))
        return np.asarray(total)

    def parts(self, x: Any) -> list[Any]:
        """Those of each equation."""
        return self._made(x, operator.sub)

    def _made(self, x: Any, of: Callable[[Any, Any], Any]) -> list[Any]:
        """What is made of the sides of each equation, as vectors."""
        space = self.space
        names = {**space.fixed, **space.shaped(x)}
        if self.before is not None:
            names = run(self.before, names, write=_silent).names
        value = run(self.program, names, write=_silent).value
        found, rest = [], iter(value)
        for word in self.relations:
            left = next(rest)
            if not word:
                if left is not None:  # what a print gives is no equation
                    found.append(tensor_of(left).reshape((-1,)))
                continue
            one, other = tensor_of(left), tensor_of(next(rest))
            try:
                found.append(of(one, other).reshape((-1,)))
            except RuntimeError as error:
                raise error_at(
                    error, source=self.program.source, span=self.program.value_span
                ) from error
        return found


def tensor_of(value: Any) -> Any:
    """A side of an equation; a list of numbers is a vector."""
    if isinstance(value, list | tuple):
        return resolve("stack")([tensor_of(item) for item in value])
    return as_tensor(value)


def _silent(text: str) -> None:
    """What a program prints is printed by nobody: it runs many times."""


def _refused(program: Program, message: str) -> LanguageError:
    return LanguageError(
        message, kind="value", usage=False, source=program.source, span=program.value_span
    )


class Compiled:
    """A function of a vector with its derivatives, each compiled when it is asked for first.

    evaluations: how often the value was computed; those at one point are one.
    """

    costly = False  # whether a value is a pass over a table

    def __init__(self, function: Callable[[Any], Any], size: int) -> None:
        self.function, self.size, self.evaluations = function, size, 0
        self._made: dict[str, CompiledFunction] = {}
        self._last: tuple[bytes, Any, Any] | None = None
        self.closed: Callable[[Array], Array] | None = None  # the Hessian where rules fail

    def _at(self, kind: str, function: Callable[..., Any], *arrays: Array) -> Any:
        """What a function gives at these arrays; a value with its gradient, else an array."""
        if kind not in self._made:
            names = ["x", "v"][: len(arrays)]

            def named(**given: Any) -> Any:
                return function(*(given[name] for name in names))

            self._made[kind] = CompiledFunction(named, names, kind, wrt=["x"])
        compiled = self._made[kind]
        return (compiled.value_and_grad if kind == "value" else compiled)(*arrays)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Of a scalar."""
        # SciPy's methods and the callback ask at the same point several times. The last answer is kept,
        # so that `evaluations` counts points and not questions.
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = (key, *self._computed(x))
            self.evaluations += 1
        return self._last[1], self._last[2]

    def _computed(self, x: Array) -> tuple[float, Array]:
        value, found = self._at("value", self.function, x)
        gradient = found["x"]
        return float(value), np.zeros(self.size) if gradient is None else np.array(gradient)

    def value(self, x: Array) -> Array:
        """Of a vector function."""
        self.evaluations += 1
        return np.asarray(self._at("vector", self.function, x), np.float64)

    def jacobian(self, x: Array) -> Array:
        """Of a vector function."""
        return np.asarray(self._at("Jacobian", func.jacrev(self.function), x))

    def row_sums(self, x: Array) -> Array:
        """Of the Jacobian's transpose: its diagonal, where it has nothing else."""
        gradient = func.grad(lambda x: self.function(x).sum())
        return np.asarray(self._at("sums", gradient, x))

    def hessian(self, x: Array) -> Array:
        """Of a scalar."""
        found = self._at("Hessian", func.hessian(self.function), x)
        return np.asarray(found).reshape(self.size, self.size)

    def hessian_found(self, x: Array) -> Array:
        """The Hessian at the point that was found, where rules may divide 0 by 0."""
        return self.hessian(x) if self.closed is None else self.closed(x)

    def weighted_hessian(self, x: Array, weights: Array) -> Array:
        """Of the sum of a vector function's elements, each with its weight."""

        def hessian(x: Any, v: Any) -> Any:
            return func.hessian(lambda x: (self.function(x) * v).sum())(x)

        found = self._at("weighted Hessian", hessian, x, weights)
        return np.asarray(found).reshape(self.size, self.size)

    def hessian_product(self, x: Array, v: Array) -> Array:
        """The Hessian times a vector, without the matrix."""

        def product(x: Any, v: Any) -> Any:
            return func.jvp(func.grad(self.function), (x,), (v,))[1]

        return np.asarray(self._at("product", product, x, v))


__all__ = ["Compiled", "Differences", "Space", "tensor_of"]

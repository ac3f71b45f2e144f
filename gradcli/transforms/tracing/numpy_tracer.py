"""Traces a program as NumPy calls: the engine runs on abstract arrays, which record what it computes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradcli.engine.core import modes, pytrees
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.transforms.tracing import abstract_evaluation
from gradcli.transforms.tracing.abstract_arrays import AbstractArray, Untraceable, _argument
from gradcli.transforms.tracing.numpy_program import NumpyProgram, Operation

__all__ = ["Kernels", "NumpyTracer", "Untraceable", "trace_numpy"]


class NumpyTracer:
    """The NumPy trace of a program and of its backward pass.

    value: the operation of its value. gradients: by name of a variable, None where the value does not
    depend on it; empty where no gradient was asked for. result: the tensor with its nodes, of abstract
    arrays. names: what the program assigned. spec: the structure of a value of several tensors; `value`
    is the first of them, `more` are the others.
    """

    __slots__ = (
        "gradients",
        "graph",
        "inputs",
        "more",
        "names",
        "result",
        "spec",
        "value",
        "variables",
        "warnings",
    )

    def __init__(self, graph: NumpyProgram, inputs: dict[str, Operation]) -> None:
        self.graph, self.inputs = graph, inputs
        self.value: Operation
        self.more: list[Operation] = []
        self.spec: pytrees.Spec | None = None
        self.result: Any = None
        self.gradients: dict[str, Operation | None] = {}
        self.variables: dict[str, Tensor] = {}
        self.names: dict[str, Any] = {}
        self.warnings: list[Any] = []

    @property
    def outputs(self) -> list[Operation]:
        """The operations whose results are wanted."""
        return [self.value, *self.more, *[g for g in self.gradients.values() if g is not None]]


def trace_numpy(
    function: Callable[..., Any],
    variables: Mapping[str, Any],
    *,
    wrt: frozenset[str] = frozenset(),
    cotangent: Any = None,
    backward: bool = True,
    fixed: bool = False,
    nested: bool = False,
    worded: bool = False,
    stop: tuple[int, Exception] | None = None,
) -> NumpyTracer:
    """Run a function of tensors, and the backward pass from its value, on abstract arrays.

    variables: arrays by name (only shape, dtype and layout count). wrt: those that require grad.
    cotangent: the gradient to start from, an array or a function of the result that gives it. fixed:
    random numbers that are drawn may become constants of the trace. nested: the value may be nested
    tuples, lists and dicts of tensors; then there is no backward pass. worded: an obstacle is raised as an
    Exception first, so that the program can say where it was. stop: make the operation of this number
    raise this error. Raises Untraceable (caused by that Exception) if a branch or a shape depends on the
    numbers, or if the program cannot be traced for another reason.
    """
    from gradcli.engine.core import random

    graph = NumpyProgram()
    inputs = {name: graph.input(name, array) for name, array in variables.items()}
    graph.stop, graph.worded = stop, worded
    found = NumpyTracer(graph, inputs)
    for name, op in inputs.items():
        tensor = wrap(AbstractArray(graph, op), name in wrt)
        tensor.label = name
        found.variables[name] = tensor
    before = random.snapshot()
    state = modes.change(recorder=Kernels(), before_write=lambda t: graph.written(t.array))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _run(found, function, cotangent, backward and bool(wrt), nested)
            if graph.refused is not None:
                raise Untraceable(graph.refused)
            if not fixed and random.rewind(before):
                raise Untraceable("the program draws random numbers")
        except (Exception, Untraceable) as error:  # the program itself says what is wrong with it
            random.rewind(before)
            if isinstance(error, Untraceable):
                raise
            raise Untraceable(f"{type(error).__name__}: {error}") from error
        finally:
            modes.restore(state)
    found.warnings = caught
    return found


def _run(found: NumpyTracer, function: Any, cotangent: Any, backward: bool, nested: bool) -> None:
    result = function(**found.variables)
    if nested and not backward and not isinstance(result, Tensor):
        leaves, found.spec = pytrees.flatten(result)
        if not all(isinstance(v, Tensor) for v in leaves):
            leaves, found.spec = pytrees.with_constants(leaves, found.spec, _varies)
        if leaves and all(isinstance(v, (Tensor, np.ndarray)) for v in leaves):
            found.result = result
            arrays = [v.array if isinstance(v, Tensor) else v for v in leaves]
            found.value, *found.more = [_operation(found.graph, a) for a in arrays]
            return
    if not isinstance(result, Tensor):
        raise Untraceable(f"the value is not a tensor but {type(result).__name__}")
    graph = found.graph
    found.result = result
    found.value = _operation(graph, result.array)
    if not backward:
        return
    if result.node is None:
        found.gradients = dict.fromkeys(n for n, t in found.variables.items() if t.requires_grad)
        return
    if cotangent is None:
        if result.array.size != 1 or result.array.dtype.kind != "f":
            from gradcli.engine.core.errors import NotRealError

            refusal = NotRealError()
            raise Untraceable(str(refusal)) from refusal
        one = graph.constant(result.array.dtype.type(1))
        start = AbstractArray(graph, one)
        if result.array.ndim:
            start = start.expand(result.array.shape)
    else:
        given = cotangent(result) if callable(cotangent) else np.asarray(cotangent)
        start = AbstractArray(graph, _operation(graph, given[()]))
    result.backward(wrap(start))
    for name, tensor in found.variables.items():
        if tensor.requires_grad:
            grad = tensor._grad
            found.gradients[name] = None if grad is None else _operation(graph, grad.array)


class Kernels:
    """The tracer: records what kernels and VJP rules do with abstract arrays."""

    tensors = False

    def call(self, primitive: Any, values: list[Any]) -> Any:
        """A primitive on tensors."""
        return self.run(primitive, primitive.arrays(values))

    def run(self, primitive: Any, operands: list[Any]) -> Any:
        """A primitive's kernel, traced call by call, or as one call where that is not possible."""
        graph = next((a._graph for a in _abstract(operands)), None)
        if graph is None:
            return primitive.compute(operands)
        refused = graph.refused
        try:
            return primitive.compute(operands)
        except (*OPERATION_ERRORS, AttributeError, Untraceable) as error:
            from gradcli.engine.core import random

            if graph.stop is not None and error is graph.stop[1]:
                raise
            before = random.snapshot()
            made = abstract_evaluation.row_called(
                graph, primitive, [_argument(graph, a) for a in operands]
            )
            if random.rewind(before):
                raise Untraceable("the program draws random numbers") from None
            if made is None:
                if graph.worded and isinstance(error, Untraceable):
                    graph.refused = str(error)
                    raise RuntimeError(graph.refused) from None
                raise error
            graph.refused = refused
            if type(made) is list:
                return tuple(AbstractArray(graph, m) for m in made)
            return AbstractArray(graph, made)

    def memory(self, array: Any) -> Any:
        """The array itself, as the engine has it."""
        return np.asarray(array) if isinstance(array, np.generic) else array

    def draw(self) -> None:
        """What is drawn is found out in the end."""

    def arrived(self, had: Any, new: Any, node: Any) -> Any:
        """The sum, as the engine makes it."""
        return new if had is None else had + new

    def total(self, arrived: Any) -> Any:
        """The same."""
        return arrived


def _varies(leaf: Any) -> bool:
    """Whether a leaf of a result is no constant of Python's, which a trace gives as it is."""
    return not (leaf is None or isinstance(leaf, (str, bool, int, float, complex)))


def _abstract(operands: list[Any]) -> list[AbstractArray]:
    found = [a for a in operands if type(a) is AbstractArray]
    for a in operands:
        if type(a) in (list, tuple):
            found += [v for v in a if type(v) is AbstractArray]
    return found


def _operation(graph: NumpyProgram, array: Any) -> Operation:
    return array._op if type(array) is AbstractArray else graph.constant(array)

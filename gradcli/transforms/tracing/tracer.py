"""The tracer of primitives: runs each on the layouts of its traced operands, and keeps the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, itemgetter
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.anomaly import running
from gradcli.engine.core.backward_pass import grad
from gradcli.engine.core.tensor import Scalar, Tensor, wrap
from gradcli.operators.movement.casting import stop_gradient
from gradcli.transforms.tracing import memory_places
from gradcli.transforms.tracing.calls import Call, Value, calls, operands_of
from gradcli.transforms.tracing.traced_arrays import NUMBERS, MemoryCell, TracedArray

DECIDES = (
    "which way the program goes depends on the variables' values: give each of them one, or write "
    "where(condition, a, b)"
)
MOST_BRANCHES = 12  # of a program, one after the other
BATCHES = "a batch inside of a program (vmap, is_grads_batched) has no form as an expression"
COUNTS = (
    "how many elements there are depends on the variables' values: give each of them one, or write "
    "where(condition, a, 0)"
)
DRAWS = "the program draws random numbers, which no expression can hold: bind them to a variable instead"


def _held(array: TracedArray) -> Value:
    """What an array holds now; it is read anew only where its memory was written since."""
    if array._version == array.cell.version and array._value is not None:
        return array._value
    return array.value


class _Arrived(list[tuple[int, Any]]):
    """The gradients that have arrived at a node, and the place of each in their sum."""


class Tracer:
    """A tracer of primitives, as the engine's state knows it (see `gradcli.engine.core.modes.TraceHooks`).

    follow: whether the program may branch on values. followed: whether it did. path: the branches to take
    where it asks, True where that ends. taken: the conditions, with the branches. again: whether the
    gradients will be differentiated again, so that constants of the tape are traced as `stop_gradient`.
    asked: the conditions that were followed, with what they were. beyond: whether as_strided read memory
    outside of its operand, which has no gradient in PyTorch.
    variables: the tensors by name; inputs: their values at the start.
    """

    tensors = True

    def __init__(
        self, follow: bool = False, again: bool = False, path: Sequence[bool] | None = None
    ) -> None:
        self.path, self.taken = path, list[tuple[Value, bool]]()
        self.follow, self.followed, self.again = follow, False, again
        self.asked = list[tuple[Value, bool]]()  # conditions that were followed, and where they led
        self._held: dict[int, tuple[Value, Value]] = {}  # what was held constant, and as what
        self.variables: dict[str, Tensor] = {}
        self.inputs: dict[str, Value] = {}
        self.beyond = False
        self.assigned: dict[str, Any] = {}  # the program's own names, and what they hold at its end
        self.refused: Exception | None = None
        self._computing = False  # a kernel runs, on arrays
        self._followed: dict[int, Any] = {}  # nodes from which the tape goes on to the variables
        self._places: dict[int, int] = {}  # of nodes: where a sum has what they add

    # -- what the engine asks ----------------------------------------------------------------------
    def call(self, primitive: Any, values: list[Any]) -> Any:
        """Run a primitive on tensors; the call is kept if an operand is traced."""
        if self._computing:
            return primitive.computed(values)
        if primitive.rare:
            raise self.refuse(BATCHES)
        if primitive.view:
            values[0].memory()  # shared from now on
        given: list[TracedArray] = []
        args, plain = [], []
        for value, kind in zip(values, primitive.kinds, strict=True):
            if kind == "option":
                self._check_option(primitive, value)
            arg, operand = self._operand(value, primitive.view, given)
            args.append(arg)
            plain.append(operand)
        if not given:
            return self._compute(primitive, plain)
        found = self._compute(primitive, plain)
        if self.again and not primitive.view and modes.is_grad_enabled():
            self._hold(primitive, values, args)
            given = [
                TracedArray(self, v.value, v) for v in operands_of(Call(primitive, tuple(args)))
            ]
        results = (found,) if primitive.returns_one else tuple(found)
        self._check_rule(primitive, values, results)
        held = [_held(r) for r in given]
        self._check_shape(primitive, held)
        if all(v.call is None and v.name is None for v in held):
            if not primitive.view:
                return found
            call = None
        else:
            call = Call(
                primitive, tuple(args), running.node.span if running.node is not None else None
            )
        known = all(v.known for v in held)
        made = [self._made(primitive, r, call, i, known, given) for i, r in enumerate(results)]
        if call is not None:
            call.outputs = tuple([m._value for m in made])
        return made[0] if primitive.returns_one else tuple(made)

    def run(self, primitive: Any, operands: list[Any]) -> Any:
        """A primitive on arrays and options."""
        if self._computing or not any(
            type(v) is TracedArray
            for o in operands
            for v in (o if type(o) in (list, tuple) else (o,))
        ):
            return primitive.compute(operands)
        return self.call(
            primitive,
            [self._as_operand(o, k) for o, k in zip(operands, primitive.kinds, strict=True)],
        )

    def memory(self, array: Any) -> Any:
        """The array with its own `MemoryCell`, since tensors may come to share it."""
        if self._computing:
            return np.asarray(array)
        if type(array) is TracedArray:
            return array
        # A copy, so that what was read of the array so far stays what it was.
        return TracedArray(self, np.array(array), Value(np.array(array), known=True))

    def draw(self) -> None:
        """Random numbers are about to be drawn."""
        raise self.refuse(DRAWS)

    def arrived(self, had: Any, new: Any, node: Any) -> Any:
        """Add a gradient to those that have arrived at a node, with its place in their sum."""
        place = self._places.get(id(node), 0)
        if type(had) is not _Arrived:
            had = _Arrived([] if had is None else [(0, had)])
        had.append((place, new))
        return had

    def total(self, arrived: Any) -> Any:
        """The sum of these gradients in program order; the backward pass brings them in reverse."""
        if type(arrived) is not _Arrived:
            return arrived
        arrived.sort(key=itemgetter(0))
        return reduce(add, [g for _, g in arrived])

    def decided(self, array: TracedArray) -> bool:
        """The truth value of an array, if the program may branch on it."""
        if not array.known:
            if self.path is not None and array.size == 1 and len(self.taken) < MOST_BRANCHES:
                return self._branch(array.value)
            if not self.follow:
                raise self.refuse(DECIDES)
            self.followed = True
            self.asked.append((array.value, bool(array.layout)))
        return bool(array.layout)

    def _branch(self, condition: Value) -> bool:
        """The branch that the path takes; the same where a condition is asked for again."""
        assert self.path is not None
        for known, branch in self.taken:
            if known is condition:
                return branch
        branch = self.path[len(self.taken)] if len(self.taken) < len(self.path) else True
        self.taken.append((condition, branch))
        return branch

    def refuse(self, message: str) -> RuntimeError:
        """The error for what cannot be traced; a program that catches it is refused all the same."""
        self.refused = RuntimeError(message)
        if running.node is not None:
            self.refused.span = running.node.span  # type: ignore[attr-defined]
        return self.refused

    # -- operands and results ----------------------------------------------------------------------
    def _operand(self, value: Any, view: bool, given: list[TracedArray]) -> tuple[Any, Any]:
        """(as the trace keeps it, as the kernel gets it); `given` collects the traced arrays."""
        if isinstance(value, Tensor):
            array = value.array
            if type(array) is TracedArray:
                given.append(array)
                self._locate(value)
                layout = array.layout
                out = wrap(layout if view or layout.ndim else layout[()])
                out.wrapped = value.wrapped
                return _held(array), out
            return Value(array, known=True), value  # never written: see `memory`
        if type(value) is Scalar:
            return value.value, value
        if type(value) is list or type(value) is tuple:
            pairs = [self._operand(v, view, given) for v in value]
            kind = type(value)
            return kind([a for a, _ in pairs]), kind([o for _, o in pairs])
        return value, value

    def _locate(self, tensor: Tensor) -> None:
        """Copy the span from a tensor's node, which knows it by now, to the traced call."""
        call = _held(tensor.array).call
        if call is not None and call.span is None:
            node = tensor.grad_fn
            if node is not None:
                call.span = node.span

    def _as_operand(self, value: Any, kind: str) -> Any:
        if kind == "option" or value is None:
            return value
        if kind == "list":
            return [v if v is None else wrap(v) for v in value]
        if isinstance(value, (bool, int, float, complex)):
            return Scalar(np.asarray(value)[()], value)
        return wrap(value)

    def _hold(self, primitive: Any, values: list[Any], args: list[Any]) -> None:
        """Mark operands with `stop_gradient` that the tape holds constant, beside differentiated ones."""
        flat = [v for value in values for v in (value if type(value) in (list, tuple) else [value])]
        if not any(isinstance(v, Tensor) and v.requires_grad for v in flat):
            return
        for i, (value, arg) in enumerate(zip(values, args, strict=True)):
            if type(arg) in (list, tuple):
                args[i] = type(arg)([self._as_held(v, a) for v, a in zip(value, arg, strict=True)])
            else:
                args[i] = self._as_held(value, arg)

    def _as_held(self, value: Any, arg: Any) -> Any:
        if not (isinstance(arg, Value) and arg.moves and isinstance(value, Tensor)):
            return arg
        if self._is_followed(value) or arg.value.dtype.kind not in "fc":
            return arg
        if id(arg) not in self._held:
            primitive: Any = stop_gradient
            call = Call(primitive, (arg,))
            made = Value(arg.value, None, call, known=arg.known)
            call.outputs = (made,)
            self._held[id(arg)] = arg, made
        return self._held[id(arg)][1]

    def _is_followed(self, tensor: Tensor) -> bool:
        """Whether the tape goes on from a tensor to the variables: a view that was made without grad mode
        requires grad, as in PyTorch, and is a leaf.
        """
        if not tensor.requires_grad:
            return False
        own = {id(v) for v in self.variables.values()}
        if tensor.is_leaf:
            return id(tensor) in own
        first: Any = tensor.grad_fn
        stack, seen = [first], set[int]()
        while stack:
            node = stack.pop()
            if id(node) in self._followed or id(getattr(node, "variable", None)) in own:
                self._followed[id(first)] = first
                return True
            if id(node) not in seen:
                seen.add(id(node))
                stack += [n for n, _ in node.next_functions if n is not None]
        return False

    def _compute(self, primitive: Any, values: list[Any]) -> Any:
        self._computing = True
        try:
            with np.errstate(all="ignore"):
                return primitive.computed(values)
        finally:
            self._computing = False

    def _made(
        self,
        primitive: Any,
        result: Any,
        call: Call | None,
        index: int,
        known: bool,
        given: list[TracedArray],
    ) -> TracedArray:
        moves = any(_held(g).moves for g in given)
        if primitive.view:
            plain = np.array(result) if call is None else result
            value = Value(plain, None, call, index, known, moves)
            out = TracedArray(self, result, value, given[0].cell)
            if "stride" in primitive.names and call is not None:  # says where it lies, and no more
                out._version = -1
                self.beyond = self.beyond or not memory_places.within(result, given[0].layout)
            return out
        layout = np.asarray(result)
        if any(np.may_share_memory(layout, g.layout) for g in given):
            layout = np.array(layout)
        return TracedArray(self, layout, Value(layout, None, call, index, known, moves))

    def _check_option(self, primitive: Any, value: Any) -> None:
        for v in value if type(value) in (list, tuple) else [value]:
            if isinstance(v, Tensor) and v.requires_grad and type(v.array) is TracedArray:
                raise NotImplementedError(
                    f"{primitive.public_name}: a variable is taken as a number here, so that there is no "
                    "derivative by it"
                )

    def _check_shape(self, primitive: Any, held: list[Value]) -> None:
        """Refuse a result shape that depends on values, unless the program may branch on them."""
        if not primitive.dynamic or modes.current().rules:
            return
        if any(
            not v.known and (primitive.dynamic == "always" or v.value.dtype.kind == "b")
            for v in held
        ):
            if not self.follow:
                raise self.refuse(COUNTS)
            self.followed = True

    def _check_rule(self, primitive: Any, values: list[Any], results: tuple[Any, ...]) -> None:
        """Refuse a primitive without a derivative, which would be taken for a constant."""
        if primitive.vjps or primitive.node is not None or not modes.is_grad_enabled():
            return
        if not any(r.dtype.kind in "fc" for r in results):
            return
        if any(isinstance(v, Tensor) and v.requires_grad for v in values):
            raise NotImplementedError(
                f"the derivative of {primitive.public_name} is not known: hold it constant with detach(), or "
                "write it another way"
            )

    # -- programs ----------------------------------------------------------------------------------
    def variable(self, name: str, array: Any, requires_grad: bool = False) -> Tensor:
        """A tensor for a variable of this name."""
        layout = np.array(array)
        self.inputs[name] = Value(layout, name, moves=requires_grad)
        out = self.variables[name] = wrap(
            TracedArray(self, layout, self.inputs[name]), requires_grad
        )
        out.label = name
        return out

    def number(self, name: str, value: Any) -> Tensor:
        """A constant that keeps its name in the trace."""
        layout = np.asarray(value)
        self.inputs[name] = Value(layout, name, known=True)
        out = wrap(TracedArray(self, layout, self.inputs[name]))
        out.wrapped = True
        return out

    def value_of(self, value: Any) -> Value:
        """The traced value of a tensor or an array."""
        array = value.array if isinstance(value, (Tensor, Scalar)) else value
        return _held(array) if type(array) is TracedArray else Value(np.array(array), known=True)

    def read(self, cell: MemoryCell, part: Any) -> Value:
        """The traced value of a part of memory, as it is now."""
        return memory_places.read(self, cell, part)

    def write(self, target: TracedArray, given: Any) -> None:
        """Write values of the target's shape over it."""
        memory_places.write(self, target, given)

    def tensor(self, value: Value) -> Tensor:
        """A tensor that holds a value of the trace."""
        return wrap(TracedArray(self, np.array(value.value), value))

    def running(self, function: Callable[[], Any]) -> Any:
        """The result of a function that runs under this tracer; the thread's modes are restored.

        Raises RuntimeError where it asks for numbers, or draws them.
        """
        with modes.changed(recorder=self):
            result = function()
        if self.refused is not None:
            raise self.refused
        return result

    def gradients(self, output: Tensor, inputs: Sequence[Tensor]) -> list[Value | None]:
        """The gradients of the sum of a tensor, by the engine's own backward pass; recorded.

        None for what the output does not depend on.
        """
        if not output.requires_grad:
            return [None] * len(inputs)
        # Known, and yet no constant: what is done with it is recorded.
        ones = np.ones(output.array.shape, output.array.dtype)
        cotangent = wrap(TracedArray(self, ones, Value(ones, "", known=True)))

        if type(output.array) is TracedArray:
            self._locate(output)
        self._places = places_of(output)

        def run() -> Any:
            return grad(output, list(inputs), cotangent, create_graph=self.again, allow_unused=True)

        found = self.running(run)
        values = [None if g is None else self.value_of(g) for g in found]
        if self.again:
            return [self._as_held(g, v) for g, v in zip(found, values, strict=True)]
        return values


def places_of(output: Tensor) -> dict[int, int]:
    """The nodes of a graph, depth first: a node before its operands, and operands in order."""
    found: dict[int, int] = {}
    stack: list[tuple[Any, bool]] = [(output.grad_fn, output.grad_fn is None)]
    done = 0
    while stack:
        node, ready = stack.pop()
        if ready:
            done -= 1
            found[id(node)] = done
        elif id(node) not in found:
            found[id(node)] = 0
            stack.append((node, True))
            stack += [(n, False) for n, _ in node.next_functions if n is not None]
    return found


def trace_program(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    wrt: Sequence[str] = (),
    follow: bool = False,
    numbers: Mapping[str, Any] | None = None,
    again: bool = False,
    path: Sequence[bool] | None = None,
) -> tuple[Any, Tracer]:
    """Trace a function of tensors that are passed by name: (its result, the tracer).

    arrays: the variables by name; wrt: those that require grad. follow: whether the program may branch on
    values. numbers: constants that keep their names. again: whether gradients will be differentiated again.
    path: the branches to take, see `Tracer`.
    """
    found = Tracer(follow, again, path)
    space = {n: found.number(n, v) for n, v in (numbers or {}).items()}
    for name, array in arrays.items():
        space[name] = found.variable(name, array, name in wrt)
    return found.running(lambda: function(**space)), found


def decomposition(call: Call) -> list[Value]:
    """The primitives that a call's kernel consists of, as a trace. Raises what the kernel raises."""
    found = Tracer()

    def operand(value: Any) -> Any:
        if isinstance(value, Value):
            return TracedArray(found, np.array(value.value), value)
        if type(value) in (list, tuple):
            return type(value)([operand(v) for v in value])
        return value

    args = [operand(a) for a in call.args]
    with modes.changed(recorder=found, enabled=False, rules=False), np.errstate(all="ignore"):
        result = call.primitive.compute(args)
    results = result if isinstance(result, (tuple, list)) else [result]
    values = [found.value_of(r) for r in results]
    for inner in calls(values):
        inner.span = inner.span or call.span
    return values


__all__ = ["DECIDES", "DRAWS", "NUMBERS", "Tracer", "decomposition", "trace_program"]

"""Straight-line Python for a primitive's recorded call.

The code is generated from the primitive alone, and carries the primitive's kernel and node class as values.
What it does not cover (unusual operands or thread state) goes to `Primitive.call_any`, which has its nodes
made by the same lines (`record`). In them, the operand at position i is `t{i}`, its array `a{i}`, its edge
`e{i}`, an option `o{i}`; `y` is the result as an array and `out` as a tensor, `y{k}` and `out{k}` are one
of several, `n` is the node.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import modes, versions
from gradcli.engine.core.hooks import RARE
from gradcli.engine.core.node import Meta, Port, meta, new
from gradcli.engine.core.promotion import promote, shape_error
from gradcli.engine.core.switch import watching
from gradcli.engine.core.tensor import (
    LAZY,
    SUBCLASSES,
    Scalar,
    Tensor,
    edge,
    inference_error,
    link_lazily,
    scalar,
    track,
)
from gradcli.engine.system.array_memory import as_operands, element_strides, geometry

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Declaration

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()  # no argument given
_MADE: dict[str, Any] = {}  # primitives of one shape share the work of compiling


def generated(name: str, signature: str, body: list[str], values: dict[str, Any]) -> Any:
    """The function of that source, with `values` for its globals."""
    source = f"def {name}({signature}):\n " + "\n ".join(body)
    code = _MADE.get(source)
    if code is None:
        code = _MADE[source] = compile(source, f"<gradcli {name}>", "exec")
    space = {"__name__": __name__, **values}
    exec(code, space)
    made = space[name]
    # A copy of the code: the interpreter specializes it to the types that it meets, a primitive's own.
    made.__code__ = made.__code__.replace()
    return made


def call(primitive: Declaration, fallback: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The function that runs and records the primitive.

    Fast for most primitives of a fixed number of tensors and results; others get `general` itself.
    fallback: what an operator of Python calls instead of `general` for unusual operands.
    """
    general = fallback or _general(primitive)
    if not straight(primitive):
        return lambda *args, **kwargs: general(args, kwargs)
    if fallback is None:
        return _straight(primitive, general, {i: f"o{i}.__class__ is int" for i in primitive.whole})
    local = _local(primitive)
    spec = [f"{v}=defaults[{n!r}]" if n in primitive.defaults else v for n, v in local.items()]
    at = len(local) - primitive.keyword_only
    first = ", ".join(list(local.values())[:at])
    named = ", ".join(f"{n!r}: {v}" for n, v in list(local.items())[at:])
    otherwise = f"return general(({first},), {{{named}}})"

    def make(silent: str, kind: str = "") -> Callable[..., Any]:
        body = _operands(primitive, otherwise, silent)
        space = _later(make, silent or kind)
        return _made(
            primitive, ", ".join(spec), body, general, primitive.plain, space, kind, otherwise
        )

    return make(", ".join(local.values()))


def _general(primitive: Declaration) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    general, ordered, count = primitive.call_any, primitive.call_in_order, len(primitive.names)

    def call(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        args = given(args)
        whole = len(args) == count and not named
        return ordered(args, count) if whole else general(args, named)

    return call


def bound(
    primitive: Declaration,
    unusual: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    tests: dict[int, str],
    space: dict[str, Any],
    numbers: bool = False,
    lone: Container[int] = (),
) -> Callable[..., Any] | None:
    """`call` for users: all but the usual classes of arguments goes to `unusual(args, named)`.

    tests: by position, the expression that is true of an option (`o1`) of a usual class; space: the names
    in these. numbers: taken for tensors. lone: the positions of options of which one int is a sequence.
    None where straight-line code does not cover the primitive.
    """
    if not straight(primitive) or not all(
        n in primitive.defaults
        for n in primitive.names[len(primitive.names) - primitive.keyword_only :]
    ):
        return None
    return _straight(
        primitive, unusual, tests, numbers or primitive.numbers, primitive.keyword_only, space, lone
    )


def _straight(
    primitive: Declaration,
    unusual: Callable[..., Any],
    tests: dict[int, str],
    numbers: bool = True,
    keyword_only: int = 0,
    space: dict[str, Any] | None = None,
    lone: Container[int] = (),
) -> Callable[..., Any]:
    local = _local(primitive)
    slots = list(local.values())[: len(local) - keyword_only]
    otherwise = f"return general(({''.join(f'{v}, ' for v in slots)}*more), named)"
    first: list[str] = []
    body: list[str] = []
    for i, (name, variable) in enumerate(local.items()):
        test, default = tests.get(i), f"{variable} = defaults[{name!r}]"
        if variable not in slots:
            (first if i in primitive.tensors else body).append(default)
        elif primitive.kinds[i] == "optional":
            continue
        elif name in primitive.defaults:
            body.append(f"if {variable} is missing: {default}")
            body += [f"elif not ({test}): {otherwise}"] if test else []
        elif variable[0] == "o":
            body.append(f"if not ({test or f'{variable} is not missing'}): {otherwise}")
        if i in lone:
            body.append(f"if {variable}.__class__ is int: {variable} = ({variable},)")
    spec = ", ".join([*(f"{v}=missing" for v in slots), "/", "*more", "**named"])

    def make(silent: str, kind: str = "") -> Callable[..., Any]:
        operands = _operands(primitive, otherwise, silent, " or more or named", numbers)
        globals_ = (space or {}) | _later(make, silent or kind)
        lines = [*first, *operands, *body]
        return _made(primitive, spec, lines, unusual, None, globals_, kind, otherwise)

    return make(f"{', '.join(slots)}, *more, **named")


class _Later:
    """A variant of a call, made when it is first called; from then on the call's code has it at `name`."""

    def __init__(self, make: Callable[[str, str], Any], name: str, kind: str) -> None:
        self.make, self.name, self.kind = make, name, kind
        self.home: dict[str, Any] = {}
        self.found: Any = None  # a copy of the code with other globals comes here again

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.found is None:
            self.found = self.home[self.name] = self.make("", self.kind)
        return self.found(*args, **named)


def _later(make: Callable[[str, str], Any], silent: str) -> dict[str, Any]:
    """What the code calls where nothing is recorded, where it need not look at modes, and in a batch."""
    kinds = {"silently": "", "plainly": "plainly", "mapped": "mapped"} if silent else {}
    return {name: _Later(make, name, kind) for name, kind in kinds.items()}


def _local(primitive: Declaration) -> dict[str, str]:
    """The variables of the code, by argument."""
    return {
        n: f"t{i}" if i in primitive.tensors else f"o{i}" for i, n in enumerate(primitive.names)
    }


def _variable(primitive: Declaration, name: str) -> str:
    """The variable of an argument or of a result."""
    if name in primitive.position:
        return _local(primitive)[name]
    at: int = primitive.outputs.index(name)
    return _each(primitive, "y")[at]


def _each(primitive: Declaration, letter: str) -> list[str]:
    """The variables of the results."""
    numbers = [""] if primitive.returns_one else range(len(primitive.outputs))
    return [f"{letter}{k}" for k in numbers]


def _made(
    primitive: Declaration,
    spec: str,
    operands: list[str],
    general: Callable[..., Any],
    plain: str | None,
    space: dict[str, Any],
    kind: str,
    otherwise: str,
) -> Callable[..., Any]:
    """The code of a call; space: with `silently`, or it records nothing. kind: "mapped": in a batch."""
    count = len(primitive.names)
    again = f"ordered(({''.join(f'{v}, ' for v in _local(primitive).values())}), {count})"
    slowly = [*_promotion(primitive), *_result(primitive, plain)]
    if recorded := "silently" in space and bool(primitive.vjps):
        slowly += _admit(primitive, again)
    if "C" in primitive.refuses:  # whether it is recorded is for `ordered` to look at
        slowly.insert(0, f"if a0.dtype.kind == 'c': return {again}")
    body = [
        *operands,
        *(_quickly(primitive, plain, slowly) if primitive.real and recorded else slowly),
        *(hang(primitive) if recorded else bare(_each(primitive, "out"))),
        f"return {', '.join(_each(primitive, 'out'))}",
    ]
    values = {"Node": primitive.node_type, "defaults": primitive.defaults, "general": general}
    values |= {
        "kernel": primitive.kernel,
        "promote": promote,
        "refusal": primitive.unsupported_error,
    }
    values["ordered"], values["primitive"] = primitive.call_in_order, primitive
    if kind == "mapped":
        body, more = mapped(primitive, spec, operands, otherwise)
        values |= more
    made = generated("call", spec, body, values | space | _RUNTIME)
    for later in space.values():
        if later.__class__ is _Later:
            later.home = made.__globals__
    made.__name__ = made.__qualname__ = primitive.name  # as errors and `repr` tell it
    return made


# Attached in core/__init__: the lines of a call in a batch, and what they call (core.mapped_calls).
mapped: Any = None


def is_mappable(primitive: Declaration) -> bool:
    """Whether calls in a batch have code of their own."""
    return primitive.returns_one and all(primitive.kinds[i] == "tensor" for i in primitive.tensors)


def record(primitive: Declaration) -> Callable[[list[Any], tuple[Any, ...], tuple[Any, ...]], Any]:
    """`record(values, results, edges)`: the node of a call of any primitive; results: as arrays."""
    lists = any(primitive.kinds[i] == "list" for i in primitive.differentiated)
    body = [
        *_unpacked(primitive),
        *([] if lists else [f"{''.join(f'e{i}, ' for i in primitive.differentiated)} = edges"]),
        *(["edges = tuple(filter(None, edges))"] if primitive.node == "NotImplemented" else []),
        *_refusals(primitive),
        "m = Meta(results[0].shape, results[0].dtype)",
        *_record(primitive, "n = Node()"),
        "return n",
    ]
    values = {"Node": primitive.node_type, "RARE": RARE}
    return generated("record", "values, results, edges", body, values | _RUNTIME)


@cache
def option(primitive: Declaration, field: str) -> Callable[[list[Any], tuple[Any, ...]], Any]:
    """`option(values, results)`: what a rule asks for of a call that is not a tensor."""
    body = [*_unpacked(primitive), f"return {_option(primitive, field)}"]
    return generated("option", "values, results", body, _RUNTIME)


def _unpacked(primitive: Declaration) -> list[str]:
    """From a call's operands and results to the variables of the code."""
    body = [f"{''.join(f'{v}, ' for v in _local(primitive).values())} = values"]
    body += [f"a{i} = t{i}.array" for i in primitive.tensors if primitive.kinds[i] == "tensor"]
    if not primitive.returns_list:
        body += [f"{''.join(f'{_variable(primitive, y)}, ' for y in primitive.outputs)} = results"]
    return body


def straight(primitive: Declaration) -> bool:
    """Whether straight-line code covers the primitive."""
    kinds = [primitive.kinds[i] for i in primitive.tensors]
    unlike = "optional" in kinds or "list" in kinds
    return (
        not (primitive.returns_list or primitive.discrete or primitive.rare)
        and (primitive.flat or _joins(primitive) if primitive.vjps else not primitive.view)
        and primitive.tensors[:1] == (0,)
        and (kinds[0] == "tensor" or _joins(primitive))
        and all(primitive.kinds[i] != "list" for i in primitive.differentiated[1:])
        and not (primitive.types and len(kinds) > 2)
        and not (unlike and ((primitive.types and not _joins(primitive)) or primitive.refuses))
        and all(
            f in primitive.position or measured(f)[0] in primitive.position
            for f in primitive.option_fields
        )
    )


def _joins(primitive: Declaration) -> bool:
    """Whether the primitive makes one tensor of a list of them."""
    return primitive.kinds[:1] == ("list",) and primitive.tensors == primitive.differentiated == (
        0,
    )


def given(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without the places that nothing was given for."""
    while args and args[-1] is MISSING:
        args = args[:-1]
    return args


# -- the parts of the code -------------------------------------------------------------------------
def _operands(
    primitive: Declaration, unusual: str, silent: str, more: str = "", numbers: bool = True
) -> list[str]:
    """From the arguments to arrays; numbers become operands, all else is unusual.

    silent: the arguments of the same code without recording; "" in that code.
    """
    strange = " or ".join(
        _by_kind(
            primitive,
            i,
            "({}.__class__ is not Tensor and {}.__class__ not in subclasses)",
            "({}.__class__ is not Tensor and {} is not None and {} is not missing"
            " and {}.__class__ not in subclasses)",
            "not are_tensors({}, only)" if _joins(primitive) else "not are_tensors({})",
        )
        for i in primitive.tensors
    )
    # While a rule runs, tensors are recorded as ever; numbers select primitives of their own.
    body = ["if special and (s := local.state) is not None and not s.ordinary:"] if silent else []
    if silent and not primitive.view:
        body.append(f" if s.silent and not within: return silently({silent})")
    if silent and is_mappable(primitive):
        body.append(f" if s.mapped: return mapped({silent})")
    body += [f" {unusual}"] if silent else []
    if primitive.tensors != (0, 1) or set(primitive.kinds) & {"optional", "list"} or not numbers:
        body += [f"if {strange}{more}: {unusual}"]
    else:
        # Differences refuse bools, in words that are `general`'s.
        numbers_ = "strict_numbers" if primitive.types == "numbers" else "numbers"
        body += [f"if {more.removeprefix(' or ')}: {unusual}"] if more else []
        body += [
            f"if {strange}:",
            *_in_rules(primitive, unusual),
            f" if t1.__class__ in {numbers_} and {_is_tensor('t0')}: t1 = scalar(t1, t0)",
            f" elif t0.__class__ in {numbers_} and {_is_tensor('t1')}: t0 = scalar(t0, t1)",
            f" else: {unusual}",
        ]
    if not more:
        body += [f"if o{i}.__class__ is not int: {unusual}" for i in primitive.whole]
    body += [
        f"if t{i} is missing: t{i} = None"
        for i in primitive.tensors
        if primitive.kinds[i] == "optional"
    ]
    arrays = (
        "{}.array",
        "{}.array if {} is not None else None",
        "[v.array if v is not None else None for v in {}]",
    )
    body += [f"a{i} = {_by_kind(primitive, i, *arrays)}" for i in primitive.tensors]
    if primitive.view:
        body += ["if a0.__class__ is not ndarray: a0 = t0.memory()"]
    return body


def _is_tensor(variable: str) -> str:
    return f"({variable}.__class__ is Tensor or {variable}.__class__ in subclasses)"


def _in_rules(primitive: Declaration, unusual: str) -> list[str]:
    """In a rule a number beside a tensor selects a primitive of its own."""
    if primitive.scalar is None:
        return []
    usual = "t1.__class__ in numbers and t0.__class__ is Tensor"
    for i, name in enumerate(primitive.names[2:], 2):
        usual += f" and (o{i} is missing or o{i} is defaults[{name!r}])"
    return [
        " if special and (s := local.state) is not None and s.rules:",
        f"  if (s.ordinary or s.mapped) and {usual}: return primitive.scalar.call(t0, t1)",
        f"  {unusual}",
    ]


def _by_kind(primitive: Declaration, i: int, tensor: str, optional: str, many: str = "") -> str:
    """An expression in the operand at a position, which may be left out, or a list."""
    text = {"tensor": tensor, "optional": optional, "list": many}[primitive.kinds[i]]
    return text.replace("{}", f"t{i}")


_LISTS = frozenset([list, tuple])
_LISTED: frozenset[type] = frozenset([Tensor, type(None)])
_ONLY: frozenset[type] = frozenset([Tensor])


def _are_tensors(values: Any, kinds: frozenset[type] = _LISTED) -> bool:
    """Whether a value is a list of tensors, of which some may be left out; `_ONLY`: none, nor all."""
    found = {v.__class__ for v in values} if values.__class__ in _LISTS else None
    return found == kinds if kinds is _ONLY else found is not None and found <= kinds


def mixes(primitive: Declaration) -> bool:
    """Whether operands may need a cast: then `same` says that they have one dtype, `t`."""
    return primitive.types == "float" or (
        primitive.types is not None and len(primitive.tensors) == 2
    )


def _promotion(primitive: Declaration) -> list[str]:
    body = []
    arrays = [f"a{i}" for i in primitive.tensors]
    if _joins(primitive) and primitive.types:
        return [f"a0 = promote({primitive.types!r}, *t0)"]
    if mixes(primitive):
        same = [f"{a}.dtype is t" for a in arrays[1:]]
        if primitive.types == "float":
            same += ["(t is float64 or t.kind in 'fc')"]
        tensors = ", ".join(f"t{i}" for i in primitive.tensors)
        wide = ", wide=True" if primitive.wide else ""
        body += [
            "t = a0.dtype",
            f"same = {' and '.join(same)}",
            f"if not same: {', '.join(arrays)}, = promote({primitive.types!r}, {tensors}{wide})",
        ]
    if primitive.refuses:
        shapes = ", ".join(f"{a}.shape" for a in arrays)
        half = " or a0.dtype.char == 'e'" if "e" in primitive.refuses else ""
        body += [
            f"if a0.dtype.kind in {''.join(primitive.refuses)!r}{half}: raise refusal(a0.dtype, {shapes})"
        ]
    return body


# Kernels that are Python's own operators, written as such.
_SYMBOLS: dict[Any, str] = {operator.mul: "*", operator.truediv: "/"}


def _kernel(primitive: Declaration, plain: str | None) -> str:
    """The kernel's call on arrays. plain: the kernel as Python's operator."""
    symbol = _SYMBOLS.get(primitive.kernel) or plain
    passed = []
    for i, name in enumerate(primitive.names):
        value = f"a{i}" if i in primitive.tensors else f"o{i}"
        passed.append(
            value if i < len(primitive.names) - primitive.keyword_only else f"{name}={value}"
        )
    return f"a0 {symbol} a1" if symbol else f"kernel({', '.join(passed)})"


def _result(primitive: Declaration, plain: str | None) -> list[str]:
    """From arrays to the tensor `out`, or several, not recorded yet."""
    run = f"{', '.join(_each(primitive, 'y'))} = {_kernel(primitive, plain)}"
    arrays = ", ".join(f"a{i}" for i in primitive.tensors)
    body = [run]
    if len(primitive.tensors) > 1 or not (primitive.flat and primitive.returns_one):
        body = [
            f"try: {run}",
            f"except ValueError as error: raise shape_error(error, [{arrays}]) from None",
        ]
    if primitive.wide:
        body += ["if not same and a0.dtype != a1.dtype: y = y.astype(half)"]
    body += _laid_out(primitive, "a0.ndim > 1") + shown(primitive)
    for out, y in zip(_each(primitive, "out"), _each(primitive, "y"), strict=True):
        body += [f"{out} = new(Tensor)", f"{out}.array = {y}"]
    if primitive.view:
        body += ["out.node = None", "track(out, t0)"]
    return body


def shown(primitive: Declaration) -> list[str]:
    """Tell whoever looks for points at which the primitive has a switch, or its rules fail."""
    if not primitive.is_watched:
        return []
    operands = "".join(
        f"{'a' if i in primitive.tensors else 'o'}{i}, " for i in range(len(primitive.names))
    )
    made = "".join(f"{y}, " for y in _each(primitive, "y"))
    values = "".join(f"{v}, " for v in _local(primitive).values())
    return [f"if watching: watching[-1](primitive, ({operands}), ({made}), ({values}))"]


def _laid_out(primitive: Declaration, deep: str) -> list[str]:
    """The result in its operands' order; where the first lies by row, that is NumPy's, too."""
    arrays = ", ".join(f"a{i}" for i in primitive.tensors)
    order = f"if {deep} and not a0.flags.c_contiguous: y = as_operands(y, {arrays})"
    return [order] if primitive.broadcasts else []


def _quickly(primitive: Declaration, plain: str | None, slowly: list[str]) -> list[str]:
    """All that where operands of one shape and dtype are recorded: then the result has them too."""
    edges = [f"e{i}" for i in primitive.tensors]
    same = [f"{e}._meta is e0._meta" for e in edges[1:]]
    leaf = "None if inferred and t{0}.inference else t{0}.accumulates()"
    return [
        *(f"{e} = t{e[1:]}.node" for e in edges),
        *(f"if {e} is LAZY: {e} = {leaf.format(e[1:])}" for e in edges),
        f"if {' and '.join([*(f'{e} is not None' for e in edges), *same])}:",
        f" y = {_kernel(primitive, plain)}",
        " m = e0._meta",
        *(f" {line}" for line in [*_laid_out(primitive, "m.deep"), *shown(primitive)]),
        " out = new(Tensor)",
        " out.array = y",
        "else:",
        *(f" {line}" for line in slowly),
    ]


def _admit(primitive: Declaration, again: str) -> list[str]:
    """Return `out` as it is where nothing is recorded; the edges and the result's Meta."""
    if _joins(primitive):
        return [
            "if all([v.node is None for v in t0]):",
            *(f" {line}" for line in bare(["out"])),
            " return out",
            f"if inferred and any(v.inference for v in t0): return {again}",
            f"if y.dtype.kind not in 'fc': return {again}",
            "edges = tuple([edge(v) for v in t0])",
            "m = meta(y.shape, y.dtype)",
        ]
    edges = [f"e{i}" for i in primitive.differentiated]
    nodes = "{}.node", "{}.node if {} is not None else None"
    body = [f"e{i} = {_by_kind(primitive, i, *nodes)}" for i in primitive.differentiated]
    nothing = " and ".join(f"{e} is None" for e in edges)
    inference = (
        "{}.inference",
        "{} is not None and {}.inference",
        "any(v is not None and v.inference for v in {})",
    )
    inferred = " or ".join(_by_kind(primitive, i, *inference) for i in primitive.tensors)
    outs, results = _each(primitive, "out"), _each(primitive, "y")
    none_floats = " and ".join(
        f"{y}.dtype.kind not in 'fc'" for y in results[: primitive.differentiable]
    )
    # What cannot change the dtype of its operands needs no second look at the result's.
    look = not primitive.real and (
        primitive.linearity is None or len(primitive.names) > len(primitive.tensors)
    )
    # Of operands of several dtypes, a gradient may come in a third: such a result's Meta is unlike all
    # others, so that the pass looks (see `generated_rules.keeps`).
    several = mixes(primitive)
    return [
        *body,
        f"if {nothing}:",
        *([" link_lazily(out)"] if primitive.view else [f" {line}" for line in bare(outs)]),
        f" return {', '.join(outs)}",
        f"if inferred and ({inferred}): return {again}",
        *([f"if {none_floats}: return {again}"] if look else []),
        *(f"if {e} is LAZY: {e} = t{e[1:]}.accumulates() or edge(t{e[1:]})" for e in edges),
        "m = " + "".join(f"{e}._meta if {e} is not None else " for e in edges) + "NOTHING",
        f"s = {results[0]}.shape",
        f"if {'not same or ' if several else ''}m.shape != s or m.dtype is not {results[0]}.dtype:",
        f" m = {'(meta if same else Meta)' if several else 'meta'}(s, {results[0]}.dtype)",
    ]


def bare(outs: list[str]) -> list[str]:
    """Leave results without a node."""
    born = "; ".join(f"{out}.born = tick()" for out in outs)
    return [*(f"{out}.node = None" for out in outs), *([f"if within: {born}"] if outs else [])]


def hang(primitive: Declaration) -> list[str]:
    """Make the node, and hang the results on it."""
    outs, count = _each(primitive, "out"), primitive.differentiable
    if count == 1:
        return [*_record(primitive, f"n = {outs[0]}.node = Node()"), *bare(outs[1:])]
    results = _each(primitive, "y")
    return [
        *_record(primitive, "n = Node()"),
        f"n._outputs = {', '.join(f'({y}.shape, {y}.dtype)' for y in results)}",
        *(
            f"{out}.node = Port(n, {k}, {y}.shape, {y}.dtype) if {y}.dtype.kind in 'fc' else None"
            for k, (out, y) in enumerate(zip(outs[:count], results, strict=False))
        ),
        *bare(outs[count:]),
    ]


def _refusals(primitive: Declaration) -> list[str]:
    """Refuse tensors that were made in inference mode where they would have to be saved."""
    body = []
    for i in primitive.tensors if len(primitive.tensors) > 1 else ():
        if primitive.names[i] in primitive.saved_fields and primitive.kinds[i] != "list":
            guard = primitive.saved_for.get(primitive.names[i])
            tests = [f"t{i} is not None"] if primitive.kinds[i] == "optional" else []
            tests += [f"e{guard[0]} is not None"] if guard else []
            others = ", ".join(f"e{k}" for k in guard or primitive.differentiated)
            tests += [f"(t{i}.inference or t{i}.shows) and saves_inferred(t{i}, {others})"]
            body += [f" if {' and '.join(tests)}: raise inference_error()"]
    return ["if inferred:", *body] if body else []


def _saves_inferred(tensor: Tensor, *edges: Any) -> bool:
    """Whether an operation that saves a tensor is recorded at a level to which that is an inference tensor.

    edges: of the operands that it is saved for.
    """
    while not tensor.inference:
        if tensor.shows is None:
            return False
        tensor = tensor.shows.tensor
    levels = modes.nested.get()
    if not levels:
        return True
    from gradcli.engine.core.plain_pass import leaves

    found = {0 if leaf.level is None else leaf.level.depth for leaf in leaves(edges)}
    return any(k < tensor.inference and all(at.recorded for at in levels[k:]) for k in found)


def _record(primitive: Declaration, make: str) -> list[str]:
    """Make the node, with what it keeps."""
    saved = []
    for field in primitive.saved_fields:
        guard, value = primitive.saved_for.get(field), _variable(primitive, field)
        if field in primitive.position and primitive.kinds[primitive.position[field]] == "list":
            value = f"tuple({value})"
        saved.append(f"{value} if e{guard[0]} is not None else None" if guard else value)
    options = [_option(primitive, field) for field in primitive.option_fields]
    if primitive.flat:
        body = [make, *(f"n._e{k} = e{i}" for k, i in enumerate(primitive.differentiated))]
        body += [f"n._s{k} = {value}" for k, value in enumerate(saved)]
        body += [f"n._o{k} = {value}" for k, value in enumerate(options)]
    else:
        body = [make, "n._edges = edges"]
        body += [f"n._saved = ({', '.join(saved)},)"] if saved else []
        body += [f"n._options = ({', '.join(options)},)"] if options else []
    return [
        *body,
        "n._meta = m",
        "n._seq = next(clock)",
        "n._more = n.span = n._mark = n._grad = None",
        *(["n._mark = RARE"] if primitive.rare else []),
    ]


# What a rule may ask of an operand beside its elements, by the end of the field's name: of the tensor
# `{t}`, whose array is `{a}`.
_MEASURES = {
    "_args": "{a}.shape",
    "_dim": "{a}.ndim",
    "_dtype": "{a}.dtype",
    "_geometry": "geometry({a})",
    "_sym_argsize_0": "{a}.shape[0]",
    "_sym_argsize_1": "{a}.shape[1]",
    "_sym_argsize_2": "{a}.shape[2]",
    "_sym_argsize_minus_1": "{a}.shape[-1]",
    "_sym_argsize_minus_2": "{a}.shape[-2]",
    "_sym_numel": "{a}.size",
    "_sym_sizes": "{a}.shape",
    "_sym_sizes_opt": "{a}.shape",
    # As PyTorch: only the strides of what needs a gradient.
    "_sym_strides": "strides({a}) if {t}.node is not None else ()",
}


@cache
def measured(field: str) -> tuple[str, str]:
    """(the operand that a field measures, how: an expression in `{t}` and `{a}`); ("", "") for none."""
    found = next((s for s in _MEASURES if field.endswith(s)), None)
    return ("", "") if found is None else (field.removesuffix(found), _MEASURES[found])


def _option(primitive: Declaration, field: str) -> str:
    """The expression for what a rule asks for that is not a tensor."""
    if field in primitive.position:
        return _variable(primitive, field)
    name, text = measured(field)
    variable, i = _variable(primitive, name), primitive.position.get(name)
    if i is None:
        return text.format(a=variable, t=None)
    if primitive.kinds[i] == "list":
        return f"tuple([{text.format(a='v.array', t='v')} for v in {variable}])"
    if primitive.kinds[i] == "tensor":
        return text.format(a=f"a{i}", t=variable)
    found = text.format(a=f"{variable}.array", t=variable)
    return f"({found} if {variable} is not None else {(0,) if field.endswith('_opt') else None})"


# The Meta of a result whose operands turned out to need no gradient: to be looked at.
_NOTHING = Meta((), np.dtype(np.void))

_RUNTIME: dict[str, Any] = {
    "watching": watching,
    "inferred": modes.inference_used,
    "saves_inferred": _saves_inferred,
    "within": modes.differentiating,
    "tick": versions.tick,
    "special": modes.unusual,
    "Meta": Meta,
    "Port": Port,
    "NOTHING": _NOTHING,
    "link_lazily": link_lazily,
    "missing": MISSING,
    "meta": meta,
    "ndarray": np.ndarray,
    "track": track,
    "LAZY": LAZY,
    "subclasses": SUBCLASSES,
    "clock": versions.clock,
    "float64": np.dtype(np.float64),
    "geometry": geometry,
    "half": np.dtype(np.float16),
    "Scalar": Scalar,
    "Tensor": Tensor,
    "edge": edge,
    "inference_error": inference_error,
    "local": modes.local,
    "new": new,
    "numbers": frozenset([int, float, complex, bool]),
    "strict_numbers": frozenset([int, float, complex]),
    "scalar": scalar,
    "shape_error": shape_error,
    "strides": element_strides,
    "are_tensors": _are_tensors,
    "only": _ONLY,
    "as_operands": as_operands,
}

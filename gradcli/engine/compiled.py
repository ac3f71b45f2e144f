"""Straight-line Python for a row's hot paths: the recorded call and the backward function on arrays.

The code is generated from the row alone; it carries generated names, and the row's kernel, rules
and node class as values. What it does not cover (unusual operands or thread state) goes to
`Row.general`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine import modes, versions
from gradcli.engine.memory import element_strides
from gradcli.engine.node import FREED, FREED_MESSAGE, OWNED, Meta, meta, new
from gradcli.engine.tensor import (
    LAZY,
    Scalar,
    Tensor,
    edge,
    lend,
    refuse_inference,
    scalar,
    track,
)

if TYPE_CHECKING:
    from gradcli.engine.operator import Row

_MADE: dict[str, Any] = {}  # rows of one shape share the work of compiling


def _function(source: str, name: str, values: dict[str, Any]) -> Callable[..., Any]:
    code = _MADE.get(source)
    if code is None:
        code = _MADE[source] = compile(source, f"<gradcli {name}>", "exec")
    space = {"__name__": __name__, **values}
    exec(code, space)
    made = space[name]
    # A copy of the code: the interpreter specializes it to the types that it meets, a row's own.
    made.__code__ = made.__code__.replace()
    return made  # type: ignore[no-any-return]


def call(row: Row, fallback: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The function that runs and records the row.

    Fast for rows of required tensors with one result; any other row gets `general` itself.
    fallback: what to call instead of `general` for unusual operands.
    """
    general = fallback or row.general
    k = len(row.tensors)
    simple = (
        row.single
        and bool(row.rules)
        and k in (1, 2, 3)
        and row.tensors[0] == 0
        and all(row.kinds[i] == "tensor" for i in row.tensors)
        and not (k == 3 and row.types)
        and row.node != "NotImplemented"
        and all(_measurable(f, row) for f in row.option_fields)
        and row.flat
    )
    if not simple:
        return lambda *args, **kwargs: general(args, kwargs)
    from gradcli.engine.operator import promote

    tensors = [f"t{i}" for i in row.tensors]
    edges = [f"e{i}" for i in row.differentiated]
    locals_ = [f"t{i}" if i in row.tensors else f"o{i}" for i in range(len(row.names))]
    names = dict(zip(row.names, locals_, strict=True))
    options = len(locals_) > k
    body = []
    unusual = f"return general(({', '.join(locals_)},), {{}})"
    if row.tensors != (0, 1):
        strange = " or ".join(f"{t}.__class__ is not Tensor" for t in tensors)
        body += [f"if {strange} or (special and local.state is not None): {unusual}"]
    else:
        # Differences refuse bools, in words that are `general`'s.
        numbers = "strict_numbers" if row.types == "numbers" else "numbers"
        body += [
            f"if special and local.state is not None: {unusual}",
            "if t0.__class__ is not Tensor or t1.__class__ is not Tensor:",
            f" if t1.__class__ in {numbers} and t0.__class__ is Tensor: t1 = scalar(t1, t0)",
            f" elif t0.__class__ in {numbers} and t1.__class__ is Tensor: t0 = scalar(t0, t1)",
            f" else: {unusual}",
        ]
    body += [f"if o{i}.__class__ is not int: {unusual}" for i in row.whole]
    body += [f"a{i} = t{i}.array" for i in row.tensors]
    arrays = [f"a{i}" for i in row.tensors]
    if row.view:
        body += ["if a0.__class__ is not ndarray: a0 = t0.memory()"]
    if row.types == "float":
        kind = "(t is float64 or t.kind in 'fc')"
        body += ["t = a0.dtype"]
        body += ["same = " + " and ".join([*(f"{a}.dtype is t" for a in arrays[1:]), kind])]
        body += [f"if not same: {', '.join(arrays)}, = promote('float', {', '.join(tensors)})"]
    elif row.types and k == 2:
        both = ", ".join(arrays)
        body += ["t = a0.dtype", f"same = t is {arrays[1]}.dtype"]
        body += [f"if not same: {both} = promote({row.types!r}, {', '.join(tensors)})"]
    if row.refuses:
        refused = "".join(row.refuses)
        body += [f"if a0.dtype.kind in {refused!r}: raise refusal(a0.dtype)"]
    positional = len(row.names) - row.keyword_only
    values = [f"a{i}" if i in row.tensors else f"o{i}" for i in range(len(row.names))]
    passed = [v if i < positional else f"{row.names[i]}={v}" for i, v in enumerate(values)]
    symbol = _SYMBOLS.get(row.kernel) or (row.plain if fallback is not None else None)
    invoke = f"y = a0 {symbol} a1" if symbol else f"y = kernel({', '.join(passed)})"
    if k > 1:
        body += [f"try: {invoke}", "except ValueError as error:"]
        body += [f" raise shape_error(error, [{', '.join(arrays)}]) from None"]
    else:
        body += [invoke]
    body += ["out = new(Tensor)", "out.array = y"]
    if row.view:
        body += ["out.node = None", "track(out, t0)"]
    body += [f"e{i} = t{i}.node" for i in row.differentiated]
    nothing = " and ".join(f"{e} is None" for e in edges)
    # What cannot change the dtype of its operands needs no second look at the result's.
    closed = bool(row.real)
    if not closed and (row.kind is None or options):
        nothing += " or y.dtype.kind not in 'fc'"
    body += [f"if {nothing}:", " lend(out)" if row.view else " out.node = None", " return out"]
    for i in row.differentiated:
        body += [f"if e{i} is LAZY: e{i} = t{i}.accumulates() or edge(t{i})"]
    kept = [i for i in row.tensors if k > 1 and row.names[i] in row.saved_fields]
    if kept:
        body += ["if inferred:"]
    for i in kept:
        unrecorded = f"e{i} is None and " if i in row.differentiated else ""
        body += [f" if {unrecorded}t{i}.inference: raise refuse_inference()"]
    body += ["n = out.node = Node()"]
    body += [f"n._e{k} = {e}" for k, e in enumerate(edges)]
    for k, field in enumerate(row.saved_fields):
        value = names.get(field, "y")
        guard = row.guards.get(field)
        body += [f"n._s{k} = {value}" + (f" if e{guard[0]} is not None else None" if guard else "")]
    body += [f"n._o{k} = {_measured(f, names)}" for k, f in enumerate(row.option_fields)]
    # A gradient in a dtype of its own may come of operands of several: such a result's Meta is unlike
    # all others, so that the pass looks (see `_keeps`).
    known = "t" if closed else "y.dtype"
    mixed = any(line.startswith("same = ") for line in body)
    body += [
        "m = " + "".join(f"{e}._meta if {e} is not None else " for e in edges) + "NOTHING",
        "s = y.shape",
        f"if {'not same or ' if mixed else ''}m.shape != s or m.dtype is not {known}:",
        f" m = {'(meta if same else Meta)' if mixed else 'meta'}(s, y.dtype)",
        "n._meta = m",
        "n._seq = next(clock)",
        "n._mark = n._grad = None",
        "return out",
    ]

    lone = fallback is None and len(locals_) == 1
    signature = []
    for i, name in enumerate(row.names):
        if i == positional:
            signature.append("*")
        default = f"=defaults[{name!r}]" if name in row.defaults else ""
        signature.append(locals_[i] + default)
    if lone:  # keywords and wrong counts are caught on the way, not in a call around this one
        signature = ["t0=missing", "*more", "**named"]
        body[0] = (
            "if t0.__class__ is not Tensor or more or named or "
            "(special and local.state is not None): return odd(t0, more, named)"
        )
    source = f"def call({', '.join(signature)}):\n " + "\n ".join(body)
    fast = _function(
        source,
        "call",
        {
            "Node": row.node_type,
            "defaults": row.defaults,
            "general": general,
            "kernel": row.kernel,
            "missing": _MISSING,
            "odd": _odd(general),
            "promote": promote,
            "refusal": row.refusal,
            **_RUNTIME,
        },
    )
    if fallback is not None or lone:
        return fast
    most = len(row.names) - row.keyword_only
    least = len([n for n in row.names[:most] if n not in row.defaults])

    # Keywords, and too few or too many arguments, are for `general` to bind or to refuse.
    def named(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not least <= len(args) <= most:
            return general(args, kwargs)
        return fast(*args)

    return named


_MISSING = object()


def _odd(general: Callable[..., Any]) -> Callable[..., Any]:
    def call(first: Any, more: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return general(more if first is _MISSING else (first, *more), named)

    return call


# Kernels that are Python's own operators, written as such.
_SYMBOLS: dict[Any, str] = {operator.mul: "*", operator.truediv: "/"}

_MEASURES = {
    "_sym_sizes": "{}.shape",
    "_sym_numel": "{}.size",
    "_dtype": "{}.dtype",
    "_args": "{}.shape",
    "_dim": "{}.ndim",
    "_sym_strides": "strides({})",
}


def _measurable(field: str, row: Row) -> bool:
    return field in row.position or any(field.endswith(suffix) for suffix in _MEASURES)


def _measured(field: str, names: dict[str, str]) -> str:
    """The expression for an option that a rule asks for."""
    if field in names:
        return names[field]
    suffix = next(s for s in _MEASURES if field.endswith(s))
    operand = names[field.removesuffix(suffix)]
    text = _MEASURES[suffix].format(operand.replace("t", "a"))
    if suffix == "_sym_strides":  # as PyTorch: only the strides of what needs a gradient
        return f"{text} if {operand}.node is not None else ()"
    return text


def _gradients(row: Row) -> tuple[list[str], dict[int, str], dict[str, Any]] | None:
    """(statements before, {position: expression of its gradient}, values); None: not that simple."""
    plain = (
        not row.many
        and len(row.outputs) == 1
        and all(len(t) == 1 for t in row.targets)
        and not any(row.masked)
        and all(row.kinds[i] != "list" for i in row.tensors)
    )
    if not plain:
        return None
    body = []
    if row.saved_fields:
        body += [f"s{k} = n._s{k}" for k in range(len(row.saved_fields))]
        body += ["if s0 is FREED: raise RuntimeError(freed)"]
    values = {f"r{i}": rule for i, rule in enumerate(row.rules.values())}
    optional = any(kind == "optional" for kind in row.kinds)
    found = {}
    for k, (targets, rule, needs) in enumerate(
        zip(row.targets, row.rules.values(), row.needs, strict=True)
    ):
        args = ["g"]
        for need in needs:
            if need in row.option_fields:
                args.append(f"n._o{row.option_fields.index(need)}")
                continue
            value = f"s{row.saved_fields.index(need)}"
            if need in row.position:
                may_lack = optional and row.kinds[row.position[need]] == "optional"
                value = f"array({value})" if may_lack else f"{value}.array"
            args.append(value)
        same = rule.__code__.co_code == _IDENTITY
        found[targets[0]] = "g" if same else f"r{k}({', '.join(args)})"
    return body, found, {"FREED": FREED, "freed": FREED_MESSAGE, "array": _array, **values}


_IDENTITY = (lambda g: g).__code__.co_code


def backward(row: Row) -> Callable[..., Any]:
    """`backward(node, grad)` on arrays: a gradient per edge, None where not needed."""
    made = _gradients(row) if row.flat else None
    if made is None:
        return _backward_general(row)
    body, found, values = made
    body += [f"e{i} = n._e{k}" for k, i in enumerate(row.differentiated)]
    many = len(row.differentiated) > 1
    results = [
        f"{found[i]} if e{i} is not None else None" if many else found[i]
        for i in row.differentiated
    ]
    body = [*body, f"return ({', '.join(results)},)"]
    return _function("def backward(n, g):\n " + "\n ".join(body), "backward", values)


def push(row: Row | None) -> Callable[..., Any]:
    """`push(node, grad, retain)`: see `Node.push`."""
    from gradcli.engine.backward import check_versions, first, fit
    from gradcli.engine.node import AccumulateGrad

    made = None if row is None or not row.flat else _gradients(row)
    if made is None:
        return _push_general
    assert row is not None
    body, found, values = made
    for name, text in row.real.items():
        i = row.position[name]
        found[i] = f"({_with_fields(text, row)}) if m.real else {found[i]}"
    body = ["n._grad = None", *body]
    if row.saved_fields:
        body += ["if n._seq < versions.last: check_versions(n)"]
    edges = {i: f"n._e{k}" for k, i in enumerate(row.differentiated)}
    body += ["m = n._meta"]
    for i, text in found.items():
        known = _keeps(row, text)
        check = (
            "e._meta is not m"
            if known
            else "d.shape != e._meta.shape or d.dtype is not e._meta.dtype"
        )
        lines = [
            f"d = {text}",
            *([] if known else ["if d is not None:"]),
        ]
        inner = [
            f"if {check}: d = fit(d, e, n)",
            "had = e._grad",
            "if had is None:",
            " if e.__class__ is Leaf and d is not g: first(n, e, d)",
            " else: e._grad = d",
            "elif e._mark is OWNED: had += d",
            "else:",
            " d = e._grad = had + d",
            " if type(d) is ndarray: e._mark = OWNED",
        ]
        lines += inner if known else [f" {line}" for line in inner]
        body += [f"e = {edges[i]}", "if e is not None:", *(f" {line}" for line in lines)]
    if row.saved_fields:
        rest = "".join(f"n._s{k} = " for k in range(1, len(row.saved_fields)))
        body += ["if not retain:", " n._s0 = FREED"] + ([f" {rest}None"] if rest else [])
    return _function(
        "def push(n, g, retain):\n " + "\n ".join(body),
        "push",
        {
            "FREED": FREED,
            "Leaf": AccumulateGrad,
            "OWNED": OWNED,
            "check_versions": check_versions,
            "first": first,
            "fit": fit,
            "np": np,
            "ndarray": np.ndarray,
            "versions": versions,
            **values,
        },
    )


def _with_fields(text: str, row: Row) -> str:
    """An expression in the fields that a row saves, over the slots of its node."""
    slots = {
        f: f"s{k}.array" if f in row.position else f"s{k}" for k, f in enumerate(row.saved_fields)
    }
    slots |= {f: f"n._o{k}" for k, f in enumerate(row.option_fields)}
    return re.sub(r"\w+", lambda word: slots.get(word[0], word[0]), text)


def _keeps(row: Row, text: str) -> bool:
    """Whether a gradient has the shape and dtype of the result, where all operands have."""
    return (
        text == "g"
        or bool(row.real)
        or (
            row.kind is not None
            and not row.option_fields
            and (len(row.tensors) == 1 or row.types is not None)
        )
    )


def _push_general(n: Any, g: Any, retain: bool) -> None:
    from gradcli.engine.backward import check_versions, first, fit
    from gradcli.engine.node import AccumulateGrad

    n._grad = None
    if n._saved and n._seq < versions.last:
        check_versions(n)
    for e, d in zip(n._edges, n.apply(g), strict=False):
        if d is None or e is None:
            continue
        if d.shape != e._meta.shape or d.dtype is not e._meta.dtype:
            d = fit(d, e, n)
        if e._grad is not None:
            e._grad = e._grad + d
        elif e.__class__ is AccumulateGrad and d is not g:
            first(n, e, d)
        else:
            e._grad = d
    if n._saved and not retain:
        n._saved = None


def _array(saved: Any) -> Any:
    return None if saved is None else saved.array


def _backward_general(row: Row) -> Callable[..., Any]:
    from gradcli.engine.operator import raw

    fields = {f: i for i, f in enumerate(row.saved_fields)}
    options = {f: i for i, f in enumerate(row.option_fields)}

    def run(node: Any, grad: Any) -> Any:
        saved = node._saved
        if saved is None:
            raise RuntimeError(FREED_MESSAGE)

        def read(field: str) -> Any:
            if field in options:
                return node._options[options[field]]
            value = saved[fields[field]]
            return value.array if type(value) is Scalar else raw(value)

        return row.backward_on(node, grad, read)

    return run


def _shape_error(error: ValueError, operands: list[Any]) -> Exception:
    from gradcli.engine.operator import shape_error

    return shape_error(error, operands)


# The Meta of a result whose operands turned out to need no gradient: to be looked at.
_NOTHING = Meta((), np.dtype(np.void))

_RUNTIME: dict[str, Any] = {
    "inferred": modes.inference_used,
    "special": modes.unusual,
    "Meta": Meta,
    "NOTHING": _NOTHING,
    "lend": lend,
    "meta": meta,
    "ndarray": np.ndarray,
    "track": track,
    "LAZY": LAZY,
    "clock": versions.clock,
    "float64": np.dtype(np.float64),
    "Tensor": Tensor,
    "edge": edge,
    "refuse_inference": refuse_inference,
    "local": modes.local,
    "new": new,
    "numbers": frozenset([int, float, complex, bool]),
    "strict_numbers": frozenset([int, float, complex]),
    "scalar": scalar,
    "shape_error": _shape_error,
    "strides": element_strides,
}

"""Generated Python for a primitive's VJP rules: `backward` on arrays, and `push` for the plain pass.

The counterpart of `generated_calls`. In the generated code `n` is the node, `s{k}` a saved tensor, `m` the
node's Meta, `g` the incoming gradient, `d` a gradient that goes out along edge `e`, `r{k}` a VJP rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import versions
from gradcli.engine.core.generated_calls import generated
from gradcli.engine.core.gradients import first, fit, of_inputs
from gradcli.engine.core.node import FREED, IDLE, OWNED, AccumulateGrad, freed_error
from gradcli.engine.core.promotion import raw
from gradcli.engine.core.version_checks import check_versions

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Declaration


def gradients(
    primitive: Declaration, skips_idle: bool = False
) -> tuple[list[str], dict[int, str], dict[str, Any], list[str]] | None:
    """What reads the saved, {operand's position: expression of its gradient}, globals; None if no code suits.

    The last are statements, too, to run after the others: rules of several operands. skips_idle: whether
    they are not asked for what a pass to some inputs does not need.
    """
    if primitive.returns_list:
        return None
    body = []
    if primitive.saved_fields:
        body += [f"s{k} = n._s{k}" for k in range(len(primitive.saved_fields))]
        body += ["if s0 is FREED: raise freed()"]
    values = {f"r{i}": rule for i, rule in enumerate(primitive.vjps.values())}
    joint: list[str] = []
    found: dict[int, str] = {}
    for k, (targets, rule, needs) in enumerate(
        zip(primitive.targets, primitive.vjps.values(), primitive.needs, strict=True)
    ):
        args = ["g"]
        for need in needs:
            if need in primitive.option_fields:
                args.append(f"n._o{primitive.option_fields.index(need)}")
                continue
            value = f"s{primitive.saved_fields.index(need)}"
            if need in primitive.position:
                one = primitive.kinds[primitive.position[need]] == "tensor"
                value = f"{value}.array" if one else f"raw({value})"
            args.append(value)
        if primitive.masked[k]:
            args.append(f"({''.join(f'e{i} is not None, ' for i in targets)})")
        if len(targets) > 1:
            joint += [f"e{i} = n._e{primitive.differentiated.index(i)}" for i in targets]
            if skips_idle:
                joint += [
                    f"if e{i} is not None and e{i}._mark is IDLE: e{i} = None" for i in targets
                ]
            some = " or ".join(f"e{i} is not None" for i in targets)
            names = ", ".join(f"d{i}" for i in targets)
            joint += [f"if {some}: {names} = r{k}({', '.join(args)})"]
            found |= {i: f"d{i}" for i in targets}
            continue
        found[targets[0]] = "g" if same_gradient(rule) else f"r{k}({', '.join(args)})"
    if joint or not primitive.returns_one:  # in the order of the edges, as a pass of any primitive
        found = dict(sorted(found.items()))
    values |= {"FREED": FREED, "freed": freed_error, "raw": raw}
    return body, found, values, joint


_IDENTITY = (lambda g: g).__code__.co_code


def same_gradient(rule: Any) -> bool:
    """Whether a rule passes the gradient on as it is."""
    return isinstance(rule, FunctionType) and rule.__code__.co_code == _IDENTITY


def backward(primitive: Declaration) -> Callable[..., Any]:
    """Generate `backward(node, grad)` on arrays: a gradient for each edge, None where there is no edge."""
    made = gradients(primitive) if primitive.flat else None
    if made is None:
        return lambda node, grad: primitive.backward_read(node, grad)
    body, found, values, joint = made
    body += joint
    body += [f"e{i} = n._e{k}" for k, i in enumerate(primitive.differentiated)]
    many = len(primitive.differentiated) > 1
    results = [
        f"{found[i]} if e{i} is not None else None" if many else found[i]
        for i in primitive.differentiated
    ]
    return generated("backward", "n, g", [*body, f"return ({', '.join(results)},)"], values)


def push(primitive: Declaration | None) -> Callable[..., Any]:
    """Generate `push(node, grad, retain)`: see `Node.push`."""
    made = None if primitive is None or not primitive.flat else gradients(primitive, True)
    if made is None:
        return _push_general
    assert primitive is not None
    read, found, values, joint = made
    body = ["n._grad = None", *read]
    if primitive.saved_fields:
        body += ["if n._seq < versions.last: check_versions(n)"]
    body += [*joint, "m = n._meta"]
    needed = " and e._mark is not IDLE" if len(primitive.differentiated) > 1 else ""
    # Of several outputs `g` is a list, and a rule may pass one of its gradients on as it is.
    saved = "*g, " if primitive.differentiable > 1 else ""
    saved += "".join(f"s{k}, " for k in range(len(primitive.saved_fields)))
    for i, text in found.items():
        real = primitive.real.get(primitive.names[i])
        if real is not None:
            text = f"({_with_fields(real, primitive)}) if m.real else {text}"
        at = primitive.differentiated.index(i)
        (beside,) = (targets for targets in primitive.targets if i in targets)
        held = saved + "".join(f"d{k}, getattr(d{k}, 'base', None), " for k in beside if k != i)
        body += [
            f"e = n._e{at}",
            f"if e is not None{needed}:",
            *_send(text, keeps(primitive, text), held, at),
        ]
    if primitive.saved_fields:
        others = "".join(f"n._s{k} = " for k in range(1, len(primitive.saved_fields)))
        body += ["if not retain:", " n._s0 = FREED", *([f" {others}None"] if others else [])]
    return generated(
        "push",
        "n, g, retain",
        body,
        {
            "FREED": FREED,
            "IDLE": IDLE,
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


def _send(text: str, known: bool, saved: str, at: int) -> list[str]:
    """Lines that add a gradient to the edge's, the node's edge number `at`.

    known: it has the result's Meta, so `is` tells if it fits.
    """
    differs = "d.shape != e._meta.shape or d.dtype is not e._meta.dtype"
    lines = [
        f"if {'e._meta is not m' if known else differs}: d = fit(d, e, n, {at})",
        "had = e._grad",
        "if had is None:",
        f" if e.__class__ is Leaf and d is not g: first(e, d, ({saved}))",
        " else: e._grad = d",
        "elif e._mark is OWNED: had += d",
        "else:",
        " d = e._grad = had + d",
        " if d.__class__ is ndarray: e._mark = OWNED",
    ]
    if not known:
        lines = ["if d is not None:", *(f" {line}" for line in lines)]
    return [f" d = {text}", *(f" {line}" for line in lines)]


def _with_fields(text: str, primitive: Declaration) -> str:
    """An expression in which the names of saved fields are replaced by the node's slots."""
    slots = {
        f: f"s{k}.array" if f in primitive.position else f"s{k}"
        for k, f in enumerate(primitive.saved_fields)
    }
    slots |= {f: f"n._o{k}" for k, f in enumerate(primitive.option_fields)}
    return re.sub(r"\w+", lambda word: slots.get(word[0], word[0]), text)


def keeps(primitive: Declaration, text: str) -> bool:
    """Whether a gradient has the result's shape and dtype, given that all operands have them."""
    return (
        text == "g"
        or bool(primitive.real)
        or (
            primitive.returns_one
            and all(len(targets) == 1 for targets in primitive.targets)
            and primitive.linearity is not None
            and not primitive.option_fields
            and (len(primitive.tensors) == 1 or primitive.types is not None)
        )
    )


def _push_general(n: Any, g: Any, retain: bool) -> None:
    n._grad = None
    results = of_inputs(n, g)
    holders: dict[int, int] = {}
    for at, (e, d) in enumerate(zip(n._edges, results, strict=False)):
        if d is None or e is None:
            continue
        if d.shape != e._meta.shape or d.dtype is not e._meta.dtype:
            d = fit(d, e, n, at)
        if e._grad is not None:
            e._grad = e._grad + d
            continue
        if e.__class__ is AccumulateGrad and n._primitive is not None:
            holders = holders or _holders([*results, *(g if type(g) is list else [g])])
            if holders.get(id(d)) == 1:
                first(e, d, n._saved or ())
                continue
        e._grad = d
    if n._saved and not retain:
        n._saved = None


def _holders(results: Any) -> dict[int, int]:
    """For the id of each array, how many gradients are that array or a view of it."""
    found: dict[int, int] = {}
    for r in results:
        for array in (r, getattr(r, "base", None)):
            if array is not None:
                found[id(array)] = found.get(id(array), 0) + 1
    return found

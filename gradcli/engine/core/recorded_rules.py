"""Generated Python for a primitive's VJP rules on tensors: `push_recorded` for the recorded pass.

The counterpart of `generated_rules.push`. In the generated code `n` is the node, `s{k}` a saved tensor, `m`
the node's Meta, `g` the incoming gradient, `e{i}` the edge of the operand at position i and `d{i}` the
gradient that goes out along it, `r{k}` a VJP rule. As in every recorded pass, all rules run before any
gradient is added: that is the order in which operations are recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.engine.core import modes, versions, watched_pass
from gradcli.engine.core.generated_calls import generated
from gradcli.engine.core.generated_rules import keeps, same_gradient
from gradcli.engine.core.gradients import fit, of_inputs
from gradcli.engine.core.node import FREED, IDLE, freed_error, new
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.version_checks import check_versions
from gradcli.engine.system.array_memory import given_up

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Declaration


def push(primitive: Declaration | None) -> Callable[..., Any]:
    """Generate `push_recorded(node, grad, retain)`: see `Node.push_recorded`."""
    if primitive is None or not primitive.flat or primitive.returns_list:
        return _push_general
    body = ["n._grad = None", *_read(primitive)]
    for k, i in enumerate(primitive.differentiated):
        body += [f"e{i} = n._e{k}", f"if e{i} is not None and e{i}._mark is IDLE: e{i} = None"]
    values: dict[str, Any] = {}
    texts: dict[int, str] = {}
    several: set[int] = set()
    for k, (targets, rule, needs) in enumerate(
        zip(primitive.targets, primitive.vjps.values(), primitive.needs, strict=True)
    ):
        args = ["g", *(_needed(primitive, need) for need in needs)]
        if primitive.masked[k]:
            args.append(f"({''.join(f'e{i} is not None, ' for i in targets)})")
        text = "g" if same_gradient(rule) else f"r{k}({', '.join(args)})"
        values[f"r{k}"] = rule
        some = " or ".join(f"e{i} is not None" for i in targets)
        names = ", ".join(f"d{i}" for i in targets)
        body += [f"if {some}:", *_donated(primitive, f"{names} = {text}")]
        texts |= dict.fromkeys(targets, text)
        several |= set(targets) if len(targets) > 1 else set()
    body += ["m = n._meta"]
    for at, i in enumerate(primitive.differentiated):
        known = i not in several and keeps(primitive, texts[i])
        body += [f"if e{i} is not None:", *(f" {line}" for line in _send(i, at, known))]
    if primitive.saved_fields:
        others = "".join(f"n._s{k} = " for k in range(1, len(primitive.saved_fields)))
        body += ["if not retain:", " n._s0 = FREED", *([f" {others}None"] if others else [])]
    return generated(
        "push_recorded", "n, g, retain", body, _RUNTIME | values | {"primitive": primitive}
    )


def _read(primitive: Declaration) -> list[str]:
    """From the node's slots to saved tensors."""
    fields = primitive.saved_fields
    if not fields:
        return []
    body = ["if n._seq < versions.last: check_versions(n)"]
    body += [f"s{k} = n._s{k}" for k in range(len(fields))]
    body += ["if s0 is FREED: raise freed()"]
    for k, field in enumerate(fields):
        shown = f"s{k} = primitive.shown(n, {field!r}, s{k})"
        if field in primitive.position:
            body += [f"if s{k}.__class__ is not Tensor: {shown}"]
        elif primitive.returns_one:
            body += [
                f"if n._more is not None: {shown}",
                "else:",
                f" r = new(Tensor); r.array = s{k}; r.node = n; s{k} = r",
                " if within: r.born = tick()",
            ]
        else:
            body += [shown]
    return body


def _donated(primitive: Declaration, line: str) -> list[str]:
    """A rule's call, which may overwrite a large batched gradient where nothing is recorded."""
    if not primitive.donates:
        return [f" {line}"]
    return [
        " if getrefcount(g) == alone and not local.state.enabled: given_up.array = watched.spent(g)",
        f" try: {line}",
        " finally: given_up.array = None",
    ]


def _needed(primitive: Declaration, need: str) -> str:
    """The variable of what a rule asks for."""
    if need in primitive.option_fields:
        return f"n._o{primitive.option_fields.index(need)}"
    return f"s{primitive.saved_fields.index(need)}"


def _send(i: int, at: int, known: bool) -> list[str]:
    """Lines that add a gradient to the edge's; known: as for `generated_rules.keeps`."""
    differs = f"d{i}.array.shape != e{i}._meta.shape or d{i}.array.dtype is not e{i}._meta.dtype"
    lines = [
        f"if {f'e{i}._meta is not m' if known else differs}: d{i} = fit(d{i}, e{i}, n, {at})",
        f"had = e{i}._grad",
        f"e{i}._grad = d{i} if had is None else had + d{i}",
    ]
    return lines if known else [f"if d{i} is not None:", *(f" {line}" for line in lines)]


def _push_general(n: Any, g: Any, retain: bool) -> None:
    n._grad = None
    before = modes.change(rules=False)
    try:
        results = of_inputs(n, g, True)
        for at, (e, d) in enumerate(zip(n._edges, results, strict=True)):
            if d is not None and e is not None:
                d = fit(d, e, n, at)
                e._grad = d if e._grad is None else e._grad + d
    finally:
        modes.restore(before)
    if n._saved and not retain:
        n._saved = None


class _Probe:
    def push_recorded(self, g: Any, retain: bool) -> int:
        return sys.getrefcount(g)


def _alone() -> int:
    """What `sys.getrefcount` says in a step of a pass of a gradient that nothing else refers to."""
    g = object()
    return _Probe().push_recorded(g, False)


_RUNTIME: dict[str, Any] = {
    "FREED": FREED,
    "IDLE": IDLE,
    "alone": _alone(),
    "getrefcount": sys.getrefcount,
    "given_up": given_up,
    "local": modes.local,
    "watched": watched_pass,
    "tick": versions.tick,
    "Tensor": Tensor,
    "check_versions": check_versions,
    "fit": fit,
    "freed": freed_error,
    "new": new,
    "versions": versions,
    "within": modes.differentiating,
}

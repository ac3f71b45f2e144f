"""Straight-line Python for a primitive's call on operands in a batch; `generated_calls` has the others'.

The operand at position i is `t{i}`, its array `a{i}`, all entries of it `x{i}`; `z` is all entries of the
result, `y` the result as a batch. What is not covered (batches in batches, sparse ones, operands of several
dtypes) goes to the call in full, which gives the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.batched_arrays import BatchedArray, aligned
from gradcli.engine.core.batching_rules import apply, elementwise
from gradcli.engine.core.generated_calls import bare, hang, mixes, shown
from gradcli.engine.core.tensor import track_view
from gradcli.engine.system.threads import applied

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Declaration

_LARGE = 32768  # elements from which the batching rule in full is as fast, and uses threads
_PLAIN = frozenset([np.ndarray, np.float64, np.float32, np.int64, np.bool_])


def lines(
    primitive: Declaration, spec: str, operands: list[str], otherwise: str
) -> tuple[list[str], dict[str, Any]]:
    """(the lines of the call, what they call); otherwise: the line for what they do not cover."""
    given = ", ".join(word.partition("=")[0] for word in spec.split(", ") if word != "/")
    tensors = [f"t{i}" for i in primitive.tensors]
    none = " and ".join(
        f"({t}.__class__ is not Tensor and {t}.__class__ not in subclasses"
        f" or {t}.array.__class__ in flat)"
        for t in tensors
    )
    silent = otherwise if primitive.view else f"return silently({given})"
    # Numbers become operands, recorded ones are lifted, what is missing gets its default.
    names = sorted(set(re.findall(r"\b[to]\d+\b", otherwise)))
    as_given = [f"given_{name} = {name}" for name in names]
    before, otherwise = otherwise, re.sub(r"\b([to]\d+)\b", r"given_\1", otherwise)
    body = [
        f"if {none}:",
        f" if local.state.enabled: return plainly({given})",
        f" {silent}",
        *(["if inferred: " + before] if primitive.vjps else []),
        *as_given,
        *operands,
        *_level(primitive, otherwise),
        *_lifted(primitive),
        *_checked(primitive, otherwise),
        *_computed(primitive, otherwise),
        "y = new(Batched)",
        "y.every = z",
        "y.level = level",
        *shown(primitive),
        "out = new(Tensor)",
        "out.array = y",
        *(["out.node = None", "track_view(out, t0, False, s)"] if primitive.view else []),
        *_recorded(primitive, otherwise),
        "return out",
    ]
    ufunc = primitive.numpy if primitive.numpy is not None and primitive.numpy.nout == 1 else None
    return body, _RUNTIME | {"kernel": primitive.kernel if ufunc is None else ufunc}


def _level(primitive: Declaration, otherwise: str) -> list[str]:
    """Find the level that the operands are in: one, whose entries lie in plain memory."""
    body = ["s = local.state", "level = None"]
    for i in primitive.tensors:
        body += [
            f"if a{i}.__class__ is Batched:",
            f" x{i} = a{i}.every",
            f" if x{i}.__class__ is not ndarray: {otherwise}",
            f" if level is None: level = a{i}.level",
            f" elif level is not a{i}.level: {otherwise}",
            f"elif a{i}.__class__ in flat or t{i}.__class__ is Scalar: x{i} = a{i}",
            f"else: {otherwise}",
        ]
    for i in range(len(primitive.names)):
        if i not in primitive.tensors:
            body += [f"if isinstance(o{i}, (Tensor, Batched)): {otherwise}"]
    return [*body, f"if level.linear: {otherwise}"]


def _lifted(primitive: Declaration) -> list[str]:
    """Repeat what is recorded for each entry: see `Primitive._lifted`."""
    if len(primitive.tensors) == 1:
        return []
    body = []
    for i in primitive.differentiated if primitive.vjps else ():
        body += [
            f" if t{i}.node is not None and a{i}.__class__ is not Batched:",
            f"  t{i} = lift(t{i}, frozenset((level,)))",
            f"  a{i} = t{i}.array; x{i} = a{i}.every",
        ]
    return ["if s.enabled:", *body] if body else []


def _checked(primitive: Declaration, otherwise: str) -> list[str]:
    """Leave the dtypes that are to be cast or refused to the call in full."""
    arrays = [f"x{i}" for i in primitive.tensors]
    tests = []
    if mixes(primitive):
        tests += [f"{x}.dtype is not x0.dtype" for x in arrays[1:]]
        tests += ["x0.dtype.kind not in 'fc'"] if primitive.types == "float" else []
    if primitive.types == "numbers":
        tests += ["x0.dtype.kind == 'b'"]
    if primitive.refuses:
        tests += [f"x0.dtype.kind in {''.join(primitive.refuses) + 'c'!r}", "x0.dtype.char == 'e'"]
    return [f"if {' or '.join(tests)}: {otherwise}"] if tests else []


def _computed(primitive: Declaration, otherwise: str) -> list[str]:
    """All entries of the result."""
    operands = ", ".join(
        f"{'a' if i in primitive.tensors else 'o'}{i}" for i in range(len(primitive.names))
    )
    run = [f"z = apply(primitive, [{operands}], level)"]
    if primitive.batching == "elementwise":
        run = _elementwise(primitive, f"z = elementwise(primitive, [{operands}], level)")
    return [
        "try:",
        *(f" {line}" for line in run),
        "except (IndexError, TypeError, ValueError, RuntimeError, NotImplementedError): z = None",
        f"if z is None: {otherwise}",
    ]


def _elementwise(primitive: Declaration, in_full: str) -> list[str]:
    positions = primitive.tensors
    arrays = [f"x{i}" for i in positions]
    passed = []
    at = len(primitive.names) - primitive.keyword_only
    for i, name in enumerate(primitive.names):
        value = f"x{i}" if i in positions else f"o{i}"
        passed.append(value if i < at else f"{name}={value}")
    body = [f" z = kernel({', '.join(passed)})"]
    if len(positions) > 1:
        ranks = ", ".join(f"a{i}.ndim" for i in positions)
        lower = " or ".join(f"(a{i}.__class__ is Batched and a{i}.ndim < rank)" for i in positions)
        whole = ", ".join(f"a{i}" for i in positions)
        body = [
            f" rank = max({ranks})",
            f" if {lower}: {', '.join(arrays)} = aligned(({whole}), level)",
            *body,
        ]
    if primitive.broadcasts:
        body += [f" z = as_operands(z, {', '.join(arrays)})"]
    large = " or ".join(f"{x}.size >= large" for x in arrays)
    if len(arrays) == 2:  # so may be the result where they are broadcast
        a, b = arrays
        large += f" or ({a}.size * {b}.size >= large and {a}.shape != {b}.shape)"
    return [f"if {large}: {in_full}", "else:", *body]


def _recorded(primitive: Declaration, otherwise: str) -> list[str]:
    """Make the node where the call is recorded."""
    plain = [] if primitive.view else bare(["out"])
    if not primitive.vjps:
        return plain
    edges = [f"e{i}" for i in primitive.differentiated]
    nothing = " and ".join(f"{e} is None" for e in edges)
    quiet = [f" {line}" for line in plain] + [" return out"]
    return [
        *(f"{e} = t{e[1:]}.node" for e in edges),
        f"if not s.enabled or ({nothing}):",
        *quiet,
        f"if z.dtype.kind not in 'fc': {otherwise}",
        *(f"if {e} is LAZY: {e} = t{e[1:]}.accumulates() or edge(t{e[1:]})" for e in edges),
        f"if {nothing}:",
        *quiet,
        "m = meta(z.shape[1:], z.dtype)",
        *hang(primitive),
    ]


_RUNTIME: dict[str, Any] = {
    "Batched": BatchedArray,
    "aligned": aligned,
    "applied": applied,
    "apply": apply,
    "elementwise": elementwise,
    "flat": _PLAIN,
    "inferred": modes.inference_used,
    "large": _LARGE,
    "lift": lambda tensor, levels: tensor.in_batches(levels),
    "track_view": track_view,
}

"""`out=`: write the result of a function into the caller's tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.engine.core import modes
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.views import castable, check_writable, raise_on_overlap, store
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import resized
from gradcli.engine.system.dtypes import c_type, scalar_name, tensor_name

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import DType

_RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match the "
    "required output shape {}. This behavior is deprecated, and in a future PyTorch release outputs "
    "will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by "
    "resizing it, inplace, to zero elements with t.resize_(0)."
)

# PyTorch's words where the dtype of `out` is not taken, by the names that rules have for them: {0} is the
# result's dtype, {1} that of `out`.
_WORDS: dict[str, Any] = {
    "": "Expected out tensor to have dtype {0.c}, but got {1.c} instead",
    "found": "Found dtype {1} but expected {0}",
    "same": "{name}(): self and result must have the same scalar type",
    "scalar_type": "expected scalar_type {0} but found {1}",
    "cat": (TypeError, "torch.cat(): input types can't be cast to the desired output type {1}"),
    "named": "{name}: result type {0} can't be cast to the desired out= type {1}",
    "castable": "{name}: Expected result to be safely castable from {0} dtype, but got result with dtype {1}",
    "torch.castable": (
        "torch.{name}: Expected result to be safely castable from {0} dtype, but got result with "
        "dtype {1}"
    ),
}


Rule = str | Callable[..., str]


class _Said:
    """The names of a dtype in messages: {0} is Float, {0.c} is float, {0.tensor} is torch.FloatTensor."""

    def __init__(self, kind: Any) -> None:
        self.scalar, self.c, self.is_int = scalar_name(kind), c_type(kind), kind.char == "i"
        # PyTorch has no such classes for bool and complex numbers.
        self.tensor = f"CPU{self.scalar}Type" if kind.kind in "bc" else f"torch.{tensor_name(kind)}"

    def __str__(self) -> str:
        return self.scalar


def check_dtype(rule: str, name: str, result: Any, out: Any) -> None:
    """RuntimeError, in PyTorch's words, where a result of a dtype may not be written into `out` of another.

    rule: what a function says of one result. "exact": its own dtype alone; "cast": what it can be cast to;
    "only LETTERS": NumPy's letters of the dtypes that are taken; "into LETTERS": the same, of which none is
    too narrow; "computed": it is computed in that of
    `out`, if the option `dtype` does not name another; behind it the words, or their name in `_WORDS`, or
    "kernel" and its name: "exact: found", "only efd: kernel nansum_cpu". Of rules joined by " & " the
    first that is broken speaks.
    """
    for part in rule.split(" & "):
        _check(part, name, result, out)


def _check(rule: str, name: str, result: Any, out: Any) -> None:
    kind, _, words = rule.partition(": ")
    if kind in ("exact", "computed"):
        taken = result == out
    else:
        taken = castable(result.kind, out.kind) if kind == "cast" else out.char in kind.split()[1]
    if taken:
        return
    if words[:7] == "kernel ":
        raise dtypes.not_implemented(words[7:], out)
    told = _WORDS.get(words, words)
    error, text = told if isinstance(told, tuple) else (RuntimeError, told)
    # A title has an underscore for the namespace, and these messages a point.
    name = name.replace("linalg_", "linalg.")
    raise error(text.format(_Said(result), _Said(out), name=name))


def dtype_for(out: Tensor, dtype: DType) -> Any:
    """The dtype in which a factory function makes what it writes into `out`; RuntimeError for another."""
    own = out.array.dtype
    if dtype is not None and (given := dtypes.given(dtype)) is not None and given.dtype != own:
        raise RuntimeError(
            f"dtype {scalar_name(given.dtype)} does not match dtype of out parameter "
            f"({scalar_name(own)})"
        )
    return dtypes.of(own)


def into(
    name: str,
    out: Any,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    overlap: str = "any any",
    dtypes_taken: Rule = "",
) -> Any:
    """Call a function and write its result, or results, into `out`; returns `out`.

    overlap: how the first operand, and the others, may share memory with `out`: "any" way, "whole" (all
    of it or nothing) or "none". dtypes_taken: a rule of `check_dtype` for all results, or one for each,
    parted by " | ", of a call that has so many, or a function of the arguments that gives these; without
    one, dtypes are taken that results can be cast to.
    Raises RuntimeError for other overlaps and dtypes, and if autograd would have to record the call.
    """
    if out is None:
        return call(*args, **kwargs)
    targets = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, Tensor):
            kind = type(target).__name__
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {kind}")
    given = (*args, *kwargs.values(), *targets)
    if modes.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in given):
        raise RuntimeError(
            f"{name.replace('.', '_')}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    if modes.current().intercept is not None and any(
        isinstance(t, Tensor) and t.tangents for t in given
    ):
        raise NotImplementedError(
            f"Trying to use forward AD with {name.replace('.', '_')}_out that does not support it "
            "because it is an out= function"
        )
    with modes.no_grad():
        found = call(*args, **kwargs)
    results = found if isinstance(found, tuple) else (found,)
    if len(results) != len(targets):
        if type(found) is tuple:
            raise RuntimeError(
                f"{name}() expected an out= argument of size {len(results)}, got size {len(targets)}"
            )
        raise TypeError(f"{name}() has {len(results)} results, but out= has {len(targets)} tensors")
    taken = dtypes_taken if isinstance(dtypes_taken, str) else dtypes_taken(*args)
    rules = taken.split(" | ") if taken else []
    if len(rules) == 1:
        rules *= len(targets)
    if len(rules) == len(targets):
        for rule, target, result in zip(rules, targets, results, strict=True):
            check_dtype(rule, name, result.array.dtype, target.array.dtype)
    operands = [*args, *kwargs.values()]
    for way, some in zip(overlap.split(), (operands[:1], operands[1:]), strict=True):
        for target, result in zip(targets, results, strict=True):
            if way != "any" and target.array.shape == result.array.shape:  # else resized
                raise_on_overlap(target, some, apart=way == "none")
    for target, result in zip(targets, results, strict=True):
        narrowed = bool(rules) and rules[0].startswith("into ")
        _write(target, result.array.astype(target.array.dtype) if narrowed else result.array)
    if type(found) is tuple:
        return None  # PyTorch returns nothing where it writes into a list
    return type(found)(targets) if isinstance(found, tuple) else out


def _write(target: Tensor, values: Any) -> None:
    check_writable(target, recorded=False)
    if target.array.shape != values.shape:
        if target.array.size:
            shapes = (list(target.array.shape), list(values.shape))
            warnings.warn(_RESIZED.format(*shapes), UserWarning, stacklevel=users_level())
        target.array = resized(target.memory(), values.shape)
    store(target, values)

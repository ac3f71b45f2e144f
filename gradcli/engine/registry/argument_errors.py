"""PyTorch's TypeError for a call that fits no signature (its invalid_arguments.cpp).

Imported at the first error only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.engine.system import dtypes

if TYPE_CHECKING:
    from gradcli.engine.registry.schema import Parameter, Signature


def type_name(value: Any) -> str:
    """The name of an argument's type in messages."""
    if isinstance(value, dtypes.dtype):
        return "torch.dtype"
    if hasattr(value, "n_sequence_fields"):
        return f"torch.return_types.{type(value).__name__}"
    found = type(value).__name__
    return {"ndarray": "numpy.ndarray", "Size": "torch.Size"}.get(found, found)


def no_list(p: Parameter, value: Any) -> str:
    """The part of a message that says which list a parameter wants, and what the value is."""
    if p.kind.endswith("[]") and isinstance(value, (tuple, list)):
        return f"{p.said}, but found element of type {type_name(value[0])} at pos 0"
    return f"{p.said}, not {type_name(value)}"


def no_tensors(values: Any, at: int, k: int) -> str:
    """The message for item `k` of a list of tensors that is not a tensor."""
    return f"expected Tensor as element {k} in argument {at}, but got {type_name(values[k])}"


def _described(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        items = ", ".join(type_name(v) for v in value)
        if isinstance(value, list):
            return f"list of [{items}]"
        return f"{type_name(value)} of ({items}{',' * (len(value) == 1)})"
    return type_name(value)


def _unmatched(parts: list[str], kwargs: dict[str, Any]) -> str:
    """The keywords that are not among the last `len(kwargs)` parameters, which is how PyTorch looks."""
    names = [p.rpartition(" ")[2] for p in parts[max(len(parts) - len(kwargs), 0) :]]
    return ", ".join(k for k in kwargs if k not in names)


def _marked(parts: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The types of the arguments; those that do not match a signature of the same length are marked."""
    shown = []
    for i, part in enumerate(parts):
        wanted, _, name = part.rpartition(" ")
        value = args[i] if i < len(args) else kwargs[name]
        text = ("" if i < len(args) else f"{name}=") + _described(value)
        fits = type_name(value) == wanted or (wanted == "float" and type(value) is int)
        shown.append(text if fits else f"!{text}!")
    return _closed(", ".join(shown), args, kwargs)


def _closed(listed: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The list in parentheses; PyTorch leaves a comma if there are only keywords."""
    return f"{listed}, " if kwargs and not args else listed


def call_error(
    signatures: list[Signature],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first: int = 0,
    numbers: bool = False,
) -> TypeError:
    """PyTorch's error for a call that none of several signatures fits."""
    count = len(args) + len(kwargs)
    signatures = [s for s in signatures if s.said]
    likely = [s for s in signatures if s.plausible(count, first)]
    if len(likely) == 1:
        try:
            likely[0].bind(args, kwargs, first, numbers)
        except TypeError as error:
            return TypeError(*error.args)
    name, args = signatures[0].name, args[first:]
    start = f"{name}() received an invalid combination of arguments - got "
    kwargs = dict(reversed(kwargs.items()))  # PyTorch names the last one first
    given = [*map(type_name, args), *(f"{k}={type_name(v)}" for k, v in kwargs.items())]
    got = _closed(", ".join(given), args, kwargs)
    count -= first
    lines = []
    for s in signatures:
        listed = s.listed(first)
        parts = listed[1:-1].split(", ")  # PyTorch counts the `*` as a parameter
        unmatched = _unmatched(parts, kwargs)
        if len(signatures) == 1 and unmatched:
            return TypeError(f"{start}unrecognized keyword arguments: {unmatched}")
        if len(signatures) == 1:
            got = _marked(parts, args, kwargs) if len(parts) == count else got
            expected = listed
            break
        lines.append(f" * {listed}\n")
        if len(parts) == count:
            lines.append("      didn't match because some of the ")
            if unmatched:
                lines.append(f"keywords were incorrect: {unmatched}\n")
            else:
                types = _marked(parts, args, kwargs)
                lines.append(f"arguments have invalid types: ({types})\n")
        expected = f"one of:\n{''.join(lines)}"
    return TypeError(f"{start}({got}), but expected {expected}")

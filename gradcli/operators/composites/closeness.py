"""torch.testing.assert_close: values compared, and PyTorch's words for how they differ."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import function, resolve
from gradcli.engine.system import dtypes
from gradcli.operators.movement.creation import as_tensor

__tracebackhide__ = True  # pytest shows the line of the test

Place = tuple[Any, ...]
# Of each dtype, how far apart values may be: relative, absolute. Others are equal or not.
_TOLERANCES = {
    "float16": (0.001, 1e-5),
    **dict.fromkeys(("float32", "complex64"), (1.3e-6, 1e-5)),
    **dict.fromkeys(("float64", "complex128"), (1e-7, 1e-7)),
}
_OF_PYTHON = {int: "int64", float: "float64", complex: "complex128"}
_NUMBERS = (int, float, complex, np.number)
_SWITCHES = ("check_device", "check_dtype", "check_layout")


@function(
    "assert_close(Any actual, Any expected, *, Any allow_subclasses=True, Any rtol=None, "
    "Any atol=None, Any equal_nan=False, Any check_device=True, Any check_dtype=True, "
    "Any check_layout=True, Any check_stride=False, Any msg=None)|python|function",
    name="testing.assert_close",
)
def assert_close(actual: Tensor, expected: Tensor, *options: Any) -> None:
    """Raise AssertionError, which says where and how far, unless values are close.

    Compared are tensors, what is made into one, numbers, and sequences and mappings of them.
    """
    names = ("allow_subclasses", "rtol", "atol", "equal_nan", *_SWITCHES, "check_stride", "msg")
    how = dict(zip(names, options, strict=True))
    found = None
    try:
        compared = [_compared(*pair, how) for pair in _pairs(actual, expected, ())]
        found = next((why for why in (compare() for compare in compared) if why is not None), None)
    except (
        _Mismatch
    ) as error:  # what says that nothing can be compared knows no message of the caller's
        raise error.kind(error.text()) from None
    if found is not None:
        raise found.kind(found.text(how["msg"]))


class _Mismatch(Exception):
    """How two values differ, and at which item of what they are in."""

    def __init__(self, words: str, place: Place, kind: type[Exception] = AssertionError) -> None:
        super().__init__(words)
        self.words, self.place, self.kind = words, place, kind

    def text(self, msg: str | Callable[[str], str] | None = None) -> str:
        """The message; msg: one of the caller's, or what makes it of ours."""
        if isinstance(msg, str):
            return msg
        words = self.words
        if self.place:
            item = "".join(f"[{part!r}]" for part in self.place)
            words += f"\n\nThe failure occurred for item {item}"
        return msg(words) if callable(msg) else words


def _pairs(actual: Tensor, expected: Tensor, place: Place) -> Iterator[tuple[Any, Any, Place]]:
    """The values in sequences and mappings, item by item."""
    if all(isinstance(v, Sequence) and not isinstance(v, str) for v in (actual, expected)):
        if len(actual) != len(expected):
            sizes = f"{len(actual)} != {len(expected)}"
            raise _Mismatch(f"The length of the sequences mismatch: {sizes}", place)
        keys: Any = range(len(actual))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            raise _Mismatch(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(expected.keys() - actual.keys())}\n"
                f"Additional keys in the actual mapping: {sorted(actual.keys() - expected.keys())}",
                place,
            )
        try:
            keys = sorted(actual)
        except TypeError:
            keys = list(actual)
    else:
        yield actual, expected, place
        return
    for key in keys:
        yield from _pairs(actual[key], expected[key], (*place, key))


def _compared(
    actual: Tensor, expected: Tensor, place: Place, how: dict[str, Any]
) -> Callable[[], _Mismatch | None]:
    """What compares two values that are no containers; an error where nothing does."""
    both = (actual, expected)
    words: str | None
    if actual is None or expected is None:
        words = f"None mismatch: {actual} is not {expected}" if actual is not expected else None
    elif all(isinstance(v, (bool, np.bool_)) for v in both):
        same = bool(actual) is bool(expected)
        words = None if same else f"Booleans mismatch: {bool(actual)} is not {bool(expected)}"
    elif all(isinstance(v, _NUMBERS) for v in both):
        one, other = (v.item() if isinstance(v, np.number) else v for v in both)
        names = [_OF_PYTHON[int if isinstance(v, bool) else type(v)] for v in (one, other)]
        tolerances = _tolerances(names, how, place)
        return lambda: _said(_numbers(one, other, *tolerances, how), place)
    else:
        a, b = _tensors(actual, expected, place, how["allow_subclasses"])
        tolerances = _tolerances([a.array.dtype.name, b.array.dtype.name], how, place)
        return lambda: _said(_attributes(a, b, how) or _values(a, b, *tolerances, how), place)
    return lambda: _said(words, place)


def _said(words: str | None, place: Place) -> _Mismatch | None:
    return None if words is None else _Mismatch(words, place)


def _tolerances(names: list[str], how: dict[str, Any], place: Place) -> tuple[float, float]:
    relative, absolute = how["rtol"], how["atol"]
    if (relative is None) != (absolute is None):
        missing = "rtol" if relative is None else "atol"
        raise _Mismatch(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.",
            place,
            ValueError,
        )
    if relative is not None:
        return relative, absolute
    pairs = [_TOLERANCES.get(name, (0.0, 0.0)) for name in names]
    return max(r for r, _ in pairs), max(a for _, a in pairs)


def _tensors(
    actual: Tensor, expected: Tensor, place: Place, subclasses: bool
) -> tuple[Tensor, Tensor]:
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (subclasses or type(actual) is type(expected)):
        try:
            a, b = (v if isinstance(v, Tensor) else as_tensor(v) for v in (actual, expected))
            return a.detach(), b.detach()
        except (TypeError, ValueError, RuntimeError):
            pass
    _unlike(actual, expected, place)


def _unlike(actual: Any, expected: Any, place: Place) -> NoReturn:
    kinds = " and ".join(
        "<class 'torch.Tensor'>" if type(v) is Tensor else str(type(v)) for v in (actual, expected)
    )
    words = f"No comparison pair was able to handle inputs of type {kinds}."
    raise _Mismatch(words, place, TypeError)


def _attributes(a: Tensor, b: Tensor, how: dict[str, Any]) -> str | None:
    compared = {"shape": True, "stride()": how["check_stride"], "dtype": how["check_dtype"]}
    for name, wanted in compared.items():
        one, other = (t.stride() if name == "stride()" else getattr(t, name) for t in (a, b))
        if wanted and one != other:
            return f"The values for attribute '{name}' do not match: {one} != {other}."
    return None


def _numbers(a: Any, b: Any, relative: float, absolute: float, how: dict[str, Any]) -> str | None:
    if how["check_dtype"] and type(a) is not type(b):
        return f"The (d)types do not match: {type(a)} != {type(b)}."
    if a == b or (how["equal_nan"] and cmath.isnan(a) and cmath.isnan(b)):
        return None
    apart = abs(a - b)
    if cmath.isfinite(apart) and apart <= absolute + relative * abs(b):
        return None
    return _apart(a, b, relative, absolute)


def _apart(a: Any, b: Any, relative: float, absolute: float) -> str:
    apart = abs(a - b)
    ratio = float("inf") if b == 0 else apart / abs(b)
    header = f"Expected {b} but got {a}."
    return _worded("Scalars", header, (apart, None, absolute), (ratio, None, relative))


def _values(
    a: Tensor, b: Tensor, relative: float, absolute: float, how: dict[str, Any]
) -> str | None:
    if a.array.dtype != b.array.dtype:
        wide = resolve("promote_types").call(a.dtype, b.dtype)
        a, b = a.to(wide), b.to(wide)
    matches = a.isclose(b, rtol=relative, atol=absolute, equal_nan=how["equal_nan"])
    if matches.all():
        return None
    if not a.ndim:
        return _apart(a.item(), b.item(), relative, absolute)
    wrong = matches.numel() - int(matches.sum())
    header = f"Mismatched elements: {wrong} / {matches.numel()} ({wrong / matches.numel():.1%})"
    flat: Any = matches.flatten()
    one: Any = a.flatten()
    other: Any = b.flatten()
    if one.array.dtype.kind not in "fc":
        one, other = one.to(dtypes.int64), other.to(dtypes.int64)
    apart = (one - other).abs()
    apart[flat] = 0
    ratio = apart / other.abs()
    ratio[flat] = 0
    found = []
    for differences, tolerance in ((apart, absolute), (ratio, relative)):
        most, at = differences.max(0)
        place = tuple(map(int, np.unravel_index(int(at), matches.shape)))
        found.append((most.item(), place, tolerance))
    return _worded("Tensor-likes", header, *found)


def _worded(what: str, header: str, apart: Any, ratio: Any) -> str:
    equal = apart[2] == 0 and ratio[2] == 0
    lines = [f"{what} are not {'equal' if equal else 'close'}!\n", header]
    for kind, (difference, place, tolerance) in {"absolute": apart, "relative": ratio}.items():
        if place is None:
            line = f"{kind.title()} difference: {difference}"
        else:
            line = f"Greatest {kind} difference: {difference} at index {place}"
        lines.append(line + ("" if equal else f" (up to {tolerance} allowed)"))
    return "\n".join(lines)

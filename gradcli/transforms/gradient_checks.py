"""The gradients of a function of anybody's against what they should be: what tests assert, and `check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.transforms.any_function import NoLibrary, Subject, outputs
from gradcli.transforms.array_libraries import GRADCLI, Library
from gradcli.transforms.finite_differences import (
    OF_LARGEST,
    RTOL,
    Checked,
    check_point,
    gradient_function,
)
from gradcli.transforms.tolerances import Comparison, NotFinite, allowed

_SHOWN_WHOLE = 20  # elements; of longer arrays those that differ are told
_WORST = 5  # of them
_MOVES = 3  # of the variables, to see what rounding does
_LAST_DIGITS = 4 * 2.0**-52  # by which they move, relative
_FELT = 8.0  # times what an element moves then
YOURS = "your gradient"  # which the caller expects

# pytest shows the line of the test, not the frames of this file.
__tracebackhide__ = True


class Row:
    """A gradient by one variable beside what it should be.

    what: "gradient", "in JAX: gradient", "second derivative". given: the gradient in question, the
    caller's or the function's own. right: the exact or the numerical one (`analytical` and `numerical` are
    their older names). labels: what the two are called. index, error: the element that is worst, and how
    far apart it is, relatively. kinks: where the function has one. part: the operation to blame, if one is
    known. unseen: the elements that are lost in the noise of the differences. coarse: to what part of
    itself an element was compared, where rounding allows no more.
    """

    def __init__(
        self,
        what: str,
        name: str,
        labels: tuple[str, str],
        arrays: tuple[Any, Any],
        found: Checked | Comparison,
        tolerances: tuple[float, float | None],
    ) -> None:
        self.what, self.name, self.labels = what, name, labels
        self.given, self.right = self.analytical, self.numerical = arrays
        self.ok, self.index, self.error = found.ok, found.index, found.error
        self.wrong: Any = found.wrong
        self.method: str = getattr(found, "method", "exact")
        self.kinks: list[Any] = getattr(found, "kinks", [])
        lost = getattr(found, "unseen", np.zeros(0, bool))
        self.unseen: list[Any] = [tuple(map(int, index)) for index in np.argwhere(lost)]
        self.coarse: Any = np.asarray(getattr(found, "coarse", np.zeros(0)))
        self.tolerances = tolerances
        self.part: str | None = None
        self.is_of_sum = False  # of the value's elements, with weights drawn at random


def checked_gradients(
    function: str | Callable[..., Any],
    variables: Mapping[str, Any],
    expected: Any = None,
    *,
    wrt: Any = None,
    rtol: float = RTOL,
    atol: float | None = None,
    second_order: bool = False,
) -> Iterator[Row]:
    """The gradients one by one, as they are checked. For the arguments see assert_gradients."""
    subject = Subject(function, variables, wrt, own_gradient=expected is None)
    with np.errstate(all="ignore"):
        if expected is None:
            if not subject.own:
                raise TypeError(
                    f"a function of {subject.reads.name}'s numbers has no gradient of its own to check: "
                    "pass expected=, its gradient as an array, a formula or a function"
                )
            for library in subject.own:
                yield from _against_differences(subject, library, rtol, atol, second_order)
        else:
            said = subject.expected(expected)
            yield from _against_expected(subject, said, rtol, atol)


def _against_differences(
    subject: Subject, library: Library, rtol: float, atol: float | None, second_order: bool
) -> Iterator[Row]:
    from gradcli.transforms.fault_search import blame

    whose = "" if library is GRADCLI else f"in {library.name}: "
    function, names = subject.tensors(library), subject.names
    if subject.source is None:
        subject.steady()
    checks = [("gradient", function)]
    if second_order:
        checks.append(("second derivative", gradient_function(function, names)))
    for what, checked in checks:
        by = check_point(checked, subject.arrays, names, rtol=rtol, atol=atol)
        for row in rows_of(f"{whose}{what}", by, (rtol, atol)):
            if not row.ok and what == "gradient" and library is GRADCLI:
                part = blame(function, subject.arrays, names)
                row.part = None if part is None else part.name
            row.is_of_sum = not row.ok and _value_shape(subject) not in ((), None)
            yield row


def rows_of(
    what: str,
    by: Mapping[str, Checked],
    tolerances: tuple[float, float | None],
    part: str | None = None,
) -> list[Row]:
    """The rows of gradients that were checked against differences."""
    labels = ("analytical", "numerical")
    found = [
        Row(what, name, labels, (one.analytical, one.numerical), one, tolerances)
        for name, one in by.items()
    ]
    for row in found:
        row.part = None if row.ok else part
    return found


def _against_expected(
    subject: Subject, said: Mapping[str, Any], rtol: float, atol: float | None
) -> Iterator[Row]:
    wanted = {n: said[n] for n in subject.names if n in said}
    if not wanted:
        raise TypeError(f"expected is of none of the variables ({', '.join(subject.names)})")
    for name, array in wanted.items():
        shape = subject.arrays[name].shape
        if array.shape != shape and array.ndim > len(shape) and _is_jacobian(subject, name, array):
            yield from _rows_of_jacobian(subject, name, array, rtol, atol)
            wanted = {n: a for n, a in wanted.items() if n != name}
            continue
        if array.shape != shape and array.size != 1:
            yield _of_shape(subject, name, array)
            return
        wanted[name] = np.broadcast_to(array, shape)
    if subject.guessed:
        subject.steady()
        try:  # what the graph says of NumPy's own function is believed where differences agree
            rows = list(_against_differences(subject, GRADCLI, rtol, atol, False))
        except (NotFinite, RuntimeError, TypeError):
            rows = []
        subject.own = [GRADCLI] if rows and all(row.ok for row in rows) else []
    if not subject.own:
        subject.steady()
        found = _by_differences(subject, wanted, rtol, atol)
        for name, one in found.items():
            arrays, labels = (wanted[name], one.numerical), (YOURS, "numerical gradient")
            yield Row(YOURS, name, labels, arrays, one, (rtol, atol))
        return
    for library in subject.own:
        yield from _against_own(subject, library, wanted, rtol, atol)


def _against_own(
    subject: Subject, library: Library, wanted: Mapping[str, Any], rtol: float, atol: float | None
) -> Iterator[Row]:
    whose = "" if library is GRADCLI else f"in {library.name}: "
    own = _own_gradients(subject, library, subject.arrays)
    for name, array in wanted.items():
        compared = Comparison(array, own[name], rtol, atol, OF_LARGEST)
        if not compared.ok and Comparison(array, own[name], rtol, atol).ok:
            doubt = _rounding(subject, library, own)[name]
            compared = Comparison(array, own[name], rtol, atol, OF_LARGEST, doubt)
        if not compared.ok and _is_other_slope(subject, name, array, compared.wrong, rtol, atol):
            compared.ok, compared.wrong = True, np.zeros_like(compared.wrong)
        labels = YOURS, f"{whose}exact gradient"
        yield Row(YOURS, name, labels, (array, own[name]), compared, (rtol, atol))
    if subject.source is not None or subject.guessed:
        return
    try:  # an operation of somebody's may be as wrong as what he expects
        yield from _against_differences(subject, library, rtol, atol, False)
    except NotFinite:
        return


def _rounding(subject: Subject, library: Library, own: Mapping[str, Any]) -> dict[str, Any]:
    """What rounding may take of each element: how far it goes where the variables move by a last digit.

    The gradient of `sum(softmax(x))` is 0, and 1e-17 as it is computed, whatever the largest element is.
    """
    rng = np.random.default_rng(0)
    found = {n: np.zeros(g.shape) for n, g in own.items()}
    for _ in range(_MOVES):
        moved = {
            n: a * (1 + _LAST_DIGITS * rng.choice([-1.0, 1.0], a.shape))
            if a.dtype.kind in "fc"
            else a
            for n, a in subject.arrays.items()
        }
        for name, near in _own_gradients(subject, library, moved).items():
            found[name] = np.maximum(found[name], _FELT * np.abs(near - own[name]))
    return found


def _own_gradients(subject: Subject, library: Library, arrays: Mapping[str, Any]) -> dict[str, Any]:
    from gradcli.engine.core import modes
    from gradcli.engine.core.backward_pass import grad
    from gradcli.engine.core.tensor import Tensor, wrap

    leaves = {n: wrap(np.array(arrays[n]), requires_grad=True) for n in subject.names}
    with modes.enable_grad():
        made = subject.tensors(library)(**leaves)
    values = list(made) if isinstance(made, (tuple, list)) else [made]
    for value in values:
        if not isinstance(value, Tensor):
            raise NoLibrary(f"the value is a {type(value).__name__}, not a tensor")
    able = [v for v in values if v.requires_grad]
    found: Sequence[Any] = [None] * len(leaves)
    if able:
        starts = [wrap(np.ones_like(v.array)) for v in able]
        found = grad(able, list(leaves.values()), starts, allow_unused=True)
    return {
        n: np.zeros(t.shape) if g is None else np.asarray(g.array)
        for (n, t), g in zip(leaves.items(), found, strict=True)
    }


def _is_other_slope(
    subject: Subject, name: str, said: Any, apart: Any, rtol: float, atol: float | None
) -> bool:
    """Whether all that differs lies on kinks, and is a slope between those of the two sides."""
    if not np.isfinite(said).all() or subject.arrays[name].dtype.kind != "f":
        return False
    try:
        found = _by_differences(subject, {name: said}, rtol, atol)[name]
    except NotFinite:
        return False
    kinks = {kink.index for kink in found.kinks if kink.ok}
    return all(tuple(map(int, index)) in kinks for index in np.argwhere(apart))


def _by_differences(
    subject: Subject, wanted: Mapping[str, Any], rtol: float, atol: float | None
) -> dict[str, Checked]:
    function = subject.with_gradient(wanted)
    return check_point(function, subject.arrays, list(wanted), rtol=rtol, atol=atol)


def _value_shape(subject: Subject) -> tuple[int, ...] | None:
    """The shape of the function's value, a list of numbers too; None where it has several."""
    start = {n: subject.reads.make(subject.arrays[n]) for n in subject.names}
    with subject.reads.around():
        value = subject.call(subject.reads, start)
    shapes = [tuple(map(int, np.shape(v))) for v in outputs(value)]
    if isinstance(value, (list, tuple)) and not any(shapes):  # of numbers
        return (len(shapes),)
    return shapes[0] if len(shapes) == 1 else None


def _is_jacobian(subject: Subject, name: str, array: Any) -> bool:
    """Whether an array has the value's dimensions before those of the variable."""
    return bool(array.shape == (*(_value_shape(subject) or ()), *subject.arrays[name].shape))


def _rows_of_jacobian(
    subject: Subject, name: str, array: Any, rtol: float, atol: float | None
) -> Iterator[Row]:
    """The rows of a Jacobian, each as the gradient of one element of the value."""
    shape = _value_shape(subject) or ()
    for index in np.ndindex(shape):
        place = f"[{', '.join(map(str, index))}]"
        for row in _against_expected(subject.element(index), {name: array[index]}, rtol, atol):
            if row.what == YOURS:
                row.what = f"row {place} of your Jacobian"
                row.labels = f"your row {place}", row.labels[1].replace("gradient", "row")
            yield row


def _of_shape(subject: Subject, name: str, array: Any) -> Row:
    shape = subject.arrays[name].shape
    empty = Comparison(np.zeros(0), np.zeros(0), 0.0, 0.0)
    empty.ok = False
    what = f"gradient by {name} has shape {shape}, expected {array.shape}"
    if of := _value_shape(subject):
        what += f": the value has shape {of}, and the gradient is that of its sum; a Jacobian would have "
        what += f"shape {(*of, *shape)}"
    return Row(what, name, ("", ""), (np.zeros(shape), array), empty, (0.0, 0.0))


# -- words ------------------------------------------------------------------------------------------
def words_of(row: Row) -> str:
    """What is wrong, and where: both arrays, or of long ones the elements that differ most."""
    if row.labels == ("", ""):
        return row.what
    place = f"[{', '.join(map(str, row.index))}]" if row.index else ""
    head = f"{row.what} by {row.name} is wrong at {row.name}{place}"
    lines = [f"{head} (relative error {row.error:.1e})"]
    width = max(*map(len, row.labels), len("to blame") if row.part else 0)
    if row.given.size > _SHOWN_WHOLE:
        lines += worst_elements(row)
    else:
        for label, array in zip(row.labels, (row.given, row.right), strict=True):
            text = np.array2string(np.asarray(array), precision=8, threshold=50, separator=", ")
            lines.append(f"  {label:<{width}}: " + text.replace("\n", "\n" + " " * (width + 4)))
    kinks = {kink.index: kink for kink in row.kinks}
    if (kink := kinks.get(row.index)) is not None:
        lines.append(
            f"  a kink: the slopes are {kink.left:.6g} to the left, {kink.right:.6g} right"
        )
    if row.part is not None:
        lines.append(f"  {'to blame':<{width}}: {row.part}")
    if row.is_of_sum:
        lines.append("  of a sum of the value's elements with weights drawn at random")
    return "\n".join(lines)


def unseen(row: Row) -> str:
    """What of a gradient is too small to be checked by differences; for a row that has such elements."""
    places = [f"[{', '.join(map(str, index))}]" if index else "" for index in row.unseen]
    more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
    return (
        f"{row.name}{places[0]}{more}: {row.given[row.unseen[0]]:.2g} is lost in the rounding of the "
        "function's values and was not checked"
    )


def coarse(row: Row) -> str:
    """How far an element could be compared at all; '' where all could as far as was asked."""
    if not row.coarse.any():
        return ""
    index = np.unravel_index(int(np.argmax(row.coarse)), row.coarse.shape)
    place = f"[{', '.join(map(str, index))}]" if index else ""
    more = int(np.count_nonzero(row.coarse)) - 1
    others = f" (and {more:,} more less coarsely)" if more else ""
    return (
        f"{row.name}{place}{others}: {row.given[index]:.2g} was compared to {row.coarse[index]:.1%} only, "
        "for differences lose the rest to the rounding of the function's values; what runs on tensors "
        "has an exact gradient"
    )


def line_of(row: Row) -> list[str]:
    """A line that says whether the gradient is right; of long arrays, the elements that differ most."""
    if row.ok:
        said = [*([unseen(row)] if row.unseen else ()), *filter(None, [coarse(row)])]
        lost = "".join(f"; {words}" for words in said)
        return [f"ok: {row.what} by {row.name} (max error {row.error:.1e}, {row.method}{lost})"]
    if row.labels == ("", ""):
        return [f"wrong: {row.what}"]
    at = f"[{', '.join(map(str, row.index))}]" if row.index else ""
    (first, second), index = row.labels, row.index
    head = (
        f"wrong {row.what}: {row.name}{at}: {first} {row.given[index]:.9g}, "
        f"{second} {row.right[index]:.9g} (relative error {row.error:.1e})"
    )
    return [head, *(worst_elements(row) if row.wrong.sum() > 1 else [])]


def worst_elements(row: Row) -> list[str]:
    """How many elements are wrong, and those that are farthest off, a line each."""
    a, b = row.given, row.right
    excess = np.abs(a - b) / allowed(a, b, *row.tolerances)
    excess = np.where(row.wrong, np.where(np.isnan(excess), np.inf, excess), -1.0)
    count = int(row.wrong.sum())
    worst = np.argsort(-excess, axis=None, kind="stable")[: min(_WORST, count)]
    places = [np.unravel_index(i, a.shape) for i in worst]
    lines = [f"  {count:,} of {a.size:,} elements differ; those that do most:"]
    first, second = row.labels
    return lines + [
        f"  {row.name}[{', '.join(map(str, i))}]  {first} {a[i]:.8g}  {second} {b[i]:.8g}"
        for i in places
    ]

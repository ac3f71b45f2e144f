"""Derivatives of programs by the route whose error is least: the tape, and power series where that fails.

The tape multiplies slopes at the point, and gives NaN where a rule divides 0 by 0, or a number without digits
where one rule cancels what another has added. There the program is run once more on power series
(`transforms.jets`), which say the limit, that there is none, or that it cannot be decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.declaration import parameters_of
from gradcli.engine.core.switch import watching
from gradcli.engine.core.tensor import Tensor, edge, wrap
from gradcli.language import run
from gradcli.language.program import Program
from gradcli.operators.primitives.accurate_slopes import as_stated
from gradcli.transforms import traced_matrices
from gradcli.transforms.batched_passes import Sparse
from gradcli.transforms.higher_orders import gradients

Array = Any
Names = Mapping[str, Any] | None

_SAME = 1e-9  # relative, what a step in the last places may change of a number that is no pole
ULPS = 4  # by how many a number of the tape has to be off before another is given


@dataclass
class Remarks:
    """What is to be said of results, by their names.

    closed: not finite on the tape, and found. corrected: other numbers on the tape. proved: from the formula
    of `diff`. undecided: what could not be decided. none: there is no finite one. open: not finite, and
    nothing better is known. unsure: finite, where rules are known to lose digits, and not looked at.
    """

    closed: dict[str, int] = field(default_factory=dict)
    corrected: dict[str, int] = field(default_factory=dict)
    proved: dict[str, int] = field(default_factory=dict)
    undecided: dict[str, int] = field(default_factory=dict)
    none: dict[str, int] = field(default_factory=dict)
    open: dict[str, int] = field(default_factory=dict)
    unsure: dict[str, int] = field(default_factory=dict)
    why = ""  # there are no power series, where that is known

    def lines(self, command: bool = True) -> list[str]:
        """A sentence for each kind of them; not for a command: of those that are no results."""
        where = ": --detect-anomaly says where it came from" if command else ""
        says = "; --detect-anomaly says where it came from" if command else ""
        kinds = [
            (
                self.undecided,
                "{} {} undecided: what decides it is lost in rounding, or along curves",
            ),
            (self.none, "{} {} not finite: there is none along lines through the point" + says),
            (self.open, "{} {} not finite" + self.why + where),
            (self.unsure, "{} {} by the rules alone, which may lose digits here" + self.why),
        ]
        if command:
            by = "{} {} by power series through the point: rule by rule "
            kinds[:0] = [
                (self.closed, by + "it is not a number"),
                (self.corrected, by + "its digits are lost"),
                (
                    self.proved,
                    "{} {} from the formula that diff proves: rule by rule it is not a number",
                ),
            ]
        made = []
        for found, words in kinds:
            if found:
                names = list(found)
                shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
                made.append(words.format(shown, "is" if len(names) == 1 else "are"))
        return made


class Watch:
    """Notes whether a run calls an operator where its rules are known to fail.

    critical: by an operator's fact of this name, in its slope or in higher ones; steep: in its slope. bent:
    at a kink, by its fact `bends`; a combination of kinks may be smooth. The run that it watches is recorded.
    """

    def __init__(self) -> None:
        self.critical = self.steep = self.bent = False
        self._below: Any = None
        # For each node the variables below it, as bits; the nodes are kept, so that no other has their id.
        self._variables: dict[int, tuple[Any, int]] = {}
        self._leaves = 0

    def __call__(
        self, primitive: Any, operands: Sequence[Any], results: Sequence[Any], given: Sequence[Any]
    ) -> None:
        """What the engine calls after every operation of an operator that has such facts."""
        if self._below is not None:
            self._below(primitive, operands, results, given)
        if modes.unusual and modes.current().rules:  # of forward mode: no call of the program
            return
        if primitive.critical is not None and not self.steep:
            moving = [
                n
                for n, i in primitive.position.items()
                if i in primitive.differentiated
                and given[i] is not None
                and edge(given[i]) is not None
            ]
            found = _fact(primitive.critical, primitive, operands, results, moving)
            if np.any(found) and (not primitive.cancels or self._meet(primitive, given)):
                self.critical = True
                self.steep = bool(np.any(np.equal(found, 1)))
        if primitive.bends is not None and not self.bent:
            self.bent = bool(np.any(_fact(primitive.bends, primitive, operands, results)))

    def _meet(self, primitive: Any, given: Sequence[Any]) -> bool:
        """Whether some variable moves several operands of a call."""
        seen = 0
        for i in primitive.differentiated:
            own = 0 if given[i] is None else self._below_node(edge(given[i]))
            if seen & own:
                return True
            seen |= own
        return False

    def _below_node(self, root: Any) -> int:
        """The variables that a node's result depends on, as bits."""
        known, stack = self._variables, [] if root is None else [root]
        while stack:
            node = stack[-1]
            below = [e for e in node._edges if e is not None]
            if id(node) in known:
                stack.pop()
            elif waiting := [e for e in below if id(e) not in known]:
                stack += waiting
            else:
                bits = 0
                for e in below:
                    bits |= known[id(e)][1]
                if not below:
                    bits = 1 << self._leaves
                    self._leaves += 1
                known[id(node)] = (node, bits)
        return 0 if root is None else known[id(root)][1]

    def __enter__(self) -> Watch:
        self._below = watching[-1] if watching else None
        watching.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        watching.remove(self)


def _fact(
    fact: Any,
    primitive: Any,
    operands: Sequence[Any],
    results: Sequence[Any],
    moving: Sequence[str] = (),
) -> Any:
    """For which elements of a call's arrays a fact holds. moving: the operands that depend on variables."""
    given: list[Any] = []
    for name in parameters_of(fact):
        if name == "moving":
            given.append(moving)
            continue
        array = results[0] if name == "result" else operands[primitive.position[name]]
        array = getattr(array, "value", array)
        if type(array) is not np.ndarray and not np.isscalar(array):
            return False
        if getattr(array, "dtype", _DOUBLE).kind not in "fiub":
            return False
        given.append(array)
    with np.errstate(all="ignore"):
        return fact(*given)


_DOUBLE = np.dtype(float)


class Recorded(NamedTuple):
    """A run that has been made: its value, the variables it was recorded for, its watch, its start."""

    value: Any
    leaves: list[Tensor]
    watch: Watch
    start: traced_matrices.Start


def is_finite(array: Array) -> bool:
    """Whether all elements are numbers."""
    values = array.values if isinstance(array, Sparse) else array
    return bool(np.isfinite(values).all()) if np.asarray(values).dtype.kind in "fc" else True


def mended(tape: Array, found: Any, name: str, remarks: Remarks) -> Array:
    """The tape's numbers, with those of power series where they are better.

    found: `jets.derivatives.Found` of the same shape.
    """
    from gradcli.transforms.jets.derivatives import FOUND, LOST, NONE, UNDECIDED

    tape = np.asarray(tape)
    eps = float(np.finfo(tape.dtype).eps)
    values = np.asarray(found.values).reshape(tape.shape)
    bounds = np.asarray(found.bounds).reshape(tape.shape)
    status = np.asarray(found.status).reshape(tape.shape)
    good, finite = status == FOUND, np.isfinite(tape)
    with np.errstate(all="ignore"):
        cast = values.astype(tape.dtype)
        off = np.abs(tape.astype(np.float64) - values) > ULPS * eps * np.abs(values) + 8 * bounds
    good &= np.isfinite(cast)
    closes, corrects = good & ~finite, good & finite & off
    for kind, where in (
        (remarks.closed, closes),
        (remarks.corrected, corrects),
        (remarks.undecided, (status == LOST) | (~finite & (status == UNDECIDED))),
        (remarks.none, ~finite & (status == NONE)),
        (remarks.open, ~finite & ~closes & (status == FOUND)),
    ):
        if where.any():
            kind[name] = int(where.sum())
    return np.where(closes | corrects, cast, tape)[()]


def _note_open(results: Mapping[str, Array], remarks: Remarks, critical: bool = False) -> None:
    """Note what is not finite; of finite ones that rules may lose digits, where that is `critical`."""
    for name, array in results.items():
        if not is_finite(array):
            remarks.open[name] = 1
        elif critical and remarks.why:
            remarks.unsure[name] = 1


def _wants_series(critical: bool, results: Mapping[str, Array], remarks: Remarks) -> bool:
    """Whether there is more to find; where PyTorch's rules are asked for, what is not finite is noted."""
    if not critical and all(map(is_finite, results.values())):
        return False
    if as_stated:
        _note_open(results, remarks)
    return not as_stated


Work = Callable[
    [Mapping[str, Tensor]], Any
]  # of the variables: `jets.derivatives.Found`, or a list of them


def _by_series(
    work: Work, tensors: Mapping[str, Tensor], remarks: Remarks, tape: Iterable[Array] = ()
) -> Any:
    """The result of work on power series; None where the program has none, and the remarks say why.

    tape: the numbers of the tape: infinite ones are looked at beside the point.
    """
    from gradcli.transforms.jets.derivatives import PROBLEMS, UNDECIDED
    from gradcli.transforms.jets.traces import NoSeries

    try:
        found = work(tensors)
    except NoSeries as error:
        remarks.why = f" (power series do not take {error})"
        return None
    except PROBLEMS:
        return None
    parts = found if isinstance(found, list) else [found]
    open_ = any((part.status == UNDECIDED).any() for part in parts)
    if open_ and any(np.isinf(_values(a)).any() for a in tape):
        beside = _beside_overflow(work, tensors, parts)
        return beside if isinstance(found, list) else beside[0]
    return found


def _beside_overflow(work: Work, tensors: Mapping[str, Tensor], parts: list[Any]) -> list[Any]:
    """What is undecided, from one and two units in the last place of the variables beside the point.

    2**1024 is infinite, its second derivative is not: where both tell the same, the value overflows there and
    is no pole.
    """
    from gradcli.transforms.jets.derivatives import FOUND, PROBLEMS, UNDECIDED, Found

    def moved(k: int) -> Mapping[str, Tensor]:
        return {
            n: wrap(np.asarray(t.array * (1 - k * np.finfo(t.array.dtype).eps), t.array.dtype)[()])
            if t.array.dtype.kind == "f"
            else t
            for n, t in tensors.items()
        }

    try:
        one, two = (
            made if isinstance(made, list) else [made] for made in (work(moved(1)), work(moved(2)))
        )
    except PROBLEMS:
        return parts
    better = []
    for here, near, far in zip(parts, one, two, strict=True):
        gap = np.abs(near.values - far.values)
        known = (near.status == FOUND) & (far.status == FOUND)
        known &= (here.status == UNDECIDED) & (gap <= _SAME * np.abs(near.values))
        better.append(
            Found(
                np.where(known, near.values + (near.values - far.values), here.values),
                np.where(known, near.bounds + gap, here.bounds),
                np.where(known, FOUND, here.status),
            )
        )
    return better


def _values(array: Any) -> Array:
    return np.asarray(array.values if isinstance(array, Sparse) else array)


def hessian(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Names = None,
    sparse: bool = False,
    recorded: Recorded | None = None,
) -> tuple[dict[str, traced_matrices.Matrices], Remarks]:
    """As `traced_matrices.hessian`, and what is to be said of it; recorded: of a run that was made."""
    remarks = Remarks()
    if recorded is None:
        start, watch = traced_matrices.Start(), Watch()
        found = traced_matrices.hessian(program, tensors, wrt, names, sparse, watch)
    else:
        start, watch = recorded.start, recorded.watch
        ran = recorded.value, recorded.leaves
        found = traced_matrices.hessian(program, tensors, wrt, names, sparse, recorded=ran)
    called = {
        (n, m): f"{n}.hessian" if len(wrt) == 1 else f"{n}.{m}.hessian" for n in wrt for m in wrt
    }
    results = {called[n, m]: found[n].by[m] for n, m in called}
    if not _wants_series(watch.critical or watch.bent, results, remarks):
        return found, remarks
    start.again()

    def work(tensors: Mapping[str, Tensor]) -> Any:
        from gradcli.transforms.jets import derivatives

        return derivatives.hessian(derivatives.Traced(program, tensors, wrt, names))

    whole = _by_series(work, tensors, remarks, results.values())
    if whole is None:
        _note_open(results, remarks, watch.critical)
        return found, remarks
    ends = np.cumsum([0, *(tensors[n].numel() for n in wrt)])
    for i, n in enumerate(wrt):
        for j, m in enumerate(wrt):
            block = found[n].by[m]
            part = whole.at((slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])))
            dense = _dense(block) if isinstance(block, Sparse) else block
            made = mended(dense, part, called[n, m], remarks)
            found[n].by[m] = _sparse(made) if isinstance(block, Sparse) else made
    return found, remarks


def _dense(block: Sparse) -> Array:
    made = np.zeros(block.shape, block.values.dtype)
    if len(block.values):
        made[tuple(block.indices.T)] = block.values
    return made


def _sparse(dense: Array) -> Sparse:
    dense = np.asarray(dense)
    return Sparse(dense.shape, np.argwhere(dense), dense[dense != 0])


def hvp(
    program: Program,
    tensors: Mapping[str, Tensor],
    vectors: Mapping[str, Tensor],
    names: Names = None,
) -> tuple[dict[str, Any], Remarks]:
    """As `traced_matrices.hvp`, and what is to be said of it."""
    remarks, start = Remarks(), traced_matrices.Start()
    watch = Watch()
    found = traced_matrices.hvp(program, tensors, vectors, names, watch)
    tape = {f"{n}.hvp": v.array for n, v in found.items()}
    if not _wants_series(watch.critical or watch.bent, tape, remarks):
        return found, remarks
    start.again()

    def work(tensors: Mapping[str, Tensor]) -> Any:
        from gradcli.transforms.jets import derivatives

        traced = derivatives.Traced(program, tensors, list(vectors), names)
        line = np.concatenate([np.ravel(v.array).astype(np.float64) for v in vectors.values()])
        return derivatives.gradient_along(traced, line, 1)

    made = _by_series(work, tensors, remarks, tape.values())
    if made is None:
        _note_open(tape, remarks)
        return found, remarks
    results = {
        n: wrap(mended(v.array, part, f"{n}.hvp", remarks))
        for (n, v), part in zip(found.items(), made, strict=True)
    }
    return results, remarks


def jvp(
    program: Program,
    tensors: Mapping[str, Tensor],
    vectors: Mapping[str, Tensor],
    names: Names = None,
) -> tuple[tuple[Any, Any], Remarks]:
    """As `traced_matrices.jvp`, and what is to be said of it."""
    remarks, start = Remarks(), traced_matrices.Start()
    watch = Watch()
    value, found = traced_matrices.jvp(program, tensors, vectors, names, watch)
    if not _wants_series(watch.critical, {"jvp": found.array}, remarks):
        return (value, found), remarks
    start.again()

    def work(tensors: Mapping[str, Tensor]) -> Any:
        from gradcli.transforms.jets import derivatives

        still = [n for n, t in tensors.items() if n not in vectors and t.array.dtype.kind == "f"]
        traced = derivatives.Traced(program, tensors, [*vectors, *still], names, gradient=False)
        given = [*(v.array for v in vectors.values()), *(0 * tensors[n].array for n in still)]
        line = np.concatenate([np.ravel(v).astype(np.float64) for v in given])
        found = derivatives.along(traced, line[None], 1).at((1, 0))
        if (found.status == derivatives.UNDECIDED).any():  # a line within what is singular
            whole = derivatives.jacobian(traced)
            values, bounds = whole.values @ line, whole.bounds @ np.abs(line)
            known = (whole.status == derivatives.FOUND).all(-1)
            found = derivatives.agreed(
                found, derivatives.Found(values, bounds, np.where(known, 0, 2))
            )
        return found

    made = _by_series(work, tensors, remarks, [found.array])
    if made is None:
        _note_open({"jvp": found.array}, remarks)
        return (value, found), remarks
    return (value, wrap(mended(found.array, made, "jvp", remarks))), remarks


def jacobian(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Names = None,
    mode: str | None = None,
) -> tuple[traced_matrices.Matrices, Remarks]:
    """As `traced_matrices.jacobian`, and what is to be said of it."""
    remarks, start = Remarks(), traced_matrices.Start()
    watch = Watch()
    found = traced_matrices.jacobian(program, tensors, wrt, names, mode, watch)
    tape = {f"{n}.jacobian": a for n, a in found.by.items()}
    if not _wants_series(watch.critical, tape, remarks):
        return found, remarks
    start.again()

    def work(tensors: Mapping[str, Tensor]) -> Any:
        from gradcli.transforms.jets import derivatives

        return derivatives.jacobian(
            derivatives.Traced(program, tensors, wrt, names, gradient=False)
        )

    whole = _by_series(work, tensors, remarks, tape.values())
    if whole is None:
        _note_open(tape, remarks, watch.critical)
        return found, remarks
    ends = np.cumsum([0, *(tensors[n].numel() for n in wrt)])
    by = {
        n: mended(
            found.by[n], whole.at((..., slice(ends[i], ends[i + 1]))), f"{n}.jacobian", remarks
        )
        for i, n in enumerate(wrt)
    }
    return found._replace(by=by), remarks


def noted(results: Mapping[str, Array]) -> Remarks:
    """What is to be said of results that nothing else is known of."""
    remarks = Remarks()
    _note_open(results, remarks)
    return remarks


MOST_SLOPES = 200  # elements whose slopes are looked at one by one
SERIES_FROM = 4  # the order from which series are less work than one backward pass in another


def nth_gradients(
    program: Program,
    tensors: Mapping[str, Tensor],
    value: Any,
    leaves: Mapping[str, Any],
    order: int,
    cotangent: Any = None,
    names: Names = None,
    critical: bool = True,
) -> tuple[dict[str, Any], Remarks]:
    """The derivatives of a recorded value of an order by each of the leaves, and what is to be said.

    As `higher_orders.gradients`: from the second time on the gradient is summed up first. critical: whether
    an operator was called where its rules are known to fail.
    """
    remarks = Remarks()

    def work(tensors: Mapping[str, Tensor]) -> Any:
        from gradcli.transforms.jets import derivatives

        seed = None if cotangent is None else np.asarray(cotangent.array)
        return derivatives.nth(program, tensors, list(leaves), order, seed, names)

    own = all(n in tensors for n in leaves)  # and no leaf of the program's own
    own = own and not as_stated
    series = _by_series(work, tensors, remarks) if own and order >= SERIES_FROM else None
    if series is not None and all((f.status == 0).all() for f in series):
        if not is_finite(value.array):
            remarks.closed.update((f"{n}.grad", 1) for n in leaves)
        return {
            n: _as_leaf(f, t) for f, (n, t) in zip(series, leaves.items(), strict=True)
        }, remarks
    found = gradients(value, leaves, cotangent, order)
    if not critical and all(is_finite(g.array) for g in found.values()):
        return found, remarks
    tape = [g.array for g in found.values()]
    if own and (series is None or any(np.isinf(a).any() for a in tape)):
        series = _by_series(work, tensors, remarks, tape)
    if series is None:
        _note_open({f"{n}.grad": g.array for n, g in found.items()}, remarks)
        return found, remarks
    made = {
        n: wrap(mended(g.array, part, f"{n}.grad", remarks))
        for (n, g), part in zip(found.items(), series, strict=True)
    }
    return made, remarks


def slopes(
    program: Program,
    tensors: Mapping[str, Tensor],
    gradients: Mapping[str, Array],
    cotangent: Array | None = None,
    names: Names = None,
) -> tuple[dict[str, Array], Remarks]:
    """Gradients of the tape with the digits that results have lost; only those that are others."""
    remarks = Remarks()
    if as_stated or sum(tensors[n].numel() for n in gradients) > MOST_SLOPES:
        return {}, remarks
    watch = Watch()
    traced_matrices.recorded_run(program, tensors, list(gradients), names, watch)
    if not watch.steep:
        return {}, remarks
    made, own = _slopes(program, tensors, gradients, cotangent, names)
    remarks.corrected |= own.corrected
    return {n: a for n, a in made.items() if f"{n}.grad" in own.corrected}, remarks


def _slopes(
    program: Program,
    tensors: Mapping[str, Tensor],
    gradients: Mapping[str, Array],
    cotangent: Array | None,
    names: Names,
) -> tuple[dict[str, Array], Remarks]:
    """Gradients of the tape, with numbers of power series where they are better, and what is to be said."""
    remarks = Remarks()

    def work(tensors: Mapping[str, Tensor]) -> Any:
        from gradcli.transforms.jets import derivatives

        traced = derivatives.Traced(
            program, tensors, list(gradients), names, gradient=False, seed=cotangent
        )
        return derivatives.jacobian(traced)

    whole = _by_series(work, tensors, remarks, gradients.values())
    if whole is None or whole.values.ndim != 1:
        return dict(gradients), remarks
    ends = np.cumsum([0, *(tensors[n].numel() for n in gradients)])
    made = {}
    for i, (name, array) in enumerate(gradients.items()):
        made[name] = mended(array, whole.at(slice(ends[i], ends[i + 1])), f"{name}.grad", remarks)
    return made, remarks


def limits_of_jacobian(
    program: Program, tensors: Mapping[str, Tensor], wrt: Sequence[str], names: Names = None
) -> dict[str, Array] | None:
    """What `jacobian` gives at a point where rules fail, NaN where that is not known; None elsewhere."""
    found, remarks = jacobian(program, tensors, wrt, names)
    return _known({n: (f"{n}.jacobian", a) for n, a in found.by.items()}, remarks)


def limits_of_hessian(
    program: Program, tensors: Mapping[str, Tensor], wrt: Sequence[str], names: Names = None
) -> dict[tuple[str, str], Array] | None:
    """As `limits_of_jacobian`, for the second derivatives of a scalar: by pairs of variables."""
    found, remarks = hessian(program, tensors, wrt, names)
    one = len(wrt) == 1
    called = {(n, m): f"{n}.hessian" if one else f"{n}.{m}.hessian" for n in wrt for m in wrt}
    return _known({(n, m): (c, found[n].by[m]) for (n, m), c in called.items()}, remarks)


def limits_of_summed_hessian(
    program: Program, tensors: Mapping[str, Tensor], wrt: Sequence[str], names: Names = None
) -> dict[tuple[str, str], Array] | None:
    """The second derivatives of the sum of a program's values, by power series alone; None without any."""

    def work(tensors: Mapping[str, Tensor]) -> Any:
        from gradcli.transforms.jets import derivatives

        value = traced_matrices.value_of(program, tensors, names)
        seed = np.ones(value.shape)
        return derivatives.hessian(derivatives.Traced(program, tensors, wrt, names, seed=seed))

    whole = _by_series(work, tensors, Remarks())
    if whole is None:
        return None
    values = np.where(whole.status == 0, whole.values, np.nan)
    ends = np.cumsum([0, *(tensors[n].numel() for n in wrt)])
    return {
        (n, m): values[ends[i] : ends[i + 1], ends[j] : ends[j + 1]].reshape(
            *tensors[n].shape, *tensors[m].shape
        )
        for i, n in enumerate(wrt)
        for j, m in enumerate(wrt)
    }


def limits_of_gradients(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    order: int = 1,
    names: Names = None,
) -> dict[str, Array] | None:
    """As `limits_of_jacobian`, for what `nth_gradients` gives of the value's sum; its first order too."""
    leaves = traced_matrices.leaves_of(tensors, wrt)
    start = traced_matrices.Start()
    with Watch() as watch, np.errstate(all="ignore"):
        value = run(program, {**(names or {}), **tensors, **leaves}, write=lambda text: None).value
    if not isinstance(value, Tensor) or not value.requires_grad:
        return None
    ones = wrap(np.ones_like(value.array))
    start.again()
    if order > 1:
        met = watch.critical or watch.bent
        found, remarks = nth_gradients(program, tensors, value, leaves, order, ones, names, met)
        made = {n: g.array for n, g in found.items()}
    else:
        found = gradients(value, leaves, ones)
        tape = {
            n: np.zeros_like(leaves[n].array) if g is None else g.array for n, g in found.items()
        }
        if not watch.critical and all(map(is_finite, tape.values())):
            return None
        made, remarks = _slopes(program, tensors, tape, ones.array, names)
    return _known({n: (f"{n}.grad", a) for n, a in made.items()}, remarks)


def _known(results: Mapping[Any, tuple[str, Array]], remarks: Remarks) -> dict[Any, Array] | None:
    """Results by what they are called in the remarks, NaN where these have doubts; None without any."""
    doubts = {**remarks.undecided, **remarks.none, **remarks.open}
    if not (remarks.closed or remarks.corrected or doubts):
        return None
    return {
        key: np.full_like(a, np.nan) if name in doubts else np.asarray(a)
        for key, (name, a) in results.items()
    }


def _as_leaf(found: Any, leaf: Any) -> Any:
    values = np.asarray(found.values).astype(leaf.array.dtype)
    return wrap(values.reshape(leaf.shape)[()])


__all__ = ["Remarks", "hessian", "hvp", "jacobian", "jvp", "nth_gradients"]

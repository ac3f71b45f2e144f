"""Tensors joined, repeated, rotated and cut along their diagonals: results in fresh memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import BatchLevel, batch_of, full, lifted
from gradcli.engine.core.declaration import Array, Arrays, Ints, Shape, Value, itself
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, sized_dim, wrap, wrap_dim
from gradcli.engine.registry.factory_arguments import nonnegative
from gradcli.engine.registry.rule_helpers import (
    constant,
    contiguous,
    implemented,
    new_zeros,
    refuse_if,
    total,
)
from gradcli.engine.registry.table import function, operator, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import Numberless, afresh
from gradcli.engine.system.dtypes import tensor_name
from gradcli.operators.movement.reshaping import (
    diagonal,
    expand_size,
    flatten,
    reshape,
    select,
    slice_p,
    squeeze_dim,
    unsqueeze,
    view_size,
)
from gradcli.operators.movement.strides import copied, in_order, unique_dims

FAMILY = "shapes"


# -- one after the other --------------------------------------------------------------------------
@operator(
    "linear common function apart",
    node="CatBackward0",
    aliases="concat concatenate",
    numpy=np.concatenate,
    samples="([randn(2,3), randn(1,3)]); ([randn(2,3), randn(2,2)], dim=-1)",
    batching="concatenated",
    signature="cat(Tensor[] tensors, int dim=0, *, Tensor out=None)",
    out="cast: cat",
)
class cat:
    """The tensors one after the other along a dim."""

    def forward(tensors: Arrays, dim: int = 0) -> Array:
        if not tensors:
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        for i, a in enumerate(tensors):
            if not a.ndim:
                raise RuntimeError(
                    f"zero-dimensional tensor (at position {i}) cannot be concatenated"
                )
        kept = [a for a in tensors if a.shape != (0,)]
        if not kept:
            return tensors[0].copy()
        first = kept[0]
        at = wrap_dim(dim, first.ndim)
        for i, a in enumerate(tensors):
            if a.shape == (0,):
                continue
            if a.ndim != first.ndim:
                raise RuntimeError(
                    f"Tensors must have same number of dimensions: got {first.ndim} and {a.ndim}"
                )
            for d in range(a.ndim):
                if d != at and a.shape[d] != first.shape[d]:
                    raise RuntimeError(
                        f"Sizes of tensors must match except in dimension {at}. Expected size "
                        f"{first.shape[d]} but got size {a.shape[d]} for tensor number {i} in the list."
                    )
        return in_order(np.concatenate(kept, at))

    def tensors(g: Value, tensors_args: Any, dim: int, mask: tuple[bool, ...]) -> list[Any]:
        found: list[Any] = []
        start = 0
        at = dim % g.ndim
        for shape, wanted in zip(tensors_args, mask, strict=True):
            if shape == (0,):
                found.append(new_zeros(g, (0,)) if wanted else None)
                continue
            end = start + shape[at]
            found.append(slice_p(g, at, start, end, 1) if wanted else None)
            start = end
        return found


def _stack(tensors: Arrays, dim: int = 0) -> Array:
    refuse_if(not tensors, "stack expects a non-empty TensorList")
    first = tensors[0]
    at = wrap_dim(dim, first.ndim + 1)
    for i, a in enumerate(tensors):
        if a.shape != first.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry "
                f"0 and {list(a.shape)} at entry {i}"
            )
    if any(isinstance(a, Numberless) for a in tensors):
        return np.stack(tensors, at)  # what is made of it cannot be written
    made = np.empty((*first.shape[:at], len(tensors), *first.shape[at:]), first.dtype)
    before: tuple[Any, ...] = (slice(None),) * at
    for i, a in enumerate(tensors):
        made[(*before, i)] = a
    return made


@operator(
    "linear common function numpy apart",
    kernel=_stack,
    node="StackBackward0",
    samples="([randn(2,3), randn(2,3)]); ([randn(3), randn(3)], dim=-1)",
    axes="+dim",
    signature="stack(Tensor[] tensors, int dim=0, *, Tensor out=None)",
    out="cast: cat",
)
class stack:
    """The tensors along a new dim."""

    tensors = lambda g, dim, mask: [
        select(g, dim, i) if wanted else None for i, wanted in enumerate(mask)
    ]


def _listed(name: str, tensors: Sequence[Value]) -> list[Any]:
    refuse_if(not tensors, "{} expects a non-empty TensorList", name)
    return list(tensors)


# -- at least so many dims ------------------------------------------------------------------------
def _atleast_1d(t: Tensor) -> Any:
    return t if t.ndim else reshape(t, (1,))


def _atleast_2d(t: Tensor) -> Any:
    if t.ndim > 1:
        return t
    return unsqueeze(t, 0) if t.ndim else reshape(t, (1, 1))


def _as_columns(t: Tensor) -> Any:
    return t if t.ndim > 1 else reshape(t, (-1 if t.ndim else 1, 1))


def _atleast_3d(t: Tensor) -> Any:
    if t.ndim > 2:
        return t
    if t.ndim == 2:
        return unsqueeze(t, -1)
    return unsqueeze(unsqueeze(t, 0), -1) if t.ndim else reshape(t, (1, 1, 1))


def _at_least(dims: int, change: Callable[..., Any], primitive: Any, sample: str, doc: str) -> None:
    """`atleast_{dims}d`: of one tensor, or of each of several."""

    def each(input: Tensor | None = None, tensors: Any = ()) -> Any:
        return tuple(map(change, tensors)) if input is None else change(input)

    each.__doc__, each.__module__, name = doc, __name__, f"atleast_{dims}d"
    function(
        f"{name}(Tensor input)",
        f"{name}(Tensor[] tensors)",
        name=name,
        many=lambda given: given[0] if len(given) == 1 else given,
        method=False,
        primitives=[primitive],
        samples=[f"{name}({sample})"],
    )(each)


_at_least(1, _atleast_1d, view_size, "randn(())", "Numbers as vectors of one element.")
_at_least(2, _atleast_2d, unsqueeze, "randn(3)", "Numbers and vectors as matrices of one row.")
_at_least(3, _atleast_3d, unsqueeze, "randn(2,3)", "What has fewer dims, with three of them.")


def _stacking(
    name: str, change: Callable[..., Any], dim: int, sample: str, doc: str, **about: Any
) -> Any:
    """`NAME`: the tensors, each changed to have so many dims, one after the other."""

    def stacked(tensors: Arrays) -> Any:
        given = [change(t) for t in _listed(name, tensors)]
        return cat(given, min(dim, given[0].ndim - 1))

    stacked.__doc__, stacked.__module__ = doc, __name__
    signature, samples = f"{name}(Tensor[] tensors, *, Tensor? out=None)", [f"{name}({sample})"]
    about |= {"method": False, "primitives": [cat], "samples": samples, "out": "cast: cat"}
    return function(signature, name=name, **about)(stacked)


_stacking(
    "hstack",
    _atleast_1d,
    1,
    "[randn(3), randn(2)]",
    "The tensors side by side: along the second dim (vectors: the first).",
    numpy=np.hstack,
)
_stacking(
    "vstack",
    _atleast_2d,
    0,
    "[randn(3), randn(2,3)]",
    "The tensors one above the other, vectors as rows.",
    numpy=np.vstack,
    aliases="row_stack",
)
_stacking(
    "dstack",
    _atleast_3d,
    2,
    "[randn(3), randn(3)]",
    "The tensors behind each other: along the third dim.",
)
_stacking(
    "column_stack",
    _as_columns,
    1,
    "[randn(3), randn(3,2)]",
    "The tensors side by side, vectors as columns.",
)


# -- repeated -------------------------------------------------------------------------------------
@operator(
    "linear",
    node="RepeatBackward0",
    batching="repeated",
    symbolic="tile: dims",
    samples="(randn(2,3), (2,1)); (randn(3), (2,2))",
    signature="repeat(Tensor input, int[] repeats)|method",
)
class repeat:
    """The tensor repeated along its dims, new ones in front."""

    def forward(self: Array, repeats: Ints) -> Array:
        if len(repeats) < self.ndim:
            raise RuntimeError(
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
            )
        if any(n < 0 for n in repeats):
            shape = (1,) * (len(repeats) - self.ndim) + self.shape
            nonnegative("repeat", tuple(n * size for n, size in zip(repeats, shape, strict=True)))
        return np.tile(self, repeats) if repeats else self.copy()

    def self(g: Value, repeats: Ints, self_sym_sizes: Shape) -> Any:
        if 0 in repeats:
            return new_zeros(g, self_sym_sizes)
        lead = g.ndim - len(self_sym_sizes)
        for _ in range(lead):
            g = total(g, 0)
        shape: list[int] = []
        summed: list[int] = []
        for n, size in zip(repeats[lead:], self_sym_sizes, strict=True):
            if n != 1:
                summed.append(len(shape))
                shape.append(n)
            shape.append(size)
        if not summed:
            return g
        return total(reshape(g, tuple(shape)), tuple(summed))


@function("tile(Tensor input, int[] dims)|numpy", samples="(randn(2,3), (2,)); (randn(3), (2,2))")
def tile(input: Tensor, dims: Ints) -> Any:
    """The tensor repeated along its dims, counted from the last."""
    return repeat(input, (1,) * (input.ndim - len(dims)) + dims)


def _counts(repeats: Tensor) -> Any:
    array = repeats.array if isinstance(repeats, Tensor) else np.asarray(repeats)
    refuse_if(array.ndim > 1, "repeats must be 0-dim or 1-dim tensor")
    implemented("repeat_interleave_cpu", array, "il")
    refuse_if((array < 0).any(), "repeats can not be negative")
    return array


_REPEATED = "int? dim=None, *, int? output_size=None)"


@function(
    f"repeat_interleave(Tensor input, Tensor repeats, {_REPEATED}",
    "repeat_interleave(Tensor repeats, *, int? output_size=None)|function",
    f"repeat_interleave(Tensor input, int repeats, {_REPEATED}",
    primitives=[expand_size],
    numpy=np.repeat,
    samples="(randn(2,3), 2); (randn(2,3), 2, dim=1)",
)
def repeat_interleave(
    repeats: Any,
    input: Tensor | None = None,
    dim: int | None = None,
    output_size: int | None = None,
) -> Any:
    """Each element (or position of a dim) repeated in place."""
    if input is None:
        return wrap(np.repeat(np.arange(len(repeats)), _counts(repeats)))
    if isinstance(repeats, int):
        return _repeat_each(input, repeats, dim)
    counts = _counts(repeats)
    from gradcli.operators.movement.indexing import index_select

    if dim is None:
        input, dim = flatten(input), 0
    n = input.shape[wrap_dim(dim, input.ndim)]
    if counts.size == 1:
        counts = np.broadcast_to(counts.reshape(-1), (n,))
    elif counts.size != n:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size({dim}) = {n}"
        )
    where = np.repeat(np.arange(n), counts)
    return index_select(input, dim, constant(where, input))


def _repeat_each(input: Tensor, times: int, dim: int | None) -> Any:
    if dim is None:
        input, dim = flatten(input), 0
    refuse_if(times < 0, "Repeats must be non-negative")
    at = wrap_dim(dim, input.ndim)
    input = unsqueeze(input, at + 1)
    shape = tuple(input.shape)
    input = expand_size(input, (*shape[: at + 1], times, *shape[at + 2 :]))
    if isinstance(input, Tensor):
        from gradcli.operators.movement.casting import clone_as

        input = clone_as(input, "contiguous")
    return reshape(input, (*shape[:at], shape[at] * times, *shape[at + 2 :]))


# -- with a border --------------------------------------------------------------------------------
@operator(
    "leading function",
    node="ConstantPadNdBackward0",
    samples="(randn(2,3), (1,2)); (randn(2,3), (-1,2), 3.0)",
    signature="constant_pad_nd(Tensor input, int[] pad, Scalar value=0)",
)
class constant_pad_nd:
    """The last dimensions lengthened by a constant, or shortened."""

    def forward(self: Array, pad: Ints, value: float = 0) -> Array:
        if len(pad) % 2:
            raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
        if len(pad) // 2 > self.ndim:
            raise RuntimeError(
                "Length of pad should be no more than twice the number of dimensions of the input. Pad "
                f"length is {len(pad)}while the input has {self.ndim}dimensions."
            )
        x = self
        widths = [(0, 0)] * x.ndim
        crop = [slice(None)] * x.ndim
        for i in range(len(pad) // 2):
            dim = x.ndim - 1 - i
            before, after = pad[2 * i], pad[2 * i + 1]
            if x.shape[dim] + min(before, 0) + min(after, 0) < 0:
                raise RuntimeError("narrow(): length must be non-negative.")
            widths[dim] = (max(before, 0), max(after, 0))
            crop[dim] = slice(max(-before, 0), x.shape[dim] - max(-after, 0))
        inner = x[tuple(crop)]
        if type(x) is not np.ndarray:
            return afresh(np.pad(inner, widths, constant_values=value), x)
        ends = [n + a + b for n, (a, b) in zip(inner.shape, widths, strict=True)]
        made = np.full(ends, value, x.dtype)
        made[tuple(slice(a, n - b) for n, (a, b) in zip(ends, widths, strict=True))] = inner
        return made

    self = lambda g, pad: constant_pad_nd(g, tuple(-n for n in pad), 0)


# -- turned ---------------------------------------------------------------------------------------
def is_scalar(value: Array) -> bool:
    """True for NumPy scalars and 0-d arrays."""
    return not value.ndim


def _filled(made: Array, values: Array) -> Any:
    made[...] = values
    return made


@operator(
    "linear numpy",
    node="FlipBackward0",
    axes="dims",
    samples="(randn(2,3), (0,1))",
    signature="flip(Tensor input, int[] dims)",
)
class flip:
    """The order along dims reversed."""

    def forward(self: Array, dims: Ints) -> Array:
        at = unique_dims(dims, self.ndim)
        out = copied(self)
        return out if is_scalar(self) else _filled(out, np.flip(self, at))

    self = itself


@function("fliplr(Tensor input)|numpy", samples="(randn(2,3))")
def fliplr(input: Tensor) -> Any:
    """Columns in reverse order."""
    refuse_if(input.ndim < 2, "Input must be >= 2-d.")
    return flip(input, (1,))


@function("flipud(Tensor input)|numpy", samples="(randn(2,3))")
def flipud(input: Tensor) -> Any:
    """Rows in reverse order."""
    refuse_if(input.ndim < 1, "Input must be >= 1-d.")
    return flip(input, (0,))


@operator(
    "linear numpy",
    node="RollBackward0",
    batching="rolled",
    symbolic="roll: shifts dims",
    samples="(randn(2,3), 1); (randn(2,3), (1,2), (0,1))",
    signature="roll(Tensor input, int[1] shifts, int[1] dims=[])",
)
class roll:
    """Elements moved along dims, round the end."""

    def forward(self: Array, shifts: Ints, dims: Ints = ()) -> Array:
        refuse_if(not shifts, "`shifts` required")
        if not dims and len(shifts) == 1:
            return in_order(np.roll(self, shifts[0]))
        if len(shifts) != len(dims):
            raise RuntimeError(
                f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
            )
        if not self.ndim:
            sized_dim(dims[0], 0)
        if not self.size:
            return self.copy()
        return in_order(np.roll(self, shifts, tuple(wrap_dim(d, self.ndim) for d in dims)))

    self = lambda g, shifts, dims: roll(g, tuple(-n for n in reversed(shifts)), dims[::-1])


@operator(
    "linear numpy",
    node="Rot90Backward0",
    axes="dims",
    symbolic="rot90: k dims",
    samples="(randn(2,3)); (randn(2,3,3), 2, (1,2))",
    signature="rot90(Tensor input, int k=1, int[] dims=[0, 1])",
)
class rot90:
    """Turned by k quarters in the plane of two dims."""

    def forward(self: Array, k: int = 1, dims: Ints = (0, 1)) -> Array:
        if len(dims) != 2:
            raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
        if self.ndim < 2:
            raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
        a, b = (wrap_dim(d, self.ndim) for d in dims)
        if dims[0] == dims[1] or abs(dims[0] - dims[1]) == self.ndim:
            raise RuntimeError(
                f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
            )
        k %= 4
        if k == 1:
            return flip.kernel(self, (b,)).swapaxes(a, b)
        if k == 2:
            return flip.kernel(self, (a, b))
        return flip.kernel(self, (a,)).swapaxes(a, b) if k == 3 else copied(self)

    self = lambda g, k, dims: rot90(g, -k, dims)


# -- triangles and diagonals ----------------------------------------------------------------------
@operator(
    "linear inplace leading numpy shared",
    node="TrilBackward0",
    samples="(randn(3,3)); (randn(2,3,3), -1)",
    symbolic="tril: diagonal",
    signature="tril(Tensor input, int diagonal=0, *, Tensor out=None)",
    out="exact",
)
class tril:
    """The lower triangle; 0 above."""

    def forward(self: Array, diagonal: int = 0) -> Array:
        refuse_if(self.ndim < 2, "tril: input tensor must have at least 2 dimensions")
        return in_order(np.tril(self, diagonal))

    self = itself


@operator(
    "linear inplace leading numpy shared",
    node="TriuBackward0",
    samples="(randn(3,3)); (randn(2,3,3), 1)",
    symbolic="triu: diagonal",
    signature="triu(Tensor input, int diagonal=0, *, Tensor out=None)",
    out="exact",
)
class triu:
    """The upper triangle; 0 below."""

    def forward(self: Array, diagonal: int = 0) -> Array:
        refuse_if(self.ndim < 2, "triu: input tensor must have at least 2 dimensions")
        return in_order(np.triu(self, diagonal))

    self = itself


@operator(
    "linear",
    node="DiagEmbedBackward0",
    samples="(randn(3)); (randn(2,3), 1); (randn(2,3), 0, 0, 2)",
    axes="+dim1 +dim2",
    signature="diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1)",
)
class diag_embed:
    """Matrices with the last dim on their diagonals, 0 elsewhere."""

    def forward(self: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
        ndim = self.ndim + 1
        a, b = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
        refuse_if(a == b, "diagonal dimensions cannot be identical {}, {}", dim1, dim2)
        side = self.shape[-1] + abs(offset)
        shape = list(self.shape[:-1])
        for d in sorted((a, b)):
            shape.insert(d, side)
        made = np.zeros(shape, self.dtype)
        diagonal(made, offset, dim1, dim2)[...] = self
        return made

    self = diagonal


@function(
    "diag(Tensor input, int diagonal=0, *, Tensor? out=None)|numpy",
    samples="(randn(3)); (randn(3,3), 1)",
    out=lambda input, *diagonal: "cast: named & exact" if input.ndim == 1 else "exact",
)
def diag(input: Tensor, diagonal: int) -> Any:
    """The diagonal of a matrix, or the matrix with that diagonal."""
    if input.ndim == 1:
        return diag_embed(input, diagonal, -2, -1)
    if input.ndim == 2:
        from gradcli.operators.movement.view_copies import diagonal_copy

        return diagonal_copy(input, diagonal, 0, 1)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


@function(
    "diagflat(Tensor input, int offset=0)|numpy",
    primitives=[diag_embed],
    samples="(randn(3)); (randn(2,2), 1)",
)
def diagflat(input: Tensor, offset: int) -> Any:
    """The matrix with all elements on its diagonal."""
    flat = view_size(contiguous(input), (-1,))
    return diag_embed(flat, offset, -2, -1)


def _with_blocks(blocks: list[Array]) -> Array:
    """Matrices along a diagonal, or as many of each."""
    sizes = [sum(b.shape[d] for b in blocks) for d in (-2, -1)]
    made: Any = np.zeros((*blocks[0].shape[:-2], *sizes), blocks[0].dtype)
    for level in sorted(batch_of(blocks), key=lambda each: each.number):
        made = lifted(made, level).copy()
    row = column = 0
    for b in blocks:
        made[..., row : row + b.shape[-2], column : column + b.shape[-1]] = b
        row, column = row + b.shape[-2], column + b.shape[-1]
    return made


def _block_diag_of_batches(primitive: Any, operands: list[Any], level: BatchLevel) -> Any:
    every = [full(a, level) for a in operands[0]]
    if any(a.ndim > 2 for a in operands[0]):
        return None
    return _with_blocks(
        [a.reshape((level.size, *(1,) * (3 - a.ndim), *a.shape[1:])) for a in every]
    )


@primitive("linear common", node="BlockDiagBackward0", batching=_block_diag_of_batches)
class block_diag_of:
    def forward(tensors: Arrays) -> Array:
        blocks = []
        for i, a in enumerate(tensors):
            if a.ndim > 2:
                raise RuntimeError(
                    f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                    f"{a.ndim} dimensions"
                )
            blocks.append(a.reshape((1,) * (2 - a.ndim) + a.shape))
        return _with_blocks(blocks)

    def tensors(g: Value, tensors_args: Any, mask: tuple[bool, ...]) -> list[Any]:
        found: list[Any] = []
        full = [(1,) * (2 - len(s)) + tuple(s) for s in tensors_args]
        rows = [0, *accumulate(s[0] for s in full)]
        columns = [0, *accumulate(s[1] for s in full)]
        for i, (shape, wanted) in enumerate(zip(tensors_args, mask, strict=True)):
            if not wanted:
                found.append(None)
                continue
            part: Any = slice_p(
                slice_p(g, 0, rows[i], rows[i + 1], 1), 1, columns[i], columns[i + 1], 1
            )
            if len(shape) == 1:
                part = squeeze_dim(part, -1)
            elif not shape:
                part = squeeze_dim(squeeze_dim(part, -1), -1)
            found.append(part)
        return found


@function(
    "block_diag(Tensor[] tensors)|function", many=tuple, samples="(randn(2,3), randn(2), randn(()))"
)
def block_diag(tensors: Sequence[Tensor]) -> Any:
    """The matrix with the tensors as blocks along its diagonal."""
    if not tensors:
        return wrap(np.zeros((1, 0), dtypes.default.real))
    return block_diag_of(list(tensors))


# -- grids ----------------------------------------------------------------------------------------
def _sequence(given: tuple[Any, ...]) -> Any:
    """The arguments, or the sequence that is the only one."""
    return given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


@function(
    "meshgrid(Tensor[] tensors, str? indexing=None)|function",
    many=_sequence,
    primitives=[expand_size],
    samples="(randn(2), randn(3), indexing='ij'); (randn(2), randn(3), indexing='xy')",
)
def meshgrid(given: Sequence[Tensor], indexing: str | None) -> Any:
    """The coordinates of a grid: each vector along a dim of its own, repeated along the others."""
    refuse_if(not given, "meshgrid expects a non-empty TensorList")
    for i, t in enumerate(given):
        if t.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                f"[ torch.{tensor_name(t)}{{{','.join(map(str, t.shape))}}} ]"
            )
        if i and t.dtype != given[i - 1].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=users_level(),
        )
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    place = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        place[0], place[1] = 1, 0
    shape = [1] * len(given)
    for t, at in zip(given, place, strict=True):
        shape[at] = t.shape[0] if t.ndim else 1
    found = []
    for t, at in zip(given, place, strict=True):
        line = view_size(t, (1,) * at + (-1,) + (1,) * (len(given) - at - 1))
        found.append(expand_size(line, tuple(shape)))
    return tuple(found)


@function("cartesian_prod(Tensor[] tensors)|function", many=tuple, samples="(randn(2), randn(3))")
def cartesian_prod(given: Sequence[Tensor]) -> Any:
    """All combinations of one element of each vector, as rows."""
    for t in given:
        if t.ndim != 1:
            raise RuntimeError("Expect a 1D vector, but got shape " + str(list(t.shape)))
    if len(given) == 1:
        return given[0]
    grid = meshgrid(*given, indexing="ij")
    return stack([flatten(t) for t in grid], 1)


@function(
    "combinations(Tensor input, int r=2, bool with_replacement=False)|function",
    samples="(randn(4)); (randn(3), 2, True)",
)
def combinations(input: Tensor, r: int, with_replacement: bool) -> Any:
    """All r-element combinations of a vector, as rows."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    refuse_if(r < 0, "Expect a non-negative number, but got {}", r)
    if not r:
        return new_zeros(input, (0,))
    n = input.shape[0]
    grid = meshgrid(*([input] * r), indexing="ij")
    places = np.meshgrid(*([np.arange(n)] * r), indexing="ij")
    mask = np.ones((n,) * r, bool)
    for a, b in pairwise(places):
        mask &= a <= b if with_replacement else a < b
    from gradcli.operators.movement.indexing import masked_select

    return stack([masked_select(t, constant(mask, t)) for t in grid], 1)

"""Views that copy: `NAME_copy` for each function that gives a view."""

from __future__ import annotations

from collections.abc import Callable
from operator import index as to_int
from typing import Any

from gradcli.engine.operator import Row
from gradcli.operators import shapes
from gradcli.operators.strides import contiguous, integers
from gradcli.operators.table import Array, function, operator

FAMILY = "shapes"


def _copying(view: Row) -> Callable[..., Any]:
    kernel, many = view.kernel, view.many

    def copy(*operands: Any) -> Any:
        found = kernel(*operands)
        return [contiguous(p).copy() for p in found] if many else contiguous(found).copy()

    return copy


def _copy_of(view: Row, *, public: bool = True, samples: tuple[str, ...] = ()) -> Row:
    """The row of the view's copies: the view's own rules, under the node's name with `_copy`."""
    name = view.name.removesuffix("_row")
    body = type(f"{name}_copy", (), {**view.rules, "__doc__": f"A copy of `{name}`."})
    body.__module__ = __name__
    row = operator(
        view.kernel,
        f"{view.node}_copy",
        kind=view.kind,
        batch=view.batch,
        axes=view.axes,
        sizes=view.sizes,
        spelled=view.spelled or (f"{view.name}:" if public else ""),
        outputs="list" if view.many else None,
        public=public,
        method=False,
        samples=samples,
    )(body)
    row.kernel = _copying(view)
    return row


alias_copy = _copy_of(shapes.alias, samples=("alias_copy(randn(3))",))
t_copy = _copy_of(shapes.t, samples=("t_copy(randn(2,3))",))
transpose_copy = _copy_of(shapes.transpose, samples=("transpose_copy(randn(2,3), 0, 1)",))
unsqueeze_copy = _copy_of(shapes.unsqueeze, samples=("unsqueeze_copy(randn(3), 0)",))
select_copy = _copy_of(shapes.select, samples=("select_copy(randn(2,3), 0, 1)",))
slice_copy = _copy_of(shapes.slice_row, samples=("slice_copy(randn(4), 0, 1, 3)",))
unfold_copy = _copy_of(shapes.unfold, samples=("unfold_copy(randn(5), 0, 2, 1)",))
unbind_copy = _copy_of(shapes.unbind, samples=("unbind_copy(randn(2,3))[0]",))
diagonal_copy = _copy_of(shapes.diagonal, samples=("diagonal_copy(randn(3,3))",))
view_as_real_copy = _copy_of(
    shapes.view_as_real, samples=("view_as_real_copy(randn(2, dtype=complex128))",)
)
view_size_copy = _copy_of(shapes.view_size, public=False)
expand_size_copy = _copy_of(shapes.expand_size, public=False)
permute_dims_copy = _copy_of(shapes.permute_dims, public=False)
squeeze_all_copy = _copy_of(shapes.squeeze_all, public=False)
squeeze_dim_copy = _copy_of(shapes.squeeze_dim, public=False)
squeeze_dims_copy = _copy_of(shapes.squeeze_dims, public=False)
as_strided_size_copy = _copy_of(shapes.as_strided_size, public=False)
split_size_copy = _copy_of(shapes.split_size, public=False)
split_by_sizes_copy = _copy_of(shapes.split_by_sizes, public=False)


@function(method=False, rows=[view_size_copy], samples=["view_copy(randn(2,3), (3,2))"])
def view_copy(input: Array, size: Any) -> Any:
    """A copy of `view`."""
    return view_size_copy(input, integers("view_copy", "size", size))


@function(method=False, rows=[expand_size_copy], samples=["expand_copy(randn(3), (2,3))"])
def expand_copy(input: Array, size: Any) -> Any:
    """A copy of `expand`."""
    return expand_size_copy(input, integers("expand_copy", "size", size))


@function(method=False, rows=[permute_dims_copy], samples=["permute_copy(randn(2,3), (1,0))"])
def permute_copy(input: Array, dims: Any) -> Any:
    """A copy of `permute`."""
    return permute_dims_copy(input, integers("permute_copy", "dims", dims))


@function(
    method=False,
    rows=[squeeze_all_copy, squeeze_dim_copy, squeeze_dims_copy],
    samples=["squeeze_copy(randn(1,3))", "squeeze_copy(randn(1,3), 0)"],
)
def squeeze_copy(input: Array, dim: Any = None) -> Any:
    """A copy of `squeeze`."""
    if dim is None:
        return squeeze_all_copy(input)
    if isinstance(dim, (tuple, list)):
        return squeeze_dims_copy(input, integers("squeeze_copy", "dim", dim))
    return squeeze_dim_copy(input, to_int(dim))


@function(
    method=False,
    rows=[as_strided_size_copy],
    samples=["as_strided_copy(randn(2,3), (2,2), (1,2))"],
)
def as_strided_copy(input: Array, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """A copy of `as_strided`."""
    return as_strided_size_copy(
        input,
        integers("as_strided_copy", "size", size),
        integers("as_strided_copy", "stride", stride),
        storage_offset,
    )


@function(method=False, rows=[split_size_copy], samples=["split_copy(randn(4), 2)[0]"])
def split_copy(input: Array, split_size: int, dim: int = 0) -> Any:
    """A copy of `split`."""
    return split_size_copy(input, to_int(split_size), dim)


@function(
    method=False, rows=[split_by_sizes_copy], samples=["split_with_sizes_copy(randn(4), (1,3))[0]"]
)
def split_with_sizes_copy(input: Array, split_sizes: Any, dim: int = 0) -> Any:
    """A copy of `split_with_sizes`."""
    sizes = integers("split_with_sizes_copy", "split_sizes", split_sizes)
    return split_by_sizes_copy(input, sizes, dim)


def _narrow_copy(self: Array, dim: int, start: int, length: int) -> Array:
    return contiguous(shapes.narrow(self, dim, start, length)).copy()


def _narrow_back(g: Any, sizes: tuple[int, ...], dim: int, start: int, length: int) -> Any:
    return shapes.slice_backward(g, sizes, dim, start, start + length, 1)


@operator(
    _narrow_copy,
    "NarrowCopyBackward0",
    kind="linear",
    samples=("narrow_copy(randn(4), 0, 1, 2)",),
    axes="dim",
)
class narrow_copy:
    """A copy of `narrow`."""

    self = lambda g, self_sym_sizes, dim, start, length: _narrow_back(
        g, self_sym_sizes, dim, start, length
    )

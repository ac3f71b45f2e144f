"""Views that copy: `NAME_copy` for each function that gives a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.core.primitive import Primitive, VjpRules
from gradcli.movement import reshaping
from gradcli.movement.strides import in_order
from gradcli.registry.table import Array, function, operator, overloads

FAMILY = "shapes"


def _copying(view: Primitive) -> Callable[..., Any]:
    kernel, many = view.kernel, view.returns_list

    def copy(*operands: Any) -> Any:
        found = kernel(*operands)
        return [in_order(p).copy() for p in found] if many else in_order(found).copy()

    return copy


def _of_any_layout(view: Primitive) -> Callable[..., Any]:
    kernel = view.kernel
    return lambda self, size: kernel(in_order(self), size).copy()


def _copy_of(
    view: VjpRules, *samples: str, options: str = "", out: str = "Tensor", real: bool = False
) -> Primitive:
    """The primitive of the view's copies: the view's own rules, under the node's name with `_copy`.

    real: PyTorch records no such copy of complex numbers.
    """
    name = view.name.removesuffix("_p")
    body = type(f"{name}_copy", (), {**view.vjps, "__doc__": f"A copy of `{name}`."})
    body.__module__ = __name__
    signature = f"{name}_copy(Tensor input{options}, *, {out} out=None)"
    primitive = operator(
        view.kernel,
        f"{view.node}_copy",
        linearity=view.linearity,
        batching=view.batching,
        axes=view.axes,
        sizes=view.sizes,
        symbolic=view.symbolic or (f"{view.name}:" if samples else ""),
        outputs="list" if view.returns_list else None,
        refuses={"C": f"{name}_copy"} if real else None,
        public=bool(samples),
        method=False,
        samples=samples,
        signature=signature,
        writes="read",
    )(body)
    primitive.kernel = _copying(view)
    return primitive


alias_copy = _copy_of(reshaping.alias, "alias_copy(randn(3))")
t_copy = _copy_of(reshaping.t, "t_copy(randn(2,3))")
transpose_copy = _copy_of(
    reshaping.transpose, "transpose_copy(randn(2,3), 0, 1)", options=", int dim0, int dim1"
)
unsqueeze_copy = _copy_of(reshaping.unsqueeze, "unsqueeze_copy(randn(3), 0)", options=", int dim")
select_copy = _copy_of(
    reshaping.select, "select_copy(randn(2,3), 0, 1)", options=", int dim, int index", real=True
)
slice_copy = _copy_of(
    reshaping.slice_p,
    "slice_copy(randn(4), 0, 1, 3)",
    options=", int dim=0, int? start=None, int? end=None, int step=1",
    real=True,
)
unfold_copy = _copy_of(
    reshaping.unfold,
    "unfold_copy(randn(5), 0, 2, 1)",
    options=", int dimension, int size, int step",
)
unbind_copy = _copy_of(
    reshaping.unbind, "unbind_copy(randn(2,3))[0]", options=", int dim=0", out="Tensor[]"
)
diagonal_copy = _copy_of(
    reshaping.diagonal,
    "diagonal_copy(randn(3,3))",
    options=", int offset=0, int dim1=0, int dim2=1",
)
view_as_real_copy = _copy_of(
    reshaping.view_as_real, "view_as_real_copy(randn(2, dtype=complex128))"
)
view_size_copy = _copy_of(reshaping.view_size)
view_size_copy.kernel = _of_any_layout(reshaping.view_size)
expand_size_copy = _copy_of(reshaping.expand_size)
permute_copy = _copy_of(
    reshaping.permute, "permute_copy(randn(2,3), (1,0))", options=", int[] dims"
)
squeeze_all_copy = _copy_of(reshaping.squeeze_all)
squeeze_dim_copy = _copy_of(reshaping.squeeze_dim)
squeeze_dims_copy = _copy_of(reshaping.squeeze_dims)
as_strided_copy = _copy_of(
    reshaping.as_strided,
    "as_strided_copy(randn(2,3), (2,2), (1,2))",
    options=", int[] size, int[] stride, int? storage_offset=None",
)
split_size_copy = _copy_of(reshaping.split_size)
split_by_sizes_copy = _copy_of(reshaping.split_by_sizes)


def _choice(*signatures: str, primitives: list[VjpRules], samples: str) -> Callable[..., Any]:
    """`NAME_copy` of a view that several primitives make."""
    doc = f"A copy of `{signatures[0].partition('_copy(')[0]}`."
    texts = [s.replace(")", ", *, Tensor out=None)") for s in signatures]
    facts: dict[str, Any] = {"samples": samples, "method": False}
    return overloads(*texts, targets=primitives, doc=doc, **facts)


view_copy = _choice(
    "view_copy(Tensor input, ScalarType dtype) -> view_dtype",
    "view_copy(Tensor input, int[] size) -> view_size_copy",
    primitives=[reshaping.view_dtype, view_size_copy],
    samples="(randn(2,3), (3,2))",
)
squeeze_copy = _choice(
    "squeeze_copy(Tensor input) -> squeeze_all_copy",
    "squeeze_copy(Tensor input, int dim) -> squeeze_dim_copy",
    "squeeze_copy(Tensor input, int[] dim) -> squeeze_dims_copy",
    primitives=[squeeze_all_copy, squeeze_dim_copy, squeeze_dims_copy],
    samples="(randn(1,3)); (randn(1,3), 0)",
)
split_copy = _choice(
    "split_copy(Tensor input, int split_size, int dim=0) -> split_size_copy",
    primitives=[split_size_copy],
    samples="(randn(4), 2)[0]",
)
split_with_sizes_copy = _choice(
    "split_with_sizes_copy(Tensor input, int[] split_sizes, int dim=0) -> split_by_sizes_copy",
    primitives=[split_by_sizes_copy],
    samples="(randn(4), (1,3))[0]",
)


@function(
    "expand_copy(Tensor input, int[] size, *, bool implicit=False, Tensor out=None)|function",
    samples="(randn(3), (2,3))",
)
def expand_copy(input: Array, size: Any, implicit: bool) -> Any:
    """A copy of `expand`."""
    return expand_size_copy(input, size)


@operator(
    "NarrowCopyBackward0",
    "linear",
    samples="(randn(4), 0, 1, 2)",
    axes="dim",
    signature="narrow_copy(Tensor input, int dim, int start, int length, *, Tensor out=None)",
)
class narrow_copy:
    """A copy of `narrow`."""

    def forward(self: Array, dim: int, start: int, length: int) -> Array:
        return in_order(reshaping.narrow(self, dim, start, length)).copy()

    self = lambda g, self_sym_sizes, dim, start, length: reshaping.slice_backward(
        g, self_sym_sizes, dim, start, start + length, 1
    )

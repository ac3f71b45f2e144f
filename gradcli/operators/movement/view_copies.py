"""Views that copy: `NAME_copy` for each function that gives a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.core.declaration import Array, Shape
from gradcli.engine.core.primitive import Primitive, VjpRules
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import FUNCTIONS, function, operator, overloads
from gradcli.operators.movement import reshaping
from gradcli.operators.movement.strides import in_order

FAMILY = "shapes"


def _copying(view: Primitive) -> Callable[..., Any]:
    kernel, many = view.kernel, view.returns_list

    def copy(*operands: Any) -> Any:
        found = kernel(*operands)
        return [in_order(p).copy() for p in found] if many else in_order(found).copy()

    return copy


def _of_any_layout(view: VjpRules) -> Callable[..., Any]:
    kernel = view.kernel
    return lambda self, size: kernel(in_order(self), size).copy()


def _copy_of(view: VjpRules, sample: str = "", options: str | None = None) -> Primitive:
    """The primitive of the view's copies: the view's own rules, under the node's name with `_copy`.

    options: the signature behind the tensor; that of the view itself by default.
    """
    name = view.name.removesuffix("_p")
    body = type(f"{name}_copy", (), {**view.vjps, "__doc__": f"A copy of `{name}`."})
    body.__module__ = __name__
    if options is None and name in FUNCTIONS:
        options = FUNCTIONS[name].parser.texts[0].partition("Tensor input")[2][:-1]  # type: ignore[union-attr]
    results = "Tensor[]" if view.returns_list else "Tensor"
    signature = f"{name}_copy(Tensor input{options or ''}, *, {results} out=None)"
    entry: Any = (
        {"method": False, "out": "exact", "samples": sample, "signature": signature}
        if sample
        else {}
    )
    primitive = operator(
        kernel=view.kernel,
        node=f"{view.node}_copy",
        linearity=view.linearity,
        batching=view.batching,
        axes=view.axes,
        sizes=view.sizes,
        symbolic=view.symbolic or (f"{view.name}:" if sample else ""),
        outputs="list" if view.returns_list else None,
        refuses={"C": f"{name}_copy"} if name in _REAL else None,
        writes="read",
        public=bool(sample),
        **entry,
    )(body)
    primitive.kernel = _copying(view)
    return primitive


_REAL = ("select", "slice")  # PyTorch records no such copies of complex numbers

for _view, _sample in (
    (reshaping.alias, "(randn(3))"),
    (reshaping.t, "(randn(2,3))"),
    (reshaping.transpose, "(randn(2,3), 0, 1)"),
    (reshaping.unsqueeze, "(randn(3), 0)"),
    (reshaping.select, "(randn(2,3), 0, 1)"),
    (reshaping.unfold, "(randn(5), 0, 2, 1)"),
    (reshaping.unbind, "(randn(2,3))[0]"),
    (reshaping.view_as_real, "(randn(2, dtype=complex128))"),
    (reshaping.permute, "(randn(2,3), (1,0))"),
    (reshaping.as_strided, "(randn(2,3), (2,2), (1,2))"),
):
    _copy_of(_view, _sample)
diagonal_copy = _copy_of(reshaping.diagonal, "(randn(3,3))")
_SLICE = ", int dim=0, int? start=None, int? end=None, int step=1"
slice_copy = _copy_of(reshaping.slice_p, "(randn(4), 0, 1, 3)", _SLICE)
view_size_copy = _copy_of(reshaping.view_size)
view_size_copy.kernel = _of_any_layout(reshaping.view_size)
expand_size_copy = _copy_of(reshaping.expand_size)
squeeze_all_copy = _copy_of(reshaping.squeeze_all)
squeeze_dim_copy = _copy_of(reshaping.squeeze_dim)
squeeze_dims_copy = _copy_of(reshaping.squeeze_dims)
split_size_copy = _copy_of(reshaping.split_size)
split_by_sizes_copy = _copy_of(reshaping.split_by_sizes)


def _choice(*forms: str, targets: list[VjpRules], samples: str) -> Callable[..., Any]:
    """`NAME_copy` of a view that several primitives make."""
    doc = f"A copy of `{forms[0].partition('_copy(')[0]}`."
    results = "Tensor[]" if targets[0].returns_list else "Tensor"
    texts = [s.replace(")", f", *, {results} out=None)") for s in forms]
    return overloads(*texts, targets=targets, doc=doc, samples=samples, method=False, out="exact")


view_copy = _choice(
    "view_copy(Tensor input, ScalarType dtype) -> view_dtype",
    "view_copy(Tensor input, int[] size) -> view_size_copy",
    targets=[reshaping.view_dtype, view_size_copy],
    samples="(randn(2,3), (3,2))",
)
squeeze_copy = _choice(
    "squeeze_copy(Tensor input) -> squeeze_all_copy",
    "squeeze_copy(Tensor input, int dim) -> squeeze_dim_copy",
    "squeeze_copy(Tensor input, int[] dim) -> squeeze_dims_copy",
    targets=[squeeze_all_copy, squeeze_dim_copy, squeeze_dims_copy],
    samples="(randn(1,3)); (randn(1,3), 0)",
)
_SPLIT = "split_copy(Tensor input, int split_size, int dim=0) -> split_size_copy"
split_copy = _choice(_SPLIT, targets=[split_size_copy], samples="(randn(4), 2)[0]")
split_with_sizes_copy = _choice(
    "split_with_sizes_copy(Tensor input, int[] split_sizes, int dim=0) -> split_by_sizes_copy",
    targets=[split_by_sizes_copy],
    samples="(randn(4), (1,3))[0]",
)


@function(
    "expand_copy(Tensor input, int[] size, *, bool implicit=False, Tensor out=None)|function",
    samples="(randn(3), (2,3))",
    out="exact",
)
def expand_copy(input: Tensor, size: Shape, implicit: bool) -> Any:
    """A copy of `expand`."""
    return expand_size_copy(input, size)


@operator(
    "linear",
    node="NarrowCopyBackward0",
    samples="(randn(4), 0, 1, 2)",
    signature="narrow_copy(Tensor input, int dim, int start, int length, *, Tensor out=None)",
    out=(
        "exact: Expected self.dtype() == output.dtype() to be true, but got false.  "
        "(Could this error message be improved?  If so, please report an enhancement "
        "request to PyTorch.)"
    ),
)
class narrow_copy:
    """A copy of `narrow`."""

    def forward(self: Array, dim: int, start: int, length: int) -> Array:
        return in_order(reshaping.narrow(self, dim, start, length)).copy()

    self = lambda g, self_sym_sizes, dim, start, length: reshaping.slice_backward(
        g, self_sym_sizes, dim, start, start + length, 1
    )

"""Linear maps, embeddings and attention of `torch.nn.functional`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf, prod, sqrt
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import anywhere, is_batched, numbers
from gradcli.engine.core.declaration import Array, Ints, Value
from gradcli.engine.core.modes import no_grad
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.derivative_pairs import last
from gradcli.engine.registry.rule_helpers import (
    check_numbers,
    conj,
    implemented,
    masked_fill,
    refuse_if,
    total,
    unsqueeze,
)
from gradcli.engine.registry.schema import checked
from gradcli.engine.registry.table import function, primitive
from gradcli.engine.system.array_memory import in_its_order
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import c_type, scalar_name, tensor_name
from gradcli.operators.movement.indexing import index_select
from gradcli.operators.nn.dropout import dropped
from gradcli.operators.primitives.arithmetic import mul_scalar
from gradcli.operators.primitives.matrix_products import addmm, matmul

FAMILY = "nn"


# -- linear maps ----------------------------------------------------------------------------------
@function(
    "nn.functional.linear(Tensor input, Tensor weight, Tensor? bias=None)",
    samples="(randn(2,3), randn(4,3), randn(4)); (randn(2,3), randn(4,3))",
)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """input @ weight.T + bias."""
    if bias is None or weight.ndim != 2:
        out = matmul(input, weight.t())
        return out if bias is None else out + bias
    if input.ndim == 2:
        return addmm(bias, input, weight.t())
    if input.is_contiguous() and input.ndim and bias.ndim == 1:
        *lead, size = input.shape
        rows = input.reshape(prod(lead), size)
        out = addmm(bias, rows, weight.t())
        return out.view(*lead, out.shape[1])
    return matmul(input, weight.t()) + bias


def _letters(size: int, without: Ints) -> str:
    return "".join(c for i, c in enumerate("abcdefghij"[:size]) if i not in without)


def _products(three: Sequence[Any], without: Sequence[Ints], sumdim: Ints, einsum: Any) -> Any:
    """The sums of products of three operands that have no dimensions `without`.

    The first two are multiplied first, and summed over what the third does not have, as PyTorch does.
    """
    n = three[0].ndim + len(without[0])
    first, second, third = (_letters(n, e) for e in without)
    summed = _letters(n, tuple([d for d in range(n) if d not in sumdim or d not in without[2]]))
    both = "".join(c for c in _letters(n, ()) if c in first + second and c not in summed)
    pair = einsum(f"{first},{second}->{both}", *three[:2])
    return einsum(f"{both},{third}->{_letters(n, sumdim)}", pair, three[2])


def _trilinear(
    i1: Array,
    i2: Array,
    i3: Array,
    expand1: Ints,
    expand2: Ints,
    expand3: Ints,
    sumdim: Ints,
    unroll_dim: int = 1,
) -> Array:
    einsum = partial(np.einsum, optimize=True, order="C")
    return _products((i1, i2, i3), (expand1, expand2, expand3), sumdim, einsum)


@primitive(
    kernel=_trilinear, node="TrilinearBackward0", refuses={"C": "_trilinear"}, batching="trilinear"
)
class trilinear:
    def i1__i2__i3(
        g: Value,
        i1: Value,
        i2: Value,
        i3: Value,
        expand1: Ints,
        expand2: Ints,
        expand3: Ints,
        sumdim: Ints,
        mask: tuple[bool, ...],
    ) -> list[Any]:
        given = [None if x is None else conj(x) for x in (i1, i2, i3)]
        without = [expand1, expand2, expand3]
        grads: list[Any] = [None] * 3
        for k in range(3):
            if mask[k]:
                three, dims = list(given), list(without)
                three[k], dims[k] = g, sumdim
                grads[k] = _products(three, dims, without[k], np.einsum)
        return grads


@function(
    "nn.functional.bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)",
    aliases="bilinear",
    samples="(randn(2,3), randn(2,4), randn(5,3,4), randn(5))",
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """input1 @ weight[k] @ input2 for every k, plus bias."""
    given = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    kinds = {n: c_type(x) for n, x in given.items() if x is not None}
    if len(set(kinds.values())) > 1:
        raise RuntimeError(
            "All tensors must have the same dtype, got "
            f"{', '.join(f'{name}: {kind}' for name, kind in kinds.items())}"
        )
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    for i, (m, n) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if m != n:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {i}: got {m} and {n}"
            )
    for k, value in ((1, input1), (2, input2)):
        if value.size(-1) != weight.size(k):
            raise RuntimeError(
                f"bilinear(): input{k} size does not match weight size: got {value.shape[-1]} but "
                f"expected {weight.shape[k]}"
            )
    refuse_if(weight.ndim != 3, "number of dimensions must match")
    if bias is not None and not bias.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected "
            f"{weight.shape[0]}"
        )
    lead = tuple(input1.shape[:-1])
    first = input1.reshape(-1, input1.shape[-1])
    second = input2.reshape(-1, input2.shape[-1])
    implemented("bmm", first.array, "bBhilqefdFD")
    out = trilinear(first, weight, second, (1, 3), (0,), (1, 2), (2, 3), 1)
    out = out.reshape(*lead, weight.shape[0])
    return out if bias is None else out + bias


# -- embeddings -----------------------------------------------------------------------------------
def check_indices(indices: Array, name: str) -> None:
    """Refuse indices that are no integers, in PyTorch's words."""
    if indices.dtype not in (np.int64, np.int32):
        kind = f"torch.{tensor_name(indices)}"
        if indices.dtype.kind in "bc":
            kind = f"CPU{scalar_name(indices)}Type"
        from gradcli.engine.core.errors import IntegerOperandError

        raise IntegerOperandError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {kind} instead (while checking arguments for {name})",
            position=0,
        )


@primitive(
    node="EmbeddingDenseBackwardBackward0", batching="embedded_back", symbolic="slope of embedding"
)
class embedding_backward:
    def forward(
        grad_output: Array,
        indices: Array,
        num_weights: int,
        padding_idx: int,
        scale_grad_by_freq: bool,
    ) -> Array:
        flat = np.asarray(indices).reshape(-1)
        rows = grad_output.reshape(flat.size, grad_output.shape[-1])
        out = np.zeros((num_weights, rows.shape[1]), rows.dtype)
        if scale_grad_by_freq:
            counts = np.bincount(flat, minlength=num_weights)
            rows = rows / counts[flat][:, None].astype(rows.dtype)
        keep = flat != padding_idx
        np.add.at(out, flat[keep], rows[keep])
        return out

    def grad_output(g: Value, indices: Value, padding_idx: int) -> Any:
        out = index_select(g, 0, indices.reshape((-1,))).reshape((*indices.shape, g.shape[1]))
        if padding_idx < 0:
            return out
        return masked_fill(out, unsqueeze(indices == padding_idx, -1), 0)


@primitive(
    node="EmbeddingBackward0",
    refuses={"C": "embedding"},
    batching="embedded",
    symbolic="embedding of rows",
)
class embedding_p:
    def forward(
        weight: Array,
        indices: Array,
        padding_idx: int = -1,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Array:
        refuse_if(weight.ndim != 2, "'weight' must be 2-D")
        check_indices(indices, "embedding")
        if ((indices < 0) | (indices >= weight.shape[0])).any():
            raise IndexError("index out of range in self")
        return weight[indices]

    weight = lambda g, indices, padding_idx, scale_grad_by_freq, sparse, weight_sym_argsize_0: (
        embedding_backward(g, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq)
    )


def renorm_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Shrink the rows that are looked up to a norm, in place."""
    max_norm = checked("embedding_renorm_", "float max_norm", 3, max_norm)
    norm_type = checked("embedding_renorm_", "float norm_type", 4, norm_type)
    rows = wrap(np.unique(indices.array))
    table = weight.detach()  # the numbers alone: a tangent stays as it is
    with no_grad():
        found = table.index_select(0, rows)
        norms = found.norm(norm_type, 1, True)
        scale = (max_norm / (norms + 1e-7)).where(norms > max_norm, 1)
        table.index_copy_(0, rows, found * scale)


def _check_padding(input: Tensor, weight: Tensor, padding_idx: int | None, *others: Any) -> None:
    if padding_idx:
        rows = weight.size(0)
        inside = padding_idx < rows if padding_idx > 0 else padding_idx >= -rows
        if not inside:
            raise AssertionError("Padding_idx must be within num_embeddings")


@function(
    "nn.functional.embedding(Tensor input, Tensor weight, int? padding_idx=None, Any max_norm=None, "
    "Any norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) "
    "-> embedding(weight, input=indices, padding_idx, scale_grad_by_freq, sparse)",
    python=_check_padding,
    short=False,
    samples="(tensor([[0,2],[1,2]]), randn(4,3)); (tensor([0,2,1]), randn(4,3), padding_idx=1)",
)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Any:
    """The rows of a table that indices name."""
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += weight.size(0)
    if max_norm is not None:
        renorm_rows(weight, input, max_norm, norm_type)
    return embedding_p(weight, input, padding_idx, scale_grad_by_freq, sparse)


@primitive("folded", symbolic="one_hot")
class one_hot_p:
    """1 where the class is, 0 elsewhere."""

    def forward(self: Array, num_classes: int) -> Array:
        return np.equal(self[..., None], np.arange(num_classes)).astype(np.int64)


def _expect_classes(classes: Array, count: int | None = None) -> None:
    refuse_if(anywhere(classes < 0), "Class values must be non-negative.")
    if count is not None:
        refuse_if(anywhere(classes >= count), "Class values must be smaller than num_classes.")


@function("nn.functional.one_hot(Tensor input, int num_classes=-1)", samples="(tensor([0,2,1]), 3)")
def one_hot(tensor: Tensor, num_classes: int) -> Any:
    """1 where the class is, 0 elsewhere."""
    if tensor.array.dtype != np.int64:
        from gradcli.engine.core.errors import IntegerOperandError

        raise IntegerOperandError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes == -1 and is_batched(tensor):
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive "
            "num_classes argument."
        )
    if not tensor.array.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes == -1:  # nothing else follows from the values that are read here
        classes = np.asarray(numbers(tensor.array))
        _expect_classes(classes)
        num_classes = int(classes.max()) + 1
    else:
        check_numbers(_expect_classes, tensor.array, num_classes)
    return one_hot_p(tensor, num_classes)


# -- attention ------------------------------------------------------------------------------------
def _exponentials(scores: Array, dim: int) -> tuple[Array, Array, Array]:
    """exp(scores - top), their sum, and top; 1 and 0 for the two where everything is masked out.

    A row with a score of +inf is NaN as a whole: inf - inf is none of its shares.
    """
    top = scores.max(dim, keepdims=True, initial=-np.inf)
    top = np.where(top == -np.inf, 0, top)
    shifted = np.exp(scores - top)
    total = add_reduce(shifted, dim, None, True)
    return shifted, np.where(total == 0, 1, total), top


def _softmax_slope(g: Value, result: Value, dim: int) -> Any:
    inner = g * result
    return inner - result * total(inner, dim, True)


@primitive(node="SafeSoftmaxBackward0", symbolic="softmax: dim")
class safe_softmax:
    def forward(self: Array, dim: int) -> Array:
        """softmax, with zeros where everything is masked out."""
        implemented("softmax_lastdim_kernel_impl", self, "efdbBhilq?")
        shifted, total, _ = _exponentials(self, dim)
        return shifted / total

    self = _softmax_slope


def _attend(
    query: Array, key: Array, mask: Array | None, is_causal: bool, scale: float | None
) -> Any:
    """The probabilities of attention, on arrays."""
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * query.dtype.type(factor)) @ key.swapaxes(-1, -2)
    if is_causal:
        keep = np.tri(*scores.shape[-2:]) > 0
        scores = np.where(keep, scores, -np.inf)
    if mask is not None:
        scores = scores + mask
    return scores, factor


def _flash_backward(
    grad_out: Array,
    query: Array,
    key: Array,
    value: Array,
    output: Array,
    logsumexp: Array,
    is_causal: bool,
    attn_mask: Array | None,
    scale: float | None,
) -> tuple[Array, Array, Array]:
    """In PyTorch's order: what each query's output took is subtracted before the weights multiply."""
    scores, factor = _attend(query, key, attn_mask, is_causal, scale)
    weights = np.exp(scores - logsumexp[..., None])
    if is_causal:  # nothing comes from behind the mask, of a row of NaN either
        weights = np.where(np.tri(*scores.shape[-2:]) > 0, weights, 0).astype(query.dtype)
    taken = add_reduce(grad_out * output, -1, None, True)
    inner = weights * (grad_out @ value.swapaxes(-1, -2) - taken)
    inner *= query.dtype.type(factor)
    return inner @ key, inner.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ grad_out


_flash_gradients = last(
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    _flash_backward,
    "grad_out query key value output logsumexp",
    outputs="grad_query grad_key grad_value",
    batching="attended",
)


@primitive(
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    outputs="output | logsumexp",
    batching="attended",
)
class flash_attention:
    def forward(
        query: Array,
        key: Array,
        value: Array,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        attn_mask: Array | None = None,
        scale: float | None = None,
    ) -> tuple[Array, Array]:
        scores, _ = _attend(query, key, attn_mask, is_causal, scale)
        shifted, total, top = _exponentials(scores, -1)
        return in_its_order((shifted / total) @ value, query), (np.log(total) + top)[..., 0]

    query__key__value = (
        lambda g, query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask, scale, mask: (
            _flash_gradients(g, query, key, value, output, logsumexp, is_causal, attn_mask, scale)
        )
    )


def _uses_flash(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float
) -> bool:
    tensors = (query, key, value)
    return (
        all(x.ndim == 4 for x in tensors)
        and (mask is None or (not mask.requires_grad and mask.ndim in (2, 4)))
        and dropout_p == 0.0
        and query.shape[-1] == key.shape[-1] == value.shape[-1]
        and query.array.dtype.kind == "f"
        and query.shape[:2] == key.shape[:2] == value.shape[:2]
        and all(n > 0 for x in tensors for n in x.shape)
        and all(x.shape[-1] == 1 or x.stride(-1) == 1 for x in tensors)
    )


@function(
    "nn.functional.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
    "attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False)",
    aliases="scaled_dot_product_attention",
    primitives=[flash_attention, safe_softmax],
    samples="(randn(2,3,4), randn(2,5,4), randn(2,5,4)); (randn(2,2,3,4), randn(2,2,5,4), randn(2,2,5,4))",
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Any:
    """softmax(query @ key.T * scale + mask) @ value."""
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    kinds = [x.array.dtype for x in (query, key, value)]
    if len(set(kinds)) > 1:
        q, k, v = map(c_type, kinds)
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {q} key.dtype: {k} and value.dtype: {v} instead."
        )
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key = key.repeat_interleave(groups, -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    if attn_mask is not None:
        attn_mask = _as_numbers(attn_mask, query)
    if _uses_flash(query, key, value, attn_mask, dropout_p):
        return flash_attention(query, key, value, dropout_p, is_causal, attn_mask, scale)[0]
    return _composed_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _as_numbers(mask: Tensor, query: Tensor) -> Any:
    """A mask of what to keep as zeros and minus infinities, in the query's dtype."""
    found, kind = mask.array.dtype, query.array.dtype
    if found.kind == "b":
        return wrap(np.where(mask.array, 0, -np.inf).astype(kind))
    if found not in (kind, np.float32):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {c_type(found)} and  query.dtype: {c_type(kind)} instead."
        )
    return mask if found == kind else mask.type_as(query)


def _composed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> Any:
    kind = query.array.dtype
    width = query.shape[-1]
    root = sqrt((1 / sqrt(width) if width else inf) if scale is None else scale)
    if is_causal:
        keep = np.tri(query.shape[-2], key.shape[-2]) > 0
        mask = wrap(np.where(keep, 0, -np.inf).astype(kind))
    left = mul_scalar(query, root)
    right = mul_scalar(key.transpose(-2, -1), root)
    scores = matmul(left, right)
    if mask is not None:
        scores = scores + mask
    weights = dropped(safe_softmax(scores, -1), dropout_p, True)
    return matmul(weights, value)

"""Multi-head attention, and what else `torch.nn.functional` composes in Python."""

from __future__ import annotations

import warnings
from math import sqrt
from typing import Any

import numpy as np

from gradcli.engine.core import random
from gradcli.engine.core.declaration import DType
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.schema import checked
from gradcli.engine.registry.table import bundled, function, resolve
from gradcli.operators.movement.padding import pad
from gradcli.operators.nn.dropout import dropped
from gradcli.operators.nn.linear_layers import linear, scaled_dot_product_attention
from gradcli.operators.nn.losses import cross_entropy
from gradcli.operators.primitives.matrix_products import baddbmm, bmm

FAMILY = "nn"


# -- projections ----------------------------------------------------------------------------------
def _parts(x: Tensor, w: Tensor, b: Tensor | None, count: int, size: int) -> Any:
    """Several projections of one input by one product."""
    out = linear(x, w, b).unflatten(-1, (count, size)).unsqueeze(0)
    return out.transpose(0, -2).squeeze(-2).contiguous()


def _packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None) -> tuple[Any, Any, Any]:
    size = q.shape[-1]
    if k is v and q is k:
        out = _parts(q, w, b, 3, size)
        return out[0], out[1], out[2]
    if k is v:
        w_q, w_kv = w.split([size, 2 * size])
        b_q, b_kv = (None, None) if b is None else b.split([size, 2 * size])
        first = linear(q, w_q, b_q)
        out = _parts(k, w_kv, b_kv, 2, size)
        return first, out[0], out[1]
    return _separate(q, k, v, w.chunk(3), b)


def _separate(
    q: Tensor, k: Tensor, v: Tensor, weights: Any, b: Tensor | None
) -> tuple[Any, Any, Any]:
    biases = (None, None, None) if b is None else b.chunk(3)
    for parts in (weights, biases):
        if len(parts) < 3:  # PyTorch's words, which are Python's
            raise ValueError(f"not enough values to unpack (expected 3, got {len(parts)})")
    first, second, third = (
        linear(x, w, c) for x, w, c in zip((q, k, v), weights, biases, strict=True)
    )
    return first, second, third


def _is_batched(
    q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    """Whether the query has a dimension of batches; AssertionError where the others do not fit it."""
    if q.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {q.ndim}-D query tensor"
        )
    expected = f"For {'un' * (q.ndim == 2)}batched ({q.ndim}-D) `query`, expected"
    if not k.ndim == v.ndim == q.ndim:
        raise AssertionError(
            f"{expected} `key` and `value` to be {q.ndim}-D but found {k.ndim}-D and {v.ndim}-D "
            "tensors respectively"
        )
    if padding is not None and padding.ndim != q.ndim - 1:
        raise AssertionError(
            f"{expected} `key_padding_mask` to be `None` or {q.ndim - 1}-D but found "
            f"{padding.ndim}-D tensor instead"
        )
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(
            f"{expected} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead"
        )
    shape = (heads, q.shape[0], k.shape[0])
    if q.ndim == 2 and mask is not None and mask.ndim == 3 and tuple(mask.shape) != shape:
        raise AssertionError(f"Expected `attn_mask` shape to be {shape} but got {mask.shape}")
    return bool(q.ndim == 3)


def _check_static(
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
    shape: tuple[int, int],
) -> None:
    """AssertionError for keys and values given that do not fit; shape: (batch * heads, width)."""
    if (bias_k is None) != (bias_v is None):
        one, other = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{one} is set but {other} is None")
    for name, static in (("key", static_k), ("value", static_v)):
        if static is not None and bias_k is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
    for name, static in (("static_k", static_k), ("static_v", static_v)):
        for dim, size in zip((0, 2), shape, strict=True):
            if static is not None and static.shape[dim] != size:
                raise AssertionError(
                    f"expecting {name}.size({dim}) of {size}, but got {static.shape[dim]}"
                )


def _as_numbers(mask: Tensor | None, kind: DType, name: str) -> Any:
    """A mask of what to leave out as zeros and minus infinities."""
    if mask is None or mask.array.dtype.kind == "f":
        return mask
    if mask.array.dtype.kind != "b":
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return wrap(np.where(mask.array, -np.inf, 0).astype(kind))


def _three_dimensional(mask: Tensor, heads: int, rows: int, columns: int) -> Any:
    if mask.ndim == 2:
        if tuple(mask.shape) != (rows, columns):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {mask.shape}, but should be {(rows, columns)}."
            )
        return mask.unsqueeze(0)
    if tuple(mask.shape) != (heads, rows, columns):
        raise RuntimeError(
            f"The shape of the 3D attn_mask is {mask.shape}, but should be {(heads, rows, columns)}."
        )
    return mask


def _weighted(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float
) -> tuple[Any, Any]:
    """(values, weights) of attention by explicit products of batches."""
    scaled = q * sqrt(1.0 / float(q.shape[-1]))
    keys = k.transpose(-2, -1)
    scores = bmm(scaled, keys) if mask is None else baddbmm(mask, scaled, keys)
    weights = resolve("softmax")(scores, -1)
    if dropout_p > 0.0:
        weights = dropped(weights, dropout_p, True)
    return bmm(weights, v), weights


@function(
    "nn.functional.multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int "
    "embed_dim_to_check, Any num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, "
    "Tensor? bias_v, Any add_zero_attn, Any dropout_p, Any out_proj_weight, Any out_proj_bias, Any "
    "training=True, Tensor? key_padding_mask=None, Any need_weights=True, Tensor? attn_mask=None, Any "
    "use_separate_proj_weight=False, Any q_proj_weight=None, Any k_proj_weight=None, Any v_proj_weight=None, "
    "Tensor? static_k=None, Tensor? static_v=None, Any average_attn_weights=True, Any "
    "is_causal=False)|python",
    samples="(randn(3,2,4), randn(3,2,4), randn(3,2,4), 4, 2, randn(12,4), randn(12), None, None, "
    "False, 0.0, randn(4,4), randn(4))",
    adapt=bundled,
)
def multi_head_attention_forward(o: Any) -> Any:
    """(output, weights) of attention with several heads, projections included."""
    batched = _is_batched(o.query, o.key, o.value, o.key_padding_mask, o.attn_mask, o.num_heads)
    if not batched:
        _add_batch(o)
    rows, batch, size = o.query.shape
    mask, padding, causal = _masks(o)
    width, heads = _width(o, size), batch * o.num_heads
    q, k, v = _projected(o)
    _check_static(o.bias_k, o.bias_v, o.static_k, o.static_v, (heads, width))
    if mask is not None:
        mask = _three_dimensional(mask, heads, rows, o.key.shape[0])
    cat = resolve("cat")
    if o.bias_k is not None and o.bias_v is not None:
        k = cat([k, o.bias_k.repeat(1, batch, 1)])
        v = cat([v, o.bias_v.repeat(1, batch, 1)])
        mask, padding = (m if m is None else pad(m, (0, 1)) for m in (mask, padding))
    q = q.view(rows, heads, width).transpose(0, 1)
    k = k.view(k.shape[0], heads, width).transpose(0, 1) if o.static_k is None else o.static_k
    v = v.view(v.shape[0], heads, width).transpose(0, 1) if o.static_v is None else o.static_v
    if o.add_zero_attn:
        zeros = wrap(np.zeros((heads, 1, width), o.query.array.dtype))
        k, v = cat([k, zeros], dim=1), cat([v, zeros], dim=1)
        mask, padding = (m if m is None else pad(m, (0, 1)) for m in (mask, padding))
    if padding is not None:
        padding = _over_heads(padding, batch, o.num_heads, k.shape[1])
        mask = padding if mask is None else mask + padding
    dropout_p = o.dropout_p if o.training else 0.0
    shape, scores = (batch, o.num_heads, rows, k.shape[1]), None
    if o.need_weights:
        out, scores = _weighted(q, k, v, mask, dropout_p)
        out, scores = out.transpose(0, 1), scores.view(*shape)
        scores = scores.mean(1) if o.average_attn_weights else scores
        scores = scores if batched else scores.squeeze(0)
    else:
        if mask is not None:
            one = mask.shape[0] == 1 and mask.ndim == 3
            mask = mask.unsqueeze(0) if one else mask.view(*shape[:2], -1, shape[3])
        q, k, v = (x.view(*shape[:2], -1, width) for x in (q, k, v))
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, causal).permute(2, 0, 1, 3)
    out = linear(out.reshape(rows * batch, size), o.out_proj_weight, o.out_proj_bias)
    out = out.view(rows, batch, out.shape[1])
    return (out if batched else out.squeeze(1)), scores


def _add_batch(o: Any) -> None:
    """Give query, key and value a batch of one; what was one tensor stays one."""
    same = (o.key is o.query, o.value is o.key)
    o.query = o.query.unsqueeze(1)
    o.key = o.query if same[0] else o.key.unsqueeze(1)
    o.value = o.key if same[1] else o.value.unsqueeze(1)
    if o.key_padding_mask is not None:
        o.key_padding_mask = o.key_padding_mask.unsqueeze(0)


def _masks(o: Any) -> tuple[Any, Any, bool]:
    """(mask, mask of the padding, whether attention is causal without a mask)."""
    if o.is_causal and o.attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    kind = o.query.array.dtype
    padding = _as_numbers(o.key_padding_mask, kind, "key_padding_mask")
    if o.is_causal and padding is None and not o.need_weights:
        return None, padding, True
    return _as_numbers(o.attn_mask, kind, "attn_mask"), padding, o.is_causal and padding is None


def _width(o: Any, size: int) -> int:
    """The size of one head."""
    width = size // o.num_heads
    if size != o.embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {o.embed_dim_to_check}, but got {size}"
        )
    if width * o.num_heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {o.num_heads}")
    return int(width)


def _projected(o: Any) -> tuple[Any, Any, Any]:
    """Query, key and value by their projections."""
    key, value = o.key.shape, o.value.shape
    if not o.use_separate_proj_weight:
        if key != value:
            raise AssertionError(f"key shape {key} does not match value shape {value}")
        if o.in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return _packed(o.query, o.key, o.value, o.in_proj_weight, o.in_proj_bias)
    weights = (o.q_proj_weight, o.k_proj_weight, o.v_proj_weight)
    for name, one in zip("qkv", weights, strict=True):
        if one is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    if key[:2] != value[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key[:2]} do not match value's {value[:2]}"
        )
    return _separate(o.query, o.key, o.value, weights, o.in_proj_bias)


def _over_heads(padding: Tensor, batch: int, num_heads: int, columns: int) -> Any:
    """The mask of the padding, once for each head."""
    for dim, expected in enumerate((batch, columns)):
        if padding.shape[dim] != expected:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got {padding.shape[dim]}"
            )
    padding = padding.view(batch, 1, 1, columns).expand(-1, num_heads, -1, -1)
    return padding.reshape(batch * num_heads, 1, columns)


# -- samples and classes --------------------------------------------------------------------------
@function(
    "nn.functional.gumbel_softmax(Tensor logits, Any tau=1, Any hard=False, Any eps=1e-10, Any dim=-1) "
    "-> empty_like(logits=input)",
    python=True,
    samples="(randn(2,3))",
)
def gumbel_softmax(logits: Tensor, tau: float, hard: bool, eps: float, dim: int) -> Any:
    """A random, differentiable choice of a class."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=users_level())
    array = logits.array
    noise = wrap(-np.log(random.exponential(array.shape, array.dtype)))
    soft = ((logits + noise) / tau).softmax(dim := checked("softmax", "int dim", 1, dim))
    if not hard:
        return soft
    index = np.asarray(soft.array).argmax(dim)
    chosen = np.zeros_like(np.asarray(array))
    np.put_along_axis(chosen, np.expand_dims(index, dim), 1, dim)
    return wrap(chosen) - soft.detach() + soft


@function(
    "nn.functional.linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *, "
    "Tensor? linear_bias=None, Any weight=None, Any reduction='mean', "
    "Any ignore_index=None, Any label_smoothing=0.0, Any options=None)|python",
    samples="(randn(3,4), randn(5,4), tensor([0,2,4]))",
    adapt=bundled,
)
def linear_cross_entropy(o: Any) -> Any:
    """cross_entropy of linear(input, linear_weight, linear_bias).

    PyTorch's `options` say how it splits the work to save memory; here nothing is split.
    """
    input, weight, bias = o.input, o.linear_weight, o.linear_bias
    if not 1 <= input.ndim <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.ndim}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    shape = (*input.shape[:-1], *weight.shape[:-1])
    if weight.ndim > 2:
        weight = weight.reshape(-1, weight.shape[-1])
        bias = None if bias is None else bias.reshape(-1)
    logits = linear(input, weight, bias).reshape(*shape)
    ignored = -100 if o.ignore_index is None else o.ignore_index
    how = {"reduction": o.reduction, "label_smoothing": o.label_smoothing}
    return cross_entropy(logits, o.target, o.weight, ignore_index=ignored, **how)

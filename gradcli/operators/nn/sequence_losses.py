"""Losses and sums over sequences: connectionist temporal classification, bags of embeddings."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Ints
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.binder import Parser
from gradcli.engine.registry.derivative_pairs import last, passing
from gradcli.engine.registry.dimensions import not_differentiable
from gradcli.engine.registry.rule_helpers import implemented, refuse_if, total
from gradcli.engine.registry.table import function, primitive, resolve
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.nn.linear_layers import check_indices, renorm_rows
from gradcli.operators.nn.losses import MEAN, SUM, reduction_number

FAMILY = "losses"


# -- connectionist temporal classification --------------------------------------------------------
def _states(targets: Array, lengths: Ints, blank: int) -> Any:
    """(sequence, state): the blanks around and between the labels; blanks behind shorter sequences."""
    states = np.full((len(lengths), 2 * max(lengths) + 1), blank, np.int64)
    start = 0
    for i, n in enumerate(lengths):
        states[i, 1 : 2 * n : 2] = (
            targets[i, :n] if targets.ndim == 2 else targets[start : start + n]
        )
        start += n
    return states


def _within(count: int, lengths: Array | Ints) -> Any:
    """(place, sequence): whether a place lies in a sequence."""
    return np.arange(count)[:, None] < np.asarray(lengths)


def _forward_variables(lp: Array, states: Array) -> Any:
    """log of the probability of all prefixes that end in each state, by time, of several sequences at once.

    lp: (time, sequence, label); states: (sequence, state); the result: (time, sequence, state).
    """
    emitted = np.take_along_axis(lp, np.broadcast_to(states, (len(lp), *states.shape)), 2)
    closed = np.full(states.shape, -np.inf)  # 0 where a state may be entered from the last label
    closed[:, 3::2][states[:, 3::2] != states[:, 1:-2:2]] = 0
    alpha = np.full((len(lp), states.shape[0], states.shape[1] + 2), -np.inf)
    alpha[:1, :, 2:4] = emitted[:1, :, :2]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for t in range(1, len(lp)):
            last, now = alpha[t - 1], alpha[t, :, 2:]
            np.logaddexp(last[:, 2:], last[:, 1:-1], out=now)  # staying there, or a step
            np.logaddexp(now, last[:, :-2] + closed, out=now)
            now += emitted[t]
    return alpha[:, :, 2:]


def _ctc_backward(
    grad: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: Ints,
    target_lengths: Ints,
    neg_log_likelihood: Array,
    log_alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    states = _states(targets, target_lengths, blank)
    (batch, widest), count = states.shape, len(log_probs)
    rows, sizes = np.arange(batch), 2 * np.asarray(target_lengths) + 1
    # Places counted from the end of each sequence; what wraps around lies in none.
    late = np.asarray(input_lengths) - 1 - np.arange(count)[:, None]
    last = sizes[:, None] - 1 - np.arange(widest)
    beta = _forward_variables(log_probs[late, rows], states[rows[:, None], last])
    beta = beta[late[..., None], rows[:, None], last]
    inside = _within(widest, sizes).T
    total = np.full(log_probs.shape, -np.inf)
    loss = neg_log_likelihood[:, None]
    keep = _within(count, input_lengths)[..., None] & ~(zero_infinity & np.isinf(loss))
    with np.errstate(invalid="ignore", over="ignore"):
        both = np.where(inside, log_alpha.swapaxes(0, 1) + beta, -np.inf)
        for s in range(widest):
            label = (slice(None), rows, states[:, s])
            total[label] = np.logaddexp(total[label], both[:, :, s])
        # Both halves count the probability of the state itself once.
        slopes = (np.exp(log_probs) - np.exp(total + loss - log_probs)) * grad[:, None]
    return np.where(keep, slopes, 0).astype(log_probs.dtype)


_ctc_loss_backward = last("_ctc_loss_backward", _ctc_backward, "grad log_probs")


@primitive(node="CtcLossBackward0", outputs="result0 | result1")
class ctc_loss_p:
    def forward(
        log_probs: Array,
        targets: Array,
        input_lengths: Ints,
        target_lengths: Ints,
        blank: int = 0,
        zero_infinity: bool = False,
    ) -> tuple[Array, Array]:
        implemented("ctc_loss_cpu", log_probs, "fd")
        states = _states(targets, target_lengths, blank)
        if not 0 <= states.min() <= states.max() < log_probs.shape[2]:
            # PyTorch reads memory that is not its own.
            raise RuntimeError(f"targets must be labels, from 0 to {log_probs.shape[2] - 1}")
        sizes, steps = 2 * np.asarray(target_lengths) + 1, np.asarray(input_lengths)
        every = _forward_variables(log_probs, states)
        inside = _within(states.shape[1], sizes).T & _within(len(every), steps)[..., None]
        rows = np.arange(len(states))
        ends, before = every[steps - 1, rows, sizes - 1], every[steps - 1, rows, sizes - 2]
        with np.errstate(invalid="ignore"):
            losses = -np.logaddexp(ends, np.where(sizes > 1, before, -np.inf))
        losses = np.where(steps > 0, losses, np.where(sizes == 1, 0, np.inf))
        alphas = np.where(inside, every, -np.inf).swapaxes(0, 1)
        return losses.astype(log_probs.dtype), alphas.astype(log_probs.dtype)

    log_probs = passing(
        _ctc_loss_backward,
        "log_probs targets input_lengths target_lengths result0 result1 blank zero_infinity",
    )


def _lengths(value: Any) -> tuple[int, ...]:
    if isinstance(value, Tensor):
        value = np.asarray(value.array).reshape(-1).tolist()
    return tuple(int(n) for n in value)


@function(
    "nn.functional.ctc_loss(Any log_probs, Any targets, Any input_lengths, Any target_lengths, "
    "Any blank=0, Any reduction='mean', Any zero_infinity=False)|python",
    short=False,
    primitives=[ctc_loss_p],
    samples="(log_softmax(randn(6,2,5), -1), tensor([[1,2,3],[2,2,1]]), (6,6), (3,2))",
)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Ints,
    target_lengths: Tensor | Ints,
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Any:
    """Minus the log-probability of a labelling, over all its alignments with the input."""
    number = reduction_number(reduction)
    return _parsed(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


def _check_ctc(lp: Tensor, targets: Tensor, steps: Ints, counts: Ints, blank: int) -> None:
    """RuntimeError, in PyTorch's words, for lengths and targets that do not fit the probabilities."""
    checked = "(while checking arguments for ctc_loss_allocate_outputs)"
    refuse_if(not prod(lp.shape), "log_probs tensor must not be empty")
    if lp.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {lp.ndim}-dimensional tensor for argument #1 "
            f"'log_probs' {checked}"
        )
    refuse_if(not 0 <= blank < lp.shape[2], "blank must be in label range")
    for name, lengths in (("input", steps), ("target", counts)):
        refuse_if(len(lengths) != lp.shape[1], "{}_lengths must be of size batch_size", name)
    for name, lengths in (("input", steps), ("target", counts)):
        if min(lengths) < 0:
            least = f"at least 0, but got value {min(lengths)}"
            raise RuntimeError(f"Expected {name}_lengths to have value {least} {checked}")
    longest, argument = max(counts), f"for argument #2 'targets' {checked}"
    if targets.ndim not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor {argument}"
        )
    size = sum(counts) if targets.ndim == 1 else lp.shape[1]
    if targets.shape[0] != size:
        raise RuntimeError(
            f"Expected tensor to have size {size} at dimension 0, but got size {targets.shape[0]} {argument}"
        )
    if targets.ndim == 2 and targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size "
            f"{targets.shape[1]} {argument}"
        )
    if max(steps) > lp.shape[0]:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {lp.shape[0]}, but got value {max(steps)} "
            f"{checked}"
        )


def _ctc_loss_of(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Ints,
    target_lengths: Tensor | Ints,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Any:
    steps, counts = _lengths(input_lengths), _lengths(target_lengths)
    batched = log_probs.ndim == 3
    lp = log_probs if batched else log_probs.unsqueeze(1)
    _check_ctc(lp, targets, steps, counts, blank)
    out = ctc_loss_p(lp, targets, steps, counts, blank, zero_infinity)[0]
    if zero_infinity:
        out = resolve("where")(wrap(np.isinf(out.array)), 0.0, out)
    if reduction == MEAN:
        kind = out.array.dtype
        return (out / wrap(np.maximum(np.asarray(counts), 1).astype(kind))).mean()
    if reduction == SUM:
        return out.sum()
    return out if batched else out.squeeze(0)


_CTC = ", int blank=0, int reduction=at::Reduction::Mean, bool zero_infinity=False)"
_parsed = Parser(
    tuple(
        f"ctc_loss(Tensor log_probs, Tensor targets, {t} input_lengths, {t} target_lengths{_CTC}"
        for t in ("int[]", "Tensor")
    ),
    _ctc_loss_of,
).function()


# -- bags of embeddings ---------------------------------------------------------------------------
_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


@primitive(node="EmbeddingBagBackwardBackward0")
class _embedding_bag_backward:
    def forward(
        grad: Array,
        indices: Array,
        bag_of: Array,
        sizes: Array,
        largest: Array,
        rows: int,
        scale_grad_by_freq: bool,
        mode: int,
        weights: Array | None,
        padding_idx: int,
    ) -> Array:
        g = grad
        out = np.zeros((rows, g.shape[1]), g.dtype)
        if mode == 2:
            bags, columns = np.nonzero(np.broadcast_to(sizes[:, None] > 0, g.shape))
            np.add.at(out, (largest[bags, columns], columns), g[bags, columns])
            return out
        kept = indices != padding_idx
        share = g / np.maximum(sizes, 1)[:, None] if mode == 1 else g
        parts = share[bag_of]
        if weights is not None:
            parts = parts * weights[:, None]
        if scale_grad_by_freq:
            parts = parts / np.bincount(indices, minlength=rows)[indices][:, None]
        np.add.at(out, indices[kept], parts[kept].astype(g.dtype))
        return out

    grad = weights = lambda g: not_differentiable("_embedding_bag_backward")


def _bag_weights_backward(
    grad: Array, weight: Array, indices: Array, bag_of: Array, padding_idx: int
) -> Array:
    out = total(grad[bag_of] * weight[indices], 1)
    return np.where(indices == padding_idx, 0, out)


_embedding_bag_per_sample_weights_backward = last(
    "_embedding_bag_per_sample_weights_backward", _bag_weights_backward, "grad weight"
)


@primitive(node="EmbeddingBagBackward0", outputs="result0 | result1 result2 result3")
class embedding_bag_p:
    def forward(
        weight: Array,
        indices: Array,
        offsets: Array,
        scale_grad_by_freq: bool = False,
        mode: int = 0,
        sparse: bool = False,
        per_sample_weights: Array | None = None,
        include_last_offset: bool = False,
        padding_idx: int = -1,
    ) -> tuple[Array, Array, Array, Array]:
        outside = np.nonzero((indices < 0) | (indices >= weight.shape[0]))[0]
        if outside.size:
            place, index = outside[0], indices[outside[0]]
            if weight.dtype.char in "ef" and mode != 2 and padding_idx < 0:
                raise RuntimeError(
                    f"Index {place} of input takes value {index} which is not in the valid range "
                    f"[0, {weight.shape[0]})"
                )
            raise RuntimeError(
                f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {index}"
            )
        _check_offsets(offsets, indices.size, include_last_offset)
        bags = offsets.shape[0] - bool(include_last_offset)
        starts = np.asarray(offsets)[:bags]
        bag_of = np.searchsorted(starts, np.arange(indices.size), side="right") - 1
        kept = indices != padding_idx
        sizes = np.bincount(bag_of[kept], minlength=bags)[:bags].astype(indices.dtype)
        rows = weight[indices]
        if per_sample_weights is not None:
            rows = rows * per_sample_weights[:, None]
        out = np.zeros((bags, weight.shape[1]), weight.dtype)
        if mode == 2:
            largest = np.full((bags, weight.shape[1]), -1, indices.dtype)
            for k in np.nonzero(kept)[0]:
                b = bag_of[k]
                better = (largest[b] < 0) | (rows[k] > out[b])
                out[b] = np.where(better, rows[k], out[b])
                largest[b] = np.where(better, indices[k], largest[b])
            return out, bag_of.astype(indices.dtype), sizes, np.maximum(largest, 0)
        np.add.at(out, bag_of[kept], rows[kept])
        if mode == 1:
            out = out / np.maximum(sizes, 1)[:, None].astype(weight.dtype)
        return out, bag_of.astype(indices.dtype), sizes, sizes.copy()

    weight = (
        lambda g, indices, offsets, result1, result2, result3, weight_sym_argsize_0, scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx: (  # noqa: E501
            _embedding_bag_backward(
                g,
                indices,
                result1,
                result2,
                result3,
                weight_sym_argsize_0,
                scale_grad_by_freq,
                mode,
                per_sample_weights,
                padding_idx,
            )
        )
    )
    per_sample_weights = lambda g, weight, indices, offsets, result1, mode, padding_idx: (
        _embedding_bag_per_sample_weights_backward(g, weight, indices, result1, padding_idx)
    )


@function(
    "nn.functional.embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, "
    "float norm_type=2, bool scale_grad_by_freq=False, Any mode='mean', bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None)|python -> "
    "embedding_bag(weight, input=indices, offsets, scale_grad_by_freq, mode, sparse, "
    "per_sample_weights, include_last_offset, padding_idx)",
    short=False,
    samples="(tensor([[0,2],[1,2]]), randn(4,3), mode='sum')",
)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
    mode: str,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Any:
    """Sums, means or maxima of the rows of a table that bags of indices name."""
    if weight.array.dtype == np.int64 and input.array.dtype.kind == "f":
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
            "...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            UserWarning,
            stacklevel=users_level(),
        )
        input, weight = weight, input
    check_indices(input.array, "embedding_bag")
    if weight.array.dtype.kind != "f":
        kind = scalar_name(weight)
        shown = f"CPU{kind}Type" if weight.array.dtype.kind in "bc" else f"torch.{kind}Tensor"
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, "
            f"BFloat16, Float, Double; but got {shown} instead (while checking arguments for embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        shapes = (f"({x.shape})" for x in (per_sample_weights, input))
        raise ValueError(
            "embedding_bag: If per_sample_weights {} is not None, then it must have the same shape as "
            "the input {}".format(*shapes)
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    refuse_if(mode not in _BAG_MODES, "mode has to be one of sum, mean or max", error=ValueError)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
                f"length sequences. However, found offsets of type {type(offsets)}"
            )
        count, width = input.shape
        offsets = wrap(np.arange(count, dtype=input.array.dtype) * width)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.ndim != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    else:
        check_indices(offsets.array, "embedding_bag")
    if padding_idx is None:
        padding_idx = -1
    elif not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{weight.shape[0]} through "
            f"{weight.shape[0] - 1}, but got {padding_idx}"
        )
    elif padding_idx < 0:
        padding_idx += weight.shape[0]
    if max_norm is not None:
        renorm_rows(weight, input, max_norm, norm_type)
    return embedding_bag_p(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


def _check_offsets(starts: Array, count: int, include_last_offset: bool) -> None:
    """RuntimeError, in PyTorch's words, for what does not say where bags of `count` indices begin."""
    if include_last_offset and not starts.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if starts.size and starts[0]:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {starts[0]}"
        )
    if starts.size and starts[-1] > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {starts[-1]}"
        )
    if starts.size and not 0 <= starts.min() <= starts.max() <= count:
        raise IndexError("index out of range in self")
    if (np.diff(starts) < 0).any():
        raise RuntimeError("offsets must not decrease")  # where PyTorch adds what it did not write
    if count and starts.size == bool(include_last_offset):
        raise RuntimeError("there is no bag for the indices")  # where PyTorch crashes

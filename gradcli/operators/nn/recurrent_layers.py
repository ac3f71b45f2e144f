"""One layer of long short-term memory in one direction, all steps in one node, as PyTorch's CPU has it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.declaration import Array
from gradcli.engine.registry.rule_helpers import unrecorded
from gradcli.engine.registry.table import primitive, resolve
from gradcli.operators.nn import lstm_steps

# All steps lie as columns: a step has (rows, batch), so that each gate is one piece of memory and one product
# `W z` gives the sums of all gates, where z stacks the last output, the input and a row of ones:
#
#     W = [weight1 weight0 bias]    z = [h; x; 1]
#
# PyTorch's rows are in the order input, forget, cell, output; here the cell's are last, so that the three
# sigmoids are one piece, too. A sigmoid is (1 + tanh(x/2)) / 2: one call of tanh serves all four gates.
_ORDER = (0, 1, 3, 2)  # exchanges the last two of four; doing it twice undoes it


class _Steps(NamedTuple):
    """What the steps leave for the backward pass: views of one flat array."""

    stacked: Any  # z of each step, and of one more, (steps + 1, rows of z, batch)
    gates: Any  # input, forget, output, cell: (steps, 4, size, batch)
    cells: Any  # (steps, size, batch)
    shown: Any  # the tanh of the cells, as they are


def _steps(steps: int, batch: int, size: int, rows: int, flat: Any) -> _Steps:
    counts = ((steps + 1) * rows, steps * 4 * size, steps * size, steps * size)
    ends = [batch * sum(counts[:k]) for k in range(5)]
    shapes = ((steps + 1, rows, batch), (steps, 4, size, batch), *[(steps, size, batch)] * 2)
    return _Steps(*(flat[ends[k] : ends[k + 1]].reshape(shapes[k]) for k in range(4)))


def _ordered(weight: Any) -> Any:
    """Four gates' rows, with the last two gates exchanged: (4, size, …)."""
    return weight.reshape(4, -1, *weight.shape[1:])[_ORDER, :]


@primitive(node="MkldnnRnnLayerBackward0", outputs="result0 result1 result2 | result3")
class lstm_layer:
    def forward(
        input: Array,
        weight0: Array,
        weight1: Array,
        weight2: Array | None,
        weight3: Array | None,
        hx: Array,
        cx: Array,
        reverse: bool = False,
    ) -> tuple[Array, Array, Array, Array]:
        """(the outputs of all steps, the last output, the last cell, what the backward pass needs).

        input: (steps, batch, inputs). weight0, weight2: from the inputs to the gates, with their bias;
        weight1, weight3: from the last outputs. reverse: from the last step to the first.
        """
        steps, batch, inside = input.shape
        size, biased = weight1.shape[1], weight2 is not None
        rows = size + inside + biased
        counts = (steps + 1) * rows + 6 * steps * size
        workspace = np.empty(counts * batch, input.dtype)
        stacked, gates, cells, shown = _steps(steps, batch, size, rows, workspace)
        stacked[0, :size] = hx.T
        stacked[:-1, size : size + inside] = (input[::-1] if reverse else input).transpose(0, 2, 1)
        stacked[:-1, size + inside :] = 1
        weights = np.empty((4, size, rows), input.dtype)
        weights[..., :size], weights[..., size : size + inside] = map(_ordered, (weight1, weight0))
        if biased:
            weights[..., -1] = _ordered(weight2 if weight3 is None else weight2 + weight3)
        weights[:3] *= 0.5
        weight = weights.reshape(4 * size, rows)
        c = np.ascontiguousarray(cx.T)
        lstm_steps.forward(weight, stacked, gates, cells, shown, c)
        outputs = stacked[1:, :size].transpose(0, 2, 1)
        outputs = np.ascontiguousarray(outputs[::-1] if reverse else outputs)
        return outputs, outputs[0 if reverse else -1].copy(), cells[-1].T.copy(), workspace

    def input__weight0__weight1__weight2__weight3__hx__cx(
        grads: Any,
        input: Any,
        weight0: Any,
        weight1: Any,
        weight2: Any,
        weight3: Any,
        hx: Any,
        cx: Any,
        result0: Any,
        result3: Any,
        reverse: bool,
        mask: Any,
    ) -> Any:
        given = (input, weight0, weight1, weight2, weight3, hx, cx)
        if all(unrecorded(v) for v in (*grads, *given) if v is not None):
            return _gradients(grads, given, result3, reverse, mask)
        return _recorded_gradients(grads, given, reverse)


def _gradients(grads: Any, given: Any, workspace: Any, reverse: bool, mask: Any) -> Any:
    """The gradients on arrays; those of weights and of the input are computed for all steps at once."""
    input, weight0, weight1, weight2, _, _, cx = given
    (steps, batch, inside), size = input.shape, weight1.shape[1]
    rows = size + inside + (weight2 is not None)
    stacked, gates, cells, shown = _steps(steps, batch, size, rows, workspace)
    up, last_h, last_c = grads[:3]
    dh, dc = (
        np.zeros((size, batch), input.dtype) if last is None else last.T.copy()
        for last in (last_h, last_c)
    )
    ups = None if up is None else np.ascontiguousarray(up.transpose(0, 2, 1))
    back = np.ascontiguousarray(_ordered(weight1).reshape(4 * size, size).T)
    first = np.ascontiguousarray(cx.T)
    slopes = lstm_steps.backward(back, gates, cells, shown, first, ups, dh, dc, reverse)
    sums = slopes.reshape(steps, 4 * size, batch)
    flat = sums.transpose(1, 0, 2).reshape(4 * size, steps * batch)
    to_input = to_weight0 = to_weight1 = to_bias = None
    if mask[0]:
        to_input = flat.T.dot(_ordered(weight0).reshape(4 * size, inside)).reshape(input.shape)
        to_input = to_input[::-1].copy() if reverse else to_input
    if any(mask[1:5]):
        each_z = stacked[:-1].transpose(1, 0, 2).reshape(rows, steps * batch)
        whole = _ordered(flat.dot(each_z.T)).reshape(4 * size, rows)
        to_weight1, to_weight0 = whole[:, :size].copy(), whole[:, size : size + inside].copy()
        to_bias = None if weight2 is None else whole[:, -1].copy()
    return to_input, to_weight0, to_weight1, to_bias, to_bias, dh.T.copy(), dc.T.copy()


def _recorded_gradients(grads: Any, given: Any, reverse: bool) -> Any:
    """The same of tensors, by operations that can be differentiated again."""
    input, weight0, weight1, weight2, weight3, hx, cx = given
    linear, stack, cat = (resolve(n) for n in ("nn.functional.linear", "stack", "cat"))
    order = range(input.shape[0] - 1, -1, -1) if reverse else range(input.shape[0])
    kept, h, c = [], hx, cx
    for t in order:
        sums = linear(input[t], weight0, weight2) + linear(h, weight1, weight3)
        i, f, g, o = (
            part.tanh() if k == 2 else part.sigmoid() for k, part in enumerate(sums.chunk(4, -1))
        )
        new = f * c + i * g
        kept.append((t, h, c, i, f, g, o, new.tanh()))
        h, c = o * new.tanh(), new
    up, dh, dc = grads[:3]
    sums_of: dict[int, Any] = {}
    for t, _, before, i, f, g, o, shown in reversed(kept):
        if up is not None:
            dh = up[t] if dh is None else dh + up[t]
        through = 0 if dh is None else dh * o * (1 - shown * shown)
        dc = through if dc is None else dc + through
        d_o = o * 0 if dh is None else dh * shown * o * (1 - o)
        parts = (dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g * g), d_o)
        sums_of[t] = cat(parts, -1)
        dh, dc = sums_of[t] @ weight1, dc * f
    rows = stack([sums_of[t] for t in range(input.shape[0])])
    before = stack([h for _, h, *_ in sorted(kept, key=lambda each: each[0])])
    flat = rows.flatten(0, 1)
    g_bias = None if weight2 is None else flat.sum(0)
    return (
        (flat @ weight0).reshape(input.shape),
        flat.t() @ input.flatten(0, 1),
        flat.t() @ before.flatten(0, 1),
        g_bias,
        g_bias,
        dh,
        dc,
    )

"""One layer of long short-term memory in one direction, all steps in one node, as PyTorch's CPU has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array
from gradcli.engine.registry.rule_helpers import unrecorded
from gradcli.engine.registry.table import primitive, resolve
from gradcli.engine.system.blocked_products import matrices_dot
from gradcli.engine.system.cascaded_sums import add_reduce

# Gates lie in the order input, forget, cell, output. The sigmoid is (1 + tanh(x/2)) / 2, so that one call
# of tanh serves all four: their sums are scaled before it, and scaled and shifted after it.
_SCALE, _SHIFT = (0.5, 0.5, 1.0, 0.5), (0.5, 0.5, 0.0, 0.5)


def _flat(values: tuple[float, ...], size: int, dtype: Any) -> Any:
    return np.repeat(np.array(values, dtype), size)


def _views(workspace: Any, steps: int, batch: int, size: int) -> tuple[Any, Any, Any]:
    """(the gates, (steps, batch, 4, size); the cells; their tanh) in one flat array."""
    count = steps * batch * size
    return (
        workspace[: 4 * count].reshape(steps, batch, 4, size),
        workspace[4 * count : 5 * count].reshape(steps, batch, size),
        workspace[5 * count :].reshape(steps, batch, size),
    )


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
        size = weight1.shape[1]
        scale, shift = (_flat(values, size, input.dtype) for values in (_SCALE, _SHIFT))
        workspace = np.empty(6 * steps * batch * size, input.dtype)
        gates, cells, shown = _views(workspace, steps, batch, size)
        flat = gates.reshape(steps, batch, 4 * size)
        sums = matrices_dot(input.reshape(steps * batch, inside), (weight0 * scale[:, None]).T)
        for bias in (weight2, weight3):
            if bias is not None:
                sums += bias * scale
        flat[...] = sums.reshape(steps, batch, 4 * size)
        outputs = np.empty((steps, batch, size), input.dtype)
        recurrent = np.ascontiguousarray((weight1 * scale[:, None]).T)
        h, c, added = hx, cx, np.empty((batch, size), input.dtype)
        for t in range(steps - 1, -1, -1) if reverse else range(steps):
            a, four = flat[t], gates[t]
            a += h.dot(recurrent)
            np.tanh(a, a)
            a *= scale
            a += shift
            np.multiply(four[:, 1], c, cells[t])
            c = cells[t]
            c += np.multiply(four[:, 0], four[:, 2], added)
            np.tanh(c, shown[t])
            h = np.multiply(four[:, 3], shown[t], outputs[t])
        return outputs, h.copy(), c.copy(), workspace

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
            return _gradients(grads, given, result0, result3, reverse)
        return _recorded_gradients(grads, given, reverse)


def _gradients(grads: Any, given: Any, outputs: Any, workspace: Any, reverse: bool) -> Any:
    """The gradients on arrays; what does not depend on later steps is computed for all steps at once.

    With the gradients dh and dc of a step's output and cell, the gates' sums have dc times
    (i' g, f' c_before, g' i) and dh times o' tanh(c), where i' is the slope of i by its sum.
    """
    input, weight0, weight1, weight2, _, hx, cx = given
    (steps, batch, inside), size = input.shape, weight1.shape[1]
    gates, cells, shown = _views(workspace, steps, batch, size)
    h_before, c_before = np.empty_like(outputs), np.empty_like(cells)
    own, following = (slice(1, None), slice(-1)) if reverse else (slice(-1), slice(1, None))
    first = -1 if reverse else 0
    for before, values, start in ((h_before, outputs, hx), (c_before, cells, cx)):
        before[following], before[first] = values[own], start
    i, f, g, o = (gates[:, :, k] for k in range(4))
    slopes = gates - gates * gates
    slopes[:, :, 2] = 1 - g * g
    slopes *= np.stack((g, c_before, i, shown), 2)
    to_cell = o * (1 - shown * shown)
    sums = np.empty_like(gates)
    flat = sums.reshape(steps, batch, 4 * size)
    up, last_h, last_c = grads[:3]
    dh = np.zeros_like(hx) if last_h is None else last_h
    dc = np.zeros_like(cx) if last_c is None else last_c
    for t in range(steps) if reverse else range(steps - 1, -1, -1):
        dh = dh if up is None else dh + up[t]
        dc = dc + dh * to_cell[t]
        np.multiply(slopes[t, :, :3], dc[:, None], sums[t, :, :3])
        np.multiply(slopes[t, :, 3], dh, sums[t, :, 3])
        dh = flat[t].dot(weight1)
        dc = dc * f[t]
    rows = flat.reshape(steps * batch, 4 * size)
    g_bias = None if weight2 is None else add_reduce(rows, 0)
    return (
        rows.dot(weight0).reshape(input.shape),
        rows.T.dot(input.reshape(steps * batch, inside)),
        rows.T.dot(h_before.reshape(steps * batch, size)),
        g_bias,
        g_bias,
        dh,
        dc,
    )


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

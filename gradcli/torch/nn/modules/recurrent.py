"""Recurrent layers and cells: a step, run over the sequence in one direction or in both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve
from gradcli.operators.nn.recurrent_layers import lstm_layer
from gradcli.torch.nn import functional, init
from gradcli.torch.nn.modules.arguments import bound, signature
from gradcli.torch.nn.modules.layers import parameter
from gradcli.torch.nn.modules.module import Module
from gradcli.torch.nn.utils.rnn import PackedSequence

State = tuple[Any, ...]
# A step: (what the input gives to the gates, the state, what the state gives to the gates) -> the next state.
Step = Callable[[Any, State, Any], State]


def _rnn_tanh(x: Any, state: State, h: Any) -> State:
    return ((x + h).tanh(),)


def _rnn_relu(x: Any, state: State, h: Any) -> State:
    return ((x + h).relu(),)


def _lstm(x: Any, state: State, h: Any) -> State:
    i, f, g, o = (x + h).unsafe_chunk(4, -1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(x: Any, state: State, h: Any) -> State:
    (xr, xz, xn), (hr, hz, hn) = x.unsafe_chunk(3, -1), h.unsafe_chunk(3, -1)
    z = (xz + hz).sigmoid()
    n = (xn + (xr + hr).sigmoid() * hn).tanh()
    return ((state[0] - n) * z + n,)


# {mode: (gates, what the state consists of, step)}
_MODES: dict[str, tuple[int, int, Step]] = {
    "RNN_TANH": (1, 1, _rnn_tanh),
    "RNN_RELU": (1, 1, _rnn_relu),
    "LSTM": (4, 2, _lstm),
    "GRU": (3, 1, _gru),
}


def _is_single(*tensors: Tensor) -> bool:
    """Whether PyTorch runs all steps as one operation: on float32, and where no transform takes part."""
    state = modes.current()
    if modes.differentiating or state.levels or state.batched or state.recorder:
        return False
    return not any(modes.forward_levels()) and all(
        type(t.array) is np.ndarray and t.array.dtype == np.float32 and t.array.size
        for t in tensors
    )


def _draw(module: Module, hidden_size: int) -> None:
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for value in module.parameters():
        init.uniform_(value, -bound, bound)


_ARGUMENTS = signature(
    "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, "
    "bidirectional=False, proj_size=0, device=None, dtype=None"
)


class RNNBase(Module):
    """Layers of a mode, each in one direction or both."""

    dropout: float

    def __init__(self, mode: str, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        given = bound(self, _ARGUMENTS, args, kwargs)
        for name, value in {"mode": mode, **given}.items():
            setattr(self, name, value)
        if self.proj_size and mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        for name in ("hidden_size", "num_layers"):
            if given[name] <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            words = "proj_size should be a positive integer or zero to disable projections"
            raise ValueError(words)
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self.dropout, sides = float(self.dropout), len(self._ends())
        gates, out = _MODES[mode][0] * self.hidden_size, self.proj_size or self.hidden_size
        for layer in range(self.num_layers):
            inside = self.input_size if layer == 0 else out * sides
            for end in self._ends():
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, inside),
                    "weight_hh": (gates, out),
                }
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)} if self.bias else {}
                shapes |= {"weight_hr": (out, self.hidden_size)} if self.proj_size else {}
                for name, shape in shapes.items():
                    value = parameter(*shape, dtype=given["dtype"])
                    self.register_parameter(f"{name}_l{layer}{end}", value)
        del self.device, self.dtype
        self.reset_parameters()

    def _ends(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: it is for PyTorch's GPUs."""

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """(the outputs of the last layer at all steps, the last states).

        input: (steps, batch, input_size), with batch_first (batch, steps, input_size), or without a batch.
        """
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 2D or 3D, got {input.ndim}D instead"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )
        alone = input.ndim == 2
        x = input.unsqueeze(1) if alone else input.transpose(0, 1) if self.batch_first else input
        if not x.shape[0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        x, stacked = self._layers(x, self._states(hx, x.shape[1], x, alone))
        if alone:
            stacked, x = tuple(s.squeeze(1) for s in stacked), x.squeeze(1)
        elif self.batch_first:
            # PyTorch writes over the outputs' sizes where it runs step by step anyway.
            x = x.transpose(0, 1) if self.mode == "LSTM" else x.transpose_(0, 1)
        return x, stacked if len(stacked) > 1 else stacked[0]

    def _packed(self, input: PackedSequence, hx: Any) -> Any:
        """The same of sequences of unequal length, packed."""
        x, sizes, order, back = input
        rows = sizes.tolist()
        states = self._states(hx, rows[0], x, False)
        if order is not None and hx is not None:
            states = tuple(s.index_select(1, order) for s in states)
        x, stacked = self._layers(x, states, rows)
        if back is not None:
            stacked = tuple(s.index_select(1, back) for s in stacked)
        packed = PackedSequence(x, sizes, order, back)
        return packed, stacked if len(stacked) > 1 else stacked[0]

    def _layers(self, x: Any, states: State, sizes: list[int] | None = None) -> tuple[Any, State]:
        """(the outputs of the last layer, the last states). sizes: of the batch at each step, if packed."""
        ends, last = self._ends(), []
        if self._is_single(x, states, sizes):
            x = x.contiguous()
        else:
            states = tuple(s.unbind(0) for s in states)
        for layer in range(self.num_layers):
            outputs = []
            for k, end in enumerate(ends):
                place = layer * len(ends) + k
                output, state = self._run(
                    x, tuple(s[place] for s in states), f"_l{layer}{end}", k == 1, sizes
                )
                outputs.append(output)
                last.append(state)
            x = outputs[0] if len(outputs) == 1 else resolve("cat")(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = functional.dropout(x, self.dropout, self.training)
        return x, tuple(resolve("stack")(values) for values in zip(*last, strict=True))

    def _states(self, hx: Any, batch: int, x: Tensor, alone: bool) -> State:
        """The first states: (layers · directions, batch, size) each."""
        count = self.num_layers * len(self._ends())
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: _MODES[self.mode][1]]
        if hx is None:
            return tuple(x.new_zeros((count, batch, size)) for size in sizes)
        given = hx if isinstance(hx, tuple) else (hx,)
        given = tuple(h.unsqueeze(1) for h in given) if alone else given
        for h, size in zip(given, sizes, strict=True):
            wanted = (count, batch, size)
            if tuple(h.shape) != wanted:
                name = "hidden[0]" if len(sizes) > 1 else "hidden"
                raise RuntimeError(f"Expected {name} size {wanted}, got {list(h.shape)}")
        return given

    def _is_single(self, x: Tensor, states: State, sizes: list[int] | None) -> bool:
        """Whether a layer is one operation."""
        plain = self.mode == "LSTM" and not self.proj_size and sizes is None
        return plain and _is_single(x, *states)

    def _run(
        self, x: Tensor, first: State, end: str, backwards: bool, sizes: list[int] | None
    ) -> tuple[Any, State]:
        """One layer in one direction; a sequence that is over, or has not begun, keeps its state."""
        get = self._parameters.get
        w_hh, b_hh, w_hr = (get(f"{name}{end}") for name in ("weight_hh", "bias_hh", "weight_hr"))
        if self._is_single(x, first, sizes):
            w_ih, b_ih = get(f"weight_ih{end}"), get(f"bias_ih{end}")
            outputs, *last, _ = lstm_layer(x, w_ih, w_hh, b_ih, b_hh, *first, backwards)
            return outputs, tuple(last)
        gates = functional.linear(x, get(f"weight_ih{end}"), get(f"bias_ih{end}"))
        step, outputs = _MODES[self.mode][2], []
        steps = gates.unbind(0) if sizes is None else gates.split(sizes)
        over: list[State] = []
        state = first if sizes is None or not backwards else tuple(s[: sizes[-1]] for s in first)
        cat = resolve("cat")
        for gate in reversed(steps) if backwards else steps:
            rows, had = len(gate), len(state[0])
            if rows < had:
                over.append(tuple(s[rows:] for s in state))
                state = tuple(s[:rows] for s in state)
            elif rows > had:
                state = tuple(cat([s, new[had:rows]]) for s, new in zip(state, first, strict=True))
            state = step(gate, state, functional.linear(state[0], w_hh, b_hh))
            if w_hr is not None:
                state = (functional.linear(state[0], w_hr), *state[1:])
            outputs.append(state[0])
        if over:
            state = tuple(cat(parts) for parts in zip(state, *over[::-1], strict=True))
        join = cat if sizes is not None else resolve("stack")
        return join(outputs[::-1] if backwards else outputs), state

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        shown = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
            "bidirectional": False,
        }  # fmt: skip
        parts += [
            f"{n}={getattr(self, n)}" for n, usual in shown.items() if getattr(self, n) != usual
        ]
        return ", ".join(parts)


class RNN(RNNBase):
    """Elman's network: h' = tanh(W x + b + U h + c), or with relu."""

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if len(args) > 3:  # input_size, hidden_size, num_layers, nonlinearity
            nonlinearity, args = args[3], (*args[:3], *args[4:])
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """One step of a mode."""

    _mode = "RNN_TANH"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = _MODES[self._mode][0] * hidden_size
        self.weight_ih = parameter(gates, input_size, dtype=dtype)
        self.weight_hh = parameter(gates, hidden_size, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, parameter(gates, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _draw(self, self.hidden_size)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        if input.ndim not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 1D or 2D, got {input.ndim}D instead"
            )
        count, step = _MODES[self._mode][1:]
        if hx is None:
            hx = (input.new_zeros((*input.shape[:-1], self.hidden_size)),) * count
        state = hx if isinstance(hx, tuple) else (hx,)
        gates = functional.linear(input, self.weight_ih, self.bias_ih)
        found = step(gates, state, functional.linear(state[0], self.weight_hh, self.bias_hh))
        return found if count > 1 else found[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        text += "" if self.bias else f", bias={self.bias}"
        relu = self._mode == "RNN_RELU"
        return text + (", nonlinearity=relu" if relu else "")


class RNNCell(RNNCellBase):
    """A step of Elman's network."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        object.__setattr__(self, "_mode", f"RNN_{nonlinearity.upper()}")
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity


class LSTMCell(RNNCellBase):
    """A step of an LSTM: (h, c)."""

    _mode = "LSTM"


class GRUCell(RNNCellBase):
    """A step of a GRU."""

    _mode = "GRU"


CLASSES = {c.__name__: c for c in (RNN, LSTM, GRU, RNNCell, LSTMCell, GRUCell, RNNBase)}

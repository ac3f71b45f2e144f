"""What a node has saved tells of its slope: measured on this run, so that a finding can say it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gradcli.graphs import value_text
from gradcli.graphs.traversal import class_name

FLAT = 1e-3  # a slope below this share of the largest possible one
ENOUGH = 0.5  # of the largest possible slope: the activation is as steep as it gets


@dataclass(slots=True)
class Slope:
    """The slopes of an elementwise function where it was called.

    mean, most: of all elements. possible: the largest that the function has anywhere. words: what was
    measured.
    """

    mean: float
    most: float
    possible: float
    words: str

    @property
    def saturated(self) -> bool:
        """Tell whether the inputs lie where the function is flat."""
        return self.mean < ENOUGH / 10 * self.possible


def slope_of(node: Any, probe: Any) -> Slope | None:
    """The slopes of an activation, from what it saved; None for other nodes, or where that is gone."""
    name = class_name(node).partition("Backward")[0]
    if name not in _KINDS:
        return None
    fields = dict(probe.fields(node))
    field, possible, function = _KINDS[name]
    saved = fields.get(field)
    if not value_text.is_tensor(saved):
        return None
    import numpy as np

    array = np.asarray(value_text.as_array(saved))
    if not array.size or array.dtype.kind != "f" or not np.isfinite(array).all():
        return None
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes, words = function(array.astype(np.float64), fields)
    mean, most = float(slopes.mean()), float(slopes.max())
    return Slope(mean, most, possible, words(mean))


def _sigmoid(y: Any, fields: Any) -> Any:
    import numpy as np

    size = float(np.abs(np.log(y) - np.log1p(-y)).mean())
    return y * (1 - y), _bounded("sigmoid", 0.25, size)


def _tanh(y: Any, fields: Any) -> Any:
    import numpy as np

    return 1 - y * y, _bounded("tanh", 1, float(np.abs(np.arctanh(y)).mean()))


def _bounded(name: str, most: float, size: float) -> Any:
    def words(mean: float) -> str:
        large = f"mean |z| {value_text.number(size, 2)}" if math.isfinite(size) else "|z| above 17"
        return f"the slope of {name} is {value_text.number(mean, 2)} in the mean (at most {most}), {large}"

    return words


def _relu(y: Any, fields: Any) -> Any:
    positive = int((y > 0).sum())
    share = value_text.share(positive, y.size)
    return (y > 0).astype(float), lambda mean: f"{share} of the outputs of relu are positive"


def _clamp(x: Any, fields: Any) -> Any:
    import numpy as np

    low, high = (_bound(fields, *names) for names in (("min", "min_val"), ("max", "max_val")))
    inside = np.ones(x.shape, bool)
    if low is not None:
        inside &= x >= low
    if high is not None:
        inside &= x <= high
    share = value_text.share(int(inside.sum()), x.size)
    return inside.astype(float), lambda mean: f"{share} of the inputs lie inside of the bounds"


def _bound(fields: Any, *names: str) -> float | None:
    known = next((fields[name] for name in names if fields.get(name) is not None), None)
    return float(known) if isinstance(known, int | float) else None


# node -> (the field to read, the largest slope, from the saved array to slopes and words)
_KINDS: dict[str, tuple[str, float, Any]] = {
    "Sigmoid": ("result", 0.25, _sigmoid),
    "Tanh": ("result", 1.0, _tanh),
    "Relu": ("result", 1.0, _relu),
    "Clamp": ("self", 1.0, _clamp),
    "Hardtanh": ("self", 1.0, _clamp),
}

"""torch.distributions: Normal, Bernoulli, Categorical and Uniform, and the divergence of normal ones.

The formulas are PyTorch's, and so are the numbers that are drawn: they come from the same generator in the
same order.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli.engine.registry import torch_namespaces

__path__: list[str] = []  # of a package, as `torch.distributions.normal` names it; see `home`
torch: Any = torch_namespaces.torch
_NOT_BOTH = "Either `probs` or `logits` must be specified, but not both."
_POSITIVE = "GreaterThan(lower_bound=0.0)", lambda x: x > 0
_REAL = "Real()", lambda x: x == x
_REAL_VECTOR = "IndependentConstraint(Real(), 1)", lambda x: x == x
_UNIT = "Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: (x >= 0) & (x <= 1)
_SIMPLEX = "Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)
_PARAMETERS = ("loc", "scale", "low", "high", "probs", "logits")
_BOOLEAN = "Boolean()", lambda x: (x == 0) | (x == 1)


class Distribution:
    """Of a batch of independent draws, each of the shape `event_shape`."""

    has_rsample = False

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self.batch_shape, self.event_shape = torch.Size(batch_shape), torch.Size(event_shape)
        self._validates = validate_args is not False

    def _check(self, **parameters: tuple[Any, Any]) -> None:
        """Refuse parameters that are not what they should be, in PyTorch's words."""
        for name, (value, constraint) in parameters.items():
            of = f"of distribution {self!r} to satisfy the constraint {constraint[0]}"
            self._require(value, constraint, f"parameter {name}", of)

    def _check_sample(self, value: Any, support: Any) -> None:
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        of = f"to be within the support ({support[0]}) of the distribution {self!r}"
        self._require(value, support, "value argument", of)

    def _require(self, value: Any, constraint: Any, name: str, of: str) -> None:
        if self._validates and not bool(constraint[1](value.detach()).all()):
            shape = f"(Tensor of shape {tuple(value.shape)})"
            raise ValueError(f"Expected {name} {shape} {of}, but found invalid values:\n{value}")

    def _shape(self, sample_shape: Any) -> Any:
        return torch.Size((*sample_shape, *self.batch_shape, *self.event_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Numbers drawn, without a gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Numbers drawn as a function of the parameters, with a gradient."""
        raise NotImplementedError

    stddev = property(lambda self: self.variance.sqrt())

    def __repr__(self) -> str:
        held = {n: v for n, v in vars(self).items() if n in _PARAMETERS}
        told = (f"{n}: {v if v.numel() == 1 else v.size()}" for n, v in held.items())
        return f"{type(self).__name__}({', '.join(told)})"


def _broadcast(*values: Any) -> Any:
    """Parameters as tensors of one shape; the batch shape, which is () where all were numbers."""
    kinds = [v.dtype for v in values if isinstance(v, torch.Tensor)]
    kind = kinds[0] if kinds else torch.get_default_dtype()
    tensors = [v if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=kind) for v in values]
    return torch.broadcast_tensors(*tensors)


class Normal(Distribution):
    """The normal distribution of a mean and a standard deviation."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = _broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._check(loc=(self.loc, _REAL), scale=(self.scale, _POSITIVE))

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.pow(2))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """loc + noise * scale."""
        shape, kind = self._shape(sample_shape), self.loc.dtype
        noise = torch.normal(torch.zeros(shape, dtype=kind), torch.ones(shape, dtype=kind))
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._check_sample(value, _REAL)
        apart = ((value - self.loc) ** 2) / (2 * self.scale**2)
        return -apart - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Any:
        """The entropy in nats."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)


class Uniform(Distribution):
    """Numbers from `low` to `high`, which is excluded."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = _broadcast(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        less = f"LessThan(upper_bound={self.high})", lambda low: low < self.high
        self._check(low=(self.low, less))

    mean = property(lambda self: (self.high + self.low) / 2)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """low + share * (high - low)."""
        share = torch.rand(self._shape(sample_shape), dtype=self.low.dtype)
        return self.low + share * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        low, high = self.low, self.high
        bounds = f"Interval(lower_bound={low}, upper_bound={high})"
        self._check_sample(value, (bounds, lambda x: (x >= low) & (x <= high)))
        above, below = low.le(value).type_as(low), high.gt(value).type_as(low)
        return torch.log(above.mul(below)) - torch.log(high - low)

    def entropy(self) -> Any:
        """The entropy in nats."""
        return torch.log(self.high - self.low)


class _ByProbability(Distribution):
    """What is given by probabilities or by their scores: each is worked out of the other when asked for."""

    def __init__(self, probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(_NOT_BOTH)
        vars(self)["logits" if probs is None else "probs"] = logits if probs is None else probs

    @property
    def _given(self) -> Any:
        return vars(self).get("probs", vars(self).get("logits"))

    def __getattr__(self, name: str) -> Any:
        if name not in ("probs", "logits") or not vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = self._of(name, self._given)
        setattr(self, name, found)
        return found

    def _of(self, name: str, given: Any) -> Any:
        raise NotImplementedError


def _clamped(probs: Any) -> Any:
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


class Bernoulli(_ByProbability):
    """1 with a probability, or else 0."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = [None if one is None else _broadcast(one)[0] for one in (probs, logits)]
        super().__init__(*given)
        Distribution.__init__(self, self._given.shape, validate_args=validate_args)
        if probs is None:
            self._check(logits=(self.logits, _REAL))
        else:
            self._check(probs=(self.probs, _UNIT))

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _of(self, name: str, given: Any) -> Any:
        if name == "probs":
            return torch.sigmoid(given)
        inner = _clamped(given)
        return torch.log(inner) - torch.log1p(-inner)

    def sample(self, sample_shape: Any = ()) -> Any:
        """0 and 1, without a gradient."""
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._check_sample(value, _BOOLEAN)
        logits, value = torch.broadcast_tensors(self.logits, value)
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        return -loss(logits, value, reduction="none")

    def entropy(self) -> Any:
        """The entropy in nats."""
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        return loss(self.logits, self.probs, reduction="none")


class Categorical(_ByProbability):
    """One of several classes, by the probabilities along the last dimension."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits)
        if self._given.dim() < 1:
            name = "probs" if logits is None else "logits"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        Distribution.__init__(self, self._given.shape[:-1], validate_args=validate_args)
        if probs is None:
            self._check(logits=(logits, _REAL_VECTOR))
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
            self._check(probs=(self.probs, _SIMPLEX))
        self._num_events = int(self._given.shape[-1])

    def _of(self, name: str, given: Any) -> Any:
        return torch.softmax(given, dim=-1) if name == "probs" else torch.log(_clamped(given))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Numbers of classes."""
        rows = self.probs.detach().reshape(-1, self._num_events)
        count = math.prod(sample_shape)
        return torch.multinomial(rows, count, True).T.reshape(self._shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        last = self._num_events - 1
        name = f"IntegerInterval(lower_bound=0, upper_bound={last})"
        self._check_sample(value, (name, lambda x: (x % 1 == 0) & (x >= 0) & (x <= last)))
        value, logs = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        """The entropy in nats."""
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The Kullback-Leibler divergence of two normal distributions."""
    if not (isinstance(p, Normal) and isinstance(q, Normal)):
        kinds = f"p type {type(p).__name__} and q type {type(q).__name__}"
        own = "gradcli has that of two Normal"
        raise NotImplementedError(f"No KL(p || q) is implemented for {kinds}: {own}")
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "Uniform", "kl_divergence"]


def __getattr__(name: str) -> Any:
    said = torch_namespaces.absent(f"distributions.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{said}")

"""torch.optim.swa_utils: averages of a model's parameters over its steps (Izmailov et al. 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from gradcli.engine.core.modes import no_grad
from gradcli.engine.registry.table import resolve
from gradcli.torch.nn.modules.layers import _BatchNorm
from gradcli.torch.nn.modules.module import Module
from gradcli.torch.optim.lr_scheduler import LRScheduler, options


def _decay(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )
    return decay


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """`average, parameter, count -> decay * average + (1 - decay) * parameter`."""
    _decay(decay)

    @no_grad()
    def average(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return average


def get_swa_avg_fn() -> Callable[..., Any]:
    """`average, parameter, count ->` the mean of all."""

    @no_grad()
    def average(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return average


def _of_lists(weight: Callable[[Any], float]) -> Callable[..., None]:
    """Move every average of a list toward its parameter by a weight, which depends on the count."""

    @no_grad()
    def average(averages: list[Any], parameters: list[Any], num_averaged: Any) -> None:
        share = weight(num_averaged)
        for mean, now in zip(averages, parameters, strict=True):
            if mean.is_floating_point() or mean.is_complex():
                mean.lerp_(now, share)
            else:
                mean.copy_(mean * (1 - share) + now * share)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """As `get_ema_avg_fn`, of lists that are written over."""
    share = 1 - _decay(decay)
    return _of_lists(lambda count: share)


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """As `get_swa_avg_fn`, of lists that are written over."""
    return _of_lists(lambda count: float(1 / (count + 1)))


class AveragedModel(Module):
    """A copy of a model, whose parameters are averages of those that `update_parameters` is given.

    avg_fn: of (average, parameter, count of those before). multi_avg_fn: of lists, which it writes over.
    use_buffers: whether buffers are averaged as well; else they are copied.
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", resolve("tensor")(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take a model's parameters into the averages: the first as they are."""
        own, given = self._averaged(self.module), self._averaged(model)
        count = int(self.n_averaged)
        with no_grad():
            if count == 0:
                for mean, now in zip(own, given, strict=False):
                    mean.copy_(now)
            elif self.avg_fn is not None:
                for mean, now in zip(own, given, strict=True):
                    mean.copy_(self.avg_fn(mean, now, self.n_averaged))
            else:
                every = self.multi_avg_fn or get_swa_multi_avg_fn()
                by_dtype: dict[Any, list[int]] = {}
                for k, mean in enumerate(own):
                    by_dtype.setdefault(mean.dtype, []).append(k)
                for alike in by_dtype.values():
                    every([own[k] for k in alike], [given[k] for k in alike], self.n_averaged)
            if not self.use_buffers:
                for mean, now in zip(self.module.buffers(), model.buffers(), strict=True):
                    mean.copy_(now)
            self.n_averaged += 1

    def _averaged(self, model: Module) -> list[Any]:
        buffers = model.buffers() if self.use_buffers else ()
        return [t.detach() for t in chain(model.parameters(), buffers)]


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Set the statistics of batch norms to those of a loader's batches, of which inputs come first."""
    norms = [part for part in model.modules() if isinstance(part, _BatchNorm)]
    if not norms:
        return
    momenta, was_training = [part.momentum for part in norms], model.training
    model.train()
    for part in norms:
        part.reset_running_stats()
        part.momentum = None  # the plain average
    for batch in loader:
        model(batch[0] if isinstance(batch, list | tuple) else batch)
    for part, momentum in zip(norms, momenta, strict=True):
        part.momentum = momentum
    model.train(was_training)


@options("swa_lr, anneal_epochs=10, anneal_strategy='cos'")
class SWALR(LRScheduler):
    """From each group's rate to swa_lr in anneal_epochs steps, along half a cosine or a line."""

    def begin(self, last_epoch: int) -> None:
        rates, groups = self.__dict__.pop("swa_lr"), self.optimizer.param_groups
        if isinstance(rates, list | tuple):
            if len(rates) != len(groups):
                raise ValueError(
                    "swa_lr must have the same length as optimizer.param_groups: swa_lr has "
                    f"{len(rates)}, optimizer.param_groups has {len(groups)}"
                )
        else:
            rates = [rates] * len(groups)
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        if self.anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {self.anneal_strategy}"
            )
        if not isinstance(self.anneal_epochs, int) or self.anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0, got {self.anneal_epochs}"
            )
        super().begin(last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way is behind after a step."""
        way = max(0, min(1, step / max(1, self.anneal_epochs)))
        return way if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * way)) / 2

    def get_lr(self) -> list[float]:
        step = self._step_count - 1
        step = max(1, step) if self.anneal_epochs == 0 else step
        before, now = self._share(step - 1), self._share(step)
        found = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            first = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            found.append(end * now + first * (1 - now))
        return found


__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

"""torch.optim.lr_scheduler: learning rates by the number of steps, or by what does not get better."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from gradcli.engine.core.modes import users_level
from gradcli.torch.nn.modules.arguments import constructed
from gradcli.torch.optim.optimizer import Group, Optimizer


def options(text: str) -> Callable[[type], Any]:
    """Give a class of schedulers its constructor: the optimizer, the arguments of a text, the last step."""

    def begin(self: Any, given: dict[str, Any]) -> None:
        last_epoch = given.pop("last_epoch")
        self.__dict__.update(given)
        self.begin(last_epoch)

    return constructed(f"optimizer, {text}, last_epoch=-1", begin)


_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
    "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to "
    "do this will result in PyTorch skipping the first value of the learning rate schedule. See more "
    "details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


class LRScheduler:
    """Sets the learning rate of every group at each `step`; a subclass says to what (`get_lr`)."""

    optimizer: Optimizer
    by_last_rate = (
        False  # whether a rate is found from the one before, and is one of the first rates, too
    )
    _unsaved: tuple[str, ...] = (
        "optimizer",
    )  # what a state dict has not: a file keeps no functions
    _step_count = 0
    _get_lr_called_within_step = False
    if TYPE_CHECKING:  # `options` keeps the arguments

        def __getattr__(self, name: str) -> Any: ...

    def begin(self, last_epoch: int) -> None:
        """Remember the first rates and take the first step."""
        for group in self.optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in self.optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = self._get_lr_called_within_step = False

    def get_lr(self) -> list[float]:
        """The learning rates now, one a group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The learning rates that the last step set."""
        return self._last_lr

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Count one step and set the learning rates; epoch: that of this step, from the first rates."""
        if self._step_count == 1 and not self.optimizer.has_stepped:
            warnings.warn(_TOO_EARLY, stacklevel=users_level())
        self._step_count += 1
        if epoch is None or not self.by_last_rate:
            self._set(self.last_epoch + 1 if epoch is None else epoch)
            return
        # What another scheduler has made of the rates is forgotten: a warm-up ends at 0.97, say.
        for group, rate in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = rate
        for k in range(epoch + 1):
            self._set(k)

    def _first(self) -> None:
        """Take the first step once more, after other schedulers have changed the rates."""
        self._is_initial = True
        self._set(self.last_epoch + 1)
        self._is_initial = False

    def _set(self, last_epoch: int) -> None:
        self.last_epoch = last_epoch
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """All that the scheduler knows, but the optimizer and functions, which a file cannot keep."""
        return {key: value for key, value in self.__dict__.items() if key not in self._unsaved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)


_LRScheduler = LRScheduler  # its older name


@options("lr_lambda")
class LambdaLR(LRScheduler):
    """The first rate times a function of the number of steps."""

    _unsaved = ("optimizer", "lr_lambda", "lr_lambdas")

    def state_dict(self) -> dict[str, Any]:
        """What the scheduler knows; of its functions None, or what an object that is called knows."""
        kept = [dict(vars(f)) if not _is_function(f) else None for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; the functions stay."""
        kept = state_dict.get("lr_lambdas", [])
        for function, known in zip(self.lr_lambdas, kept, strict=False):
            if known is not None:
                vars(function).update(known)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})

    def begin(self, last_epoch: int) -> None:
        count, given = len(self.optimizer.param_groups), self.lr_lambda
        self.lr_lambdas = list(given) if isinstance(given, list | tuple) else [given] * count
        super().begin(last_epoch)

    def get_lr(self) -> list[float]:
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base * function(self.last_epoch) for function, base in pairs]


class MultiplicativeLR(LambdaLR):
    """The rate times a function of the number of steps."""

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates()
        pairs = zip(self.lr_lambdas, self._rates(), strict=True)
        return [rate * function(self.last_epoch) for function, rate in pairs]


class _Scaled(LRScheduler):
    """The rate times a factor that the number of steps decides."""

    by_last_rate = True

    def _factor(self) -> Any:
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        return [rate * self._factor() for rate in self._rates()]


@options("step_size, gamma=0.1")
class StepLR(_Scaled):
    """Times gamma every step_size steps."""

    def _factor(self) -> Any:
        return 1 if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma


@options("milestones, gamma=0.1")
class MultiStepLR(_Scaled):
    """Times gamma at each milestone."""

    def _factor(self) -> Any:
        return self.gamma ** list(self.milestones).count(self.last_epoch)


@options("gamma")
class ExponentialLR(_Scaled):
    """Times gamma at each step."""

    def _factor(self) -> Any:
        return 1 if self.last_epoch == 0 else self.gamma


@options("factor=1/3, total_iters=5")
class ConstantLR(_Scaled):
    """Times a factor for the first total_iters steps."""

    def _factor(self) -> Any:
        ends = self.last_epoch == self.total_iters
        return self.factor if self.last_epoch == 0 else 1.0 / self.factor if ends else 1


@options("start_factor=1/3, end_factor=1.0, total_iters=5")
class LinearLR(_Scaled):
    """Times a factor that grows linearly from start_factor to end_factor."""

    def _factor(self) -> Any:
        if self.last_epoch == 0:
            return self.start_factor
        if self.last_epoch > self.total_iters:
            return 1
        change = self.end_factor - self.start_factor
        return 1.0 + change / (
            self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        )


@options("total_iters=5, power=1.0")
class PolynomialLR(_Scaled):
    """Down to 0 by a power of what is left of total_iters."""

    def _factor(self) -> Any:
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return 1
        now, before = (1.0 - k / self.total_iters for k in (self.last_epoch, self.last_epoch - 1))
        return float((now / before) ** self.power)


@options("T_max, eta_min=0.0")
class CosineAnnealingLR(LRScheduler):
    """Loshchilov and Hutter (2016): half a cosine from the rate to eta_min in T_max steps."""

    by_last_rate = True

    def get_lr(self) -> list[float]:
        k, low, rates = self.last_epoch, self.eta_min, self._rates()
        if k == 0:
            return rates
        if (k - 1 - self.T_max) % (2 * self.T_max) == 0:
            turn = (1 - math.cos(math.pi / self.T_max)) / 2
            return [r + (b - low) * turn for r, b in zip(rates, self.base_lrs, strict=True)]
        now, before = (1 + math.cos(math.pi * n / self.T_max) for n in (k, k - 1))
        return [now / before * (r - low) + low for r in rates]


@options("T_0, T_mult=1, eta_min=0.0")
class CosineAnnealingWarmRestarts(LRScheduler):
    """Loshchilov and Hutter (2016): such cosines again and again, each T_mult times as long."""

    def begin(self, last_epoch: int) -> None:
        self.T_i, self.T_cur = self.T_0, last_epoch
        super().begin(last_epoch)

    def step(self, epoch: Any = None) -> None:
        self.T_cur = self.T_cur + 1 if epoch is None else epoch
        if self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self._set(self.last_epoch + 1 if epoch is None else epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


def _is_function(value: Any) -> bool:
    return isinstance(value, FunctionType)


def _set_momentum(group: Group, value: float) -> None:
    """A group's momentum, which of Adam's kind is the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


@options(
    "max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, "
    "anneal_strategy='cos', cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, "
    "div_factor=25.0, final_div_factor=1e4"
)
class OneCycleLR(LRScheduler):
    """Smith and Topin (2017): up to max_lr, then down to far below the first rate, both by cosines."""

    total_steps: Any

    def begin(self, last_epoch: int) -> None:
        if self.total_steps is None:
            self.total_steps = (self.epochs or 0) * (self.steps_per_epoch or 0)
        if self.total_steps <= 0:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        self.first_lr, self.top = (
            self.max_lr / self.div_factor,
            self.pct_start * self.total_steps - 1,
        )
        self.least_lr = self.first_lr / self.final_div_factor
        self.momenta = self.base_momentum, self.max_momentum
        groups = self.optimizer.param_groups
        self.cycled = self.cycle_momentum and ("betas" in groups[0] or "momentum" in groups[0])
        for group in groups:
            group["initial_lr"] = self.first_lr
        super().begin(last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))

    def get_lr(self) -> list[float]:
        k = self.last_epoch
        if k > self.total_steps:
            raise ValueError(
                f"Tried to step {k} times. The specified number of total steps is {self.total_steps}"
            )
        up = k <= self.top
        share = k / self.top if up else (k - self.top) / (self.total_steps - 1 - self.top)
        ends = (self.first_lr, self.max_lr) if up else (self.max_lr, self.least_lr)
        if self.cycled:
            low, high = self.momenta
            momentum = self._between(*((high, low) if up else (low, high)), share)
            for group in self.optimizer.param_groups:
                _set_momentum(group, momentum)
        return [self._between(*ends, share)] * len(self.base_lrs)


@options(
    "base_lr, max_lr, step_size_up=2000, step_size_down=None, mode='triangular', gamma=1.0, "
    "scale_fn=None, scale_mode='cycle', cycle_momentum=True, base_momentum=0.8, max_momentum=0.9"
)
class CyclicLR(LRScheduler):
    """Smith (2017): up and down between two rates in lines; each top half as high, or gamma**step."""

    _unsaved = ("optimizer", "scale_fn")

    scale_fn: Any
    mode: str

    def begin(self, last_epoch: int) -> None:
        groups = self.optimizer.param_groups
        self.whole = self.step_size_up + (self.step_size_down or self.step_size_up)
        self.rising = self.step_size_up / self.whole
        tops = {
            "triangular": lambda cycle: 1.0,
            "triangular2": lambda cycle: 1 / 2.0 ** (cycle - 1),
            "exp_range": lambda step: self.gamma**step,
        }
        if self.scale_fn is None:
            if self.mode not in tops:
                raise ValueError("mode is invalid and scale_fn is None")
            self.scale_fn = tops[self.mode]
            self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"
        if self.cycle_momentum and not {"betas", "momentum"} & groups[0].keys():
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        for group, low in zip(groups, self._each(self.base_lr), strict=True):
            group["lr"] = group["initial_lr"] = low
        super().begin(last_epoch)

    def _each(self, value: Any) -> list[float]:
        count = len(self.optimizer.param_groups)
        return list(value) if isinstance(value, list | tuple) else [value] * count

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.whole)
        place = 1 + self.last_epoch / self.whole - cycle
        share = place / self.rising if place <= self.rising else (place - 1) / (self.rising - 1)
        share *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups,
                self._each(self.base_momentum),
                self._each(self.max_momentum),
                strict=True,
            ):
                _set_momentum(group, high - (high - low) * share)
        return [
            low + (high - low) * share
            for low, high in zip(self.base_lrs, self._each(self.max_lr), strict=True)
        ]


class _Several(LRScheduler):
    """A scheduler made of others, whose states it keeps."""

    _schedulers: Sequence[LRScheduler]
    _unsaved = ("optimizer", "_schedulers")

    def state_dict(self) -> dict[str, Any]:
        """What the scheduler knows, and the states of its schedulers."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        for scheduler, known in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(known)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})


class SequentialLR(_Several):
    """One scheduler after the other; milestones are the steps at which the next begins."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer, self._schedulers, self._milestones = optimizer, schedulers, milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0]._first()
        self._last_lr = schedulers[0].get_last_lr()

    def _first(self) -> None:
        self.step()

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        starts = place > 0 and self._milestones[place - 1] == self.last_epoch
        self._schedulers[place].step(0 if starts else None)
        self._last_lr = self._schedulers[place].get_last_lr()


class ChainedScheduler(_Several):
    """Several schedulers at each step, one after the other."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no scheduler."
            )
        self._schedulers, self.optimizer = schedulers, optimizer or schedulers[0].optimizer
        self._last_lr = self._rates()

    def _first(self) -> None:
        self.step()

    def step(self, epoch: int | None = None) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()


class ReduceLROnPlateau:
    """Times a factor where a number has not become better for more than `patience` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps, self.last_epoch = min_lr, eps, 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            return sign * value > sign * self.best * (1 + sign * self.threshold)
        return sign * value > sign * (self.best + sign * self.threshold)

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Take the number of this step."""
        value = float(metrics)
        self.last_epoch += 1
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                new = max(group["lr"] * self.factor, self.min_lr)
                group["lr"] = new if group["lr"] - new > self.eps else group["lr"]
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    _unsaved = ("optimizer",)
    get_last_lr = LRScheduler.get_last_lr
    state_dict = LRScheduler.state_dict
    load_state_dict = LRScheduler.load_state_dict

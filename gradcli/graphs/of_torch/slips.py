"""What a program does that PyTorch allows and that is hardly ever meant: gradients clipped and dropout at
the wrong time, a loss of numbers of the wrong kind, parameters that are frozen."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any

from gradcli.graphs.of_torch.torch_tensors import is_dense, is_torch_tensor

Where = tuple[str | None, int]
Look = Callable[..., None]
DROPS = "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split()
CLIPS = "clip_grad_norm_ clip_grad_value_".split()
MOST_LOOKED_AT = 4  # calls of a line whose numbers are looked at
ROUNDED = 1e-3  # a logarithm of a probability so far above 0 is rounded


@dataclass(slots=True)
class Clip:
    """The calls of a line that clips gradients."""

    name: str
    limit: float
    right: int = 0  # of gradients that no step has used
    used: int = 0  # of those that the last step has used
    empty: int = 0  # where there are none
    norm: float = 0.0  # the largest of those that a step has used


class Slips:
    """Facts of such calls, by the line of the program."""

    def __init__(
        self,
        torch: Any,
        where: Callable[[FrameType | None], Where],
        failed: Callable[[Exception], None],
        unwatched: Callable[[], Any],
    ) -> None:
        self._torch, self._where = torch, where
        self._failed, self._unwatched = failed, unwatched
        self.frozen: dict[int, Where] = {}  # by id: requires_grad was set to False
        self.thawed: dict[int, Where] = {}  # and to True again
        self.clips: dict[Where, Clip] = {}
        self.drops: dict[Where, tuple[str, int]] = {}  # in eval mode: the function, how often
        self.no_logarithms: dict[Where, float] = {}  # the largest
        self.early_schedule: Where | None = None  # a schedule's step before the optimizer's first
        self.is_judging = False  # a whole model in eval mode runs
        self._used: dict[int, tuple[int, int]] = {}  # what a step has used, by id of a parameter
        self._looked: dict[Where, int] = {}

    def hooks(self) -> list[Callable[[], None]]:
        """Hear of clips; what ends that."""
        name = f"{self._torch.__name__}.nn.utils"
        homes = [import_module(name), sys.modules.get(f"{name}.clip_grad")]
        return [
            around(home, one, functools.partial(self._clips, one))
            for home in filter(None, homes)
            for one in CLIPS
        ]

    def functions(self) -> dict[str, Look]:
        """What is to be told of a call of these functions of `nn.functional`, before it runs."""
        found: dict[str, Look] = {name: functools.partial(self._drops, name) for name in DROPS}
        return found | {"scaled_dot_product_attention": self._attends, "kl_div": self._compares}

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Inside, nobody hears what is asked, and an error is ours: the program goes on."""
        try:
            with self._unwatched():
                yield
        except Exception as error:  # of ours
            self._failed(error)

    # -- gradients ---------------------------------------------------------------------------------
    def freezes(self, tensor: Any, value: Any, frame: FrameType | None) -> None:
        """`requires_grad` of a tensor is set."""
        if value is False and tensor.is_leaf:
            self.frozen[id(tensor)] = self._where(frame)
        elif self.frozen.pop(id(tensor), None) is not None:
            self.thawed[id(tensor)] = self._where(frame)

    def warned(self, told: str, where: Where) -> None:
        """PyTorch warns of a line."""
        if told.startswith("Detected call of `lr_scheduler.step()` before `optimizer.step()`"):
            self.early_schedule = where

    def stepped(self, parameters: Iterable[Any]) -> None:
        """An optimizer has made a step: it has used these gradients."""
        for p in parameters:
            if p.grad is not None:
                self._used[id(p)] = _state(p.grad)

    def _clips(
        self, name: str, call: Any, frame: FrameType, parameters: Any, *args: Any, **kwargs: Any
    ) -> Any:
        every = [parameters] if is_torch_tensor(parameters) else list(parameters)
        one, kind = None, ""
        with self._looking():
            limit = next(iter((*args, *(kwargs[k] for k in kwargs if k in _LIMITS))))
            one = self.clips.setdefault(self._where(frame), Clip(name, float(limit)))
            kind = self._kind(every)
            setattr(one, kind, getattr(one, kind) + 1)
        found = call(every or parameters, *args, **kwargs)
        if one is not None and kind == "used" and found is not None:
            with self._looking():
                one.norm = max(one.norm, float(found))
        return found

    def _kind(self, parameters: list[Any]) -> str:
        """Whether gradients are there, and whether a step has used all of them as they are."""
        grads = {id(p): p.grad for p in parameters if p.grad is not None}
        if not any(not is_dense(g) or bool(g.detach().any()) for g in grads.values()):
            return "empty"
        used = all(self._used.get(key) == _state(g) for key, g in grads.items())
        return "used" if used else "right"

    # -- layers and losses -------------------------------------------------------------------------
    def _drops(self, name: str, frame: FrameType | None, *args: Any, **kwargs: Any) -> None:
        with self._looking():
            given = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
            if self.is_judging and given.get("training", True) and given.get("p", 0.5) > 0:
                self._dropped(name, frame)

    def _attends(self, frame: FrameType | None, *args: Any, **kwargs: Any) -> None:
        with self._looking():
            share = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
            if self.is_judging and share > 0:
                self._dropped("scaled_dot_product_attention", frame)

    def _dropped(self, name: str, frame: FrameType | None) -> None:
        where = self._where(frame)
        self.drops[where] = name, self.drops.get(where, (name, 0))[1] + 1

    def _compares(self, frame: FrameType | None, *args: Any, **kwargs: Any) -> None:
        with self._looking():
            where, given = self._where(frame), args[0] if args else kwargs["input"]
            looked = self._looked[where] = self._looked.get(where, 0) + 1
            if looked <= MOST_LOOKED_AT and given.numel():
                high = float(given.detach().max())
                if high > ROUNDED:
                    self.no_logarithms[where] = max(high, self.no_logarithms.get(where, high))


_LIMITS = ("max_norm", "clip_value")


def _state(grad: Any) -> tuple[int, int]:
    return id(grad), int(grad._version)


def around(module: Any, name: str, look: Callable[..., Any]) -> Callable[[], None]:
    """Have `look(function, frame, arguments…)` called in the place of a module's function; what ends that."""
    former = getattr(module, name)

    @functools.wraps(former)
    def instead(*args: Any, **kwargs: Any) -> Any:
        return look(former, sys._getframe(1), *args, **kwargs)

    setattr(module, name, instead)
    return lambda: setattr(module, name, former)


__all__ = ["Clip", "Slips", "around"]

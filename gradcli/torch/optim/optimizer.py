"""torch.optim.Optimizer: groups of parameters, what is remembered of each, and the state of both."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import numpy as np

from gradcli.engine.core.hooks import Hooks, RemovableHandle, add
from gradcli.engine.core.modes import enable_grad, no_grad
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.views import bump
from gradcli.engine.registry.table import resolve
from gradcli.torch.nn.modules.arguments import constructed
from gradcli.torch.nn.modules.module import zero_grads
from gradcli.torch.optim.blocks import (
    Recorded,
    are_apart,
    are_bare,
    blocks,
    gathered,
    is_small,
    numbers_of,
)

Group = dict[str, Any]
State = dict[str, Any]


# Hooks of all optimizers, as PyTorch's register_optimizer_step_pre_hook keeps them.
_pre_hooks: Hooks = {}
_post_hooks: Hooks = {}

# What a message calls an option, and the options that may not be negative.
_WORDS = {"lr": "learning rate", "eps": "epsilon value", "weight_decay": "weight_decay value"}
_NOT_NEGATIVE = ("lr", "eps", "momentum", "weight_decay", "lr_decay", "alpha", "rho")


def options(text: str, first: str = "") -> Callable[[type], Any]:
    """Give a class of optimizers its constructor: the parameters, then the options of a text.

    first: the options that come first in groups, where their order there is not that of the text.
    """

    def begin(self: Any, given: Group) -> None:
        params = given.pop("params")
        Optimizer.__init__(self, params, {name: given[name] for name in first.split()} | given)

    return constructed(f"params, {text}", begin)


class Optimizer:
    """Steps the parameters of its groups by a rule. defaults: the options of groups that say none.

    by_elements: whether the rule moves each element by itself, with methods that blocks have.
    """

    by_elements = False
    has_stepped = False  # which schedulers ask

    def __init__(self, params: Iterable[Any], defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but "
                f"got {params.type()}"
            )
        kind = type(self)
        if not hasattr(kind.step, "hooked"):
            kind.step = _hooked(kind.step)  # type: ignore[method-assign]
        self._optimizer_step_pre_hooks: Hooks = {}
        self._optimizer_step_post_hooks: Hooks = {}
        self.defaults = defaults
        self.check()
        self.state: dict[Any, Any] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._recorded = Recorded()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def check(self) -> None:
        """Refuse options out of their range."""
        for name in _NOT_NEGATIVE:
            value = self.defaults.get(name, 0)
            if value < 0:
                raise ValueError(f"Invalid {_WORDS.get(name, f'{name} value')}: {value}")
        for k, beta in enumerate(self.defaults.get("betas", ())):
            if not 0 <= beta < 1:
                raise ValueError(f"Invalid beta parameter at index {k}: {beta}")

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        params = [given] if isinstance(given, Tensor) else list(given)
        if params and isinstance(params[0], tuple):  # named_parameters()
            param_group["param_names"] = [name for name, _ in params]
            params = [value for _, value in params]
        for value in params:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {_said(value)}"
                )
            if not (self.defaults.get("differentiable") or value.is_leaf):
                raise ValueError("can't optimize a non-leaf Tensor")
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(value) in seen for value in params):
            raise ValueError("some parameters appear in more than one parameter group")
        param_group = {**self.defaults, **param_group, "params": params}
        self.param_groups.append(param_group)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; a pair that it returns replaces these.

        As in PyTorch, the optimizer is the first of args, too.
        """
        return add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return add(self._optimizer_step_post_hooks, hook)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        for group in self.param_groups:
            zero_grads(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient; returns what the closure returns, which runs first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad(), np.errstate(all="ignore"):
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: Group) -> None:
        """Move the parameters of a group: together where their memory allows it."""
        options = numbers_of(group) if self.by_elements else None
        names, maximize = self._remembered(group), group.get("maximize")

        def update(row: list[Any], step: int) -> None:
            p, g, *rest = row
            kept = dict(zip(names, rest, strict=True))
            self._update(p, g.neg() if maximize else g, kept, group, step)

        rows: dict[tuple[int, Any], list[list[Any]]] = {}
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            state = self.state[parameter]
            step = self._begin(parameter, state, group)
            row = [parameter, grad, *[state[name] for name in names]]
            if options is not None and type(parameter.array) is np.ndarray:
                rows.setdefault((step, parameter.array.dtype.char), []).append(row)
            else:
                self._update(parameter, grad.neg() if maximize else grad, state, group, step)
        for (step, char), many in rows.items():
            loop = functools.partial(self._recorded.move, (step, *(options or ())), char)
            move = functools.partial(update, step=step)
            if not loop(move, many):
                _step_rows(loop, move, many)

    def _begin(self, parameter: Any, state: State, group: Group) -> int:
        """Count a step in what is remembered of a parameter, and fill that at the first; the number of it."""
        if "step" not in state:
            state["step"] = resolve("tensor")(0.0)
        for name in self._remembered(group):
            if name not in state:
                state[name] = resolve("zeros_like")(parameter)
        count = state["step"]
        count.array = count.array + 1
        bump(count)
        return int(count.array)

    def _remembered(self, group: Group) -> tuple[str, ...]:
        """The names of what is remembered of a parameter: tensors of its shape, of zeros at first."""
        return ()

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        """Move one parameter at the step of a number, from 1; a subclass says how."""
        raise NotImplementedError

    # -- state -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Options and what is remembered, by the numbers of the parameters."""
        numbers = {
            id(p): k for k, p in enumerate(p for g in self.param_groups for p in g["params"])
        }
        groups = [
            {
                **{k: v for k, v in g.items() if k != "params"},
                "params": [numbers[id(p)] for p in g["params"]],
            }
            for g in self.param_groups
        ]
        return {"state": {numbers[id(p)]: s for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, for as many parameters in as many groups."""
        given = deepcopy(state_dict)
        groups, saved = self.param_groups, given["param_groups"]
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        own = {
            number: parameter
            for group, one in zip(groups, saved, strict=True)
            for number, parameter in zip(one["params"], group["params"], strict=True)
        }
        self.state = defaultdict(dict, {own[k]: v for k, v in given["state"].items()})
        for group, one in zip(groups, saved, strict=True):
            group.update({k: v for k, v in one.items() if k != "params"})

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {k}"] if k else [f"Parameter Group {k}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _step_rows(
    loop: Callable[..., bool], update: Callable[[list[Any]], None], rows: list[list[Any]]
) -> None:
    """Move parameters that no one loop takes: those that are not bare one by one.

    Of the others those that are small share blocks.
    """
    bare = []
    for row in rows:
        if are_bare(row):
            bare.append(row)
        else:
            update(row)
    if len(bare) < len(rows) and bare and loop(update, bare):
        return
    small = [row for row in bare if is_small(row[0])]
    if not are_apart([row[0] for row in bare]):
        small = []  # one after the other, as what was written first is read again
    for row in bare:
        if not (small and is_small(row[0])):
            for some in blocks(row):
                update(some)
    for some in gathered(small) if small else ():
        update(some)


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A class's `step` with what is to be called before and after it: once a class, as in PyTorch."""

    @functools.wraps(step)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        for hook in [*_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
            found = hook(self, args, kwargs)
            if found is None:
                continue
            if not (isinstance(found, tuple) and len(found) == 2):
                raise RuntimeError(
                    f"{step} must return None or a tuple of (new_args, new_kwargs), but got {found}."
                )
            args, kwargs = found
        self.has_stepped = True
        result = step(*args, **kwargs)
        for hook in [*self._optimizer_step_post_hooks.values(), *_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return add(_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return add(_post_hooks, hook)


def _said(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"

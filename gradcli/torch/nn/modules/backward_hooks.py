"""Backward hooks of modules: called with the gradients of a module's inputs and outputs, once both are known.

A function that returns its arguments stands before and behind the module. Its node before the module runs
when the gradients of all inputs have arrived, the one behind it when those of the outputs have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from gradcli.engine.core.custom_function import Function
from gradcli.engine.core.modes import is_grad_enabled, users_level
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve

_NO_INPUTS = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no "
    "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
    "#torch.nn.Module.register_full_backward_hook for more details."
)
_KIND = (
    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
    "received {}"
)
_ALONE = (
    "Backward hook for Modules where no input requires gradient should always return None or None for "
    "all gradients."
)


class BackwardHookFunction(Function):
    """Returns its arguments; its node is there for hooks."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        """The arguments."""
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Their gradients."""
        return grads


class Call:
    """One call of a module with backward hooks: `before` takes the arguments, `after` the result.

    hooks, pre_hooks: those of the module, `hook(module, grad_input, grad_output)` and
    `hook(module, grad_output)`.
    """

    def __init__(self, module: Any, hooks: Iterable[Any], pre_hooks: Iterable[Any]) -> None:
        self.module, self.hooks, self.pre_hooks = module, list(hooks), list(pre_hooks)
        self._inputs: tuple[int, list[int]] | None = None  # how many, and which are tensors
        self._count = 0
        self._came: tuple[Any, ...] | None = None  # the gradients of the outputs

    def before(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments that `forward` is called with."""
        self._count = len(args)
        self._constant = [
            (i, one.shape, one.dtype)
            for i, one in enumerate(args)
            if isinstance(one, Tensor) and not one.requires_grad
        ]
        found, at = _through(args, self._inputs_done)
        self._inputs = None if at is None else (len(args), at)
        return found

    def after(self, result: Any) -> Any:
        """The result that the module returns."""
        whole = result if isinstance(result, tuple) else (result,)
        if not isinstance(result, tuple | Tensor):
            warnings.warn(_KIND.format(type(result)), stacklevel=users_level())
            return result
        outputs: list[int] = []

        def came(_: Any, grads: tuple[Any, ...]) -> Any:
            return self._outputs_came(grads, outputs, len(whole))

        found, at = _through(whole, came)
        outputs += at or []
        return found if isinstance(result, tuple) else found[0]

    def _outputs_came(self, grads: tuple[Any, ...], at: list[int], count: int) -> Any:
        came = _spread(at, grads, count)
        for hook in self.pre_hooks:
            given = _several(hook(self.module, came))
            if given is None:
                continue
            if len(given) != count:
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, got "
                    f"{len(given)}, but expected {count}"
                )
            came = given
        if self._inputs is None:  # nobody waits for the gradients of inputs
            warnings.warn(_NO_INPUTS, stacklevel=users_level())
            for hook in self.hooks:
                given = hook(self.module, (None,) * self._count, came)
                if given is not None and not all(one is None for one in _several(given) or ()):
                    raise RuntimeError(_ALONE)
        else:
            self._came = came
        return tuple(came[i] for i in at)

    def _inputs_done(self, grads: tuple[Any, ...], _: Any) -> Any:
        if self._came is None or self._inputs is None:
            return None  # a gradient that has not come through the module's outputs
        count, at = self._inputs
        whole = list(_spread(at, grads, count))
        for i, shape, dtype in self._constant:  # as PyTorch has it: zeros, which nobody gets
            whole[i] = resolve("zeros")(shape, dtype=dtype)
        found = tuple(whole)
        for hook in self.hooks:
            given = hook(self.module, found, self._came)
            if given is None:
                continue
            if len(given) != count:
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(given)}, but "
                    f"expected {count}"
                )
            found = given
        self._came = None
        unused = {i for i, _, _ in self._constant}
        return tuple(None if i in unused else found[i] for i in at)


def _several(given: Any) -> Any:
    """What a hook returned, as a tuple: PyTorch takes a tensor alone, too."""
    return (given,) if isinstance(given, Tensor) else given


def _spread(at: list[int], grads: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Gradients at the places of the tensors, None for what is no tensor."""
    found: list[Any] = [None] * count
    for place, grad in zip(at, grads, strict=True):
        found[place] = grad
    return tuple(found)


def _through(
    values: tuple[Any, ...], hook: Callable[[tuple[Any, ...], Any], Any]
) -> tuple[tuple[Any, ...], list[int] | None]:
    """The values, the tensors among them behind a node that calls the hook; where these stand.

    None where nothing is recorded.
    """
    at = [i for i, one in enumerate(values) if isinstance(one, Tensor)]
    if not (is_grad_enabled() and any(values[i].requires_grad for i in at)):
        return values, None
    made = BackwardHookFunction.apply(*[values[i] for i in at])
    made = made if isinstance(made, tuple) else (made,)
    node = next(t.grad_fn for t in made if t.grad_fn is not None)
    node.register_hook(hook)
    found = list(values)
    for i, one in zip(at, made, strict=True):
        found[i] = one
    return tuple(found), at

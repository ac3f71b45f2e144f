"""The rules of optimizers, each with the operations of PyTorch's own in the same order, for the same bits."""

from __future__ import annotations

from typing import Any

from gradcli.engine.registry.table import resolve
from gradcli.torch.optim.optimizer import Group, Optimizer, options

State = dict[str, Any]


def _zeros(parameter: Any) -> Any:
    return resolve("zeros_like")(parameter)


def _counted(state: State) -> int:
    """The number of this step, which the state keeps as a tensor."""
    state["step"] = state.get("step", resolve("tensor")(0.0)) + 1
    return int(state["step"])


def _decayed(grad: Any, parameter: Any, group: Group) -> Any:
    decay = group["weight_decay"]
    return grad.add(parameter, alpha=decay) if decay else grad


@options(
    "lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, "
    "foreach=None, differentiable=False, fused=None"
)
class SGD(Optimizer):
    """Gradient descent, with momentum (Polyak's, or Nesterov's) where it is asked for."""

    def check(self) -> None:
        super().check()
        if self.defaults["nesterov"] and (
            self.defaults["momentum"] <= 0 or self.defaults["dampening"]
        ):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        grad = _decayed(grad, parameter, group)
        momentum = group["momentum"]
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        parameter.add_(grad, alpha=-group["lr"])


@options(
    "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, "
    "maximize=False, foreach=None, capturable=False, differentiable=False, fused=None, "
    "decoupled_weight_decay=False"
)
class Adam(Optimizer):
    """Kingma and Ba (2014): steps by the mean of gradients over the root of the mean of their squares."""

    def _update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        (beta1, beta2), lr = group["betas"], group["lr"]
        step = _counted(state)
        if step == 1:
            state["exp_avg"], state["exp_avg_sq"] = _zeros(parameter), _zeros(parameter)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = _zeros(parameter)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if group["decoupled_weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        else:
            grad = _decayed(grad, parameter, group)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"] = resolve("maximum")(state["max_exp_avg_sq"], square)
        below = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
        parameter.addcdiv_(mean, below, value=-(lr / (1 - beta1**step)))


@options(
    "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, "
    "maximize=False, foreach=None, capturable=False, differentiable=False, fused=None, "
    "decoupled_weight_decay=True"
)
class AdamW(Adam):
    """Loshchilov and Hutter (2017): Adam, whose weights decay beside the gradients."""


@options(
    "lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False, "
    "differentiable=False, capturable=False"
)
class Adamax(Optimizer):
    """Kingma and Ba (2014): Adam by the largest of the gradients."""

    def _update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        beta1, beta2 = group["betas"]
        step = _counted(state)
        if step == 1:
            state["exp_avg"], state["exp_inf"] = _zeros(parameter), _zeros(parameter)
        grad = _decayed(grad, parameter, group)
        state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = state["exp_inf"]
        largest.copy_(resolve("maximum")(largest.mul_(beta2), grad.abs().add_(group["eps"])))
        parameter.addcdiv_(state["exp_avg"], largest, value=-(group["lr"] / (1 - beta1**step)))


@options(
    "lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, "
    "capturable=False, foreach=None, maximize=False, differentiable=False",
    first="lr momentum alpha eps centered",
)
class RMSprop(Optimizer):
    """Hinton (2012): gradients over the root of the mean of their squares."""

    def _update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        alpha, step = group["alpha"], _counted(state)
        if step == 1:
            state["square_avg"] = _zeros(parameter)
            if group["momentum"]:
                state["momentum_buffer"] = _zeros(parameter)
            if group["centered"]:
                state["grad_avg"] = _zeros(parameter)
        grad = _decayed(grad, parameter, group)
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root.add_(group["eps"])
        if group["momentum"]:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, root)
            parameter.add_(buffer, alpha=-group["lr"])
        else:
            parameter.addcdiv_(grad, root, value=-group["lr"])


@options(
    "lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, "
    "foreach=None, *, maximize=False, differentiable=False, fused=None",
    first="lr lr_decay eps",
)
class Adagrad(Optimizer):
    """Duchi et al. (2011): gradients over the root of the sum of their squares."""

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1]["params"]:
            start = self.param_groups[-1]["initial_accumulator_value"]
            filled = resolve("full_like")(parameter, start).detach()
            self.state[parameter] = {"step": resolve("tensor")(0.0), "sum": filled}

    def _update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        step = _counted(state)
        grad = _decayed(grad, parameter, group)
        lr = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        state["sum"].addcmul_(grad, grad, value=1)
        parameter.addcdiv_(grad, state["sum"].sqrt().add_(group["eps"]), value=-lr)


@options(
    "lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, "
    "maximize=False, differentiable=False",
    first="lr rho eps weight_decay maximize capturable",
)
class Adadelta(Optimizer):
    """Zeiler (2012): steps in the unit of the parameters."""

    def _update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        rho, eps = group["rho"], group["eps"]
        if _counted(state) == 1:
            state["square_avg"], state["acc_delta"] = _zeros(parameter), _zeros(parameter)
        grad = _decayed(grad, parameter, group)
        square, steps = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = steps.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        parameter.add_(delta, alpha=-group["lr"])

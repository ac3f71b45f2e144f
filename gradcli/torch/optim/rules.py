"""The rules of optimizers, each with the operations of PyTorch's own in the same order, for the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.engine.registry.table import resolve
from gradcli.torch.optim.optimizer import Group, Optimizer, State, options


def _decayed(grad: Any, parameter: Any, group: Group) -> Any:
    decay = group["weight_decay"]
    return grad.add(parameter, alpha=decay) if decay else grad


def _decayed_beside(grad: Any, parameter: Any, group: Group) -> Any:
    """As `_decayed`, or, where that is asked for, the parameter decays by itself."""
    if not group["decoupled_weight_decay"]:
        return _decayed(grad, parameter, group)
    if group["weight_decay"]:
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
    return grad


@options(
    "lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, "
    "foreach=None, differentiable=False, fused=None"
)
class SGD(Optimizer):
    """Gradient descent, with momentum (Polyak's, or Nesterov's) where it is asked for."""

    by_elements = True

    def check(self) -> None:
        super().check()
        if self.defaults["nesterov"] and (
            self.defaults["momentum"] <= 0 or self.defaults["dampening"]
        ):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _begin(self, parameter: Any, state: State, group: Group) -> int:
        """1 at the first step, then 2: PyTorch remembers no number of steps here."""
        if not group["momentum"] or state.get("momentum_buffer") is not None:
            return 2
        state["momentum_buffer"] = resolve("zeros_like")(parameter)
        return 1

    def _remembered(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        grad = _decayed(grad, parameter, group)
        momentum = group["momentum"]
        if momentum:
            buffer = state["momentum_buffer"]
            if step == 1:
                buffer.copy_(grad)
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

    by_elements = True

    def _remembered(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if group["amsgrad"] else 2]

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        (beta1, beta2), lr = group["betas"], group["lr"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        grad = _decayed_beside(grad, parameter, group)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            square = largest.copy_(largest.maximum(square))
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

    by_elements = True

    def _remembered(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        beta1, beta2 = group["betas"]
        grad = _decayed(grad, parameter, group)
        state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = state["exp_inf"]
        largest.copy_(largest.mul_(beta2).maximum(grad.abs().add_(group["eps"])))
        parameter.addcdiv_(state["exp_avg"], largest, value=-(group["lr"] / (1 - beta1**step)))


@options(
    "lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, "
    "capturable=False, foreach=None, maximize=False, differentiable=False",
    first="lr momentum alpha eps centered",
)
class RMSprop(Optimizer):
    """Hinton (2012): gradients over the root of the mean of their squares."""

    by_elements = True

    def _remembered(self, group: Group) -> tuple[str, ...]:
        wanted = {"square_avg": True, "momentum_buffer": group["momentum"]}
        return tuple(
            n for n, is_used in (wanted | {"grad_avg": group["centered"]}).items() if is_used
        )

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        alpha = group["alpha"]
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

    by_elements = True

    def _remembered(self, group: Group) -> tuple[str, ...]:
        return ("sum",)

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1]["params"]:
            start = self.param_groups[-1]["initial_accumulator_value"]
            filled = resolve("full_like")(parameter, start).detach()
            self.state[parameter] = {"step": resolve("tensor")(0.0), "sum": filled}

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
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

    by_elements = True

    def _remembered(self, group: Group) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        rho, eps = group["rho"], group["eps"]
        grad = _decayed(grad, parameter, group)
        square, steps = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = steps.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        parameter.add_(delta, alpha=-group["lr"])


@options(
    "lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, "
    "decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, "
    "differentiable=False"
)
class NAdam(Optimizer):
    """Dozat (2016): Adam with Nesterov's momentum, which grows from half of beta1 to the whole of it."""

    def _begin(self, parameter: Any, state: State, group: Group) -> int:
        if "step" not in state:
            state["step"] = resolve("tensor")(0.0)
            state["mu_product"] = resolve("tensor")(1.0)
        return super()._begin(parameter, state, group)

    def _remembered(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        (beta1, beta2), lr = group["betas"], group["lr"]
        grad = _decayed_beside(grad, parameter, group)
        mu, following = (
            beta1 * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (step, step + 1)
        )
        product = float(state["mu_product"].mul_(mu))
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        below = square.div(1 - beta2**step).sqrt().add_(group["eps"])
        parameter.addcdiv_(grad, below, value=-lr * (1 - mu) / (1 - product))
        parameter.addcdiv_(mean, below, value=-lr * following / (1 - product * following))


@options(
    "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *, "
    "foreach=None, maximize=False, capturable=False, differentiable=False",
    first="lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay",
)
class RAdam(Optimizer):
    """Liu et al. (2019): Adam, whose first steps wait until the mean of squares is known well enough."""

    def _remembered(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        beta1, beta2 = group["betas"]
        grad = _decayed_beside(grad, parameter, group)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        unbiased = 1 - beta2**step
        move = mean / (1 - beta1**step) * group["lr"]
        most = 2 / (1 - beta2) - 1  # the length of the moving average in the end, and now
        length = most - 2 * step * beta2**step / unbiased
        if length > 5:
            move = move * (unbiased**0.5 / square.sqrt().add_(group["eps"]))
            above, below = (length - 4) * (length - 2) * most, (most - 4) * (most - 2) * length
            move = move * (above / below) ** 0.5
        parameter.add_(move, alpha=-1.0)


@options(
    "lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None, "
    "maximize=False, differentiable=False",
    first="lr etas step_sizes foreach maximize differentiable capturable",
)
class Rprop(Optimizer):
    """Riedmiller and Braun (1993): by signs; a step grows while the sign stays and shrinks where it turns."""

    def check(self) -> None:
        super().check()
        shrink, grow = self.defaults["etas"]
        if not 0.0 < shrink < 1.0 < grow:
            raise ValueError(f"Invalid eta values: {shrink}, {grow}")

    def _begin(self, parameter: Any, state: State, group: Group) -> int:
        step = super()._begin(parameter, state, group)
        if step == 1:
            state["step_size"] = resolve("full_like")(parameter, group["lr"]).detach()
        return step

    def _remembered(self, group: Group) -> tuple[str, ...]:
        return ("prev", "step_size")

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        (shrink, grow), previous, size = group["etas"], state["prev"], state["step_size"]
        where = resolve("where")
        same = grad.mul(previous)
        factor = where(same > 0, grow, where(same < 0, shrink, 1.0)).to(size.dtype)
        size.mul_(factor).clamp_(*group["step_sizes"])
        grad = where(same < 0, 0.0, grad)
        parameter.addcmul_(grad.sign(), size, value=-1)
        previous.copy_(grad)


@options(
    "lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None, "
    "maximize=False"
)
class Adafactor(Optimizer):
    """Shazeer and Stern (2018): of a matrix's squares, the means of rows and of columns are remembered."""

    _REFUSED = (
        ("lr", 0, "Learning rate should be >= 0 but is"),
        ("weight_decay", 0, "weight_decay should be >= 0 but is"),
        ("d", 1, "Clipping threshold d should be >= 1 but is"),
    )

    def check(self) -> None:
        given = self.defaults
        for name, least, words in self._REFUSED:
            if given[name] < least:
                raise ValueError(f"{words}: {given[name]}")
        if given["beta2_decay"] > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {given['beta2_decay']}")
        for k, eps in enumerate(given["eps"], 1):
            if eps is not None and eps < 0:
                raise ValueError(f"epsilon{k} should be >= 0 but is: {eps}")

    def _begin(self, parameter: Any, state: State, group: Group) -> int:
        if "step" not in state:
            state["step"] = resolve("tensor")(0.0)
            zeros, shape = resolve("zeros"), list(parameter.shape)
            if len(shape) > 1:
                rows, columns = [*shape[:-1], 1], [*shape[:-2], 1, shape[-1]]
                state["row_var"] = zeros(rows, dtype=parameter.dtype)
                state["col_var"] = zeros(columns, dtype=parameter.dtype)
            else:
                state["variance"] = resolve("zeros_like")(parameter)
        return super()._begin(parameter, state, group)

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        lr, (least, floor), share = group["lr"], group["eps"], float(step) ** group["beta2_decay"]
        least = float(np.finfo(parameter.array.dtype).eps) if least is None else least
        size = float(parameter.norm(2)) / parameter.numel() ** 0.5
        alpha = max(floor, size) * min(lr, 1 / step**0.5)
        if group["weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        if grad.ndim > 1:
            rows, columns = state["row_var"], state["col_var"]
            for mean, dim in ((rows, -1), (columns, -2)):
                squares = resolve("norm")(grad, dim=dim, keepdim=True).square_()
                mean.lerp_(squares.div_(grad.size(dim)), share)
            variance = rows @ columns
            variance.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=least))
        else:
            state["variance"].lerp_(grad * grad, share)
            variance = state["variance"].clone()
        update = variance.clamp_(min=least * least).rsqrt_().mul_(grad)
        large = max(1.0, float(update.norm(2)) / (update.numel() ** 0.5 * group["d"]))
        parameter.add_(update, alpha=-alpha / large)


def _in_eight_bits(matrix: Any) -> Any:
    """A matrix in single precision, its elements rounded to bfloat16's eight bits, ties to even."""
    bits = matrix.array.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return wrap(rounded.view(np.float32))


@options(
    "lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, "
    "ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None"
)
class Muon(Optimizer):
    """Jordan et al. (2024): a matrix's momentum, made nearly orthogonal by Newton and Schulz's iteration.

    As in PyTorch the iteration has the precision of bfloat16.
    """

    def check(self) -> None:
        for name, words in (
            ("lr", "Learning rate"),
            ("momentum", "momentum"),
            ("weight_decay", "weight decay"),
        ):
            if self.defaults[name] < 0:
                raise ValueError(f"{words} should be >= 0 but is: {self.defaults[name]}")
        if self.defaults["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Adjust learning rate function {self.defaults['adjust_lr_fn']} is not supported"
            )

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if p.ndim != 2:
                raise ValueError(
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                )

    def _begin(self, parameter: Any, state: State, group: Group) -> int:
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = resolve("zeros_like")(parameter)
        return 1

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        lr, momentum, buffer = group["lr"], group["momentum"], state["momentum_buffer"]
        buffer.lerp_(grad, 1 - momentum)
        update = _orthogonal(grad.lerp(buffer, momentum) if group["nesterov"] else buffer, group)
        rows, columns = parameter.shape
        factor = max(1, rows / columns) ** 0.5
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * max(rows, columns) ** 0.5
        parameter.mul_(1 - lr * group["weight_decay"])
        parameter.add_(update.to(parameter.dtype), alpha=-lr * factor)


def _orthogonal(matrix: Any, group: Group) -> Any:
    """U S V^T of a matrix with S between 0.5 and 1.5, in place of its singular values."""
    (a, b, c), is_tall = group["ns_coefficients"], matrix.shape[0] > matrix.shape[1]
    if group["ns_steps"] >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    x = _in_eight_bits(matrix)
    x = x.t() if is_tall else x
    x = _in_eight_bits(x / _in_eight_bits(x.norm()).clamp(min=group["eps"]))
    for _ in range(group["ns_steps"]):
        gram = _in_eight_bits(x @ x.t())
        gram = _in_eight_bits(gram.addmm(gram, gram, beta=b, alpha=c))
        x = _in_eight_bits(x.addmm(gram, x, beta=a))
    return x.t() if is_tall else x


@options(
    "lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False, "
    "differentiable=False, capturable=False"
)
class ASGD(Optimizer):
    """Polyak and Juditsky (1992): gradient descent, whose steps shrink and whose points are averaged (ax)."""

    def _begin(self, parameter: Any, state: State, group: Group) -> int:
        if "step" not in state:
            state["step"] = resolve("tensor")(0.0)
            state["eta"] = resolve("tensor")(float(group["lr"]))
            state["mu"] = resolve("tensor")(1.0)
            state["ax"] = resolve("zeros_like")(parameter)
        return super()._begin(parameter, state, group)

    def _update(self, parameter: Any, grad: Any, state: State, group: Group, step: int) -> None:
        grad, lr, lambd = _decayed(grad, parameter, group), group["lr"], group["lambd"]
        eta, mu, mean = float(state["eta"]), float(state["mu"]), state["ax"]
        parameter.mul_(1 - lambd * eta)
        parameter.add_(grad, alpha=-eta)
        if mu != 1:
            mean.add_(parameter.sub(mean).mul_(mu))
        else:
            mean.copy_(parameter)
        state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))

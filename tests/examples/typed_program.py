"""A user's program: fits, tests, training and optimisation with gradcli."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import gradcli
import gradcli as torch
from gradcli import Tensor, nn, optim
from gradcli.nn import functional as F
from gradcli.testing import assert_gradients, points

Array = npt.NDArray[np.float64]


# -- expressions
def slopes(source: str, at: Array) -> Array:
    found = gradcli.grad(source, x=at, wrt="x")
    return np.asarray(found.numpy(), dtype=np.float64)


def formula(source: str) -> str:
    return gradcli.diff(source, wrt="x")


def short(source: str) -> str:
    return gradcli.simplify(source)


def series(source: str, order: int) -> str:
    return gradcli.taylor(source, x=0, order=order)


def is_right(source: str, expected: str, at: float) -> bool:
    return bool(gradcli.check(source, expected=expected, x=at))


def value(source: str, at: float) -> float:
    return float(gradcli.evaluate(source, x=at))


def table(rows: dict[str, Array]) -> dict[str, Array]:
    return gradcli.map("a*x**2", rows, a=3.0)


def page(source: str) -> str:
    graph = gradcli.graph(source, x=2.0)
    return graph.to_svg()


# -- functions
def rosenbrock(x: Array) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def loss(x: Tensor) -> Tensor:
    return ((x - 1) ** 2).sum() + x.exp().mean()


def descend(f: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    x = start
    slope = torch.func.grad(f)
    for _ in range(steps):
        x = x - 0.1 * slope(x)
    return x


def banana(v: Tensor) -> Tensor:
    return (100 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2).sum()


def newton(x: Array) -> Array:
    compiled = gradcli.compile(banana, wrt="v")
    gradient = compiled.grad(x)
    curvature = compiled.sparse_hessian(x).dense()
    return np.asarray(x - np.linalg.solve(curvature, gradient), dtype=np.float64)


@gradcli.compile
def energy(r: Tensor, k: Tensor) -> Tensor:
    return (k * r**2).sum()


class Params(NamedTuple):
    w: Tensor
    b: Tensor


@dataclass
class Config:
    rate: float = 0.1
    steps: int = 10


def predict(p: Params, x: Tensor) -> Tensor:
    return torch.tanh(x @ p.w + p.b)


# -- a custom operation
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


# -- a network
class Net(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(2, hidden)
        self.second = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.second(F.relu(self.first(x)))
        return y


def train(net: Net, x: Tensor, y: Tensor, config: Config) -> Iterator[float]:
    optimizer = optim.Adam(net.parameters(), lr=config.rate)
    for _ in range(config.steps):
        optimizer.zero_grad()
        error = F.mse_loss(net(x), y)
        error.backward()
        optimizer.step()
        yield error.item()


def norms(net: Net) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, parameter in net.named_parameters():
        if parameter.grad is not None:
            found[name] = parameter.grad.norm().item()
    return found


def squares(x: Tensor) -> Tensor:
    found: Tensor = Square.apply(x)
    return found.sum()


def test_square() -> None:
    assert_gradients(squares, x=torch.ones(3))
    assert points("sum(relu(x))", x=3) is not None


def main() -> None:
    try:
        print(formula("x**3"), short("x + x"), slopes("sum(x**2)", np.ones(3)))
    except gradcli.LanguageError as error:
        print(error.message, error.hint, error.span)
    except gradcli.GradcliError as error:
        print(error)
    torch.manual_seed(0)
    with torch.no_grad():
        x = torch.rand(16, 2)
    total: float = sum(train(Net(4), x, x.sum(1, keepdim=True), Config()))
    print(total, torch.isfinite(x).all().item(), x.shape[0], x.dtype == torch.float32)
    print(gradcli.value_and_grad(loss)(x), energy.value_and_grad(np.ones(2), 2.0))


if __name__ == "__main__":
    main()

"""L-BFGS (Nocedal and Wright, Numerical Optimization, 2nd ed., algorithm 7.4), with Wolfe's line search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.core.modes import enable_grad, no_grad
from gradcli.engine.registry.table import resolve
from gradcli.torch.optim.optimizer import Optimizer, options

Point = tuple[float, float, Any, float]  # step, value, gradient, slope


@options(
    "lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100, "
    "line_search_fn=None"
)
class LBFGS(Optimizer):
    """One `step` makes up to max_iter iterations, and calls the closure as often as these need.

    The closure computes the loss, calls backward and returns the loss. line_search_fn: None, for steps of
    length lr, or "strong_wolfe".
    """

    def check(self) -> None:
        super().check()
        if self.defaults["max_eval"] is None:
            self.defaults["max_eval"] = self.defaults["max_iter"] * 5 // 4
        if self.defaults["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self.param_groups:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        super().add_param_group(param_group)

    # -- all parameters as one vector ----------------------------------------------------------------------
    @property
    def _params(self) -> list[Any]:
        found: list[Any] = self.param_groups[0]["params"]
        return found

    def _gradient(self) -> Any:
        grads = [
            p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1) for p in self._params
        ]
        return resolve("cat")(grads, 0)

    def _move(self, direction: Any, step: float) -> None:
        at = 0
        for parameter in self._params:
            size = parameter.numel()
            parameter.add_(direction[at : at + size].view_as(parameter), alpha=step)
            at += size

    def _probed(self, closure: Callable[[], Any], start: list[Any], direction: Any) -> Any:
        """The loss and the gradient at a step from the start; the parameters stay there."""

        def probe(step: float) -> Point:
            self._move(direction, step)
            value, gradient = _number(closure()), self._gradient()
            for parameter, before in zip(self._params, start, strict=True):
                parameter.copy_(before)
            return step, value, gradient, float(gradient.dot(direction))

        return probe

    # -- the iterations -----------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate; returns the loss before the first iteration."""
        assert closure is not None
        inner = closure

        def with_grad() -> Any:
            with enable_grad():
                return inner()

        with no_grad():
            return self._iterate(with_grad)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, evaluations = _number(first), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        d, t, before, before_loss = (
            state.get(k) for k in ("d", "t", "prev_flat_grad", "prev_loss")
        )
        scale, pairs = state.get("H_diag", 1), state.setdefault("pairs", [])
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d, scale = gradient.neg(), 1
                pairs.clear()
            else:
                scale = _remember(
                    pairs, gradient.sub(before), d.mul(t), scale, group["history_size"]
                )
                d = _direction(pairs, gradient, scale)
            before, before_loss = gradient.clone(), loss
            new = state["n_iter"] == 1
            t = min(1.0, 1.0 / float(gradient.abs().sum())) * group["lr"] if new else group["lr"]
            slope = float(gradient.dot(d))
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is not None:
                start = [p.clone() for p in self._params]
                probe = self._probed(closure, start, d)
                (t, loss, gradient, _), used = _strong_wolfe(
                    probe, (0.0, loss, gradient, slope), t, d
                )
                self._move(d, t)
            else:
                self._move(d, t)
                if iterations != group["max_iter"]:
                    loss, used = _number(closure()), 1
                    gradient = self._gradient()
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or float(gradient.abs().max()) <= group["tolerance_grad"]
                or float(d.mul(t).abs().max()) <= group["tolerance_change"]
                or abs(loss - before_loss) < group["tolerance_change"]
            ):
                break
        state.update(d=d, t=t, H_diag=scale, prev_flat_grad=before, prev_loss=before_loss)
        return first


def _number(loss: Any) -> float:
    return float(loss.detach() if hasattr(loss, "detach") else loss)


def _remember(pairs: list[Any], y: Any, s: Any, scale: Any, size: int) -> Any:
    """Keep (change of the gradient, step, 1/(y·s)) where the curvature is positive; returns the scale."""
    curvature = float(y.dot(s))
    if curvature <= 1e-10:
        return scale
    if len(pairs) == size:
        pairs.pop(0)
    pairs.append((y, s, 1.0 / y.dot(s)))
    return y.dot(s) / y.dot(y)


def _direction(pairs: list[Any], gradient: Any, scale: Any) -> Any:
    """Minus the inverse Hessian times the gradient, by the two loops over the pairs."""
    q, shares = gradient.neg(), []
    for y, s, rho in reversed(pairs):
        shares.append(s.dot(q) * rho)
        q.add_(y, alpha=-float(shares[-1]))
    q = q.mul(scale)
    for (y, s, rho), share in zip(pairs, reversed(shares), strict=True):
        q.add_(s, alpha=float(share - y.dot(q) * rho))
    return q


def _cubic(a: Point, b: Point, low: float, high: float) -> float:
    """Where the cubic through two points with their slopes is least (Nocedal and Wright, 3.59)."""
    (x1, f1, _, g1), (x2, f2, _, g2) = a, b
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = float(d1**2 - g1 * g2)
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return float(min(max(least, low), high))


def _strong_wolfe(
    probe: Callable[[float], Point],
    start: Point,
    t: float,
    d: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    smallest: float = 1e-9,
    most: int = 25,
) -> tuple[Point, int]:
    """(a point that holds both of Wolfe's conditions, or the best found; how often it looked).

    First steps grow until they bracket such a point, then the bracket shrinks.
    """
    _, f0, _, slope = start
    size = float(d.abs().max())
    point, previous, looks, bracket = probe(t), start, 1, []
    done = False
    for turn in range(most):
        _, value, _, along = point
        if value > f0 + c1 * point[0] * slope or (turn > 0 and value >= previous[1]):
            bracket = [previous, point]
            break
        if abs(along) <= -c2 * slope:
            bracket, done = [point], True
            break
        if along >= 0:
            bracket = [previous, point]
            break
        low, high = point[0] + 0.01 * (point[0] - previous[0]), point[0] * 10
        t = _cubic(previous, point, low, high)
        previous, point = point, probe(t)
        looks += 1
    else:
        bracket = [start, point]
    turn = looks - 1
    if len(bracket) == 1:
        return bracket[0], looks
    close = False
    low_is = 0 if bracket[0][1] <= bracket[1][1] else 1
    while not done and turn < most:
        low, high = sorted((bracket[0][0], bracket[1][0]))
        if abs(high - low) * size < smallest:
            break
        t = _cubic(bracket[0], bracket[1], low, high)
        edge = 0.1 * (high - low)
        if min(high - t, t - low) < edge:  # too near an end
            if close or t >= high or t <= low:
                t = high - edge if abs(t - high) < abs(t - low) else low + edge
                close = False
            else:
                close = True
        else:
            close = False
        point = probe(t)
        looks += 1
        turn += 1
        if point[1] > f0 + c1 * t * slope or point[1] >= bracket[low_is][1]:
            bracket[1 - low_is] = point
            low_is = 0 if bracket[0][1] <= bracket[1][1] else 1
        else:
            if abs(point[3]) <= -c2 * slope:
                done = True
            elif point[3] * (bracket[1 - low_is][0] - bracket[low_is][0]) >= 0:
                bracket[1 - low_is] = bracket[low_is]
            bracket[low_is] = point
    return bracket[low_is], looks

"""Roots and minima as functions of numbers that the program has besides: what these move, they move.

Where F(y, a) = 0 gives y for a, dy/da = -(∂F/∂y)⁻¹ ∂F/∂a (the implicit function theorem). F is the difference
of an equation's sides, or the gradient of a Lagrangian: then a bound that holds a variable keeps it. Other
points are found by Newton's method, for all inputs at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import Array
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.engine.registry.table import resolve
from gradcli.operators.primitives import lapack
from gradcli.torch import func

_STEPS = 60  # of Newton's method
_STILL = 1e-10  # of a point, a step that is smaller is none
_SMALL = 1e-8  # of what the terms of a residual are, one that is none
_RANK = 1e-12  # of the largest singular value, one that is 0
_HELD = 1e-9  # a gradient that pushes to a bound
_FAR = 10.0  # times the size of a point, the longest step
_ASIDE = 1e-3  # of a point, how far a step goes where the derivative is 0


class Point(NamedTuple):
    """A solution, the inputs that it belongs to, and bounds of its elements, of which some are held."""

    y: Array
    inputs: Array
    low: Array
    high: Array

    @classmethod
    def free(cls, y: Array, inputs: Array) -> Point:
        """One without bounds."""
        ends = np.full(len(y), np.inf)
        return cls(y, inputs, -ends, ends)


class MovedPoint:
    """A solution of residuals(cat(y, inputs)) = 0 near a point, as a function of the inputs.

    residuals: of a tensor, as many as y has elements. least: how many elements are to be at a minimum, of
    which the residuals are the gradient.
    """

    def __init__(self, residuals: Callable[[Any], Any], point: Point, least: int = 0) -> None:
        self.point, self.least, self.size = point, least, len(point.y)
        cat = resolve("cat")
        jacobian = func.jacrev(residuals)

        def both(z: Any) -> Any:
            return cat([residuals(z), jacobian(z).reshape((-1,))])

        self._rows = Rows(both, {}, [])
        self._kept: tuple[bytes, Array] | None = None

    def slopes(self) -> Array:
        """dy/da, (y, inputs); infinite where the inputs move what no step of y changes.

        NaN where y is at a bound that nothing pushes it to.
        """
        # For y**2 - a = 0 at y = 2, a = 4: ∂F/∂y = 4, ∂F/∂a = -1, so dy/da = 1/4. A held element does not
        # move (its row and column are left out). By singular values: where ∂F/∂y is singular, as for y**2
        # = a at 0, and the inputs push across what it can reach, the point moves infinitely fast.
        f, jac = self._values(self.point.y[None], self.point.inputs[None])
        held = self._held(self.point.y[None], f)[0]
        own, by = jac[0][:, : self.size], jac[0][:, self.size :]
        at_end = (self.point.y <= self.point.low) | (self.point.y >= self.point.high)
        loose = at_end & ~held & (by != 0).any(1)
        made = np.zeros((self.size, by.shape[1]))
        free = np.flatnonzero(~held)
        own, by = own[np.ix_(free, free)], by[free]
        if not (np.isfinite(own).all() and np.isfinite(by).all()):
            made[free] = np.where(by == 0, 0.0, np.inf)
            return made
        if len(free):
            u, s, vt = lapack.svd(own)
            kept = s > s.max(initial=0) * _RANK
            along = u.T @ by
            made[free] = -vt[kept].T @ (along[kept] / s[kept][:, None])
            lost = np.abs(along[~kept]) > _RANK * np.abs(by).max(initial=0)
            made[np.ix_(free, lost.any(0))] = np.inf
        if loose.any():  # a bound that holds nothing: it moves to one side
            made[~held] = np.nan
        return made

    def __call__(self, inputs: Array) -> Array:
        """The solutions for inputs (n, m), as (n, y); NaN where there is none."""
        key = inputs.tobytes()
        if self._kept is None or self._kept[0] != key:
            self._kept = key, self._solved(inputs)
        return self._kept[1]

    def _solved(self, inputs: Array) -> Array:
        low, high = self.point.low, self.point.high
        y = np.repeat(self.point.y[None], len(inputs), axis=0)
        f, jac = self._values(y, inputs)
        # Newton's method for all rows of inputs at once. Each row has its own share of the step: a step
        # that does not lessen the largest residual is taken again at a quarter, one that does may grow
        # back to the full one. Rows that are done, or lost, take no further part.
        part = np.ones(len(y))
        done = np.zeros(len(y), bool)
        for _ in range(_STEPS):
            step, held = self._step(y, f, jac)
            still = (np.abs(step) <= _STILL * (1 + np.abs(y))).all(1)
            size = np.abs(jac[:, :, : self.size] * y[:, None, :]).sum(2) + 1
            done |= still & (np.where(held, 0.0, np.abs(f)) <= _SMALL * size).all(1)
            go = np.flatnonzero(~done & np.isfinite(step).all(1) & (part > 1e-6))
            if not len(go):
                break
            ahead = np.clip(y[go] - part[go, None] * step[go], low, high)
            there, slope = self._values(ahead, inputs[go])
            here = np.where(held[go], 0.0, f[go])
            new = np.where(self._held(ahead, there), 0.0, there)
            better = ~(np.abs(new).max(1) >= np.abs(here).max(1)) & np.isfinite(new).all(1)
            won = go[better]
            y[won], f[won], jac[won] = ahead[better], there[better], slope[better]
            part[go] = np.where(better, np.minimum(2 * part[go], 1.0), part[go] / 4)
        done &= np.isfinite(y).all(1)
        if self.least:
            done &= self._is_least(f, jac, y)
        return np.where(done[:, None], y, np.nan)

    def _values(self, y: Array, inputs: Array) -> tuple[Array, Array]:
        """(residuals (n, y), their Jacobians by y and inputs (n, y, y + inputs))."""
        n = self.size
        found = self._rows({"z": np.concatenate([y, inputs], axis=1)}, len(y)).values
        whole = np.stack(list(found.values()), axis=1) if found else np.empty((len(y), 0))
        if whole.shape[1] != n * (1 + n + inputs.shape[1]):
            whole = np.full((len(y), n * (1 + n + inputs.shape[1])), np.nan)
        return whole[:, :n], whole[:, n:].reshape(len(y), n, -1)

    def _held(self, y: Array, f: Array) -> Array:
        """Which elements are at a bound that the gradient pushes them to."""
        return ((y <= self.point.low) & (f > _HELD)) | ((y >= self.point.high) & (f < -_HELD))

    def _step(self, y: Array, f: Array, jac: Array) -> tuple[Array, Array]:
        """(Newton's steps of what is free, which is held)."""
        held = self._held(y, f)
        # A held element's equation becomes step = 0: its row and column are cleared and its diagonal is
        # 1. So all rows of inputs have matrices of one size, whatever each of them holds, and are solved
        # in one batch.
        own = np.array(jac[:, :, : self.size])
        own[np.broadcast_to(held[:, :, None] | held[:, None, :], own.shape)] = 0.0
        index = np.arange(self.size)
        own[:, index, index] = np.where(held, 1.0, own[:, index, index])
        right = np.where(held, 0.0, f)
        good = np.isfinite(own).all((1, 2)) & np.isfinite(right).all(1)
        made = np.full(y.shape, np.nan)
        if good.any():
            u, s, vt = lapack.svd(own[good])
            kept = s > s.max(1, initial=0, keepdims=True) * _RANK
            along = (u.swapaxes(1, 2) @ right[good][:, :, None])[:, :, 0]
            with np.errstate(all="ignore"):
                share = np.where(kept, along / np.where(kept, s, 1.0), 0.0)
            aside = ~kept & (np.abs(along) > 0)  # no step changes it here: go aside, to one side
            share = np.where(aside, -_ASIDE * (1 + np.abs(y[good]).max(1, keepdims=True)), share)
            made[good] = (vt.swapaxes(1, 2) @ share[:, :, None])[:, :, 0]
        most = _FAR * (1 + np.abs(y).max(1, keepdims=True))
        with np.errstate(all="ignore"):
            made *= np.minimum(1.0, most / np.abs(made).max(1, keepdims=True, initial=1e-300))
        return made, held

    def _is_least(self, f: Array, jac: Array, y: Array) -> Array:
        """Whether the Hessian of what is free is not negative."""
        n = self.least
        held = self._held(y, f)[:, :n]
        own = np.array(jac[:, :n, :n])
        own[np.broadcast_to(held[:, :, None] | held[:, None, :], own.shape)] = 0.0
        own = np.nan_to_num((own + own.swapaxes(1, 2)) / 2)
        least = lapack.eigh(own)[0][:, 0]
        return np.asarray(least >= -1e-9 * np.abs(own).max((1, 2)))


__all__ = ["MovedPoint", "Point"]

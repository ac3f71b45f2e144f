"""torch.nn.utils.parametrizations: weights by length and direction, and weights of spectral norm 1."""

from __future__ import annotations

from typing import Any

from gradcli.engine.core.modes import no_grad
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve
from gradcli.engine.registry.torch_namespaces import absent
from gradcli.torch.nn import functional
from gradcli.torch.nn.modules.module import Module
from gradcli.torch.nn.utils import parametrize


def norm_except_dim(v: Any, dim: int) -> Any:
    """The norms over all dimensions but one, which are kept with size 1; dim -1: of all elements."""
    if dim == -1:
        return v.norm(2)
    return resolve("linalg.vector_norm")(v, 2, [d for d in range(v.ndim) if d != dim], True)


class _WeightNorm(Module):
    """Salimans and Kingma (2016): `g * v / |v|`, the norm over all dimensions but one (-1: over all)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Have a weight worked out of its length (original0) and its direction (original1)."""
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class PowerMethod:
    """The largest singular value of a weight as a matrix, whose rows are a dimension of it."""

    def __init__(self, dim: int, eps: float) -> None:
        self.dim, self.eps = dim, eps

    def matrix(self, weight: Any) -> Any:
        """The weight as a matrix."""
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return weight.flatten(1)

    def unit(self, vector: Any) -> Any:
        """A vector of length 1."""
        return functional.normalize(vector, dim=0, eps=self.eps)

    def drawn(self, weight: Any) -> tuple[Any, Any]:
        """Two random vectors to begin with."""
        with no_grad():
            rows, columns = self.matrix(weight).shape
            u, v = (weight.new_empty(n).normal_(0, 1) for n in (rows, columns))
            return self.unit(u), self.unit(v)

    def value(self, weight: Any, u: Any, v: Any) -> Any:
        """`u @ matrix @ v`, the singular value where u and v are its vectors."""
        matrix = self.matrix(weight)
        return u.clone().dot(matrix.mv(v.clone()))


class _SpectralNorm(Module):
    """Miyato et al. (2018): a weight by its largest singular value, after some steps of the power method."""

    def __init__(self, weight: Any, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})"
            )
        refuse_iterations(n_power_iterations)
        self.dim, self.eps = dim % ndim, eps
        self._method = PowerMethod(self.dim, eps)
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            u, v = self._method.drawn(weight)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            self._improve(weight, 15)

    def _improve(self, weight: Any, steps: int) -> None:
        with no_grad():
            matrix = self._method.matrix(weight)
            for _ in range(steps):
                self._u.copy_(self._method.unit(matrix.mv(self._v)))
                self._v.copy_(self._method.unit(matrix.t().mv(self._u)))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return self._method.unit(weight)
        if self.training:
            self._improve(weight, self.n_power_iterations)
        return weight / self._method.value(weight, self._u, self._v)

    def right_inverse(self, value: Any) -> Any:
        return value


def refuse_iterations(count: int) -> None:
    """ValueError for a count that is none."""
    if count <= 0:
        raise ValueError(
            f"Expected n_power_iterations to be positive, but got n_power_iterations={count}"
        )


def rows_of(module: Module, dim: int | None) -> int:
    """The dimension of a module's outputs in its weight."""
    if dim is not None:
        return dim
    return int(type(module).__name__.removeprefix("Parametrized").startswith("ConvTranspose"))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Have a weight divided by its largest singular value, which is estimated whenever it is read."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    norm = _SpectralNorm(weight, n_power_iterations, rows_of(module, dim), eps)
    return parametrize.register_parametrization(module, name, norm)


def __getattr__(name: str) -> Any:
    full = f"nn.utils.parametrizations.{name}"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{absent(full)}")


__all__ = ["spectral_norm", "weight_norm"]

"""A derivative as a function for JAX: as for NumPy, with JAX's functions where NumPy has none.

JAX arrays cannot be written in place, so the helpers that write have other texts here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gradcli.symbolic.differentiate import Derivatives
from gradcli.symbolic.expression_text import ATOM, Piece
from gradcli.symbolic.lifting import NoExpression
from gradcli.symbolic.numpy_helpers import HELPERS, by_name
from gradcli.symbolic.program_reader import of_arrays, run_code
from gradcli.symbolic.python_code import NumpyPrinter, defined, modules, uses, written_by

# JAX's own functions of one argument.
NN = {
    **{w: f"jax.nn.{w}" for w in "sigmoid silu relu softplus".split()},
    "nn.functional.mish": "jax.nn.mish",
    **{"nn.functional.logsigmoid": "jax.nn.log_sigmoid", "rsqrt": "jax.lax.rsqrt"},
    **{"nn.functional.hardswish": "jax.nn.hard_swish"},
    **{"nn.functional.hardsigmoid": "jax.nn.hard_sigmoid"},
    **{w: f"special.{w}" for w in ("erf", "erfc")},
    **{"lgamma": "special.gammaln"},
}
_BESSEL = "bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1"
MISSING = frozenset(
    ("masked_select", *(f"special.{w}" for w in ("erfcx", *_BESSEL.split())))
)  # not under jit: sizes that depend on values; and what jax.scipy.special lacks
OWN = by_name("""
def select_scatter(x, src, dim, index):
    rows = jnp.moveaxis(jnp.asarray(x, float), dim, 0).at[index].set(src)
    return jnp.moveaxis(rows, 0, dim)
def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    rows = jnp.moveaxis(jnp.asarray(x, float), dim, 0).at[start:end:step].set(jnp.moveaxis(src, dim, 0))
    return jnp.moveaxis(rows, 0, dim)
def index_add(x, dim, index, source, alpha=1):
    index, source = jnp.atleast_1d(index), jnp.atleast_1d(source)
    rows = jnp.moveaxis(jnp.asarray(x, float), dim, 0).at[index].add(alpha * jnp.moveaxis(source, dim, 0))
    return jnp.moveaxis(rows, 0, dim)
def index_fill(x, dim, index, value=1):
    rows = jnp.moveaxis(jnp.asarray(x, float), dim, 0).at[index].set(value)
    return jnp.moveaxis(rows, 0, dim)
def index_put(x, indices, values, accumulate=False):
    place = jnp.asarray(x, float).at[indices]
    return place.add(values) if accumulate else place.set(values)
def scatter(x, dim, index, src=None, value=None):
    src = value if src is None else src
    x = jnp.asarray(x, float)
    if not x.ndim:
        return x + (src - x)
    index = jnp.atleast_1d(index)
    inside = list(jnp.indices(jnp.shape(index)))
    src = jnp.broadcast_to(src, jnp.broadcast_shapes(jnp.shape(src), jnp.shape(index)))
    part = src[tuple(slice(n) for n in jnp.shape(index))]
    inside[dim] = index
    return x.at[tuple(inside)].set(part)
def scatter_add(x, dim, index, src):
    x = jnp.asarray(x, float)
    if not x.ndim:
        return x + src
    index, src = jnp.atleast_1d(index), jnp.atleast_1d(src)
    inside = list(jnp.indices(jnp.shape(index)))
    inside[dim] = index
    part = src[tuple(slice(n) for n in jnp.shape(index))]
    return x.at[tuple(inside)].add(part)
def diagonal_scatter(x, src, offset=0, dim1=0, dim2=1):
    view = jnp.moveaxis(jnp.asarray(x, float), (dim1, dim2), (-2, -1))
    rows = jnp.arange(jnp.shape(src)[-1])
    view = view.at[..., rows + max(-offset, 0), rows + max(offset, 0)].set(src)
    return jnp.moveaxis(view, (-2, -1), (dim1, dim2))
def matrix_exp(x):
    from jax.scipy.linalg import expm

    return expm(x)
def nn.functional.binary_cross_entropy(x, y, weight=1, reduction='mean'):
    found = -y * jnp.maximum(jnp.log(x), -100)
    found = weight * (found - (1 - y) * jnp.maximum(jnp.log1p(-x), -100))
    return {'none': found, 'mean': jnp.mean(found), 'sum': jnp.sum(found)}[reduction]
def diag_embed(x, offset=0, dim1=-2, dim2=-1):
    x = jnp.asarray(x)
    n = x.shape[-1] + abs(offset)
    rows = jnp.arange(x.shape[-1])
    made = jnp.zeros((*x.shape[:-1], n, n))
    made = made.at[..., rows + max(-offset, 0), rows + max(offset, 0)].set(x)
    return jnp.moveaxis(made, (-2, -1), (dim1, dim2))
""")
_IN_PLACE = re.compile(r"^    \S*\[.*\] = |\.at\(|vectorize|\.lib\.", re.M)
HEADER = "import jax\nimport jax.numpy as jnp\n"
WIDE = 'jax.config.update("jax_enable_x64", True)  # JAX computes in float32 otherwise'


class JaxPrinter(NumpyPrinter):
    """Prints expressions as NumPy code, in which `translated` then puts JAX's module names."""

    def call(
        self, function: str, args: list[Piece], options: Iterable[tuple[str, Any]] = ()
    ) -> Piece:
        if function in NN and not list(options):
            return f"{NN[function]}({', '.join(a[0] for a in args)})", ATOM
        in_place = function not in OWN and _IN_PLACE.search(HELPERS.get(function, ""))
        if in_place or function in MISSING:
            raise NoExpression(f"JAX has no function for {function}")
        return super().call(function, args, options)

    def program(self, body: str) -> str:
        helpers = dict.fromkeys(OWN.get(h) or HELPERS[h] for h in self.helpers)
        text = re.sub(r"(?<![\w.])np\.", "jnp.", "\n\n\n".join([*helpers, body]))
        math = "import math\n" if uses(text, "math") else ""
        special = "from jax.scipy import special\n" if uses(text, "special") else ""
        return f"{math}{HEADER}{special}\n{WIDE}\n\n\n{text}"


def to_jax(found: Derivatives) -> str:
    """A function of the variables that returns the value and the gradients, for jax.jit and jax.vmap."""
    return written_by(found, JaxPrinter)


def run_jax(code: str, values: Sequence[Any]) -> Any:
    """What a printed function returns for these values, run on NumPy with stand-ins for JAX."""
    for own, shown in (
        ("from jax.scipy", "from scipy"),
        ("import jax.numpy as jnp", "import numpy as np"),
    ):
        code = code.replace(own, shown)
    known = modules("numpy", code)
    for word, name in NN.items():
        own = word.rpartition(".")[2]
        if f"{name}(" in code:
            code, known[own] = code.replace(f"{name}(", f"{own}("), of_arrays(word)
    for word, text in HELPERS.items():
        name = word.rpartition(".")[2]
        if f"{name}(" in code:
            known[name] = defined(text, name)
    return run_code(re.sub(r"(?<![\w.])jnp\.", "np.", code), values, known)


__all__ = ["run_jax", "to_jax"]

"""A derivative as a function for JAX: as for NumPy, with JAX's functions where NumPy has none.

JAX arrays cannot be written in place, so what NumPy's helpers write is an array of its own each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gradcli.formulas.algebra.expression_text import ATOM, Piece
from gradcli.formulas.derive.differentiate import Derivatives
from gradcli.formulas.lift.lifting import NoExpression
from gradcli.formulas.print.numpy_helpers import HELPERS, by_name
from gradcli.formulas.print.program_reader import of_arrays, run_code
from gradcli.formulas.print.python_code import NumpyPrinter, defined, modules, uses, written_by

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
    ("masked_select", "masked_scatter", *(f"special.{w}" for w in ("erfcx", *_BESSEL.split())))
)  # not under jit: sizes that depend on values; and what jax.scipy.special lacks
OWN = by_name("""
def matrix_exp(x):
    from jax.scipy.linalg import expm

    return expm(x)
""")
# Writes in the texts of NumPy.
_WRITE = re.compile(r"^( +)(?!inside)(\w+)\[(.*)\] = (.*)$", re.M)
_ADDED = re.compile(r"^( +)np\.add\.at\((\w+), ([\w()]+), (.*)\)$", re.M)
_WARNS = re.compile(r"^    with np\.errstate.*\n((?:        .*\n?)+)", re.M)
_IN_PLACE = re.compile(r"\.at\(|vectorize|\.lib\.")


def _own(function: str) -> str | None:
    """The text of a helper function; None where JAX cannot trace it."""
    if function in OWN:
        return OWN[function]
    text = HELPERS[function]
    text = _WARNS.sub(lambda found: found[1].replace("        ", "    "), text)
    text = _WRITE.sub(r"\1\2 = \2.at[\3].set(\4)", text)
    text = _ADDED.sub(r"\1\2 = \2.at[\3].add(\4)", text)
    return None if _IN_PLACE.search(text) else text


HEADER = "import jax\nimport jax.numpy as jnp\n"
WIDE = 'jax.config.update("jax_enable_x64", True)  # JAX computes in float32 otherwise'


class JaxPrinter(NumpyPrinter):
    """Prints expressions as NumPy code, in which `program` then puts JAX's module names."""

    def call(
        self, function: str, args: list[Piece], options: Iterable[tuple[str, Any]] = ()
    ) -> Piece:
        if function in NN and not list(options):
            return f"{NN[function]}({', '.join(a[0] for a in args)})", ATOM
        if function in MISSING or (function in HELPERS and _own(function) is None):
            raise NoExpression(f"JAX has no function for {function}")
        return super().call(function, args, options)

    def program(self, body: str) -> str:
        helpers = dict.fromkeys(_own(h) or "" for h in self.helpers)
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
        while re.search(rf"\b{own}\b", code.replace(f"{name}(", "")):  # a variable's, perhaps
            own += "_"
        if f"{name}(" in code:
            code, known[own] = code.replace(f"{name}(", f"{own}("), of_arrays(word)
    for word, text in HELPERS.items():
        name = word.rpartition(".")[2]
        if f"{name}(" in code:
            known[name] = defined(text, name)
    return run_code(re.sub(r"(?<![\w.])jnp\.", "np.", code), values, known)


__all__ = ["run_jax", "to_jax"]

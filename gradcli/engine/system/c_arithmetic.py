"""C of NumPy's exact elementwise functions, by their names: one rounding or none, so the bits are NumPy's.

`{0}` and `{1}` are the operands; `@` becomes the f of single precision.
"""

from __future__ import annotations

# The larger and the smaller of two, of which NaN is both.
MORE = "({0} > {1} | {0} != {0}) ? {0} : {1}"
LESS = "({0} < {1} | {0} != {0}) ? {0} : {1}"
# Of numbers of any kind.
EXACT = {
    **{"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "negative": "-{0}"},
    **{"greater": "{0} > {1}", "less": "{0} < {1}", "greater_equal": "{0} >= {1}"},
    **{"less_equal": "{0} <= {1}", "equal": "{0} == {1}", "not_equal": "{0} != {1}"},
    **{"logical_and": "({0} != 0) & ({1} != 0)", "logical_or": "({0} != 0) | ({1} != 0)"},
    **{"logical_xor": "({0} != 0) != ({1} != 0)", "logical_not": "{0} == 0"},
    **{"bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}"},
    **{"maximum": MORE, "minimum": LESS, "positive": "{0}", "square": "{0} * {0}"},
}
# Of real numbers.
REAL = {
    **{"divide": "{0} / {1}", "reciprocal": "1 / {0}", "sqrt": "sqrt@({0})"},
    **{n: f"{c}@({{0}})" for n, c in [("absolute", "fabs"), ("fabs", "fabs"), ("rint", "rint")]},
    **{n: f"{n}@({{0}})" for n in ("floor", "ceil", "trunc")},
    **{"copysign": "copysign@({0}, {1})", "isnan": "{0} != {0}"},
    **{"isinf": "fabs@({0}) == INFINITY", "isfinite": "fabs@({0}) < INFINITY"},
    "fmax": "({0} > {1} | {1} != {1}) ? {0} : {1}",
    "fmin": "({0} < {1} | {1} != {1}) ? {0} : {1}",
    "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0}",
    "heaviside": "{0} != {0} ? {0} : {0} == 0 ? {1} : {0} > 0 ? 1 : 0",
}

"""What usually helps when an operation gives NaN or infinity, by the name of its node."""

from __future__ import annotations

import re

_SMALL = "1e-12"

REMEDIES = {
    "Sqrt": f"sqrt has an infinite slope at 0 and no value below: sqrt(x + {_SMALL}), or "
    f"sqrt(clamp(x, min={_SMALL}))",
    "Rsqrt": f"rsqrt is infinite at 0: rsqrt(x + {_SMALL})",
    "Log": f"log is -inf at 0 and NaN below: log(clamp(x, min={_SMALL})), or log1p, xlogy, "
    "log_softmax, logsumexp, whichever was meant",
    "Log1p": "log1p is -inf at -1 and NaN below: clamp its input above -1",
    "Exp": "exp overflows above 709 (float32: 88): subtract the maximum first, or use "
    "log_softmax, softmax, logsumexp, sigmoid, softplus",
    "Exp2": "exp2 overflows above 1023 (float32: 127): scale its input down",
    "Expm1": "expm1 overflows above 709 (float32: 88): scale its input down",
    "Sinh": "it overflows for large inputs: scale them down",
    "Div": "a denominator of 0: choose a safe one before dividing, x / where(d == 0, 1, d), or "
    f"add {_SMALL}",
    "Reciprocal": f"a denominator of 0: reciprocal(x + {_SMALL}), or choose a safe one with where "
    "before dividing",
    "Pow": "a power below 1 has an infinite slope at 0, a fractional one is NaN below 0: "
    f"clamp(x, min={_SMALL})**p",
    "Asin": "the slope is infinite at -1 and 1: clamp the input a little inside",
    "Acosh": "the slope is infinite at 1: clamp the input a little above",
    "Atanh": "it is infinite at -1 and 1: clamp the input a little inside",
    "Atan2": "atan2 has no gradient at (0, 0): keep one argument away from 0",
    "Tan": "tan is infinite at odd multiples of pi/2: keep the input away from them",
    "Norm": f"the norm has no gradient at 0: sqrt(sum(x**2) + {_SMALL})",
    "Std": f"std has no gradient where all elements are equal: sqrt(var(x) + {_SMALL})",
    "Var": "one element has no unbiased variance: more elements, or correction=0",
    "Mean": "the mean of no elements is NaN: check the shape",
    "Logit": "logit is infinite at 0 and 1: logit(x, eps=1e-6)",
    "Xlogy": f"the slope is infinite where y is 0: clamp(y, min={_SMALL})",
    "Lgamma": "lgamma is infinite at 0 and at negative integers: keep the input positive",
    "Digamma": "digamma is infinite at 0 and at negative integers: keep the input positive",
    "Softmax": "a row that is -inf throughout has no softmax: keep one finite entry a row",
    "Logsumexp": "a row that is -inf throughout has no gradient: keep one finite entry a row",
    "Inverse": "the matrix is singular or nearly so: add a small multiple of the identity",
    "Eigh": "eigenvalues that are equal have no gradient of their eigenvectors: perturb the matrix",
    "Cumprod": "its gradient divides by elements: keep 0 out, or sum logarithms instead",
    "Where": "where sends 0 into the branch not taken, and 0 * inf is NaN there: make the input "
    "safe first, where(c, f(where(c, x, 1)), 0)",
    "Mul": "0 * inf is NaN, and large times large overflows: look at the operands above",
    "Sum": "inf - inf is NaN, and large sums overflow: look at the input above",
}
_ALIKE = {
    "Log2": "Log",
    "Log10": "Log",
    "Cosh": "Sinh",
    "Acos": "Asin",
    "LinalgVectorNorm": "Norm",
    "LogSoftmax": "Softmax",
    "LinalgInvEx": "Inverse",
    "LinalgSolveEx": "Inverse",
    "LinalgDet": "Inverse",
    "LinalgSlogdet": "Inverse",
    "LinalgEigh": "Eigh",
    "Remainder": "Div",
    "Fmod": "Div",
    "Prod": "Mul",
    "Mm": "Mul",
    "Mv": "Mul",
    "Bmm": "Mul",
    "Dot": "Mul",
    "Add": "Sum",
    "Sub": "Sum",
}
OTHERWISE = "look at the values and gradients: gradcli graph EXPR --values --grads"


def remedy(name: str) -> str:
    """Return what usually helps for a node of this name."""
    stem = re.sub(r"Backward\d*$", "", name).lstrip("_")
    return REMEDIES.get(_ALIKE.get(stem, stem), OTHERWISE)

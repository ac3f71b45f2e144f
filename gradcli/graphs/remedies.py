"""What usually helps when an operation gives NaN or infinity, by the name of its node."""

from __future__ import annotations

import re

_SMALL = "1e-12"

REMEDIES = {
    "Sqrt": f"sqrt has an infinite slope at 0 and no value below: sqrt(x + {_SMALL}), or "
    f"sqrt(clamp(x, min={_SMALL}))",
    "Rsqrt": f"rsqrt is infinite at 0: rsqrt(x + {_SMALL})",
    "Log": f"log is -inf at 0 and NaN below: log(clamp(x, min={_SMALL})), or log1p, special.entr, "
    "log_softmax, logsumexp, whichever was meant",
    "Log1p": "log1p is -inf at -1 and NaN below: clamp its input above -1",
    "Exp": "exp overflows above 709 (float32: 88): subtract the maximum first, or use "
    "log_softmax, softmax, logsumexp, sigmoid, softplus",
    "Exp2": "exp2 overflows above 1023 (float32: 127; float16: 15): scale its input down",
    "Expm1": "expm1 overflows above 709 (float32: 88): scale its input down",
    "Sinh": "it overflows for large inputs: scale them down",
    "Div": "a denominator of 0: choose a safe one before dividing, x / where(d == 0, 1, d), or "
    f"add {_SMALL}",
    "Reciprocal": f"a denominator of 0: reciprocal(x + {_SMALL}), or choose a safe one with where "
    "before dividing",
    "Pow": "a power below 1 has an infinite slope at 0, a fractional one is NaN below 0, and by the exponent "
    "a negative base has no slope (--no-grad of a whole exponent): "
    f"clamp(x, min={_SMALL})**p",
    "PowOf": "powers of large numbers overflow: scale them down, or see what makes them so large (--norms)",
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


# The largest number of a dtype, where exp overflows, and what is small and safe to add in it.
RANGES = {
    "float16": ("65504", "11", "1e-4"),
    "bfloat16": ("3.4e38", "88", "1e-12"),
    "float32": ("3.4e38", "88", "1e-12"),
    "float64": ("1.8e308", "709", "1e-12"),
}
_OVERFLOWING = frozenset(("Mul", "Sum", "Sinh", "Expm1", "Exp", "Exp2", "PowOf"))


def remedy(name: str, dtype: str | None = None) -> str:
    """Return what usually helps for a node of this name, in the numbers of a dtype if it is known."""
    stem = _stem(name)
    kind = _ALIKE.get(stem, stem)
    text = REMEDIES.get(kind, OTHERWISE)
    if dtype not in RANGES:
        return text
    largest, exponent, small = RANGES[dtype]
    text = text.replace(_SMALL, small).replace("709 (float32: 88)", f"{exponent} in {dtype}")
    if dtype == "float16" and kind in _OVERFLOWING:
        text += f"; {dtype} ends at {largest}: compute this in float32"
    return text


def overflows(name: str) -> bool:
    """Tell whether a node of this name gives NaN or infinity where numbers have become too large."""
    stem = _stem(name)
    return _ALIKE.get(stem, stem) in _OVERFLOWING


def input_remedy(wrong: str) -> str:
    """Return what usually helps where a value that comes from outside is not finite."""
    return (
        f"the computation did not make this {wrong}: look at where the data comes from, or clean it "
        "first, where(isfinite(x), x, 0) or nan_to_num(x)"
    )


def _stem(name: str) -> str:
    return re.sub(r"Backward\d*$", "", name).lstrip("_")


_SATURATED = (
    "its input is so large that it is flat there: smaller initial weights, a normalisation before it, or "
    "another activation (relu, gelu)"
)
_DEAD = (
    "all of its inputs are where its slope is 0: a smaller learning rate, another initialisation, "
    "leaky_relu or gelu"
)
_WEIGHTS = (
    "the weights are that small: initialise them for the activation (kaiming_normal_, "
    "xavier_normal_), normalise, or add a residual connection"
)
VANISHING = {
    **dict.fromkeys(
        ("Sigmoid", "Tanh", "Erf", "LogSigmoid", "Hardtanh", "Hardsigmoid"), _SATURATED
    ),
    **dict.fromkeys(("Relu", "Threshold", "Gelu", "Silu", "Elu", "Hardswish"), _DEAD),
    **dict.fromkeys(
        ("Mm", "Addmm", "Bmm", "Mv", "Dot", "Convolution", "Linear", "Conv2d"), _WEIGHTS
    ),
    "Softmax": "one score is far above the others: divide scores by sqrt(d), or a temperature",
    "LogSoftmax": "the prediction is certain already: label smoothing, or nothing is wrong",
    "Clamp": "outside of its bounds the slope is 0: widen them, or use a soft bound (tanh)",
    "Mul": "a factor is that small: look at its value (--values)",
    "Div": "the denominator is that large: look at its value (--values)",
    "Pow": "a power above 1 is flat near 0: look at the value (--values)",
}
EXPLODING = {
    **dict.fromkeys(("Div", "Reciprocal", "Log", "Sqrt", "Rsqrt", "Norm"), "the value is near 0: "
                    f"add a small number first ({_SMALL}), or clamp it from below"),
    **dict.fromkeys(("Mm", "Addmm", "Bmm", "Mv", "Convolution", "Linear", "Conv2d"), "the weights "
                    "are that large: smaller initial ones, a normalisation, clip_grad_norm_"),
    "MseLoss": "predictions and targets are that far apart: scale the targets, or see what makes the "
    "predictions so large (--values)",
    "Exp": "the value is that large: subtract the maximum first, or work with logarithms",
    "Mul": "a factor is that large: scale it down, or look at its value (--values)",
}  # fmt: skip
IN_GENERAL = {
    True: "initialise for the activation, normalise (LayerNorm, BatchNorm), or add residual connections",
    False: "clip_grad_norm_, a smaller learning rate, smaller initial weights, or a normalisation",
}


def change_remedy(name: str, *, vanishes: bool) -> str:
    """Return what usually helps where a node (or a module) makes gradients vanish or explode."""
    stem = _stem(name)
    kind = stem if stem in VANISHING or stem in EXPLODING else _ALIKE.get(stem, stem)
    return (VANISHING if vanishes else EXPLODING).get(kind, IN_GENERAL[vanishes])

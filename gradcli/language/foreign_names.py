"""How functions and constants are called elsewhere: NumPy, mathematics, MATLAB, blackboards."""

from __future__ import annotations

import re
from collections.abc import Container

from gradcli.language import names

# What stands before the dot of a function's name elsewhere. Longest first where one begins another.
PREFIXES = (
    *("jax.numpy", "jax.nn", "jax.lax", "tf.math", "tf.nn", "scipy", "sympy", "numpy", "cmath"),
    *("math", "Math", "jnp", "jax", "np", "tf", "sp", "cp", "mx"),
)
PREFIXED = frozenset(prefix.partition(".")[0] for prefix in PREFIXES)
# Functions: {0} is the argument as it stands, {a} as an operand. What is no call is put in brackets.
FUNCTIONS = {
    "ln": "log({0})", "lg": "log10({0})", "ld": "log2({0})", "lb": "log2({0})",
    "tg": "tan({0})", "ctg": "1/tan({0})", "cot": "1/tan({0})", "cotan": "1/tan({0})",
    "sec": "1/cos({0})", "csc": "1/sin({0})", "cosec": "1/sin({0})",
    "arctg": "atan({0})", "arcctg": "pi/2 - atan({0})", "acot": "pi/2 - atan({0})",
    "asec": "acos(1/{a})", "arcsec": "acos(1/{a})", "acsc": "asin(1/{a})", "arccsc": "asin(1/{a})",
    "sh": "sinh({0})", "ch": "cosh({0})", "th": "tanh({0})", "coth": "1/tanh({0})",
    "cth": "1/tanh({0})", "sech": "1/cosh({0})", "csch": "1/sinh({0})",
    "arsinh": "asinh({0})", "arcosh": "acosh({0})", "artanh": "atanh({0})",
    "acoth": "atanh(1/{a})", "asech": "acosh(1/{a})", "acsch": "asinh(1/{a})",
    "binom": "exp(lgamma({a}+1) - lgamma({b}+1) - lgamma({a}-{b}+1))",
    "sqr": "{a}**2",
    **dict.fromkeys(("cbrt", "cuberoot", "cube_root"), "sign({0})*abs({0})**(1/3)"),
    "fabs": "abs({0})",
    "factorial": "exp(lgamma({a}+1))", "fact": "exp(lgamma({a}+1))", "gamma": "exp(lgamma({0}))",
    "Gamma": "exp(lgamma({0}))", "lnGamma": "lgamma({0})", "gammaln": "lgamma({0})",
    "loggamma": "lgamma({0})",
    "ceiling": "ceil({0})", "rint": "round({0})", "signum": "sign({0})",
    "logistic": "sigmoid({0})", "expit": "sigmoid({0})", "sigm": "sigmoid({0})", "swish": "silu({0})",
    "radians": "deg2rad({0})", "rad": "deg2rad({0})", "degrees": "rad2deg({0})", "conjugate": "conj({0})",
    "tr": "trace({0})", "Tr": "trace({0})", "array": "tensor({0})", "reduce_sum": "sum({*})",
    "reduce_mean": "mean({*})", "reduce_prod": "prod({*})", "average": "mean({*})",
    "avg": "mean({*})", "product": "prod({*})", "inv": "linalg.inv({0})",
    "power": "{a}**{b}", "mod": "remainder({*})", "nanmax": "amax({*})", "nanmin": "amin({*})",
    "trapezium": "trapezoid({*})",
    **dict.fromkeys(
        ("norm.cdf", "stats.norm.cdf", "normcdf", "norm_cdf", "normal_cdf"), "special.ndtr({0})"
    ),
    **dict.fromkeys(
        ("norm.ppf", "stats.norm.ppf", "norminv", "norm_ppf"), "special.ndtri({0})"
    ),
    **dict.fromkeys(
        ("norm.pdf", "stats.norm.pdf", "normpdf", "norm_pdf"), "exp(-{a}**2/2)/sqrt(2*pi)"
    ), }  # fmt: skip
# Functions of distributions that are letters or words of other things, too: a hint names what they may be.
DISTRIBUTIONS = {
    **dict.fromkeys(
        ("N", "Phi", "Φ", "cdf", "CDF", "Ncdf", "ncdf", "cnd", "CND", "normsdist", "NORMSDIST"),
        ("the normal distribution function", "special.ndtr"),
    ),
    **dict.fromkeys(
        ("ppf", "PPF", "probit", "normsinv", "NORMSINV"),
        ("the inverse of the normal distribution function", "special.ndtri"),
    ),
}  # fmt: skip
# Curves through points, which are expressions here.
CURVES = frozenset(
    "interp interp1d Interpolate CubicSpline cubic_spline spline UnivariateSpline".split()
)
_BETWEEN = (
    "between points of columns T and r: i = searchsorted(T, t) - 1; "
    "lerp(r[i], r[i+1], (t - T[i])/(T[i+1] - T[i])); docs/recipes.md has a spline"
)
# Subjects that people look for, by the functions that have to do with them.
SUBJECTS = {
    "gauss": "randn normal erf nn.functional.gelu nn.functional.gaussian_nll_loss",
    "integral": "trapezoid cumulative_trapezoid cumsum", "derivative": "gradient diff",
    **dict.fromkeys(("cdf", "normal cdf", "norm.cdf", "phi"), "special.ndtr"),
    **dict.fromkeys(("ppf", "quantile function", "probit", "norm.ppf"), "special.ndtri"),
    "random": "rand randn randint randperm normal bernoulli",
    "interpolation": "lerp nn.functional.interpolate nn.functional.grid_sample",
}  # fmt: skip
CONSTANTS = {
    **dict.fromkeys(("π", "PI", "Pi"), "pi"),
    **dict.fromkeys(("∞", "infinity", "Infinity", "INFINITY", "INF", "Inf", "oo"), "inf"),
    **dict.fromkeys(("NaN", "NAN", "Nan"), "nan"),
}
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_ATOM = r"[\w.]+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?"


def with_distributions(text: str, own: Container[str] = ()) -> str:
    """A text whose calls of distributions, `N(d1)`, are written as here: they would be the next error."""
    for name, (_, here) in DISTRIBUTIONS.items():
        if name not in own:
            text = re.sub(rf"(?<![\w.]){re.escape(name)}\(", f"{here}(", text)
    return text


def distribution_hint(name: str, source: str) -> str | None:
    """What is to be written for a function of a distribution that a text calls by a name of its own."""
    # --math makes a product of `N(-x)` where nothing is known of N: `N*(-x)`
    if name in CURVES:
        return _BETWEEN
    call = rf"(?<![\w.]){re.escape(name)}\s*\*?\s*\("
    if name not in DISTRIBUTIONS or re.search(call, source) is None:
        return None
    what, here = DISTRIBUTIONS[name]
    written = re.sub(call, f"{here}(", source)
    shown = f"here: {written}" if len(written) <= 100 and "\n" not in written else f"as {here}(x)"
    return f"{what} is {here}, {shown}"


def unknown_of(prefix: str, source: str) -> str | None:
    """The function behind a prefix that neither we nor the table above know: interp of `np.interp(…)`."""
    found = re.findall(rf"(?<![\w.]){re.escape(prefix)}\.((?:\w+\.)*\w+)\s*\(", source)
    for path in found:
        word = path.rpartition(".")[2]
        if path not in FUNCTIONS and not is_function(word) and known_as(path) is None:
            return str(word)
    return None


def is_function(name: str) -> bool:
    """Whether a name is a function's, here or elsewhere."""
    from gradcli.engine.registry import table

    if name in FUNCTIONS:
        return True
    return names.is_function(name) and name not in table.CONSTANTS


def known_as(name: str) -> str | None:
    """The known function that a dotted name means whose spelling is another's; itself if it is known."""
    for spelling in (name, name.rpartition(".")[2], name.lower(), f"nn.functional.{name}"):
        bare = spelling.removeprefix("torch.")
        if names.is_known(bare) and bare not in names.LETTERS:
            return spelling if spelling == name else bare
    return None


def bare(text: str) -> str:
    """A text without the brackets around the whole of it."""
    text = text.strip()
    if text[:1] != "(" or text[-1:] != ")":
        return text
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth and i < len(text) - 1:
            return text
    return text[1:-1].strip() if "," not in text else text


def _operand(text: str) -> str:
    """A text as an operand: in brackets unless it is a name, a number, a call or in brackets."""
    text = text.strip()
    return (
        text
        if re.fullmatch(_ATOM, text) or text[-1:] in "'\"" or bare(text) != text
        else f"({text})"
    )


def filled(template: str, arguments: list[str]) -> str:
    plain = [bare(a) for a in arguments] or [""]
    first, second = plain[0], plain[min(1, len(plain) - 1)]
    out = template.replace("{*}", ", ".join(plain)).replace("{0}", first)
    return out.replace("{a}", _operand(first)).replace("{b}", _operand(second))


def called(
    name: str, arguments: list[str], own: Container[str] = (), *, elementwise: bool = False
) -> str:
    """The call of a function, here or elsewhere, as it is written here. own: names that mean other things."""
    short = name.removeprefix("torch.")
    plain = [a for a in arguments if not re.match(r"\w+\s*=(?!=)", a)]
    if short == "log" and len(arguments) == 2 == len(plain):
        if arguments[1] in ("2", "10"):
            return f"log{arguments[1]}({arguments[0]})"
        return f"log({bare(arguments[0])})/log({bare(arguments[1])})"
    if short in _OF_MANY and len(plain) == len(arguments) and _is_list(arguments):
        return called(short, [_gathered(arguments)], own, elementwise=elementwise)
    if elementwise and short in ("max", "min") and len(plain) == len(arguments) == 2:
        # `max(x, 0)` of NumPy's or Python's kind is a clamp: written so, its derivative has no tie to
        # decide.
        for number, other in (arguments[::-1], arguments):
            if _number(number):
                return f"clamp({other}, {'min' if short == 'max' else 'max'}={number})"
        return f"{short}imum({', '.join(arguments)})"
    if short in FUNCTIONS and short not in own and not names.is_known(short) and arguments:
        return filled(FUNCTIONS[short], arguments)
    return f"{name}({', '.join(arguments)})"


_OF_MANY = frozenset("max min mean sum prod median std var norm average avg".split())


def _is_list(arguments: list[str]) -> bool:
    """Whether the arguments are the values themselves: `mean(1, 2, 3)`."""
    if len(arguments) < 2 or arguments[-1] in ("True", "False"):
        return False
    return all(map(_number, arguments)) or (
        len(arguments) > 2 and not any(a[:1] in "[('\"" or _number(a) for a in arguments[1:])
    )


def _number(text: str) -> bool:
    return re.fullmatch(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", text) is not None


def _gathered(arguments: list[str]) -> str:
    """Several values as one: a tensor of numbers, or a stack of tensors."""
    if all(map(_number, arguments)):
        return f"tensor([{', '.join(a if {'.', 'e'} & set(a) else f'{a}.' for a in arguments)}])"
    return f"stack([{', '.join(arguments)}])"

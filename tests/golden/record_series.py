"""Record derivatives of orders 0 to 4 of functions of one number, by mpmath to 50 digits.

python -m tests.golden.record_series   needs torch 2.13.0 and mpmath

writes tests/golden/series.json. The derivatives are Cauchy's integrals over a small circle around the point,
which no removable point disturbs. The functions are the operator table at regular points, in its tails and at
its edges, and combinations of it at removable points. Beside them stand those of torch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mpmath as mp

DIGITS, CIRCLE, ORDERS = 90, 64, 4

UNARY: dict[str, tuple[str, list[float]]] = {
    "exp(x)": ("mp.exp(x)", [0, -700, 3.5]),
    "exp2(x)": ("mp.mpf(2)**x", [0, -1000, 1000.5]),
    "expm1(x)": ("mp.expm1(x)", [0, 1e-8, -40]),
    "log(x)": ("mp.log(x)", [1, 1e-60, 1e60]),
    "log1p(x)": ("mp.log1p(x)", [0, 1e-10, 1e15]),
    "log2(x)": ("mp.log(x)/mp.log(2)", [1, 0.3]),
    "log10(x)": ("mp.log(x)/mp.log(10)", [1, 30]),
    "sqrt(x)": ("mp.sqrt(x)", [2, 1e-10, 1e30]),
    "rsqrt(x)": ("1/mp.sqrt(x)", [2, 1e10]),
    "sin(x)": ("mp.sin(x)", [0, 2, 100]),
    "cos(x)": ("mp.cos(x)", [0, 1, 50]),
    "tan(x)": ("mp.tan(x)", [0, 1, 1.5]),
    "asin(x)": ("mp.asin(x)", [0, 0.5, 0.99]),
    "acos(x)": ("mp.acos(x)", [0, -0.7]),
    "atan(x)": ("mp.atan(x)", [0, 2, 1e6]),
    "sinh(x)": ("mp.sinh(x)", [0, 2, -20]),
    "cosh(x)": ("mp.cosh(x)", [0, 2, 20]),
    "tanh(x)": ("mp.tanh(x)", [0, 0.5, 20, -25]),
    "asinh(x)": ("mp.asinh(x)", [0, 2, 1e5]),
    "acosh(x)": ("mp.acosh(x)", [1.5, 100]),
    "atanh(x)": ("mp.atanh(x)", [0, 0.5, -0.9]),
    "sigmoid(x)": ("1/(1 + mp.exp(-x))", [0, 1, 40, -40, -700]),
    "nn.functional.softplus(x)": ("mp.log(1 + mp.exp(x))", [0, 1, 19, -40]),
    "nn.functional.logsigmoid(x)": ("-mp.log(1 + mp.exp(-x))", [0, 40, -40]),
    "nn.functional.silu(x)": ("x/(1 + mp.exp(-x))", [0, 1, 40, -40]),
    "nn.functional.gelu(x)": ("x*mp.erfc(-x/mp.sqrt(2))/2", [0, 1, -8, -20]),
    "nn.functional.mish(x)": ("x*mp.tanh(mp.log(1 + mp.exp(x)))", [0, 1, 30, -20]),
    "nn.functional.tanhshrink(x)": ("x - mp.tanh(x)", [0.5, 2]),
    "nn.functional.softsign(x)": ("x/(1 + x)", [0.5, 100]),
    "erf(x)": ("mp.erf(x)", [0, 1, 5]),
    "erfc(x)": ("mp.erfc(x)", [0, 1, 10]),
    "special.erfcx(x)": ("mp.exp(x**2)*mp.erfc(x)", [0, 1, 3]),
    "special.ndtr(x)": ("mp.erfc(-x/mp.sqrt(2))/2", [0, -10, 3]),
    "special.log_ndtr(x)": ("mp.log(mp.erfc(-x/mp.sqrt(2))/2)", [0, 2]),
    "lgamma(x)": ("mp.loggamma(x)", [0.5, 2, 100]),
    "digamma(x)": ("mp.digamma(x)", [0.5, 2, 50]),
    "polygamma(2, x)": ("mp.polygamma(2, x)", [0.7, 3]),
    "sinc(x)": ("mp.sincpi(x)", [0, 1e-5, 0.5, 3.5]),
    "special.i0(x)": ("mp.besseli(0, x)", [0, 1, 5, 100]),
    "special.i1(x)": ("mp.besseli(1, x)", [0, 1e-6, 3, -2]),
    "special.i0e(x)": ("mp.exp(-x)*mp.besseli(0, x)", [1, 5]),
    "special.i1e(x)": ("mp.exp(-x)*mp.besseli(1, x)", [1, 5]),
    "special.bessel_j0(x)": ("mp.besselj(0, x)", [0, 2, 10]),
    "special.bessel_j1(x)": ("mp.besselj(1, x)", [0, 1e-5, 4]),
    "special.bessel_y0(x)": ("mp.bessely(0, x)", [1, 5]),
    "special.bessel_y1(x)": ("mp.bessely(1, x)", [1, 5]),
    "special.modified_bessel_k0(x)": ("mp.besselk(0, x)", [1, 5]),
    "special.modified_bessel_k1(x)": ("mp.besselk(1, x)", [1, 5]),
    "special.entr(x)": ("-x*mp.log(x)", [0.5, 1e-5]),
    "logit(x)": ("mp.log(x/(1 - x))", [0.5, 0.1]),
    "reciprocal(x)": ("1/x", [1e-5, -3]),
    "x**0.5": ("mp.sqrt(x)", [3]),
    "x**-2.5": ("x**mp.mpf(-2.5)", [2]),
    "x**7": ("x**7", [0, -1.5]),
    "2**x": ("mp.mpf(2)**x", [0, -3.5]),
    "x**x": ("x**x", [1, 2.5]),
    "special.xlog1py(x, x)": ("x*mp.log1p(x)", [0.5, 0]),
    "square(x)": ("x**2", [0, 3]),
    "deg2rad(x)": ("x*mp.pi/180", [1]),
    "nn.functional.selu(x)": ("mp.mpf('1.0507009873554804934193349852946')*x", [1.5]),
    "nn.functional.elu(x)": ("mp.expm1(x)", [-1.5, -40]),
    "nn.functional.celu(x)": ("mp.expm1(x)", [-0.7]),
    "nn.functional.hardswish(x)": ("x*(x + 3)/6", [1]),
    "special.log1p(x)*special.expm1(x)": ("mp.log1p(x)*mp.expm1(x)", [0]),
    "arctanh(x)*arcsin(x)": ("mp.atanh(x)*mp.asin(x)", [0]),
    "exp(sin(x))": ("mp.exp(mp.sin(x))", [0, 2]),
    "float_power(x, 3)": ("x**3", [0, 2]),
}

REMOVABLE: dict[str, tuple[str, list[float]]] = {
    "sin(x)/x": ("mp.sin(x)/x", [0]),
    "tan(x)/x": ("mp.tan(x)/x", [0]),
    "sinh(x)/x": ("mp.sinh(x)/x", [0]),
    "tanh(x)/x": ("mp.tanh(x)/x", [0]),
    "asin(x)/x": ("mp.asin(x)/x", [0]),
    "atan(x)/x": ("mp.atan(x)/x", [0]),
    "asinh(x)/x": ("mp.asinh(x)/x", [0]),
    "atanh(x)/x": ("mp.atanh(x)/x", [0]),
    "erf(x)/x": ("mp.erf(x)/x", [0]),
    "expm1(x)/x": ("mp.expm1(x)/x", [0]),
    "log1p(x)/x": ("mp.log1p(x)/x", [0]),
    "(exp(x) - 1)/x": ("(mp.exp(x) - 1)/x", [0]),
    "x/(exp(x) - 1)": ("x/(mp.exp(x) - 1)", [0]),
    "x/sin(x)": ("x/mp.sin(x)", [0]),
    "x/tan(x)": ("x/mp.tan(x)", [0]),
    "x/log(1 + x)": ("x/mp.log(1 + x)", [0]),
    "x/tanh(x)": ("x/mp.tanh(x)", [0]),
    "(1 - cos(x))/x**2": ("(1 - mp.cos(x))/x**2", [0]),
    "(1 - cos(x))/x": ("(1 - mp.cos(x))/x", [0]),
    "(x - sin(x))/x**3": ("(x - mp.sin(x))/x**3", [0]),
    "(tan(x) - x)/x**3": ("(mp.tan(x) - x)/x**3", [0]),
    "(atan(x) - x)/x**3": ("(mp.atan(x) - x)/x**3", [0]),
    "(exp(x) - 1 - x)/x**2": ("(mp.exp(x) - 1 - x)/x**2", [0]),
    "(exp(x) - 1 - x - x**2/2)/x**3": ("(mp.exp(x) - 1 - x - x**2/2)/x**3", [0]),
    "(cosh(x) - 1)/x**2": ("(mp.cosh(x) - 1)/x**2", [0]),
    "(log1p(x) - x)/x**2": ("(mp.log1p(x) - x)/x**2", [0]),
    "(sqrt(1 + x) - 1)/x": ("(mp.sqrt(1 + x) - 1)/x", [0]),
    "((1 + x)**0.25 - 1)/x": ("((1 + x)**mp.mpf('0.25') - 1)/x", [0]),
    "sin(3*x)/sin(2*x)": ("mp.sin(3*x)/mp.sin(2*x)", [0]),
    "sin(x)**2/x**2": ("mp.sin(x)**2/x**2", [0]),
    "(sin(x) - tan(x))/x**3": ("(mp.sin(x) - mp.tan(x))/x**3", [0]),
    "1/x - 1/sin(x)": ("1/x - 1/mp.sin(x)", [0]),
    "1/x - 1/(exp(x) - 1)": ("1/x - 1/(mp.exp(x) - 1)", [0]),
    "1/x**2 - 1/sin(x)**2": ("1/x**2 - 1/mp.sin(x)**2", [0]),
    "1/tanh(x) - 1/x": ("1/mp.tanh(x) - 1/x", [0]),
    "(x**3 - 8)/(x - 2)": ("(x**3 - 8)/(x - 2)", [2]),
    "(x**2 - 1)/(x - 1)": ("(x**2 - 1)/(x - 1)", [1]),
    "log(x)/(x - 1)": ("mp.log(x)/(x - 1)", [1]),
    "(x - 1)/log(x)": ("(x - 1)/mp.log(x)", [1]),
    "(sqrt(x) - 2)/(x - 4)": ("(mp.sqrt(x) - 2)/(x - 4)", [4]),
    "(x**4 - 1)/(x**2 - 1)": ("(x**4 - 1)/(x**2 - 1)", [1, -1]),
    "(exp(x) - exp(2*x))/x": ("(mp.exp(x) - mp.exp(2*x))/x", [0]),
    "(cos(x) - cos(2*x))/x**2": ("(mp.cos(x) - mp.cos(2*x))/x**2", [0]),
    "(asin(x) - x)/x**3": ("(mp.asin(x) - x)/x**3", [0]),
    "(sinh(x) - sin(x))/x**3": ("(mp.sinh(x) - mp.sin(x))/x**3", [0]),
    "(x*cos(x) - sin(x))/x**2": ("(x*mp.cos(x) - mp.sin(x))/x**2", [0]),
    "(sin(x) - x*cos(x))/x**3": ("(mp.sin(x) - x*mp.cos(x))/x**3", [0]),
    "special.i1(x)/x": ("mp.besseli(1, x)/x", [0]),
    "special.bessel_j1(x)/x": ("mp.besselj(1, x)/x", [0]),
    "(special.i0(x) - 1)/x**2": ("(mp.besseli(0, x) - 1)/x**2", [0]),
    "(1 - special.bessel_j0(x))/x**2": ("(1 - mp.besselj(0, x))/x**2", [0]),
    "exp(-x**2)*sin(x)/x": ("mp.exp(-x**2)*mp.sin(x)/x", [0]),
    "sqrt(sin(x)/x)": ("mp.sqrt(mp.sin(x)/x)", [0]),
    "log(sin(x)/x)": ("mp.log(mp.sin(x)/x)", [0]),
    "exp((cos(x) - 1)/x)": ("mp.exp((mp.cos(x) - 1)/x)", [0]),
    "(sin(x)/x)**0.5 + x": ("mp.sqrt(mp.sin(x)/x) + x", [0]),
    "cos(sqrt(x**2))": ("mp.cos(x)", [0]),
    "sin(sqrt(x**2))/sqrt(x**2)": ("mp.sin(x)/x", [0]),
    "sqrt(x**2)**2": ("x**2", [0]),
    "sqrt(x**4 + x**6)": ("x**2*mp.sqrt(1 + x**2)", [0]),
    "sqrt(x**8)": ("x**4", [0]),
    "abs(x)**2": ("x**2", [0]),
    "abs(x**2)": ("x**2", [0]),
    "abs(x)*abs(x)*x": ("x**3", [0]),
    "norm(stack([x, 2*x]))**2": ("5*x**2", [0, 0.3]),
    "norm(stack([x, sin(x)]))**2": ("x**2 + mp.sin(x)**2", [0]),
    "exp(-norm(stack([x, 2*x, -x]))**2)": ("mp.exp(-6*x**2)", [0]),
    "hypot(x, 2*x)**2": ("5*x**2", [0]),
    "hypot(x, x**2)**2": ("x**2 + x**4", [0]),
    "1/(1 + hypot(x, x)**2)": ("1/(1 + 2*x**2)", [0]),
    "std(stack([x, 2*x, 3*x]))**2": ("x**2", [0, 0.7]),
    "std(stack([1 + x, 1 - x, 1 + 0*x]))**2": ("x**2", [0]),
    "var(stack([x, x**2, sin(x)]))/x**2": (
        "((x - (x + x**2 + mp.sin(x))/3)**2 + (x**2 - (x + x**2 + mp.sin(x))/3)**2"
        " + (mp.sin(x) - (x + x**2 + mp.sin(x))/3)**2)/2/x**2",
        [0],
    ),
    "dist(stack([x, x]), stack([2*x, 0*x]))**2": ("2*x**2", [0]),
    "maximum(x, -x)**2": ("x**2", [0]),
    "maximum(x, 2*x) + minimum(x, 2*x)": ("3*x", [0]),
    "relu(x) - relu(-x)": ("x", [0]),
    "relu(x)**2 + relu(-x)**2": ("x**2", [0]),
    "where(x != 0, sin(x)/x, 1)": ("mp.sin(x)/x", [0]),
    "where(x == 0, 1, expm1(x)/x)": ("mp.expm1(x)/x", [0]),
    "where(abs(x) > 0, (1 - cos(x))/x**2, 0.5)": ("(1 - mp.cos(x))/x**2", [0]),
    "special.xlogy(x - x, x) + x": ("x", [0.5]),
}

MATRICES: dict[str, tuple[str, list[float]]] = {
    "det(stack([stack([x, 2*x]), stack([3*x, 4*x])]))": ("-2*x**2", [0, 0.5]),
    "det(stack([stack([x, x]), stack([x, x + x**2])]))": ("x**3", [0]),
    "det(stack([stack([1 + x, 2 + x**2]), stack([2 + 0*x, 4 + x])]))": (
        "(1 + x)*(4 + x) - 2*(2 + x**2)",
        [0],
    ),
    "prod(stack([x, x + 1, x - 1]))": ("x*(x + 1)*(x - 1)", [0, 1]),
    "prod(stack([x, x, x]))": ("x**3", [0]),
    "prod(stack([x, sin(x), 2*x, 1 + x]))": ("2*x**2*mp.sin(x)*(1 + x)", [0]),
    "cumprod(stack([x, 1 + x, x]), 0).sum()": ("x + x*(1 + x) + x**2*(1 + x)", [0]),
    "linalg.eigvalsh(stack([stack([1 + x, x]), stack([x, 1 - x])])).sum()": (
        "mp.mpf(2) + 0*x",
        [0],
    ),
    "(linalg.eigvalsh(stack([stack([1 + x, x]), stack([x, 1 - x])]))**2).sum()": (
        "2 + 4*x**2",
        [0],
    ),
    "linalg.eigvalsh(stack([stack([2 + x, 1 + 0*x]), stack([1 + 0*x, 2 - x])]))[1]": (
        "2 + mp.sqrt(1 + x**2)",
        [0, 0.5],
    ),
    "linalg.svdvals(stack([stack([1 + x, 0*x]), stack([0*x, 2 + x])])).sum()": ("3 + 2*x", [0]),
    "trace(linalg.inv(stack([stack([1 + x, x]), stack([x, 2 + x])])))": (
        "(3 + 2*x)/((1 + x)*(2 + x) - x**2)",
        [0.3],
    ),
    "logsumexp(stack([x, 2*x]), 0)": ("mp.log(mp.exp(x) + mp.exp(2*x))", [0, 40, -40]),
    "logsumexp(stack([x, 0*x, -x]), 0)": ("mp.log(mp.exp(x) + 1 + mp.exp(-x))", [0, 30]),
    "softmax(stack([x, 0*x]), 0)[0]": ("1/(1 + mp.exp(-x))", [0, 40, -40]),
    "softmax(stack([x, 0*x, 2*x]), 0)[1]": ("1/(1 + mp.exp(x) + mp.exp(2*x))", [0, 30]),
    "log_softmax(stack([x, 0*x]), 0)[0]": ("-mp.log(1 + mp.exp(-x))", [0, 40, -40]),
    "nn.functional.cross_entropy(stack([x, 0*x, -x]), tensor(0))": (
        "mp.log(1 + mp.exp(-x) + mp.exp(-2*x))",
        [0, 40],
    ),
    "nn.functional.binary_cross_entropy_with_logits(x, tensor(1.))": (
        "mp.log(1 + mp.exp(-x))",
        [0, 40],
    ),
    "logaddexp(x, 2*x)": ("mp.log(mp.exp(x) + mp.exp(2*x))", [0, 50]),
    "logaddexp(x, tensor(0.))": ("mp.log1p(mp.exp(x))", [0, 700, -700]),
    "logcumsumexp(stack([x, 2*x, 0*x]), 0)[2]": ("mp.log(mp.exp(x) + mp.exp(2*x) + 1)", [0, 40]),
    "nn.functional.normalize(stack([x, 1 + 0*x]), dim=0)[1]": ("1/mp.sqrt(1 + x**2)", [0, 0.5]),
    "nn.functional.mse_loss(stack([x, 2*x]), stack([0*x, sin(x)]))": (
        "(x**2 + (2*x - mp.sin(x))**2)/2",
        [0],
    ),
    "nn.functional.cosine_similarity(stack([x, 1 + 0*x]), stack([1 + 0*x, x]), 0)": (
        "2*x/(1 + x**2)",
        [0, 0.5],
    ),
    "stack([x, sin(x)]) @ stack([cos(x), x])": ("x*mp.cos(x) + mp.sin(x)*x", [0, 1]),
    "matrix_exp(stack([stack([x, 0*x]), stack([0*x, -x])])).sum()": ("mp.exp(x) + mp.exp(-x)", [0]),
    "cumsum(stack([x, x**2, x**3]), 0).prod()": ("x*(x + x**2)*(x + x**2 + x**3)", [0]),
    "atan2(sin(x), cos(x))": ("x", [0, 1]),
    "xlogy(x, x)": ("x*mp.log(x)", [0.5]),
}


def derivatives(text: str, point: float) -> list[str]:
    """f and its derivatives at the point, 30 digits each."""
    mp.mp.dps = DIGITS
    function = eval(f"lambda x: {text}", {"mp": mp})
    x = mp.mpf(point)
    radius = mp.mpf(10) ** -3 * (min(abs(x), 1) if point else 1)
    ring = [mp.expjpi(mp.mpf(2) * k / CIRCLE) for k in range(CIRCLE)]
    values = [function(x + radius * w) for w in ring]
    found = []
    for k in range(ORDERS + 1):
        total = mp.fsum([v * w**-k for v, w in zip(values, ring, strict=True)]) / CIRCLE
        value = mp.re(total) * mp.factorial(k) / radius**k
        size = max(abs(v) for v in values) * mp.factorial(k) / radius**k
        found.append("0" if abs(value) < size * mp.mpf(10) ** -60 else mp.nstr(value, 30))
    return found


def by_torch(source: str, point: float) -> list[str] | None:
    """What nested backward passes of torch give, orders 0 to 4; None where it has no derivative."""
    import torch

    torch.set_default_dtype(torch.float64)
    x = torch.tensor(float(point), requires_grad=True)
    names = {n: getattr(torch, n) for n in dir(torch) if not n.startswith("_")}
    names["relu"] = torch.relu
    try:
        value = eval(source, {**names, "x": x})
        found = [repr(value.item())]
        for k in range(1, ORDERS + 1):
            if value is None or not value.requires_grad:
                found.append("0.0" if k > 1 else "nan")
                continue
            (value,) = torch.autograd.grad(value, x, create_graph=k < ORDERS, allow_unused=True)
            found.append("0.0" if value is None else repr(value.item()))
    except (RuntimeError, TypeError, AttributeError):
        return None
    return found


def main() -> None:
    """Write what was found."""
    rows: list[Any] = []
    for family in (UNARY, REMOVABLE, MATRICES):
        for source, (text, points) in family.items():
            for point in points:
                exact, torchs = derivatives(text, point), by_torch(source, point)
                rows.append([source, float(point), exact, torchs])
    data = {"by": f"mpmath {mp.__version__}", "digits": DIGITS, "rows": rows}
    lines = ",\n".join(json.dumps(row) for row in rows)
    head = json.dumps({k: v for k, v in data.items() if k != "rows"})[:-1]
    Path(__file__).with_name("series.json").write_text(f'{head}, "rows": [\n{lines}\n]}}\n')
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    main()

"""The graphs and the formulas that every reader is asked with."""

from __future__ import annotations

# Programs by about how many nodes their graphs have; each with its variables.
COMB = "s = x\nfor i in range({n}):\n    s = s + sin(x*i)*cos(y*i)\ns"
CHAIN = "h = x\nfor i in range({n}):\n    h = tanh(W*h + y)\nh"
GRAPHS: dict[int, tuple[str, ...]] = {
    5: ("u = θ_1*x; u + y", "--θ_1", "3", "--x", "4", "--y", "5"),
    300: (CHAIN.format(n=60), "--W", "0.5", "--x", "0.1", "--y", "0.3", "--no-collapse"),
    600: (COMB.format(n=85), "--x", "0.1", "--y", "0.3"),
    3000: (COMB.format(n=428), "--x", "0.1", "--y", "0.3"),
}

# Thirty kinds of formulas, by name: the arguments of `gradcli diff`.
FORMULAS: dict[str, tuple[str, ...]] = {
    "polynomial": ("3*x**2 + 2*x*y - y**3/7",),
    "quotient": ("(x + y)/(x**2 + 1)",),
    "root": ("sqrt(x**2 + y**2)",),
    "powers": ("x**y + 2**x + x**-2",),
    "exponential": ("exp(-x**2/2)/sqrt(2*pi)",),
    "logarithm": ("log(x)*log1p(y)",),
    "trigonometric": ("sin(x)*cos(y)*tan(x*y)",),
    "hyperbolic": ("tanh(x)**2*sinh(y)",),
    "inverse functions": ("atan2(x, y) + asin(x/9)",),
    "special functions": ("erf(x)*special.ndtr(y)",),
    "gamma": ("lgamma(x)*y",),
    "remainder": ("(x % y)*x",),
    "floor": ("floor(x)*y + ceil(y)*x",),
    "cases": ("where(x > 0, x**2, -x)*y",),
    "absolute value": ("abs(x)*sign(y)",),
    "extrema": ("maximum(x, y)*minimum(x, 1)",),
    "constants": ("1e-07*x + 6.02e+23*y",),
    "Greek names": ("θ_1*α**β + ω_n",),
    "long names": ("velocity*t_0 + v_max*mass",),
    "names of C": ("M_PI*x + new*this + linux*y0",),
    "vector": ("sum(x**2*y)", "--shape", "x=3", "--shape", "y=3"),
    "norm": ("norm(x)", "--shape", "x=3"),
    "matrix product": ("sum((A@x - b)**2)",),
    "quadratic form": ("x@A@x", "--shape", "x=3"),
    "inverse": ("log(det(A))", "--shape", "A=3,3"),
    "softmax": ("-log_softmax(W@x, 0)[1]", "--shape", "W=4,3"),
    "outer product": ("sum(sigmoid(outer(x, y)))", "--shape", "x=3", "--shape", "y=2"),
    "broadcast": ("sum(exp(x[:, None]*A))", "--shape", "x=2", "--shape", "A=2,3"),
    "three dimensions": ("sum(bmm(T, B)*T)", "--shape", "T=2,3,3", "--shape", "B=2,3,3"),
    "wide matrix": ("sum(x*tensor([[1., 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]]*2))", "--shape", "x=2,11"),
    "means": ("sum((A - mean(A, 0))**2)*var(x)", "--shape", "A=4,3", "--shape", "x=3"),
}

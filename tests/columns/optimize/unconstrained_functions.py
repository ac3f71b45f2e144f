# ruff: noqa: E501 (tables of cases)
"""The 35 unconstrained functions of Moré, Garbow and Hillstrom (ACM Trans. Math. Softw. 7, 1981, 17-41).

Each is the sum of the squares of residuals: (a program of the vector x, the standard start, the minima that
the paper knows, to its six digits).
"""

from __future__ import annotations

BARD = ".14,.18,.22,.25,.29,.32,.35,.39,.37,.58,.73,.96,1.34,2.1,4.39"
GAUSSIAN = ".0009,.0044,.0175,.054,.1295,.242,.3521,.3989,.3521,.242,.1295,.054,.0175,.0044,.0009"
MEYER = "34780,28610,23650,19630,16370,13720,11540,9744,8261,7030,6005,5147,4427,3820,3307,2872."
KOWALIK = ".1957,.1947,.1735,.16,.0844,.0627,.0456,.0342,.0323,.0235,.0246"
STEPS = "4,2,1,.5,.25,.167,.125,.1,.0833,.0714,.0625"
OSBORNE_1 = (
    ".844,.908,.932,.936,.925,.908,.881,.85,.818,.784,.751,.718,.685,.658,.628,.603,.58,.558,.538,.522,.506,.49,"
    ".478,.467,.457,.448,.438,.431,.424,.42,.414,.411,.406"
)
OSBORNE_2 = (
    "1.366,1.191,1.112,1.013,.991,.885,.831,.847,.786,.725,.746,.679,.608,.655,.616,.606,.602,.626,.651,.724,.649,"
    ".649,.694,.644,.624,.661,.612,.558,.533,.495,.5,.423,.395,.375,.372,.391,.396,.405,.428,.429,.523,.562,.607,"
    ".653,.672,.708,.633,.668,.645,.632,.591,.559,.597,.625,.739,.71,.729,.72,.636,.581,.428,.292,.162,.098,.054"
)
N = 10
J = f"n = {N}; j = arange(1, n + 1.); "

FUNCTIONS: dict[str, tuple[str, list[float], list[float]]] = {
    "Rosenbrock": ("100*(x[1] - x[0]**2)**2 + (1 - x[0])**2", [-1.2, 1], [0]),
    "Freudenstein and Roth": (
        "(-13 + x[0] + ((5 - x[1])*x[1] - 2)*x[1])**2 + (-29 + x[0] + ((x[1] + 1)*x[1] - 14)*x[1])**2",
        [0.5, -2], [0, 48.9842]),
    "Powell badly scaled": ("(1e4*x[0]*x[1] - 1)**2 + (exp(-x[0]) + exp(-x[1]) - 1.0001)**2", [0, 1], [0]),
    "Brown badly scaled": ("(x[0] - 1e6)**2 + (x[1] - 2e-6)**2 + (x[0]*x[1] - 2)**2", [1, 1], [0]),
    "Beale": ("i = arange(1, 4.); sum((tensor([1.5, 2.25, 2.625]) - x[0]*(1 - x[1]**i))**2)", [1, 1], [0]),
    "Jennrich and Sampson": ("i = arange(1, 11.); sum((2 + 2*i - (exp(i*x[0]) + exp(i*x[1])))**2)", [0.3, 0.4], [124.362]),
    "helical valley": (
        "t = atan2(x[1], x[0])/(2*pi); 100*(x[2] - 10*t)**2 + 100*(sqrt(x[0]**2 + x[1]**2) - 1)**2 + x[2]**2",
        [-1, 0, 0], [0]),
    "Bard": (
        f"u = arange(1, 16.); v = 16 - u; w = minimum(u, v); y = tensor([{BARD}]); "
        "sum((y - (x[0] + u/(v*x[1] + w*x[2])))**2)", [1, 1, 1], [8.21487e-3, 17.4286]),
    "Gaussian": (f"t = (8 - arange(1, 16.))/2; y = tensor([{GAUSSIAN}]); sum((x[0]*exp(-x[1]*(t - x[2])**2/2) - y)**2)", [0.4, 1, 0], [1.12793e-8]),
    "Meyer": (f"t = 45 + 5*arange(1, 17.); sum((x[0]*exp(x[1]/(t + x[2])) - tensor([{MEYER}]))**2)", [0.02, 4000, 250], [87.9458]),
    "Gulf": (
        "t = arange(1, 100.)/100; y = 25 + (-50*log(t))**(2/3); sum((exp(-abs(y - x[1])**x[2]/x[0]) - t)**2)",
        [5, 2.5, 0.15], [0]),
    "Box": ("t = arange(1, 11.)/10; sum((exp(-t*x[0]) - exp(-t*x[1]) - x[2]*(exp(-t) - exp(-10*t)))**2)", [0, 10, 20], [0]),
    "Powell singular": (
        "(x[0] + 10*x[1])**2 + 5*(x[2] - x[3])**2 + (x[1] - 2*x[2])**4 + 10*(x[0] - x[3])**4", [3, -1, 0, 1], [0]),
    "Wood": (
        "100*(x[1] - x[0]**2)**2 + (1 - x[0])**2 + 90*(x[3] - x[2]**2)**2 + (1 - x[2])**2 + 10*(x[1] + x[3] - 2)**2"
        " + (x[1] - x[3])**2/10", [-3, -1, -3, -1], [0]),
    "Kowalik and Osborne": (
        f"u = tensor([{STEPS}]); y = tensor([{KOWALIK}]); sum((y - x[0]*(u**2 + u*x[1])/(u**2 + u*x[2] + x[3]))**2)",
        [0.25, 0.39, 0.415, 0.39], [3.07505e-4, 1.02734e-3]),
    "Brown and Dennis": (
        "t = arange(1, 21.)/5; sum(((x[0] + t*x[1] - exp(t))**2 + (x[2] + x[3]*sin(t) - cos(t))**2)**2)",
        [25, 5, -5, -1], [85822.2]),
    "Osborne 1": (
        f"t = 10*arange(33.); y = tensor([{OSBORNE_1}]); sum((y - (x[0] + x[1]*exp(-t*x[3]) + x[2]*exp(-t*x[4])))**2)",
        [0.5, 1.5, -1, 0.01, 0.02], [5.46489e-5]),
    "Biggs": (
        "t = arange(1, 14.)/10; y = exp(-t) - 5*exp(-10*t) + 3*exp(-4*t); "
        "sum((x[2]*exp(-t*x[0]) - x[3]*exp(-t*x[1]) + x[5]*exp(-t*x[4]) - y)**2)", [1, 2, 1, 1, 1, 1], [0, 5.65565e-3]),
    "Osborne 2": (
        f"t = arange(65.)/10; y = tensor([{OSBORNE_2}]); sum((y - (x[0]*exp(-t*x[4]) + x[1]*exp(-(t - x[8])**2*x[5])"
        " + x[2]*exp(-(t - x[9])**2*x[6]) + x[3]*exp(-(t - x[10])**2*x[7])))**2)",
        [1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5], [4.01377e-2]),
    "Watson": (
        "t = arange(1, 30.)/29; k = arange(6.); p = t[:, None]**k; q = k[1:]*t[:, None]**(k[1:] - 1); "
        "sum((q @ x[1:] - (p @ x)**2 - 1)**2) + x[0]**2 + (x[1] - x[0]**2 - 1)**2", [0] * 6, [2.28767e-3]),
    "extended Rosenbrock": ("a = x[0::2]; b = x[1::2]; sum(100*(b - a**2)**2 + (1 - a)**2)", [-1.2, 1] * 5, [0]),
    "extended Powell singular": (
        "a = x[0::4]; b = x[1::4]; c = x[2::4]; d = x[3::4]; sum((a + 10*b)**2 + 5*(c - d)**2 + (b - 2*c)**4 + 10*(a - d)**4)",
        [3, -1, 0, 1] * 3, [0]),
    "penalty 1": ("1e-5*sum((x - 1)**2) + (sum(x**2) - 0.25)**2", [1, 2, 3, 4], [2.24997e-5]),
    "penalty 2": (
        "i = arange(2, 5.); y = exp(i/10) + exp((i - 1)/10); (x[0] - 0.2)**2 + 1e-5*sum((exp(x[1:]/10) + exp(x[:-1]/10) - y)**2)"
        " + 1e-5*sum((exp(x[1:]/10) - exp(tensor(-0.1)))**2) + (sum(arange(4, 0, -1.)*x**2) - 1)**2", [0.5] * 4, [9.37629e-6]),
    "variably dimensioned": (J + "s = sum(j*(x - 1)); sum((x - 1)**2) + s**2 + s**4", [1 - k / N for k in range(1, N + 1)], [0]),
    "trigonometric": (J + "sum((n - sum(cos(x)) + j*(1 - cos(x)) - sin(x))**2)", [1 / N] * N, [0, 2.79506e-5]),
    "Brown almost-linear": (
        J + "sum((x[:-1] + sum(x) - (n + 1))**2) + (prod(x) - 1)**2", [0.5] * N, [0, 1]),
    "discrete boundary value": (
        J + "h = 1/(n + 1); z = cat([zeros(1), x, zeros(1)]); sum((2*x - z[:-2] - z[2:] + h**2*(x + j*h + 1)**3/2)**2)",
        [k / 11 * (k / 11 - 1) for k in range(1, N + 1)], [0]),
    "discrete integral equation": (
        J + "t = j/(n + 1); w = (x + t + 1)**3; lower = t[:, None] >= t; "
        "k = where(lower, (1 - t[:, None])*t, t[:, None]*(1 - t)); sum((x + k @ w/(2*(n + 1)))**2)",
        [k / 11 * (k / 11 - 1) for k in range(1, N + 1)], [0]),
    "Broyden tridiagonal": (
        "z = cat([zeros(1), x, zeros(1)]); sum(((3 - 2*x)*x - z[:-2] - 2*z[2:] + 1)**2)", [-1] * N, [0]),
    "Broyden banded": (
        J + "d = j[:, None] - j; near = (d <= 5)*(d >= -1)*(d != 0); sum((x*(2 + 5*x**2) + 1 - where(near, 1., 0.) @ (x*(1 + x)))**2)",
        [-1] * N, [0]),
    "linear, full rank": ("s = 2*sum(x)/20 + 1; sum((x - s)**2) + 10*s**2", [1] * N, [10]),
    "linear, rank 1": (J + "i = arange(1, 21.); sum((i*sum(j*x) - 1)**2)", [1] * N, [190 / 41]),
    "linear, rank 1, zeros": (
        J + "i = arange(1, 19.); 2 + sum((i*sum(j[1:-1]*x[1:-1]) - 1)**2)", [1] * N, [454 / 74]),
    "Chebyquad": (
        "y = 2*x - 1; p = ones_like(y); q = y; total = (q.mean())**2; n = 8\nfor k in range(2, n + 1):\n    p, q = q, 2*y*q - p\n"
        "    total = total + (q.mean() + (1/(k*k - 1) if k % 2 == 0 else 0))**2\ntotal", [k / 9 for k in range(1, 9)], [3.51687e-3]),
}  # fmt: skip

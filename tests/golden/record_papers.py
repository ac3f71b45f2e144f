r"""What formulas of papers and textbooks come to, as NumPy and SciPy compute them.

python tests/golden/record_papers.py writes papers.json: the LaTeX, the values of its names, and the result of
the Python beside it. Versions: those of the file.
"""

from __future__ import annotations

import json
from math import *  # noqa: F403
from pathlib import Path

import numpy as np
import scipy
import scipy.stats as st

# ruff: noqa: F405, E501, C408
A = np.array([[2.0, 0.5], [0.3, 1.5]])
S = np.array([[2.0, 0.5], [0.5, 1.5]])
W = np.array([[0.1, 0.2], [-0.3, 0.4]])
x, y, b, mu = (np.array(v) for v in ([0.7, -0.4], [1.2, 0.3], [0.2, 0.9], [0.1, 0.2]))
V = {
    "A": "[[2,.5],[.3,1.5]]",
    "Sigma": "[[2,.5],[.5,1.5]]",
    "x": "[.7,-.4]",
    "y": "[1.2,.3]",
    "b": "[.2,.9]",
    "W": "[[.1,.2],[-.3,.4]]",
    "mu": "[.1,.2]",
}


def sig(z):
    return 1 / (1 + np.exp(-z))


def sm(z):
    return np.exp(z) / np.exp(z).sum()


ROWS = [
    (
        r"\frac{1}{(2\pi)^{d/2}|\Sigma|^{1/2}}\exp\left(-\frac{1}{2}(x-\mu)^\top\Sigma^{-1}(x-\mu)\right)",
        dict(d="2", Sigma=V["Sigma"], x=V["x"], mu=V["mu"]),
        st.multivariate_normal(mu, S).pdf(x),
    ),
    (
        r"-\frac{1}{2}\log|2\pi\Sigma| ",
        dict(Sigma=V["Sigma"]),
        -0.5 * log(np.linalg.det(2 * pi * S)),
    ),
    (
        r"\frac{1}{2}\left(\operatorname{tr}(\Sigma) + \mu^\top\mu - k - \log\det\Sigma\right)",
        dict(Sigma=V["Sigma"], mu=V["mu"], k="2"),
        0.5 * (np.trace(S) + mu @ mu - 2 - log(np.linalg.det(S))),
    ),
    (r"-\sum_{i=1}^{N} y_i \log \hat{y}_i", dict(y="[0,1]", y_hat="[.3,.7]"), -log(0.7)),
    (
        r"-\frac{1}{N}\sum_{i=1}^N \left[y_i \log(\hat{y}_i) + (1-y_i)\log(1-\hat{y}_i)\right]",
        dict(N="2", y="[0,1]", y_hat="[.3,.6]"),
        -0.5 * (log(0.6) + log(0.7)),
    ),
    (r"\frac{e^{z_i}}{\sum_j e^{z_j}}", dict(z="[.7,-.4]"), sm(x)),
    (r"\log\sum_j e^{z_j}", dict(z="[.7,-.4]"), log(np.exp(x).sum())),
    (r"\sigma(w^\top x + b)", dict(w=V["y"], x=V["x"], b=".2"), sig(y @ x + 0.2)),
    (
        r"\max(0, 1 - y_i(w^\top x_i + b))",
        dict(y_i="-1", w=V["y"], x_i=V["x"], b=".2"),
        max(0, 1 + (y @ x + 0.2)),
    ),
    (
        r"\|Ax - b\|_2^2 + \lambda\|x\|_1",
        dict(A=V["A"], x=V["x"], b=V["b"], lam=".3"),
        ((A @ x - b) ** 2).sum() + 0.3 * abs(x).sum(),
    ),
    (r"\frac{x^T A x}{x^T x}", dict(A=V["A"], x=V["x"]), x @ A @ x / (x @ x)),
    (
        r"\frac{x \cdot y}{\|x\| \|y\|}",
        dict(x=V["x"], y=V["y"]),
        x @ y / np.linalg.norm(x) / np.linalg.norm(y),
    ),
    (
        r"\exp\left(-\frac{\|x-y\|^2}{2\ell^2}\right)",
        dict(x=V["x"], y=V["y"], ell=".8"),
        exp(-((x - y) ** 2).sum() / (2 * 0.64)),
    ),
    (
        r"\left(1+\frac{\sqrt{3}r}{\ell}\right)e^{-\sqrt{3}r/\ell}",
        dict(r=".5", ell=".8"),
        (1 + sqrt(3) * 0.5 / 0.8) * exp(-sqrt(3) * 0.5 / 0.8),
    ),
    (
        r"S \Phi(d_1) - K e^{-r T} \Phi(d_2)",
        dict(S="100", d_1=".3", d_2=".1", K="95", r=".02", T="1"),
        100 * st.norm.cdf(0.3) - 95 * exp(-0.02) * st.norm.cdf(0.1),
    ),
    (
        r"\frac{\ln(S/K) + (r + \sigma^2/2)T}{\sigma\sqrt{T}}",
        dict(S="100", K="95", r=".02", T="1", sigma=".2"),
        (log(100 / 95) + 0.04) / 0.2,
    ),
    (
        r"\frac{2h\nu^3}{c^2}\frac{1}{e^{\frac{h\nu}{kT}}-1}",
        dict(h=".6", nu="1.1", c="3", k=".2", T="4"),
        2 * 0.6 * 1.1**3 / 9 / (exp(0.6 * 1.1 / 0.8) - 1),
    ),
    (
        r"4\epsilon\left[\left(\frac{\sigma}{r}\right)^{12}-\left(\frac{\sigma}{r}\right)^6\right]",
        dict(epsilon=".5", sigma="1.1", r="1.3"),
        2 * ((1.1 / 1.3) ** 12 - (1.1 / 1.3) ** 6),
    ),
    (r"\frac{1}{2}m v^2 + m g h", dict(m="2", v="3", g="9.81", h="4"), 9 + 2 * 9.81 * 4),
    (r"\sqrt{\frac{k}{m}}", dict(k="2", m="3"), sqrt(2 / 3)),
    (r"\frac{G m_1 m_2}{r^2}", dict(G="6", m_1="2", m_2="3", r="1.5"), 36 / 2.25),
    (r"\frac{V_{max} [S]}{K_m + [S]}", dict(V_max="2", S="3", K_m=".5"), 6 / 3.5),
    (r"A e^{-\frac{E_a}{RT}}", dict(A="2", E_a="5", R="8.3", T="300"), 2 * exp(-5 / (8.3 * 300))),
    (r"\frac{n!}{k!(n-k)!} p^k (1-p)^{n-k}", dict(n="5", k="2", p=".3"), st.binom.pmf(2, 5, 0.3)),
    (r"\frac{\lambda^k e^{-\lambda}}{k!}", dict(lam="2.5", k="3"), st.poisson.pmf(3, 2.5)),
    (
        r"\frac{\beta^\alpha}{\Gamma(\alpha)} x^{\alpha-1} e^{-\beta x}",
        dict(alpha="2.5", beta="1.5", x=".7"),
        st.gamma.pdf(0.7, 2.5, scale=1 / 1.5),
    ),
    (
        r"\frac{\Gamma(\alpha+\beta)}{\Gamma(\alpha)\Gamma(\beta)}x^{\alpha-1}(1-x)^{\beta-1}",
        dict(alpha="2.5", beta="1.5", x=".7"),
        st.beta.pdf(0.7, 2.5, 1.5),
    ),
    (
        r"\frac{\Gamma(\frac{\nu+1}{2})}{\sqrt{\nu\pi}\,\Gamma(\frac{\nu}{2})}\left(1+\frac{t^2}{\nu}\right)^{-\frac{\nu+1}{2}}",
        dict(nu="4", t=".7"),
        st.t.pdf(0.7, 4),
    ),
    (
        r"\frac{1}{\pi\gamma\left[1+\left(\frac{x-x_0}{\gamma}\right)^2\right]}",
        dict(gamma=".6", x=".7", x_0=".1"),
        st.cauchy.pdf(0.7, 0.1, 0.6),
    ),
    (
        r"\frac{1}{2b}\exp\left(-\frac{|x-\mu|}{b}\right)",
        dict(b=".6", x=".7", mu=".1"),
        st.laplace.pdf(0.7, 0.1, 0.6),
    ),
    (
        r"\frac{k}{\lambda}\left(\frac{x}{\lambda}\right)^{k-1}e^{-(x/\lambda)^k}",
        dict(k="1.5", lam="2", x=".7"),
        st.weibull_min.pdf(0.7, 1.5, scale=2),
    ),
    (r"\frac{1}{n-1}\sum_{i=1}^n (x_i - \bar{x})^2", dict(n="2", x="[.7,-.4]"), np.var(x, ddof=1)),
    (
        r"\frac{\sum_i (x_i-\bar{x})(y_i-\bar{y})}{\sum_i (x_i-\bar{x})^2}",
        dict(x="[.7,-.4,1]", y="[1.2,.3,.5]"),
        np.polyfit([0.7, -0.4, 1], [1.2, 0.3, 0.5], 1)[0],
    ),
    (
        r"\sum_i p_i \log \frac{p_i}{q_i}",
        dict(p="[.3,.7]", q="[.5,.5]"),
        0.3 * log(0.6) + 0.7 * log(1.4),
    ),
    (
        r"\sum_{i=1}^{n-1} \left[100(x_{i+1}-x_i^2)^2 + (1-x_i)^2\right]",
        dict(x="[.7,-.4,1]", n="3"),
        100 * (-0.4 - 0.49) ** 2 + 0.09 + 100 * (1 - 0.16) ** 2 + 1.4**2,
    ),
    (
        r"10n + \sum_{i=1}^n \left[x_i^2 - 10\cos(2\pi x_i)\right]",
        dict(n="2", x="[.7,-.4]"),
        20 + (x**2 - 10 * np.cos(2 * pi * x)).sum(),
    ),
    (
        r"-20\exp\left(-0.2\sqrt{\frac{1}{n}\sum_{i=1}^n x_i^2}\right)-\exp\left(\frac{1}{n}\sum_{i=1}^n\cos(2\pi x_i)\right)+20+e",
        dict(n="2", x="[.7,-.4]"),
        -20 * exp(-0.2 * sqrt((x**2).mean())) - exp(np.cos(2 * pi * x).mean()) + 20 + e,
    ),
    (
        r"\frac{1}{4000}\sum_{i=1}^n x_i^2-\prod_{i=1}^n\cos\left(\frac{x_i}{\sqrt{i}}\right)+1",
        dict(n="2", x="[.7,-.4]"),
        (x**2).sum() / 4000 - cos(0.7) * cos(-0.4 / sqrt(2)) + 1,
    ),
    (r"(1-x)^2+100(y-x^2)^2", dict(x=".3", y=".4"), 0.49 + 100 * (0.4 - 0.09) ** 2),
    (
        r"W_2\,\sigma(W_1 x + b_1) + b_2",
        dict(W_2=V["A"], W_1=V["W"], x=V["x"], b_1=V["b"], b_2=V["y"]),
        A @ sig(W @ x + b) + y,
    ),
    (
        r"\mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V",
        dict(Q=V["A"], K=V["W"], d_k="2", V=V["Sigma"]),
        np.array([sm(r) for r in A @ W.T / sqrt(2)]) @ S,
    ),
    (
        r"0.5x\left(1+\tanh\left[\sqrt{2/\pi}(x+0.044715x^3)\right]\right)",
        dict(x=".7"),
        0.35 * (1 + tanh(sqrt(2 / pi) * (0.7 + 0.044715 * 0.343))),
    ),
    (r"\frac{1}{1+e^{-\beta(x-x_0)}}", dict(beta="2", x=".7", x_0=".1"), 1 / (1 + exp(-1.2))),
    (
        r"\sum_{k=1}^3 \left(a_k \cos(k\theta) + b_k \sin(k\theta)\right)",
        dict(a="[.1,.2,.3]", b="[.4,.5,.6]", theta=".3"),
        sum(
            a_ * cos(k * 0.3) + b_ * sin(k * 0.3)
            for k, a_, b_ in zip((1, 2, 3), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), strict=True)
        ),
    ),
    (
        r"\frac{F}{(1+y)^n} + \sum_{t=1}^{n}\frac{C}{(1+y)^t}",
        dict(F="100", y=".05", n="3", C="4"),
        100 / 1.05**3 + sum(4 / 1.05**t for t in (1, 2, 3)),
    ),
    (
        r"P\frac{r(1+r)^n}{(1+r)^n-1}",
        dict(P="1000", r=".01", n="12"),
        1000 * 0.01 * 1.01**12 / (1.01**12 - 1),
    ),
    (r"w^\top\Sigma w", dict(w=V["x"], Sigma=V["Sigma"]), x @ S @ x),
    (r"\sqrt{w^\top\Sigma w}", dict(w=V["x"], Sigma=V["Sigma"]), sqrt(x @ S @ x)),
    (
        r"\frac{\mu^\top w - r_f}{\sqrt{w^\top \Sigma w}}",
        dict(w=V["x"], Sigma=V["Sigma"], mu=V["mu"], r_f=".01"),
        (mu @ x - 0.01) / sqrt(x @ S @ x),
    ),
    (
        r"y^\top(K+\sigma_n^2 I)^{-1}y + \log|K+\sigma_n^2 I|",
        dict(y=V["y"], K=V["Sigma"], sigma_n=".3"),
        y @ np.linalg.inv(S + 0.09 * np.eye(2)) @ y + log(np.linalg.det(S + 0.09 * np.eye(2))),
    ),
    (
        r"A - BD^{-1}C",
        dict(A=V["A"], B=V["W"], D=V["Sigma"], C=V["A"]),
        A - W @ np.linalg.inv(S) @ A,
    ),
    (r"\|A - UV^\top\|_F^2", dict(A=V["A"], U=V["W"], V=V["Sigma"]), ((A - W @ S.T) ** 2).sum()),
    (r"\mathrm{tr}(A^\top B)", dict(A=V["A"], B=V["W"]), np.trace(A.T @ W)),
    (
        r"\theta_1 \cos q_1 + \theta_2\cos(q_1+q_2)",
        dict(theta_1="1", theta_2=".8", q_1=".3", q_2=".5"),
        cos(0.3) + 0.8 * cos(0.8),
    ),
    (r"\tan^{-1}\frac{y}{x}", dict(x=".7", y=".4"), atan(0.4 / 0.7)),
    (
        r"2R\arcsin\sqrt{\sin^2\frac{\phi_2-\phi_1}{2}+\cos\phi_1\cos\phi_2\sin^2\frac{\lambda_2-\lambda_1}{2}}",
        dict(R="6371", phi_1=".3", phi_2=".5", lambda_1=".1", lambda_2=".4"),
        2 * 6371 * asin(sqrt(sin(0.1) ** 2 + cos(0.3) * cos(0.5) * sin(0.15) ** 2)),
    ),
    (r"\frac{1}{\sqrt{1-\frac{v^2}{c^2}}}", dict(v=".6", c="1"), 1.25),
    (r"\left|\frac{a-b}{a+b}\right|^2", dict(a="1", b="3"), 0.25),
    (r"\hbar\omega\left(n+\tfrac12\right)", dict(hbar="1.05", omega="2", n="3"), 1.05 * 2 * 3.5),
    (r"x - \frac{x^3}{3!} + \frac{x^5}{5!}", dict(x=".7"), 0.7 - 0.343 / 6 + 0.7**5 / 120),
    (
        r"\sum_{n=0}^{5}\frac{(-1)^n x^{2n+1}}{(2n+1)!}",
        dict(x=".7"),
        sum((-1) ** n * 0.7 ** (2 * n + 1) / factorial(2 * n + 1) for n in range(6)),
    ),
    (r"\int_0^{\infty} e^{-a x} dx", dict(a="2"), 0.5),
    (r"\int_0^1 x^n dx", dict(n="3"), 0.25),
    (r"a^{b^c}", dict(a="2", b="3", c="1.5"), 2 ** (3**1.5)),
    (r"\log_2(1+\mathrm{SNR})", dict(SNR="7"), 3),
    (r"10\log_{10}\frac{P_1}{P_2}", dict(P_1="4", P_2="2"), 10 * log10(2)),
    (r"\cosh^2 x - \sinh^2 x", dict(x=".7"), 1),
    (r"2\sin\frac{x}{2}\cos\frac{x}{2}", dict(x=".7"), sin(0.7)),
    (r"\ln\left(x+\sqrt{x^2+1}\right)", dict(x=".7"), asinh(0.7)),
    (
        r"(y-X\beta)^T(y-X\beta)",
        dict(X=V["A"], beta=V["x"], y=V["y"]),
        ((y - A @ x) ** 2).sum(),
    ),
    (
        r"\|y - X\beta\|^2 + \lambda\|\beta\|^2",
        dict(X=V["A"], beta=V["x"], y=V["y"], lam=".3"),
        ((y - A @ x) ** 2).sum() + 0.3 * x @ x,
    ),
    (r"\beta^T X^T X \beta", dict(X=V["A"], beta=V["x"]), ((A @ x) ** 2).sum()),
    (
        r"y^T\alpha - \frac12 \alpha^T K \alpha",
        dict(y=V["y"], alpha=V["x"], K=V["Sigma"]),
        y @ x - x @ S @ x / 2,
    ),
    (
        r"\sum_{i=1}^m (\theta^T x_i - y_i)^2",
        dict(m="2", theta=V["x"], x=V["A"], y=V["y"]),
        ((A @ x - y) ** 2).sum(),
    ),
    (
        r"\frac{1}{n}\sum_i \log(1+e^{-y_i w^T x_i})",
        dict(n="2", w=V["x"], x=V["A"], y="[1,-1]"),
        np.log1p(np.exp(-np.array([1, -1]) * (A @ x))).sum() / 2,
    ),
    (
        r"\sum_i \max(0, 1 - y_i(w^T x_i + b)) + \lambda \|w\|^2",
        dict(w=V["x"], x=V["A"], y="[1,-1]", b=".2", lam=".3"),
        np.maximum(0, 1 - np.array([1, -1]) * (A @ x + 0.2)).sum() + 0.3 * x @ x,
    ),
    (
        r"\sum_i \alpha_i - \frac12 \sum_{i,j} \alpha_i \alpha_j y_i y_j x_i^T x_j",
        dict(alpha=V["mu"], y="[1,-1]", x=V["A"]),
        mu.sum() - (np.outer(mu * [1, -1], mu * [1, -1]) * (A @ A.T)).sum() / 2,
    ),
    (r"\sum_i x_i^T A x_i", dict(x=V["A"], A=V["Sigma"]), np.trace(A @ S @ A.T)),
]

found = {
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "rows": [[text, values, np.asarray(wanted).tolist()] for text, values, wanted in ROWS],
}
Path(__file__).with_name("papers.json").write_text(json.dumps(found, indent=0) + "\n")

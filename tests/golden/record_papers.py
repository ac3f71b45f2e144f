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


nn = np.linalg

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
    (
        r"\hat{\beta} = (X^\top X)^{-1} X^\top y",
        dict(X=V["A"], y=V["y"]),
        nn.inv(A.T @ A) @ A.T @ y,
    ),
    (
        r"(X^\top X + \lambda I)^{-1} X^\top y",
        dict(X=V["A"], y=V["y"], lam=".3"),
        nn.inv(A.T @ A + 0.3 * np.eye(2)) @ A.T @ y,
    ),
    (r"\mathbf{w}^\top \mathbf{x} + b", dict(w=V["y"], x=V["x"], b=".2"), y @ x + 0.2),
    (r"\mathbf{W}\mathbf{x} + \mathbf{b}", dict(W=V["W"], x=V["x"], b=V["b"]), W @ x + b),
    (
        r"\frac{1}{2}\|\mathbf{w}\|^2 + C\sum_{i=1}^{n}\xi_i",
        dict(w=V["x"], C="2", xi="[.1,.3]", n="2"),
        0.5 * x @ x + 0.8,
    ),
    (
        r"H = -\sum_{i=1}^n p_i \log_2 p_i",
        dict(p="[.3,.7]", n="2"),
        -(0.3 * log2(0.3) + 0.7 * log2(0.7)),
    ),
    (r"\mathrm{ReLU}(Wx+b)", dict(W=V["W"], x=V["x"], b=V["b"]), np.maximum(0, W @ x + b)),
    (
        r"\gamma \frac{x-\mu}{\sqrt{\sigma^2+\epsilon}} + \beta",
        dict(gamma="2", x=".7", mu=".1", sigma=".5", epsilon=".01", beta=".3"),
        2 * 0.6 / sqrt(0.26) + 0.3,
    ),
    (
        r"\sum_{t=0}^{3} \gamma^t r_t",
        dict(gamma=".9", r="[1,2,3,4]"),
        1 + 1.8 + 3 * 0.81 + 4 * 0.729,
    ),
    (
        r"\theta - \eta \frac{\hat{m}}{\sqrt{\hat{v}}+\epsilon}",
        dict(theta="1", eta=".1", m_hat=".5", v_hat=".25", epsilon="1e-8"),
        1 - 0.1 * 0.5 / 0.5,
    ),
    (r"\frac{1}{1-\beta_1^t}m_t", dict(beta_1=".9", t="3", m_t=".2"), 0.2 / (1 - 0.729)),
    (
        r"\frac{\mathbf{u}\cdot\mathbf{v}}{\|\mathbf{u}\|\,\|\mathbf{v}\|}",
        dict(u=V["x"], v=V["y"]),
        x @ y / nn.norm(x) / nn.norm(y),
    ),
    (r"\mathbf{u}\times\mathbf{v}", dict(u="[1,2,3]", v="[0,1,4]"), np.cross([1, 2, 3], [0, 1, 4])),
    (
        r"\vec{a}\cdot(\vec{b}\times\vec{c})",
        dict(a="[1,2,3]", b="[0,1,4]", c="[2,0,1]"),
        np.dot([1, 2, 3], np.cross([0, 1, 4], [2, 0, 1])),
    ),
    (r"x_1 x_2 + \sin(x_1)", dict(x_1=".5", x_2="2"), 1 + sin(0.5)),
    (r"e^{-x^2/2}", dict(x=".5"), exp(-0.125)),
    (r"e^{-\frac{x^2}{2}}", dict(x=".5"), exp(-0.125)),
    (r"\exp{-x^2}", dict(x=".5"), exp(-0.25)),
    (r"\exp\{-x^2/2\}", dict(x=".5"), exp(-0.125)),
    (
        r"\exp\left\{-\frac{(x-\mu)^2}{2\sigma^2}\right\}",
        dict(x=".5", mu=".1", sigma="2"),
        exp(-0.16 / 8),
    ),
    (r"\sin(x)^2", dict(x=".5"), sin(0.5) ** 2),
    (r"\sin^2(x)\cos(x)", dict(x=".5"), sin(0.5) ** 2 * cos(0.5)),
    (r"\sin x^2", dict(x=".5"), sin(0.25)),
    (r"\sin 2x + \cos 3x", dict(x=".5"), sin(1) + cos(1.5)),
    (r"\sin(2\pi f t + \phi)", dict(f="2", t=".3", phi=".1"), sin(2 * pi * 0.6 + 0.1)),
    (
        r"A\sin(\omega t)e^{-\gamma t}",
        dict(A="2", omega="3", t=".3", gamma=".5"),
        2 * sin(0.9) * exp(-0.15),
    ),
    (
        r"\frac{1}{4\pi\epsilon_0}\frac{q_1 q_2}{r^2}",
        dict(epsilon_0="2", q_1="3", q_2="4", r="1.5"),
        12 / (8 * pi * 2.25),
    ),
    (r"-\frac{\hbar^2}{2m}k^2", dict(hbar="1.05", m="2", k="3"), -(1.05**2) / 4 * 9),
    (r"k_B T \ln\frac{V_2}{V_1}", dict(k_B="1.38", T="300", V_2="2", V_1="1"), 1.38 * 300 * log(2)),
    (
        r"\left(P + \frac{a n^2}{V^2}\right)(V - nb)",
        dict(P="1", a="2", n="3", V="4", b=".5"),
        (1 + 18 / 16) * (4 - 1.5),
    ),
    (r"nRT/V", dict(n="2", R="8.3", T="300", V="4"), 2 * 8.3 * 300 / 4),
    (r"\frac{1}{\frac{1}{R_1}+\frac{1}{R_2}}", dict(R_1="2", R_2="3"), 1 / (1 / 2 + 1 / 3)),
    (r"V_0(1-e^{-\frac{t}{RC}})", dict(V_0="5", t=".1", R="2", C=".3"), 5 * (1 - exp(-0.1 / 0.6))),
    (
        r"\sqrt{R^2+(\omega L-\frac{1}{\omega C})^2}",
        dict(R="2", omega="3", L=".5", C=".3"),
        sqrt(4 + (1.5 - 1 / 0.9) ** 2),
    ),
    (r"20\log_{10}|H|", dict(H=".5"), 20 * log10(0.5)),
    (
        r"\frac{\omega_n^2}{s^2+2\zeta\omega_n s+\omega_n^2}",
        dict(omega_n="2", s="1", zeta=".3"),
        4 / (1 + 1.2 + 4),
    ),
    (
        r"l_1\cos\theta_1 + l_2\cos(\theta_1+\theta_2)",
        dict(l_1="1", theta_1=".3", l_2=".8", theta_2=".5"),
        cos(0.3) + 0.8 * cos(0.8),
    ),
    (r"\frac{1}{2}\dot{q}^\top M \dot{q}", dict(q_dot=V["x"], M=V["Sigma"]), 0.5 * x @ S @ x),
    (
        r"\frac{1}{2}(z - Hx)^\top R^{-1}(z - Hx)",
        dict(z=V["y"], H=V["A"], x=V["x"], R=V["Sigma"]),
        0.5 * (y - A @ x) @ nn.inv(S) @ (y - A @ x),
    ),
    (
        r"P H^\top (H P H^\top + R)^{-1}",
        dict(P=V["A"], H=V["W"], R=V["Sigma"]),
        A @ W.T @ nn.inv(W @ A @ W.T + S),
    ),
    (
        r"x^\top Q x + u^\top R u",
        dict(x=V["x"], Q=V["Sigma"], u=V["y"], R=V["A"]),
        x @ S @ x + y @ A @ y,
    ),
    (
        r"c^\top x - \mu \sum_i \log x_i",
        dict(c=V["y"], x="[.7,.4]", mu=".1"),
        y @ [0.7, 0.4] - 0.1 * (log(0.7) + log(0.4)),
    ),
    (
        r"c^T x + \lambda^T (Ax - b) + \frac{\rho}{2}\|Ax-b\|_2^2",
        dict(c=V["y"], x=V["x"], lam=V["b"], A=V["A"], b=V["b"], rho="2"),
        y @ x + b @ (A @ x - b) + ((A @ x - b) ** 2).sum(),
    ),
    (r"\|x\|_1 + \|x\|_2 + \|x\|_\infty", dict(x=V["x"]), 1.1 + nn.norm(x) + 0.7),
    (r"\|A\|_F", dict(A=V["A"]), nn.norm(A)),
    (r"\|A\|_2", dict(A=V["A"]), nn.norm(A, 2)),
    (r"\|A\|_*", dict(A=V["A"]), nn.norm(A, "nuc")),
    (r"\det(A - \lambda I)", dict(A=V["A"], lam=".3"), nn.det(A - 0.3 * np.eye(2))),
    (r"\begin{vmatrix} a & b \\ c & d \end{vmatrix}", dict(a="1", b="2", c="3", d="4"), -2),
    (
        r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}\begin{pmatrix} x \\ y \end{pmatrix}",
        dict(x="1", y="2"),
        np.array([5, 11.0]),
    ),
    (
        r"\begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix} v",
        dict(theta=".3", v=V["x"]),
        np.array([[cos(0.3), -sin(0.3)], [sin(0.3), cos(0.3)]]) @ x,
    ),
    (r"u v^\top", dict(u=V["x"], v=V["y"]), np.outer(x, y)),
    (r"A \circ B", dict(A=V["A"], B=V["W"]), A * W),
    (r"A \otimes B", dict(A=V["A"], B=V["W"]), np.kron(A, W)),
    (r"\operatorname{vec}(A)", dict(A=V["A"]), A.T.ravel()),
    (r"\operatorname{diag}(x) A", dict(A=V["A"], x=V["x"]), np.diag(x) @ A),
    (r"A_{11} + A_{22}", dict(A=V["A"]), 3.5),
    (r"\sum_{i}\sum_{j} A_{ij}B_{ij}", dict(A=V["A"], B=V["W"]), (A * W).sum()),
    (r"\sum_{i=1}^{2}\sum_{j=1}^{2} x_i A_{ij} x_j", dict(A=V["A"], x=V["x"]), x @ A @ x),
    (r"\sum_j A_{ij} x_j", dict(A=V["A"], x=V["x"]), A @ x),
    (r"\max_{i,j} |A_{ij}|", dict(A=V["W"]), 0.4),
    (
        r"\frac{1}{n}\sum_{i=1}^n |y_i - \hat{y}_i|",
        dict(y=V["y"], y_hat=V["x"], n="2"),
        abs(y - x).mean(),
    ),
    (
        r"1 - \frac{\sum_i (y_i-\hat{y}_i)^2}{\sum_i (y_i - \bar{y})^2}",
        dict(y=V["y"], y_hat=V["x"]),
        1 - ((y - x) ** 2).sum() / ((y - y.mean()) ** 2).sum(),
    ),
    (r"\prod_{i=1}^{n} p_i^{x_i}(1-p_i)^{1-x_i}", dict(p="[.3,.7]", x="[1,0]", n="2"), 0.3 * 0.3),
    (
        r"\sum_{i=1}^{n}\left(y_i\log p + (1-y_i)\log(1-p)\right)",
        dict(p=".3", y="[1,0,0]", n="3"),
        log(0.3) + 2 * log(0.7),
    ),
    (
        r"n\log\lambda - \lambda\sum_{i=1}^{n}x_i",
        dict(n="2", lam=".5", x="[1,2]"),
        2 * log(0.5) - 1.5,
    ),
    (
        r"-\frac{n}{2}\log(2\pi\sigma^2)-\frac{1}{2\sigma^2}\sum_{i=1}^n(x_i-\mu)^2",
        dict(n="2", sigma=".5", mu=".1", x="[1,2]"),
        st.norm.logpdf([1, 2], 0.1, 0.5).sum(),
    ),
    (r"x(t) = x_0 + v_0 t + \frac12 a t^2", dict(x_0="1", v_0="2", t="3", a="4"), 1 + 6 + 18),
    (r"y = mx + b", dict(m="2", x="3", b="4"), 10),
    (r"ax^2 + bx + c", dict(a="2", b="3", c="4", x=".5"), 0.5 + 1.5 + 4),
    (r"x^{1/3}", dict(x="8"), 2),
    (r"x^\frac{1}{3}", dict(x="8"), 2),
    (r"x^{\frac{1}{3}}", dict(x="8"), 2),
    (r"\sqrt[n]{x}", dict(x="8", n="3"), 2),
    (r"2^{-n}", dict(n="3"), 0.125),
    (r"|x - y|", dict(x="1", y="3"), 2),
    (r"\lvert x - y \rvert^2", dict(x="1", y="3"), 4),
    (r"\lfloor x \rfloor + \lceil x \rceil", dict(x="1.5"), 3),
    (r"\operatorname{sign}(x)\max(|x|-\lambda, 0)", dict(x="-1.5", lam=".5"), -1),
    (r"\min(x, y)", dict(x="1", y="3"), 1),
    (r"a \mod b", dict(a="7", b="3"), 1),
    (r"\ln 2x", dict(x="3"), log(6)),
    (r"\exp x", dict(x=".5"), exp(0.5)),
    (r"10^{-3}x", dict(x="5"), 0.005),
    (r"1.5\times10^{3}x", dict(x="2"), 3000),
    (r"3.0 \cdot 10^8", dict(), 3e8),
    (r"\frac{a}{b}\cdot\frac{c}{d}", dict(a="1", b="2", c="3", d="4"), 0.375),
    (r"a/b/c", dict(a="8", b="2", c="2"), 2),
    (r"-x^2", dict(x="3"), -9),
    (r"(-x)^2", dict(x="3"), 9),
    (r"2x^{-1}", dict(x="4"), 0.5),
    (r"xy^2z", dict(x="2", y="3", z="4"), 72),
    (r"\alpha\beta\gamma", dict(alpha="2", beta="3", gamma="4"), 24),
    (r"\frac{\sin x}{x}", dict(x=".5"), sin(0.5) / 0.5),
    (r"\operatorname{sinc}(x)", dict(x=".5"), np.sinc(0.5)),
    (r"\mathrm{erf}\left(\frac{x}{\sqrt{2}}\right)", dict(x=".5"), erf(0.5 / sqrt(2))),
    (
        r"\frac{1}{2}\left[1+\operatorname{erf}\left(\frac{x-\mu}{\sigma\sqrt{2}}\right)\right]",
        dict(x=".5", mu=".1", sigma="2"),
        st.norm.cdf(0.5, 0.1, 2),
    ),
    (r"\log(1+e^x)", dict(x=".5"), log1p(exp(0.5))),
    (r"\int_0^\pi \sin x\,dx", dict(), 2),
    (r"\int_a^b (x^2+1) dx", dict(a="0", b="3"), 12),
    (r"\lim_{x\to 2} x^2", dict(), 4),
]

found = {
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "rows": [[text, values, np.asarray(wanted).tolist()] for text, values, wanted in ROWS],
}
Path(__file__).with_name("papers.json").write_text(json.dumps(found, indent=0) + "\n")

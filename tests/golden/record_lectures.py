r"""What formulas of lectures, READMEs and notebooks come to, as NumPy and SciPy compute them: LaTeX, and the
small signs of Unicode.

python tests/golden/record_lectures.py writes lectures.json, as record_papers.py does papers.json.
"""

from __future__ import annotations

import json
from math import *  # noqa: F403
from pathlib import Path

import numpy as np
import scipy
import scipy.stats as st

# ruff: noqa: F405, E501, C408
A = np.array([[2, 0.5], [0.3, 1.5]])
S = np.array([[2, 0.5], [0.5, 1.5]])
W = np.array([[0.1, 0.2], [-0.3, 0.4]])
S2 = np.array([[1.0, 0.2], [0.2, 0.8]])
x = np.array([0.7, -0.4])
y = np.array([1.2, 0.3])
b = np.array([0.2, 0.9])
mu = np.array([0.1, 0.2])
p = np.array([0.3, 0.7])
q = np.array([0.4, 0.6])
X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.2]])
t3 = np.array([1.0, -1.0, 1.0])
u3 = np.array([0.2, 0.5, 0.3])
L = "[[1,2],[3,-1],[.5,.2]]"
V = dict(
    A="[[2,.5],[.3,1.5]]",
    S="[[2,.5],[.5,1.5]]",
    W="[[.1,.2],[-.3,.4]]",
    S2="[[1,.2],[.2,.8]]",
    x="[.7,-.4]",
    y="[1.2,.3]",
    b="[.2,.9]",
    mu="[.1,.2]",
    p="[.3,.7]",
    q="[.4,.6]",
    t3="[1,-1,1]",
    u3="[.2,.5,.3]",
)


def sig(z):
    return 1 / (1 + np.exp(-z))


def sm(z):
    z = np.exp(z)
    return z / z.sum(-1, keepdims=True)


inv = np.linalg.inv
det = np.linalg.det
N = st.norm
x2 = "[.7,-.4]"
R = []


def r(text, vals=None, want=None, **k):
    R.append((text, {**(vals or {}), **k}, want))


# A
r(
    r"\mathcal{L}_{\text{MSE}} = \frac{1}{n}\sum_{i=1}^{n}(y_i - \hat{y}_i)^2",
    dict(y=V["y"], y_hat=V["x"], n="2"),
    ((y - x) ** 2).mean(),
)
r(
    r"\text{MSE} = \frac{1}{n} \sum_{i=1}^{n} (y_i - \hat{y}_i)^2",
    dict(y=V["y"], y_hat=V["x"], n="2"),
    ((y - x) ** 2).mean(),
)
r(
    r"\mathcal{L} = -\frac{2 \sum_i p_i g_i}{\sum_i p_i + \sum_i g_i}",
    dict(p=V["p"], g="[0,1]"),
    -1.4 / 2,
)
r(r"L(y, \hat{y}) = -[y \log \hat{y} + (1-y)\log(1-\hat{y})]", dict(y="1", y_hat=".3"), -log(0.3))
r(
    r"-\alpha (1-p_t)^\gamma \log(p_t)",
    dict(alpha=".25", p_t=".3", gamma="2"),
    -0.25 * 0.49 * log(0.3),
)
r(
    r"\begin{cases} \frac{1}{2}(y - f)^2 & \text{if } |y-f| \le \delta \\ \delta |y-f| - \frac{1}{2}\delta^2 & \text{otherwise} \end{cases}",
    dict(y="3", f="1", delta=".5"),
    1 - 0.125,
)
r(
    r"L_\delta(a) = \begin{cases} \frac{1}{2} a^2 & \text{for } |a| \leq \delta, \\ \delta \cdot \left(|a| - \frac{1}{2}\delta\right), & \text{otherwise.} \end{cases}",
    dict(a="2", delta=".5"),
    0.5 * 1.75,
)
r(
    r"-\frac{1}{N}\sum_{i=1}^N\sum_{c=1}^C y_{i,c}\log p_{i,c}",
    dict(y="[[0,1],[1,0]]", p="[[.3,.7],[.4,.6]]", N="2", C="2"),
    -(log(0.7) + log(0.4)) / 2,
)
r(r"\text{softmax}(z)_i = \frac{e^{z_i}}{\sum_{j=1}^K e^{z_j}}", dict(z=V["x"], K="2"), sm(x))
r(r"\sigma(z)_i = \frac{e^{z_i}}{\sum_{j} e^{z_j}}", dict(z=V["x"]), sm(x))
r(r"\sigma(z_i) = \frac{e^{z_{i}}}{\sum_{j=1}^K e^{z_{j}}}", dict(z=V["x"], K="2"), sm(x))
r(
    r"\frac{1}{n}\sum_{i=1}^n \max(0, 1 - y_i(\mathbf{w}^\top \mathbf{x}_i - b)) + \lambda \|\mathbf{w}\|^2",
    dict(n="3", y=V["t3"], x=L, w=V["y"], b=".1", lam=".5"),
    np.maximum(0, 1 - t3 * (X @ y - 0.1)).mean() + 0.5 * y @ y,
)
r(
    r"J(\theta) = -\frac{1}{m} \sum_{i=1}^m \left[ y^{(i)} \log h_\theta(x^{(i)}) + (1 - y^{(i)}) \log (1 - h_\theta(x^{(i)})) \right], h_\theta(x) = \frac{1}{1+e^{-\theta^T x}}",
    dict(m="3", y="[1,0,1]", x=L, theta=V["y"]),
    -(np.log(sig(X @ y)) * [1, 0, 1] + np.log(1 - sig(X @ y)) * [0, 1, 0]).mean(),
)
r(
    r"\hat{\beta} = (X^\top X + \lambda I)^{-1} X^\top y",
    dict(X=L, lam=".5", y=V["t3"]),
    inv(X.T @ X + 0.5 * np.eye(2)) @ X.T @ t3,
)
r(
    r"\frac{1}{2n}\|y - X\beta\|_2^2 + \lambda\|\beta\|_1",
    dict(n="3", y=V["t3"], X=L, beta=V["x"], lam=".5"),
    ((t3 - X @ x) ** 2).sum() / 6 + 0.55,
)
r(
    r"\lambda\left(\alpha\|\beta\|_1 + \frac{1-\alpha}{2}\|\beta\|_2^2\right)",
    dict(lam=".5", alpha=".3", beta=V["x"]),
    0.5 * (0.3 * 1.1 + 0.35 * x @ x),
)
r(
    r"D_{KL}(P \| Q) = \sum_i P(i) \log \frac{P(i)}{Q(i)}",
    dict(P=V["p"], Q=V["q"]),
    (p * np.log(p / q)).sum(),
)
r(
    r"D_{\text{KL}}(p\|q) = \sum_x p(x)\log\frac{p(x)}{q(x)}",
    dict(p=V["p"], q=V["q"]),
    (p * np.log(p / q)).sum(),
)
r(r"\sum_i p_i \log \frac{p_i}{q_i}", dict(p=V["p"], q=V["q"]), (p * np.log(p / q)).sum())
r(
    r"-\frac{1}{2}\sum_{j=1}^{J}\left(1 + \log(\sigma_j^2) - \mu_j^2 - \sigma_j^2\right)",
    dict(J="2", sigma=V["p"], mu=V["x"]),
    -0.5 * (1 + np.log(p**2) - x**2 - p**2).sum(),
)
r(
    r"-\frac{1}{2}\sum_{j=1}^{J}\left(1 + \log((\sigma_j)^2) - (\mu_j)^2 - (\sigma_j)^2\right)",
    dict(J="2", sigma=V["p"], mu=V["x"]),
    -0.5 * (1 + np.log(p**2) - x**2 - p**2).sum(),
)
r(
    r"\log\frac{\sigma_2}{\sigma_1} + \frac{\sigma_1^2 + (\mu_1-\mu_2)^2}{2\sigma_2^2} - \frac{1}{2}",
    dict(sigma_1=".5", sigma_2="2", mu_1=".1", mu_2=".7"),
    log(4) + (0.25 + 0.36) / 8 - 0.5,
)
r(
    r"\frac{1}{2}\left[\log\frac{|\Sigma_2|}{|\Sigma_1|} - n + \text{tr} \{ \Sigma_2^{-1}\Sigma_1 \} + (\mu_2 - \mu_1)^T \Sigma_2^{-1}(\mu_2 - \mu_1)\right]",
    dict(Sigma_1=V["S"], Sigma_2=V["S2"], n="2", mu_1=V["mu"], mu_2=V["b"]),
    0.5 * (log(det(S2) / det(S)) - 2 + np.trace(inv(S2) @ S) + (b - mu) @ inv(S2) @ (b - mu)),
)
r(r"H(p) = -\sum_x p(x) \log_2 p(x)", dict(p=V["p"]), -(p * np.log2(p)).sum())
r(
    r"\text{Attention}(Q, K, V) = \text{softmax}\left(\frac{QK^T}{\sqrt{d_k}}\right)V",
    dict(Q=V["A"], K=V["W"], V=V["S"], d_k="2"),
    sm(A @ W.T / sqrt(2)) @ S,
)
r(
    r"\text{softmax}\left( \frac{QK^T}{\sqrt{d_k}} + M \right) V",
    dict(Q=V["A"], K=V["W"], V=V["S"], d_k="2", M=V["S2"]),
    sm(A @ W.T / sqrt(2) + S2) @ S,
)
r(
    r"\text{FFN}(x) = \max(0, xW_1 + b_1)W_2 + b_2",
    dict(x=V["x"], W_1=V["A"], b_1=V["b"], W_2=V["S"], b_2=V["y"]),
    np.maximum(0, x @ A + b) @ S + y,
)
r(
    r"\gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta",
    dict(gamma=V["y"], x=V["x"], mu=".1", sigma=".5", epsilon="1e-5", beta=V["b"]),
    y * (x - 0.1) / sqrt(0.25 + 1e-5) + b,
)
r(
    r"0.5x\left(1+\tanh\left[\sqrt{2/\pi}\,(x+0.044715x^3)\right]\right)",
    dict(x=".7"),
    0.35 * (1 + tanh(sqrt(2 / pi) * (0.7 + 0.044715 * 0.343))),
)
r(r"\text{Swish}(x) = x \cdot \sigma(\beta x)", dict(x=".7", beta="1.5"), 0.7 * sig(1.05))
r(r"\text{ReLU}(x) = \max(0, x)", dict(x="-.7"), 0)
r(r"\text{LeakyReLU}(x) = \max(\alpha x, x)", dict(x="-.7", alpha=".1"), -0.07)
r(
    r"\theta_{t+1} = \theta_t - \eta \frac{\hat{m}_t}{\sqrt{\hat{v}_t} + \epsilon}",
    dict(theta_t="1", eta=".1", m_hat_t=".5", v_hat_t=".25", epsilon="1e-8"),
    1 - 0.1 * 0.5 / (0.5 + 1e-8),
)
r(r"\hat{m}_t = \frac{m_t}{1-\beta_1^t}", dict(m_t=".5", beta_1=".9", t="3"), 0.5 / (1 - 0.9**3))
r(r"\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_l e^{s_{il}}}", dict(s=V["A"]), sm(A))
r(r"\alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{k=1}^{n} \exp(e_{ik})}", dict(e=V["A"], n="2"), sm(A))
r(
    r"\max(\|a - p\|_2^2 - \|a - n\|_2^2 + \alpha, 0)",
    dict(a=V["x"], p=V["y"], n=V["b"], alpha=".2"),
    max(((x - y) ** 2).sum() - ((x - b) ** 2).sum() + 0.2, 0),
)
r(
    r"\frac{\mathbf{a} \cdot \mathbf{b}}{\|\mathbf{a}\| \|\mathbf{b}\|}",
    dict(a=V["x"], b=V["y"]),
    x @ y / sqrt(x @ x * (y @ y)),
)
r(r"\frac{A \cdot B}{\|A\|\|B\|}", dict(A=V["x"], B=V["y"]), x @ y / sqrt(x @ x * (y @ y)))
r(
    r"\min(r\hat{A}, \text{clip}(r, 1-\epsilon, 1+\epsilon)\hat{A})",
    dict(r="1.5", A_hat="2", epsilon=".2"),
    2.4,
)
r(
    r"-\log\sigma\left(\beta\log\frac{\pi_w}{\rho_w} - \beta\log\frac{\pi_l}{\rho_l}\right)",
    dict(beta=".1", pi_w=".3", rho_w=".2", pi_l=".1", rho_l=".4"),
    -log(sig(0.1 * log(1.5) - 0.1 * log(0.25))),
)
r(
    r"\exp\left(-\frac{1}{N}\sum_{i=1}^N \log p_i\right)",
    dict(N="2", p=V["p"]),
    exp(-np.log(p).mean()),
)
r(
    r"R^2 = 1 - \frac{\sum_{i=1}^n (y_i - \hat{y}_i)^2}{\sum_{i=1}^n (y_i - \bar{y})^2}",
    dict(y=V["y"], y_hat=V["x"]),
    1 - ((y - x) ** 2).sum() / ((y - y.mean()) ** 2).sum(),
)
r(
    r"\frac{100\%}{n}\sum_{i=1}^n \left|\frac{y_i-\hat{y}_i}{y_i}\right|",
    dict(y=V["y"], y_hat=V["x"], n="2"),
    abs((y - x) / y).mean(),
)
r(
    r"\sqrt{\frac{1}{n}\sum_{i=1}^{n}(y_i-\hat{y}_i)^2}",
    dict(y=V["y"], y_hat=V["x"], n="2"),
    sqrt(((y - x) ** 2).mean()),
)
r(r"\mathbf{C} = \frac{1}{n - 1} \mathbf{X}^\top \mathbf{X}", dict(X=L, n="3"), X.T @ X / 2)
r(
    r"K(\mathbf{x}_n,\mathbf{x}_m) = \exp(-\gamma\|\mathbf{x}_n-\mathbf{x}_m\|^2)",
    dict(x=L, gamma=".5"),
    np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1)),
)
r(
    r"\sum_{n=1}^N \ln \sum_{k=1}^K \pi_k \mathcal{N}(x_n|\mu_k,\sigma_k^2)",
    dict(N="3", K="2", pi=V["p"], x=V["u3"], mu=V["mu"], sigma=V["q"]),
    np.log((p * N.pdf(u3[:, None], mu, q)).sum(1)).sum(),
)
r(
    r"p(x) = \sum_{k=1}^K \pi_k \mathcal{N}(x \mid \mu_k, \sigma_k^2)",
    dict(K="2", pi=V["p"], x=".3", mu=V["mu"], sigma=V["q"]),
    (p * N.pdf(0.3, mu, q)).sum(),
)
r(
    r"\gamma_{nk} = \frac{\pi_k \mathcal{N}(x_n|\mu_k,\sigma_k^2)}{\sum_j \pi_j \mathcal{N}(x_n|\mu_j,\sigma_j^2)}",
    dict(pi=V["p"], x=V["u3"], mu=V["mu"], sigma=V["q"]),
    (lambda w: w / w.sum(1, keepdims=True))(p * N.pdf(u3[:, None], mu, q)),
)
r(
    r"\mathcal{N}(\mathbf{x}|\boldsymbol{\mu},\boldsymbol{\Sigma})",
    dict(x=V["x"], mu=V["mu"], Sigma=V["S"]),
    st.multivariate_normal(mu, S).pdf(x),
)
r(
    r"\|R - UV^T\|_F^2 + \lambda(\|U\|_F^2 + \|V\|_F^2)",
    dict(R=V["A"], U=V["W"], V=V["S"], lam=".5"),
    ((A - W @ S.T) ** 2).sum() + 0.5 * ((W**2).sum() + (S**2).sum()),
)
r(
    r"\frac{(w^T(\mu_1-\mu_2))^2}{w^T S_W w}",
    dict(w=V["x"], mu_1=V["mu"], mu_2=V["b"], S_W=V["S"]),
    (x @ (mu - b)) ** 2 / (x @ S @ x),
)
r(
    r"J(\mathbf{w}) = \frac{\mathbf{w}^T \mathbf{S}_B \mathbf{w}}{\mathbf{w}^T \mathbf{S}_W \mathbf{w}}",
    dict(w=V["x"], S_B=V["A"], S_W=V["S"]),
    x @ A @ x / (x @ S @ x),
)
r(
    r"\sum_{i=1}^n \alpha_i - \frac{1}{2}\sum_{i=1}^n\sum_{j=1}^n \alpha_i\alpha_j y_i y_j x_i^T x_j",
    dict(n="3", alpha=V["u3"], y=V["t3"], x=L),
    1 - 0.5 * (u3 * t3) @ (X @ X.T) @ (u3 * t3),
)
r(
    r"\sum_{i=1}^n \alpha_i - \frac{1}{2}\sum_{i,j} \alpha_i\alpha_j y_i y_j K(x_i, x_j), K(a,b) = e^{-\|a-b\|^2}",
    dict(n="3", alpha=V["u3"], y=V["t3"], x=L),
    1 - 0.5 * (u3 * t3) @ np.exp(-((X[:, None] - X) ** 2).sum(-1)) @ (u3 * t3),
)
r(
    r"\frac{1}{1+e^{-(\beta_0+\beta_1x_1+\beta_2x_2)}}",
    dict(beta_0=".1", beta_1=".2", beta_2=".3", x_1="1", x_2="2"),
    sig(0.9),
)
r(r"P(y=1|x) = \frac{1}{1+e^{-\theta^Tx}}", dict(theta=V["y"], x=V["x"]), sig(y @ x))
r(
    r"P(y=1 \mid \mathbf{x}) = \sigma(\mathbf{w}^\top\mathbf{x}+b)",
    dict(w=V["y"], x=V["x"], b=".1"),
    sig(y @ x + 0.1),
)
r(
    r"-\frac{1}{2}\mathbf{y}^\top K^{-1}\mathbf{y} - \frac{1}{2}\log|K| - \frac{n}{2}\log 2\pi",
    dict(y=V["y"], K=V["S"], n="2"),
    -0.5 * y @ inv(S) @ y - 0.5 * log(det(S)) - log(2 * pi),
)
r(
    r"\frac{1}{m} X^T (\sigma(X\theta) - y)",
    dict(m="3", X=L, theta=V["x"], y="[1,0,1]"),
    X.T @ (sig(X @ x) - [1, 0, 1]) / 3,
)
r(
    r"\nabla_\theta J(\theta) = \frac{1}{m} X^T (\sigma(X\theta) - y)",
    dict(m="3", X=L, theta=V["x"], y="[1,0,1]"),
    X.T @ (sig(X @ x) - [1, 0, 1]) / 3,
)
r(
    r"\frac{\partial L}{\partial W} = X^T (\hat{y} - y)",
    dict(X=L, y_hat=V["u3"], y=V["t3"]),
    X.T @ (u3 - t3),
)
r(
    r"\text{Dropout}(x) = \frac{m \odot x}{1-p}",
    dict(m="[1,0]", x=V["x"], p=".5"),
    np.array([1.4, 0]),
)
r(
    r"\tilde{c}_t = \tanh(W_c x_t + b_c)",
    dict(W_c=V["A"], x_t=V["x"], b_c=V["b"]),
    np.tanh(A @ x + b),
)
r(
    r"h_t = (1-z_t) \odot h_p + z_t \odot \tilde{h}_t",
    dict(z_t=V["p"], h_p=V["x"], h_tilde_t=V["y"]),
    (1 - p) * x + p * y,
)
r(r"\frac{1}{1+\exp(-k(x-x_0))}", dict(k="2", x="1", x_0=".5"), sig(1))
r(
    r"\mathcal{L} = \mathcal{L}_{\text{rec}} + \beta \mathcal{L}_{\text{KL}}",
    dict(L_rec="1", beta=".5", L_KL="2"),
    2,
)
r(
    r"\mathcal{L}_{\text{total}}=\mathcal{L}_{\mathrm{AR}}+\lambda_{\mathrm{CTC}}\,\mathcal{L}_{\mathrm{CTC}}",
    dict(L_AR="1", lam_CTC=".2", L_CTC="2"),
    1.4,
)
r(r"\frac{\text{TP}}{\text{TP} + \text{FP}}", dict(TP="3", FP="1"), 0.75)
r(r"\frac{TP + TN}{TP + TN + FP + FN}", dict(TP="3", TN="4", FP="1", FN="2"), 0.7)
r(
    r"\frac{\mathbf{w}^T\mathbf{x}+b}{\|\mathbf{w}\|_2}",
    dict(w=V["y"], x=V["x"], b=".1"),
    (y @ x + 0.1) / sqrt(y @ y),
)
r(
    r"\text{PE}_{(pos,2i)} = \sin\left(\frac{pos}{10000^{2i/d}}\right)",
    dict(pos="3", i="1", d="8"),
    sin(3 / 10000**0.25),
)
r(r"\lambda \sum_{j=1}^p |\beta_j|", dict(lam=".5", p="2", beta=V["x"]), 0.55)
# B
r(
    r"t = \frac{\bar{x}_1-\bar{x}_2}{\sqrt{\frac{s_1^2}{n_1}+\frac{s_2^2}{n_2}}}",
    dict(x_bar_1="1", x_bar_2=".5", s_1=".3", n_1="4", s_2=".4", n_2="5"),
    0.5 / sqrt(0.09 / 4 + 0.16 / 5),
)
r(r"z = \frac{x-\mu}{\sigma}", dict(x="1", mu=".5", sigma="2"), 0.25)
r(
    r"r = \frac{\sum_{i=1}^n (x_i-\bar{x})(y_i-\bar{y})}{\sqrt{\sum_{i=1}^n (x_i-\bar{x})^2}\sqrt{\sum_{i=1}^n (y_i-\bar{y})^2}}",
    dict(x=V["t3"], y=V["u3"]),
    np.corrcoef(t3, u3)[0, 1],
)
r(
    r"r_{xy} = \frac{\sum_{i=1}^n (x_i-\bar{x})(y_i-\bar{y})}{\sqrt{\sum_{i=1}^n (x_i-\bar{x})^2 \sum_{i=1}^n (y_i-\bar{y})^2}}",
    dict(x=V["t3"], y=V["u3"]),
    np.corrcoef(t3, u3)[0, 1],
)
r(r"s^2 = \frac{1}{n-1}\sum_{i=1}^n (x_i-\bar{x})^2", dict(n="3", x=V["u3"]), u3.var(ddof=1))
r(
    r"s = \sqrt{\frac{\sum_{i=1}^{N} (x_i - \overline{x})^2}{N-1}}",
    dict(N="3", x=V["u3"]),
    u3.std(ddof=1),
)
r(
    r"\frac{\Gamma(\alpha+\beta)}{\Gamma(\alpha)\Gamma(\beta)}x^{\alpha-1}(1-x)^{\beta-1}",
    dict(x=".3", alpha="2", beta="3"),
    st.beta(2, 3).pdf(0.3),
)
r(
    r"\frac{\beta^\alpha}{\Gamma(\alpha)}x^{\alpha-1}e^{-\beta x}",
    dict(x=".3", alpha="2", beta="3"),
    st.gamma(2, scale=1 / 3).pdf(0.3),
)
r(r"\frac{\lambda^k e^{-\lambda}}{k!}", dict(lam="2", k="3"), st.poisson(2).pmf(3))
r(r"\binom{n}{k}p^k(1-p)^{n-k}", dict(n="5", k="2", p=".3"), st.binom(5, 0.3).pmf(2))
r(r"\frac{n!}{k!(n-k)!} p^k (1-p)^{n-k}", dict(n="5", k="2", p=".3"), st.binom(5, 0.3).pmf(2))
r(
    r"\frac{\Gamma\left(\frac{\nu+1}{2}\right)}{\sqrt{\nu\pi}\,\Gamma\left(\frac{\nu}{2}\right)}\left(1+\frac{t^2}{\nu}\right)^{-\frac{\nu+1}{2}}",
    dict(nu="3", t=".5"),
    st.t(3).pdf(0.5),
)
r(r"\chi^2 = \sum_{i=1}^k \frac{(O_i-E_i)^2}{E_i}", dict(k="3", O="[3,4,5]", E="[4,4,4]"), 0.5)
r(
    r"\frac{k}{\lambda}\left(\frac{x}{\lambda}\right)^{k-1}e^{-(x/\lambda)^k}",
    dict(k="2", lam="3", x="1"),
    st.weibull_min(2, scale=3).pdf(1),
)
r(
    r"\frac{1}{2b}\exp\left(-\frac{|x-\mu|}{b}\right)",
    dict(b="2", x="1", mu=".5"),
    st.laplace(0.5, 2).pdf(1),
)
r(
    r"\frac{1}{x\sigma\sqrt{2\pi}}\exp\left(-\frac{(\ln x-\mu)^2}{2\sigma^2}\right)",
    dict(x="2", sigma=".5", mu=".1"),
    st.lognorm(0.5, scale=exp(0.1)).pdf(2),
)
r(
    r"\frac{1}{\pi\gamma\left[1+\left(\frac{x-x_0}{\gamma}\right)^2\right]}",
    dict(x="1", gamma="2", x_0=".5"),
    st.cauchy(0.5, 2).pdf(1),
)
r(
    r"-\frac{1}{2}(x-\mu)^T\Sigma^{-1}(x-\mu)-\frac{1}{2}\ln|\Sigma|-\frac{d}{2}\ln(2\pi)",
    dict(x=V["x"], mu=V["mu"], Sigma=V["S"], d="2"),
    st.multivariate_normal(mu, S).logpdf(x),
)
r(
    r"\sqrt{(\mathbf{x}-\boldsymbol\mu)^\top\mathbf{S}^{-1}(\mathbf{x}-\boldsymbol\mu)}",
    dict(x=V["x"], mu=V["mu"], S=V["S"]),
    sqrt((x - mu) @ inv(S) @ (x - mu)),
)
r(r"\text{AIC} = 2k - 2\ln(\hat{L})", dict(k="3", L_hat=".5"), 6 - 2 * log(0.5))
r(
    r"\mathrm{BIC} = k\ln(n)-2\ln(\hat L)",
    dict(k="3", n="10", L_hat=".5"),
    3 * log(10) - 2 * log(0.5),
)
r(r"\bar{x} = \frac{1}{n}\sum_{i=1}^n x_i", dict(n="3", x=V["u3"]), 1 / 3)
r(
    r"\hat{\sigma}^2 = \frac{1}{n}\sum_{i=1}^{n}(x_i-\hat{\mu})^2",
    dict(n="3", x=V["u3"], mu_hat=".3"),
    ((u3 - 0.3) ** 2).mean(),
)
r(
    r"S = \frac{1}{n}\sum_{i=1}^n (x_i - \bar{x})(x_i - \bar{x})^T",
    dict(n="3", x=L),
    np.cov(X.T, bias=True),
)
r(
    r"\frac{\exp((\log\pi_i+g_i)/\tau)}{\sum_{j=1}^k\exp((\log\pi_j+g_j)/\tau)}",
    dict(pi=V["p"], g=V["x"], tau=".5", k="2"),
    sm((np.log(p) + x) / 0.5),
)
r(
    r"\frac{\Gamma\left(\sum_{i=1}^K \alpha_i\right)}{\prod_{i=1}^K \Gamma(\alpha_i)}\prod_{i=1}^K x_i^{\alpha_i-1}",
    dict(K="2", alpha="[2,3]", x=V["p"]),
    st.dirichlet([2, 3]).pdf(p),
)
r(r"\frac12\ln(2\pi e\sigma^2)", dict(sigma="2"), N(0, 2).entropy())
r(
    r"\frac{1}{2}\ln\left((2\pi e)^n |\Sigma|\right)",
    dict(n="2", Sigma=V["S"]),
    st.multivariate_normal(mu, S).entropy(),
)
r(
    r"\frac{1}{n h \sqrt{2\pi}}\sum_{i=1}^n e^{-\frac{(t-x_i)^2}{2h^2}}",
    dict(n="3", h=".5", t=".1", x=V["u3"]),
    N.pdf(0.1, u3, 0.5).mean(),
)
# C physics
r(r"E = mc^2", dict(m="2", c="3"), 18)
r(r"\frac{1}{\sqrt{1-\frac{v^2}{c^2}}}", dict(v="1", c="3"), 1 / sqrt(1 - 1 / 9))
r(r"F = G\frac{m_1m_2}{r^2}", dict(G="6", m_1="2", m_2="3", r="2"), 9)
r(
    r"B(\nu,T) = \frac{2h\nu^3}{c^2}\frac{1}{e^{\frac{h\nu}{k_BT}}-1}",
    dict(h="2", nu="3", c="4", k_B="1.5", T="5"),
    2 * 2 * 27 / 16 / (exp(6 / 7.5) - 1),
)
r(
    r"V(r) = 4\varepsilon\left[\left(\frac{\sigma}{r}\right)^{12}-\left(\frac{\sigma}{r}\right)^{6}\right]",
    dict(epsilon=".5", sigma="1", r="1.2"),
    2 * (1.2**-12 - 1.2**-6),
)
r(
    r"D_e\left(1-e^{-a(r-r_e)}\right)^2",
    dict(D_e="2", a="1.5", r="1", r_e=".8"),
    2 * (1 - exp(-0.3)) ** 2,
)
r(
    r"4\pi\left(\frac{m}{2\pi k_BT}\right)^{3/2}v^2e^{-\frac{mv^2}{2k_BT}}",
    dict(m="2", k_B="1.5", T="3", v="1"),
    4 * pi * (2 / (2 * pi * 4.5)) ** 1.5 * exp(-2 / 9),
)
r(r"\frac{1}{e^{(E-\mu)/k_BT}+1}", dict(E="2", mu="1", k_B="2", T="3"), 1 / (exp(1 / 6) + 1))
r(r"\frac{1}{e^{(E-\mu)/(k_B T)}+1}", dict(E="2", mu="1", k_B="2", T="3"), 1 / (exp(1 / 6) + 1))
r(r"T = 2\pi\sqrt{\frac{L}{g}}", dict(L="2", g="9.81"), 2 * pi * sqrt(2 / 9.81))
r(
    r"x(t) = Ae^{-\gamma t}\cos(\omega t+\phi)",
    dict(A="2", gamma=".5", t="1", omega="3", phi=".1"),
    2 * exp(-0.5) * cos(3.1),
)
r(
    r"\psi_n(x) = \sqrt{\frac{2}{L}}\sin\left(\frac{n\pi x}{L}\right)",
    dict(L="2", n="3", x=".3"),
    sin(3 * pi * 0.15),
)
r(
    r"\frac{n_1\cos\theta_i-n_2\cos\theta_t}{n_1\cos\theta_i+n_2\cos\theta_t}",
    dict(n_1="1", n_2="1.5", theta_i=".3", theta_t=".2"),
    (cos(0.3) - 1.5 * cos(0.2)) / (cos(0.3) + 1.5 * cos(0.2)),
)
r(r"\frac{1}{2}m\dot{x}^2-\frac{1}{2}kx^2", dict(m="2", x_dot="3", k="4", x=".5"), 9 - 0.5)
r(
    r"\frac{1}{2}(M+m)\dot{x}^2 + m\ell\dot{x}\dot{\theta}\cos\theta + \frac{1}{2}m\ell^2\dot{\theta}^2 - mg\ell\cos\theta",
    dict(M="3", m="2", x_dot="1", ell=".5", theta_dot=".7", theta=".3", g="9.81"),
    2.5 + 0.7 * cos(0.3) + 0.25 * 0.49 - 9.81 * cos(0.3),
)
r(r"\frac12 m v^2 + mgh", dict(m="2", v="3", g="9.81", h="1"), 9 + 19.62)
r("P + ½ρv² + ρgh", dict(P="1", rho="2", v="3", g="9.81", h=".5"), 1 + 9 + 9.81)
r(
    r"j_0\left[e^{\alpha nF\eta/RT} - e^{-(1-\alpha)nF\eta/RT}\right]",
    dict(j_0="1", alpha=".3", n="1", F="2", eta=".1", R="2", T="1"),
    exp(0.03) - exp(-0.07),
)
r(r"k = Ae^{-E_a/RT}", dict(A="2", E_a="3", R="2", T="5"), 2 * exp(-0.3))
r(r"k = Ae^{-\frac{E_a}{RT}}", dict(A="2", E_a="3", R="2", T="5"), 2 * exp(-0.3))
r(r"v = \frac{V_{\max}[S]}{K_m+[S]}", dict(V_max="2", S="3", K_m="1"), 1.5)
r(r"\frac{[L]^n}{K_d+[L]^n}", dict(L="3", n="2", K_d="1"), 0.9)
r(r"\theta = \frac{KP}{1+KP}", dict(K="3", P="2"), 6 / 7)
r(
    r"\left(P+a\frac{n^2}{V^2}\right)(V-nb)",
    dict(P="1", a="2", n="1", V="3", b=".1"),
    (1 + 2 / 9) * 2.9,
)
r(r"R_H\left(\frac{1}{n_1^2}-\frac{1}{n_2^2}\right)", dict(R_H="2", n_1="1", n_2="2"), 1.5)
r(r"\hbar\omega\left(n+\frac12\right)", dict(hbar="1", omega="2", n="3"), 7)
r(r"f\left(\frac{v+v_o}{v-v_s}\right)", dict(f="440", v="340", v_o="10", v_s="20"), 440 * 350 / 320)
r(
    r"\vec F = q(\vec E + \vec v\times\vec B)",
    dict(q="2", E="[1,0,0]", v="[0,1,0]", B="[0,0,2]"),
    np.array([6, 0, 0]),
)
r(r"U = -\vec\mu\cdot\vec B", dict(mu="[1,2,3]", B="[1,1,1]"), -6)
r(r"P = \sigma A T^4", dict(sigma="2", A="3", T="2"), 96)
r(r"\epsilon\sigma A(T^4-T_0^4)", dict(epsilon=".5", sigma="2", A="3", T="2", T_0="1"), 45)
r(r"\sigma(T_1^4 - T_2^4)", dict(sigma="2", T_1="2", T_2="1"), 30)
r(r"\frac{\rho vL}{\mu}", dict(rho="2", v="3", L="4", mu=".5"), 48)
r(r"\frac{u+v}{1+\frac{uv}{c^2}}", dict(u="1", v="2", c="3"), 3 / (1 + 2 / 9))
r(r"\frac{2GM}{c^2}", dict(G="1", M="2", c="3"), 4 / 9)
r(r"\frac{1}{(E-E_0)^2+\Gamma^2/4}", dict(E="2", E_0="1", Gamma="2"), 0.5)
r(r"\frac{h}{m_ec}(1-\cos\theta)", dict(h="2", m_e="3", c="4", theta=".5"), 2 / 12 * (1 - cos(0.5)))
r(r"x_0 + v_0t + \frac{1}{2}at^2", dict(x_0="1", v_0="2", t="3", a="4"), 1 + 6 + 18)
r(r"\frac{-b + \sqrt{b^2-4ac}}{2a}", dict(a="1", b="-3", c="2"), 2)
r(r"\frac{1}{2\pi\sqrt{LC}}", dict(L="2", C="3"), 1 / (2 * pi * sqrt(6)))
r(r"\sum_{n=1}^{N} m_n |\mathbf{r}_n|^2", dict(N="3", m=V["u3"], r=L), u3 @ (X**2).sum(1))
r(
    r"\frac{1}{4\pi\varepsilon_0}\sum_{i<j}\frac{q_iq_j}{|x_i-x_j|}",
    dict(varepsilon_0="1", epsilon_0="1", q=V["t3"], x="[1,2,4]"),
    (-1 / 1 + 1 / 3 - 1 / 2) / (4 * pi),
)
r(r"k_BT\ln 2", dict(k_B="2", T="3"), 6 * log(2))
r(r"N_A k_B T", dict(N_A="2", k_B="3", T="4"), 24)
# D finance
r(
    r"d_1 = \frac{\ln\left(\frac{S}{K}\right)+\left(r+\frac{\sigma^2}{2}\right)(T-t)}{\sigma\sqrt{T-t}}",
    dict(S="100", K="90", r=".05", sigma=".2", T="1", t=".5"),
    (log(10 / 9) + 0.07 * 0.5) / (0.2 * sqrt(0.5)),
)
d1 = (log(10 / 9) + 0.07) / 0.2
r(
    r"C = S\Phi(d_1) - Ke^{-rT}\Phi(d_2), \quad d_1 = \frac{\ln(S/K)+(r+\sigma^2/2)T}{\sigma\sqrt{T}}, \quad d_2 = d_1 - \sigma\sqrt{T}",
    dict(S="100", K="90", r=".05", sigma=".2", T="1"),
    100 * N.cdf(d1) - 90 * exp(-0.05) * N.cdf(d1 - 0.2),
)
r(
    r"P\left(1+\frac{r}{n}\right)^{nt}",
    dict(P="100", r=".05", n="12", t="2"),
    100 * (1 + 0.05 / 12) ** 24,
)
r(
    r"FV_T = PV \left(1 + \frac{r}{n}\right)^{Tn}",
    dict(PV="100", r=".05", n="12", T="2"),
    100 * (1 + 0.05 / 12) ** 24,
)
r(
    r"\sum_{t=1}^{T}\frac{C_t}{(1+r)^t}",
    dict(C="[5,5,105]", r=".04", T="3"),
    5 / 1.04 + 5 / 1.04**2 + 105 / 1.04**3,
)
r(
    r"\text{NPV} = \sum_{t=0}^{n}\frac{CF_t}{(1+r)^t}",
    dict(CF="[-100,60,60]", r=".04", n="2"),
    -100 + 60 / 1.04 + 60 / 1.04**2,
)
r(r"\frac{R_p-R_f}{\sigma_p}", dict(R_p=".1", R_f=".02", sigma_p=".2"), 0.4)
r(
    r"\mathbf{w}^\top\boldsymbol{\mu}-\frac{\lambda}{2}\mathbf{w}^\top\boldsymbol{\Sigma}\mathbf{w}",
    dict(w=V["p"], mu=V["mu"], lam="3", Sigma=V["S"]),
    p @ mu - 1.5 * p @ S @ p,
)
r(
    r"\beta_0+\beta_1\frac{1-e^{-\lambda\tau}}{\lambda\tau}+\beta_2\left(\frac{1-e^{-\lambda\tau}}{\lambda\tau}-e^{-\lambda\tau}\right)",
    dict(beta_0=".03", beta_1="-.01", beta_2=".02", lam=".5", tau="3"),
    0.03 - 0.01 * (1 - exp(-1.5)) / 1.5 + 0.02 * ((1 - exp(-1.5)) / 1.5 - exp(-1.5)),
)
r(
    r"S_0\exp\left(\left(\mu-\frac{\sigma^2}{2}\right)t+\sigma W_t\right)",
    dict(S_0="100", mu=".05", sigma=".2", t="2", W_t=".3"),
    100 * exp(0.03 * 2 + 0.06),
)
r(
    r"P\frac{r(1+r)^n}{(1+r)^n-1}",
    dict(P="100", r=".01", n="12"),
    100 * 0.01 * 1.01**12 / (1.01**12 - 1),
)
r(r"\frac{c^{1-\gamma}-1}{1-\gamma}", dict(c="2", gamma="3"), (0.25 - 1) / -2)
r(r"Y = AK^{\alpha}L^{1-\alpha}", dict(A="2", K="3", L="4", alpha=".3"), 2 * 3**0.3 * 4**0.7)
r(
    r"a+b\left(\rho(k-m)+\sqrt{(k-m)^2+\sigma^2}\right)",
    dict(a=".1", b=".2", rho="-.3", k=".5", m=".1", sigma=".2"),
    0.1 + 0.2 * (-0.12 + sqrt(0.16 + 0.04)),
)
r(
    r"\frac{\sum_{t=1}^n t\cdot C_t(1+y)^{-t}}{\sum_{t=1}^n C_t(1+y)^{-t}}",
    dict(n="3", C="[5,5,105]", y=".04"),
    (5 / 1.04 + 10 / 1.04**2 + 315 / 1.04**3) / (5 / 1.04 + 5 / 1.04**2 + 105 / 1.04**3),
)
r(r"r = \ln\left(\frac{S_t}{S_0}\right)", dict(S_t="110", S_0="100"), log(1.1))
r(
    r"\sigma_p^2 = w_1^2\sigma_1^2+w_2^2\sigma_2^2+2w_1w_2\rho\sigma_1\sigma_2",
    dict(w_1=".4", w_2=".6", sigma_1=".1", sigma_2=".2", rho=".3"),
    0.16 * 0.01 + 0.36 * 0.04 + 2 * 0.24 * 0.3 * 0.02,
)
# E optimisation / control
r(r"(1-x)^2+100(y-x^2)^2", dict(x=".5", y="1"), 0.25 + 100 * 0.5625)
r(r"(x^2+y-11)^2+(x+y^2-7)^2", dict(x="1", y="2"), 64 + 4)
r(
    r"\sum_{i=1}^{n-1}\left[100(x_{i+1}-x_i^2)^2+(1-x_i)^2\right]",
    dict(x=V["u3"]),
    sum(100 * (u3[i + 1] - u3[i] ** 2) ** 2 + (1 - u3[i]) ** 2 for i in range(2)),
)
r(
    r"10n+\sum_{i=1}^n\left[x_i^2-10\cos(2\pi x_i)\right]",
    dict(n="3", x=V["u3"]),
    30 + (u3**2 - 10 * np.cos(2 * pi * u3)).sum(),
)
r(
    r"An + \sum_{i=1}^n \left[x_i^2 - A\cos(2 \pi x_i)\right]",
    dict(A="10", n="3", x=V["u3"]),
    30 + (u3**2 - 10 * np.cos(2 * pi * u3)).sum(),
)
r(
    r"-20\exp\left(-0.2\sqrt{\frac{1}{d}\sum_{i=1}^dx_i^2}\right)-\exp\left(\frac{1}{d}\sum_{i=1}^d\cos(2\pi x_i)\right)+20+e",
    dict(d="3", x=V["u3"]),
    -20 * exp(-0.2 * sqrt((u3**2).mean())) - exp(np.cos(2 * pi * u3).mean()) + 20 + e,
)
r(
    r"1+\frac{1}{4000}\sum_{i=1}^nx_i^2-\prod_{i=1}^n\cos\left(\frac{x_i}{\sqrt{i}}\right)",
    dict(n="3", x=V["u3"]),
    1 + (u3**2).sum() / 4000 - np.prod(np.cos(u3 / np.sqrt([1, 2, 3]))),
)
r(
    r"\frac12\sum_{i=1}^n(x_i^4-16x_i^2+5x_i)",
    dict(n="3", x=V["u3"]),
    0.5 * (u3**4 - 16 * u3**2 + 5 * u3).sum(),
)
r(
    r"x^TQx+u^TRu+2x^TNu",
    dict(x=V["x"], Q=V["S"], u=V["y"], R=V["A"], N=V["W"]),
    x @ S @ x + y @ A @ y + 2 * x @ W @ y,
)
r(
    r"A^TP+PA-PBR^{-1}B^TP+Q",
    dict(A=V["A"], P=V["S"], B=V["W"], R=V["S2"], Q=V["S"]),
    A.T @ S + S @ A - S @ W @ inv(S2) @ W.T @ S + S,
)
r(
    r"C(sI-A)^{-1}B+D",
    dict(C=V["W"], s="5", A=V["A"], B=V["S"], D=V["S2"]),
    W @ inv(5 * np.eye(2) - A) @ S + S2,
)
r(
    r"G(s) = C(sI-A)^{-1}B + D",
    dict(C=V["W"], s="5", A=V["A"], B=V["S"], D=V["S2"]),
    W @ inv(5 * np.eye(2) - A) @ S + S2,
)
r(r"K = PH^T(HPH^T+R)^{-1}", dict(P=V["S"], H=V["A"], R=V["S2"]), S @ A.T @ inv(A @ S @ A.T + S2))
r(
    r"(I-KH)P(I-KH)^T+KRK^T",
    dict(K=V["W"], H=V["A"], P=V["S"], R=V["S2"]),
    (np.eye(2) - W @ A) @ S @ (np.eye(2) - W @ A).T + W @ S2 @ W.T,
)
r(
    r"-\mu\sum_{i=1}^m\log(b_i-a_i^Tx)",
    dict(mu=".1", m="3", b="[4,5,6]", a=L, x=V["x"]),
    -0.1 * np.log([4, 5, 6] - X @ x).sum(),
)
r(r"x_{n+1} = x_n-\frac{f(x_n)}{f'(x_n)}, f(x) = x^2-2", dict(x_n="1.5"), 1.5 - 0.25 / 3)
r(
    r"\left(I-\frac{sy^T}{y^Ts}\right)H\left(I-\frac{ys^T}{y^Ts}\right)+\frac{ss^T}{y^Ts}",
    dict(s=V["p"], y=V["y"], H=V["S"]),
    (np.eye(2) - np.outer(p, y) / (y @ p)) @ S @ (np.eye(2) - np.outer(y, p) / (y @ p))
    + np.outer(p, p) / (y @ p),
)
r(r"X(X^TX)^{-1}X^T", dict(X=L), X @ inv(X.T @ X) @ X.T)
r(r"\delta^2\left(\sqrt{1+(a/\delta)^2}-1\right)", dict(delta=".5", a="2"), 0.25 * (sqrt(17) - 1))
r(
    r"\frac{1}{t}\log\sum_{i=1}^n e^{tx_i}",
    dict(t="2", n="3", x=V["u3"]),
    0.5 * log(np.exp(2 * u3).sum()),
)
r(
    r"f(\mathbf{x}) \approx f_0 + \mathbf{g}^\top \mathbf{x} + \frac{1}{2}\,\mathbf{x}^\top \mathbf{H}\,\mathbf{x}",
    dict(f_0="1", g=V["b"], x=V["x"], H=V["S"]),
    1 + b @ x + 0.5 * x @ S @ x,
)
r(
    r"\operatorname{prox}_{\lambda}(x) = \operatorname{sign}(x)\max(|x|-\lambda,0)",
    dict(x=V["x"], lam=".5"),
    np.sign(x) * np.maximum(abs(x) - 0.5, 0),
)
r(
    r"x^T(\operatorname{diag}(c) - cc^{T}/C)x",
    dict(c=V["p"], C="2", x=V["x"]),
    x @ (np.diag(p) - np.outer(p, p) / 2) @ x,
)
r(
    r"\operatorname{diag}(\mathbf{p}) - \mathbf{p}\mathbf{p}^\top",
    dict(p=V["p"]),
    np.diag(p) - np.outer(p, p),
)
r(r"\operatorname{tr}((A-B)^T(A-B))", dict(A=V["A"], B=V["W"]), ((A - W) ** 2).sum())
r(r"\|A - B\|_F^2", dict(A=V["A"], B=V["W"]), ((A - W) ** 2).sum())
r(
    r"\mathrm{NMSE} = 10\log_{10}\frac{\|\hat{\mathbf{G}}-\mathbf{G}\|_F^2}{\|\mathbf{G}\|_F^2}",
    dict(G_hat=V["A"], G=V["S"]),
    10 * log10(((A - S) ** 2).sum() / (S**2).sum()),
)
# F plain Unicode
r("σ(z) = 1/(1 + e⁻ᶻ)", dict(z=".5"), sig(0.5))
r("σ(z) = 1 / (1 + e^(-z))", dict(z=".5"), sig(0.5))
r("MSE = (1/N) Σ_i (y_i - ŷ_i)²", dict(N="2", y=V["y"], y_hat=V["x"]), ((y - x) ** 2).mean())
r("f(x) = (1/(σ√(2π))) e^(-(x-μ)²/(2σ²))", dict(x="1", sigma="2", mu=".5"), N(0.5, 2).pdf(1))
r("H = -Σ pᵢ log₂ pᵢ", dict(p=V["p"]), -(p * np.log2(p)).sum())
r("H = -∑ᵢ pᵢ log pᵢ", dict(p=V["p"]), -(p * np.log(p)).sum())
r("xᵀAx + bᵀx + c", dict(x=V["x"], A=V["A"], b=V["b"], c="2"), x @ A @ x + b @ x + 2)
r("∑ᵢ xᵢ²", dict(x=V["x"]), x @ x)
r("Σᵢ wᵢxᵢ + b", dict(w=V["y"], x=V["x"], b=".1"), x @ y + 0.1)
r("z = Σᵢ wᵢ xᵢ + b", dict(w=V["y"], x=V["x"], b=".1"), x @ y + 0.1)
r(
    "‖Ax − b‖₂² + λ‖x‖₁",
    dict(A=V["A"], x=V["x"], b=V["b"], lam=".5"),
    ((A @ x - b) ** 2).sum() + 0.55,
)
r("x = (−b + √(b² − 4ac))/(2a)", dict(a="1", b="-3", c="2"), 2)
r("½mv² + mgh", dict(m="2", v="3", g="9.81", h="1"), 9 + 19.62)
r("F = −kx", dict(k="2", x="3"), -6)
r("∫₀¹ x² dx", None, 1 / 3)
r("∫_0^1 x^2 dx", None, 1 / 3)
r("β̂ = (XᵀX)⁻¹Xᵀy", dict(X=L, y=V["t3"]), inv(X.T @ X) @ X.T @ t3)
r("ŷ = Xβ", dict(X=L, beta=V["x"]), X @ x)
r("σ² = (1/n)∑(xᵢ − μ)²", dict(n="3", x=V["u3"], mu=".3"), ((u3 - 0.3) ** 2).mean())
r("σ² = (1/n) Σᵢ (xᵢ − μ)²", dict(n="3", x=V["u3"], mu=".3"), ((u3 - 0.3) ** 2).mean())
r("L = −[y log p + (1−y) log(1−p)]", dict(y="1", p=".3"), -log(0.3))
r("L = -[y·log(ŷ) + (1-y)·log(1-ŷ)]", dict(y="1", y_hat=".3"), -log(0.3))
r("softmax(zᵢ) = e^{zᵢ} / Σⱼ e^{zⱼ}", dict(z=V["x"]), sm(x))
r("softmax(z)_i = exp(z_i) / Σ_j exp(z_j)", dict(z=V["x"]), sm(x))
r("softmax(zᵢ) = exp(zᵢ) / Σⱼ exp(zⱼ)", dict(z=V["x"]), sm(x))
r("V = (4/3)πr³", dict(r="2"), 4 / 3 * pi * 8)
r(
    "W₂·ReLU(W₁x + b₁) + b₂",
    dict(W_1=V["A"], W_2=V["S"], x=V["x"], b_1=V["b"], b_2=V["y"]),
    S @ np.maximum(0, A @ x + b) + y,
)
r("6.022×10²³", None, 6.022e23)
r("sin²θ + cos²θ", dict(theta=".3"), 1)
r("ΔG = ΔH − TΔS", dict(Delta_H="5", T="2", Delta_S="1"), 3)
r("k = A·exp(−Eₐ/(RT))", dict(A="2", E_a="3", R="2", T="5"), 2 * exp(-0.3))
r("x₁² + x₂²", dict(x_1="3", x_2="4"), 25)
r("x₁x₂ + x₁²", dict(x_1="3", x_2="4"), 21)
r("d = √((x₂−x₁)² + (y₂−y₁)²)", dict(x_1="1", x_2="4", y_1="2", y_2="6"), 5)
r("v = √(2gh)", dict(g="9.81", h="2"), sqrt(4 * 9.81))
r("F = G·m₁·m₂/r²", dict(G="6", m_1="2", m_2="3", r="2"), 9)
r(
    "n₁ sin θ₁ − n₂ sin θ₂",
    dict(n_1="1", theta_1=".3", n_2="1.5", theta_2=".2"),
    sin(0.3) - 1.5 * sin(0.2),
)
r(
    "L = (1/N) Σᵢ max(0, 1 − yᵢ(w·xᵢ + b))",
    dict(N="3", y=V["t3"], w=V["y"], x=L, b=".1"),
    np.maximum(0, 1 - t3 * (X @ y + 0.1)).mean(),
)
r("KL(P‖Q) = Σᵢ Pᵢ log(Pᵢ/Qᵢ)", dict(P=V["p"], Q=V["q"]), (p * np.log(p / q)).sum())
r(
    "p(x) = (2π)^{-d/2} |Σ|^{-1/2} exp(-½ (x-μ)ᵀ Σ⁻¹ (x-μ))",
    dict(d="2", Sigma=V["S"], x=V["x"], mu=V["mu"]),
    st.multivariate_normal(mu, S).pdf(x),
)
r("∂L/∂w = (ŷ - y) · x", dict(y_hat=".7", y="1", x=".5"), -0.15)
r(
    "Attention(Q,K,V) = softmax(QKᵀ/√dₖ)V",
    dict(Q=V["A"], K=V["W"], V=V["S"], d_k="2"),
    sm(A @ W.T / sqrt(2)) @ S,
)
r(
    "Attention(Q, K, V) = softmax(QK^T / √d_k) V",
    dict(Q=V["A"], K=V["W"], V=V["S"], d_k="2"),
    sm(A @ W.T / sqrt(2)) @ S,
)
r(
    "h = tanh(Wx + Uh + b)",
    dict(W=V["A"], x=V["x"], U=V["W"], h=V["y"], b=V["b"]),
    np.tanh(A @ x + W @ y + b),
)
# G specials
r(r"\left.\frac{d}{dx}x^2\right|_{x=3}", None, 6)
r(r"\left. x^3 \right|_{x=2}", None, 8)
r(r"{\sigma_{2}}^{2} + {\mu_1}^2", dict(sigma_2="2", mu_1="3"), 13)
r(
    r"\underbrace{x^2}_{\text{fit}} + \lambda\underbrace{|x|}_{\text{penalty}}",
    dict(x="-2", lam=".5"),
    5,
)
r(r"\frac 1 2 x^2", dict(x="2"), 2)
r(r"\frac1n \sum_i x_i", dict(n="3", x=V["u3"]), 1 / 3)
r(r"\max\{0, 1-x\}", dict(x=".3"), 0.7)
r(r"\min\left\{x, y\right\}", dict(x=".3", y="2"), 0.3)
r(r"\max\{0, x\}^2", dict(x="3"), 9)
r(r"\mathbb{1}[x>0]", dict(x="2"), 1)
r(r"\mathbf{1}_{x>0}", dict(x="2"), 1)
r(r"\sum_i \mathbb{1}(x_i > 0)", dict(x=V["x"]), 1)
r(r"\lVert x \rVert_2", dict(x=V["x"]), sqrt(x @ x))
r(r"\left\lVert \mathbf{x} \right\rVert_2^2", dict(x=V["x"]), x @ x)
r(r"\mathrm{e}^{-x}", dict(x=".5"), exp(-0.5))
r(r"\operatorname{e}^{x}", dict(x=".5"), exp(0.5))
r(r"\pmb{x}^\top \pmb{y}", dict(x=V["x"], y=V["y"]), x @ y)
r(r"\color{red}{x^2} + 1", dict(x="2"), 5)
r(r"\textcolor{blue}{x^2} + 1", dict(x="2"), 5)
r(r"\boxed{x^2 + 1}", dict(x="2"), 5)
r(r"\[ \boxed{x^2 + 1} \]", dict(x="2"), 5)
r(r"\( x^2 \)", dict(x="2"), 4)
r(r"$$x^2$$", dict(x="2"), 4)
r(r"`x^2`", dict(x="2"), 4)
r(r"$x^2 + 1$.", dict(x="2"), 5)
r("```math\nx^2 + 1\n```", dict(x="2"), 5)
r(r"y := x^2", dict(x="2"), 4)
r(r"\begin{aligned} f(x) &= (x+1)^2 \\ &= x^2+2x+1 \end{aligned}", dict(x="2"), 9)
r(
    r"\begin{align} z &= W x + b \\ a &= \sigma(z) \end{align}",
    dict(W=V["A"], x=V["x"], b=V["b"]),
    sig(A @ x + b),
)
r(
    r"\begin{aligned} z &= W x + b \\ a &= \tanh(z) \end{aligned}",
    dict(W=V["A"], x=V["x"], b=V["b"]),
    np.tanh(A @ x + b),
)
r(
    r"\hat{y} = \sigma(w^T x + b), \quad \text{where } \sigma(z) = \frac{1}{1+e^{-z}}",
    dict(w=V["y"], x=V["x"], b=".1"),
    sig(y @ x + 0.1),
)
r(
    r"\hat{y} = \sigma(w^T x + b) \text{ where } \sigma(z) = \frac{1}{1+e^{-z}}",
    dict(w=V["y"], x=V["x"], b=".1"),
    sig(y @ x + 0.1),
)
r("ŷ = σ(wᵀx + b), where σ(z) = 1/(1+e^{-z})", dict(w=V["y"], x=V["x"], b=".1"), sig(y @ x + 0.1))
r(r"x^T A x, \quad A \in \mathbb{R}^{n \times n}", dict(x=V["x"], A=V["A"]), x @ A @ x)
r(r"f(x) = x^T A x, \quad x \in \mathbb{R}^n", dict(x=V["x"], A=V["A"]), x @ A @ x)
r("f(x) = xᵀAx, x ∈ ℝⁿ", dict(x=V["x"], A=V["A"]), x @ A @ x)
r(r"f: \mathbb{R}^n \to \mathbb{R}, f(x) = x^T x", dict(x=V["x"]), x @ x)
r(r"e^{-x},\; x > 0", dict(x="2"), exp(-2))
r(
    r"\begin{bmatrix} a & b \\ c & d \end{bmatrix} \begin{bmatrix} x \\ y \end{bmatrix}",
    dict(a="1", b="2", c="3", d="4", x="1", y="2"),
    np.array([5, 11]),
)
r(
    r"\begin{bmatrix} x & y \end{bmatrix} \begin{bmatrix} 2 & 1 \\ 1 & 3 \end{bmatrix} \begin{bmatrix} x \\ y \end{bmatrix}",
    dict(x="1", y="2"),
    18,
)
r(r"\begin{bmatrix} 1 \\ 2 \end{bmatrix}^T \begin{bmatrix} 3 \\ 4 \end{bmatrix}", None, 11)
r(r"\det\begin{pmatrix} a & b \\ c & d \end{pmatrix}", dict(a="1", b="2", c="3", d="4"), -2)
r(r"\begin{cases} 0, & \text{si } x < 0 \\ 1, & \text{si } x \geq 0 \end{cases}", dict(x="2"), 1)
r(r"\begin{cases} x & x > 0 \\[4pt] 0 & \text{else} \end{cases}", dict(x="2"), 2)
r(
    r"\begin{cases} \dfrac{1}{2}, & -1 \le x \le 1 \\ 0, & \text{otherwise} \end{cases}",
    dict(x="2"),
    0,
)
r(
    r"\begin{cases} x^2 & \text{if } x > 0 \text{ and } x < 1 \\ 0 & \text{otherwise} \end{cases}",
    dict(x=".5"),
    0.25,
)
r(r"\frac{d}{dx}\left(\frac{x^2}{1+x}\right)", dict(x="2"), (4 * 3 - 4) / 9)
r(r"\frac{\partial}{\partial x}\left(x^2 y\right)", dict(x="2", y="3"), 12)
r(r"\frac{d^2}{dx^2} \sin(x)", dict(x=".5"), -sin(0.5))
r(r"\sqrt[n]{\prod_{i=1}^n x_i}", dict(n="3", x=V["u3"]), np.prod(u3) ** (1 / 3))
r(r"\left(\prod_{i=1}^n x_i\right)^{\frac{1}{n}}", dict(n="3", x=V["u3"]), np.prod(u3) ** (1 / 3))
r(r"\frac{n}{\sum_{i=1}^n \frac{1}{x_i}}", dict(n="3", x=V["u3"]), 3 / (1 / u3).sum())
r(r"\sum_{i=1}^{n} w_i x_i \Big/ \sum_{i=1}^{n} w_i", dict(n="3", w=V["u3"], x=V["t3"]), u3 @ t3)
r(r"\bigl(x+1\bigr)^2 \Bigl[y - 2\Bigr]", dict(x="1", y="5"), 12)
r(r"x\cdot y\cdot z", dict(x="1", y="2", z="3"), 6)
r(r"x \times y", dict(x="2", y="3"), 6)
r(r"\log_{2}\left(1+\frac{S}{N}\right)", dict(S="3", N="1"), 2)
r(r"\sin^{-1}(x)", dict(x=".5"), asin(0.5))
r(r"\tan^{-1}\frac{y}{x}", dict(x="1", y="2"), atan(2))
r(r"\exp\!\left(-\tfrac{1}{2}x^2\right)", dict(x="1"), exp(-0.5))
r(r"\displaystyle\sum_{k=0}^{3} \frac{x^k}{k!}", dict(x=".5"), 1 + 0.5 + 0.125 + 0.125 / 6)
r(r"\sum_{n=0}^{10} \frac{(-1)^n x^{2n+1}}{(2n+1)!}", dict(x=".5"), sin(0.5))
r(r"\sum_{\substack{i,j \\ i\neq j}} x_i x_j", dict(x=V["u3"]), 1 - (u3**2).sum())
r("sum_(i=1)^n x_i^2", dict(x=V["u3"]), (u3**2).sum())
r("sqrt(x^2+1)/(2x)", dict(x="2"), sqrt(5) / 4)
r("sum_(i=1)^3 i^2", None, 14)
r("int_0^1 x^2 dx", None, 1 / 3)
r("f(x) = x^2 + 1, x = 3", None, 10)
r("2 x^2 y + 3 x y^2 where x = 1, y = 2", None, 4 + 12)
found = {
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "rows": [[text, values, np.asarray(wanted).tolist()] for text, values, wanted in R],
}
Path(__file__).with_name("lectures.json").write_text(json.dumps(found, indent=0) + "\n")

r"""`gradcli check --math … --against …`: gradients as they stand on paper, with indices and left sides."""

from __future__ import annotations

import json

import pytest

from tests.commands.running import run

SOFTMAX = r"p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}; L = -\sum_i y_i \log p_i"
LAYER = r"z_i = \sum_j W_{ij} x_j + b_i; a_i = \frac{1}{1+e^{-z_i}}; L = \sum_i (a_i-y_i)^2"
TURNED = LAYER.replace("W_{ij}", "W_{ji}")
MEAN = r"\frac{1}{N}\sum_{i=1}^N (w^T x_i - y_i)^2"
LAYERS = (
    r"a^{(1)} = \sigma(W^{(1)} x + b^{(1)}); a^{(2)} = \sigma(W^{(2)} a^{(1)} + b^{(2)}); "
    r"L = \frac12 \|a^{(2)} - y\|^2"
)
ERROR = r"(a^{(2)}-y) \odot a^{(2)} \odot (1-a^{(2)})"
NLL = r"p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}; L = -\log p_c"
HINGE = r"\frac12 \|w\|^2 + C \sum_i \max(0, 1 - y_i (w^T x_i + b))"
BATCH_NORM = (
    r"\mu = \frac1m \sum_{i=1}^m x_i; \sigma^2 = \frac1m \sum_{i=1}^m (x_i - \mu)^2; "
    r"\hat{x}_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}}; y_i = \gamma \hat{x}_i + \beta; "
    r"L = \sum_{i=1}^m g_i y_i"
)
BATCH_NORM_BY_X = (
    r"\frac{\partial L}{\partial x_i} = \frac{\gamma}{m \sqrt{\sigma^2 + \epsilon}} "
    r"(m g_i - \sum_{j=1}^m g_j - \hat{x}_i \sum_{j=1}^m g_j \hat{x}_j)"
)
VARIANCE = r"\mu = \frac1m \sum_{i=1}^m x_i; v = \frac1m \sum_{i=1}^m (x_i - \mu)^2"
BATCH_NORM_BY_VARIANCE = (
    r"\frac{\partial L}{\partial \sigma^2} = "
    r"-\frac12 \sum_{i=1}^m g_i \gamma (x_i - \mu) (\sigma^2 + \epsilon)^{-3/2}"
)
LIKELIHOOD = r"-\frac{n}{2} \log(2\pi\sigma^2) - \frac{1}{2\sigma^2} \sum_{i=1}^n (x_i - \mu)^2"
BY_VARIANCE = r"-\frac{n}{2\sigma^2} + \frac{1}{2\sigma^4} \sum_{i=1}^n (x_i - \mu)^2"
BOLD = (
    r"\mathbf{z}_1 = \mathbf{W}_1 \mathbf{x} + \mathbf{b}_1; \mathbf{h} = \tanh(\mathbf{z}_1); "
    r"\mathbf{z}_2 = \mathbf{W}_2 \mathbf{h} + \mathbf{b}_2; "
    r"L = \frac12 \lVert \mathbf{z}_2 - \mathbf{y} \rVert^2"
)
BACK = r"(\mathbf{W}_2^\top (\mathbf{z}_2 - \mathbf{y}))"
LAYERED = r"z = W x + b; a = \sigma(z); L = -\sum_i (y_i \log a_i + (1-y_i)\log(1-a_i))"
LOGISTIC = (
    r"-\frac{1}{m}\sum_{i=1}^m \left[ y^{(i)} \log h_\theta(x^{(i)}) "
    r"+ (1-y^{(i)})\log(1-h_\theta(x^{(i)}))\right], \quad h_\theta(x) = \frac{1}{1+e^{-\theta^T x}}"
)
CROSS_ENTROPY = r"L = -\sum_{k=1}^K y_k \log p_k"
PROBABILITY = r"p_k = \frac{e^{z_k}}{\sum_{j=1}^K e^{z_j}}"
BY_LOGITS = r"\frac{\partial L}{\partial z_i} = p_i \sum_k y_k - y_i"
NORMS = r"\lVert \mathbf{y} - \mathbf{X}\mathbf{w} \rVert^2 + \lambda \lVert \mathbf{w} \rVert^2"
BY_WEIGHTS = r"-2\mathbf{X}^\top(\mathbf{y} - \mathbf{X}\mathbf{w}) + 2\lambda\mathbf{w}"
RIDGE = r"\frac{1}{2N}\|Xw-y\|^2 + \frac{\lambda}{2}\|w\|^2"


# what is differentiated, the formula, whether it is right
@pytest.mark.parametrize(
    ("text", "formula", "right"),
    [
        (SOFTMAX, r"\frac{\partial L}{\partial z_i} = p_i - y_i", None),  # where y sums to 1
        # The indices of W are free, so i is not summed although it stands at four factors.
        (LAYER, r"\frac{\partial L}{\partial W_{ij}} = 2(a_i-y_i)a_i(1-a_i)x_j", True),
        (TURNED, r"\frac{\partial L}{\partial W_{ji}} = 2(a_i-y_i)a_i(1-a_i)x_j", True),
        (LAYER, r"\frac{\partial L}{\partial W_{ij}} = 2(a_i-y_i)a_i x_j", False),
        (LAYER, r"\frac{\partial L}{\partial b_k} = 2(a_k-y_k)a_k(1-a_k)", True),
        (LAYER, r"\frac{\partial L}{\partial x_j} = \sum_i 2(a_i-y_i)a_i(1-a_i)W_{ij}", True),
        # What gives a name its value may stand behind what uses it.
        (r"L = \sum_i (a_i - y_i)^2; a_i = \sigma(z_i)",
         r"\frac{\partial L}{\partial z_k} = 2(a_k-y_k)a_k(1-a_k)", True),
        # N limits a sum, or stands in denominators alone: it is a number, though capitals are matrices.
        (MEAN, r"\nabla_w L = \frac{2}{N}\sum_{i=1}^N (w^T x_i - y_i) x_i", True),
        (MEAN, r"\nabla_w L = \frac{1}{N}\sum_{i=1}^N (w^T x_i - y_i) x_i", False),
        (RIDGE, r"\nabla_{w} L = \frac{1}{N}X^T(Xw-y) + \lambda w", True),
        (RIDGE, r"\nabla_{\mathbf{w}} L(w) = \frac{1}{N}X^T(Xw-y) + w", False),
        # C multiplies a number, so it is one, in the formula of the gradient as well.
        (HINGE, r"\nabla_w L = w - C \sum_i \mathbb{1}[y_i (w^T x_i + b) < 1] y_i x_i", True),
        (r"C \sum_i (w^T x_i - y_i)^2", r"\nabla_w L = 2 C \sum_i (w^T x_i - y_i) x_i", True),
        (r"\|Xw-y\|^2 + C\|w\|^2", r"\nabla_w L = 2 X^T(Xw-y) + 2Cw", True),
        (r"\|Y - X\beta\|^2", r"\nabla_\beta L = -2 X^T(Y - X\beta)", True),
        (LAYERS, rf"\frac{{\partial L}}{{\partial W^{{(2)}}}} = {ERROR} {{a^{{(1)}}}}^T", True),
        (NLL, r"\frac{\partial L}{\partial z_k} = p_k - \delta_{kc}", True),
        (NLL, r"\frac{\partial L}{\partial z_k} = p_k - 1", False),
        (r"-\log \mathrm{softmax}(z)_c", r"\nabla_z L = \mathrm{softmax}(z) - e_c", True),
        # m limits the sum over the elements of x: it is their number, at all points.
        (BATCH_NORM, BATCH_NORM_BY_X, True),
        (BATCH_NORM, BATCH_NORM_BY_X.replace(r"- \sum_{j=1}^m g_j", ""), False),
        (VARIANCE, r"\frac{\partial v}{\partial x_i} = \frac{2}{m} (x_i - \mu)", True),
        (VARIANCE, r"\frac{\partial v}{\partial x_i} = \frac{2}{m - 1} (x_i - \mu)", False),
        (r"\sum_{i=1}^n (x_i - \mu)^2", r"\frac{dL}{d\mu} = 2 n \mu - 2 \sum_i x_i", True),
        (r"\frac1m \sum_{i=1}^m (w^T x_i + b - y_i)^2",
         r"\frac{\partial L}{\partial b} = 2 b + \frac2m \sum_{i=1}^m (w^T x_i - y_i)", True),
        # An index of a bracket is of its elements.
        (r"\frac{1}{2n} \|\mathbf{X}\mathbf{w} + b - \mathbf{y}\|^2",
         r"\frac{\partial L}{\partial b} = \frac1n \sum_i (\mathbf{X}\mathbf{w} + b - \mathbf{y})_i", True),
        (r"\sum_{i=1}^n (Xw - y)_i^2", r"\nabla_w L = 2\sum_i (Xw - y)_i X_{ij}", True),
        (r"\|Xw - y\|^2", r"\frac{\partial L}{\partial w_j} = 2 [X^T(Xw - y)]_j", True),
        (r"\|\mathbf{W}\mathbf{x} - \mathbf{y}\|^2",
         r"\frac{\partial L}{\partial W_{ij}} = 2(\mathbf{W}\mathbf{x} - \mathbf{y})_i x_j", True),
        # The ones are as many as the elements beside them.
        (r"\frac{1}{2n} \|\mathbf{X}\mathbf{w} + b\mathbf{1} - \mathbf{y}\|^2",
         r"\frac{dL}{db} = \frac1n \mathbf{1}^\top (\mathbf{X}\mathbf{w} + b\mathbf{1} - \mathbf{y})", True),
        # What a header, a left side and a variable may be called.
        (rf"\ell(\mu, \sigma^2) = {LIKELIHOOD}",
         rf"\frac{{\partial \ell}}{{\partial \sigma^2}} = {BY_VARIANCE}", True),
        (rf"\mathcal{{L}} = {LIKELIHOOD}",
         rf"\frac{{\partial \mathcal{{L}}}}{{\partial \sigma^2}} = 2({BY_VARIANCE})", False),
        (rf"\ell = {LIKELIHOOD}",
         r"\frac{\partial \ell}{\partial \mu} = \frac{1}{\sigma^2} \sum_i (x_i - \mu)", True),
        (BATCH_NORM, BATCH_NORM_BY_VARIANCE, True),
        (rf"J(\mathbf{{w}}) = {NORMS}", BY_WEIGHTS, True),
        (rf"J(\mathbf{{w}}) = {NORMS}", rf"\nabla_{{\mathbf{{w}}}} J = {BY_WEIGHTS}", True),
        # The program's W_2 is no element of a W.
        (BOLD, rf"\frac{{\partial L}}{{\partial \mathbf{{h}}}} = {BACK}", True),
        (BOLD, rf"\frac{{\partial L}}{{\partial \mathbf{{z}}_1}} = {BACK} \odot (1 - \mathbf{{h}}^2)", True),
        (BOLD, rf"\frac{{\partial L}}{{\partial \mathbf{{W}}_1}} = "
               rf"({BACK} \odot (1 - \mathbf{{h}}^2)) \mathbf{{x}}^\top", True),
        # Definitions behind a comma or a word, and after what uses them; a loss without a name.
        (rf"{CROSS_ENTROPY}, \quad {PROBABILITY}", BY_LOGITS, True),
        (rf"{CROSS_ENTROPY} \quad \text{{where }} {PROBABILITY}", BY_LOGITS, True),
        (rf"{PROBABILITY}; {CROSS_ENTROPY[3:]}", BY_LOGITS, True),
        (rf"{CROSS_ENTROPY}; {PROBABILITY}; z_i = \sum_j W_{{ij}} x_j",
         r"\frac{\partial L}{\partial W_{ij}} = (p_i \sum_k y_k - y_i) x_j", True),
        # A function of the program, a size by another index, a letter in a font without braces.
        (r"J(\theta) = \frac{1}{2m} \sum_{i=1}^m (h(x^{(i)}) - y^{(i)})^2, \quad h(x) = \theta^T x",
         r"\nabla_\theta J = \frac1m \sum_{i=1}^m (h(x^{(i)}) - y^{(i)}) x^{(i)}", True),
        (r"\frac1m \sum_{i=1}^m (\theta^T x_i - y_i)^2 + \lambda\sum_{j=1}^n \theta_j^2",
         r"\nabla_\theta J = \frac2m X^T(X\theta - y) + 2\lambda\theta", True),
        (r"\frac{1}{NK}\sum_{i=1}^N \sum_{k=1}^K (a_{ik} - b_k)^2",
         r"\frac{\partial L}{\partial b_k} = -\frac{2}{NK}\sum_{i=1}^N (a_{ik} - b_k)", True),
        (r"\mathbf{w}^T \mathbf{w}", r"\nabla_{\mathbf w} L = 2 \mathbf w", True),
        (r"p = \mathrm{softmax}(z); L = -\sum_k y_k \log p_k",
         r"\frac{\partial L}{\partial z_k} = p_k \sum_j y_j - y_k", True),
        (rf"J(\theta) = {LOGISTIC}", r"\frac{\partial J}{\partial \theta_j} = "
         r"\frac1m\sum_{i=1}^m (h_\theta(x^{(i)}) - y^{(i)}) x_j^{(i)}", True),
        (r"L = \frac1n\sum_{i=1}^n (y_i - \hat y_i)^2; \hat y_i = a x_i + b",
         r"\frac{\partial L}{\partial a} = -\frac2n\sum_i x_i(y_i - \hat y_i)", True),
        (r"\frac1n\sum_{i=1}^n (y_i - \hat y_i)^2",
         r"\frac{\partial L}{\partial\hat y_i} = -\frac2n(y_i - \hat y_i)", True),
        (r"\sum_{i=1}^n w_i (y_i - \mathbf{x}_i^T\boldsymbol\beta)^2",
         r"\nabla_{\boldsymbol\beta} L = "
         r"-2\mathbf{X}^T\mathrm{diag}(\mathbf{w})(\mathbf{y} - \mathbf{X}\boldsymbol\beta)", True),
        (r"S = \sum_{i=1}^n (y_i - a - b x_i)^2",
         r"\frac{\partial S}{\partial a} = 2n a + 2n b\bar{x} - 2n\bar{y}", True),
        (r"\frac1N\sum_{n=1}^N \sum_{k=1}^K (y_{nk} - \sum_d W_{kd} x_{nd})^2",
         r"\frac{\partial L}{\partial W_{kd}} = -\frac2N\sum_n (y_{nk} - \sum_e W_{ke}x_{ne})x_{nd}", True),
        # The formula says that W is a matrix.
        (LAYERED, r"\frac{\partial L}{\partial W} = (a - y)x^T", True),
        (LAYERED, r"\frac{\partial L}{\partial W_{ij}} = (a_i - y_i)x_j", True),
        (LAYERED, r"\frac{\partial L}{\partial x} = W^T(a - y)", True),
        # The rows of X are the x_i.
        (r"\frac1n \sum_{i=1}^n (w^T x_i - y_i)^2", r"\nabla_w L = \frac2n X^T(Xw - y)", True),
    ],
)  # fmt: skip
def test_gradients_on_paper(text: str, formula: str, right: bool | None) -> None:
    given = ["--y", "0,1,0"] if right is None else []
    result = run("check", "--math", text, "--against", formula, *given)
    assert result.exit_code == (0 if right in (True, None) else 1), result.output
    assert result.stdout.startswith("ok: " if right in (True, None) else "wrong gradient: ")


def test_a_limit_of_a_sum_is_the_size_of_what_is_summed() -> None:
    mean = r"\frac{1}{N}\sum_{i=1}^N (x_i - m)^2"
    counted = run("grad", "--math", mean, "--x", "1,2,4", "--m", "2")
    assert counted.stdout.splitlines()[1] == "m.grad = -0.6666666666666666"
    assert "N is len(x)" in counted.stderr and "N.grad" not in counted.stdout
    given = run("grad", "--math", mean, "--x", "1,2,4", "--m", "2", "--N", "2")
    assert given.stdout.splitlines() == ["x.grad = [-1, 0, 0]", "m.grad = 1", "N.grad = -0.25"]


# what is differentiated, by what, its derivative
@pytest.mark.parametrize(
    ("text", "wrt", "derivative"),
    [
        # c is one element: nothing binds it.
        (r"-\log \frac{e^{z_c}}{\sum_j e^{z_j}}", "z", "softmax(z, 0) - e_c"),
        (r"-w_c^T x + \log \sum_j e^{w_j^T x}", "x", "w.T@(softmax(w@x, 0) - e_c)"),
        (r"u = a x; \sum_i c_i u_i", "a", "x@c"),
        (r"\|y - \tanh(W x + b)\|^2", "b", "2*(tanh(W@x + b) - y)/cosh(W@x + b)**2"),
        (r"\sum_i \|x_i - \mu\|^2", r"\mu", "-2*sum(x - mu, 0)"),
        (LIKELIHOOD, r"\sigma^2", "(sum((x - mu)**2)/v - n)/(2*v)"),
        (LIKELIHOOD, "sigma**2", "(sum((x - mu)**2)/v - n)/(2*v)"),
        (r"-n \log\sigma - \frac{1}{2\sigma^2} a", r"\sigma^2", "(a/v - n)/(2*v)"),
        (r"\frac{\partial}{\partial\sigma^2} \log \sigma^2", "v", "1/v"),
        (r"\frac{\partial^2}{\partial(\sigma^2)^2} \log \sigma^2", "v", "-1/v**2"),
        (r"\mathbf{x}^T (\mathbf{A} - a\mathbf{1}\mathbf{1}^T)\mathbf{x}", "a", "-sum(x)**2"),
    ],
)
def test_derivatives_on_paper(text: str, wrt: str, derivative: str) -> None:
    result = run("diff", "--math", text, "--wrt", wrt)
    assert result.stdout == f"{derivative}\n", result.output


def test_batch_norm_at_a_point() -> None:
    by_x = BATCH_NORM_BY_X.partition("=")[2]
    result = run("check", "--math", BATCH_NORM, "--wrt", "x", "--x", "1,2,4", "--against", by_x)
    assert result.stdout.startswith("ok: x "), result.output  # g has the size of x


def test_a_text_of_a_header_is_differentiated_by_it() -> None:
    by_w = run("diff", "--math", rf"J(\mathbf{{w}}) = {NORMS}")
    assert by_w.stdout == "2*(lam*w - X.T@(y - X@w))\n" and "differentiated by w" in by_w.stderr
    by_both = run("diff", "--math", rf"\ell(\mu, \sigma^2 \mid x) = {LIKELIHOOD}")
    assert by_both.stdout.splitlines() == [
        "mu.grad = sum(x - mu)/v",
        "v.grad = (sum((x - mu)**2)/v - n)/(2*v)",
    ]
    assert "v is sigma**2" in by_both.stderr
    by_one = run("diff", "--math", rf"\ell(\mu, \sigma^2) = {LIKELIHOOD}", "--wrt", r"\mu")
    assert by_one.stdout == "sum(x - mu)/sigma**2\n"  # no letter stands for what nobody asks
    alone = run("diff", "--math", "f(x) = x^2")
    assert alone.stdout == "2*x\n" and "differentiated by" not in alone.stderr
    slope = r"J(w) = \frac1m\sum_{i=1}^m (w x_i - y_i)^2"
    data = ("--x", "1,2", "--y", "3,4", "--w", "1")
    assert run("grad", "--math", slope, *data).stdout == "w.grad = -6\n"
    assert run("minimize", "--math", slope, *data).stdout.startswith("w = 2.2\nvalue = ")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            r"J(\mathbf{w}) = \mathbf{w}^T\mathbf{w}",
            r"\frac{\partial J}{\partial \boldsymbol{w}} =",
        ),
        (r"\ell = \|\mathbf{w}\|^2", r"\frac{\partial \ell}{\partial \boldsymbol{w}} ="),
        (r"\|\mathbf{w}\|^2", r"\frac{\partial f}{\partial \boldsymbol{w}} ="),
    ],
)
def test_a_formula_is_called_as_in_the_text(text: str, left: str) -> None:
    how = ("--format", "latex", "--latex-style", "bold")
    assert run("diff", "--math", text, *how).stdout.startswith(left)
    steps = run(
        "diff", "--math", r"\|\mathbf{X w - y}\|", "--wrt", "w", *how, "--show-steps"
    ).stdout
    assert r"\left\| \boldsymbol{u} \right\|" in steps  # u is a vector


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("diff", "--math", "a^3 + a^2", "--wrt", "a^2"), "hint: write v for a^2 everywhere"),
        (("diff", "log(s**2)", "--wrt", "s**2"), "hint: write v for s**2 everywhere, and --wrt v"),
        (("eval", "--math", r"\sum_i (a x^T y)_i", "--a", "1", "--x", "1,2", "--y", "1,2"),
         "a*x@y is a number, and has no element i"),
        (("eval", "--math", r"\mathbf{1}^T\mathbf{1}"), "the size of the vector of ones is not known"),
    ],
)  # fmt: skip
def test_what_is_not_read_says_why(argv: tuple[str, ...], says: str) -> None:
    result = run(*argv)
    assert result.exit_code == 2 and says in result.stderr, result.output


def test_a_value_of_a_root_is_one_of_its_square() -> None:
    given = ("--sigma", "2", "--x", "1,2,3", "--mu", "1", "--wrt", "sigma^2")
    assert run("grad", "--math", LIKELIHOOD, *given).stdout == "v.grad = -0.21875\n"
    inside = r"\frac{\partial}{\partial\sigma^2} \log \sigma^2"
    assert run("eval", "--math", inside, "--sigma", "2").stdout == "0.25\n"


NET = "z1 = W1@x + b1; h = tanh(z1); z2 = W2@h + b2; L = 0.5*sum((z2 - y)**2)"
NET_SHAPES = ("W1=4,3", "x=3", "b1=4", "W2=2,4", "b2=2", "y=2")


@pytest.mark.parametrize("by", ["h", "z1"])
@pytest.mark.parametrize("shapes", [(), NET_SHAPES, (",".join(NET_SHAPES),)])
def test_the_derivative_by_what_a_program_computes(by: str, shapes: tuple[str, ...]) -> None:
    formula = "W2.T @ (z2 - y)" if by == "h" else "(W2.T @ (z2 - y))*(1 - h**2)"
    how = [word for shape in shapes for word in ("--shape", shape)]
    result = run("check", NET, "--wrt", by, "--against", formula, *how)
    assert result.stdout.startswith(f"ok: {by} "), result.output


def test_the_formula_may_be_the_derivative_of_what_stands_before_the_last() -> None:
    program = "p = x**2; L = p**3"
    assert run("check", program, "--against", "dp/dx = 2*x").stdout.startswith("ok: x ")
    assert run("check", program, "--against", "dL/dx = 6*x**5").stdout.startswith("ok: x ")
    assert run("check", program, "--against", "dL/dx = 2*x").exit_code == 1


def test_the_number_of_terms_is_no_variable_of_its_own() -> None:
    mean = r"\frac{1}{N}\sum_{i=1}^N (x_i - m)^2"
    result = run("diff", "--math", mean)
    assert result.stdout == "x.grad = 2*(x - m)/N\nm.grad = -2*sum(x - m)/N\n"
    assert "x ∈ Rᴺ, m ∈ R" in result.stderr
    assert run("diff", "--math", mean, "--wrt", "N").stdout == "-sum((x - m)**2)/N**2\n"


def test_one_element_has_a_number() -> None:
    text = r"-\log \frac{e^{z_c}}{\sum_j e^{z_j}}"
    result = run("grad", "--math", text, "--z", "0,0,0,0", "--c", "2")
    assert result.stdout == "z.grad = [0.25, -0.75, 0.25, 0.25]\n"


def test_an_assumption_that_elements_sum_to_1() -> None:
    loss = "-sum(y*log(softmax(z, 0)))"
    wrong = run("check", loss, "--against", "softmax(z, 0) - y", "--wrt", "z")
    assert wrong.exit_code == 1 and "add --assume 'sum(y) == 1'" in wrong.stderr
    how = ("--wrt", "z", "--assume", "sum(y) == 1")
    right = run("check", loss, "--against", "softmax(z, 0) - y", *how)
    assert right.exit_code == 0, right.output
    assert run("diff", loss, *how).stdout == "softmax(z, 0) - y\n"
    refused = run("diff", loss, *how, "--y", "0,1,3", "--z", "1,2,3")
    assert refused.exit_code == 2 and "the sum is 4" in refused.stderr


def test_an_assumption_that_rows_sum_to_1() -> None:
    loss = r"-\frac{1}{n}\sum_{i=1}^{n}\sum_{k=1}^{K} Y_{ik} \log \operatorname{softmax}(X W)_{ik}"
    paper = (
        "--math",
        loss,
        "--wrt",
        "W",
        "--against",
        r"\frac1n X^\top (\operatorname{softmax}(X W) - Y)",
    )
    wrong = run("check", *paper)
    assert wrong.exit_code == 1 and "add --assume 'sum(Y, 1) == 1'" in wrong.stderr
    for fact in ("sum(Y, 1) == 1", "Y stochastic", r"\sum_{k=1}^{K} Y_{ik} = 1"):
        assert run("check", *paper, "--assume", fact).exit_code == 0, fact
    asked = run("check", *paper, "--assume", "Y probabilities")
    assert asked.exit_code == 2 and "are the rows of Y probabilities" in asked.stderr


def test_hessians_with_the_identity_and_named_vectors() -> None:
    squares = r"(X w - y)^T D (X w - y) + \lambda w^T w"
    how = ("--math", "--wrt", "w", "--order", "2", "--assume", "D symmetric")
    for right in (
        r"2 X^T D X + 2 \lambda I",
        r"\mathbf{X}^\top (D + D^T) X + 2 \lambda \mathbf{I}_d",
    ):
        assert run("check", squares, *how, "--against", right).exit_code == 0, right
    entropy = r"-\sum_{i=1}^{n} [y_i \log \hat{y}_i + (1 - y_i) \log(1 - \hat{y}_i)]"
    loss = rf"\hat{{\mathbf{{y}}}} = \sigma(X\mathbf{{w}}); {entropy}"
    right = r"X^\top \operatorname{diag}(\hat{\mathbf{y}} \odot (\mathbf{1} - \hat{\mathbf{y}})) X"
    assert run("check", loss, *how[:5], "--against", right).exit_code == 0


def test_a_gradient_that_is_right_for_symmetric_matrices() -> None:
    quadratic = (r"f(x) = \frac12 x^T Q x - c^T x", "--against", r"\nabla f(x) = Q x - c")
    wrong = run("check", "--math", *quadratic)
    assert wrong.exit_code == 1 and "add --assume 'Q symmetric'" in wrong.stderr
    right = run("check", "--math", *quadratic, "--assume", "Q symmetric")
    assert right.exit_code == 0, right.output


def test_a_name_that_nobody_gives_is_told_before_shapes_are_looked_for() -> None:
    result = run("check", "sum((W@x - y)**2)", "--wrt", "W", "--against", "outer(q, x)")
    assert "name 'q' is not defined" in result.stderr
    assert "--against may use W, x, y, and what it assigns itself" in result.stderr


@pytest.mark.long
@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "values", "says"),
    [
        (r"p = \sigma(z); -(y \log p + (1-y) \log(1-p))", {"y": "0", "z": "800"},
         'z.grad is 1: y*z - softplus(z) in place of "y*log(p) + (1 - y)*log(1 - p)"'),
        ("p = sigmoid(z); -log(1-p)", {"z": "800"},
         'z.grad is 1: nn.functional.logsigmoid(-z) in place of "log(1-p)"'),
        ("p = exp(z)/sum(exp(z)); -sum(y*log(p))", {"y": "0,1", "z": "800,-800"},
         'z.grad is [1, -1]: log_softmax(z, 0) in place of "log(p)"'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", [(), ("--detect-anomaly",)])
def test_a_loss_with_its_probability_as_a_name(
    text: str, values: dict[str, str], says: str, how: tuple[str, ...]
) -> None:
    given = [word for name, value in values.items() for word in (f"--{name}", value)]
    result = run("grad", "--math", text, *given, "--wrt", "z", *how)
    assert says in result.stderr.replace("\n", " ")


def test_facts_are_read_as_mathematics() -> None:
    least = run("minimize", "--math", r"\|w - c\|^2", "--subject", r"\|w\| = 1", "--c", "3,4",
                "--w", "1,1", "--wrt", "w", "--json")  # fmt: skip
    assert least.exit_code == 0, least.output
    assert abs(json.loads(least.stdout)["value"] - 16) < 1e-6
    quadratic = run(
        "diff", "--math", r"x^T \Sigma^{-1} x", "--wrt", "x", "--assume", r"\Sigma symmetric"
    )
    assert quadratic.stdout == "2*linalg.inv(Sigma)@x\n", quadratic.output

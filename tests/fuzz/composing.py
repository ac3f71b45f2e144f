"""Random expressions and statements of given shapes, made of templates whose operands have known shapes.

A template has a place {} for each operand, or {0} for one that stands twice; constants among them (slices,
indices, masks, exponents) are drawn as the template is. What does not fit together, PyTorch refuses.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Template = tuple[str, list[Shape]]

# Without hardsigmoid: PyTorch's slope of it is of single precision, and sums of others may be small beside.
UNARY = [
    *("sin({})", "cos({})", "exp({})", "tanh({})", "sqrt({}**2 + 0.3)", "-{}", "log({}**2 + 0.5)"),
    *("{}**2", "{}**3", "1/({}**2 + 0.7)", "sigmoid({})", "atan({})", "abs({})", "relu({})"),
    *("erf({})", "F.softplus({})", "F.silu({})", "F.gelu({})", "F.elu({})", "expm1({})", "3*{}"),
    *("{}/2", "square({})", "{}*0.5 - 1", "clamp({}, -0.9, 0.8)", "F.leaky_relu({})", "{} % 0.77"),
    *("2**{}", "log1p({}**2)", "rsqrt({}**2 + 1)", "sinc({})", "sinh({})", "{}/3 + 2", "1 - {}"),
    *("F.hardswish({})", "F.mish({})", "F.selu({})", "F.relu6(3*{})", "F.hardtanh({})"),
    *("F.logsigmoid({})", "F.softsign({})", "F.tanhshrink({})", "F.softshrink({})"),
    *("F.hardshrink({})", "F.threshold({}, 0.1, 2)", "F.celu({}, 0.7)"),
    *("F.gelu({}, approximate='tanh')", "clamp({}, min=0)", "{}.clip(max=0.5)", "nan_to_num({})"),
    *("{}.sign()", "floor({})", "{} - round({})", "frac({})", "reciprocal({}**2 + 1)", "exp2({})"),
    *(
        "{}.detach() // 0.3",
        "fmod({}, 0.4)",
        "deg2rad({})",
        "asinh({})",
        "{}.pow(0)",
        "{}**1.0",
        "{}**True",
    ),
]
BINARY = [
    *("{} + {}", "{} - {}", "{}*{}", "{}*{}", "{}/({}**2 + 0.8)", "maximum({}, {})"),
    *("minimum({}, {})", "where({} > {}, {}, {})", "hypot({}, {})", "atan2({}, {}**2 + 0.4)"),
    *("({}**2 + 0.6)**{}", "logaddexp({}, {})", "{} % ({}**2 + 0.9)", "addcmul({}, {}, {})"),
    *("lerp({}, {}, {})", "{}*({} > 0.1)", "xlogy({}, {}**2 + 0.5)", "fmax({}, {})"),
    *(
        "addcdiv({}, {}, {}**2 + 1, value=-0.5)",
        "{}.masked_fill({} > 0, 0.5)",
        "clamp({}, {}, {} + 0.3)",
    ),
    *("where({} > 0, {}, 0)", "where({} < 0.2, 1.5, {})", "copysign({}, {})", "dist({}, {})"),
    *("add({}, {}, alpha=-2)", "F.huber_loss({}, {}, reduction='none')", "rsub({}, {})"),
    *("F.smooth_l1_loss({}, {}, reduction='none')", "fmin({}, {})"),
    # Zero, one, and what is equal, of operands that are not.
    *(
        "({0} - {0} + {1})",
        "({0}*0 + {1})",
        "maximum({0}, {0})*{1}",
        "({0}**0)*{1}",
        "({0}**2 + 1)**(0*{1})",
    ),
    *("where({0} == {0}, {0}, {1})", "({0}/({0}**2 + 1)*1)*{1}", "minimum({0}, {0}*1)*{1}"),
]
NUMBERS = ["(2)", "(0.5)", "(3)", "(1/3)", "pi", "(1)", "sqrt(3)", "(-1)", "(0.1)", "(1e-3)"]
# Numbers in place of an operand, of every kind: truth values first, which only arithmetic takes.
LITERALS = ["True", "False", "2", "0", "1", "-1", "-2", "3", "0.5", "-0.5", "0.0", "1.0", "1/3"]

# A value and a variable, put together by statements.
STATEMENTS = [
    "h = {}; h*{} + h**2",
    "h = {}; h.detach()*{}*h",
    "h = ({})*1; h.mul_({}); h*2",
    "h = ({}).clone(); k = h*1; k += {}; h*k",
    "h = {}; h = h*2 if sum({}) > 0.3 else h**2; h + 1",
    "set_grad_enabled(False); c = {}; set_grad_enabled(True); c*{}*2",
    "f = lambda v: v*{}; f({}) + 1",
    "h = ({}).reshape(-1).clone(); h[:1] = h[:1]*sum({}); h",
    "h = ({}).reshape(-1)*1; h[1:].mul_(sum({})); h**2",
    "h = {}; y = {}\nfor i in range(3): h = h*y + i\nh",
    "h = {}; y = {}\nfor i in range(1, 3): h = h/i - y**i\nh",
    "h = {}; y = {}; i = 0\nwhile i < 2: h = sin(h)*y; i += 1\nh",
    "h = {}; y = {}\nif h.sum() > y.sum(): h = h*y\nelse: h = h - y\nh",
    "h = {}; y = {}\nwith no_grad(): c = h*y\nc*h + y",
    "f = lambda u, v=2: u*v - {1}; f({0})*f({1}, 3)",
    "f = lambda u: u*u + 1; f(f({0}) - {1})",
    "h = {}; f = lambda v: v*h; f(2)*f({})",
    "def f(u, v): return u*v if u.sum() > 0 else u - v\nf({0}, {1}) + f(-({0}), 2)",
    "h = ({}).reshape(-1)*1; h[::2] = sum({}); h*h",
    "h = ({}).reshape(-1)*1; h[-1] = 2; h*sum({})",
    "h = ({}).reshape(-1)*1; h[h > 0.2] = 0; h**2*sum({})",
    "h = ({}).reshape(-1)*1; h[tensor([0, -1])] *= sum({}); h**2",
    "h = ({}).reshape(-1)*1; h[tensor([0, 0])] = sum({}); h*h",
    "h = ({}).reshape(1, -1)*1; h.T[0] = sum({}); h**2",
    "h = ({}).reshape(1, -1)*1; h[..., :-1] += sum({})*h[..., 1:]; h**2",
    "h = ({}).clone(); h.view(-1)[-1:].mul_(sum({})); h*2",
    "h = ({})*1; h += h; h.copy_(h*{}); h**2",
    "h = ({})*1; h.clamp_(-0.5, 0.5); h -= {}; h*h",
    "h = ({})*1; k = h*h; h.zero_(); h += {}; h*k",
    "h = ({})*1; h.masked_fill_(h > 0, 0.5); h*{}",
    "h = ({})*1; v = h[..., None]; v += 1; v *= 2; h*{}",
    "h = ({})*1; h.fill_(sum({})); h*2",
    "a, b = ({}).reshape(-1).chunk(2); sum(a)*b - sum({})",
    "b = [{}, 2, {}]; b[0]*b[1]*b[-1]",
    "h = zeros(3); h[0] = sum({}); h[1:] = sum({}); h*h[0]",
    "h = ({0})*{1}; h.detach_(); h*{1}",
    "h = {0}; h = h.detach() + h*{1}; h**2",
]


def operands(template: str) -> int:
    """How many operands a template has, one that stands twice counted once."""
    return template.count("{}") or 1 + max(map(int, re.findall(r"\{(\d)\}", template)))


class Maker:
    """Makes random expressions of given shapes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shapes: dict[str, Shape] = {}

    def variable(self, shape: Shape) -> str:
        alike = [n for n, s in self.shapes.items() if s == shape]
        if alike and (self.rng.random() < 0.65 or len(self.shapes) > 3):
            return self.rng.choice(alike)
        name = f"{'sxXBTUV'[len(shape)]}{len(self.shapes)}"
        self.shapes[name] = shape
        return name

    def narrowed(self, shape: Shape) -> Shape:
        """A shape that broadcasts to this one."""
        if self.rng.random() < 0.6:
            return shape
        cut = shape[self.rng.randrange(len(shape) + 1) :]
        return tuple(1 if self.rng.random() < 0.3 else n for n in cut)

    def make(self, shape: Shape, depth: int) -> str:
        """An expression of this shape, closed."""
        rng = self.rng
        if depth <= 0:
            return self.variable(shape) if rng.random() < 0.85 or shape else rng.choice(NUMBERS)
        roll = rng.random()
        if roll < 0.2:
            return self.unary(shape, depth)
        if roll < 0.42:
            return self.binary(shape, depth)
        kinds = [self.reduced, self.linear] if roll < 0.72 else [self.moved, self.picked]
        if len(shape) > 2 or not shape:
            kinds += [self.reduced, self.moved]
        template, parts = rng.choice(list(rng.choice(kinds)(shape)) or [("{}", [shape])])
        return template.format(*(self.make(p, depth - 1) for p in parts))

    def unary(self, shape: Shape, depth: int) -> str:
        return f"({self.rng.choice(UNARY).replace('{}', self.make(shape, depth - 1))})"

    def binary(self, shape: Shape, depth: int) -> str:
        template = self.rng.choice(BINARY)
        count = operands(template)
        whole = self.rng.randrange(count)
        parts = [
            self.make(shape if i == whole else self.narrowed(shape), depth - 1)
            for i in range(count)
        ]
        if self.rng.random() < 0.1 and "F." not in template:
            literals = LITERALS if template in BINARY[:4] else LITERALS[2:]
            parts[(whole + 1) % count] = f"({self.rng.choice(literals)})"
        return f"({template.format(*parts)})"

    def size(self) -> int:
        return self.rng.choice([1, 2, 2, 3, 3, 3, 4])

    def index(self, count: int, size: int) -> str:
        """A tensor of so many numbers below a size, some of them alike."""
        return f"tensor({[self.rng.randrange(size) for _ in range(count)]}).long()"

    def mask(self, size: int, true: int) -> str:
        """A tensor of so many truths, of which so many are true."""
        chosen = self.rng.sample(range(size), true)
        return f"tensor({[k in chosen for k in range(size)]}).bool()"

    # -- templates: (template, shapes of its operands) that give a shape ------------------------------
    def reduced(self, shape: Shape) -> Iterator[Template]:
        """Reductions, norms, what is done along a dimension, and what is chosen by size."""
        rng, k, n = self.rng, self.size(), self.size()
        order = rng.choice(["1", "1.7", "2", "3", "inf", "-inf", "0"])
        p = rng.choice([order, "'fro'"])
        word = rng.choice(
            ["sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "std", "norm"]
        )
        axis = rng.randrange(len(shape) + 1)
        wide = (*shape[:axis], n + (word in ("var", "std")), *shape[axis:])
        yield f"{word}({{}}, dim={axis})", [wide]
        yield f"norm({{}}, {p}, {axis})", [wide]
        yield f"linalg.vector_norm({{}}, {order}, dim={axis - len(wide)})", [wide]
        of = rng.choice(["max", "min", "median", "mode", "cummax", "cummin", "aminmax"])
        if of in ("max", "min", "median"):
            yield f"{of}({{}}, {axis})[0]", [wide]
            yield f"{{}}.{of}(dim={axis}).values", [wide]
        yield f"kthvalue({{}}, {n}, {axis})[0]", [wide]
        if len(shape) < 3:
            yield f"{{}}.sum(dim=({axis}, -1))", [(*shape[:axis], n, *shape[axis:], k)]
            yield f"mean({{}}, (0, {axis + 1}))", [(k, *shape[:axis], n, *shape[axis:])]
        if not shape:
            yield from (
                (f"sum({{}}{'' if k > 1 else ', 0'})", [(n,)]),
                ("mean({})", [(k, n)]),
                (f"norm({{}}, {p})", [(n,)]),
                (f"norm({{}}, {rng.choice(['1', '2', 'inf', repr('nuc')])})", [(k, n)]),
                ("prod({})", [(n,)]),
                ("logsumexp({}, 0)", [(n,)]),
                (f"{rng.choice(['amax', 'amin', 'max', 'min', 'median', 'sum'])}({{}})", [(k, n)]),
                (f"{rng.choice(['var', 'std'])}({{}})", [(n + 1,)]),
                ("std({}, correction=0)", [(n + 1,)]),
                ("F.mse_loss({}, {})", [(k, n), (k, n)]),
                ("F.l1_loss({}, {})", [(k, n), (k, n)]),
                ("F.binary_cross_entropy_with_logits({}, sigmoid({}))", [(n,), (n,)]),
                (f"F.cross_entropy({{}}, {self.index(k, n)})", [(k, n)]),
                (f"F.nll_loss(log_softmax({{}}, 1), {self.index(k, n)})", [(k, n)]),
                ("F.kl_div(log_softmax({}, -1), softmax({}, -1), reduction='sum')", [(n,), (n,)]),
                ("F.cosine_similarity({}, {}, dim=0)", [(n,), (n,)]),
                (f"dist({{}}, {{}}, {order})", [(n,), (n,)]),
                ("trapezoid({})", [(n + 1,)]),
            )
            return
        a = rng.randrange(len(shape))
        word = rng.choice(["sum", "mean", "prod", "amax", "amin", "logsumexp", "norm"])
        kept = (*shape[:a], n, *shape[a + 1 :])
        yield f"({{}} - {word}({{}}, dim={a}, keepdim=True))", [shape, kept]
        yield f"({{}}/({{}}**2 + 0.1).sum({a}, keepdim=True))", [shape, kept]
        yield f"({{}}*norm({{}}, {p}, {a}, True))", [shape, kept]
        yield f"({{}} - {{}}.max({a}, keepdim=True)[0])", [shape, kept]
        for along in ("softmax", "log_softmax", "F.softmin", "cumsum", "cumprod", "logcumsumexp"):
            yield f"{along}({{}}, {a})", [shape]
        yield f"{rng.choice(['cummax', 'cummin', 'sort'])}({{}}, {a})[0]", [shape]
        yield f"sort({{}}, dim={a}, descending=True).values", [shape]
        yield f"F.normalize({{}}, dim={a})", [shape]
        yield f"topk({{}}, {shape[a]}, {a})[0]", [(*shape[:a], shape[a] + k - 1, *shape[a + 1 :])]
        yield f"diff({{}}, dim={a})", [(*shape[:a], shape[a] + 1, *shape[a + 1 :])]
        yield f"F.layer_norm({{}}, {shape[-1:]})", [shape]

    def linear(self, shape: Shape) -> Iterator[Template]:
        """Products, and the algebra of matrices."""
        rng, k, n = self.rng, self.size(), self.size()
        part = rng.choice(["tril({}", "triu({}", "triu({}, 1", "tril({}, -1", "triu({}, -1"]) + ")"
        if not shape:
            yield from (
                ("dot({}, {})", [(n,), (n,)]),
                (f"linalg.det({{}} + 3*eye({n}))", [(n, n)]),
                ("trace({})", [(n, n)]),
                ("trace({}@{})", [(n, k), (k, n)]),
                ("({}@{})", [(n,), (n,)]),
                ("({}@{}@{})", [(n,), (n, k), (k,)]),
                (f"logdet({{0}}@{{0}}.T + eye({k}))", [(k, n)]),
                ("sum({0}.T@{0})", [(k, n)]),
                ("einsum('i,ij,j->', {}, {}, {})", [(n,), (n, k), (k,)]),
                ("einsum('ij,ij->', {}, {})", [(n, k), (n, k)]),
                ("inner({}, {})", [(n,), (n,)]),
                ("tensordot({}, {}, 2)", [(n, k), (n, k)]),
                (f"slogdet({{}} + 3*eye({n}))[1]", [(n, n)]),
            )
        if len(shape) == 1:
            (m,) = shape
            yield from (
                ("({}@{})", [(m, n), (n,)]),
                ("({}@{})", [(n,), (n, m)]),
                ("mv({}, {})", [(m, n), (n,)]),
                ("({}.T@{})", [(n, m), (n,)]),
                ("(diag({})@{}@{})", [(m,), (m, n), (n,)]),
                (f"({part}@{{}})", [(m, n), (n,)]),
                ("diag({}@{})", [(m, n), (n, m)]),
                (f"linalg.solve({{}} + 3*eye({m}), {{}})", [(m, m), (m,)]),
                ("einsum('ij,j->i', {}, {})", [(m, n), (n,)]),
                ("einsum('ij,jk,k->i', {}, {}, {})", [(m, n), (n, k), (k,)]),
                ("einsum('ij,ij,j->i', {}, {}, {})", [(m, n), (m, n), (n,)]),
                ("addmv({}, {}, {}, beta=0.5, alpha=2)", [(m,), (m, n), (n,)]),
                ("tensordot({}, {}, 1)", [(n,), (n, m)]),
                ("F.linear({}, {}, {})", [(n,), (m, n), (m,)]),
                ("F.conv1d({}, {})[0, 0]", [(1, 1, m + k - 1), (1, 1, k)]),
            )
        if len(shape) == 2:
            m, p = shape
            yield from (
                ("({}@{})", [(m, n), (n, p)]),
                ("({}@{}.T)", [(m, n), (p, n)]),
                ("({}.T@{})", [(n, m), (n, p)]),
                ("({}@{}@{})", [(m, n), (n, k), (k, p)]),
                ("({}@diag({})@{})", [(m, n), (n,), (n, p)]),
                ("(diag({})@{})", [(m,), (m, p)]),
                ("({}@diag({}))", [(m, p), (p,)]),
                (f"({part}@{{}})", [(m, n), (n, p)]),
                (f"({{}}@{part})", [(m, n), (n, p)]),
                ("outer({}, {})", [(m,), (p,)]),
                ("({}[:, None]*{})", [(m,), (p,)]),
                ("({}[:, None] - {}[None, :])", [(m,), (p,)]),
                ("addmm({}, {}, {})", [(p,), (m, n), (n, p)]),
                ("addmm({}, {}, {}, beta=-1, alpha=0.5)", [(m, p), (m, n), (n, p)]),
                ("addr({}, {}, {})", [(m, p), (m,), (p,)]),
                ("F.linear({}, {}, {})", [(m, n), (p, n), (p,)]),
                ("kron({}, {})", [(m, 1), (1, p)]),
                ("cdist({}, {})", [(m, n), (p, n)]),
                ("einsum('ij,jk,kl->il', {}, {}, {})", [(m, n), (n, k), (k, p)]),
                ("einsum('i,ij,jk->ik', {}, {}, {})", [(m,), (m, n), (n, p)]),
                ("einsum('aij,j->ai', {}, {})", [(m, p, n), (n,)]),
                ("linalg.multi_dot([{}, {}, {}])", [(m, n), (n, k), (k, p)]),
                (f"linalg.solve({{}} + 3*eye({m}), {{}})", [(m, m), (m, p)]),
                (f"linalg.lstsq({{}} + 3*eye({m}), {{}})[0]", [(m, m), (m, p)]),
                ("F.scaled_dot_product_attention({}, {}, {})", [(m, n), (k, n), (k, p)]),
            )
            if m == p and m:
                yield f"linalg.inv({{}} + 3*eye({m}))", [(m, m)]
                yield f"linalg.cholesky({{0}}@{{0}}.T + 2*eye({m}))", [(m, n)]
                yield "diag({})", [(m,)]
                yield "matrix_exp({}*0.3)", [(m, m)]
                yield f"matrix_power({{}}, {rng.choice([0, 1, 2, 3])})", [(m, m)]
                yield "({0} + {0}.T)", [(m, m)]
                yield "({0}*{0}.T)", [(m, m)]
        if len(shape) == 3:
            a, b, c = shape
            yield "({}@{})", [(a, b, n), (a, n, c)]
            yield "({}@{})", [(a, b, n), (n, c)]
            yield "({}@{})", [(b, n), (a, n, c)]
            yield "({}@{}.mT)", [(a, b, n), (a, c, n)]
            yield "bmm({}, {})", [(a, b, n), (a, n, c)]
            yield "baddbmm({}, {}, {})", [(a, b, c), (a, b, n), (a, n, c)]
            yield "({}[None]*{})", [(b, c), (a, 1, 1)]
            yield "einsum('ai,aj->aij', {}, {})", [(a, b), (a, c)]
            yield "einsum('i,j,k->ijk', {}, {}, {})", [(a,), (b,), (c,)]
            yield "tensordot({}, {}, 1)", [(a, n), (n, b, c)]

    def moved(self, shape: Shape) -> Iterator[Template]:
        """What joins, repeats and turns."""
        rng, k = self.rng, self.size()
        yield f"{{}}.reshape({', '.join(map(str, shape)) or '()'})", [_reshaped(shape, rng)]
        yield f"({{}}*1).view({shape})", [_reshaped(shape, rng)]
        yield "{}.clone()", [shape]
        yield f"{{}}.expand({shape})", [self.narrowed(shape)]
        yield f"broadcast_to({{}}, {shape})", [self.narrowed(shape)]
        yield "({} + zeros_like({}))", [shape, shape]
        yield f"squeeze({{}}, {rng.choice([0, -1])})", [(1, *shape)]
        yield f"unbind({{}})[{-1 if k > 1 else 0}]", [(k, *shape)]
        if not shape:
            return
        a = rng.randrange(len(shape))
        m, after = shape[a], shape[a + 1 :]

        def along(size: int) -> Shape:
            return (*shape[:a], size, *after)

        less = rng.randrange(m + 1)
        yield f"cat([{{}}, {{}}], {a})", [along(less), along(m - less)]
        yield f"cat([{{}}, ones({along(m - less)})], {a})", [along(less)]
        yield f"flip({{}}, ({a},))", [shape]
        yield f"{{}}.flip({tuple(range(len(shape)))})", [shape]
        yield f"roll({{}}, {rng.choice([1, -1, 2])}, {a})", [shape]
        yield f"split({{}}, {max(m, 1)}, {a})[0]", [along(m + k)]
        yield f"split({{}}, [{k}, {m}], dim={a})[1]", [along(m + k)]
        yield f"chunk({{}}, 2, {a})[{rng.randrange(2)}]", [along(2 * m)]
        yield (
            f"{{}}.tile({(k if len(shape) == 1 and not m % k else 1,)})",
            [along(m // k) if len(shape) == 1 and not m % k else shape],
        )
        yield f"{{}}.movedim(0, {a})", [(m, *shape[:a], *after)]
        if m:
            each = [rng.random() < 0.7 for _ in range(m)]
            rest = (*shape[:a], *after)
            said = ["{}" if e or rest else rng.choice(["tensor(2.)", "pi*ones(())"]) for e in each]
            if all(each) or not rest:
                yield f"stack([{', '.join(said)}], {a})", [rest] * said.count("{}")
            yield f"repeat_interleave({{}}, {m}, {a})", [along(1)]
        if len(shape) == 1:
            yield f"F.pad({{}}, (1, {k}))", [(m - k - 1,)] if m > k else [(0,)]
            yield f"cat([{{}}, tensor([0.5])])[:{m}]", [(m,)]
            yield "{}.flatten()", [(1, m)]
            yield "hstack([{}, {}])", [(less,), (m - less,)]
        if len(shape) == 2:
            m, p = shape
            yield "{}.T", [(p, m)]
            yield "transpose({}, 0, 1)", [(p, m)]
            yield f"{rng.choice(['tril', 'triu'])}({{}})", [(m, p)]
            yield "vstack([{}, {}])", [(1, p), (m - 1, p)] if m > 1 else [(0, p), (m, p)]
            yield "rot90({})", [(p, m)]
            if p:
                yield f"{{}}.repeat({m}, 1)", [(p,)]
        if len(shape) == 3:
            a, b, c = shape
            yield "{}.permute(1, 2, 0)", [(c, a, b)]
            yield f"{{}}.unflatten(0, {(a, b)})", [(a * b, c)]

    def picked(self, shape: Shape) -> Iterator[Template]:
        """What is picked by slices, indices and masks, and what is written there."""
        rng, k, n = self.rng, self.size(), self.size()
        if not shape:
            yield f"{{}}[{rng.randrange(n)}]", [(n,)]
            yield f"{{}}[{-rng.randrange(k) - 1}, {rng.randrange(n)}]", [(k, n)]
            yield f"{{}}[{rng.randrange(k)}][{-rng.randrange(n) - 1}]", [(k, n)]
            yield f"sum({{}}[{self.mask(n, rng.randrange(n + 1))}])", [(n,)]
            yield "sum({0}[{0} > 0])", [(n,)]
            yield f"take({{}}, tensor({rng.randrange(k * n)}))", [(k, n)]
            return
        a = rng.randrange(len(shape))
        m, before, after = shape[a], ":, " * a, shape[a + 1 :]

        def along(size: int) -> Shape:
            return (*shape[:a], size, *after)

        yield f"{{}}[{before}{rng.randrange(k)}]", [(*shape[:a], k, *shape[a:])]
        yield f"select({{}}, {a}, {-rng.randrange(k) - 1})", [(*shape[:a], k, *shape[a:])]
        yield f"{{}}[{before}1:{m + 1}]", [along(m + 2)]
        yield f"{{}}[{before}:-{k}]", [along(m + k)]
        yield f"{{}}[{before}{k}:]", [along(m + k)]
        yield f"{{}}[{before}::2]", [along(2 * m - rng.randrange(2) if m else 0)]
        yield f"{{}}[{before}1::2]", [along(2 * m + rng.randrange(2))]
        yield f"{{}}[..., -{shape[-1]}:]" if shape[-1] else "{}", [(*shape[:-1], shape[-1] + k)]
        yield f"narrow({{}}, {a}, {k}, {m})", [along(m + k)]
        yield f"{{}}[{before}{self.index(m, n)}]", [along(n)]
        yield f"index_select({{}}, {a}, {self.index(m, n)})", [along(n)]
        yield f"{{}}[{before}{self.mask(m + k, m)}]", [along(m + k)]
        some = rng.randrange(m + 1)
        if m:
            at = self.index(k, m)
            yield f"index_add({{}}, {a}, {at}, {{}})", [shape, along(k)]
            yield f"index_copy({{}}, {a}, tensor([{m - 1}]), {{}})", [shape, along(1)]
            yield f"index_fill({{}}, {a}, {at}, 0.5)", [shape]
            yield f"select_scatter({{}}, {{}}, {a}, {m - 1})", [shape, (*shape[:a], *after)]
            yield f"slice_scatter({{}}, {{}}, {a}, 0, {some})", [shape, along(some)]
        last = shape[-1]
        if all(shape):
            many = np.array([rng.randrange(n) for _ in range(int(np.prod(shape)))])
            table = f"tensor({many.reshape(shape).tolist()})"
            wide = (*shape[:-1], n)
            yield f"gather({{}}, -1, {table})", [wide]
            yield f"take_along_dim({{}}, {table}, -1)", [wide]
            if n <= last:
                yield f"scatter({{}}, -1, {table}, {{}})", [shape, shape]
                yield f"scatter_add({{}}, -1, {table}, {{}})", [shape, shape]
                yield f"{{}}.scatter(-1, {table}, 0.5)", [shape]
        yield f"{{}}.masked_fill({self.mask(last, rng.randrange(last + 1))}, -0.5)", [shape]
        yield f"where({self.mask(last, rng.randrange(last + 1))}, {{}}, {{}})", [shape, shape]
        yield f"where({self.mask(last, rng.randrange(last + 1))}, {{}}, 0)", [shape]
        yield f"masked_scatter({{}}, {self.mask(last, some % (last + 1))}, {{}})", [shape, shape]
        if len(shape) == 1:
            yield f"take({{}}, {self.index(m, k * n)})", [(k, n)]
            yield f"{{}}[{self.index(m, k)}, {self.index(m, n)}]", [(k, n)]
            yield "diag({})", [(m, m)]
            yield f"diagonal({{}}, {rng.choice([0, 1])})", [(m, m + 1)]
            yield "index_put({}, (tensor([0]),), {})", [shape, ()]
            yield f"masked_select({{}}, {self.mask(m + k, m)})", [(m + k,)]
        if len(shape) == 2:
            m, p = shape
            yield f"F.embedding({self.index(m, n)}, {{}})", [(n, p)]
            yield f"{{}}[{self.index(m, n)}][:, {self.index(p, k)}]", [(n, k)]
            yield f"{{}}.unfold(0, {p}, 1)", [(m + p - 1,)]
            yield f"{{}}[:, :{p}]", [(m, p + k)]

    def values(self, numbers: np.random.Generator) -> dict[str, Any]:
        """Random values; those of some variables are few, so that they tie and meet kinks."""
        return {
            n: numbers.choice(SPECIAL, s)
            if numbers.random() < 0.15
            else np.round(numbers.uniform(-1.4, 1.4, s), 2)
            for n, s in self.shapes.items()
        }


# Where functions have kinks, poles and zeros.
SPECIAL = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5]


def _reshaped(shape: Shape, rng: random.Random) -> Shape:
    """Another shape with as many elements."""
    count = int(np.prod(shape))
    choices: list[Shape] = [(count,), (1, *shape), (*shape, 1)]
    if count and count % 2 == 0:
        choices.append((2, count // 2))
    return rng.choice([c for c in choices if len(c) < 4])


def any_shape(rng: random.Random, size: Callable[[], int]) -> Shape:
    """Of up to three dimensions, seldom without elements."""
    sizes = [size() for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 2, 3]))]
    if sizes and rng.random() < 0.07:
        sizes[rng.randrange(len(sizes))] = 0
    return tuple(sizes)

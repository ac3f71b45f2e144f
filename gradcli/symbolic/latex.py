"""Expressions as LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from gradcli.symbolic.algebra import HALF
from gradcli.symbolic.array_algebra import axes_of, place_of
from gradcli.symbolic.exact_numbers import ONE, Number
from gradcli.symbolic.expression_text import (
    ATOM,
    COMPARE,
    POWER,
    PRODUCT,
    REMAINDER,
    SUM,
    Piece,
    Printer,
    literal,
    turns_matrices,
)
from gradcli.symbolic.expressions import Expression, is_call, is_size
from gradcli.symbolic.unknown_functions import in_latex, is_unknown

GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
FUNCTIONS = {
    **{f: rf"\{f}" for f in "sin cos tan sinh cosh tanh exp log max min det arg".split()},
    **{"asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan"},
    **{"sigmoid": r"\sigma", "sign": r"\operatorname{sign}", "linalg.det": r"\det"},
    **{"diag_embed": r"\operatorname{diag}"},
    **{"digamma": r"\psi", "trace": r"\operatorname{tr}"},
}
INFIX = {
    "eq": "=",
    "ne": r"\ne",
    "lt": "<",
    "le": r"\le",
    "gt": ">",
    "ge": r"\ge",
    "bitwise_and": r"\land",
    "bitwise_or": r"\lor",
    "remainder": r"\bmod",
}


def wrapped(piece: Piece, least: int) -> str:
    """The text, in parentheses that grow with it if it binds less tightly."""
    text, precedence = piece
    return text if precedence >= least else rf"\left({text}\right)"


# The names of vectors and matrices, where these are bold (`--latex-style bold`).
bold: ContextVar[frozenset[str]] = ContextVar("bold", default=frozenset())


def symbol(word: str) -> str:
    r"""A name in LaTeX: `sigma_x` is `\sigma_{x}`, and a word such as `velocity` is upright."""
    return rf"\boldsymbol{{{_plain(word)}}}" if word in bold.get() else _plain(word)


def _plain(word: str) -> str:
    match = re.fullmatch(r"([A-Za-z]+)_?(\w*)", word)
    if "[" in word:  # an element
        head, _, index = word.rstrip("]").partition("[")
        return f"{{{symbol(head)}}}_{{{index}}}"
    if match is None:
        return rf"\mathrm{{{word}}}".replace("_", r"\_")
    head, tail = match.groups()
    shown = rf"\{head}" if head in GREEK else head if len(head) == 1 else rf"\mathrm{{{head}}}"
    tail = tail.replace("_", r"\_")
    return f"{shown}_{{{tail}}}" if tail else shown


def size(text: str) -> str:
    """The size of a variable: `x.shape[0]` is n with the variable as its index, `X.numel()` N."""
    word, _, rest = text.partition(".")
    dimension = int(re.sub(r"\D", "", rest) or 0)
    index = f", {dimension + 1}" if dimension else ""
    return f"{'N' if rest == 'numel()' else 'n'}_{{{symbol(word)}{index}}}"


class LatexPrinter(Printer):
    """Prints expressions as LaTeX."""

    linear = ("matmul", "outer", "dot")

    def make_name(self, node: Expression) -> Piece:
        return size(node.data) if is_size(node) else symbol(node.data), ATOM

    def number(self, value: Number) -> Piece:
        text, precedence = super().number(value)
        if "/" in text:
            over, under = text.lstrip("-").split("/")
            sign = "-" if text.startswith("-") else ""
            return rf"{sign}\frac{{{over}}}{{{under}}}", SUM if sign else FRACTION
        if "e" in text and "inf" not in text:
            mantissa, exponent = text.split("e")
            ten = rf"10^{{{int(exponent)}}}"
            return (ten, POWER) if mantissa == "1" else (rf"{mantissa} \cdot {ten}", PRODUCT)
        named = {"inf": r"\infty", "-inf": r"-\infty", "nan": r"\mathrm{NaN}"}
        return named.get(text, text), precedence

    def make_array(self, node: Expression) -> Piece:
        rows = node.data if node.data.ndim == 2 else node.data.reshape(1, -1)
        body = r" \\ ".join(" & ".join(f"{v:g}" for v in row) for row in rows.tolist())
        return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}", ATOM

    def make_sum(self, node: Expression) -> Piece:
        return super().make_sum(node)[0], SUM

    def fraction(self, above: list[Piece], below: list[Piece], arrays: list[bool]) -> Piece:
        if not below and len(above) == 1:
            return above[0]
        top = above[0][0] if len(above) == 1 else _product(above, arrays) or "1"
        if not below:
            return top, PRODUCT
        bottom = below[0][0] if len(below) == 1 else _product(below, [])
        return rf"\frac{{{top}}}{{{bottom}}}", FRACTION

    def power(self, base: Expression, exponent: Any) -> Piece:
        own = self.of(base)
        if isinstance(exponent, Number):
            if exponent == ONE:
                return own
            if exponent == HALF:
                return rf"\sqrt{{{own[0]}}}", ATOM
            shown = self.number(exponent)[0]
        else:
            shown = self.of(exponent)[0]
        if base.op == "call" and base.data[0] in _POWERED and len(base.args) == 1:
            inner = self.of(base.args[0])[0]
            return rf"{FUNCTIONS[base.data[0]]}^{{{shown}}}\left({inner}\right)", POWER
        return f"{wrapped(own, POWER + 1)}^{{{shown}}}", POWER

    def call(
        self, function: str, args: list[Piece], options: Iterable[tuple[str, Any]] = ()
    ) -> Piece:
        shown = FUNCTIONS.get(function)
        if shown is None and is_unknown(function):
            shown = in_latex(function, symbol)
        if shown is None:
            shown = rf"\operatorname{{{function.rpartition('.')[2]}}}".replace("_", r"\_")
        given = ", ".join(_option(key, value) for key, value in options if key != "@")
        index = f"_{{{given}}}" if given else ""
        return rf"{shown}{index}\left({', '.join(a[0] for a in args)}\right)", ATOM

    def make_call(self, node: Expression) -> Piece:
        function = node.data[0]
        args = [self.of(a) for a in node.args]
        if function in INFIX:
            precedence, least = COMPARE, COMPARE + 1
            if function == "remainder":
                precedence, least = REMAINDER, PRODUCT + 1
            a, b = (wrapped(x, least) for x in args)
            return rf"{a} {INFIX[function]} {b}", precedence
        if function in _SHAPES:
            return _SHAPES[function](self, args, node)
        return super().make_call(node)

    def entry(self, item: Expression) -> str:
        """An element of a matrix: a number as it is, not as a tensor."""
        while is_call(item, "tensor", "float"):
            (item,) = item.args
        return self.of(item)[0]

    def transposed(self, piece: Piece) -> str:
        """A vector or matrix transposed."""
        return f"{wrapped(piece, ATOM)}^{{\\top}}"

    def factor(self, node: Expression) -> str:
        """An operand of a product of matrices."""
        return wrapped(self.of(node), PRODUCT if is_call(node, "matmul") else PRODUCT + 1)

    def call_select(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        (_, dim), (_, index) = options
        base = "e" if is_call(node.args[0], "eye") else f"{{{wrapped(args[0], ATOM)}}}"
        return f"{base}_{{{': ' * dim}{index}}}", ATOM

    def call_slice(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        (_, dim), (_, start), (_, end), _step = options
        last = "" if end is None or end >= node.args[0].shape[dim] else end
        return f"{{{wrapped(args[0], ATOM)}}}_{{{': ' * dim}{start or ''}:{last}}}", ATOM

    def call_index(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        inner = ", ".join(a[0] for a in args[1:])
        base = "e" if is_call(node.args[0], "eye") else f"{{{wrapped(args[0], ATOM)}}}"
        return f"{base}_{{{inner}}}", ATOM

    def call_clamp(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.between(args[0][0], options, r"\max", r"\min"), ATOM


_LETTERS = "ijklmnop"  # of dimensions
FRACTION = POWER - 1  # a factor as it stands, but closed under an exponent
_POWERED = frozenset("sin cos tan sinh cosh tanh log".split())


def _option(key: str, value: Any) -> str:
    """An option as an index of the function: `stride=2` with its name upright, True by its name alone."""
    word = rf"\mathrm{{{key}}}".replace("_", r"\_") if key else ""
    if isinstance(value, (tuple, list)):
        shown = f"({', '.join(_option('', v) for v in value)})"
    elif isinstance(value, str):
        shown = rf"\mathrm{{{value}}}"
    else:
        shown = {math.inf: r"\infty", -math.inf: r"-\infty"}.get(value, literal(value))
    return word if word and value is True else f"{word}={shown}" if word else shown


def _product(pieces: list[Piece], arrays: list[bool]) -> str:
    r"""Factors side by side, with `\odot` between arrays, which multiply elementwise."""
    text, before = "", False
    for i, piece in enumerate(pieces):
        shown = wrapped(piece, PRODUCT + 1 if i else PRODUCT)
        is_array = i < len(arrays) and arrays[i]
        if before and is_array:
            shown = rf"\odot {shown}"
        elif text and shown[:1].isdigit():
            shown = rf"\cdot {shown}"
        text = f"{text} {shown}" if text else shown
        before = before or is_array
    return text


def _row(self: LatexPrinter, node: Expression) -> str:
    """A vector transposed: `x^{\top} A` for x@A, as it stands before what it is multiplied by."""
    if is_call(node, "matmul") and len(node.args[0].shape) == 1:
        return f"{_row(self, node.args[0])} {self.factor(node.args[1])}"
    return self.transposed(self.of(node))


def _matmul(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    # Matrix products associate among themselves: A B x. Vectors are columns.
    left, right = node.args
    if len(left.shape) > 1:
        return f"{self.factor(left)} {self.factor(right)}", PRODUCT
    if len(right.shape) > 1:
        matrix = args[1][0].removesuffix(r"^{\top}")
        turned = matrix if matrix != args[1][0] else self.transposed(args[1])
        return f"{turned} {self.factor(left)}", PRODUCT
    return f"{_row(self, left)} {self.factor(right)}", PRODUCT


def _sum(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """A sum as a product with a vector of ones, or over indices if there are more than two dimensions."""
    (own,) = node.args
    ndim = len(own.shape)
    dims = axes_of(node.data[1][0][1] if node.data[1] else None, ndim)
    if not node.data[1] and ndim in (1, 2) and (norm := _norm(self, own)):
        return norm, POWER
    if ndim > 2:
        letters = _LETTERS[:ndim]
        kept = "".join(k for d, k in enumerate(letters) if d not in dims)
        summed = ", ".join(letters[d] for d in dims)
        text = rf"\sum_{{{summed}}} {{{wrapped(args[0], ATOM)}}}_{{{letters}}}"
        return (rf"\left[{text}\right]_{{{kept}}}", ATOM) if kept else (text, SUM + 1)
    text = wrapped(args[0], PRODUCT + 1)
    if 0 in dims:
        text = rf"\mathbf{{1}}^{{\top}} {text}" if ndim == len(dims) else self.transposed(args[0])
    if 1 in dims or ndim > len(dims):
        text = rf"{text} \mathbf{{1}}"
    return text, PRODUCT


def _exponential(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    r"""A power of e; exp(lgamma(u)) is `\Gamma(u)`."""
    (own,) = node.args
    if is_call(own, "lgamma"):
        return rf"\Gamma\left({self.of(own.args[0])[0]}\right)", ATOM
    return f"e^{{{args[0][0]}}}", POWER


def _norm(self: LatexPrinter, own: Expression) -> str | None:
    """A sum of squares or of absolute values as a norm; None for any other sum."""
    frobenius = "_{F}" if len(own.shape) == 2 else ""
    if own.op == "product" and own.data == (ONE, (Number.of(2),)):
        return rf"\left\| {self.of(own.args[0])[0]} \right\|{frobenius}^{{2}}"
    if is_call(own, "abs") and not frobenius:
        return rf"\left\| {self.of(own.args[0])[0]} \right\|_{{1}}"
    return None


def _length(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    given = ", ".join(_option(k, v) for k, v in node.data[1])
    index = f"_{{{given or 'F'}}}" if given or len(node.args[0].shape) == 2 else ""
    return rf"\left\| {args[0][0]} \right\|{index}", ATOM


def _mean(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    if node.data[1]:
        return _along(self, args, node)
    return rf"\overline{{{args[0][0]}}}", ATOM


def _along(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    r"""A function along one dimension: `\operatorname{softmax}_{j}` along the second of two."""
    word, options = node.data
    ndim = len(node.args[0].shape)
    dims = next((v for k, v in options if k in ("", "dim")), None)
    index = ""
    if ndim > 1 and dims is not None:
        index = f"_{{{', '.join(_LETTERS[d] for d in axes_of(dims, ndim))}}}"
    name = word.rpartition(".")[2]
    shown = r"\log \operatorname{softmax}" if name == "log_softmax" else rf"\operatorname{{{name}}}"
    return rf"{shown}{index}\left({args[0][0]}\right)", ATOM


def _prod(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    letters = _LETTERS[: len(node.args[0].shape)]
    if node.data[1] or not letters:
        return _along(self, args, node)
    return rf"\prod_{{{', '.join(letters)}}} {{{wrapped(args[0], ATOM)}}}_{{{letters}}}", PRODUCT


def _one_hot(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """A unit vector; of several places the function's name."""
    if place_of(node) is None:
        return rf"\operatorname{{onehot}}\left({args[0][0]}\right)", ATOM
    return f"e_{{{args[0][0]}}}", ATOM


def _solve(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    inverse = f"{wrapped(args[0], ATOM)}^{{-1}}"
    if args[0][0].endswith(r"^{\top}"):
        inverse = args[0][0].removesuffix(r"^{\top}") + r"^{-\top}"
    return f"{inverse} {wrapped(args[1], PRODUCT)}", PRODUCT


def _where(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    rows, rest = [], node
    while is_call(rest, "where"):
        condition, own, rest = rest.args
        rows.append(rf"{self.of(own)[0]} & \text{{if }} {self.of(condition)[0]}")
    rows.append(rf"{self.of(rest)[0]} & \text{{otherwise}}")
    body = r" \\ ".join(rows)
    return rf"\begin{{cases}}{body}\end{{cases}}", ATOM


def _stack(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    r"""A stack: a vector as a column of its elements, a matrix as its rows."""
    matrix = len(node.shape) == 2
    lists = list(map(_items, _items(node) or [])) if matrix else [[i] for i in _items(node) or []]
    if len(node.shape) > 2 or node.data[1] or not lists or None in lists:
        return self.call(node.data[0], args, node.data[1])
    body = r" \\ ".join(" & ".join(map(self.entry, row or [])) for row in lists)
    return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}", ATOM


def _einsum(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """An einsum: the sum over indices, the indexed factors, and the indices of the result."""
    given, kept = node.data[1][0][1].split("->")
    summed = ", ".join(dict.fromkeys(k for k in given if k.isalpha() and k not in kept))
    factors = [
        f"{{{wrapped(a, ATOM)}}}_{{{ks}}}" for a, ks in zip(args, given.split(","), strict=True)
    ]
    total = rf"\sum_{{{summed}}} " if summed else ""
    return rf"\left[{total}{' '.join(factors)}\right]_{{{kept}}}", ATOM


def _permute(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """Dimensions in another order: a transpose, or the indices of the result."""
    order = node.data[1][0][1]
    if turns_matrices(order):
        return self.transposed(args[0]), POWER
    placed = dict(zip(order, _LETTERS, strict=False))
    inner = "".join(placed[d] for d in range(len(order)))
    return (
        rf"\left[{{{wrapped(args[0], ATOM)}}}_{{{inner}}}\right]_{{{_LETTERS[: len(order)]}}}",
        ATOM,
    )


def _items(own: Expression) -> Sequence[Expression] | None:
    """The items of a list, or of a tensor made of a list."""
    if is_call(own, "[]"):
        return own.args
    return _items(own.args[0]) if is_call(own, "stack", "tensor") else None


_SHAPES: Mapping[str, Callable[[LatexPrinter, list[Piece], Expression], Piece]] = {
    **dict.fromkeys(("matmul", "dot"), _matmul),
    "where": _where,
    "T": lambda self, args, node: (self.transposed(args[0]), POWER),
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    **dict.fromkeys("softmax log_softmax logsumexp cumsum cumprod var std".split(), _along),
    "one_hot": _one_hot,
    "linalg.solve": _solve,
    "outer": lambda self, args, node: (
        rf"{wrapped(args[0], ATOM)} {wrapped(args[1], ATOM)}^{{\top}}",
        PRODUCT,
    ),
    "norm": _length,
    "abs": lambda self, args, node: (rf"\left| {args[0][0]} \right|", ATOM),
    "einsum": _einsum,
    "permute": _permute,
    "stack": _stack,
    "tensor": _stack,
    "exp": _exponential,
    "linalg.inv": lambda self, args, node: (f"{wrapped(args[0], ATOM)}^{{-1}}", POWER),
    **dict.fromkeys(("expand", "contiguous"), lambda self, args, node: args[0]),
    "expand_as": lambda self, args, node: args[0],
    "reshape": lambda self, args, node: args[0],
    "full_like": lambda self, args, node: args[1],
    "ones_like": lambda self, args, node: (r"\mathbf{1}", ATOM),
    "zeros_like": lambda self, args, node: (r"\mathbf{0}", ATOM),
    "ones": lambda self, args, node: (r"\mathbf{1}", ATOM),
    "zeros": lambda self, args, node: (r"\mathbf{0}", ATOM),
    "eye": lambda self, args, node: ("I", ATOM),
}


def derivative_of(words: Sequence[str], of: str = "f") -> str:
    r"""The left side of an equation for a derivative: `\frac{\partial f}{\partial x}`."""
    order = f"^{{{len(words)}}}" if len(words) > 1 else ""
    powers = [(w, f"^{{{words.count(w)}}}" * (words.count(w) > 1)) for w in dict.fromkeys(words)]
    below = r"\, ".join(rf"\partial {symbol(w)}{power}" for w, power in powers)
    return rf"\frac{{\partial{order} {of}}}{{{below}}}"


def to_latex(expression: Expression) -> str:
    """The expression as LaTeX."""
    return LatexPrinter().text(expression)


__all__ = ["derivative_of", "symbol", "to_latex"]

"""Expressions as LaTeX, in the notation of matrices; `latex_elements` has what that cannot say."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gradcli.engine.system.greek import COMMANDS, LATIN
from gradcli.formulas.algebra.algebra import HALF, is_truth, zero
from gradcli.formulas.algebra.array_algebra import axes_of, place_of
from gradcli.formulas.algebra.assuming import current
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expression_text import (
    ATOM,
    COMPARE,
    POWER,
    PRODUCT,
    SUM,
    Piece,
    Printer,
    literal,
    numeral,
    turns_matrices,
)
from gradcli.formulas.algebra.expressions import Expression, is_call, is_size, number
from gradcli.formulas.algebra.unknown_functions import in_latex, is_unknown

GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
FUNCTIONS = {
    **{f: rf"\{f}" for f in "sin cos tan sinh cosh tanh exp log max min det arg".split()},
    **{"log2": r"\log_{2}", "log10": r"\log_{10}"},
    **{"asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan"},
    **{"sigmoid": r"\sigma", "sign": r"\operatorname{sign}", "linalg.det": r"\det"},
    **{"diag_embed": r"\operatorname{diag}"},
    **{"digamma": r"\psi", "trace": r"\operatorname{tr}", "diagonal": r"\operatorname{diag}"},
    **{"maximum": r"\max", "minimum": r"\min", "amax": r"\max", "amin": r"\min"},
    **{"special.ndtr": r"\Phi", "lgamma": r"\log \Gamma", "logdet": r"\log \det"},
    **{"log_softmax": r"\log \operatorname{softmax}"},
}
# Calls by their operands; the operands' least precedence, and that of the whole.
NOTATIONS: dict[str, tuple[str, int, int]] = {
    "log1p": (r"\log\left(1 + {0}\right)", SUM + 1, ATOM),
    "expm1": (r"\left(e^{{{0}}} - 1\right)", 0, ATOM),
    "hypot": (r"\sqrt{{{0}^{{2}} + {1}^{{2}}}}", ATOM, POWER),
    "abs": (r"\left| {0} \right|", 0, ATOM),
    "floor": (r"\left\lfloor {0} \right\rfloor", 0, ATOM),
    "floor_divide": (r"\left\lfloor \frac{{{0}}}{{{1}}} \right\rfloor", 0, ATOM),
    "ceil": (r"\left\lceil {0} \right\rceil", 0, ATOM),
    "xlogy": (r"{0} \log\left({1}\right)", PRODUCT, PRODUCT),
    "logaddexp": (r"\log\left(e^{{{0}}} + e^{{{1}}}\right)", 0, ATOM),
    "relu": (r"\max\left({0}, 0\right)", 0, ATOM),
    **dict.fromkeys(("ones", "ones_like"), (r"\mathbf{{1}}", 0, ATOM)),
    **dict.fromkeys(("zeros", "zeros_like"), (r"\mathbf{{0}}", 0, ATOM)),
    "eye": ("I", 0, ATOM),
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


def symbol(word: str) -> str:
    r"""A name in LaTeX: `sigma_x` is `\sigma_{x}`, and a word such as `velocity` is upright."""
    return rf"\boldsymbol{{{_plain(word)}}}" if word in current.get().bold else _plain(word)


def _plain(word: str) -> str:
    match = re.fullmatch(r"([^\W\d_]+)_?(\w*)", word)
    if "[" in word:  # an element
        head, _, index = word.rstrip("]").partition("[")
        return f"{{{symbol(head)}}}_{{{index}}}"
    if match is None:
        return rf"\mathrm{{{word}}}".replace("_", r"\_")
    head, tail = match.groups()
    letter = head in GREEK or head in ("lam", "ell") or len(head) == 1
    shown = _letters(head) if letter else rf"\mathrm{{{_letters(head)}}}"
    below = _letters(tail).replace("_", r"\_")
    if len(tail) > 2 and not tail.isdigit() and tail not in GREEK:
        below = rf"\mathrm{{{below}}}"
    return f"{shown}_{{{below}}}" if tail else shown


def _letters(word: str) -> str:
    """A word, its Greek letters as commands, and others that TeX has no letter for as text."""
    if word in GREEK:
        return rf"\{word}"
    if word == "lam":  # lambda is a word of the language
        return r"\lambda"
    if word == "ell":
        return r"\ell"
    if word.isascii():
        return word
    found = re.sub(
        r"[^\x00-\x7f]",
        lambda letter: rf"\{COMMANDS[letter[0]]} " if letter[0] in COMMANDS
        else LATIN.get(letter[0]) or rf"\text{{{letter[0]}}}",
        word,
    )  # fmt: skip
    return found.rstrip()


def size(text: str) -> str:
    """The size of a variable: `x.shape[0]` is n with the variable as its index, `X.numel()` N."""
    word, _, rest = text.partition(".")
    dimension = int(re.sub(r"\D", "", rest) or 0)
    index = f", {dimension + 1}" if dimension else ""
    return f"{'N' if rest == 'numel()' else 'n'}_{{{symbol(word)}{index}}}"


def sizes_in(text: str) -> str:
    """A size that is a number or a product of sizes."""
    shown = re.sub(r"\w+\.(?:shape\[\d+\]|numel\(\))", lambda found: size(found[0]), text)
    return shown.replace("*", " ")


MOST_COLUMNS = 10  # of amsmath's matrices, unless a document sets MaxMatrixCols


def matrix_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows of entries in parentheses."""
    body = r" \\ ".join(map(" & ".join, rows))
    columns = max(map(len, rows), default=0)
    # pmatrix stops at ten columns, with an error that does not say so.
    if columns <= MOST_COLUMNS:
        return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}"
    return rf"\left(\begin{{array}}{{{'c' * columns}}}{body}\end{{array}}\right)"


class LatexPrinter(Printer):
    """Prints expressions as LaTeX."""

    linear = ("matmul", "outer", "dot")
    whole_arrays = True  # a name is an array, not an element of one

    def make_name(self, node: Expression) -> Piece:
        if node.position >= DIFFERENTIALS:
            return rf"\mathrm{{d}}{symbol(node.data[1:])}", POWER
        return size(node.data) if is_size(node) else symbol(node.data), ATOM

    def number(self, value: Number) -> Piece:
        text, precedence = numeral(value)
        # A fraction is written with a line, so its sign stands before it and binds as a sum does.
        if "/" in text:
            over, under = text.lstrip("-").split("/")
            sign = "-" if text.startswith("-") else ""
            return rf"{sign}\frac{{{over}}}{{{under}}}", SUM if sign else FRACTION
        # 1e-5 is how programs write 10 to a power.
        if "e" in text and "inf" not in text:
            mantissa, exponent = text.split("e")
            ten = rf"10^{{{int(exponent)}}}"
            return (ten, POWER) if mantissa == "1" else (rf"{mantissa} \cdot {ten}", PRODUCT)
        named = {"inf": r"\infty", "-inf": r"-\infty", "nan": r"\mathrm{NaN}"}
        return named.get(text, text), precedence

    def make_array(self, node: Expression) -> Piece:
        rows = node.data if node.data.ndim == 2 else node.data.reshape(1, -1)
        return matrix_text([[f"{v:g}" for v in row] for row in rows.tolist()]), ATOM

    def wrapped(self, piece: Piece, least: int) -> str:
        return wrapped(piece, least)

    def make_sum(self, node: Expression) -> Piece:
        return super().make_sum(node)[0], SUM

    def fraction(self, above: list[Piece], below: list[Piece], arrays: list[bool]) -> Piece:
        if not below and len(above) == 1:
            return above[0]
        top = above[0][0] if len(above) == 1 else self.product(above, arrays) or "1"
        if not below:
            return top, PRODUCT
        bottom = below[0][0] if len(below) == 1 else self.product(below, arrays[len(above) :])
        return rf"\frac{{{top}}}{{{bottom}}}", FRACTION

    def product(self, pieces: list[Piece], arrays: list[bool]) -> str:
        """Factors side by side."""
        return product_text(pieces, arrays)

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
        # \sin^{2}(x) is how books write it; (\sin x)^2 would need brackets around every function.
        if base.op == "call" and base.data[0] in _POWERED and len(base.args) == 1:
            inner = self.of(base.args[0])[0]
            return rf"{FUNCTIONS[base.data[0]]}^{{{shown}}}\left({inner}\right)", POWER
        return f"{wrapped(own, POWER + 1)}^{{{self.each(base)}{shown}}}", POWER

    def each(self, base: Expression) -> str:
        r"""What tells the powers of a matrix's elements, `A^{\circ 2}`, from those of the matrix, A A."""
        matrix = len(base.shape) == 2 and 1 not in base.shape
        return r"\circ " if matrix and self.whole_arrays else ""

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
        inner = ", ".join(a[0] for a in args)
        return rf"{shown}{index}\left({inner}\right)", POWER if " " in shown else ATOM

    def make_call(self, node: Expression) -> Piece:
        function = node.data[0]
        args = [self.of(a) for a in node.args]
        if function in INFIX:
            precedence, least = COMPARE, COMPARE + 1
            if (
                function == "remainder"
            ):  # in parentheses beside anything: `x \bmod y + x` reads twice
                precedence, least = SUM, PRODUCT + 1
            a, b = (wrapped(x, least) for x in args)
            return rf"{a} {INFIX[function]} {b}", precedence
        if function in NOTATIONS:
            text, least, precedence = NOTATIONS[function]
            return text.format(*(wrapped(a, least) for a in args)), precedence
        if function in _SHAPES:
            return _SHAPES[function](self, args, node)
        return super().make_call(node)

    def entry(self, item: Expression) -> str:
        """An element of a matrix: a number as it is, not as a tensor."""
        while is_call(item, "tensor", "float"):
            (item,) = item.args
        return self.of(item)[0]

    def transposed(self, piece: Piece) -> str:
        """A vector or matrix transposed: `A` of `A^{\\top}`, `A^{-\\top}` of `A^{-1}`."""
        text, precedence = piece
        if precedence == POWER and text.endswith(TOP):
            return text.removesuffix(TOP)
        if precedence == POWER and text.endswith("^{-1}"):
            return text.removesuffix("^{-1}") + r"^{-\top}"
        return f"{wrapped(piece, ATOM)}{TOP}"

    def inverse(self, piece: Piece) -> Piece:
        """The inverse of a matrix."""
        text, precedence = piece
        if precedence == POWER and text.endswith(TOP):
            return text.removesuffix(TOP) + r"^{-\top}", POWER
        return f"{wrapped(piece, ATOM)}^{{-1}}", POWER

    def place(self, own: Expression, dim: int, index: int) -> str:
        """A place along a dimension: `n_{x} - 1` for the last of x."""
        if index < 0 and own.op == "name":
            word = own.data[own.position >= DIFFERENTIALS :]
            return f"{size(f'{word}.shape[{dim}]')} - {-index}"
        if index < 0 and is_call(own, "zeros") and own.args:
            return f"{self.of(own.args[dim])[0]} - {-index}"
        return str(index)

    def factor(self, node: Expression) -> str:
        """An operand of a product of matrices."""
        piece = self.operand(node)
        least = PRODUCT if is_call(node, "matmul") else PRODUCT + 1
        return wrapped(piece, ATOM if piece[0].startswith("-") else least)

    def operand(self, node: Expression) -> Piece:
        """An array that is multiplied or summed: a number that stands for all elements, times ones."""
        if not (is_call(node, "expand", "expand_as") and node.shape and not node.args[0].shape):
            return self.of(node)
        ones = r"\mathbf{1}" + rf" \mathbf{{1}}{TOP}" * (len(node.shape) == 2)
        return f"{wrapped(self.of(node.args[0]), PRODUCT)} {ones}", PRODUCT

    def call_select(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        (_, dim), (_, index) = options
        place = self.place(node.args[0], dim, index)
        base = "e" if is_call(node.args[0], "eye") else f"{{{wrapped(args[0], ATOM)}}}"
        return f"{base}_{{{': ' * dim}{place}}}", ATOM

    def call_slice(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        (_, dim), (_, start), (_, end), _step = options
        (own,) = node.args
        first = self.place(own, dim, start) if start else ""
        last = "" if end is None or end >= own.shape[dim] else self.place(own, dim, end)
        return f"{{{wrapped(args[0], ATOM)}}}_{{{': ' * dim}{first}:{last}}}", ATOM

    def call_float(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return args[0]

    def call_index(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        inner = ", ".join(a[0] for a in args[1:])
        base = "e" if is_call(node.args[0], "eye") else f"{{{wrapped(args[0], ATOM)}}}"
        return f"{base}_{{{inner}}}", ATOM

    call_clamp = Printer.between


TOP = r"^{\top}"
DIFFERENTIALS = 10**6  # the position of the names of differentials: dx, dy and so on
LETTERS = "ijklmnop"  # of dimensions
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
    if not word:
        return shown
    return word if value is True else f"{word}={shown}"


def product_text(pieces: list[Piece], arrays: list[bool]) -> str:
    r"""Factors side by side, with `\odot` between arrays, which multiply elementwise."""
    text, before = "", False
    for i, piece in enumerate(pieces):
        # x -1 would read as a difference: a factor with a sign has parentheses, but for the first.
        shown = wrapped(piece, ATOM if i and piece[0][:1] == "-" else PRODUCT + (i > 0))
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
    return self.transposed(self.operand(node))


def _matmul(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    # Matrix products associate among themselves: A B x. Vectors are columns.
    left, right = node.args
    # A vector on the left is a row in the program and a column here: x@A is A^T x, x@y is x^T y.
    if len(left.shape) > 1:
        return f"{self.factor(left)} {self.factor(right)}", PRODUCT
    if len(right.shape) > 1:
        return f"{self.transposed(self.operand(right))} {self.factor(left)}", PRODUCT
    return f"{_row(self, left)} {self.factor(right)}", PRODUCT


def _sum(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """A sum as a product with a vector of ones, or over indices if there are more than two dimensions."""
    (own,) = node.args
    ndim = len(own.shape)
    dims = axes_of(node.data[1][0][1] if node.data[1] else None, ndim)
    if not node.data[1] and ndim in (1, 2) and (norm := _norm(self, own)):
        return norm, POWER
    if ndim > 2:
        letters = LETTERS[:ndim]
        kept = "".join(k for d, k in enumerate(letters) if d not in dims)
        summed = ", ".join(letters[d] for d in dims)
        text = rf"\sum_{{{summed}}} {{{wrapped(args[0], ATOM)}}}_{{{letters}}}"
        return (rf"\left[{text}\right]_{{{kept}}}", ATOM) if kept else (text, SUM + 1)
    args = [self.operand(own)]
    text = self.factor(own) if not is_call(own, "matmul") else wrapped(args[0], PRODUCT + 1)
    if is_truth(own):
        text = rf"\left[{args[0][0]}\right]"
        args = [(text, ATOM)]
    # Of a matrix A: sum(A, 0) is A^T 1, sum(A, 1) is A 1, and sum(A) is 1^T A 1.
    if 0 in dims:
        is_row = ndim == len(dims) or ndim == len(node.shape)
        text = rf"\mathbf{{1}}^{{\top}} {text}" if is_row else self.transposed(args[0])
    if 1 in dims or (ndim > len(node.shape) and ndim > len(dims)):
        text = rf"{text} \mathbf{{1}}"
    return text, PRODUCT


def _exponential(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    r"""A power of e; exp(lgamma(u)) is `\Gamma(u)`."""
    (own,) = node.args
    if is_call(own, "lgamma"):
        return rf"\Gamma\left({self.of(own.args[0])[0]}\right)", ATOM
    return f"e^{{{self.each(own)}{args[0][0]}}}", POWER


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
        index = f"_{{{', '.join(LETTERS[d] for d in axes_of(dims, ndim))}}}"
    shown = FUNCTIONS.get(word) or rf"\operatorname{{{word.rpartition('.')[2]}}}"
    return rf"{shown}{index}\left({args[0][0]}\right)", POWER if " " in shown else ATOM


def _prod(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    letters = LETTERS[: len(node.args[0].shape)]
    if node.data[1] or not letters:
        return _along(self, args, node)
    return rf"\prod_{{{', '.join(letters)}}} {{{wrapped(args[0], ATOM)}}}_{{{letters}}}", SUM + 1


def _unit(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """An array of zeros with one part set, as that part times a unit vector."""
    (_, dim), (_, index) = node.data[1]
    ndim = len(node.shape)
    if not is_call(node.args[0], "zeros") or dim % ndim > int(ndim == 2):
        return self.call(node.data[0], args, node.data[1])
    unit = f"e_{{{self.place(node.args[0], dim % ndim, index)}}}"
    if ndim == 1:
        return rf"{wrapped(args[1], PRODUCT)}\, {unit}", PRODUCT
    if ndim > 2:
        return rf"{unit} \otimes {self.factor(node.args[1])}", PRODUCT
    if dim % ndim:
        return f"{self.factor(node.args[1])} {unit}{TOP}", PRODUCT
    return f"{unit} {self.transposed(args[1])}", PRODUCT


def _expanded(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """A row or a column that is repeated, as a product with ones; a number stands for all elements."""
    before = node.args[0].shape
    if set(before) <= {1} or before == node.shape or len(node.shape) != 2:
        return args[0]
    if before[-1] == 1:
        return rf"{self.factor(node.args[0])} \mathbf{{1}}{TOP}", PRODUCT
    if len(before) == 2:
        return rf"\mathbf{{1}} {self.factor(node.args[0])}", PRODUCT
    return rf"\mathbf{{1}} {self.transposed(args[0])}", PRODUCT


def _reshaped(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """An array in another shape; with a dimension of one element more or less it is the same.

    Vectors are columns: one made of a row, or a row made of one, is its transpose.
    """
    before = node.args[0].shape
    if [n for n in before if n != 1] == [n for n in node.shape if n != 1]:
        if _is_row(before) == _is_row(node.shape):
            return args[0]
        return self.transposed(args[0]), POWER
    sizes = r" \times ".join(sizes_in(str(n)) for n in node.shape)
    return rf"\operatorname{{reshape}}_{{{sizes}}}\left({args[0][0]}\right)", ATOM


def _is_row(shape: Sequence[int]) -> bool:
    return len(shape) == 2 and shape[0] == 1 != shape[1]


def _one_hot(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """A unit vector; of several places the function's name."""
    if place_of(node) is None:
        return rf"\operatorname{{onehot}}\left({args[0][0]}\right)", ATOM
    return f"e_{{{args[0][0]}}}", ATOM


def _solve(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    return f"{self.inverse(args[0])[0]} {wrapped(args[1], PRODUCT)}", PRODUCT


def _padded(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """A part of a vector of zeros set, as a column of the part and of zeros."""
    options = dict(node.data[1])
    if len(node.shape) != 1 or options.get("step") or not is_call(node.args[0], "zeros"):
        return self.call(node.data[0], args, node.data[1])
    zeros = [r"\mathbf{0}"]
    rows = zeros * ("start" in options) + [args[1][0]] + zeros * ("end" in options)
    return matrix_text([[row] for row in rows]), ATOM


def _where(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    rows, rest = [], node
    while is_call(rest, "where"):
        condition, own, rest = rest.args
        rows.append(rf"{self.of(own)[0]} & \text{{if }} {self.of(condition)[0]}")
    rows.append(rf"{self.of(rest)[0]} & \text{{otherwise}}")
    body = r" \\ ".join(rows)
    return rf"\begin{{cases}}{body}\end{{cases}}", SUM + 1


def _on_diagonal(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    """A matrix with another diagonal; of zeros, a diagonal matrix."""
    if is_call(node.args[0], "zeros") and not node.data[1]:
        return self.call("diag_embed", args[1:])
    return self.call(node.data[0], args, node.data[1])


def _stack(self: LatexPrinter, args: list[Piece], node: Expression) -> Piece:
    r"""A stack: a vector as a column of its elements, a matrix as its rows."""
    matrix = len(node.shape) == 2
    lists = list(map(_items, _items(node) or [])) if matrix else [[i] for i in _items(node) or []]
    if len(node.shape) > 2 or node.data[1] or not lists or None in lists:
        return self.call(node.data[0], args, node.data[1])
    return matrix_text([list(map(self.entry, row or [])) for row in lists]), ATOM


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
    placed = dict(zip(order, LETTERS, strict=False))
    inner = "".join(placed[d] for d in range(len(order)))
    return (
        rf"\left[{{{wrapped(args[0], ATOM)}}}_{{{inner}}}\right]_{{{LETTERS[: len(order)]}}}",
        ATOM,
    )


def _items(own: Expression) -> Sequence[Expression] | None:
    """The items of a list, or of a tensor made of a list."""
    if is_call(own, "[]"):
        return own.args
    if is_call(own, "zeros") and len(own.shape) == 1:
        return [zero] * own.shape[0]
    if own.op == "array" and own.data.ndim == 1:
        return list(map(number, own.data.tolist()))
    return _items(own.args[0]) if is_call(own, "stack", "tensor") else None


_SHAPES: Mapping[str, Callable[[LatexPrinter, list[Piece], Expression], Piece]] = {
    **dict.fromkeys(("matmul", "dot"), _matmul),
    "where": _where,
    "T": lambda self, args, node: (self.transposed(args[0]), POWER),
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    **dict.fromkeys("softmax log_softmax logsumexp cumsum cumprod var std".split(), _along),
    **dict.fromkeys("amax amin max min flip".split(), _along),
    **{"select_scatter": _unit, "slice_scatter": _padded, "diagonal_scatter": _on_diagonal},
    "one_hot": _one_hot,
    "linalg.solve": _solve,
    "outer": lambda self, args, node: (
        f"{self.factor(node.args[0])} {self.transposed(self.operand(node.args[1]))}",
        PRODUCT,
    ),
    "norm": _length,
    "einsum": _einsum,
    "permute": _permute,
    "stack": _stack,
    "tensor": _stack,
    "exp": _exponential,
    "linalg.inv": lambda self, args, node: self.inverse(args[0]),
    **dict.fromkeys(("expand", "expand_as"), _expanded),
    "contiguous": lambda self, args, node: args[0],
    "reshape": _reshaped,
    "full_like": lambda self, args, node: args[1],
}


def derivative_of(words: Sequence[str], of: str = "", alone: bool = False) -> str:
    r"""The left side of an equation for a derivative: `\frac{\partial f}{\partial x}`.

    of: what is differentiated, as LaTeX. alone: whether it is a function of one number, and has an upright d.
    """
    of = of or symbol(current.get().value)
    d = r"\mathrm{d}" if alone else r"\partial "
    order = f"^{{{len(words)}}}" if len(words) > 1 else ""
    powers = [(w, f"^{{{words.count(w)}}}" * (words.count(w) > 1)) for w in dict.fromkeys(words)]
    below = r"\, ".join(f"{d}{symbol(w)}{power}" for w, power in powers)
    above = f"{d.strip()}{order}{'' if alone else ' '}{of}"
    return rf"\frac{{{above}}}{{{below}}}"


__all__ = ["LatexPrinter", "derivative_of", "symbol"]

r"""Arrays in LaTeX by their elements: `\left[{x}_{j} {A}_{ij}\right]_{ij}`.

Matrix notation has no word for a vector that is repeated along a dimension, nor for arrays of more than two
dimensions. There each factor is written with the indices of its own dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradcli.formulas.algebra.array_algebra import axes_of
from gradcli.formulas.algebra.expression_text import ATOM, PRODUCT, SUM, Piece
from gradcli.formulas.algebra.expressions import Expression, broadcast, is_call, order
from gradcli.formulas.print.latex import LETTERS, LatexPrinter, product_text, wrapped
from gradcli.formulas.print.python_code import is_elementwise_function

Indices = tuple[str, ...]
ONE_PLACE = "0"  # the index of a dimension of one element; places count from 0 as in the language
DEEPEST = 60  # expressions inside each other; below, an array is written whole, with its indices


class ArrayPrinter(LatexPrinter):
    """Prints in the notation of matrices where that says everything, and by elements elsewhere."""

    def make(self, node: Expression) -> Piece:
        return by_elements(self, node) if needs_indices(node) else super().make(node)


def to_latex(expression: Expression) -> str:
    """The expression as LaTeX."""
    return ArrayPrinter().text(expression)


def needs_indices(node: Expression) -> bool:
    """Whether matrix notation would drop a dimension of a node, or the place of a broadcast operand."""
    rule = _NEED_INDICES.get(node.data[0]) if node.op == "call" else None
    if rule is not None:
        return rule(node)
    return bool(node.shape) and _is_elementwise(node) and any(
        _is_smaller(part, node.shape) for part in _operands(node)
    )  # fmt: skip


def _of_many_dimensions(node: Expression) -> bool:
    inner = node.args[0].shape
    return bool(inner) and max(len(node.shape), len(inner)) > 2


def _in_operands(node: Expression) -> bool:
    return any(needs_indices(part) for part in node.args if not is_call(part, "einsum", "sum"))


# By function, when its call needs indices.
_NEED_INDICES: dict[str, Callable[[Expression], bool]] = {
    "matmul": lambda node: any(len(part.shape) > 2 for part in node.args),
    "permute": lambda node: len(node.shape) > 2,
    **dict.fromkeys(("einsum", "sum"), _in_operands),
    **dict.fromkeys(("expand", "expand_as"), _of_many_dimensions),
    "reshape": lambda n: _of_many_dimensions(n) and _with_ones(n.args[0].shape, n.shape),
}


def by_elements(whole: LatexPrinter, node: Expression) -> Piece:
    """A node as an array of its elements, a number as sums of them; whole: prints its operands."""
    at = _letters(node.shape)
    text, precedence = _Elements(whole, set(at)).element(node, at)
    if not at:
        return text, precedence
    return rf"\left[{text}\right]_{{{''.join(at)}}}", ATOM


def over_indices(expression: Expression) -> tuple[str, str]:
    r"""(the indices, the element at them): `i` and `\sum_{j} {A}_{ij} {x}_{j}` of A@x.

    A number has no indices, and its sums and inner products are sums over some.
    """
    printer = ArrayPrinter()
    at = _letters(expression.shape)
    if at:
        return "".join(at), _Elements(printer, set(at)).element(expression, at)[0]
    for node in order([expression]):
        rule = _RULES.get(node.data[0]) if is_call(node, "sum", "matmul", "dot", "einsum") else None
        if rule is not None and not node.shape and any(part.shape for part in node.args):
            piece = rule(_Elements(printer, set()), node, ())
            if piece is not None:
                printer.pieces[node] = piece
    return "", printer.text(expression)


def _letters(shape: Sequence[int]) -> Indices:
    letters = iter(LETTERS)
    return tuple(ONE_PLACE if n == 1 else next(letters, "?") for n in shape)


def _operands(node: Expression) -> list[Expression]:
    """What a node computes with, the factors of its terms among them: they are printed with it."""
    if node.op != "sum":
        return list(node.parts)
    return [p for t in node.parts for p in (t.parts if t.op == "product" else [t])]


def _is_elementwise(node: Expression) -> bool:
    if node.op not in ("sum", "product") and not (
        node.op == "call" and (is_elementwise_function(node.data[0]) or node.data[0] == "where")
    ):
        return False
    try:
        return node.shape == broadcast(part.shape for part in node.parts)
    except ValueError:
        return False


def _is_smaller(part: Expression, shape: Sequence[int]) -> bool:
    """Whether an operand is repeated, and is not printed in the whole shape all the same."""
    if not part.shape or part.shape == shape or is_call(part, "ones", "zeros"):
        return False
    return not (len(shape) == 2 == len(part.shape) and is_call(part, "norm"))


def _with_ones(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether two shapes differ by dimensions of one element alone."""
    return [n for n in before if n != 1] == [n for n in after if n != 1]


class _Elements(LatexPrinter):
    """Prints one element of an array."""

    whole_arrays = False

    def __init__(self, whole: LatexPrinter, taken: set[str]) -> None:
        super().__init__(whole.names)
        self.whole, self.taken, self.depth = whole, taken, 0
        self.here: tuple[Indices, Sequence[int]] = (), ()  # the element being made, in its shape

    def of(self, expression: Expression) -> Piece:
        """What a printer asks for while an element is made is an element, however deep it lies in it.

        The base of `tanh(u)**2` is one operand, but it is printed as `tanh^2` of the element of u.
        """
        if expression not in self.pieces:
            at, shape = self.here
            piece = self.element(expression, _aligned(at, shape, expression.shape))
            self.pieces[expression] = piece
        return self.pieces[expression]

    def product(self, pieces: list[Piece], arrays: list[bool]) -> str:
        return product_text(pieces, [])

    def element(self, node: Expression, at: Indices) -> Piece:
        """The text of the element at these indices."""
        if not (node.shape or needs_indices(node)):
            return self.whole.of(node)
        rule = None
        if id(node) not in self.names and self.depth < DEEPEST:
            rule = _RULES.get(node.data[0]) if node.op == "call" else None
            if rule is None and _is_elementwise(node):
                rule = _Elements.computed
        self.depth += 1
        found = rule(self, node, at) if rule is not None else None
        self.depth -= 1
        return self.placed(node, at) if found is None else found

    def placed(self, node: Expression, at: Indices) -> Piece:
        """A whole array with its indices; a number has none."""
        if not node.shape:
            return self.whole.of(node)
        return f"{{{wrapped(self.whole.of(node), ATOM)}}}_{{{''.join(at)}}}", ATOM

    def computed(self, node: Expression, at: Indices) -> Piece:
        """A sum, a product or a function of the elements of operands."""
        made = {p: self.element(p, _aligned(at, node.shape, p.shape)) for p in _operands(node)}
        before = self.pieces, self.here
        self.pieces, self.here = made, (at, node.shape)
        try:
            return self.make(node)
        finally:
            self.pieces, self.here = before

    def summed(self, sizes: Sequence[int], terms: Callable[[Indices], list[Piece]]) -> Piece:
        """A sum over new indices of the products that `terms` gives for them."""
        free = iter([k for k in LETTERS if k not in self.taken])
        over = tuple(ONE_PLACE if n == 1 else next(free, "?") for n in sizes)
        self.taken |= {*over}
        text = product_text(terms(over), [])
        self.taken -= {*over} - {ONE_PLACE}
        shown = ", ".join(k for k in over if k != ONE_PLACE)
        return (rf"\sum_{{{shown}}} {text}", SUM + 1) if shown else (text, PRODUCT)


def _aligned(at: Indices, shape: Sequence[int], own: Sequence[int]) -> Indices:
    """The indices of an operand that is broadcast to a shape."""
    last = at[len(at) - len(own) :]
    sizes = shape[len(shape) - len(own) :]
    return tuple(ONE_PLACE if k == 1 != n else i for i, n, k in zip(last, sizes, own, strict=True))


def _matmul(self: _Elements, node: Expression, at: Indices) -> Piece:
    left, right = node.args
    a, b = len(left.shape), len(right.shape)
    row, column = at[-1 - (b > 1) :][:1] if a > 1 else (), at[-1:] if b > 1 else ()
    batch = at[: max(a, b, 2) - 2]
    sizes = node.shape[: len(batch)]

    def terms(over: Indices) -> list[Piece]:
        first = _aligned(batch, sizes, left.shape[: max(a - 2, 0)])
        second = _aligned(batch, sizes, right.shape[: max(b - 2, 0)])
        return [
            self.element(left, (*first, *row, *over)),
            self.element(right, (*second, *over, *column)),
        ]

    return self.summed(left.shape[-1:], terms)


def _einsum(self: _Elements, node: Expression, at: Indices) -> Piece:
    given, kept = node.data[1][0][1].split("->")
    factors = list(zip(node.args, given.split(","), strict=True))
    sizes = {k: n for own, ks in factors for k, n in zip(ks, own.shape, strict=True)}
    rest = [k for k in sizes if k not in kept]

    def terms(over: Indices) -> list[Piece]:
        places = dict(zip((*kept, *rest), at + over, strict=True))
        return [self.element(own, tuple(places[k] for k in ks)) for own, ks in factors]

    return self.summed([sizes[k] for k in rest], terms)


def _sum(self: _Elements, node: Expression, at: Indices) -> Piece:
    (inner,) = node.args
    dims = axes_of(node.data[1][0][1] if node.data[1] else None, len(inner.shape))
    stays = len(at) == len(inner.shape)
    outer = iter([i for d, i in enumerate(at) if d not in dims] if stays else at)
    kept = [None if d in dims else next(outer) for d in range(len(inner.shape))]

    def terms(over: Indices) -> list[Piece]:
        new = iter(over)
        return [self.element(inner, tuple(next(new) if i is None else i for i in kept))]

    return self.summed([inner.shape[d] for d in dims], terms)


def _permuted(self: _Elements, node: Expression, at: Indices) -> Piece:
    order = node.data[1][0][1]
    return self.element(node.args[0], tuple(at[order.index(d)] for d in range(len(at))))


def _reshaped(self: _Elements, node: Expression, at: Indices) -> Piece | None:
    inner = node.args[0]
    if not _with_ones(inner.shape, node.shape):
        return None
    rest = iter([i for i, n in zip(at, node.shape, strict=True) if n != 1])
    return self.element(inner, tuple(ONE_PLACE if n == 1 else next(rest) for n in inner.shape))


def _expanded(self: _Elements, node: Expression, at: Indices) -> Piece:
    inner = node.args[0]
    return self.element(inner, _aligned(at, node.shape, inner.shape))


def _outer(self: _Elements, node: Expression, at: Indices) -> Piece:
    pieces = [self.element(own, (i,)) for own, i in zip(node.args, at, strict=True)]
    return product_text(pieces, []), PRODUCT


_RULES: dict[str, Callable[[_Elements, Expression, Indices], Piece | None]] = {
    "matmul": _matmul,
    "einsum": _einsum,
    "sum": _sum,
    "permute": _permuted,
    "outer": _outer,
    "T": lambda self, node, at: self.element(node.args[0], at[::-1]),
    **dict.fromkeys(("reshape", "contiguous"), _reshaped),
    **dict.fromkeys(("expand", "expand_as"), _expanded),
    **dict.fromkeys(("ones", "ones_like"), lambda self, node, at: ("1", ATOM)),
    **dict.fromkeys(("zeros", "zeros_like"), lambda self, node, at: ("0", ATOM)),
}


__all__ = ["ArrayPrinter", "by_elements", "needs_indices", "over_indices", "to_latex"]

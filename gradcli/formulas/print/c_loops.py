"""A derivative as a function in C: of numbers, or with loops over indices for arrays of any size.

Without types, braces and semicolons the text is Python as well: `run_c` runs the printed characters, and
they are proved as every other format is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from gradcli.engine.system.generated_builtins import NO_BUILTINS
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import is_truth
from gradcli.formulas.algebra.array_algebra import axes_of, place_of
from gradcli.formulas.algebra.exact_numbers import Number
from gradcli.formulas.algebra.expression_text import ATOM, PRODUCT, Piece
from gradcli.formulas.algebra.expressions import Expression, broadcast, call, is_call, order
from gradcli.formulas.derive.differentiate import Derivatives
from gradcli.formulas.lift.lifting import NoExpression
from gradcli.formulas.print.c_code import (
    TAKEN,
    CPrinter,
    ascii_name,
    assembled,
    c_names,
    functions,
    no_form,
)
from gradcli.formulas.print.sharing import shared_parts, unlike
from gradcli.formulas.print.stable_forms import stable
from gradcli.formulas.print.written_out import written_out

Indices = tuple[str, ...]
Rule = Callable[["_Loops", Expression, Indices], Piece]

_SIZES, _INDICES = "nmpqrtuvwabcdefg", "ijklohxyz"
_SIZE = r"(\w+)\.(?:shape\[(\d+)\]|numel\(\))"  # how sizes are called in expressions


# How arrays become loops. A text such as A.T@(A@x - b) has no loops in it, and C has nothing else. So an
# expression is asked for one element, at indices that are names: (A@x - b)[i] is s - b[i], where s is a sum
# over j that a loop before has made. Elementwise operations write no loop, as they only pass the indices
# on; a reduction writes its loops, keeps its results in an array, and is read from there by whoever asks
# again.
class _Loops:
    """The body of a function: its lines, and the names of the arrays that they have filled."""

    def __init__(self, taken: set[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """shapes: of the variables, whose sizes get names."""
        self.shapes, self.lines = shapes, list[str]()
        self.printer = CPrinter()
        self.known: dict[Expression, str] = {}
        # Equal sizes share a name, for the formula may hold only as long as they are equal.
        numbers = dict.fromkeys(n for shape in shapes.values() for n in shape if n != 1)
        letters = [letter for letter in _SIZES if letter not in taken]
        self.sizes = dict(zip(numbers, letters, strict=False))
        self.taken = {*taken, *self.sizes.values()}
        self._indices = [i for i in _INDICES if i not in self.taken]
        self.work: list[tuple[str, str]] = []  # arrays that the function needs, and their sizes
        self.flat = False  # whether all are numbers, which the printer prints without recursion

    # -- names -------------------------------------------------------------------------------------
    def size(self, n: int) -> str:
        """The name of a size, or the number."""
        return self.sizes.get(n, str(n))

    def sizes_of(self, shape: Sequence[int]) -> str:
        """`[n][m]`."""
        return "".join(f"[{self.size(n)}]" for n in shape)

    def count(self, shape: Sequence[int]) -> str:
        """How many elements an array has: `n*m`."""
        return "*".join([self.size(n) for n in shape if n != 1] or ["1"])

    def place(self, name: str, shape: Sequence[int], at: Indices) -> str:
        """An element: arrays lie row by row in one dimension, `X[i*m + j]`, which C and C++ both have."""
        if not shape:
            return name
        text = ""
        # Horner's scheme: X[i*m + j] for two dimensions, X[(i*m + j)*p + k] for three.
        for n, index in zip(shape, at, strict=True):
            if text and n != 1:
                text = f"{_grouped(text)}*{self.size(n)}"
            if index != "0" or n != 1:
                text = index if text in ("", f"0*{self.size(n)}") else f"{text} + {index}"
        return f"{name}[{text or '0'}]"

    def array(self, name: str, shape: Sequence[int]) -> None:
        """Declare an array that the function fills: on the stack it might be too large."""
        self.work.append((name, self.count(shape)))

    def name(self, letter: str = "v") -> str:
        """A name that is not in use."""
        found = next(w for k in count(1) if (w := f"{letter}{k}") not in self.taken)
        self.taken.add(found)
        return found

    def indices(self, shape: Sequence[int], used: int = 0) -> Indices:
        """Names of indices, one a dimension, "0" where there is one element; used: so many are in use."""
        if used + len(shape) > len(self._indices):
            raise NoExpression("C is written for a few dimensions")
        letters = iter(self._indices[used:])
        return tuple("0" if n == 1 else next(letters) for n in shape)

    # -- statements --------------------------------------------------------------------------------
    def nested(self, shape: Sequence[int], indices: Indices, body: list[str]) -> list[str]:
        """Lines with loops around them."""
        for n, i in reversed([(n, i) for n, i in zip(shape, indices, strict=True) if i != "0"]):
            head = f"for (int {i} = 0; {i} < {self.size(n)}; {i}++) {{"
            body = [head, *[f"    {line}" for line in body], "}"]
        return body

    def fill(self, name: str, shape: Sequence[int], own: Expression) -> None:
        """`name[i][j] = …` for all elements."""
        at = self.indices(shape)
        text = self.element(own, _aligned(at, shape, own.shape))[0]
        self.lines += self.nested(shape, at, [f"{self.place(name, shape, at)} = {text};"])

    def kept(self, own: Expression) -> str:
        """The name of an array (or a number) that holds an expression."""
        if own not in self.known:
            at = self.indices(own.shape)
            text = self.element(own, at)[0]
            there = text.partition("[")[0]
            if there.isidentifier() and text == self.place(
                there, own.shape, at
            ):  # it is there already
                self.known[own] = there
                return there
            name, kind = self.name(), "int" if is_truth(own) else "double"
            if own.shape:
                self.array(name, own.shape)
                element = self.place(name, own.shape, at)
                self.lines += self.nested(own.shape, at, [f"{element} = {text};"])
            else:
                self.lines.append(f"{kind} {name} = {text};")
            self.known[own] = name
        return self.known[own]

    def summed(
        self,
        shape: Sequence[int],
        over: Sequence[int],
        term: Callable[[Indices, Indices], str],
        how: tuple[str, str] = ("0.0", "{0} += {1};"),
    ) -> str:
        """The name of an array of sums; term: of the indices of the array, and of those summed over.

        how: the value to start with and the step, of a sum or of another reduction.
        """
        name, total = self.name(), self.name("s")
        at = self.indices(shape)
        inner = self.indices(over, sum(i != "0" for i in at))
        text = term(at, inner)
        if not shape:
            total = name
        first, step = how
        body = [f"double {total} = {first};"]
        body += self.nested(over, inner, [step.format(total, text)])
        if shape:
            self.array(name, shape)
            body.append(f"{self.place(name, shape, at)} = {total};")
        self.lines += self.nested(shape, at, body)
        return name

    # -- elements ----------------------------------------------------------------------------------
    def element(self, own: Expression, at: Indices) -> Piece:
        """The text of one element."""
        if own in self.known:
            return self.place(self.known[own], own.shape, at), ATOM
        if self.flat:
            self.printer.names = {id(node): word for node, word in self.known.items()}
            return self.printer.piece(own)
        size = re.fullmatch(_SIZE, own.data) if own.op == "name" else None
        if size is not None:
            shape = self.shapes[size[1]]
            sizes = shape if size[2] is None else shape[int(size[2]) :][:1]
            return "*".join(["1.0", *map(self.size, sizes)]), PRODUCT  # n/m of ints would be cut
        if own.op == "array":
            return self.place(self.constant(own), own.shape, at), ATOM
        rule = _RULES.get(own.data[0]) if own.op == "call" else None
        if rule is not None:
            return rule(self, own, at)
        if not _is_elementwise(own):
            raise no_form(own.data[0])
        # The printer of a sum looks into its terms that are products.
        terms = [
            term
            for part in own.parts
            for term in (
                part.parts
                if own.op == "sum" and part.op == "product" and part not in self.known
                else [part]
            )
        ]
        for term in terms:
            if term.shape != own.shape:
                self.cheap(term)
        pieces = {t: self.element(t, _aligned(at, own.shape, t.shape)) for t in terms}
        self.printer.names = {id(t): piece[0] for t, piece in pieces.items() if t in self.known}
        # The printer knows precedences; it is given the texts of the operands, which it could not index.
        self.printer.pieces = pieces
        found = self.printer.make(own)
        self.printer.names, self.printer.pieces = {}, {}
        return found

    def cheap(self, own: Expression) -> Expression:
        """The expression, its elements kept in an array unless they are there or cost nothing."""
        # Read inside of a loop, an expression would be computed again at every turn.
        if own.op not in ("name", "number", "array") and not is_call(own, *_FREE):
            self.kept(own)
        elif is_call(own, "T"):
            self.cheap(own.args[0])
        return own

    def constant(self, own: Expression) -> str:
        """The name of a constant array."""
        name = self.known[own] = self.name("c")
        values = np.asarray(own.data, dtype=float).ravel().tolist()
        listed = str(values).replace("[", "{").replace("]", "}")
        if "inf" in listed or "nan" in listed:
            raise NoExpression("C has no form for this array")
        self.lines.append(f"static const double {name}[{len(values)}] = {listed};")
        return name

    def allocated(self) -> list[str]:
        """The lines that get memory for all arrays at once."""
        if not self.work:
            return []
        # One malloc, so that there is one thing to check and one to free; + 1, as malloc(0) may give NULL.
        total = " + ".join(f"(size_t){number}" for _, number in self.work)
        lines = [
            f"double *work = (double *)malloc(({total} + 1)*sizeof(double));",
            "if (work == NULL) return NAN;",
        ]
        before = "work"
        for name, number in self.work:
            lines.append(f"double *{name} = {before};")
            before = f"{name} + (size_t){number}"
        return lines


def _grouped(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def _is_elementwise(own: Expression) -> bool:
    try:
        return own.shape == broadcast(part.shape for part in own.parts)
    except ValueError:  # of operands whose shapes do not go together, as those of `einsum`
        return False


def _aligned(at: Indices, shape: Sequence[int], own: Sequence[int]) -> Indices:
    """The indices of an operand that is broadcast to a shape."""
    last = at[len(at) - len(own) :]
    sizes = shape[len(shape) - len(own) :]
    return tuple("0" if k == 1 != n else i for i, n, k in zip(last, sizes, own, strict=True))


# -- what is no function of elements --------------------------------------------------------------
def _options(own: Expression) -> tuple[Any, bool]:
    """(the dimensions, whether they stay) of a reduction."""
    given = [v for k, v in own.data[1] if k in ("", "dim")]
    keeps = dict(own.data[1]).get("keepdim", False) or (len(given) > 1 and given[1])
    return (given[0] if given else None), bool(keeps)


def _of_axes(whole: Indices, axes: Sequence[int]) -> Indices:
    return tuple(i for d, i in enumerate(whole) if d not in axes)


def _parts(loops: _Loops, own: Expression) -> tuple[Expression, tuple[int, ...], bool]:
    """(the operand, the dimensions, whether they stay) of a reduction."""
    (inner,) = own.args
    dim, keeps = _options(own)
    return inner, axes_of(dim, len(inner.shape)), keeps


def _along(word: str, inner: Expression, axes: Sequence[int], keeps: bool = True) -> Expression:
    """A reduction whose dimensions stay; a number if it is over all."""
    if len(axes) == len(inner.shape):
        return call(word, [inner], ())
    kept = [1 if d in axes else n for d, n in enumerate(inner.shape) if keeps or d not in axes]
    dim = axes[0] if len(axes) == 1 else tuple(axes)
    return call(word, [inner], tuple(kept), [("", dim), ("", True)][: 1 + keeps])


def _reduction(first: str, step: str, helper: str = "") -> Rule:
    """Sums along dimensions, or another reduction: see `summed`. helper: a function that the step calls."""

    def rule(loops: _Loops, own: Expression, at: Indices) -> Piece:
        if helper:
            loops.printer.helpers[helper] = None
        inner, axes, keeps = _parts(loops, own)

        def text(outer: Indices, summed: Indices) -> str:
            rest, along = iter(_of_axes(outer, axes) if keeps else outer), iter(summed)
            place = tuple(next(along if d in axes else rest) for d in range(len(inner.shape)))
            return loops.element(inner, place)[0]

        over = [inner.shape[d] for d in axes]
        loops.known[own] = loops.summed(own.shape, over, text, (first, step))
        return loops.element(own, at)

    return rule


def _mean(loops: _Loops, own: Expression, at: Indices) -> Piece:
    inner, axes, keeps = _parts(loops, own)
    total = _along("sum", inner, axes, keeps)
    sizes = "*".join(loops.size(inner.shape[d]) for d in axes)
    text = loops.element(total, _aligned(at, own.shape, total.shape))[0]
    return f"{text}/({sizes or 1})" if len(axes) != 1 else f"{text}/{sizes}", PRODUCT


def _squares(loops: _Loops, own: Expression, at: Indices, less: Expression) -> Piece:
    """An element of the sums of squares of what differs from an expression."""
    inner, axes, keeps = _parts(loops, own)
    loops.cheap(inner)
    square = alg.product([(alg.add(inner, alg.negate(less)), Number.of(2))])
    total = _along("sum", square, axes, keeps)
    return loops.element(total, _aligned(at, own.shape, total.shape))


def _variance(loops: _Loops, own: Expression, at: Indices) -> Piece:
    inner, axes, _ = _parts(loops, own)
    sizes = "*".join(loops.size(inner.shape[d]) for d in axes) or "1"
    correction = dict(own.data[1]).get("correction", 1)
    text = _squares(loops, own, at, _along("mean", inner, axes))[0]
    return f"{text}/({sizes} - {float(correction)})", PRODUCT


def _deviation(loops: _Loops, own: Expression, at: Indices) -> Piece:
    return f"sqrt({_variance(loops, own, at)[0]})", ATOM


def _norm(loops: _Loops, own: Expression, at: Indices) -> Piece:
    if any(k not in ("dim", "keepdim") for k, _ in own.data[1]):
        raise NoExpression("C has no form for this norm")
    return f"sqrt({_squares(loops, own, at, alg.zero)[0]})", ATOM


def _contracted(loops: _Loops, own: Expression, at: Indices, places: str) -> Piece:
    """An element of sums of products; places: as those of einsum."""
    given, _, kept = places.partition("->")
    factors = list(zip(map(loops.cheap, own.args), given.split(","), strict=True))
    dims = [pair for factor, ks in factors for pair in zip(ks, factor.shape, strict=True)]
    sizes = dict(dims)
    # A dimension that is broadcast to another one has no loop of its own.
    if any(sizes[k] != n for k, n in dims):
        raise NoExpression("C has no form for products that repeat a factor")
    over = [k for k in sizes if k not in kept]

    def text(outer: Indices, summed: Indices) -> str:
        place = dict(zip((*kept, *over), outer + summed, strict=True))
        pieces = [loops.element(factor, tuple(place[k] for k in ks)) for factor, ks in factors]
        return "*".join(loops.printer.factors(pieces)) if pieces[1:] else pieces[0][0]

    if not over:
        return text(at, ()), PRODUCT
    loops.known[own] = loops.summed(own.shape, [sizes[k] for k in over], text)
    return loops.element(own, at)


def _einsum(loops: _Loops, own: Expression, at: Indices) -> Piece:
    return _contracted(loops, own, at, own.data[1][0][1])


def _matmul(loops: _Loops, own: Expression, at: Indices) -> Piece:
    a, b = (len(factor.shape) for factor in own.args)
    batch = "bcdefgh"[: max(a, b, 2) - 2]
    left, right = "i" * (a > 1), "j" * (b > 1)
    first, second = (batch[len(batch) - max(n - 2, 0) :] for n in (a, b))
    return _contracted(loops, own, at, f"{first}{left}k,{second}k{right}->{batch}{left}{right}")


def _diagonal(loops: _Loops, own: Expression, at: Indices) -> Piece:
    (inner,) = own.args
    if own.data[1]:
        raise NoExpression("C has no form for other diagonals")
    if len(inner.shape) == 2:
        return loops.element(inner, (at[0], at[0]))
    loops.cheap(inner)
    return _where(loops, f"{at[0]} == {at[1]}", loops.element(inner, at[:1])[0])


def _where(loops: _Loops, condition: str, text: str, rest: str = "0.0") -> Piece:
    loops.printer.helpers["where"] = None
    return f"where({condition}, {text}, {rest})", ATOM


def _written(loops: _Loops, own: Expression, at: Indices) -> Piece:
    """An array with a part written into it: a row, a column, its diagonal."""
    base, part = own.args
    place: Indices
    shape: Sequence[int]
    if own.data[0] == "diagonal_scatter" and not own.data[1] and len(own.shape) == 2:
        least = int(own.shape[1] < own.shape[0])  # its index stays within the diagonal
        condition, place, shape = f"{at[0]} == {at[1]}", (at[least],), (own.shape[least],)
    elif own.data[0] == "select_scatter":
        (_, dim), (_, index) = own.data[1]
        dim %= len(own.shape)
        condition = f"{at[dim]} == {index % own.shape[dim]}"
        place = _of_axes(at, (dim,))
        shape = own.shape[:dim] + own.shape[dim + 1 :]
    else:
        raise no_form(own.data[0])
    loops.cheap(part)
    text = loops.element(part, _aligned(place, shape, part.shape))[0]
    rest = loops.element(base, _aligned(at, own.shape, base.shape))[0]
    return _where(loops, condition, text, rest)


def _one_hot(loops: _Loops, own: Expression, at: Indices) -> Piece:
    place = place_of(own)
    if not isinstance(place, Expression):
        raise NoExpression("C has no form for one_hot of an array")
    return _where(loops, f"{at[0]} == {loops.element(place, ())[0]}", "1.0")


def _index(loops: _Loops, own: Expression, at: Indices) -> Piece:
    inner, *places = own.args
    if any(place.op != "name" or place.shape for place in places):
        raise NoExpression("C has no form for this index")
    return loops.element(inner, (*(loops.element(p, ())[0] for p in places), *at))


def _select(loops: _Loops, own: Expression, at: Indices) -> Piece:
    (_, dim), (_, place) = own.data[1]
    (inner,) = own.args
    if not inner.shape or (inner.op == "call" and inner.data[0] not in _RULES):
        raise NoExpression("C has no form for parts of several results")
    dim, place = dim % len(inner.shape), place % inner.shape[dim % len(inner.shape)]
    return loops.element(inner, (*at[:dim], str(place), *at[dim:]))


def _permuted(loops: _Loops, own: Expression, at: Indices) -> Piece:
    order = own.data[1][0][1]
    return loops.element(own.args[0], tuple(at[order.index(d)] for d in range(len(at))))


def _sliced(loops: _Loops, own: Expression, at: Indices) -> Piece:
    (_, dim), (_, start), _, (_, step) = own.data[1]
    (inner,) = own.args
    dim, start = dim % len(at), (start or 0) % inner.shape[dim]
    place = at[dim] if step == 1 else f"{at[dim]}*{step}"
    place += f" + {start}" if start else ""
    return loops.element(inner, (*at[:dim], place, *at[dim + 1 :]))


def _reshape(loops: _Loops, own: Expression, at: Indices) -> Piece:
    (inner,) = own.args
    if [n for n in inner.shape if n != 1] != [n for n in own.shape if n != 1]:
        raise NoExpression("C has no form for this reshape")
    rest = iter([i for i, n in zip(at, own.shape, strict=True) if n != 1])
    return loops.element(inner, tuple("0" if n == 1 else next(rest) for n in inner.shape))


def _expanded(loops: _Loops, own: Expression, at: Indices) -> Piece:
    inner = own.args[0]
    return loops.element(inner, _aligned(at, own.shape, inner.shape))


def _filled(loops: _Loops, own: Expression, at: Indices) -> Piece:
    loops.cheap(own.args[1])
    return loops.element(own.args[1], ())


def _log_of_sum(inner: Expression, axes: Sequence[int]) -> Expression:
    """log(sum(exp(x))), the largest taken out."""
    # exp(x) of x = 800 is inf; less the largest element, the largest exponential is 1.
    most = _along("amax", inner, axes)
    total = _along("sum", alg.function("exp", alg.add(inner, alg.negate(most))), axes)
    return alg.add(most, alg.function("log", total))


def _log_sum(loops: _Loops, own: Expression, at: Indices) -> Piece:
    inner, axes, keeps = _parts(loops, own)
    loops.cheap(inner)
    found = _log_of_sum(inner, axes)
    if keeps or not found.shape:
        return loops.element(found, at if found.shape else ())
    rest = iter(at)
    return loops.element(found, tuple("0" if n == 1 else next(rest) for n in found.shape))


def _shares(function: str) -> Rule:
    def rule(loops: _Loops, own: Expression, at: Indices) -> Piece:
        inner, axes, _ = _parts(loops, own)
        loops.cheap(inner)
        logarithm = alg.add(inner, alg.negate(_log_of_sum(inner, axes)))
        return loops.element(alg.function(function, logarithm) if function else logarithm, at)

    return rule


_RULES: dict[str, Rule] = {
    "sum": _reduction("0.0", "{0} += {1};"),
    **{"mean": _mean, "norm": _norm, "einsum": _einsum},
    **{"var": _variance, "std": _deviation, "permute": _permuted, "slice": _sliced},
    **dict.fromkeys(
        ("amax", "max"), _reduction("-INFINITY", "{0} = maximum({0}, {1});", "maximum")
    ),
    **dict.fromkeys(("amin", "min"), _reduction("INFINITY", "{0} = minimum({0}, {1});", "minimum")),
    "prod": _reduction("1.0", "{0} *= {1};"),
    "outer": lambda loops, own, at: _contracted(loops, own, at, "i,j->ij"),
    "trace": lambda loops, own, at: _contracted(loops, own, at, "ii->"),
    **dict.fromkeys(("matmul", "dot"), _matmul),
    **dict.fromkeys(("diag", "diag_embed", "diagonal"), _diagonal),
    **dict.fromkeys(("expand", "expand_as"), _expanded),
    **dict.fromkeys(("select_scatter", "diagonal_scatter"), _written),
    **{
        "index": _index,
        "select": _select,
        "reshape": _reshape,
        "full_like": _filled,
        "logsumexp": _log_sum,
    },
    **{"softmax": _shares("exp"), "log_softmax": _shares(""), "one_hot": _one_hot},
    "T": lambda loops, own, at: loops.element(own.args[0], at[::-1]),
    "eye": lambda loops, own, at: _where(loops, f"{at[0]} == {at[1]}", "1.0"),
    **dict.fromkeys(("ones", "ones_like"), lambda loops, own, at: ("1.0", ATOM)),
    **dict.fromkeys(("zeros", "zeros_like"), lambda loops, own, at: ("0.0", ATOM)),
}
_FREE = ("T", "eye", "ones", "zeros", "ones_like", "zeros_like", "one_hot", "select")


def to_c(found: Derivatives) -> str:
    """A function that returns the value and writes the derivatives: those by numbers alone into one array.

    Raises NoExpression where C has no form for a function.
    """
    _check(found)
    roots = stable([found.value, *found.by.values()])
    roots = [written_out(r, CPrinter()) for r in roots]
    word = found.kind.lower()
    names = c_names(found.variables)
    short = "grad" if word in ("gradient", "derivative") else word
    results: list[str] = []
    for key in found.by:  # by x and by x_, of x[0] and of x_0
        result = f"{ascii_name(key).strip('_')}_{short}"
        results.append(unlike(result, {*names.values(), *results}))
    shapes = {n: np.shape(v) for n, v in found.variables.items()}
    read = [node for node in order(roots) if node.op == "name" and node.data in names]
    shapes |= {node.data: node.shape for node in read}  # derived in other sizes, perhaps
    in_one = not any(shapes.values())
    loops = _Loops({*names.values(), *([] if in_one else results), *TAKEN}, shapes)
    loops.flat = not any(node.shape for node in order(roots))
    whole = {n for n, v in found.variables.items() if np.asarray(v).dtype.kind in "iu"}
    parameters = []
    for n, s in shapes.items():
        kind = "int" if n in whole and not in_one else "double"
        array = _declared(f"const double {names[n]}", loops.sizes_of(s), len(s))
        parameters.append(array if s else f"{kind} {names[n]}")
    loops.known |= {node: names[node.data] for node in read}
    for _, part in shared_parts(roots, taken=loops.taken):
        if not is_call(part, "[]", "()", ":", "float", "tensor"):
            loops.kept(part)
    outs = [f"double {word}[{len(results)}]"] if in_one else []
    for k, (key, name, root) in enumerate(zip(found.by, results, roots[1:], strict=True)):
        shape = shapes[key] if found.kind == "gradient" else root.shape
        if shape:
            outs.append(_declared(f"double {name}", loops.sizes_of(shape), len(shape)))
            loops.fill(name, shape, root)
        else:
            outs += [] if in_one else [f"double *{name}"]
            place = f"{word}[{k}]" if in_one else f"*{name}"
            loops.lines.append(f"{place} = {loops.element(root, ())[0]};")
    value = loops.element(roots[0], ())[0]
    sizes = [f"int {letter}" for letter in loops.sizes.values()]
    signature = [*sizes, *parameters, *outs]
    lines = [*loops.allocated(), *loops.lines]
    if loops.work:
        lines += [f"double value = {value};", "free(work);"]
        value = "value"
    # A parameter that is not used is a warning of the compiler, which `(void)x;` answers.
    words = set(re.findall(r"\w+", "\n".join([*lines, value])))
    given = [re.sub(r"/\*.*|\[\]", "", one).split()[-1].lstrip("*") for one in signature]
    given = [word.partition("[")[0] for word in given]  # `gradient[2]` would be one past its end
    lines = [f"(void){word};" for word in given if word not in words] + lines
    return assembled(found, signature, lines, value, loops.printer.helpers)


def _declared(start: str, sizes: str, ndim: int) -> str:
    """A parameter that is an array, with its shape as a comment: `const double *X /* [n][m] */`."""
    if ndim == 1:
        return f"{start}[] /* {sizes} */"
    kind, _, name = start.rpartition(" ")
    return f"{kind} *{name} /* {sizes} */"


_ARRAYS = {1: "a vector", 2: "a matrix"}  # whose sizes nobody has given, perhaps


def _check(found: Derivatives) -> None:
    """Raise NoExpression for what is no number's derivatives."""
    if found.kind == "value":
        raise NoExpression("C is written for derivatives: a value goes with --format python")
    if found.shape:
        raise NoExpression(
            "C is written for a number's derivatives, and the value is "
            f"{_ARRAYS.get(len(found.shape), 'an array')}: numpy, torch and jax are for arrays"
        )


def run_c(code: str, values: Sequence[Any]) -> Any:
    """(value, gradients): run the text of a printed function on these numbers and arrays."""
    head, _, body = code.rpartition("\n{\n")
    given = head.rpartition("(")[2].rstrip(")").split(", ")
    named = set(re.findall(r"\[(\w+)\]", " ".join(given)))
    # The text is proved by running it as it stands. There may be no compiler, so its lines are read as
    # Python: what is written is a small part of C, all of which has a line in Python.
    given = [p for p in given if not (p.startswith("int ") and p[4:] in named)]  # but sizes
    names = [re.sub(r"^(const )?(double|int) \*?(\w+).*", r"\3", one) for one in given]
    outs = dict(zip(names[len(values) :], given[len(values) :], strict=True))
    sizes: dict[str, int] = {}
    for parameter, value in zip(given, values, strict=False):
        for size, n in zip(re.findall(r"\[(\w+)\]", parameter), np.shape(value), strict=True):
            if sizes.setdefault(size, n) != n:
                raise ValueError(f"{size} is {sizes[size]} and {n}")
    shapes = {name: _shape(one, sizes) for name, one in outs.items()}
    python = [f"def run({', '.join(names)}):"]
    python += filter(None, map(_in_python, body.splitlines()))
    space = {**functions(), **sizes}
    space |= {
        "__builtins__": NO_BUILTINS,
        "_range_": range,
        "_zeros_": np.zeros,
        "_array_": np.array,
    }
    space["where"] = lambda condition, a, b: a if condition else b
    exec("\n".join(python), space)
    arguments = []
    for v, one in zip(values, given, strict=False):
        number = v if one.startswith("int ") or np.ndim(v) else float(v)
        arguments.append(np.asarray(v, float).ravel() if np.ndim(v) else number)
    results = {name: np.zeros(shape or (1,)) for name, shape in shapes.items()}
    with np.errstate(all="ignore"):
        value = space["run"](*arguments, *(r.reshape(-1) for r in results.values()))
    by: Any = tuple(r if shapes[name] else r[0] for name, r in results.items())
    if not any(map(np.ndim, values)):
        (by,) = by
    return value, by if len(by) > 1 else by[0]


def _shape(declared: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """(2, 3) of `double *X /* [n][3] */`; () of a pointer to one number."""
    return tuple(sizes[n] if n in sizes else int(n) for n in re.findall(r"\[(\w+)\]", declared))


def _in_python(line: str) -> str:
    """A line of C in Python; '' for a brace, and for what gives memory back."""
    step = line[: len(line) - len(line.lstrip())]
    text = line.strip()
    if text in ("}", "free(work);") or text.startswith(("(void)", "if (work")):
        return ""
    if found := re.fullmatch(r"for \(int (\w+) = 0; \w+ < (\w+); \w+\+\+\) \{", text):
        return f"{step}for {found[1]} in _range_({found[2]}):"
    text = re.sub(r"^\*(\w+)", r"\1[0]", text.rstrip(";").replace("(size_t)", ""))
    if found := re.fullmatch(r"static const double (\w+).* = \{(.*)\}", text):
        return f"{step}{found[1]} = _array_([{found[2]}])"
    if found := re.fullmatch(r"double \*work = \(double \*\)malloc\(\((.*)\)\*sizeof.*", text):
        return f"{step}work = _zeros_({found[1]})"
    if found := re.fullmatch(r"double \*(\w+) = (\w+)(?: \+ (.*))?", text):
        return f"{step}{found[1]} = {found[2]}[{found[3] or 0}:]"
    return step + re.sub(r"^(double|int) ", "", text)


__all__ = ["run_c", "to_c"]

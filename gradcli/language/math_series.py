r"""Index notation: `\sum_j A_{ij} x_j` as `A@x`.

An element `x_i` is x, whose first dimension is i. Operations align dimensions by their indices, sums take
those away that they bind, and what is left are the dimensions of the result, in the order of the alphabet,
as in NumPy's einsum.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradcli.language.foreign_names import bare
from gradcli.language.located_errors import LanguageError
from gradcli.language.math_indices import DELTAS, EPSILONS, Axis, Index, subscripts
from gradcli.language.math_symbols import NUMBERS
from gradcli.language.math_tree import Binder, Node, nodes
from gradcli.language.math_values import (
    ATOM,
    PRODUCT,
    SUM,
    Value,
    aligned,
    contracted,
    multiplied,
    reduced,
    transposed,
    turned,
    union,
)

if TYPE_CHECKING:
    from gradcli.language.math_writer import Writer
    from gradcli.language.notation import Token

_FLIPPED = {">": "<", ">=": "<="}
_LEVI_CIVITA = (
    "tensor([[[0., 0., 0.], [0., 0., 1.], [0., -1., 0.]], [[0., 0., -1.], [0., 0., 0.], [1., 0., 0.]], "
    "[[0., 1., 0.], [-1., 0., 0.], [0., 0., 0.]]])"
)
_PRODUCTS = frozenset(("", "*", "·"))
_SMOOTH = frozenset("sin cos exp tanh sigmoid atan erf cosh sinh".split())  # everywhere


# How index notation becomes arrays, on an example: `\sum_j A_{ij} x_j`. The element A_{ij} is Value("A",
# axes i, j), x_j is Value("x", axes j): arrays whose dimensions have the names of indices. Their product
# has the axes i and j, the sum takes j away. Before the product is written element by element,
# `contracted` looks whether the sum over j is one of matrices: A and x share j alone, so it is A@x, with
# axis i. In `\sum_i (x_{i+1} - x_i)^2` nothing is multiplied, and the elements are slices: sum((x[1:] -
# x[:-1])**2).
# -- elements --------------------------------------------------------------------------------------
def element(writer: Writer, node: Node) -> Value | None:
    """The value of a name with indices; None where they are part of the name."""
    found = subscripts(node)
    if not found or (
        node.text and (node.text in writer.own or writer.known(node.text) is not None)
    ):
        return None
    letters = {i.letter for i in found if i.letter}
    tensors, known = writer.indices.tensors, writer.known(node.base)
    if known is not None and known.each and letters and node.base in writer.own:
        if letters & writer.scope.keys():
            raise writer.error(
                f"{node.base} is a column, of which each row has one number", node.token
            )
        return Value(node.base)
    if not letters:
        digits = node.parts[0].text if len(node.parts) == 1 else ""
        if known is not None and len(digits) == len(known.shape) > 1:  # A_{12}
            found = tuple(Index("", int(digit)) for digit in digits)
        if known is None or not known.shape or node.base not in writer.own:
            return None if node.base not in tensors else _at(writer, node, found)
        return _at(writer, node, found)
    if node.base not in tensors or not letters <= writer.indices.letters:
        return None
    if node.base == "pi" and "pi" not in writer.own:
        index = ", ".join(sorted(letters))
        raise writer.asks(f"π is the number here, and π_{index} has an index", node.token,
                          f"write another letter, as w_{index}, or say its value: --pi VALUE")  # fmt: skip
    ones = {x for x in letters if _is_one(writer, x)}
    if known is None and node.base not in writer.own:
        if node.base in DELTAS and len(found) == 2:
            if len(ones) == 1 < len(letters):  # \\delta_{kc} of one c
                return _delta_of_one(writer, found, node, *ones)
            return _delta(writer, found, node)
        if node.base in EPSILONS and len(found) == 3:
            return _permuted(Value(_LEVI_CIVITA), [i.letter for i in found])
    value = _at(writer, node, found)
    for letter in sorted(ones):
        value = _one_of(writer, node, value, letter)
    twice = sorted(
        x for x in letters
        if writer.einstein and [i.letter for i in found].count(x) > 1
        and x not in writer.scope and x not in writer.free
    )  # fmt: skip
    if not twice:
        return value
    writer.say(f"{', '.join(twice)} {'is' if len(twice) == 1 else 'are'} summed")
    if len(found) == 2 and not value.rank:
        return Value(f"trace({node.base})")
    return reduced("sum", value, twice)


def _is_one(writer: Writer, letter: str) -> bool:
    r"""Whether an index is that of one element: the c of `-\log \frac{e^{z_c}}{\sum_j e^{z_j}}`, a number.

    Nothing binds it, no left side has it, and the value of the text is to be a number.
    """
    bound = letter in writer.scope or letter in writer.free
    if letter in writer.said_ones:
        return not bound
    return writer.one != "" and not writer.einstein and not bound and letter in writer.open_letters


def _delta_of_one(writer: Writer, found: tuple[Index, ...], node: Node, letter: str) -> Value:
    r"""`\delta_{kc}` of one c: the unit vector of c."""
    if writer.one != "place":
        other = tuple(i.letter for i in found if i.letter != letter)
        return Value(unit(writer, letter), ATOM, 0, False, other)
    return _one_of(writer, node, _delta(writer, found, node), letter)


def unit(writer: Writer, letter: str) -> str:
    """The unit vector of an element."""
    name = f"e_{letter}"
    writer.singled.add(letter)
    writer.say(
        f"{name} is the unit vector of {letter}, as 0,1,0 of the second; or say --{letter} 2"
    )
    return name


def _one_of(writer: Writer, node: Node, value: Value, letter: str) -> Value:
    """One element of a value, along an index: by its number, or by the product with a unit vector."""
    left = tuple(axis for axis in value.axes if axis != letter)
    known = writer.known(letter)
    if known is not None and known.number is not None:
        place = known.number - writer.indices.first
        slots = ", ".join(str(place) if axis == letter else ":" for axis in value.axes)
        writer.say(f"element {letter} = {known.number}, counted from {writer.indices.first}")
        text = f"{value.at(ATOM)}[{slots}]" if place >= 0 else ""
        if not text:
            raise writer.error(f"{letter} is the number of an element, from 1 on", node.token)
        return value._replace(text=text, level=ATOM, axes=left)
    if writer.one == "place":
        writer.singled.add(letter)
        slots = ", ".join(letter if axis == letter else ":" for axis in value.axes)
        return value._replace(text=f"{value.at(ATOM)}[{slots}]", level=ATOM, axes=left)
    name = unit(writer, letter)
    if value.axes[0] == letter:
        return value._replace(text=f"{name}@{value.at(3)}", level=PRODUCT, axes=left)
    if len(value.axes) == 2 and not value.rank:
        return value._replace(text=f"{value.at(PRODUCT)}@{name}", level=PRODUCT, axes=left)
    return contracted([Value(name, ATOM, 0, False, (letter,)), value], (letter,))


def _at(writer: Writer, node: Node, found: tuple[Index, ...]) -> Value:
    """Elements of an array."""
    known = writer.known(node.base)
    if known is not None and len(known.shape) < len(found):
        raise writer.error(
            f"{node.base} has {len(known.shape)} dimensions, and here {len(found)} indices",
            node.token, kind="shape",
        )  # fmt: skip
    rank = len(known.shape) - len(found) if known is not None else _own_rank(writer, node)
    sizes = tuple(map(str, known.shape[len(found) :])) if known is not None else ()
    axes = [writer.scope.get(i.letter) for i in found]
    # Three ways to take elements, the simplest that does: the whole array, a slice (`x[1:]` for x_{i+1}),
    # or, where the pairs of a sum say which elements, an array of places.
    if any(axis is not None and axis.taken for axis in axes):
        value = _taken_from(writer, node.base, found, node)
    else:
        parts = [_span(writer, node, i, k) for k, i in enumerate(found)]
        while parts and parts[-1] == ":":
            parts.pop()
        text = f"{node.base}[{', '.join(parts)}]" if parts else node.base
        if parts and not any(i.letter for i in found):
            writer.say(f"{node.text or node.base} is {text}")
        value = _permuted(Value(text), [i.letter for i in found if i.letter], rank)
    return value._replace(rank=rank, sizes=sizes)


def _own_rank(writer: Writer, node: Node) -> int:
    """1 where x_i is a vector, a row of x, because the text has it transposed or in a norm; of an x that the
    text computes, what its rank leaves."""
    made = writer.assigned.get(node.base)
    if made is not None and made.rank and not made.axes:
        return max(made.rank - len(subscripts(node)), 0)
    if writer.vectors is None or not node.text or node.text not in writer.vectors:
        return 0
    writer.say(f"{node.text} is a vector, a row of the matrix {node.base}")
    writer.matrices.add(node.base)
    return 1


def _span(writer: Writer, node: Node, index: Index, dim: int) -> str:
    """What stands between brackets for one index of a name."""
    known = writer.known(node.base)
    size = known.shape[dim] if known is not None else ""
    exact = None if node.base in writer.own else writer.indices.exact.get((node.base, dim))
    return _stretch(writer, node.token, index, node.base, size, exact)


def _stretch(
    writer: Writer,
    token: Token,
    index: Index,
    what: str,
    size: int | str = "",
    exact: int | None = None,
) -> str:
    """What stands between brackets for one index. what: has the elements. size: of them, where it is known.
    exact: the size that the limits of the sums say."""
    first = writer.indices.first
    if not index.letter:
        if index.offset < first:
            raise writer.error(f"the first element of {what} has number {first}", token)
        return str(index.offset - first)
    axis = writer.scope.get(index.letter)
    if axis is None:
        if index.offset:
            raise writer.error(f"nothing binds {index.letter} here", token, "as \\sum_i does")
        return ":"
    low = first if axis.low is None else axis.low
    start = low - first + index.offset
    if start < 0:
        raise writer.error(f"the first element of {what} has number {first}", token)
    begin = str(start) if start else ""
    if axis.high is not None:
        stop = axis.high - first + index.offset + 1
        if isinstance(size, int) and stop > size:
            raise writer.error(
                f"{what} has no element {axis.high + index.offset}", token, kind="shape"
            )
        if exact == stop:
            writer.say(f"{what} has {stop} elements")
            size = stop
        end = "" if stop == size else str(stop)
    else:
        past = axis.offset + index.offset
        end = str(past) if past else ""
    return f"{begin}:{end}"


def element_of(writer: Writer, node: Node, inner: Value) -> Value:
    r"""`(X w - y)_i`: the elements of a value that is no name, which has a dimension for each letter."""
    text, named = inner.at(ATOM), bare(inner.text)
    if re.fullmatch(r"[\w.]+", named):
        text, inner = named, inner.like(named, ATOM)
    for k, letter in enumerate(node.text):  # how far \sum_{i=1}^n goes
        along = writer.scope.get(letter)
        if along is not None and along.symbol:
            known = inner.sizes[k] if len(inner.sizes) == len(node.text) else ""
            whole = f"{text}.shape[{k}]" if k else f"len({named})"
            size = known if re.match(r"[^\W\d]\w*[.(]", known) else whole
            writer.tie(along.symbol, f"{size}{_moved_by(-along.extra)}")
    axes = [writer.scope.get(letter) for letter in node.text]
    letters = [*inner.axes, *node.text]
    if any(axis is not None and axis.taken for axis in axes):
        if inner.axes:
            raise writer.error("this sum over a part of the elements is not supported", node.token)
        return _taken_from(writer, text, [Index(letter) for letter in node.text], node)
    sizes = inner.sizes if len(inner.sizes) == len(axes) else ("",) * len(axes)
    parts = [":"] * len(inner.axes) + [
        _stretch(writer, node.token, Index(letter), named, int(size) if size.isdigit() else "")
        for letter, size in zip(node.text, sizes, strict=True)
    ]
    while parts and parts[-1] == ":":
        parts.pop()
    if parts:
        return _permuted(Value(f"{text}[{', '.join(parts)}]"), letters)
    if letters == sorted(set(letters)):
        return inner._replace(rank=0, row=False, axes=tuple(letters), sizes=())
    return _permuted(Value(text), letters)


def _moved_by(past: int) -> str:
    """` + 2` of what is added to an index or a length; empty for 0."""
    if not past:
        return ""
    return f" {'+' if past > 0 else '-'} {abs(past)}"


def _permuted(value: Value, letters: list[str], rank: int = 0) -> Value:
    """A value with dimensions of these letters, sorted; of a letter that stands twice, the diagonal."""
    text = value.text
    # A_{ii} has one index: the diagonal, whose dimension NumPy and torch put last. The letters move with
    # it, and are sorted only at the end.
    while len(set(letters)) < len(letters):
        twice = next(x for x in letters if letters.count(x) > 1)
        one = letters.index(twice)
        two = letters.index(twice, one + 1)
        simple = len(letters) == 2 and not rank
        text = f"diagonal({text})" if simple else f"diagonal({text}, 0, {one}, {two})"
        letters = [x for k, x in enumerate(letters) if k not in (one, two)]
        if rank:
            return Value(text, ATOM, rank, False, (*letters, twice))
        letters.append(twice)
    order = sorted(range(len(letters)), key=lambda k: letters[k])
    whole = [*order, *range(len(letters), len(letters) + rank)]
    return Value(transposed(text, whole), ATOM, rank, False, tuple(sorted(letters)))


def _taken_from(writer: Writer, array: str, found: Sequence[Index], node: Node) -> Value:
    """The elements of an array at places that are arrays."""
    places = []
    for k, index in enumerate(found):
        axis = writer.scope.get(index.letter)
        if not index.letter:
            places.append(Value(_stretch(writer, node.token, index, array)))
        elif axis is not None and axis.taken:
            shift = _moved_by(index.offset)
            level = SUM if shift else ATOM
            places.append(Value(f"{axis.taken}{shift}", level, 0, False, axis.axes))
        else:
            size = f"{array}.shape[{k}]"
            places.append(Value(f"arange({size})", ATOM, 0, False, (index.letter,)))
    spread, axes, _ = aligned(places)
    text = f"{array}[{', '.join(place.text for place in spread)}]"
    return Value(text, ATOM, 0, False, axes)


def _delta(writer: Writer, found: tuple[Index, ...], node: Node) -> Value:
    letters = [i.letter for i in found]
    length = next((writer.indices.lengths[x] for x in letters if x in writer.indices.lengths), None)
    if any(not x for x in letters) or length is None:
        raise writer.error("the size of δ is not known here", node.token, "write eye(3)")
    if letters[0] == letters[1]:
        return Value(f"ones({length})", ATOM, 0, False, (letters[0],))
    return Value(f"eye({length})", ATOM, 0, False, tuple(sorted(letters)))


def place(writer: Writer, node: Node) -> Value:
    """The number of an element, where an index stands alone."""
    letter = node.text
    axis = writer.scope[letter]
    first = writer.indices.first
    if axis.taken:
        text = f"{axis.taken} + {first}" if first else axis.taken
        return Value(text, SUM if first else ATOM, 0, False, axis.axes)
    low = first if axis.low is None else axis.low
    if axis.high is not None:
        stop = str(axis.high + 1)
    elif (length := writer.indices.lengths.get(letter)) is not None:
        past = first + axis.offset
        stop = length + _moved_by(past)
    else:
        raise writer.error(f"the sum over {letter} has no bounds that are numbers", node.token,
                           f"say the value: --{axis.symbol} 10" if axis.symbol else None)  # fmt: skip
    return Value(f"arange({low}, {stop})", ATOM, 0, False, (letter,))


# -- products --------------------------------------------------------------------------------------
def product(writer: Writer, left: Value, sign: str, right: Value, token: Token) -> Value:
    """The product of values of which one depends on indices."""
    if not (left.rank and right.rank):
        values, axes, rank = aligned([left, right])
        first, second = values
        larger = left if left.rank else right
        text = f"{first.at(PRODUCT)}*{second.at(2)}"
        return Value(text, PRODUCT, rank, larger.row, axes, larger.sizes)
    vectors = left.rank == right.rank == 1
    if vectors and left.row == right.row and sign != "·":
        raise writer.error(
            f"a {left.shape} times a {right.shape} is not a product", token,
            "transpose one of them: x^T y, or x y^T; for each element x .* y",
        )  # fmt: skip
    if vectors and (left.row or sign == "·"):
        (first, second), axes, _ = aligned([left, right])
        if not left.axes or not right.axes:
            matrix, vector = (left, right) if left.axes else (right, left)
            writer.times_rows |= {vector.text} if matrix.text in writer.matrices else set()
            return Value(f"{matrix.at(3)}@{vector.at(3)}", PRODUCT, 0, False, axes)
        words = set(re.findall(r"[^\W\d]\w*", f"{first.text} {second.text}"))
        writer.beside_rows |= words & (writer.vectors or set()) - writer.matrices
        return Value(f"sum({first.at(PRODUCT)}*{second.at(2)}, -1)", ATOM, 0, False, axes)
    if right.rank == 2 and not right.axes and left.row:
        return Value(
            f"{left.at(PRODUCT)}@{right.at(3)}", PRODUCT, 1, True, left.axes, right.sizes[1:]
        )
    if left.rank == 2 and not left.axes and right.rank == 1 and not right.row:
        text = f"{right.at(PRODUCT)}@{turned(left.at(ATOM))}"
        return Value(text, PRODUCT, 1, False, right.axes, left.sizes[:1])
    # The letters of dimensions besides those of the indices: of a product, the inner one twice.
    one = "YZ" if left.rank == 2 else "Z"
    two = {"matrix": "ZX", "row": "X", "column": "Z"}[right.shape]
    if vectors:
        one, two = "Y", "X"  # a column times a row
    axes = union([left, right])
    out = "".join(c for c in one + two if c != "Z")
    text = (
        f'einsum("{"".join(left.axes)}{one},{"".join(right.axes)}{two}->{"".join(axes)}{out}", '
        f"{left.text}, {right.text})"
    )
    return Value(text, ATOM, len(out), left.rank == 1 and not vectors, axes)


def norm(writer: Writer, inner: Value, order: str, node: Node) -> Value:
    """The norm of vectors, one for each index."""
    if not inner.rank:
        return Value(f"abs({inner.text})", ATOM, 0, False, inner.axes)
    if order.startswith("=") or inner.rank > 1:
        raise writer.error("this norm of many vectors is not supported", node.token)
    along = "dim=-1" if order in ("", "2") else f"{order}, -1"
    text = f"linalg.norm({inner.text}, {along})"
    return Value(text, ATOM, 0, False, inner.axes)


def factors(node: Node) -> tuple[list[Node], list[Node], bool]:
    """The factors of a product above and below a line, and whether there is a minus."""
    above: list[Node] = []
    below: list[Node] = []
    minus = False
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.kind == "group" and one.only.kind in ("product", "neg", "group", "name"):
            waiting.append(one.only)
        elif one.kind == "neg":
            minus = not minus
            waiting.append(one.only)
        elif one.kind == "product" and one.text in _PRODUCTS:
            waiting += reversed(one.parts)
        elif one.kind == "product" and one.text in ("/", "frac"):
            waiting.append(one.parts[0])
            below.append(one.parts[1])
        else:
            above.append(one)
    return above, below, minus


def free_letters(writer: Writer, node: Node) -> tuple[str, ...]:
    """The indices of the left side of an equation, that are not summed on the right."""
    if node.kind != "name" or not node.parts:
        return ()
    return tuple(i.letter for i in subscripts(node) if i.letter in writer.indices.letters)


def repeats(writer: Writer, node: Node) -> set[str]:
    """The letters that stand at several factors of a product, where no sum is written."""
    counted: dict[str, int] = {}
    for factor in factors(node)[0]:
        for letter in _letters_of(writer, factor):
            counted[letter] = counted.get(letter, 0) + 1
    return {
        x for x, count in counted.items() if count > 1 and x not in (*writer.scope, *writer.free)
    }


def _letters_of(writer: Writer, node: Node) -> list[str]:
    """The letters of a factor: of one name each as often as it stands there."""
    if node.kind == "element":
        return [x for x in node.text if x in writer.indices.letters]
    if node.kind == "name":
        if node.base not in writer.indices.tensors or (node.text and node.text in writer.own):
            return []
        return [i.letter for i in subscripts(node) if i.letter in writer.indices.letters]
    inside = {
        x for n in nodes(node) if n.kind == "element" or (n.kind == "name" and n.parts)
        for x in _letters_of(writer, n)
    }  # fmt: skip
    return sorted(inside)


def einstein(writer: Writer, node: Node) -> Value:
    """A product in which what stands twice is summed, as Einstein wrote it."""
    above, below, minus = factors(node)
    summed = repeats(writer, node)
    # Einstein sums over products of components. In sin(x_i)*x_i, or behind a line, the same letter may as
    # well mean each element, and so it is asked.
    for factor in (*above, *below):
        plain = factor.kind in ("name", "group", "element") or not _letters_of(writer, factor)
        if plain and factor.kind != "group":
            continue
        if factor in below and not set(_letters_of(writer, factor)) & summed:
            continue
        inner = factor.only if factor.kind == "group" else factor
        linear = factor.kind == "group" and inner.kind == "sum" and all(
            part.kind in ("name", "product", "neg", "number") for part in inner.parts
        )  # fmt: skip
        if not linear:
            letter = sorted(summed)[0]
            raise writer.asks(
                f"{letter} appears twice: is it summed, or is each element meant?", node.token,
                f"write \\sum_{letter} before it, or say what it is on the left: y_{letter} = …",
            )  # fmt: skip
    names = ", ".join(sorted(summed))
    writer.say(f"{names} {'is' if len(summed) == 1 else 'are'} summed")
    values = [writer.value(factor) for factor in above]
    return _over(contracted(values, summed), [writer.value(b) for b in below], minus)


def _over(value: Value, below: list[Value], minus: bool) -> Value:
    for one in below:
        (value, one), axes, rank = aligned([value, one])
        value = Value(f"{value.at(PRODUCT)}/{one.at(3)}", PRODUCT, rank, False, axes)
    return value.like(f"-{value.at(PRODUCT)}", PRODUCT) if minus else value


# -- sums ------------------------------------------------------------------------------------------
def check_whole(writer: Writer, body: Node, letters: set[str]) -> None:
    r"""Ask what the x of `\sum_i (x - x_i)^2` is: one number, or all of what has elements x_i.

    In `\sum_i (x_i - mean(x))` and in norms and products of matrices it is all.
    """
    indexed = {
        n.base
        for n in nodes(body)
        if n.kind == "name" and n.base and any(part.text in letters for part in n.parts)
    }
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if node.kind in ("norm", "inner", "transpose", "element") or (
            node.kind == "call" and node.text in NUMBERS
        ):
            continue
        if (
            node.kind == "name"
            and not node.parts
            and node.text in indexed
            and node.base != "called"
            and node.text != "pi"  # \\pi beside \\pi_k is the number
        ):
            name = node.text
            raise writer.asks(
                f"{name} is a number, or all the {name}_{min(letters)}?", node.token,
                f"write another letter for the number, mean({name}) for a number of all",
            )  # fmt: skip
        waiting += node.parts


def series(writer: Writer, node: Node) -> Value:
    """A sum, a product, a maximum or a minimum over indices."""
    node = _merged(writer, node)
    binder = node.binder
    assert binder is not None
    if not binder.names:
        inner = writer.value(node.only)
        return Value(f"{node.text}({inner.text})")
    if (counted := _counted(writer, node)) is not None:
        return counted
    check_whole(writer, node.only, set(binder.names))
    # An index hides one of the same letter outside, until its sum ends.
    outer = dict(writer.scope)
    conditional = [n for n in binder.names if binder.relation and n in outer]
    own = tuple(n for n in binder.names if n not in conditional)  # which hide those outside
    if len(own) == 2 and binder.relation and own[0] > own[1]:  # \sum_{j \ne i}
        writer.say(f"the sum is over {own[0]}, for each {own[1]}")
        conditional, own = [own[1]], own[:1]
    if not own:
        raise writer.error("this index is bound twice", node.token)
    try:
        if binder.relation and conditional:
            return _beside(writer, node, own[0], conditional[0])
        if binder.relation:
            return _pairs(writer, node)
        axes = {name: _axis(writer, node, binder) for name in own}
        part = node.only  # sums of sums are one
        # Sums of sums become one sum over several indices, so that a product of matrices can be seen: in
        # `\sum_i \sum_j x_i A_{ij} y_j` neither sum alone is x@A@y.
        while part.kind == "series" and part.text == node.text and part.binder is not None:
            part = _merged(writer, part)
            assert part.binder is not None
            names = part.binder.names
            if part.binder.relation or not names or set(names) & {*axes}:
                break
            if not _depends(part, own):  # \sum_i \sum_j x_j, of which nothing depends on i
                break
            writer.scope.update(axes)
            axes |= {name: _axis(writer, part, part.binder) for name in names}
            node, part = node._replace(parts=part.parts), part.only
        writer.scope.update(axes)
        return _summed(writer, node, tuple(axes))
    finally:
        writer.scope = outer


def check_ends(writer: Writer, node: Node) -> None:
    r"""Ask about `\sum_i x_i + y_i`: a sum ends before a sign, and its index goes on."""
    for k, term in enumerate(node.parts[:-1]):
        last = term
        while last.kind in ("product", "neg") and last.text != "frac":
            last = last.parts[-1]
        if last.kind != "series" or last.binder is None:
            continue
        for name in last.binder.names:
            after = next((p for p in node.parts[k + 1 :] if name in _free(p)), None)
            if after is not None and name not in (*writer.scope, *writer.own):
                raise writer.asks(
                    f"this sum over {name} ends before a sign, and {name} appears again after it", last.token,
                    "write brackets: around all that is summed, or around the sum",
                )  # fmt: skip


def _free(node: Node) -> set[str]:
    """The letters of a tree that are indices or names, and that no sum in it binds."""
    found: set[str] = set()
    waiting: list[tuple[Node, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        one, bound = waiting.pop()
        if one.binder is not None:
            bound |= set(one.binder.names)
        if one.kind == "name":
            found |= {one.text, *(i.letter for i in subscripts(one))} - bound
        elif one.kind == "element":
            found |= {*one.text} - bound
            waiting.append((one.only, bound))
        else:
            waiting += [(part, bound) for part in one.parts]
    return found


def _merged(writer: Writer, node: Node) -> Node:
    r"""`\sum_i \sum_{j \ne i}` as `\sum_{i \ne j}`, `\sum_{i=1}^n \sum_{j=i+1}^n` as `\sum_{i<j}`."""
    binder, body = node.binder, node.only
    if body.kind != "series" or body.text != node.text or body.binder is None or binder is None:
        return node
    body = _merged(writer, body)
    inner = body.binder
    assert inner is not None
    if len(binder.names) != 1 or binder.relation:
        return node._replace(parts=(body,))
    name = binder.names[0]
    # The inner sum may only be joined if the outer one is over all elements. `\sum_{i=1}^{3} \sum_{j>i}`
    # is no sum over all pairs.
    whole = _reaches(writer, binder.low, name, "low") and _reaches(
        writer, binder.high, name, "high"
    )
    # Pairs i < j are found whichever of both sums stands outside; the text is the same for both.
    if whole and inner.relation and len(inner.names) == 2 and name in inner.names:
        if inner.names[0] > inner.names[1]:
            turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(inner.relation, "!=")
            inner = inner._replace(names=inner.names[::-1], relation=turned)
        return body._replace(token=node.token, binder=inner)
    relation = _related(writer, name, inner)
    if relation is not None and whole:
        ends = [end for end in (inner.high, binder.high) if end is not None and end.kind == "name"]
        high = ends[0] if ends else None
        return Node("series", node.token, node.text, body.parts, "",
                    Binder((name, *inner.names), relation, None, high))  # fmt: skip
    return node._replace(parts=(body,))


def _reaches(writer: Writer, limit: Node | None, name: str, end: str) -> bool:
    """Whether a limit is that of all elements, or one less: where j > i, i ends at n - 1 or n."""
    if limit is None:
        return True
    try:
        found = _limit(writer, limit, limit)
    except LanguageError:
        return False
    first = writer.indices.first
    # In i < j the second index may begin one later, and people write either.
    if end == "low":
        return found in (first, first + 1)
    if isinstance(found, tuple):
        return found[1] in (0, -1)
    last = _known_length(writer, name)
    return last is not None and found - first + 1 in (last, last - 1)


def _known_length(writer: Writer, name: str) -> int | None:
    """How many elements an index runs over, where a value says it."""
    found = re.fullmatch(r"len\((\w+)\)|(\w+)\.shape\[(\d)\]", writer.indices.lengths.get(name, ""))
    known = writer.known(found[1] or found[2]) if found else None
    size = known.shape[int(found[3] or 0)] if found and known is not None and known.shape else None
    return size if isinstance(size, int) else None


def _related(writer: Writer, letter: str, inner: Binder) -> str | None:
    """The relation of i to j where one of j's limits is i, i + 1 or i - 1, and the other the end."""
    if len(inner.names) != 1 or inner.relation:
        return None
    name = inner.names[0]
    # `j = i + 1` up to n is j > i, and `j = i` up to n is j >= i; from below, up to i - 1 or i, the same
    # turned.
    for limit, plain, beyond, sign in ((inner.low, "<=", "<", "+"), (inner.high, ">=", ">", "-")):
        if limit is None or not _depends(limit, (letter,)):
            continue
        other, end = (inner.high, "high") if limit is inner.low else (inner.low, "low")
        exact = other is None or other.kind == "name" or end == "low" or other.kind == "number"
        if not exact or not _reaches(writer, other, name, end):
            return None
        if limit.kind == "name":
            return plain
        one, two = limit.parts if len(limit.parts) == 2 else (limit, limit)
        if limit.kind == "sum" and limit.text[1:] == sign and (one.text, two.text) == (letter, "1"):
            return beyond
    return None


def _axis(writer: Writer, node: Node, binder: Binder) -> Axis:
    """What an index runs over."""
    low = _limit(writer, binder.low, node) if binder.low is not None else None
    high = _limit(writer, binder.high, node) if binder.high is not None else None
    if low is not None and isinstance(low, tuple):
        raise writer.error("the lower limit of a sum is a number", node.token,
                           f"say the value: --{low[0]} 1")  # fmt: skip
    if high is None:
        return Axis(low)
    if isinstance(high, int):
        return Axis(low, high)
    symbol, offset = high
    if symbol in writer.scope:
        raise writer.error(f"a sum up to {symbol}, which is bound outside, is not read here", node.token,
                           "write both sums next to each other: \\sum_{i<j}")  # fmt: skip
    first = writer.indices.first
    # x_n is the last element, of x_0, …, x_{n-1} it is x_{n-1}: the largest index is that.
    # The upper limit says how long x is: in `\sum_{i=1}^{n-1} (x_{i+1} - x_i)` the largest index is n, so
    # x has n elements, and i runs over all but the last. Then `offset` is -1, and x is read as x[1:] and
    # x[:-1].
    reach = offset + max(
        (writer.indices.offsets.get(n, (0, 0))[1] for n in binder.names), default=0
    )
    if first == 0 and offset < 0:
        offset, reach = offset + 1, reach + 1
    offset -= max(reach, 0)
    lengths = [writer.indices.lengths[n] for n in binder.names if n in writer.indices.lengths]
    extra = max(reach, 0) + (first == 0 and reach >= 0 and _is_symbol(binder.high))
    if lengths:
        more = f" - {extra}" if extra else ""
        writer.tie(symbol, f"{lengths[0]}{more}")
        if symbol not in writer.own:
            writer.say(f"{symbol} is {lengths[0]}{more}") if more or not _is_symbol(
                binder.high
            ) else None
    return Axis(low, None, symbol, offset, extra=extra)


def _is_symbol(node: Node | None) -> bool:
    return node is not None and node.kind == "name"


def _limit(writer: Writer, node: Node, series: Node) -> int | tuple[str, int]:
    """A limit: a whole number, or a letter and what is added to it."""
    if node.kind == "group":
        return _limit(writer, node.only, series)
    if node.kind == "number" and node.text.isdigit():
        return int(node.text)
    if node.kind == "neg":
        inner = _limit(writer, node.only, series)
        if isinstance(inner, int):
            return -inner
    if node.kind == "name" and node.text:
        known = writer.known(node.text)
        if known is not None and known.number is not None:
            return known.number
        if known is not None and (known.shape or node.text in writer.own):
            raise writer.error(f"{node.text} is not a whole number", node.token)
        return node.text, 0
    if node.kind == "sum":
        total, symbol = 0, ""
        for sign, part in zip(node.text, node.parts, strict=True):
            found = _limit(writer, part, series)
            if isinstance(found, tuple):
                if symbol or sign == "-":
                    break
                symbol, found = found
            total += found if sign == "+" else -found
        else:
            return (symbol, total) if symbol else total
    if node.kind == "raw" and "inf" in node.text:
        raise writer.error("a series of infinitely many terms is not summed here", series.token,
                           "write a number, as in \\sum_{k=0}^{50}")  # fmt: skip
    raise writer.error("a limit of a sum is a whole number, or a letter", node.token)


def _counted(writer: Writer, node: Node) -> Value | None:
    """A sum between two limits of what does not depend on its index; None of other sums."""
    binder = node.binder
    assert binder is not None
    if len(binder.names) != 1 or binder.relation or binder.low is None or binder.high is None:
        return None
    if _depends(node.only, binder.names) or binder.high.kind == "raw":
        return None
    if node.text in ("amax", "amin"):
        return writer.value(node.only)
    if node.text in ("argmax", "argmin"):
        return None
    low, high = writer.value(binder.low), writer.value(binder.high)
    # A sum of what does not depend on its index counts its terms, also where the limits are letters.
    if low.text.isdigit() and high.text.isdigit():
        count = str(max(int(high.text) - int(low.text) + 1, 0))
    elif low.text == "1":
        count = high.at(ATOM)
    else:
        count = f"({high.text} - {low.at(PRODUCT)} + 1)"
    value = writer.value(node.only)
    if node.text == "prod":
        return value.like(f"{value.at(ATOM)}**{count}", 3)
    return value.like(f"{count}*{value.at(2)}", PRODUCT)


def _summed(writer: Writer, node: Node, names: tuple[str, ...]) -> Value:
    """The sum over whole axes."""
    body = node.only
    if node.text == "sum" and (found := _contraction(writer, body, names)) is not None:
        _say_what(writer, node, names)
        return found
    value = writer.value(body)
    missing = [n for n in names if n not in value.axes]
    if value.rank and value.axes and not missing:
        return reduced(node.text, value, names)
    if node.text in ("argmax", "argmin"):
        return _place_of(writer, node, value, names)
    result = reduced(node.text, value, names)
    for name in missing:
        result = _repeated(writer, node, result, name)
    if not missing:
        _say_what(writer, node, names)
    return result


def _place_of(writer: Writer, node: Node, value: Value, names: tuple[str, ...]) -> Value:
    """The number of the largest or smallest element, counted as the indices are."""
    axis = writer.scope[names[0]]
    first = writer.indices.first if axis.low is None else axis.low
    if len(names) > 1 or names[0] not in value.axes:
        raise writer.error("this is of one index", node.token)
    found = reduced(node.text, value, names)
    if not first:
        return found
    writer.say(f"elements are counted from {writer.indices.first}")
    return found.like(f"{found.text} + {first}", SUM)


def _repeated(writer: Writer, node: Node, value: Value, name: str) -> Value:
    """A sum of what does not depend on its index."""
    axis = writer.scope[name]
    if node.text in ("amax", "amin"):
        return value
    count = ""
    if axis.high is not None:
        count = str(max(axis.high - (axis.low if axis.low is not None else 1) + 1, 0))
    elif axis.symbol and node.binder is not None and node.binder.high is not None:
        known = _limit(writer, node.binder.high, node)
        assert isinstance(known, tuple)
        more = known[1] - (axis.low if axis.low is not None else 1) + 1
        count = f"({known[0]}{_moved_by(more)})" if more else known[0]
    elif name in writer.indices.lengths:
        count = writer.indices.lengths[name]
    if not count:
        raise writer.error(f"nothing in this sum depends on {name}", node.token)
    if node.text == "prod":
        return value.like(f"{value.at(ATOM)}**{count}", 3)
    return value.like(f"{count}*{value.at(2)}", PRODUCT)


def _say_what(writer: Writer, node: Node, names: tuple[str, ...]) -> None:
    """That a sum is over all elements, and of what."""
    if any(writer.scope[n].high is not None or writer.scope[n].offset for n in names):
        return
    if any((writer.scope[n].low or 0) > writer.indices.first for n in names):
        return
    over = [
        n.base
        for n in nodes(node.only)
        if n.kind == "name" and n.base in writer.indices.tensors
        and n.base not in DELTAS | EPSILONS and {i.letter for i in subscripts(n)} & set(names)
    ]  # fmt: skip
    if over and node.text == "sum":
        writer.say(f"the sum is over all elements of {', '.join(dict.fromkeys(over))}")


def _contraction(writer: Writer, body: Node, names: tuple[str, ...]) -> Value | None:
    """A sum of products as one of matrices, or an einsum; None where it is none."""
    above, below, minus = factors(body)
    if len(above) < 2:
        return None
    # Tried first, and taken back where it is no contraction: what was said on the way must not be said
    # twice.
    before = list(writer.remarks)
    values = [writer.value(factor) for factor in above]
    under = [writer.value(factor) for factor in below]
    arrays = [v for v in values if v.axes]
    plain = all(not v.rank for v in values + under) and not any(
        set(v.axes) & set(names) for v in under
    )
    # x_i*y_i has one index for all: a sum of the elementwise product says it, and no matrix is needed.
    different = len({v.axes for v in arrays}) > 1
    if not plain or not different or not set(names) <= set(union(arrays)):
        writer.remarks[:] = before
        return None
    return _over(contracted(values, names), under, minus)


# -- pairs -----------------------------------------------------------------------------------------
def _length(writer: Writer, names: tuple[str, ...], node: Node) -> str:
    for name in names:
        if name in writer.indices.lengths:
            return writer.indices.lengths[name]
    raise writer.error("how many pairs there are is not known", node.token)


def _pairs(writer: Writer, node: Node) -> Value:
    r"""`\sum_{i<j}`: over the pairs, by a triangle of the matrix of all where each element is a number, and
    else, since `1/|x_i - x_j|` is none at i = j, by the places of the pairs."""
    binder = node.binder
    assert binder is not None
    names, relation = binder.names, binder.relation
    if relation in _FLIPPED:
        names, relation = names[::-1], _FLIPPED[relation]
    if binder.low is not None and _limit(writer, binder.low, node) != writer.indices.first:
        raise writer.error("these pairs are not those of all elements", node.token)
    if len(names) < 2:
        raise writer.error("the index of a sum is one letter", node.token)
    length = _length(writer, names, node)
    if binder.high is not None and binder.high.kind == "name":
        writer.tie(binder.high.text, length)
    if len(names) == 2:
        writer.say(f"the sum is over pairs of {names[0]} and {names[1]}")
    # A triangle multiplies what is left out by 0, and 0 times an infinite element is not a number.
    if len(names) == 2 and node.text == "sum" and not _may_be_infinite(writer, node.only, names):
        for name in names:
            writer.scope[name] = Axis()
        body = writer.value(node.only)
        if set(names) <= set(body.axes) and not body.rank and len(body.axes) == 2:
            if relation == "!=":
                mask = Value(f"(1 - eye({length}))", ATOM, 0, False, body.axes)
                return reduced("sum", multiplied([mask, body]), names)
            # Axes are sorted by their letters, so whether i < j is the upper triangle depends on the
            # letters.
            triangle = "triu" if names[0] < names[1] else "tril"
            shift = {"<": 1 if triangle == "triu" else -1, "<=": 0}[relation]
            inner = f"{triangle}({body.text}{f', {shift}' if shift else ''})"
            return reduced("sum", body.like(inner, ATOM), names)
    axis = f"{'_'.join(names)}"
    if relation == "!=":
        if len(names) > 2:
            raise writer.error("of three indices only i < j < k is read", node.token)
        taken = [f"nonzero(1 - eye({length})).T[{k}]" for k in range(2)]
    elif len(names) == 2:
        shift = 1 if relation == "<" else 0
        taken = [f"triu_indices({length}, {length}, {shift})[{k}]" for k in range(2)]
    else:
        more = ", with_replacement=True" if relation == "<=" else ""
        taken = [
            f"combinations(arange({length}), {len(names)}{more}).T[{k}]" for k in range(len(names))
        ]
    for name, text in zip(names, taken, strict=True):
        writer.scope[name] = Axis(taken=text, axes=(axis,))
    body = writer.value(node.only)
    if axis not in body.axes:
        raise writer.error(f"nothing in this sum depends on {', '.join(names)}", node.token)
    return reduced(node.text, body, (axis,))


def _beside(writer: Writer, node: Node, name: str, outer: str) -> Value:
    r"""`\sum_{j \ne i}` for each i."""
    binder = node.binder
    assert binder is not None
    relation = binder.relation
    if binder.names[0] == outer and relation != "!=":
        relation = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}[relation]
    length = _length(writer, (name, outer), node)
    if relation == "!=":
        rows = f"arange({length})[:, None]"
        # For each i the places 0 … n - 2, of which those from i on are moved by one: i itself is left out.
        taken = f"(arange({length} - 1) + (arange({length} - 1) >= {rows}))"
        if name < outer:
            taken += ".T"
        writer.scope[name] = Axis(taken=taken, axes=tuple(sorted((name, outer))))
        return reduced(node.text, writer.value(node.only), (name,))
    if node.text != "sum" or _may_be_infinite(writer, node.only, (name, outer)):
        raise writer.error("this sum over a part of the elements is not supported", node.token)
    writer.scope[name] = Axis()
    body = writer.value(node.only)
    triangle, shift = {"<": ("tril", -1), "<=": ("tril", 0), ">": ("triu", 1), ">=": ("triu", 0)}[
        relation
    ]
    mask = f"{triangle}(ones({length}, {length}){f', {shift}' if shift else ''})"
    if name < outer:
        mask += ".T"
    axes = tuple(sorted((name, outer)))
    return contracted([Value(mask, ATOM, 0, False, axes), body], (name,))


def _may_be_infinite(writer: Writer, body: Node, names: tuple[str, ...]) -> bool:
    """Whether a body may be no number where its indices are equal."""
    for node in nodes(body):
        if (
            node.kind == "product"
            and node.text in ("/", "frac", "⊘")
            and _depends(node.parts[1], names)
        ):
            return True
        raised = node.kind == "power" and not re.fullmatch(r"\d+", node.parts[1].text)
        if raised and _depends(node.parts[0], names):
            return True
        smooth = node.kind == "call" and node.text in _SMOOTH
        applied = node.kind in ("call", "root", "norm", "abs", "apply") and not smooth
        if applied and _depends(node, names):
            return True
    return False


def _depends(node: Node, names: tuple[str, ...]) -> bool:
    return any(
        (n.kind == "name" and (n.text in names or any(i.letter in names for i in subscripts(n))))
        or (n.kind == "element" and not set(n.text).isdisjoint(names))
        for n in nodes(node)
    )

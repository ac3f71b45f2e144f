r"""Which letters below a line are indices, and what they run over.

`x_i` is an element of x where something binds i (`\sum_i`), where x has a value and x_i none, or where its
letter stands at several names (`A_{ij} x_j`). Else it is a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from gradcli.language import names
from gradcli.language.math_symbols import ALONG, INDEX_WORDS, NUMBERS
from gradcli.language.math_tree import Binder, Node, nodes
from gradcli.language.math_values import Known
from gradcli.language.notation import is_greek

_DATA = "xzyuvtspqrw"  # the letters of data, the most usual one first
DELTAS = frozenset(("delta", "δ"))
EPSILONS = frozenset(("epsilon", "varepsilon", "ε", "ϵ"))


class Index(NamedTuple):
    """One index of an element: a letter and what is added to it, or a whole number alone."""

    letter: str
    offset: int = 0


class Axis(NamedTuple):
    """What a bound letter runs over: from low, or from the first element; to a number, to the length and
    `offset` elements more, or to the last element.

    taken: instead, the text of the places of the elements, an array over `axes`. extra: how many more
    elements there are than the letter `symbol` says.
    """

    low: int | None = None
    high: int | None = None
    symbol: str = ""
    offset: int = 0
    taken: str = ""
    axes: tuple[str, ...] = ()
    extra: int = 0


def subscripts(node: Node) -> tuple[Index, ...]:
    """The indices of a name, `ij` as i and j; () where they are none that could be."""
    found: list[Index] = []
    for part in node.parts:
        for one in _factors(part):
            index = _index(one)
            if index is None:
                return ()
            word = index.letter
            if len(word) > 1 and not is_greek(word):
                if index.offset or not (word.isascii() and word.isalpha() and len(word) <= 4):
                    return ()
                # u_{xx} is a derivative, or a component: a name either way.
                if word in INDEX_WORDS or not word.strip("xyzt"):
                    return ()
                found += [Index(letter) for letter in word]
            else:
                found.append(index)
    return tuple(found)


def _factors(node: Node) -> Iterator[Node]:
    if node.kind == "product" and node.text == "":
        for part in node.parts:
            yield from _factors(part)
    else:
        yield node


def _index(node: Node) -> Index | None:
    if node.kind == "number" and node.text.isdigit():
        return Index("", int(node.text))
    if node.kind == "name" and not node.parts and node.text:
        return Index(node.text)
    if node.kind == "sum" and len(node.parts) == 2:
        left, right = map(_index, node.parts)
        if left and right and left.letter and not right.letter and len(left.letter) == 1:
            sign = -1 if node.text[1] == "-" else 1
            return Index(left.letter, left.offset + sign * right.offset)
    return None


class Indices(NamedTuple):
    """letters: all that are indices. tensors: the names that have them, with the number of theirs. bound:
    letters that a sum binds. lengths: of letters, how the length of what they run over is written. first:
    the number of a first element, 1 or 0. offsets: the smallest and largest of each letter. exact: how
    many elements a dimension of a name has, where the limits of all sums over it are one number."""

    letters: set[str]
    tensors: dict[str, int]
    bound: set[str]
    lengths: dict[str, str]
    offsets: dict[str, tuple[int, int]]
    first: int
    exact: dict[tuple[str, int], int]


def indices(
    roots: Iterable[Node],
    own: Container[str],
    known: Callable[[str], Known | None],
    gradient: Container[str] = (),
) -> Indices:
    """The indices of a text. own: names that have a value, or are assigned. gradient: the letters of the
    element by which is differentiated."""
    roots = list(roots)
    all_nodes = [node for root in roots for node in nodes(root)]
    elements = [node for node in all_nodes if node.kind == "element"]  # of `(A x)_i`
    bound = {n for node in all_nodes if node.binder is not None for n in node.binder.names}
    named = [
        n for n in all_nodes
        if n.kind == "name" and n.parts
        and not (n.text and (n.text in own or known(n.text) is not None))
    ]  # fmt: skip
    # A letter that is a variable is no index, but where a sum is over it: of W_{xh} x no letter is one.
    inside = {id(part) for n in all_nodes if n.kind == "name" for part in n.parts}
    variables = {n.base or n.text for n in all_nodes if n.kind == "name" and id(n) not in inside}
    variables -= bound
    places = [(node, subscripts(node)) for node in named]
    places = [(node, found) for node, found in places if found]
    places = [(n, found) for n, found in places if not variables & {i.letter for i in found}]
    letters = bound | {x for node in elements for x in node.text if x in gradient}
    tensors: dict[str, int] = {}
    for root in roots:  # p of `p_i = e^{z_i}`
        if root.kind == "assign" and root.only.kind == "labelled":
            index = root.only.text
            if root.text.rpartition("_")[2] != index:
                letters |= {*index}
                tensors[root.text] = len(index)
    seen = Counter(
        letter for _, found in places for letter in {i.letter for i in found if i.letter}
    )
    for node, found in places:
        value = known(node.base)
        mine = [i.letter for i in found if i.letter]
        # First what is certain: a name with several indices of which one stands elsewhere (A_{ij} x_j), δ
        # and ε without values, and a name whose value has as many dimensions. Then, in the loop below,
        # what follows from that: in `A_{ij} x_j + b_i` the i of A is an index, so b_i is an element of b.
        # Without A, b_i would be a name like x_max.
        sharing = len(mine) > 1 and any(seen[m] > 1 or mine.count(m) > 1 for m in mine)
        special = (node.base in DELTAS and len(mine) == 2) or (
            node.base in EPSILONS and len(mine) == 3
        )
        if sharing or special or (value is not None and len(value.shape) >= len(found)):
            letters.update(mine)
            tensors[node.base] = max(tensors.get(node.base, 0), len(found))
    while True:
        before = len(letters), len(tensors)
        for node, found in places:
            here = {i.letter for i in found if i.letter}
            if node.base in tensors or here & letters:
                letters |= here
                tensors[node.base] = max(tensors.get(node.base, 0), len(found))
        for node in elements:
            letters |= {*node.text} if letters & {*node.text} else set()
        if before == (len(letters), len(tensors)):
            break
    lengths, offsets = _extents(places, tensors, letters, known)
    for node in elements:
        offsets |= {x: (0, 0) for x in node.text if x in letters and x not in offsets}
    first = _first(all_nodes, offsets)
    if any(i == Index("", 0) for node, found in places if node.base in tensors for i in found):
        first = 0
    exact = _exact(roots, tensors, first)
    return Indices(letters, tensors, bound, lengths, offsets, first, exact)


def _extents(
    places: list[tuple[Node, tuple[Index, ...]]],
    tensors: Container[str],
    letters: Container[str],
    known: Callable[[str], Known | None],
) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    lengths: dict[str, str] = {}
    offsets: dict[str, tuple[int, int]] = {}
    for node, found in places:
        if node.base not in tensors:
            continue
        for i, index in enumerate(found):
            if index.letter not in letters or not index.letter:
                continue
            low, high = offsets.get(index.letter, (index.offset, index.offset))
            offsets[index.letter] = min(low, index.offset), max(high, index.offset)
            if node.base in DELTAS | EPSILONS and known(node.base) is None:
                continue
            length = f"len({node.base})" if i == 0 else f"{node.base}.shape[{i}]"
            lengths.setdefault(index.letter, length)
    return lengths, offsets


def _exact(roots: list[Node], tensors: Container[str], first: int) -> dict[tuple[str, int], int]:
    """The sizes that numbers as upper limits say: of a in `\\sum_{k=0}^{4} a_k x^k`, 5."""
    ends: dict[tuple[str, int], set[int | None]] = {}

    waiting: list[tuple[Node, dict[str, int | None]]] = [(root, {}) for root in roots]
    while waiting:
        node, highs = waiting.pop()
        if node.binder is not None:
            high = node.binder.high
            whole = high is not None and high.kind == "number" and high.text.isdigit()
            number = int(high.text) if high is not None and whole else None
            highs = highs | dict.fromkeys(node.binder.names, number)
        if node.kind == "name" and node.base in tensors:
            for k, index in enumerate(subscripts(node)):
                last = highs.get(index.letter) if index.letter else None
                end = None if last is None else last + index.offset
                ends.setdefault((node.base, k), set()).add(end)
        elif node.kind != "name":
            waiting += [(part, highs) for part in node.parts]
    return {
        place: end - first + 1
        for place, (end, *more) in ((p, sorted(e, key=str)) for p, e in ends.items())
        if not more and end is not None
    }


def _first(all_nodes: list[Node], offsets: dict[str, tuple[int, int]]) -> int:
    """What number the first element has: 1, or 0 if a sum begins there."""
    first = 1
    for node in all_nodes:
        binder = node.binder
        low = binder.low if binder is not None else None
        if binder is None or low is None or low.kind != "number" or not low.text.isdigit():
            continue
        for name in binder.names:
            if name in offsets:
                first = min(first, int(low.text) + offsets[name][0])
    return first


def _is_of_arrays(node: Node) -> bool:
    """Whether a node is of an array: `(X w - y)_i`, `softmax(z)`, `mean(x)`."""
    return node.kind == "element" or (node.kind == "call" and node.text in ALONG.keys() | NUMBERS)


def _end_of(binder: Binder) -> str:
    r"""The letter that a sum from 1 ends at: n of `\\sum_{i=1}^n`; "" elsewhere."""
    low, high = binder.low, binder.high
    from_one = low is None or low.text == "1"
    one = high is not None and high.kind == "name" and re.fullmatch("[A-Za-z]", high.text)
    return high.text if high is not None and one and from_one and not binder.relation else ""


def whole_arrays(found: Indices, formulas: Mapping[str, Node]) -> dict[str, str]:
    r"""The variables that are arrays, as what is computed from them has elements: x of `u = a x; \sum_i u_i`.

    formulas: what names are given that is no array by itself. Of several variables the one is taken whose
    letter is most usual for data. Its value says which name has elements.
    """
    arrays: dict[str, str] = {}
    waiting = [(name, name) for name in formulas if found.tensors.get(name) == 1]
    done: set[str] = set()
    while waiting:
        name, whole = waiting.pop()
        if name in done:
            continue
        done.add(name)
        whole_formula = [*nodes(formulas[name])]
        if any(n.kind == "call" and n.text in ALONG for n in whole_formula):
            continue
        inside = [n.text for n in whole_formula if n.kind == "name" and n.base != "called"]
        given = [n for n in inside if n in formulas]
        data = sorted({*inside} - {*formulas} - {"e"}, key=lambda n: (_DATA + n).index(n[:1]))
        waiting += [(n, whole) for n in given]
        if data and not given:
            arrays[data[0]] = whole
    return arrays


def index_letters(roots: Iterable[Node], found: Indices) -> dict[str, tuple[str, ...]]:
    """The indices of each name that has some, as they stand at its first place."""
    made: dict[str, tuple[str, ...]] = {}
    for node in (node for tree in roots for node in nodes(tree)):
        if node.kind == "name" and node.base in found.tensors and node.parts:
            letters = tuple(i.letter for i in subscripts(node))
            if letters and all(letter in found.letters for letter in letters):
                made.setdefault(node.base, letters)
    return made


def shapes_by_index(
    roots: Iterable[Node],
    found: Indices,
    own: Container[str],
    assigned: Container[str] = (),
    known: Callable[[str], Known | None] = lambda _: None,
) -> dict[str, tuple[str, ...]]:
    """A size for each dimension of the names with indices, a letter; () of those without, which are numbers.

    own: names that have a value. assigned: by the text, which have a shape by what they are assigned.
    known: the shapes of values.
    {} where the sizes of one letter differ, as those of `x_{i+1}` and `y_i` do.
    """
    if (
        len(found.letters) > 8
        or not found.letters
        or any(low or high for low, high in found.offsets.values())
    ):
        return {}
    shapes: dict[str, tuple[str, ...]] = {}
    given: dict[str, tuple[int | str, ...]] = {}
    # Letters that stand at the same dimension of one name have the same size: of A_{ij} and A_{ji} i and
    # j are one size, n. So are those of sums that end at the same letter. The j of one statement is another
    # one than that of the next. A union-find over letters; each class gets the letter that sums over it end
    # at, or one of `nmkl…`, or its number.
    same: dict[str, str] = {}

    def root(letter: str) -> str:
        while letter in same:
            letter = same[letter]
        return letter

    def join(one: str, two: str) -> None:
        if root(one) != root(two):
            same[max(root(one), root(two))] = min(root(one), root(two))

    plain: set[str] = set()
    every = [(str(k), node) for k, tree in enumerate(roots) for node in nodes(tree)]
    # What stands in the bracket of `(X w - y)_i` may have that index.
    whole = {id(n) for _, node in every if _is_of_arrays(node) for n in nodes(node)}
    for statement, node in every:
        if node.binder is not None and (end := _end_of(node.binder)):
            for name in node.binder.names:
                join(f"{name}{statement}", f"~{end}")
        if node.kind == "assign" and node.only.kind == "labelled" and node.text in found.tensors:
            letters = tuple(f"{x}{statement}" for x in node.only.text)
            for one, two in zip(shapes.get(node.text, letters), letters, strict=False):
                join(one, two)
            shapes.setdefault(node.text, letters)
        if node.kind != "name" or not node.text or node.text in own:
            continue
        if node.base not in found.tensors:
            if (
                id(node) not in whole
                and node.text not in found.letters
                and node.base != "called"
                and node.text not in assigned
            ):
                plain.add(node.text)
            continue
        letters = tuple(i.letter for i in subscripts(node))
        if not letters:  # the whole x, as in `x_i - mean(x)`
            continue
        if not all(len(x) == 1 for x in letters):
            return {}
        if node.base in own:
            value = known(node.base)
            if value is None or len(value.shape) < len(letters) or value.each:
                return {}
            given[node.base] = value.shape
        letters = tuple(f"{x}{statement}" for x in letters)
        for one, two in zip(shapes.get(node.base, letters), letters, strict=False):
            join(one, two)
        shapes[node.base] = letters
    roots_found = dict.fromkeys(root(x) for letters in shapes.values() for x in letters)
    ends = {root(f"~{end}"): end for _, n in every if n.binder and (end := _end_of(n.binder))}
    free_sizes = iter([x for x in "nmklpqrstuv" if x not in ends.values()])
    size = {r: ends.get(r) or next(free_sizes, "n") for r in roots_found}
    for (name, k), number in found.exact.items():
        if k < len(shapes.get(name, ())):
            size[root(shapes[name][k])] = str(number)
    for name, numbers in given.items():
        size |= {root(x): str(k) for x, k in zip(shapes[name], numbers, strict=False)}
    named = {name: tuple(size[root(x)] for x in letters) for name, letters in shapes.items()}
    named = {n: s for n, s in named.items() if n not in DELTAS | EPSILONS and n not in given}
    # Single letters are variables, those too that are functions elsewhere, as torch.t; e is a number.
    free = (n for n in plain - {"e"} if len(n) == 1 or (n.isidentifier() and not names.is_known(n)))
    return named | dict.fromkeys(free, ())

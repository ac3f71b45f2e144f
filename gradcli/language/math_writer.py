r"""Trees of mathematics as texts of the language, by the shapes of what they are of.

A letter's shape is that of its value. Where it has none, the text says it: in a product in which something
is transposed, or beside a norm, a capital letter is a matrix and what it is multiplied with a vector. What
stands in several shapes for several things is asked, or said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import comb, factorial
from typing import TYPE_CHECKING

from gradcli.language import names
from gradcli.language.foreign_names import FUNCTIONS, bare, called, is_function, known_as
from gradcli.language.located_errors import LanguageError
from gradcli.language.math_indices import Axis
from gradcli.language.math_symbols import (
    ALONG,
    MATRIX_VALUED,
    NUMBERS,
    OF_ARRAYS,
    OF_MATRICES,
    RENAMED,
    SWAPS,
)
from gradcli.language.math_tree import Node, is_never_negative
from gradcli.language.math_values import (
    ATOM,
    POWER,
    PRODUCT,
    SIGN,
    SUM,
    Known,
    Value,
    aligned,
    transposed,
    variables_of,
    weak,
)
from gradcli.language.notation import Token, fraction, is_greek, is_matrix
from gradcli.language.squared_variables import NoSquare, letter_for, remedy, with_letter

if TYPE_CHECKING:
    from gradcli.language.math_indices import Indices

# The shape of a product of two shapes; what is not here is none.
_PRODUCTS = {
    ("row", "column"): (0, False), ("row", "matrix"): (1, True), ("matrix", "column"): (1, False),
    ("matrix", "matrix"): (2, False), ("column", "row"): (2, False),
}  # fmt: skip
# A matrix times a vector, and data times parameters, to which a number is added.
_OF_WEIGHTS = re.compile(r"(?<![\w.])[^\W\d]\w*@[^\W\d]")
_OF_DATA = re.compile(r"(?<![\w.])(?:X|Phi|Φ)@|@(?:w|beta|theta|β|θ)\b")
_CHAINED = ("", "*", "·", "/")  # products that are read from the left to the right
# The derivatives of functions of each element.
_SLOPES = {
    "sigmoid": ("sigmoid({0})*(1 - sigmoid({0}))", PRODUCT),
    "tanh": ("1 - tanh({0})**2", SUM),
    "relu": ("where({0} > 0, 1, 0)", ATOM),
}
_NUMBER = r"-?[\d.]+(?:e[+-]?\d+)?"
_OF_NUMBERS = r"\bpi\b|(?<=\d)[eE](?=[-+\d])"  # letters that a number may have


# How a text follows from shapes, on an example. In `x^T A x` the transpose says that x is a vector and A
# a matrix: x^T is Value("x", rank 1, row), A Value("A", rank 2), x Value("x", rank 1). A row times a
# matrix is a row, and a row times a column a number (`_PRODUCTS`), so `x@A@x` is written, of rank 0.
_IDENTITY = re.compile(r"(?<![\w.])I(?![\w.(])")


_NABLA_FIRST = re.compile(r"\s*((?:\\nabla|∇)\s*(?:_\s*(?:\{[^{}]*\}|\\?\w+))?)(.*)", re.S)


def _outside_brackets(text: str) -> str:
    """A text without what stands in brackets: a sum there is no sum of the whole."""
    while (less := re.sub(r"[(\[{][^()\[\]{}]*[)\]}]", "x", text)) != text:
        text = less
    return text


def _columns(text: str) -> str:
    """The number of columns of a matrix, as a text: `X.shape[1]` for `2*X.T@D@X`."""
    last = re.search(r"(?:^|[@*])(\w+)(\.T)?$", text)
    return f"{last[1]}.shape[{0 if last[2] else 1}]" if last else f"({text}).shape[1]"


# NumPy and torch have no rows and columns, so a transposed vector is the vector itself. Without a
# transpose, `A x + b` has nothing that says what A is: it is A*x + b, and a remark says how to say
# otherwise.
class Writer:
    """What writes one text. scope: the bound letters around. einstein: whether what stands twice in a
    product is summed, since no sum is written."""

    def __init__(
        self,
        source: str,
        own: set[str],
        vectors: set[str] | None,
        known: Callable[[str], Known | None],
        found: Indices | None,
        *,
        loose: bool = True,
        elementwise: bool = True,
    ) -> None:
        self.source, self.own, self.vectors = source, own, vectors
        self._known, self.hidden = known, set[str]()  # by the parameters of a function
        self.found, self.loose, self.elementwise = found, loose, elementwise
        self.one = (
            ""  # how one element is written, z_c of a value that is to be a number: "unit", "place"
        )
        self.said_ones: frozenset[str] = frozenset()  # the indices of one element in another text
        self.singled: set[str] = set()  # the indices of such elements
        self.einstein = loose and found is not None and not found.bound
        self.limits: set[str] = set()  # the names that limit sums, which are numbers
        self.ties: dict[str, str] = {}  # of these, the size that they are, as a text
        self.sizes: Mapping[str, str] = {}  # the same of names that are written so
        self.free: tuple[str, ...] = ()  # those that the left side of an equation has
        self.scope: dict[str, Axis] = {}
        self.by = ""  # the variable of a text that is only differentiated, once
        self.remarks: list[str] = []
        self.numbers: set[str] = set()  # the names that are numbers, whatever stands around them
        self.assigned: dict[str, Value] = {}  # what the text gives a name, if that is no number
        self.bodies: dict[
            str, tuple[list[str], Node]
        ] = {}  # of functions: parameters, what they give
        self.inlined: set[str] = set()  # the functions whose body stood in for a call
        self.matrices: set[str] = set()  # the names of which an element with one index is a row
        self.indexed_matrices: set[str] = set()  # Σ_k of a text of vectors
        self.columns: set[str] = set()  # the names that are vectors, as they are added to one
        self.formulas: dict[str, Node] = {}  # of names that are given what may be a number
        self.given: set[str] = set()  # the names that statements give a value
        self.valued: set[str] = set()  # the names that have one already
        self.clashes = 0  # the places where the ranks of parts do not agree
        self.beside_rows: set[str] = set()  # the vectors that multiply such rows, one each
        self.times_rows: set[str] = set()  # those that multiply all of them

    def known(self, name: str) -> Known | None:
        """What is known of the value of a name."""
        return None if name in self.hidden else self._known(name)

    @property
    def indices(self) -> Indices:
        """The indices of the text, where it has any."""
        assert self.found is not None
        return self.found

    @property
    def open_letters(self) -> set[str]:
        """The indices that nothing in the text binds."""
        return self.indices.letters - self.indices.bound

    # -- errors and remarks --------------------------------------------------------------------------
    def error(
        self, message: str, token: Token, hint: str | None = None, kind: str = "syntax"
    ) -> LanguageError:
        span = (token.start, max(token.end, token.start + 1))
        return LanguageError(message, kind=kind, source=self.source, span=span, hint=hint)

    def asks(self, message: str, token: Token, hint: str) -> LanguageError:
        return self.error(message, token, hint, "name")

    def say(self, remark: str) -> None:
        self.remarks.append(remark)

    # -- statements ----------------------------------------------------------------------------------
    def statement(self, node: Node) -> str:
        """A statement as a line of the language."""
        text = self.line(node)
        # A vector of ones gets its size from what stands beside it; where nothing did, it has none.
        if "\0" in text:
            raise self.unknown_size(node)
        return text

    def line(self, node: Node) -> str:
        if node.kind == "define":
            self.own.add(node.text)
            parameters = re.split(r"[,\s]+", node.base)
            self.bodies[node.text] = parameters, node.only
            self.hidden |= {*parameters}
            value = self.whole(node.only)
            self.hidden -= {*parameters}
            return f"{node.text} = lambda {node.base}: {value.text}"
        if node.kind == "assign":
            value, name = self.whole(node.only), self.array_of(node.text)
            self.given.add(name)
            letters = {*name.rpartition("_")[2]}
            letters |= {*node.only.text} if node.only.kind == "labelled" else set()
            if value.axes and set(value.axes) <= letters and not value.rank:
                value = value._replace(axes=(), rank=len(value.axes))  # y_i of all i
            if not value.rank and not value.axes:
                self.formulas[name] = node.only
            if value.rank and not value.axes:
                self.assigned[name] = value._replace(text=name, level=ATOM)
            return f"{name} = {value.text}"
        if node.kind == "return":
            return f"return {self.whole(node.only).text}"
        return self.whole(node).text

    def array_of(self, name: str) -> str:
        """The name of an array for that of its elements, where the text has both: x_hat of `x_hat_i = …`."""
        base, _, index = name.rpartition("_")
        if self.found is None or name in self.own or base not in self.found.tensors:
            return name
        return base if {*index} <= self.found.letters else name

    def whole(self, node: Node) -> Value:
        """A value of its own, whose free indices are its dimensions."""
        if node.kind == "relation" and self.found is not None:
            from gradcli.language import math_series

            self.free = math_series.free_letters(self, node.parts[0])
        return self.value(node)

    def value(self, node: Node) -> Value:
        """The text of any node."""
        return _WRITERS[node.kind](self, node)

    def plain(self, node: Node) -> Value:
        """The text of a node that stands where no element can."""
        found = self.value(node)
        if found.axes and self.scope.keys() & set(found.axes):
            raise self.error("an element of a sum is not supported", node.token)
        return found

    # -- atoms ---------------------------------------------------------------------------------------
    def raw(self, node: Node) -> Value:
        return Value(node.text)

    def fraction(self, node: Node) -> Value:
        return Value(str(fraction(node.text)), PRODUCT)

    def name(self, node: Node) -> Value:
        name = node.text
        if name in self.scope and name not in self.own:
            from gradcli.language import math_series

            return math_series.place(self, node)
        if node.parts:
            from gradcli.language import math_series

            if (found := math_series.element(self, node)) is not None:
                return found
        if not name:
            hint = f"give it a name of its own, as {node.base}_p; \\sum_i binds an index i"
            raise self.error("nothing binds the index here", node.token, hint)
        # Statistics writes n_x for the number of observations of x.
        if name[:2] == "n_" and name not in self.own and (size := self.size(name[2:])) is not None:
            self.say(f"{name} is len({name[2:]})")
            return Value(size)
        # In mathematics e is Euler's number, unless somebody gives it a value.
        if name == "e" and "e" not in self.own:
            return Value("torch.e" if self.loose else "e")
        if (
            name == "pi"
            and not node.parts
            and self.found is not None
            and "pi" in self.found.tensors
        ):
            self.say("π without an index is the number")
            return Value("torch.pi")
        # I, and I_n with its size, which is that of what it is added to.
        is_identity = name == "I" or (node.base == "I" and len(name) == 3)
        if is_identity and not {name, "I"} & self.own and self.loose and self.of_matrices():
            return Value("I", ATOM, 2)
        return self.sized(name)

    @property
    def pi(self) -> str:
        """The number π, also where the text has another pi, as the π_k of a mixture."""
        mine = "pi" in self.own or (self.found is not None and "pi" in self.found.tensors)
        return "torch.pi" if mine else "pi"

    def bar(self, node: Node) -> Value:
        """The conjugate of a number, the mean of a vector."""
        inner = self.value(node.only)
        plain = bare(inner.text)
        # Both are written alike: the reading that is taken is said.
        if inner.rank and not inner.axes:
            self.say(f"the bar is the mean; the conjugate of {plain} is conj({plain})")
            return Value(f"mean({plain})")
        self.say("the bar is the conjugate; the mean of x is mean(x)")
        return inner.like(f"conj({plain})", ATOM)

    def of_matrices(self) -> bool:
        """Whether the text is of matrices, so that I is the identity."""
        if self.vectors is not None:
            return True
        return any(found and len(found.shape) == 2 for found in map(self.known, sorted(self.own)))

    def size(self, name: str) -> str | None:
        """The number of the elements of a vector that has a value."""
        known = self.known(name)
        if known is None or len(known.shape) != 1 or name not in self.own:
            return None
        return str(known.shape[0])

    def sized(self, name: str) -> Value:
        """A name with its shape."""
        if name in self.assigned:
            return self.assigned[name]
        if (counted := self.count(name)) is not None:
            return counted
        if (value := self.known(name)) is not None:
            rank = len(value.shape)
            return Value(name, ATOM, rank, False, (), tuple(map(str, value.shape)))
        if self.vectors is None or name in self.limits or (name in self.own and not self.loose):
            return Value(name)
        if name in self.vectors:
            return Value(name, ATOM, 1, False, (), (f"len({name})",))
        if is_matrix(name) or name in self.indexed_matrices:
            return Value(name, ATOM, 2, False, (), (f"{name}.shape[0]", f"{name}.shape[1]"))
        return Value(name)

    def tie(self, name: str, size: str) -> None:
        r"""Note what size the N of `\sum_{i=1}^N x_i` is: `len(x)`."""
        if name not in self.own:
            self.ties.setdefault(name, size)

    def count(self, name: str) -> Value | None:
        r"""N of `\frac{1}{N} \sum_{i=1}^N x_i` as the size of x, where x has a value and N has none."""
        text = self.sizes.get(name)
        if text is None or name in self.own:
            return None
        if variables_of(text) & (self.own - self.valued - self.given):
            return None  # of what the text gives a value later
        self.say(f"{name} is {text}")
        return Value(text, ATOM if is_call(text) or " " not in text else SUM)

    def ones(self, node: Node) -> Value:
        r"""`\mathbf{1}`: what is summed, or a number for each element."""
        return Value(f"{node.text}\0", ATOM, 1)

    def labelled(self, node: Node) -> Value:
        """A formula with the indices on the left: of `y_{ij} = …`, which say the order of its dimensions."""
        if self.found is None:
            return self.value(node.only)
        self.free = tuple(letter for letter in node.text if letter in self.indices.letters)
        value = self.value(node.only)
        self.free = ()
        order = [value.axes.index(letter) for letter in node.text if letter in value.axes]
        if value.rank or order == sorted(order) or len(order) != len(value.axes):
            return value
        return value.like(transposed(value.at(ATOM), order), ATOM)

    def group(self, node: Node) -> Value:
        inner = self.value(node.only)
        if inner.text.endswith("\0"):
            return inner
        return inner.like(f"({inner.text})", ATOM)

    # -- sums and signs ------------------------------------------------------------------------------
    def sum(self, node: Node) -> Value:
        if self.found is not None:
            from gradcli.language import math_series

            math_series.check_ends(self, node)
        terms = [self.value(part) for part in node.parts]
        # Terms say what others are: in `A + I` I has the size of A, in `x + e_1` e_1 is a unit vector as
        # long as x, and in `x + 1`, with a bold 1, the vector of ones becomes the number 1, which is
        # added to each.
        terms = self.units(self.identities(terms))
        if any(t.rank and t.text[-1:] not in ("\0", "I") for t in terms):  # ones beside a vector
            terms = [t.like(t.text[:-1], ATOM) if t.text.endswith("\0") else t for t in terms]
        return self.added(terms, node)

    def added(self, terms: list[Value], node: Node) -> Value:
        for one, part in zip(terms, node.parts, strict=True):
            again = any(t.text == one.text and t.row != one.row and t.rank == 1 for t in terms)
            if one.rank == 1 and one.row and again and part.token.text == "'":
                name = one.text
                raise self.asks(f"{name}' is another {name}, or {name} transposed?", part.token,
                                f"write another letter for the other one, as {name}_2")  # fmt: skip
        self.compare(terms, node.parts)
        values, axes, rank = aligned(terms)
        matrix = next((t for t in terms if t.rank == 2 and not t.axes), None)
        if (
            matrix is not None
            and self.loose
            and any(not t.rank and not t.axes and re.fullmatch(r"[\w.]+", t.text) for t in terms)
        ):
            plain = bare(matrix.text)
            self.say(
                f"a number is added to each element of {plain}; the identity is eye({plain}.shape[0])"
            )
        text = values[0].text if values[0].level >= SUM else values[0].at(SUM)
        for sign, term in zip(node.text[1:], values[1:], strict=True):
            text += f" {sign} {term.at(PRODUCT)}"
        first = next(t for t in terms if t.rank == rank)
        return Value(text, SUM, rank, first.row, axes, first.sizes)

    def identities(self, terms: list[Value]) -> list[Value]:
        """The terms with the identity matrix at its size, which is that of another term."""
        if not any(_IDENTITY.search(t.text) and t.rank == 2 for t in terms):
            return terms
        if "I" in self.own or self.known("I") is not None:
            return terms
        # A + I has one size, that of A.
        matrices = [t for t in terms if t.rank == 2 and not _IDENTITY.search(t.text)]
        size = next((t.sizes[0] for t in matrices if t.sizes and t.sizes[0] != "*"), "")
        size = size or next((_columns(t.text) for t in matrices), "")
        if not size:
            return terms
        self.say("I is the identity matrix")
        return [t._replace(text=_IDENTITY.sub(f"eye({size})", t.text)) if t.rank == 2 else t
                for t in terms]  # fmt: skip

    def units(self, terms: list[Value]) -> list[Value]:
        """The terms with unit vectors, e_1, of the length of another vector."""
        along = re.compile(r"(?:log_)?softmax\(.*, -1\)")
        vectors = [t for t in terms if t.rank == 1 or along.fullmatch(t.text)]
        vector = next((t for t in vectors if not t.text.endswith("\0")), None)
        # e_1 beside a vector is a unit vector of its length; alone it could be any name.
        if vector is None or not self.loose or "e" in self.own:
            return terms
        found = []
        for term in terms:
            unit = re.fullmatch(r"e_(\d+|[a-z])", term.text)
            if unit and not unit[1].isdigit() and (
                self.one != "place" or unit[1] not in self.said_ones
            ):  # fmt: skip
                unit = None
            if unit and term.rank < 2 and not term.axes and term.text not in self.own:
                length = vector.sizes[0] if vector.sizes else f"len({vector.text})"
                if unit[1].isdigit():
                    self.say(f"{term.text} is a row of the identity, counted from 0")
                term = Value(f"eye({length})[{unit[1]}]", ATOM, 1, False, (), (length,))
            found.append(term)
        return found

    def neg(self, node: Node) -> Value:
        inner = self.value(node.only)
        if node.token.kind == "power":
            return inner.like(f"-{inner.text}", SUM)
        return negated(inner)

    # -- products ------------------------------------------------------------------------------------
    def product(self, node: Node) -> Value:
        """A product of any length, from the left to the right."""
        if node.text in _CHAINED and self.einstein:
            from gradcli.language import math_series

            if math_series.repeats(self, node):
                return math_series.einstein(self, node)
        # A product leans to the left; its first factor is looked for in a loop, as it may be thousands
        # deep.
        chain = [node]
        while node.text in _CHAINED and chain[-1].parts[0].kind == "product":
            before = chain[-1].parts[0]
            if before.text not in _CHAINED:
                break
            chain.append(before)
        value = self.value(chain[-1].parts[0])
        computed = self.is_computed(value) and node.text in _CHAINED
        for one in reversed(chain):
            factor = self.value(one.parts[1])
            computed |= self.is_computed(factor) and node.text in _CHAINED
            value = self.joined(one, value, factor)
        # A capital that multiplies a norm and nothing else is a number.
        self.clashes += computed and value.rank > 0 and not value.axes and self.has_capital(value)
        return value

    def is_computed(self, value: Value) -> bool:
        """Whether a value is a number that is made of vectors: a norm, a sum, a row times a column."""
        plain = not value.rank and not value.axes
        return plain and re.search(r"@|\bsum\(|norm\(|\bmean\(", value.text) is not None

    def has_capital(self, value: Value) -> bool:
        """Whether a capital stands in a text whose value nobody knows."""
        words = re.findall(r"(?<![\w.])[^\W\d]\w*", value.text)
        return any(is_matrix(word) and self.known(word) is None for word in words)

    def compare(self, terms: list[Value], parts: Sequence[Node]) -> None:
        """Count a clash where terms of different ranks are added, as a matrix and a norm.

        A small letter that is added to a vector is a vector, too, but beside data times parameters.
        """
        plain = [t for t in terms if not t.axes and not t.text.endswith("\0")]
        highest = max((t.rank for t in plain), default=0)
        for term in plain:
            simple = re.fullmatch(r"[\w.]+", term.text) and not self.has_capital(term)
            self.clashes += term.rank < highest and not (simple and not term.rank)
        columns = [t.text for t in terms if t.rank == 1 and not t.row]
        if any(_OF_WEIGHTS.search(text) or text.isidentifier() for text in columns) and not any(
            map(_OF_DATA.search, columns)
        ):
            self.columns |= self.letters(parts)

    def letters(self, parts: Sequence[Node]) -> set[str]:
        """The small letters among terms, with their indices, of which nobody knows the shape."""
        return {part.text for part in parts if part.kind == "name" and self.is_letter(part)}

    def is_letter(self, node: Node) -> bool:
        stem, _, index = node.text.partition("_")
        small = stem.islower() and (len(stem) == 1 or is_greek(stem))
        is_name = small and len(index) < 3 and node.text.isidentifier() and node.text != "e"
        known = {node.text, node.base} & (self.own | self.limits | self.scope.keys())
        return is_name and not known and self.known(node.base or node.text) is None

    def joined(self, node: Node, left: Value, right: Value) -> Value:
        """The value of one product."""
        if node.text in ("frac", "/"):
            return self.quotient(node, left, right)
        if left.text.endswith("\0") or right.text.endswith("\0"):
            return self.with_ones(left, right, node)
        # The identity times what has a shape is that: its own size need not be known.
        for one, other in ((left, right), (right, left)):
            if self.is_identity(one) and other.rank and node.text in ("", "·", "*", "@"):
                return other
        left, right = self.guessed(left, right, node)
        return self.multiplied(left, node.text, right, node.token)

    def guessed(self, left: Value, right: Value, node: Node) -> tuple[Value, Value]:
        """The factors, where a letter of no known shape stands next to a matrix or a vector."""
        # A has a value of shape (2, 2) and `b` has none: in `A b` it can only be a vector. Such a guess
        # is said, and it is made for single letters next to something of a known shape, not for longer
        # names.
        if node.text not in ("", "·", "@") or self.vectors is not None:
            return left, right
        if left.rank == 0 and right.rank == 1 and not right.row and self.is_open(left):
            if is_matrix(left.text):
                self.say(f"{left.text} is a matrix")
                left = left._replace(rank=2)
        elif left.rank == 2 and right.rank == 0 and self.is_open(right):
            rank = 2 if is_matrix(right.text) else 1
            if is_matrix(right.text) or (right.text.isascii() and len(right.text) == 1):
                self.say(f"{right.text} is a {'matrix' if rank == 2 else 'vector'}")
                right = right._replace(rank=rank)
        elif (
            node.text == "" and left.rank == right.rank == 0 and not self.own & {left.text, right.text}
            and self.loose and self.is_capital(left.text) and not is_greek(left.text) and right.text.isascii()
            and not any("for a matrix say" in remark for remark in self.remarks)
            and self.is_open(left) and self.is_open(right)
        ):  # fmt: skip
            shapes = f"--shape {left.text}=m,n --shape {right.text}={'n,k' if is_matrix(right.text) else 'n'}"
            self.say(f"{left.text} and {right.text} are numbers; for a matrix say {shapes}")
        return left, right

    def is_capital(self, name: str) -> bool:
        """Whether a name is a capital, with an index that nothing binds or without: W, W_1, W_xh."""
        stem, _, index = name.partition("_")
        free = self.found is None or not {*index} <= self.found.letters
        return is_matrix(name) or (is_matrix(stem) and 0 < len(index) < 3 and free)

    def is_open(self, value: Value) -> bool:
        """Whether a value is a letter of which nobody knows the shape."""
        return value.text.isidentifier() and self.known(value.text) is None and not value.axes

    def is_identity(self, value: Value) -> bool:
        return value.text == "I" and value.rank == 2 and "I" not in self.own

    def with_ones(self, left: Value, right: Value, node: Node) -> Value:
        r"""A product with `\mathbf{1}`: `\mathbf{1}^T x` is a sum, `b \mathbf{1}` is b for each element."""
        ones, other = (left, right) if left.text.endswith("\0") else (right, left)
        each, before = ones.like(ones.text[:-1], ones.level), ones is left
        if other.text.endswith("\0"):
            if left.rank != 1 or right.rank != 1 or left.row or not right.row:
                raise self.unknown_size(node)
            both = self.scaled(each, other.like(other.text[:-1], other.level))
            return Value(f"{both.text}\0", both.level, 2, True)  # 1 1^T, of one number
        if ones.rank == 2 and other.rank == 1 and ones.row and other.row != before:
            sum_of = self.scaled(each, Value(f"sum({bare(other.text)})"))
            return Value(f"{sum_of.text}\0", sum_of.level, 1, other.row)
        if ones.rank == 2 and other.rank:
            raise self.unknown_size(node)
        if node.text == "⊙" and other.rank:
            return self.scaled(each, other)
        if not other.rank and not other.axes:
            self.numbers |= {other.text} if self.is_open(other) else set()
            number = self.scaled(*((each, other) if before else (other, each)))
            return ones.like(f"{number.text}\0", number.level)
        if other.rank == 1 and other.row != ones.row and ones.row is before:  # 1^T x, x^T 1
            return self.scaled(each, Value(f"sum({bare(other.text)})"))
        if other.rank == 2 and ones.row is before:  # 1^T A, A 1
            dim = 0 if before else 1
            return self.scaled(each, Value(f"sum({other.text}, {dim})", ATOM, 1, before))
        if other.rank == 1 and other.row != ones.row:  # 1 b^T, b 1^T: b in each row, or column
            text = other.text if before else f"{other.at(ATOM)}[:, None]"
            rows = self.scaled(each, Value(text, other.level if before else ATOM))
            return Value(f"{rows.text}\0", rows.level, 2)
        raise self.unknown_size(node)

    def scaled(self, number: Value, value: Value) -> Value:
        """A number times a value, without a factor of 1."""
        if "1" in (number.text, value.text):
            return value if number.text == "1" else number
        return value.like(f"{number.at(PRODUCT)}*{value.at(SIGN)}", PRODUCT)

    def unknown_size(self, node: Node) -> LanguageError:
        return self.error("the size of the vector of ones is not known", node.token,
                          "write ones(3), or 1^T x for a sum")  # fmt: skip

    def quotient(self, node: Node, left: Value, right: Value) -> Value:
        below = right.at(POWER)
        if left.text.endswith("\0") and not right.rank and not right.axes:
            each = left.like(left.text[:-1], left.level)
            return left.like(f"{each.at(PRODUCT)}/{below}\0", PRODUCT)
        if right.axes or left.axes:
            (left, right), axes, rank = aligned([left, right])
            return Value(f"{left.at(PRODUCT)}/{right.at(POWER)}", PRODUCT, rank, False, axes)
        # `x/A` could be x@inv(A), inv(A)@x, or of each element: none of them is taken.
        if right.rank == 2:
            if right.square is False:
                return self.of_elements(left, "/", right)
            inverse = f"linalg.inv({bare(right.text)})"
            above = inverse if left.text == "1" else f"{left.at(PRODUCT)}@{inverse}"
            dotted = f"{self.piece(node.parts[0])} ./ {self.piece(node.parts[1])}"
            if self.vectors is not None and left.text != "1":
                raise self.error(
                    "a vector or a matrix cannot be a denominator", node.token, "as in A^{-1}b"
                )
            raise self.asks(
                f"a quotient by a matrix is {above}, or one of each element?", node.token,
                f"write an inverse, as in A^{{-1}} b, or {dotted}",
            )  # fmt: skip
        if right.rank == 1 and self.vectors is not None and self.known(bare(right.text)) is None:
            raise self.error(
                "a vector or a matrix cannot be a denominator", node.token, "as in A^{-1}b"
            )
        return left.like(f"{left.at(PRODUCT)}/{below}", PRODUCT)._replace(
            rank=max(left.rank, right.rank), sizes=left.sizes or right.sizes
        )

    def piece(self, node: Node) -> str:
        """A node as it stands in the text, for hints; "A" where that is long."""
        value = self.value(node).text
        return value if len(value) < 20 else "A"

    def of_elements(self, left: Value, operation: str, right: Value) -> Value:
        (left, right), axes, rank = aligned([left, right])
        strength = SIGN if operation == "*" else POWER
        text = f"{left.at(PRODUCT)}{operation}{right.at(strength)}"
        larger = left if left.rank >= right.rank else right
        return Value(text, PRODUCT, rank, larger.row, axes, larger.sizes)

    def multiplied(self, left: Value, sign: str, right: Value, token: Token) -> Value:
        """A product by the shapes of its factors."""
        if sign == "//":
            self.say("// is the quotient without its rest; a fraction has one /")
        if sign in ("⊙", "⊘", "%", "//"):
            return self.of_elements(left, {"⊙": "*", "⊘": "/"}.get(sign, f" {sign} "), right)
        if sign == "⊗":
            return self.tensor_product(left, right, token)
        if left.axes or right.axes:
            from gradcli.language import math_series

            return math_series.product(self, left, sign, right, token)
        if not (left.rank and right.rank):
            return self.of_elements(left, "@" if sign == "@" else "*", right)
        pair = left.shape, right.shape
        vectors = left.rank == right.rank == 1
        if vectors and sign == "×" and left.row == right.row:
            return self.cross(left, right, token)
        if vectors and left.row == right.row and sign in ("·", "@"):
            return Value(f"{left.at(PRODUCT)}@{right.at(POWER)}", PRODUCT)
        found = _PRODUCTS.get(pair)
        if pair == ("column", "matrix") and self.is_row(left, right):
            self.say(f"{bare(left.text)} is a row")
            left = left._replace(row=True)
            found = (1, True)
        if found is None:
            return self.no_product(left, sign, right, token)
        # `*` between two matrices is typed by people who mean NumPy's product of each element, and by
        # people who mean a product of matrices. Both run, with other numbers: so it is asked.
        if sign == "*" and self.vectors is None:
            one, two = bare(left.text), bare(right.text)
            raise self.asks(
                f"`*` of a {pair[0]} and a {pair[1]} is their product, or one of each element?",
                token, f"write {one} @ {two}, or {one} .* {two}",
            )  # fmt: skip
        rank, row = found
        sizes = (
            (*left.sizes[: left.rank - 1], *right.sizes[1:]) if left.sizes and right.sizes else ()
        )
        if pair == ("column", "row"):
            return Value(
                f"outer({left.text}, {right.text})", ATOM, 2, False, (), left.sizes + right.sizes
            )
        inner = left.sizes[-1:] + right.sizes[:1]
        if len(inner) == 2 and all(s.isdigit() for s in inner) and inner[0] != inner[1]:
            return self.mismatch(left, right, token)
        text = f"{left.at(PRODUCT)}@{right.at(POWER)}"
        # diag(v)@x is v*x, without a matrix of n² elements.
        if pair == ("matrix", "column") and (found_diagonal := _diagonal(text)) is not None:
            text = f"{found_diagonal[0]}*{found_diagonal[1]}"
        return Value(text, PRODUCT, rank, row, (), sizes if len(sizes) == rank else ())

    def is_row(self, left: Value, right: Value) -> bool:
        """Whether a vector before a matrix can only be a row of it: the x of `x W + b`."""
        sizes = (*left.sizes[:1], *right.sizes[:1])
        return len(sizes) == 2 and all(s.isdigit() for s in sizes) and sizes[0] == sizes[1]

    def mismatch(self, left: Value, right: Value, token: Token) -> Value:
        shapes = [f"({', '.join(v.sizes)})" for v in (left, right)]
        raise self.error(
            f"this is not a product of matrices: the shapes are {shapes[0]} and {shapes[1]}", token,
            f"transpose one of them, or write {bare(left.text)} .* {bare(right.text)}", "shape",
        )  # fmt: skip

    def no_product(self, left: Value, sign: str, right: Value, token: Token) -> Value:
        """Two columns: of each element where they are values; else nothing that has a meaning."""
        if left.rank > 2 or right.rank > 2:
            return self.of_elements(left, "*", right)
        if self.vectors is None and left.rank == right.rank == 1 and not (left.row or right.row):
            one, two = left.at(SIGN), right.at(SIGN)
            if sign != "*":
                self.say(
                    f"{one}*{two} is taken element by element; the scalar product is {one} · {two}"
                )
            return self.of_elements(left, "*", right)
        raise self.error(
            f"a {left.shape} times a {right.shape} is not a product", token,
            "transpose one of them: x^T y, or x y^T; for each element x .* y",
        )  # fmt: skip

    def cross(self, left: Value, right: Value, token: Token) -> Value:
        sizes = [v.sizes[0] for v in (left, right) if v.sizes and v.sizes[0].isdigit()]
        if any(size != "3" for size in sizes):
            raise self.error(
                "a × b is of two vectors of three elements each", token, "x · y is their scalar product",
                "shape",
            )  # fmt: skip
        return Value(
            f"linalg.cross({bare(left.text)}, {bare(right.text)})", ATOM, 1, False, (), ("3",)
        )

    def tensor_product(self, left: Value, right: Value, token: Token) -> Value:
        one, two = bare(left.text), bare(right.text)
        if left.rank <= 1 and right.rank <= 1 and (left.rank or right.rank):
            self.say(
                f"{one} ⊗ {two} is the matrix of all products; in one row it is kron({one}, {two})"
            )
            sizes = left.sizes + right.sizes
            return Value(
                f"outer({one}, {two})", ATOM, 2, False, (), sizes if len(sizes) == 2 else ()
            )
        return Value(f"kron({one}, {two})", ATOM, max(left.rank, right.rank))

    # -- powers --------------------------------------------------------------------------------------
    def power(self, node: Node) -> Value:
        base, exponent = node.parts
        if base.kind == "name" and base.text == "e" and "e" not in self.own:
            return self.exponential(exponent, node)
        lower, upper = self.value(base), self.value(exponent)
        each = node.text == "⊙"
        if each and base.kind == "call" and lower.text.startswith("linalg.") and lower.rank == 2:
            each = False
        if exponent.text == "+" and lower.rank != 2:
            raise self.error(
                "this is the pseudo-inverse of a matrix, or a value is missing", node.token
            )
        if lower.rank == 2 and not each and not lower.axes:
            found = self.matrix_power(lower, upper, node)
            if found is not None:
                return found
        elif upper.rank == 2 and node.text != "⊙" and upper.square is not False and not upper.axes:
            raise self.asks(
                "a power of a number to a matrix is a matrix function, or of each element?", node.token,
                f"write e^{{\\ln({lower.text}) {bare(upper.text)}}}, or {lower.text} .^ {upper.at(ATOM)}",
            )  # fmt: skip
        elif upper.text == "-1" and is_matrix(lower.text) and self.is_open(lower) and self.loose:
            inverse = f"linalg.inv({lower.text})"
            self.say(f"{lower.text} is a number; the inverse of a matrix is {inverse}")
        if lower.rank == 1 and node.text != "⊙" and upper.text == "2" and self.is_arrow(base):
            return Value(f"{lower.at(ATOM)}@{lower.at(ATOM)}", PRODUCT)
        (lower, upper), axes, rank = aligned([lower, upper])
        text = f"{lower.at(ATOM)}**{upper.at(SIGN)}"
        larger = lower if lower.rank >= upper.rank else upper
        return Value(text, POWER, rank, larger.row, axes, larger.sizes)

    def is_arrow(self, node: Node) -> bool:
        r"""Whether a node is `\vec{x}`, whose square is the scalar product with itself."""
        return node.kind == "name" and node.token.font == "vec"

    def exponential(self, exponent: Node, node: Node) -> Value:
        """A power of e."""
        inner = self.value(exponent)
        whole = inner.rank == 2 and inner.square is not False and not inner.axes
        if whole and node.text != "⊙":
            return Value(f"linalg.matrix_exp({bare(inner.text)})", ATOM, 2, False, (), inner.sizes)
        return inner.like(f"exp({bare(inner.text)})", ATOM)

    def matrix_power(self, base: Value, exponent: Value, node: Node) -> Value | None:
        """The power of a square matrix; None if each element is raised, for it is not square."""
        shape = Value("", ATOM, 2, False, (), base.sizes)
        if exponent.text in ("-1", "(-1)"):
            if base.square is False:
                raise self.error("only a square matrix has an inverse", node.token,
                                 f"linalg.pinv({bare(base.text)})", "shape")  # fmt: skip
            return shape.like(f"linalg.inv({bare(base.text)})", ATOM)
        raised = node.parts[1]
        if raised.kind == "raw" and raised.text == "+":
            text = f"linalg.pinv({bare(base.text)})"
            return Value(text, ATOM, 2, False, (), base.sizes[::-1])
        if raised.kind == "neg" and raised.only.text == "T" and "T" not in self.own:
            inverse = Value(
                f"linalg.inv({bare(base.text)}).T", ATOM, 2, False, (), base.sizes[::-1]
            )
            return inverse
        if base.square is False:
            self.say(f"{bare(base.text)} is not square: each element is raised")
            return None
        number = re.fullmatch(r"\(?(-?\d+)\)?", exponent.text)
        known = self.known(bare(exponent.text))
        text = number[1] if number else exponent.text
        if not number and known is not None and known.number is not None:
            text = str(known.number)
        if re.search(r"[/.]", text):
            raise self.asks(
                "a power of a matrix that is not a whole number: a matrix function, or of each element?",
                node.token, f"write {base.at(ATOM)} .^ {exponent.at(ATOM)} for each element",
            )  # fmt: skip
        return shape.like(f"linalg.matrix_power({bare(base.text)}, {text})", ATOM)

    def root(self, node: Node) -> Value:
        inner = self.value(node.only)
        if inner.rank == 2 and not inner.axes and inner.square is not False:
            raise self.of_each(node, "sqrt", inner)
        degree = self.value(node.parts[1]) if len(node.parts) > 1 else None
        if degree is None or degree.text == "2":
            return inner.like(f"sqrt({bare(inner.text)})", ATOM)
        if degree.text.isdigit() and int(degree.text) % 2:  # real below 0, too
            return self.odd_root(node.only, degree.text)
        return inner.like(f"{inner.at(ATOM)}**(1/{degree.at(POWER)})", POWER)

    def odd_root(self, node: Node, degree: str) -> Value:
        """The cube root of -8 is -2 on paper; (-8)**(1/3) is NaN. So a sign is taken out, if there is one."""
        inner = self.value(node)
        if is_never_negative(node) and "e" not in self.own:
            return inner.like(f"{inner.at(ATOM)}**(1/{degree})", POWER)
        plain = bare(inner.text)
        return inner.like(f"sign({plain})*abs({plain})**(1/{degree})", PRODUCT)

    def of_each(self, node: Node, name: str, inner: Value) -> LanguageError:
        return self.asks(
            f"{name} of a matrix is a matrix function, or {name} of each element?", node.token,
            f"write {name}.({bare(inner.text)}) for each element"
            + (f", e^{{{bare(inner.text)}}} for the matrix" if name == "exp" else ""),
        )  # fmt: skip

    def transpose(self, node: Node) -> Value:
        inner = self.value(node.only)
        known = self.known(inner.text) if node.only.kind == "name" else None
        if known is not None and not known.shape and node.token.text == "'":
            name = inner.text
            raise self.asks(f"{name}' is a derivative, or transposed? {name} is a number", node.token,
                            f"write {name}'(t) or \\dot {name} for a derivative")  # fmt: skip
        if inner.rank == 2:
            return Value(f"{inner.at(ATOM)}.T", ATOM, 2, False, inner.axes, inner.sizes[::-1])
        return inner._replace(rank=1, row=not inner.row)

    def factorial(self, node: Node) -> Value:
        inner = self.value(node.only)
        exact = re.fullmatch(r"1?\d|20", inner.text)  # an int64
        if exact:
            return Value(str(factorial(int(inner.text))))
        argument = f"{bare(inner.text)} + 1"
        text = self.gamma(argument) if self.loose else f"exp(lgamma({argument}))"
        return inner.like(text, ATOM)

    def number(self, word: str) -> float | None:
        """What number a word is, or has for its value if that is a whole one; None where nobody knows."""
        if re.fullmatch(r"\d+\.?\d*|\.\d+", word):
            return float(word)
        known = self.known(word) if word.isidentifier() else None
        return None if known is None or known.number is None else float(known.number)

    def gamma(self, argument: str) -> str:
        """Γ, which PyTorch has as the logarithm of its absolute value alone."""
        above = f"exp(lgamma({argument}))"
        words = re.findall(r"[\w.]+", argument)
        numbers = [self.number(word) for word in words]
        if re.fullmatch(r"-?[\w.]+(?: [+-] [\w.]+)*", argument) and None not in numbers:
            signs = [
                argument[:1] if argument[0] == "-" else "+",
                *re.findall(r" ([+-]) ", argument),
            ]
            terms = zip(signs, numbers, strict=True)
            if sum(float(f"{sign}1") * float(n or 0) for sign, n in terms) > 0:
                return above
        elif not any(word in self.own for word in words):
            self.say("exp(lgamma(x)) is Γ of positive numbers")
            return above
        # Between -1 and 0 it is negative, between -2 and -1 positive, and so on.
        return f"where({argument} < 0, cos(pi*floor({argument})), 1)*{above}"

    def degrees(self, node: Node) -> Value:
        inner = self.value(node.only)
        return inner.like(f"deg2rad({bare(inner.text)})", ATOM)

    def percent(self, node: Node) -> Value:
        inner = self.value(node.only)
        return inner.like(f"{inner.at(PRODUCT)}/100", PRODUCT)

    # -- functions -----------------------------------------------------------------------------------
    def abs(self, node: Node) -> Value:
        inner = self.value(node.only)
        plain = bare(inner.text)
        if inner.rank == 1 and inner.axes and node.only.token.font:  # |\\mathbf{r}_i|
            from gradcli.language import math_series

            return math_series.norm(self, inner, "", node)
        if inner.axes or not inner.rank:
            return inner.like(f"abs({inner.text})", ATOM)
        if inner.rank == 2 and inner.square is not False:
            self.say(f"|{plain}| is the determinant; of each element it is abs({plain})")
            return Value(f"det({plain})")
        if inner.rank == 1 and (self.is_arrow(node.only) or node.only.token.font):
            return Value(f"linalg.norm({plain})")
        if self.vectors is None or inner.rank == 1:
            self.say(f"|{plain}| is taken element by element; the length is ‖{plain}‖")
        return inner.like(f"abs({inner.text})", ATOM)

    def norm(self, node: Node) -> Value:
        # `\|x - \mu\|` and `\|x_i\|` are of vectors alone.
        body = node.only.only if node.only.kind == "group" else node.only
        terms = body.parts if body.kind == "sum" else (body,)
        if self.vectors is not None and len(self.letters(terms)) == len(terms):
            self.columns |= self.letters(terms)
        inner = self.value(node.only)
        order = self.order(node.parts[1], inner) if len(node.parts) > 1 else ""
        if inner.axes:
            from gradcli.language import math_series

            return math_series.norm(self, inner, order, node)
        self.clashes += not inner.rank and self.has_capital(inner)
        matrix = inner.rank == 2
        if order == "F" or (order == "2" and not matrix):
            order = ""
        elif matrix and order == "" and len(node.parts) == 1 and inner.sizes and self.loose:
            plain = bare(inner.text)
            self.say(f"‖{plain}‖ is the Frobenius norm; the largest singular value is ‖{plain}‖_2")
        if order.startswith("="):  # a norm by a letter
            return Value(order[1:], POWER)
        return Value(f"linalg.norm({inner.text}{f', {order}' if order else ''})")

    def order(self, node: Node, inner: Value) -> str:
        """The order of a norm, as the language has it; "=" and all of the text where that has none."""
        text = node.text
        if node.kind == "name" and text in ("F", "Fro", "fro") and text not in self.own:
            return "F"
        if node.kind == "product" and node.text == "*":
            return "'nuc'"
        value = bare(self.value(node).text)
        if re.fullmatch(r"inf|-inf|\d+(?:\.\d+)?|\d+/\d+", value):
            return value
        known = self.known(value)
        if known is not None and known.number is not None:
            return str(known.number)
        if is_matrix(value) or (known is not None and len(known.shape) == 2):
            self.say(f"‖x‖_{value} is the norm by the matrix {value}")
            return f"=sqrt({inner.at(ATOM)}@{value}@{inner.at(ATOM)})"
        if value.isidentifier():
            self.numbers.add(value)
        return f"=sum(abs({bare(inner.text)})**{value})**(1/{value})"

    def normal(self, node: Node) -> Value:
        """The normal density at x, by its mean and its variance, or the matrix of covariances."""
        x, mean, variance = (self.value(part) for part in node.parts)
        if variance.rank == 2 and not (x.axes or mean.axes or variance.axes):
            if not (x.rank or mean.rank) or "eye(" in variance.text or self.is_identity(variance):
                raise self.error("the size of this matrix of covariances is not known", node.token)
            gap = f"({x.text} - {mean.at(PRODUCT)})"
            matrix = bare(variance.text)
            text = f"exp(-1/2*{gap}@linalg.inv({matrix})@{gap})/sqrt(det(2*{self.pi}*{variance.at(POWER)}))"
            return Value(text, PRODUCT)
        if variance.rank == 2 or "I" in re.findall(r"\w+", variance.text):
            raise self.error(
                "the density of many vectors is not read", node.token, "write it for one of them: x"
            )
        (x, mean, variance), axes, rank = aligned([x, mean, variance])
        if rank:
            self.say("the density is that of each element")
        gap, below = f"({x.text} - {mean.at(PRODUCT)})", variance.at(POWER)
        text = f"exp(-{gap}**2/(2*{below}))/sqrt(2*{self.pi}*{below})"
        return Value(text, PRODUCT, rank, False, axes, x.sizes)

    def inner(self, node: Node) -> Value:
        left, right = (self.value(part) for part in node.parts)
        if left.rank == right.rank == 1 and not (left.axes or right.axes):
            return Value(f"{left.at(PRODUCT)}@{right.at(POWER)}", PRODUCT)
        if left.axes or right.axes:
            from gradcli.language import math_series

            return math_series.product(self, left, "·", right, node.token)
        return Value(f"sum({left.at(PRODUCT)}*{right.at(SIGN)})")

    def call(self, node: Node) -> Value:
        """A call as the language has it."""
        if node.base.startswith("along "):
            return self.along(node)
        if node.base == "bar" and (row := self.mean_of_rows(node)) is not None:
            return row
        name = node.text.removesuffix(".")
        if name == "cbrt" and len(node.parts) == 1 and is_never_negative(node.only):
            return self.odd_root(node.only, "3")
        parts = node.parts
        values = [self.value(part) for part in parts]
        plain = [v for v, part in zip(values, parts, strict=True) if part.kind != "keyword"]
        each = node.text.endswith(".")
        square = bool(plain) and plain[0].rank == 2 and plain[0].square is not False
        if square and not plain[0].axes and name in OF_MATRICES and not each and self.loose:
            raise self.of_each(node, name, plain[0])
        axes: tuple[str, ...] = ()
        if any(v.axes for v in plain):
            # Arguments that depend on different indices are given dimensions of size 1, so that they
            # broadcast: in `max(x_i, y_j)` x becomes x[:, None], and the result has i and j.
            spread, axes, _ = aligned(plain)
            kept = iter(spread)
            values = [
                v if p.kind == "keyword" else next(kept) for v, p in zip(values, parts, strict=True)
            ]
            plain = spread
        texts = [v.text for v in values]
        if node.base == "base":
            base = texts.pop()
            texts += [base] if base not in ("", "e", "torch.e") else []
        alone = len(texts) == 1 and "(" not in node.token.text
        if alone and name not in self.own:
            texts = [bare(texts[0])]
        name = self.function_name(name)
        if name in ALONG and len(values) == 1 and self.loose and not axes:
            if plain[0].rank == 2:
                self.say(f"{name} goes along the last dimension")
            texts.append(ALONG[name])
        if name == "vec":
            return Value(
                f"flatten({plain[0].at(ATOM)}.T)" if plain[0].rank == 2 else texts[0], ATOM, 1
            )
        if name == "binom" and len(texts) == 2 and (exact := _binomial(*texts)) is not None:
            return Value(exact, ATOM if exact.isdigit() else PRODUCT, 0, False, axes)
        if name == "max" and self.loose and len(values) == 2 and "0" in texts:
            name = "relu"  # as machine learning calls max(0, x), with 0 for its slope at 0
            texts.remove("0")
            plain = [v for v in plain if v.text != "0"] or plain[:1]
            texts = [bare(text) for text in texts]
        written = called(name, texts, self.own, elementwise=self.elementwise)
        if (
            self.loose
            and written.startswith("exp(lgamma(")
            and name.lower() in ("gamma", "factorial", "fact")
        ):
            written = self.gamma(written.removeprefix("exp(lgamma(").removesuffix("))"))
        level = ATOM if is_call(written) else PRODUCT  # another function's formula
        return self.shaped(Value(written, level, 0, False, axes), name, plain, len(texts))

    def mean_of_rows(self, node: Node) -> Value | None:
        r"""The mean vector of the x_i, where these are vectors: of `\bar{x}`; None where they are numbers."""
        name = node.only.text
        known = self.known(name)
        rows = name in self.matrices or any(v.startswith(f"{name}_") for v in self.vectors or ())
        if not rows and (known is None or len(known.shape) != 2):
            return None
        return Value(f"mean({name}, 0)", ATOM, 1)

    def along(self, node: Node) -> Value:
        """`mean_i(A)`: a function along the dimension of that letter."""
        inner, dim = self.plain(node.only), int(node.base.removeprefix("along "))
        if inner.rank <= dim:
            what = "no index" if not inner.rank else f"{inner.rank} dimensions"
            raise self.error(f"{bare(inner.text)} has {what} here", node.token, kind="shape")
        kept = node.text in ("softmax", "log_softmax", "cumsum", "cumprod")
        rank = inner.rank if kept else inner.rank - 1
        return Value(f"{node.text}({bare(inner.text)}, {dim})", ATOM, rank)

    def shaped(self, value: Value, name: str, plain: list[Value], count: int) -> Value:
        """The value of a function with its shape."""
        first = plain[0] if plain else Value("")
        if name in ("max", "min") and len(plain) == 2 and not value.axes:  # of each element
            largest = max(plain, key=lambda v: v.rank)
            return value._replace(rank=largest.rank, row=largest.row, sizes=largest.sizes)
        if name in NUMBERS:
            self.clashes += name in OF_ARRAYS and not first.rank and self.has_capital(first)
            return value
        if name in MATRIX_VALUED:
            return value._replace(
                rank=2, sizes=first.sizes if "inv" in name or "exp" in name else ()
            )
        if name in SWAPS and first.rank in (1, 2):
            size = first.sizes[:1]
            return value._replace(rank=3 - first.rank, sizes=size * (3 - first.rank))
        if name in ("linalg.cross", "cross"):
            return value._replace(rank=1, sizes=("3",))
        if count == 1 or value.axes:
            return value._replace(rank=first.rank, row=first.row, sizes=first.sizes)
        ranks = {v.rank for v in plain}
        return value._replace(rank=first.rank, sizes=first.sizes) if len(ranks) == 1 else value

    def function_name(self, name: str) -> str:
        """How a function is called here."""
        name = RENAMED.get(name, name)
        here = re.sub(r"^F\.", "nn.functional.", name.removeprefix("torch."))
        if name != here and names.functional(here) is not None:
            name = here
        if not is_function(name) and not names.is_known(here):
            short = name.rpartition(".")[2]
            name = short if short in FUNCTIONS else known_as(name) or name
        return name

    def apply(self, node: Node) -> Value:
        function, *arguments = (self.value(part) for part in node.parts)
        if any(a.axes for a in arguments) and (found := self.put_in(node)) is not None:
            inner = self.value(found)
            return inner if inner.level == ATOM else inner.like(f"({inner.text})", ATOM)
        arguments, axes, _ = aligned(arguments)
        return Value(
            f"{function.text}({', '.join(a.text for a in arguments)})", ATOM, 0, False, axes
        )

    def put_in(self, node: Node) -> Node | None:
        r"""The body of a function of the text with elements as its arguments: of the h of `\sum_i h(x_i)`.

        With `h(x) = \theta^T x` the call of all x_i at once would be `theta@x`, and not `x@theta`.
        """
        defined = self.bodies.get(node.parts[0].text)
        if defined is None or len(defined[0]) != len(node.parts) - 1:
            return None
        self.inlined.add(node.parts[0].text)
        given = dict(zip(defined[0], node.parts[1:], strict=True))
        if self.vectors is not None:
            self.vectors |= {arg.text for name, arg in given.items() if name in self.vectors}

        def replaced(part: Node) -> Node:
            if part.kind == "name" and not part.parts and part.text in given:
                return given[part.text]
            return part._replace(parts=tuple(map(replaced, part.parts)))

        return replaced(defined[1])

    def prime(self, node: Node) -> Value:
        if len(node.parts) == 1 and node.base == "1" and self.is_of_elements(node.only):
            return self.slope(node)
        listed = ", ".join(self.plain(part).text for part in node.parts)
        if len(node.parts) == 1 and not re.search(r"[^\W\d]", re.sub(_OF_NUMBERS, "", listed)):
            # f'(2): func.grad differentiates by tensors
            whole = re.fullmatch(r"-?\d+", listed)
            real = whole or re.search(r"[./]|pi", listed)
            listed = f"tensor({listed}.)" if whole else f"tensor({listed})"
            listed = listed if real else f"{listed}.double()"
        count = int(node.base)
        return Value("func.grad(" * count + node.text + ")" * count + f"({listed})")

    def is_of_elements(self, argument: Node) -> bool:
        """Whether what stands in a bracket is a vector, or may be one."""
        value = self.value(argument)
        return self.vectors is not None or value.rank > 0 or bool(value.axes)

    def slope(self, node: Node) -> Value:
        r"""`\sigma'(z)` of vectors: the derivative of each element."""
        inner = self.value(node.only)
        plain, name = bare(inner.text), {"ReLU": "relu"}.get(node.text, node.text)
        if name in self.own or name not in _SLOPES:
            return inner.like(f"func.grad(lambda t: sum({name}(t)))({plain})", ATOM)
        text, level = _SLOPES[name]
        return inner.like(text.format(plain), level)

    def attribute(self, node: Node) -> Value:
        """`x.name` or `x.name(…)`; a function of that name that is no method is called on x."""
        owner, *arguments = map(self.plain, node.parts)
        if not node.base:
            return self.attribute_shape(owner, node.text)
        from gradcli.engine.registry import table

        texts = [v.text for v in arguments]
        known = node.text in names.TENSOR_ATTRIBUTES or node.text in table.methods()
        if not known and is_function(node.text):
            text = called(
                self.function_name(node.text), [bare(owner.text), *texts], self.own,
                elementwise=self.elementwise,
            )  # fmt: skip
            return Value(text, ATOM if is_call(text) else PRODUCT)
        return Value(f"{owner.at(ATOM)}.{node.text}({', '.join(texts)})")

    def attribute_shape(self, owner: Value, name: str) -> Value:
        text = f"{owner.at(ATOM)}.{name}"
        if name in ("T", "mT") and owner.rank == 2:
            return Value(text, ATOM, 2, False, owner.axes, owner.sizes[::-1])
        return Value(text)

    # -- the rest ------------------------------------------------------------------------------------
    def subscript(self, node: Node) -> Value:
        return Value(f"{self.plain(node.only).at(ATOM)}{node.text}")

    def keyword(self, node: Node) -> Value:
        return weak(f"{node.text}={self.plain(node.only).text}")

    def function(self, node: Node) -> Value:
        return weak(f"{node.text}: {self.plain(node.only).text}")

    def values(self, node: Node) -> Value:
        return weak(", ".join(self.value(part).text for part in node.parts))

    def choice(self, node: Node) -> Value:
        first, condition, other = (self.plain(part).text for part in node.parts)
        return weak(f"{first} if {condition} else {other}")

    def logical(self, node: Node) -> Value:
        parts = []
        for word, part in zip(node.text.split("|"), node.parts, strict=True):
            negation, _, joint = word.rpartition(" ")
            parts.append(
                f"{negation} " * bool(negation) + self.value(part).text + f" {joint}" * bool(joint)
            )
        return weak(" ".join(parts))

    def relation(self, node: Node) -> Value:
        left, right = (self.value(part) for part in node.parts)
        (left, right), axes, rank = aligned([left, right])
        text = f"{left.text} {node.text} {right.text}"
        return Value(text, SUM, rank, False, axes)

    def cases(self, node: Node) -> Value:
        values = [self.value(part) for part in node.parts[::2]]
        conditions = [self.value(p) if p.text != "otherwise" else None for p in node.parts[1::2]]
        everything, axes, rank = aligned([*values, *(c for c in conditions if c is not None)])
        values, spread = everything[: len(values)], iter(everything[len(values) :])
        # A choice without "otherwise" has no value elsewhere. The cases are nested from the last one:
        # where(c1, v1, where(c2, v2, nan)), so that the first condition that holds decides.
        text = "nan" if conditions[-1] is not None else ""
        pairs = [
            (v, next(spread) if c is not None else None)
            for v, c in zip(values, conditions, strict=True)
        ]
        for value, condition in reversed(pairs):
            if condition is None:
                text = value.text
            else:
                text = f"where({condition.text}, {value.text}, {text})"
        return Value(text, ATOM, rank, False, axes)

    def several(self, node: Node) -> Value:
        return Value(f"[{', '.join(self.plain(part).text for part in node.parts)}]")

    def matrix(self, node: Node) -> Value:
        cells = [self.plain(part).text for part in node.parts]
        width = int(node.text)
        rows = [cells[i : i + width] for i in range(0, len(cells), width)]
        numbers = all(re.fullmatch(_NUMBER, cell) for cell in cells)
        if not numbers and not self.loose:
            raise self.error("a matrix is one of numbers here", node.token)
        if node.base != "[;]" and (width == 1 or len(rows) == 1):  # a column or a row is a vector
            return Value(_vector(cells, numbers), ATOM, 1, width > 1, (), (str(len(cells)),))
        if numbers:
            lines = [", ".join(map(_real, row)) for row in rows]
            text = f"tensor([{', '.join(f'[{line}]' for line in lines)}])"
        else:
            text = f"stack([{', '.join(_vector(row, False) for row in rows)}])"
        return Value(text, ATOM, 2, False, (), (str(len(rows)), str(width)))

    # -- derivatives ---------------------------------------------------------------------------------
    def derivative(self, node: Node) -> Value:
        """A derivative that is a part of a text: that of a function at the variable."""
        variables = node.text.split()
        inner = node.only.only if node.only.kind == "group" else node.only
        if inner.kind == "integral":
            from gradcli.language import math_calculus

            found = math_calculus.by_limit(self, inner, variables[-1])
            if found is not None:
                return self.differentiated(found, variables[:-1])
        return self.differentiated(self.value(node.only), variables)

    def differentiated(self, body: Value, variables: list[str]) -> Value:
        text, shape = body.text, Value("")
        words = {*re.findall(r"(?<![\w.])[^\W\d]\w*", text)}
        # x = t^2; y = t^3; dy/dx: both have values, and y does not know of x
        if variables and words and words <= self.given and variables[0] in self.given - words:
            y, x = text, variables[0]
            raise LanguageError(
                f"{y} and {x} are computed here, and {y} is no function of {x}",
                source=self.source,
                hint=rf"along a curve of t it is \frac{{d{y}}}{{dt}}/\frac{{d{x}}}{{dt}}, which "
                "gradcli simplify --math reads",
            )
        for name in reversed(variables):
            found = self.sized(name.removesuffix("^2"))
            if name.endswith("^2"):
                return self.by_square(body, variables, name.removesuffix("^2"))
            if shape.rank and not body.rank:  # a gradient is differentiated again: a Hessian
                text = f"func.jacrev(lambda {name}: {text})({name})"
                shape = Value("", ATOM, shape.rank + found.rank)
                continue
            if found.rank or body.rank:
                text, shape = f"sum({text})", found
            text = f"func.grad(lambda {name}: {text})({name})"
        return shape.like(text, ATOM) if variables else body

    def by_square(self, body: Value, variables: list[str], name: str) -> Value:
        r"""`\frac{\partial}{\partial\sigma^2}` in a text: at the value of sigma**2."""
        words = {*re.findall(r"\w+", body.text)}
        letter = letter_for(words | self.own)
        try:
            text = with_letter(body.text, name, letter).text
        except NoSquare as error:
            raise LanguageError(
                f"a derivative by {name}^2 is not read: {error}",
                source=self.source,
                hint=remedy(name),
            ) from None
        if len(variables) > 1 or body.rank:
            raise LanguageError(
                f"a derivative by {name}^2 is one of a number, once", source=self.source,
                hint=remedy(name),
            )  # fmt: skip
        return Value(f"func.grad(lambda {letter}: {text})({name}**2)")

    def nabla(self, node: Node) -> Value:
        body = node.only
        function, *at = body.parts if body.kind == "apply" else (body,)
        if function.kind == "name" and function.text in self.bodies and node.text == "grad":
            parameters = self.bodies[function.text][0]
            if len(at) in (0, len(parameters)) and not node.base:
                return self.gradient(function.text, [self.plain(p).text for p in at] or parameters)
        first = _NABLA_FIRST.match(self.source)
        if first and re.search(r"[^+\-]\s*[+\-]", _outside_brackets(first[2])):
            # the command takes the ∇ before all of it, in brackets
            raise self.error(
                "∇ of the first term alone, or of all of it?", node.token,
                f"of all of it: {first[1].strip()} [{first[2].strip()}]",
            )  # fmt: skip
        shown = "x**2 + y**2"
        if not (body.kind == "name" and body.text not in self.own):
            shown = bare(self.value(body).text)
        elif node.text in ("div", "curl"):
            shown = "stack([x**2, x*y])" if node.text == "div" else "stack([y*z, x*z, x*y])"
        hint = f'gradcli diff "{shown}" --operator {node.text}'
        if node.base:
            hint = f'gradcli diff "{shown}" --wrt {node.base}'
        raise self.error("∇ of a formula needs the command diff", node.token, hint)

    def gradient(self, function: str, at: list[str]) -> Value:
        """The gradient of a function that the text defines, at a point."""
        # func.grad differentiates by tensors
        at = [
            f"tensor({text}).double()" if re.fullmatch(r"-?[\d.]+", text) else text for text in at
        ]
        if len(at) == 1:
            return Value(f"func.grad({function})({at[0]})")
        numbers = ", ".join(map(str, range(len(at))))
        each = f"func.grad({function}, argnums=({numbers}))({', '.join(at)})"
        return Value(f"stack({each})", rank=1)

    def integral(self, node: Node) -> Value:
        from gradcli.language import math_calculus

        return math_calculus.integral(self, node)

    def limit(self, node: Node) -> Value:
        from gradcli.language import math_calculus

        return math_calculus.limit(self, node)

    def elements(self, node: Node) -> Value:
        """`[x_i A_ij]_ij`: the array of these elements."""
        # Inside of the brackets these letters are dimensions, even where a sum around binds the same
        # ones.
        outer = self.scope
        self.scope = {k: axis for k, axis in outer.items() if k not in node.text}
        inner = self.value(node.only)
        self.scope = outer
        if inner.rank or set(inner.axes) != set(node.text):
            raise self.error(
                f"the elements in these brackets do not depend on {', '.join(node.text)}, or not alone",
                node.token,
            )
        order = [inner.axes.index(letter) for letter in node.text]
        turned = order != sorted(order)
        text = transposed(inner.at(ATOM), order) if turned else inner.text
        return Value(text, ATOM if turned else inner.level, len(order))

    def element(self, node: Node) -> Value:
        """`(A x)_i`: an element of what has as many dimensions."""
        inner = self.value(node.only)
        letters = node.text
        if letters.isdigit():
            return self.numbered_element(node, inner)
        free = self.found is not None and set(letters) <= self.indices.letters
        if len(letters) == 1 and not free and letters not in self.scope:
            found = self.one_element(node, inner)
            if found is not None:
                return found
        has_elements = inner.rank == len(letters) or (not inner.rank and self.may_be_array(inner))
        if not free or not has_elements:
            what = {0: "a number", 1: "a vector", 2: "a matrix"}[inner.rank]
            raise self.error(
                f"{bare(inner.text)} is {what}, and has no element {','.join(letters)}"
                if free else "the index of an expression is not supported: give it a name",
                node.token,
            )  # fmt: skip
        from gradcli.language import math_series

        return math_series.element_of(self, node, inner)

    def numbered_element(self, node: Node, inner: Value) -> Value:
        """`(A x)_1`, `(A^T A)_{12}`: an element by its number."""
        first = 1 if self.found is None else self.found.first
        digits = [*node.text] if len(node.text) == inner.rank else [node.text]
        places = [int(digit) - first for digit in digits]
        if inner.axes or min(places) < 0 or len(places) != (inner.rank or 1) or (
            not inner.rank and not self.may_be_array(inner)
        ):  # fmt: skip
            raise self.error(f"{bare(inner.text)} has no element {node.text} here", node.token)
        text = f"{inner.at(ATOM)}[{', '.join(map(str, places))}]"
        self.say(f"element {node.text} is counted from {first}")
        return Value(text)

    def may_be_array(self, value: Value) -> bool:
        """Whether a value of which no shape is known may have elements: it is of names without values."""
        words = re.findall(r"(?<![\w.])[^\W\d]\w*(?!\w*\()", value.text)
        is_open = any(self.known(word) is None and word not in self.limits for word in words)
        return is_open and not self.is_computed(value)

    def one_element(self, node: Node, inner: Value) -> Value | None:
        r"""The k-th element of an expression, where nothing binds k: `\mathrm{softmax}(z)_k`.

        By a number where k has one, else as the product with a unit vector; None of what is no vector.
        """
        along = node.only.kind == "call" and node.only.text in ALONG
        if inner.axes or not (inner.rank == 1 or (along and not inner.rank)):
            return None
        known = self.known(node.text)
        if known is not None and known.number is not None and known.number > 0:
            self.say(f"element {node.text} = {known.number}, counted from 1")
            return Value(f"{inner.at(ATOM)}[{known.number - 1}]")
        if known is not None:
            raise self.error(f"{node.text} is the number of an element, from 1 on", node.token)
        self.singled.add(node.text)
        if self.one == "place":
            return Value(f"{inner.at(ATOM)}[{node.text}]")
        unit = f"e_{node.text}"
        self.say(
            f"{unit} is the unit vector of {node.text}, as 0,1,0 of the second; or say --{node.text} 2"
        )
        return Value(f"{unit}@{inner.at(POWER)}", PRODUCT)

    def series(self, node: Node) -> Value:
        from gradcli.language import math_series

        return math_series.series(self, node)


def _diagonal(text: str) -> tuple[str, str] | None:
    """(v, rest) of `diag(v)@rest`."""
    if not text.startswith("diag("):
        return None
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ")" and not depth:
            inner, rest = text[5:i], text[i + 2 :]
            if text[i + 1 : i + 2] != "@" or "," in inner:
                return None
            inner = inner if re.fullmatch(r"[\w.]+", inner) else f"({inner})"
            return inner, rest if re.fullmatch(r"[\w.]+", rest) else f"({rest})"
    return None


def negated(inner: Value) -> Value:
    if inner.level == PRODUCT:
        return inner.like(f"-{inner.text}", PRODUCT)
    return inner.like(f"-{inner.at(POWER)}", SIGN)


def is_call(text: str) -> bool:
    """Whether a text is a name and one bracket."""
    found = re.match(r"[\w.]+(?=\()", text)
    rest = text[found.end() :].replace(",", "") if found else ""
    return bool(rest) and bare(rest) != rest


def _real(cell: str) -> str:
    return cell if {".", "e"} & set(cell) else f"{cell}."


def _vector(cells: list[str], numbers: bool) -> str:
    if numbers or all(re.fullmatch(_NUMBER, cell) for cell in cells):
        return f"tensor([{', '.join(map(_real, cells))}])"
    texts = [f"tensor({_real(c)})" if re.fullmatch(_NUMBER, c) else c for c in cells]
    return f"stack([{', '.join(texts)}])"


def _binomial(n: str, k: str) -> str | None:
    """A binomial coefficient of small numbers, without functions."""
    if n.isdigit() and k.isdigit() and int(n) <= 60:
        return str(comb(int(n), int(k)))
    if not (k.isdigit() and int(k) <= 4):
        return None
    plain = n if re.fullmatch(r"[\w.]+", n) else f"({n})"
    above = [plain, *(f"({bare(n)} - {i})" for i in range(1, int(k)))] if int(k) else ["1"]
    below = factorial(int(k))
    return "*".join(above) + (f"/{below}" if below > 1 else "")


_WRITERS: Mapping[str, Callable[[Writer, Node], Value]] = {
    "number": Writer.raw, "string": Writer.raw, "raw": Writer.raw, "fraction": Writer.fraction,
    "ones": Writer.ones, "labelled": Writer.labelled, "normal": Writer.normal,
    "name": Writer.name, "group": Writer.group, "sum": Writer.sum, "neg": Writer.neg,
    "product": Writer.product, "power": Writer.power, "root": Writer.root,
    "transpose": Writer.transpose, "bar": Writer.bar, "factorial": Writer.factorial,
    "degrees": Writer.degrees,
    "percent": Writer.percent, "abs": Writer.abs, "norm": Writer.norm, "inner": Writer.inner,
    "call": Writer.call, "apply": Writer.apply, "prime": Writer.prime,
    "attribute": Writer.attribute, "subscript": Writer.subscript, "keyword": Writer.keyword,
    "elements": Writer.elements, "element": Writer.element,
    "lambda": Writer.function, "values": Writer.values, "choice": Writer.choice,
    "logical": Writer.logical, "relation": Writer.relation, "cases": Writer.cases,
    "list": Writer.several, "matrix": Writer.matrix, "derivative": Writer.derivative,
    "nabla": Writer.nabla, "integral": Writer.integral, "limit": Writer.limit, "series": Writer.series,
}  # fmt: skip

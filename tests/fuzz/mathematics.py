r"""Formulas of matrices and of indices at random: what `--math` reads has the value that NumPy gives.

A formula is made as a text together with its value. Of indices the value is an array with a letter for each
dimension, and products are NumPy's einsum; of matrices it is NumPy's linear algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import NamedTuple

import numpy as np

from gradcli import evaluate
from gradcli.engine.system import dtypes
from gradcli.language.located_errors import LanguageError
from gradcli.language.math_values import Known
from gradcli.language.mathematics import read_mathematics
from gradcli.language.parser import parse, parses
from gradcli.language.scope_checks import free_names
from tests import fuzz

SIZES = {"i": 2, "j": 3, "k": 4}
TENSORS = {"x": "i", "y": "j", "u": "k", "A": "ij", "B": "jk", "C": "ki", "D": "ji", "T": "ijk"}


class Indexed(NamedTuple):
    """A formula of elements: its text, its value, and the letters of the value's dimensions, sorted."""

    text: str
    value: np.ndarray
    letters: str


def arrays(sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The values of all tensors."""
    random = np.random.default_rng(7)
    return {
        name: random.uniform(0.3, 1.3, [sizes[x] for x in letters])
        for name, letters in TENSORS.items()
    }


# -- indices ---------------------------------------------------------------------------------------
class Indices:
    """A maker of formulas of elements. square: whether all dimensions have one size, so that every tensor
    takes every letter."""

    def __init__(self, random: Random, square: bool) -> None:
        self.random, self.square = random, square
        self.arrays = arrays(dict.fromkeys(SIZES, 3) if square else SIZES)

    def element(self) -> Indexed:
        name = self.random.choice(sorted(TENSORS))
        letters = TENSORS[name]
        if self.square:
            letters = "".join(self.random.sample("ijk", len(letters)))
        out = "".join(sorted(letters))
        value = np.einsum(f"{letters}->{out}", self.arrays[name])
        text = f"{name}_{{{letters}}}" if len(letters) > 1 else f"{name}_{letters}"
        return Indexed(text, value, out)

    def product(self, factors: list[Indexed], out: str | None = None) -> Indexed:
        letters = "".join(sorted(set("".join(f.letters for f in factors)))) if out is None else out
        operands = ",".join(f.letters for f in factors)
        value = np.einsum(f"{operands}->{letters}", *(f.value for f in factors))
        return Indexed(" ".join(f.text for f in factors), value, letters)

    def expression(self, depth: int) -> Indexed:
        """Elements with operations of elements and sums."""
        kind = self.random.choice(
            ("element", "product", "product", "sum", "sums", "function", "quotient")
        )
        if depth == 0 or kind == "element":
            return self.element()
        if kind == "product":
            count = self.random.choice((2, 2, 3))
            return self.product([self.closed(self.expression(depth - 1)) for _ in range(count)])
        if kind == "sum":
            left, right = self.expression(depth - 1), self.expression(depth - 1)
            sign = self.random.choice("+-")
            both = self.spread(left, right)
            value = both[0] + both[1] if sign == "+" else both[0] - both[1]
            return Indexed(
                f"({self.closed(left).text} {sign} {self.operand(right)})", value, both[2]
            )
        if kind == "function":
            inner = self.expression(depth - 1)
            text, function = self.random.choice(FUNCTIONS)
            return Indexed(text.format(inner.text), function(inner.value), inner.letters)
        if kind == "quotient":
            left, right = self.expression(depth - 1), self.expression(depth - 1)
            both = self.spread(left, right)
            text = rf"\frac{{{left.text}}}{{2 + \cos({right.text})}}"
            return Indexed(text, both[0] / (2 + np.cos(both[1])), both[2])
        return self.summed(self.expression(depth - 1))

    def operand(self, term: Indexed) -> str:
        return f"({term.text})" if term.text[:1] == "-" else term.text

    def closed(self, factor: Indexed) -> Indexed:
        r"""A factor that ends where it ends: `\sum` takes all of a product."""
        if factor.text.startswith(r"\sum"):
            return factor._replace(text=f"({factor.text})")
        return factor

    def spread(self, left: Indexed, right: Indexed) -> tuple[np.ndarray, np.ndarray, str]:
        letters = "".join(sorted({*left.letters, *right.letters}))
        ones = np.ones([self.size(x) for x in letters])
        return (
            np.einsum(f"{left.letters},{letters}->{letters}", left.value, ones),
            np.einsum(f"{right.letters},{letters}->{letters}", right.value, ones),
            letters,
        )

    def size(self, letter: str) -> int:
        return 3 if self.square else SIZES[letter]

    def summed(self, body: Indexed) -> Indexed:
        """A sum over some of the letters that it has."""
        if not body.letters:
            return body
        count = self.random.randint(1, len(body.letters))
        over = self.random.sample(body.letters, count)
        left = "".join(x for x in body.letters if x not in over)
        value = np.einsum(f"{body.letters}->{left}", body.value)
        text = body.text
        if self.random.random() < 0.5:
            text = rf"\sum_{{{','.join(over)}}} {text}"
        else:
            for letter in over:
                text = rf"\sum_{letter} {text}"
        return Indexed(text, value, left)

    def formula(self) -> Indexed:
        """A formula with at least one sum, or a product of Einstein's."""
        if self.random.random() < 0.25:
            return self.einstein()
        return self.summed(self.closed_sum(self.expression(3)))

    def closed_sum(self, body: Indexed) -> Indexed:
        return body

    def einstein(self) -> Indexed:
        """A product without a sum, in which no letter stands more than twice."""
        factors: list[Indexed] = []
        for _ in range(self.random.randint(2, 4)):
            new = self.element()
            if all("".join(f.letters for f in (*factors, new)).count(x) <= 2 for x in "ijk"):
                factors.append(new)
        counted = "".join(f.letters for f in factors)
        out = "".join(sorted(x for x in set(counted) if counted.count(x) == 1))
        return self.product(factors, out)


FUNCTIONS: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    (r"\sin({})", np.sin), ("e^{{-({})^2}}", lambda v: np.exp(-(v**2))), (r"({})^2", np.square),
    (r"\tanh({})", np.tanh), (r"|{}|", np.abs), (r"\cos({})", np.cos),
)  # fmt: skip


# -- matrices --------------------------------------------------------------------------------------
class Made(NamedTuple):
    text: str
    value: np.ndarray


NAMES = {"A": (3, 3), "B": (3, 3), "X": (4, 3), "x": (3,), "y": (3,), "z": (4,), "s": (), "t": ()}


def _exponential(a: np.ndarray) -> np.ndarray:
    """The matrix exponential, as its series at a small argument, squared."""
    total = term = np.eye(len(a))
    for k in range(1, 25):
        term = term @ (a / 64) / k
        total = total + term
    return np.linalg.matrix_power(total, 64)


class Matrices:
    """A maker of formulas of matrices, vectors and numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random
        source = np.random.default_rng(11)
        self.values = {name: source.uniform(0.2, 0.9, shape) for name, shape in NAMES.items()}

    def leaf(self, kind: str) -> Made:
        name = self.random.choice({"m": "AB", "v": "xy", "s": "st"}[kind])
        return Made(name, self.values[name])

    def make(self, kind: str, depth: int) -> Made:
        """A matrix of (3, 3), a vector of 3 elements, or a number."""
        if depth == 0:
            return self.leaf(kind)
        pattern, function = self.random.choice(RULES[kind])
        kinds = pattern.split("|")[0]
        parts = [self.make(k, depth - 1) for k in kinds]
        text = pattern.split("|", 1)[1]
        shown = [p.text if len(p.text) == 1 else f"({p.text})" for p in parts]
        for place, part in zip("abc", shown, strict=False):
            text = text.replace(f"<{place}>", part)
        value = function(*(p.value for p in parts))
        return Made(text.replace("X", "X"), np.asarray(value))

    def formula(self) -> Made:
        return self.make(self.random.choice("mvss"), self.random.choice((1, 2, 2, 3)))


RULES: dict[str, list[tuple[str, Callable[..., np.ndarray]]]] = {
    "m": [
        ("mm|<a> <b>", np.matmul), ("mm|<a> + <b>", np.add), ("mm|<a> - <b>", np.subtract),
        ("m|<a>^T", np.transpose), (r"mm|<a> \odot <b>", np.multiply), ("mm|<a> .* <b>", np.multiply),
        ("m|<a>^2", lambda m: m @ m), ("vv|<a> <b>^T", np.outer), (r"v|\mathrm{diag}(<a>)", np.diag),
        ("sm|<a> <b>", np.multiply),
        ("m|(<a>^T <a> + 2 I)^{-1}", lambda m: np.linalg.inv(m.T @ m + 2 * np.eye(3))),
        (r"s|\begin{pmatrix} 1 & <a> & 0 \\ 2 & 1 & 3 \\ 0 & 0 & <a> \end{pmatrix}",
         lambda s: np.array([[1, s, 0], [2, 1, 3], [0, 0, s]])),
        ("mv|<a> \\mathrm{diag}(<b>)", lambda m, v: m @ np.diag(v)), (r"vv|<a> \otimes <b>", np.outer),
        ("m|e^{0.1 <a>}", lambda m: _exponential(0.1 * m)),
    ],
    "v": [
        ("mv|<a> <b>", np.matmul), ("vv|<a> + <b>", np.add), ("sv|<a> <b>", np.multiply),
        (r"mv|<a>^\top <b>", lambda m, v: m.T @ v), ("vv|<a> \\odot <b>", np.multiply),
        ("mv|(<a>^T <a> + 2 I)^{-1} <b>", lambda m, v: np.linalg.solve(m.T @ m + 2 * np.eye(3), v)),
        (r"vv|<a> \times <b>", np.cross), ("v|\\sin(<a>)", np.sin), ("v|<a> / 2", lambda v: v / 2),
        ("sv|\\frac{<b>}{1 + <a>^2}", lambda s, v: v / (1 + s * s)),
        (r"mv|\mathrm{diag}(<b>) <a> <b>", lambda m, v: v * (m @ v)),
    ],
    "s": [
        ("vmv|<a>^T <b> <c>", lambda a, m, b: a @ m @ b), (r"vv|<a> \cdot <b>", np.dot),
        (r"vv|\langle <a>, <b> \rangle", np.dot), ("vv|<a>^T <b>", np.dot),
        (r"v|\|<a>\|^2", lambda v: v @ v), (r"m|\|<a>\|_F^2", lambda m: (m * m).sum()),
        (r"m|\mathrm{tr}(<a>)", np.trace), ("m|\\det(<a>)", np.linalg.det), ("m|<a>|", np.linalg.det),
        (r"m|\begin{vmatrix} 1 & 2 \\ 3 & 5 \end{vmatrix} \mathrm{tr} <a>", lambda m: -np.trace(m)),
        (r"v|\|<a>\|_1", lambda v: np.abs(v).sum()), (r"v|\|<a>\|_\infty", lambda v: np.abs(v).max()),
        ("ss|<a> <b> + 1", lambda a, b: a * b + 1), (r"m|\|<a>\|_2", lambda m: np.linalg.norm(m, 2)),
        (r"mm|\langle <a>, <b> \rangle", lambda a, b: (a * b).sum()),
    ],
}  # fmt: skip
# Of the elements of a vector a, of one like it, and of a matrix; the n of the text has no value.
ELEMENTS: tuple[tuple[str, str, Callable[..., np.ndarray]], ...] = (
    ("v", r"\sum_{i=1}^n (<a>)_i", np.sum), ("v", r"\sum_i (<a>)_i^2", lambda a: (a * a).sum()),
    ("v", r"\frac{1}{n} \sum_{i=1}^n [<a>]_i^2", lambda a: (a * a).mean()),
    ("vv", r"\frac1n \sum_{i=1}^n (<a>)_i (<b>)_i", lambda a, b: (a * b).mean()),
    ("v", r"\sum_i (<a>)_i x_i", lambda a: a @ Matrices(Random(0)).values["x"]),
    ("v", r"\max_i |(<a>)_i|", lambda a: np.abs(a).max()), ("v", "[<a>]_2", lambda a: a[1]),
    ("m", r"\sum_i (<a>)_{ii}", np.trace), ("m", r"\sum_j (<a>)_{ij}", lambda m: m.sum(1)),
    ("mm", r"\sum_j (<a>)_{ij} (<b>)_{jk}", np.matmul), ("m", "(<a>)_{13}", lambda m: m[0, 2]),
    ("v", r"\sum_{i=2}^{n-1} (<a>)_i/n", lambda a: a[1:-1].sum() / 3),
    ("v", r"\frac{1}{n-1} \sum_{i=1}^{n} (\tanh(<a>)_i - 1)^2",
     lambda a: ((np.tanh(a) - 1) ** 2).sum() / 2),
)  # fmt: skip


def elements(random: Random) -> tuple[str, np.ndarray, dict[str, np.ndarray]]:
    """Sums over the elements of what is computed."""
    maker = Matrices(random)
    kinds, text, function = random.choice(ELEMENTS)
    parts = [maker.make(kind, random.choice((1, 1, 2))) for kind in kinds]
    for place, part in zip("ab", parts, strict=False):
        text = text.replace(f"<{place}>", part.text)
    return text, np.asarray(function(*(part.value for part in parts))), maker.values


RULES["s"] = [("m||<a>|" if p == "m|<a>|" else p, f) for p, f in RULES["s"]]


# -- parts of all elements -------------------------------------------------------------------------
LENGTH = 4
TERMS: tuple[tuple[str, Callable[..., float]], ...] = (
    # of elements i and j of x, of the matrix S, and of the numbers of the elements
    ("x_i x_j", lambda x, s, i, j: x[i] * x[j]), ("(x_i - x_j)^2", lambda x, s, i, j: (x[i] - x[j]) ** 2),
    (r"\frac{1}{|x_i - x_j|}", lambda x, s, i, j: 1 / abs(x[i] - x[j])),
    ("S_{ij} x_i x_j^2", lambda x, s, i, j: s[i, j] * x[i] * x[j] ** 2),
    ("S_{ij} (x_i + 2 x_j)", lambda x, s, i, j: s[i, j] * (x[i] + 2 * x[j])),
    (r"\frac{S_{ji}}{x_i + 2}", lambda x, s, i, j: s[j, i] / (x[i] + 2)),
    (r"e^{x_i} \sin(x_j - x_i)", lambda x, s, i, j: np.exp(x[i]) * np.sin(x[j] - x[i])),
    ("S_{ij}^2 - S_{ii}", lambda x, s, i, j: s[i, j] ** 2 - s[i, i]),
    (r"\log(|x_i - x_j|) x_i", lambda x, s, i, j: np.log(abs(x[i] - x[j])) * x[i]),
    ("i x_i + j x_j", lambda x, s, i, j: (i + 1) * x[i] + (j + 1) * x[j]),
)  # fmt: skip
PAIRS: tuple[tuple[str, Callable[[int, int], bool]], ...] = (
    (r"\sum_{i<j}", lambda i, j: i < j), (r"\sum_{i>j}", lambda i, j: i > j),
    (r"\sum_{i \ne j}", lambda i, j: i != j), (r"\sum_i \sum_{j \neq i}", lambda i, j: i != j),
    (r"\sum_{i=1}^n \sum_{j=i+1}^n", lambda i, j: i < j),
    (r"\sum_{i=1}^{n} \sum_{j=1}^{i-1}", lambda i, j: j < i),
    (r"\sum_{1 \le i < j \le n}", lambda i, j: i < j),
    (r"\sum_j \sum_{i<j}", lambda i, j: i < j),
)  # fmt: skip
ROWS: tuple[tuple[str, Callable[..., float]], ...] = (
    # of an element of x and others beside it, or of its number
    ("x_i", lambda x, y, i: x[i]), ("x_i y_i", lambda x, y, i: x[i] * y[i]),
    ("(x_{i+1} - x_i)^2", lambda x, y, i: (x[i + 1] - x[i]) ** 2),
    ("x_{i+1} y_i", lambda x, y, i: x[i + 1] * y[i]), ("i y_i", lambda x, y, i: (i + 1) * y[i]),
    ("(x_i - x_{i-1}) y_i", lambda x, y, i: (x[i] - x[i - 1]) * y[i]),
    ("i^2 x_i", lambda x, y, i: (i + 1) ** 2 * x[i]),
    ("3 y_i / (1 + x_i^2)", lambda x, y, i: 3 * y[i] / (1 + x[i]**2)),
    ("(x_{i+2} - 2 x_{i+1} + x_i)^2", lambda x, y, i: (x[i + 2] - 2 * x[i + 1] + x[i]) ** 2),
)  # fmt: skip


def pairs(random: Random) -> tuple[str, np.ndarray, dict[str, np.ndarray]]:
    """A sum over pairs of elements, added up one by one."""
    source = np.random.default_rng(3)
    x, s = (
        source.permutation(np.linspace(0.2, 1.1, LENGTH)),
        source.uniform(0.2, 1, (LENGTH, LENGTH)),
    )
    (sign, belongs), (term, value) = random.choice(PAIRS), random.choice(TERMS)
    found = sum(value(x, s, i, j) for i in range(LENGTH) for j in range(LENGTH) if belongs(i, j))
    text = f"{sign} ({term})"  # a sum goes up to the next + or -
    return text, np.asarray(found), {"x": x, "S": s, "n": np.asarray(float(LENGTH))}


def rows(random: Random) -> tuple[str, np.ndarray, dict[str, np.ndarray]]:
    r"""`\sum_{i=2}^{n-1}` and its like, added up one by one."""
    source = np.random.default_rng(5)
    x, y = source.uniform(0.2, 1.1, LENGTH), source.uniform(0.2, 1.1, LENGTH)
    term, value = random.choice(ROWS)
    ahead = 2 if "i+2" in term else "i+1" in term
    low, high = random.randint(1 + ("i-1" in term), 2), LENGTH - ahead - random.randint(0, 1)
    high = max(low, high)
    last = random.choice((str(high), f"n-{LENGTH - high}" if high < LENGTH else "n"))
    kind = random.choice((r"\sum", r"\sum", r"\prod", r"\max"))
    terms = [value(x, y, i) for i in range(low - 1, high)]
    found = {r"\sum": np.sum, r"\prod": np.prod, r"\max": np.max}[kind](terms)
    text = rf"{kind}_{{i={low}}}^{{{last}}} ({term})"
    if kind == r"\max":
        text = rf"\max_{{{low} \le i \le {last}}} ({term})"
    return text, np.asarray(found), {"x": x, "y": y, "n": np.asarray(float(LENGTH))}


RECORDS: tuple[tuple[str, Callable[..., np.ndarray]], ...] = (
    # of x_i, a row of a matrix, for each i
    (r"\sum_i w^T x_i", lambda x, y, w, a: sum(w @ r for r in x)),
    (r"\sum_i y_i w^T x_i", lambda x, y, w, a: sum(t * (w @ r) for t, r in zip(y, x, strict=True))),
    (r"\sum_i (y_i - w^T x_i)^2",
     lambda x, y, w, a: sum((t - w @ r) ** 2 for t, r in zip(y, x, strict=True))),
    (r"\sum_i x_i x_i^T", lambda x, y, w, a: sum(np.outer(r, r) for r in x)),
    (r"\sum_i y_i (x_i - w) (x_i - w)^T",
     lambda x, y, w, a: sum(t * np.outer(r - w, r - w) for t, r in zip(y, x, strict=True))),
    (r"\sum_i x_i^T a x_i", lambda x, y, w, a: sum(r @ a @ r for r in x)),
    (r"\sum_i a x_i", lambda x, y, w, a: sum(a @ r for r in x)),
    (r"\sum_i \|a x_i - w\|^2", lambda x, y, w, a: sum((a @ r - w) @ (a @ r - w) for r in x)),
    (r"\sum_i \|x_i\|_1", lambda x, y, w, a: sum(np.abs(r).sum() for r in x)),
    (r"\sum_i y_i x_i", lambda x, y, w, a: sum(t * r for t, r in zip(y, x, strict=True))),
    (r"\sum_i \log(1 + e^{-y_i w^T x_i})",
     lambda x, y, w, a: sum(np.log(1 + np.exp(-t * (w @ r))) for t, r in zip(y, x, strict=True))),
    (r"\sum_i x_i \cdot w", lambda x, y, w, a: sum(r @ w for r in x)),
    (r"\sum_{i<j} \|x_i - x_j\|", lambda x, y, w, a: sum(
        np.linalg.norm(x[i] - x[j]) for i in range(len(x)) for j in range(i + 1, len(x)))),
    (r"\sum_i \sum_j y_i y_j x_i^T x_j", lambda x, y, w, a: sum(
        s * t * (p @ q) for s, p in zip(y, x, strict=True) for t, q in zip(y, x, strict=True))),
    (r"x_i^T w", lambda x, y, w, a: x @ w), ("a x_i", lambda x, y, w, a: x @ a.T),
    (r"x_i^T a x_j", lambda x, y, w, a: x @ a @ x.T),
)  # fmt: skip


def records(random: Random) -> tuple[str, np.ndarray, dict[str, np.ndarray]]:
    """Formulas of the rows of a matrix, added up one by one."""
    source = np.random.default_rng(8)
    x, y, w, a = (source.uniform(-1, 1, s) for s in ((4, 3), (4,), (3,), (3, 3)))
    text, value = random.choice(RECORDS)
    return text, np.asarray(value(x, y, w, a)), {"x": x, "y": y, "w": w, "a": a}


SPECIAL: tuple[tuple[str, str], ...] = (
    (r"\sum_{ij} \delta_{ij} x_i y_j", "i,i->"), (r"\sum_j \delta_{ij} x_j", "i->i"),
    (r"\sum_{jk} \epsilon_{ijk} x_j y_k", "cross"), (r"\epsilon_{ijk} x_j y_k", "cross"),
    (r"\delta_{ij} S_{ij}", "ii->"), ("S_{ii}", "ii->"), (r"\sum_i S_{ii} x_i", "ii,i->"),
    (r"\sum_k \epsilon_{ijk} x_k", "dual"), (r"\sum_i S_{ii}^2", "squares"),
)  # fmt: skip


def special(random: Random) -> tuple[str, np.ndarray, dict[str, np.ndarray]]:
    """Formulas with δ, ε and diagonals."""
    source = np.random.default_rng(6)
    x, y, s = source.uniform(-1, 1, 3), source.uniform(-1, 1, 3), source.uniform(-1, 1, (3, 3))
    text, how = random.choice(SPECIAL)
    operands = [{"S": s, "x": x, "y": y}[n] for n in ("S", "x", "y") if f"{n}_" in text]
    if how == "cross":
        value = np.cross(x, y)
    elif how == "dual":
        value = np.array([[0, x[2], -x[1]], [-x[2], 0, x[0]], [x[1], -x[0], 0]])
    elif how == "squares":
        value = np.sum(np.diag(s) ** 2)
    else:
        value = np.einsum(how, *operands)
    return text, np.asarray(value), {"x": x, "y": y, "S": s}


# -- what is wrong ---------------------------------------------------------------------------------
def failure(text: str, value: np.ndarray, values: Mapping[str, np.ndarray]) -> str | None:
    """What is wrong with the reading of a text that has a value, if anything is."""

    def known(name: str) -> Known | None:
        if name not in values:
            return None
        number = int(values[name]) if not values[name].shape and values[name] % 1 == 0 else None
        return Known(values[name].shape, number)

    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.of(np.dtype(np.float64)))
    try:
        found = read_mathematics(text, parses, dict.fromkeys(values, False), known=known)
        written = text if found is None else found.written
        given = {n: v for n, v in values.items() if n in free_names(parse(written))}
        got = np.asarray(evaluate(written, **given).tolist())
    except LanguageError as error:
        return f"{text}: refused: {error.message}"
    finally:
        dtypes.set_default_dtype(before)
    if got.shape != value.shape:
        return f"{text} is read as {written}, of shape {got.shape} for {value.shape}"
    if not np.allclose(got, value, rtol=1e-9, atol=1e-11):
        return f"{text} is read as {written}: {got} for {value}"
    return None


def case(random: Random) -> str | None:
    """One formula of any kind."""
    kind = random.random()
    if kind < 0.3:
        return failure(*random.choice((pairs, rows, special, records, elements))(random))
    if kind < 0.6:
        made = Matrices(random)
        formula = made.formula()
        return failure(formula.text, formula.value, made.values)
    maker = Indices(random, random.random() < 0.5)
    found = maker.formula()
    return failure(found.text, found.value, maker.arrays)


def run(seed: int, seconds: float) -> Iterator[str]:
    """The formulas whose reading has another value, or that are refused."""
    yield from filter(None, map(case, fuzz.cases(seed, seconds)))

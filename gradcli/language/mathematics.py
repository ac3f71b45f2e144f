r"""Mathematics as people write it, in the language: `2x^2`, `sin 2x cos x`, `x'Ax`, `|x|`, `\frac{x}{2}`.

`--math` runs what is read so, hints show it; hints read NumPy's and other libraries' names, too. Tokens
(`notation`) become a tree (`math_parser`), and this a text (`math_writer`), by the shapes of values, and by
indices (`math_series`). Where two readings are possible the one that is taken is said (`remarks`), or the
text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.language import math_clauses, math_marks, math_motion, math_ranks, notation
from gradcli.language.computer_algebra import as_mathematics
from gradcli.language.located_errors import LanguageError
from gradcli.language.math_clauses import Clauses
from gradcli.language.math_definitions import Definitions, definitions, with_equations
from gradcli.language.math_parser import Parser
from gradcli.language.math_symbols import PRIMED
from gradcli.language.math_tree import Node, nodes, with_formulas
from gradcli.language.math_values import Known, variables_of
from gradcli.language.math_writer import Writer
from gradcli.language.notation import (
    Letters,
    Token,
    is_derivative,
    is_matrix,
    of_matrices,
)
from gradcli.language.typed_text import TypedText, placed

if TYPE_CHECKING:
    from gradcli.language.math_indices import Indices

Shapes = Callable[[str], Known | None]
_DERIVED = ("derivative", "nabla")


class Mathematics(NamedTuple):
    """How a text was read. written: in the language. remarks: what could have been meant otherwise.
    differentiated: the variables by which the text says that what is written is differentiated, operator:
    "grad", "div", "curl" or "laplacian" where ∇ stands before it. shapes: what the text says of those of its
    names, sizes as letters, or `*`. ranks: of its vectors and matrices, and of what it gives names.
    letters: the indices of its names. ones: those that are of one element, as the c of z_c. sizes: of names
    that limit sums and have no value, what they are: "len(x)". header: w of `J(w) = …`.
    rows: the matrices whose rows x_i are vectors of the text. called: J of `J(w) = …`."""

    written: str
    remarks: tuple[str, ...] = ()
    differentiated: tuple[str, ...] = ()
    operator: str = ""
    shapes: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    ranks: Mapping[str, int] = MappingProxyType({})
    letters: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    ones: frozenset[str] = frozenset()
    sizes: Mapping[str, str] = MappingProxyType({})
    header: tuple[str, ...] = ()
    rows: frozenset[str] = frozenset()
    called: str = ""

    def __str__(self) -> str:
        return "; ".join((self.written, *self.remarks))


def nothing_known(name: str) -> None:
    """That no value has a known shape."""


def read_mathematics(
    source: str,
    parses: Callable[[str], bool],
    bound: Mapping[str, bool],
    equation: bool = False,
    known: Shapes = nothing_known,
    by: str | None = None,
    named: Collection[str] = (),
    coordinates: Collection[str] = (),
    labels: bool = True,
    gradient: tuple[str, ...] = (),
    one: str = "",
    ones: Collection[str] = (),
    sizes: Mapping[str, str] = MappingProxyType({}),
    matrices: bool = False,
) -> Mathematics | None:
    """A text of mathematics in the language; None if it stands there as the language has it.

    bound: the names that have a value, and whether it can be called. equation: whether `=` is none of an
    assignment. known: the shape of a name's value. by: of a text that is differentiated, by what, "" if
    that is not said, so that d/dx before all of it says so. named: names that are variables, though nothing
    is known of their values. coordinates: those of a Lagrangian, which are functions of t. labels: whether
    `R^2 = …` names a formula, and is no equation. gradient: of a text that is a gradient, the indices of what
    it is by, "" for each that is not known. one: where the value is to be a number, so that an index that
    nothing binds is of one element, how that is written: "unit", as a product with a vector, or "place".
    ones: such indices of another text. sizes: what limits of sums are, as another text says it.
    matrices: whether another text speaks of matrices, so that a capital before a letter is one.
    Raises LanguageError with the place of what cannot be read.
    """
    try:
        found = _read(source, bound, known, by, named, equation=equation, coordinates=coordinates,
                      labels=labels, gradient=gradient, one=one, ones=ones, sizes=sizes,
                      matrices=matrices)  # fmt: skip
    except LanguageError as error:
        if error.kind == "syntax" and re.search(r"[^\W_]", source) and parses(source):
            return None  # a program, as a line of a session may be
        raise
    except RecursionError:
        raise LanguageError("this nests too deeply for --math", source=source) from None
    if not parses(found.written):  # the language says best what is wrong
        return None
    if "".join(found.written.split()) == "".join(source.split()) and not found.remarks:
        return None
    return found


def name_as_read(text: str) -> str | None:
    r"""The name that mathematics has for `\theta`, `W^{[1]}`, `\hat{y}` or `x_{1}`; None of other texts."""
    marked = math_marks.with_accents(math_marks.with_combined(notation.tokens(text)))
    found = math_marks.with_indices(notation.in_one_font(marked), frozenset(), alone=True)
    one = notation.indexed(found, 0)
    return one.name if one and one.end == len(found) and one.name.isidentifier() else None


def in_letters_of(text: str, name: str) -> str:
    r"""The name as a text has its Greek letter: σ_1 for `sigma_1` where it has σ, sigma for `σ` in LaTeX."""
    stem, line, index = name.partition("_")
    word = "lambda" if stem == "lam" else stem
    letter = notation.greek_letter(word)
    if letter is not None and letter in text and not re.search(rf"{word}(?![A-Za-z])", text):
        return f"{letter}{index}" if f"{letter}{index}" in text else f"{letter}{line}{index}"
    spelled = notation.greek_name(stem) if stem not in text else None
    if spelled is not None and f"\\{spelled}" in text:
        return f"{'lam' if spelled == 'lambda' else spelled}{line}{index}"
    return name


def written(source: str, bound: Mapping[str, bool], elementwise: bool) -> str:
    """A line in the language, for a hint: only names that are known, or bound, are taken for factors.

    elementwise: whether `max(x, 0)` is the larger one, and no pair as PyTorch's. Raises LanguageError.
    """
    if "`" in source or ":=" in source:  # of a shell, and of Python
        raise LanguageError("this is no mathematics", kind="syntax", source=source)
    digits = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")  # x₁ of a program is x1, as Python reads it
    return _read(
        source.translate(digits),
        bound,
        nothing_known,
        None,
        (),
        loose=False,
        elementwise=elementwise,
    ).written


def _read(
    source: str,
    bound: Mapping[str, bool],
    known: Shapes,
    wrt: str | None,
    named: Collection[str],
    **options: Any,
) -> Mathematics:
    """The text in the language, with `||` as the ends of a norm, as two bars, or as "or"."""
    if re.match(r"\s*<(?:math|m:math|mml:math)\b", source):
        raise LanguageError("MathML is not read", kind="syntax", source=source,
                            hint="copy the formula as LaTeX, which most pages and editors offer")  # fmt: skip
    source = as_mathematics(TypedText.whole(source), bound, lists=options.get("loose", True))
    errors = []
    # `||x||` is a norm, `||x| - 1|` has two bars side by side, and `a || b` is "or". The first that can
    # be read is taken; the error, if there is none, is that of the norm.
    for double in ("‖", "|", "or") if "||" in source else ("‖",):
        try:
            return _read_with(source, bound, known, wrt, named, double, **options)
        except LanguageError as error:
            errors.append(error)
    placed(errors[0], source)
    raise errors[0]


class _Text(NamedTuple):
    """A text whose letters are names. own: the names that have a value, or are assigned."""

    source: str
    tokens: list[Token]
    bound: Mapping[str, bool]
    own: set[str]
    known: Shapes
    letters: Letters | None
    functions: frozenset[str]
    declared: Clauses
    matrices: bool


class _Reading(NamedTuple):
    """One reading of a text. clashes: the places where the ranks of its parts do not agree."""

    found: Mathematics
    clashes: int


def _read_with(
    source: str,
    bound: Mapping[str, bool],
    known: Shapes,
    wrt: str | None,
    named: Collection[str],
    double: str,
    *,
    equation: bool = False,
    loose: bool = True,
    elementwise: bool = True,
    coordinates: Collection[str] = (),
    labels: bool = True,
    gradient: tuple[str, ...] = (),
    one: str = "",
    ones: Collection[str] = (),
    sizes: Mapping[str, str] = MappingProxyType({}),
    matrices: bool = False,
) -> Mathematics:
    assigned = re.findall(r"(?:^|[;\n])\s*(\w+)\s*=(?!=)", source) * (not equation)
    own = {*bound, *assigned}
    beside = Clauses([], {}, [])
    tokens = _letters_as_names(source, own, double)
    if not equation:
        tokens = with_equations(tokens)
    if loose and labels and not equation:
        beside = math_clauses.clauses(tokens, source, own)
        tokens = beside.tokens
    known = _declared(known, beside.shapes)
    defined = _typed(tokens, own, coordinates, named)
    typed, functions = defined.tokens, defined.functions
    said = {*named, *defined.parameters}
    letters = Letters(typed, said, lambda n: _is_matrix(known(n))) if loose else None
    if not equation:
        own |= _assigned(typed)
    text = _Text(source, typed, bound, own, known, letters, functions, beside, matrices)

    def read(ranks: Mapping[str, int]) -> _Reading:
        return _as_read(
            text, ranks, wrt, equation=equation, loose=loose, elementwise=elementwise,
            labels=labels, gradient=gradient, one=one, ones=ones, sizes=sizes,
        )  # fmt: skip

    def capitals() -> list[str]:
        found = of_matrices(typed, own, letters, speaks=matrices)[0]
        return [n for n in math_ranks.open_capitals(found, own) if known(n) is None]

    return math_ranks.most_agreeing(read, capitals if loose else list).found


def _as_read(
    text: _Text,
    said: Mapping[str, int],
    wrt: str | None,
    *,
    equation: bool,
    loose: bool,
    elementwise: bool,
    labels: bool,
    gradient: tuple[str, ...],
    one: str,
    ones: Collection[str],
    sizes: Mapping[str, str],
) -> _Reading:
    """A text as it is read. said: the ranks of capitals that are no matrices."""
    source, bound, known, letters = text.source, text.bound, text.known, text.letters
    own, beside = {*text.own}, text.declared
    numbers = {t.text for t in text.tokens if t.kind == "name" and _is_number(known(t.text))}
    ranks_said = {**dict.fromkeys(numbers, 0), **said}
    bound_letters = math_marks.bound_letters([t.text for t in text.tokens])
    found, vectors, matrices = of_matrices(
        text.tokens, own, letters, ranks_said, bound_letters, text.matrices
    )
    parser = Parser(
        source, found, bound, own, vectors, equation=equation, loose=loose, functions=text.functions,
        labels=labels,
    )  # fmt: skip
    parser.arrays = {t.text for t in found if t.kind == "name" and _is_vector(known(t.text))}
    parts = parser.program()
    roots = [part for part in parts if isinstance(part, Node)]
    by: tuple[str, ...] = ()
    operator, typed = "", list(roots)
    # `diff --math "d/dx x^2"` asks for one derivative, not for the derivative of a derivative: what
    # stands before all of the text says by what it is differentiated.
    given = all(root.kind in ("assign", "define") for root in roots[:-1])
    if wrt is not None and roots and given:
        first, last = roots[-1], parts.index(roots[-1])
        bodies = {root.text: root.only for root in roots if root.kind == "define"}
        if first.kind == "derivative":
            by = tuple(first.text.split())
            inner = _body(first.only, bodies)
            if len(set(by)) > 1:  # the outermost is what the text is differentiated by
                inner = Node("derivative", first.token, " ".join(by[1:]), (inner,))
                by = by[:1]
            parts[last], roots[-1] = inner, inner
            times = f", {len(by)} times" if len(by) > 1 else ""
            parser.remarks.append(f"differentiated by {by[0]}{times}")
        elif first.kind == "nabla" and not (
            first.only.kind == "name" and first.only.text not in own
        ):
            parts[last] = roots[-1] = _body(first.only, bodies)
            if first.base:
                by = (first.base,)
                parser.remarks.append(f"differentiated by {first.base}")
            else:
                operator = first.text
                parser.remarks.append(f"its {operator}")
    derived = [node for whole in typed for node in nodes(whole) if node.kind in _DERIVED]
    if wrt is not None and typed and not by and not operator:
        within = any(node.kind == "derivative" for node in nodes(typed[-1]))
        if within:
            parser.remarks.append("it has a derivative in it, and is differentiated once more")
    parts = with_formulas(parts)
    roots = [part for part in parts if isinstance(part, Node)]
    places = None
    indexed_kinds = ("series", "element") if any(gradient) else ("series",)
    if any(
        n.kind in indexed_kinds or (n.kind == "name" and n.parts)
        for root in roots for n in nodes(root)
    ):  # fmt: skip
        from gradcli.language.math_indices import index_letters, indices

        places = indices(roots, own, known, {*gradient})
        if gradient and isinstance(parts[-1], Node):
            parts[-1] = roots[-1] = _of_gradient(roots[-1], places, gradient, ones)
    writer = Writer(source, own, vectors, known, places, loose=loose, elementwise=elementwise)
    # The body of f stands for f in df/dx and ∇f; then nobody needs to see its definition.
    writer.inlined |= {n.text for node in derived for n in nodes(node) if n.kind == "name"}
    writer.indexed_matrices, writer.one, writer.said_ones = matrices, one, frozenset(ones)
    binders = [node.binder for root in roots for node in nodes(root) if node.binder is not None]
    ends = [limit for binder in binders for limit in (binder.low, binder.high) if limit is not None]
    # n of `\sum_{i=1}^n` is a number, also in a text where single letters are vectors.
    writer.limits = {node.text for limit in ends for node in nodes(limit) if node.kind == "name"}
    writer.limits |= notation.numbers(found) | {n for n, rank in said.items() if not rank}
    writer.valued, writer.sizes = {*bound}, sizes
    if wrt is not None and len(by) < 2 and len(roots) == 1:
        writer.by = by[0] if by else wrt
        if (limit := _limit_of(roots[0])) is not None:
            writer.by = writer.by or limit
            by = by or ((limit,) if limit and not wrt else ())
        else:
            writer.by = ""
    texts = [writer.statement(p) if isinstance(p, Node) else p.text for p in parts]
    more = writer.columns - (vectors or set()) - said.keys()
    counted = _counted(writer, sizes)
    if more or counted:  # what is added to a vector is one as well
        return _as_read(
            text, {**said, **dict.fromkeys(more, 1)}, wrt, equation=equation, loose=loose,
            elementwise=elementwise, labels=labels, gradient=gradient, one=one, ones=ones,
            sizes={**sizes, **counted},
        )  # fmt: skip
    texts = _without_unused(parts, texts, writer.inlined)
    line = "".join(f"{t} " if t == ";" else t for t in texts).strip()
    shapes: dict[str, tuple[str, ...]] = dict.fromkeys(sorted(writer.numbers), ())
    if places is not None:
        from gradcli.language.math_indices import shapes_by_index, whole_arrays

        found_shapes = shapes_by_index(roots, places, bound, own - {*bound}, known)
        shapes |= _besides_vectors(found_shapes, vectors)
        # Rows of one matrix are as long as the vectors that multiply them.
        used = {size for shape in shapes.values() for size in shape}
        used |= {token.text for token in found}  # m of 1/m is no size
        columns = next(letter for letter in "mkdpqrst" if letter not in used)
        # θ of `\\theta^T x_i` has a size by its own index, as in `\\sum_j \\theta_j^2`.
        lengths = [found_shapes.get(name, ()) for name in sorted(writer.times_rows)]
        columns = next((sizes[0] for sizes in lengths if len(sizes) == 1), columns)
        shapes |= {n: (*shapes[n], columns) for n in writer.matrices if len(shapes.get(n, ())) == 1}
        shapes |= {n: (columns,) for n in writer.beside_rows if n not in shapes}
        for name, whole in whole_arrays(places, writer.formulas).items():
            if name not in own and known(name) is None:
                shapes[name] = ("*",)
                writer.say(f"{name} is a vector, as {whole} has elements")
        if len(writer.matrices) > 1:  # whose rows may have different lengths
            shapes = {name: ("*",) * len(shape) for name, shape in shapes.items()}
    own_letters = letters.remarks if letters is not None else []
    ranks = dict.fromkeys(vectors or (), 1)
    if vectors is not None:
        ranks |= {t.text: 2 for t in found if t.kind == "name" and is_matrix(t.text)}
        ranks |= dict.fromkeys(writer.indexed_matrices, 2)
        ranks |= dict.fromkeys(writer.limits, 0) | {**said}
        shapes = {n: ("*",) * rank for n, rank in ranks.items() if n not in own} | shapes
    shapes |= {name: shape for name, shape in beside.shapes.items() if name not in own}
    made = {root.text for root in roots if root.kind in ("assign", "define")} | writer.given
    words = {*re.findall(r"(?<![\w.])[^\W\d]\w*", line)}
    shapes = {name: shape for name, shape in shapes.items() if name in words - made}
    remarks = tuple(
        dict.fromkeys(
            [
                *own_letters,
                *parser.remarks,
                *writer.remarks,
                *beside.remarks,
                *math_ranks.said(said),
            ]
        )
    )
    ranks |= {n: len(shape) for n, shape in shapes.items()} | dict.fromkeys(writer.limits, 0)
    ranks |= {name: 0 for name in writer.given if is_matrix(name)}
    ranks |= {name: value.rank for name, value in writer.assigned.items()}
    ranks = {name: rank for name, rank in ranks.items() if name in words}  # W of W_1 is none
    indexed = {} if places is None else index_letters(roots, places)
    # The letters of one element say nothing of those of a gradient.
    indexed = {n: tuple("" if x in writer.singled else x for x in at) for n, at in indexed.items()}
    header = tuple(n for n in parser.header if n.removesuffix("^2") in words - made)
    made_of = Mathematics(
        line, remarks, by, operator, shapes, ranks, indexed, frozenset(writer.singled), writer.ties,
        header, frozenset(writer.matrices), parser.called,
    )  # fmt: skip
    return _Reading(made_of, writer.clashes)


def _counted(writer: Writer, sizes: Mapping[str, str]) -> dict[str, str]:
    """The limits of sums that are sizes of what has a value, and so need none of their own."""
    known = writer.valued | writer.given
    return {
        name: size
        for name, size in writer.ties.items()
        if name not in sizes and variables_of(size) <= known
    }


def _body(node: Node, bodies: Mapping[str, Node]) -> Node:
    """A piece, or what a function gives where it stands by its name alone, as the f of ∇f."""
    return bodies.get(node.text, node) if node.kind == "name" else node


def _declared(known: Shapes, shapes: Mapping[str, tuple[str, ...]]) -> Shapes:
    r"""What is known of values, and what the text says: x of `x \in \mathbb{R}^n` is a vector."""

    def found(name: str) -> Known | None:
        value = known(name)
        if value is None and name in shapes:
            return Known(tuple(f"{name}.shape[{k}]" for k in range(len(shapes[name]))))
        return value

    return found if shapes else known


def _letters_as_names(source: str, own: set[str], double: str) -> list[Token]:
    """The tokens of a text with its letters as names."""
    # One pass for each way to mark a letter. An accent is read before fonts, of `\mathbf{\hat{w}}`; marks
    # and primes behind them, where `x` is one token; a transpose last, for its T is no letter.
    found = math_marks.with_sums(notation.tokens(source), own)
    found = math_marks.with_products(found, own)
    found = math_marks.with_accents(math_marks.with_combined(found))
    found = math_marks.with_differentials(notation.in_one_font(found))
    found = math_marks.with_stars(math_marks.scripts_apart(found))
    return notation.with_bars(found, double, source)


def _typed(
    found: list[Token], own: set[str], coordinates: Collection[str], named: Collection[str]
) -> Definitions:
    """The tokens with what is raised or primed as names, and what the text defines."""
    defined = definitions(found)
    functions = defined.functions
    found = math_marks.with_elements(defined.tokens, functions, own)
    found = notation.unbraced(math_marks.with_indices(found, functions, {*own, *named}))
    functions |= PRIMED - own  # whose primes are derivatives in front of any bracket
    if coordinates:
        found = math_motion.of_coordinates(found, coordinates)
    else:
        found = math_motion.with_names(found, lambda t, i: is_derivative(t, i, functions))
    found = notation.with_transposes(found, own, functions)
    if not any(map(notation.speaks_of_matrices, found)):  # where Δ is a matrix, as in x^T Δ x
        found = math_marks.with_increments(found, own)
    return defined._replace(tokens=found, functions=functions)


def _without_unused(parts: list[Node | Token], texts: list[str], inlined: set[str]) -> list[str]:
    """The texts of statements without definitions that stand in the place of all their calls."""
    kept = list(texts)
    for i, part in enumerate(parts):
        if not (isinstance(part, Node) and part.kind == "define" and part.text in inlined):
            continue
        others = " ".join(text for k, text in enumerate(texts) if k != i)
        if not re.search(rf"(?<![\w.]){re.escape(part.text)}\b", others):
            kept[i : i + 2] = [""] * len(kept[i : i + 2])  # and its semicolon
    return kept


def _assigned(found: list[Token]) -> set[str]:
    """The names before `=` at the beginning of statements, as they are read: a_1 of `a^{[1]} =`."""
    starts = [0, *(i + 1 for i, t in enumerate(found) if t.text in (";", "\n"))]
    return {
        found[i].text
        for i in starts
        if i + 1 < len(found) and found[i].kind == "name" and found[i + 1].text == "="
    }


def _besides_vectors(
    shapes: Mapping[str, tuple[str, ...]], vectors: set[str] | None
) -> dict[str, tuple[str, ...]]:
    """The shapes without those of vectors and matrices that have no index: w and A of `w^T A x_i`."""
    others = () if vectors is None else [n for n in shapes if n in vectors or is_matrix(n)]
    return {n: shape for n, shape in shapes.items() if shape or n not in others}


def _of_gradient(
    root: Node, places: Indices, gradient: tuple[str, ...], ones: Collection[str]
) -> Node:
    """A text with the indices that it has as a gradient: `(p_i - y_i) p_i` by z_i is one of each element."""
    from gradcli.language.math_indices import subscripts

    named = [n for n in nodes(root) if n.kind == "name" and n.base in places.tensors]
    used = {one.letter for n in named for one in subscripts(n) if one.letter in places.letters}
    used |= {x for n in nodes(root) if n.kind == "element" for x in n.text} & places.letters
    free = sorted(used - places.bound - {*ones})
    if all(gradient) and {*gradient} <= {*free}:
        free = list(gradient)
    return (
        root if len(free) != len(gradient) else Node("labelled", root.token, "".join(free), (root,))
    )


def _is_matrix(known: Known | None) -> bool:
    return known is not None and len(known.shape) == 2


def _is_vector(known: Known | None) -> bool:
    return known is not None and len(known.shape) == 1


def _is_number(known: Known | None) -> bool:
    return known is not None and not known.shape


def _limit_of(root: Node) -> str | None:
    """The variable of the upper limit of a text that is a sum of integrals and other terms, "" where that
    is no variable; None of other texts."""
    found = next((node for node in nodes(root) if node.kind == "integral"), None)
    if found is None:
        return None
    from gradcli.language.math_calculus import is_linear_in_integrals

    if not is_linear_in_integrals(root):
        return None
    return found.parts[-1].text if found.parts[-1].kind == "name" else ""

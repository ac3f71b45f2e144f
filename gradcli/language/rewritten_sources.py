"""A program's text written anew for a symbolic command: substitutions, equations, lists, intermediates.

Every function takes the text of a program and returns another program of the language, so that what follows
reads, runs and proves one kind of thing. Texts are put together by `joined`, so that an error is shown where
it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gradcli.engine.registry.schema import split_outside
from gradcli.language.equations import RELATIONS, sides
from gradcli.language.located_errors import LanguageError, suggest
from gradcli.language.names import is_known
from gradcli.language.parser import parse
from gradcli.language.program import Program
from gradcli.language.scope_checks import assigned_names, free_names
from gradcli.language.typed_text import TypedText, joined


class FormulaReading(NamedTuple):
    """A program as a symbolic command reads it.

    put_in: the variables that an expression was put in for. wrt: the variables to differentiate by; empty
    for all. elements: what of them, if some are only parts: `x[0]`. along: the direction of each, as text.
    functions: the names that are called and that nobody knows. typed: the program as it was typed.
    """

    source: str
    put_in: dict[str, str]
    wrt: list[str]
    elements: list[str]
    along: dict[str, str]
    functions: list[str]
    typed: str


def read(
    source: str,
    values: Mapping[str, str],
    wrt: Iterable[str] = (),
    *,
    of: str | None = None,
    along: str | None = None,
    motion: str | None = None,
    in_order: bool = False,
) -> FormulaReading:
    """A program with expressions put in for variables, an equation as a difference, a list as a vector.

    values: texts by variable, of which those that read variables are put in where the program has the
    name. wrt: variables, names that
    the program assigns, elements and slices. of: the variable that an equation gives. along: the texts of a
    direction. motion: the coordinate whose equation of motion it is, of a Lagrangian. in_order: a value may
    read the name of another one, which then comes before it. Raises LanguageError.
    """
    # The order of the steps matters. The last list becomes a vector while the text is still the user's;
    # then expressions are put in for variables; an equation becomes a difference; a name that is to be a
    # variable loses its assignment. What is left free are the variables.
    text = as_vector(TypedText.whole(source))
    # A name that the text does not read is a slip, as of an option: who asked for it is to be told.
    reads = free_names(parse(text)) if values else ()
    put_in = substitutions({name: value for name, value in values.items() if name in reads})
    if in_order and (chain := _chain(values, put_in)):
        put_in = {name: put_in.get(name) or substitutions(values)[name] for name in chain}
        for name in reversed(chain):
            text = substituted(text, {name: put_in[name]})
    else:
        text = substituted(text, put_in)
    if motion is not None:
        from gradcli.language.euler_lagrange import equation_of_motion

        text = equation_of_motion(text, motion)
    if of is not None:
        text = as_difference(text)
    places = [place for part in wrt for place in split_outside(part)]
    names = list(dict.fromkeys(place.partition("[")[0].strip() for place in places))
    for name in names:
        text = with_free(text, name)
    free = parse(text).free_variables()
    indexed = [p for p in places if "[" in p and p.partition("[")[0].strip() in free]
    if indexed:
        # so that the variables have these elements
        places_first = [p for q in indexed for p in (TypedText.whole(q, "--wrt"), "; ")]
        text = joined(*places_first, text)
    if along is not None and not names:
        free = [n for n in free if not _is_only_called(parse(text), n)]
    directions = (
        {} if along is None else _directions(TypedText.whole(along, "--along"), names or free)
    )
    for n, v in reversed(directions.items()):
        if parse(v).free_variables():
            text = joined("stack([", n, ", ", v, "]); ", text)
    unknown = _unknown_functions(parse(text))
    return FormulaReading(
        text, put_in, names, places if indexed else [], directions, unknown, source
    )


def _chain(values: Mapping[str, str], put_in: Mapping[str, str]) -> list[str]:
    """The names of expressions in such an order that each reads only those before it; none where there is
    nothing to order, or none such.
    """
    every = substitutions(values)
    reads = {n: {r for r in free_names(parse(t)) if r in every} for n, t in every.items()}
    wanted, waiting = set(put_in), list(put_in)
    while waiting:
        more = reads[waiting.pop()] - wanted
        wanted |= more
        waiting += more
    if not any(reads[name] for name in wanted):
        return []
    found: list[str] = []
    while ready := [n for n in every if n in wanted - {*found} and reads[n] <= {*found}]:
        found += ready
    return found if len(found) == len(wanted) else []


def _unknown_functions(program: Program) -> list[str]:
    """The names that are only called, or differentiated by func.grad, and not misspelt: letters, or
    words that resemble no function.
    """

    called = [n for n in free_names(program) if _is_only_called(program, n) and not is_known(n)]
    return [n for n in called if len(n) == 1 or not _is_slip(n)]


def _is_only_called(program: Program, name: str) -> bool:
    """Whether a name is nothing but a function: called, or differentiated by func.grad."""
    reads, called, _ = program.uses[name]
    taken = re.findall(rf"\bgrad\(\s*{re.escape(name)}\s*[,)]", program.source)
    return bool(called or taken) and reads == called + len(taken)


def _is_slip(name: str) -> bool:
    """Whether a name resembles a function's, or is a function of another library."""
    from gradcli.language.computer_algebra import is_called_elsewhere
    from gradcli.language.foreign_names import FUNCTIONS
    from gradcli.language.names import suggestions

    if name in FUNCTIONS or is_called_elsewhere(name):
        return True
    return bool(suggest(name, suggestions()))


def check_no_equation(program: Program) -> None:
    """Refuse to differentiate the truth of an equation. Raises LanguageError."""
    if _is_equation(program):
        names = program.free_variables()
        hint = "write the difference of the two sides; gradcli root solves the equation"
        if len(names) > 1:  # y, where there is one
            of = "y" if "y" in names else names[-1]
            by = next(n for n in names if n != of)
            hint = f"say it with --of NAME, as in --of {of} --wrt {by}; or write the difference of the sides"
        raise LanguageError(
            "this is an equation: which of its variables is a function of the others?",
            kind="usage",
            source=program.source,
            span=program.value_span,
            hint=hint,
        )


def _directions(text: str, names: list[str]) -> dict[str, str]:
    """The direction of each variable: one part of the text each, all of it for a single one."""
    parts, end = [], 0
    for part in split_outside(text):
        start = text.index(part, end)
        end = start + len(part)
        parts.append(text[start:end])
    if len(names) == 1:
        parts = [joined("tensor([", text, "])") if len(parts) > 1 else text]
    if len(parts) != len(names):
        raise LanguageError(
            f"--along has {len(parts)} parts, and there are {len(names)} variables",
            kind="usage",
            hint="choose the variables with --wrt",
        )
    return dict(zip(names, parts, strict=True))


def substituted(source: str, values: Mapping[str, str]) -> str:
    """The program with variables bound to expressions, all at once: `x, y = r*cos(t), r*sin(t); …`."""
    if not values:
        return source
    separator = "\n" if "\n" in source else "; "
    # All at once, in one assignment: with --x y --y x one after the other, y would be put in for itself.
    texts = [part for text in values.values() for part in (", ", text)][1:]
    return joined(", ".join(values), " = ", *texts, separator, source)


def substitutions(values: Mapping[str, str]) -> dict[str, str]:
    """Those of the values that read variables, and so are expressions to be put in."""
    found = {}
    for name, text in values.items():
        try:
            program = parse(text)
        except LanguageError:
            continue
        if program.ends_in_expression and program.free_variables():
            found[name] = joined("(", TypedText.whole(text, f"--{name}"), ")")
    return found


def as_difference(source: str) -> str:
    """`left == right` as `left - right`. Raises LanguageError if the program ends in no equation."""
    before, left, right, after = split_equation(source)
    return joined(before, "(", left, ") - (", right, ")", after)


def split_equation(source: str) -> tuple[str, str, str, str]:
    """What stands before the equation that a program ends in, its left side, its right side, the rest.

    Raises LanguageError if the program ends in no equation.
    """
    program, _ = sides(parse(source))
    left, right = map(program.span, program.children(len(program) - 3)[-2:])
    start, end = program.span(len(program) - 2)  # of the statement: brackets are around the sides
    return source[:start], source[slice(*left)], source[slice(*right)], source[end:]


def last_items(source: str) -> list[str] | None:
    """The texts of the items of the tuple or list that a program ends in; None where it ends in neither."""
    program = parse(source)
    row = len(program) - 3
    if not program.ends_in_expression or not _is(program, row, "list", "tuple"):
        return None
    return [source[slice(*program.span(child))] for child in program.children(row)]


def as_vector(source: str) -> str:
    """A program that ends in a list, `[x*y, y]`, as one that ends in a vector; others as they are."""
    items = last_items(source)
    if items is None or any(is_relation(text) for text in items):
        return source
    # `[x*y, 1]` is a vector although 1 is no tensor, which `stack` would refuse.
    parts = [text if free_names(parse(text)) else joined("full((), ", text, ")") for text in items]
    program = parse(source)
    start, end = program.span(len(program) - 3)
    listed = [part for text in parts for part in (", ", text)][1:]
    return joined(source[:start], "stack([", *listed, "])", source[end:])


def with_free(source: str, name: str) -> str:
    """The program without its one assignment to a name, which becomes a variable.

    Raises LanguageError if the program assigns it more than once, or together with others.
    """
    program = parse(source)
    if name not in assigned_names(program) or name in free_names(program):
        return source
    statements = [r for r in program.children(len(program) - 1) if _is(program, r, "assign")]
    own = [r for r in statements if source[slice(*program.span(program.children(r)[0]))] == name]
    times = [w for kind, w, _, _ in program.walk() if kind == "target"].count(name)
    if len(own) != 1 or times != 1:
        raise LanguageError(
            f"{name} is assigned more than once, or inside of something: it cannot be a variable",
            kind="usage",
            source=source,
            hint="give the value to differentiate by a name of its own, in a statement of its own",
        )
    start, end = program.span(own[0])
    rest = source[end:].lstrip(" \t")
    rest = rest.removeprefix(";").removeprefix("\n").lstrip(" ")
    return joined(source[:start], source[len(source) - len(rest) :])


def is_relation(text: str) -> bool:
    """Whether a text is an equation or an inequality."""
    program = parse(text)
    return program.ends_in_expression and _is(program, len(program) - 3, *RELATIONS)


def are_relations(source: str) -> list[bool]:
    """Whether what a program ends in is an equation or an inequality: of a tuple, each item."""
    items = last_items(source)
    return [is_relation(text) for text in ([source] if items is None else items)]


def _is_equation(program: Program) -> bool:
    return program.ends_in_expression and _is(program, len(program) - 3, "eq")


def _is(program: Program, row: int, *kinds: str) -> bool:
    from gradcli.language.tree_kinds import KINDS

    return row >= 0 and KINDS[program.kinds[row]] in kinds

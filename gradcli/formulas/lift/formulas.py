"""Symbolic rules that are formulas, such as `grad_output * output * (1 - output)`.

A formula is Python text over the names of the primitive's parameters. It may use operators, `where` and
the elementwise functions of the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from functools import cache, partial
from types import CodeType, MappingProxyType
from typing import Any

from gradcli.engine.system.generated_builtins import NO_BUILTINS
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import function
from gradcli.formulas.algebra.constants import as_exact
from gradcli.formulas.algebra.expressions import Expression, call, name, number
from gradcli.formulas.algebra.unknown_functions import Unknown
from gradcli.formulas.lift.elementwise_rules import compare
from gradcli.language import parse
from gradcli.language.program import Program


def _expression(value: Any) -> Expression:
    return value.expression if type(value) is _Term else as_exact(value)


def _plain(value: Any) -> Expression:
    """A term as its expression, for comparisons and branches; a number as it is."""
    return value.expression if type(value) is _Term else number(value)


def _on_terms(work: Callable[..., Expression], read: Callable[[Any], Any] = _expression) -> Any:
    return lambda *args: _Term(work(*map(read, args)))


def _sides(work: Callable[[Expression, Expression], Expression]) -> tuple[Any, Any]:
    """The two methods of a binary operator: for the left operand, and for the right (`__radd__`)."""

    def reversed_(own: Expression, left: Expression) -> Expression:
        return work(left, own)

    return _on_terms(work), _on_terms(reversed_)


def _compared(word: str) -> Any:
    return _on_terms(partial(compare, word), _plain)


class _Term:
    """An expression with Python's operators."""

    __slots__ = ("expression",)

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    __neg__ = _on_terms(alg.negate)
    __add__, __radd__ = _sides(alg.add)
    __sub__, __rsub__ = _sides(alg.subtract)
    __mul__, __rmul__ = _sides(alg.multiply)
    __truediv__, __rtruediv__ = _sides(alg.divide)
    __pow__, __rpow__ = _sides(alg.power)
    __and__ = _on_terms(partial(function, "bitwise_and"))
    __eq__, __ne__ = _compared("eq"), _compared("ne")
    __lt__, __le__ = _compared("lt"), _compared("le")
    __gt__, __ge__ = _compared("gt"), _compared("ge")


class _Names(dict[str, Any]):
    """The namespace of a formula: operands by name, then functions of the language."""

    def __missing__(self, word: str) -> Any:
        if word.startswith("__"):  # who looks at a frame, as pytest does, asks for names of his own
            raise KeyError(word)
        if word == "pi":
            return _Term(name("pi", (), -1))
        if word == "where":
            return _on_terms(alg.where, _plain)
        return _on_terms(partial(function, word.replace("__", ".")))


@cache
def _compiled(formula: str) -> CodeType:
    # `special.xlog1py` as one name.
    return compile(re.sub(r"(?<=[a-z])\.(?=[a-z])", "__", formula), "<formula>", "eval")


def read(formula: str, names: tuple[str, ...], args: list[Any]) -> Expression:
    """The expression of a formula; args: expressions for operands and numbers for options."""
    known = {
        n: _Term(a) if isinstance(a, Expression) else a for n, a in zip(names, args, strict=True)
    }
    return _expression(eval(_compiled(formula), {"__builtins__": NO_BUILTINS}, _Names(known)))


CONSTANT = frozenset(
    "sqrt log exp sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf erfc log1p expm1".split()
)
_PARTS = frozenset("name constant call add sub mul div pow neg".split())


def exact_constants(
    program: Program, names: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Program, dict[str, Expression]]:
    """The program with a name for each call of a constant, such as sqrt(3), and what it is exactly.

    So no arithmetic of floats folds it into a decimal, and f(2) of an unknown function, one of `names`,
    stays a call. A program that prints keeps its calls.
    """
    unknown = {word: f for word, f in names.items() if isinstance(f, Unknown)}
    known: dict[str, Expression] = {}
    source, rows = program.source, program.walk()
    if "print" in program.uses:
        return program, known
    # From the back, so that the places of what stands before stay right; a call inside of a replaced one is
    # gone.
    end = len(source)
    called = {program.children(row)[0] for row, (kind, *_) in enumerate(rows) if kind == "call"}
    varying = [0]
    for row, (kind, word, *_) in enumerate(rows):  # a variable may be called erf
        constant = _is_constant(kind, word, unknown) and (
            kind != "name" or word == "pi" or row in called
        )
        varying.append(varying[-1] + (not constant))
    for row in reversed(range(len(rows))):
        kind, _, _, (first, last) = rows[row]
        if kind == "call" and last <= end and varying[program.subtree(row)] == varying[row + 1]:
            word = f"constant_{row}"
            while word in program.source:  # a variable's
                word += "_"
            made = {n: partial(_unknown_call, f) for n, f in unknown.items()}
            known[word] = read(source[first:last], tuple(made), list(made.values()))
            source, end = source[:first] + word + source[last:], first
    return (parse(source) if known else program), known


def _unknown_call(function: Unknown, *args: Any) -> _Term:
    function.declared(len(args))
    return _Term(call(function.name, [_expression(a) for a in args], ()))


def _is_constant(kind: str, word: Any, unknown: Container[str]) -> bool:
    """Whether a part of a program may be one of a constant."""
    return kind in _PARTS and (
        kind != "name" or word == "pi" or word in CONSTANT or word in unknown
    )


__all__ = ["exact_constants", "read"]

"""Functions that a target lacks, written out: by a formula, or as what their kernel does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.registry import table
from gradcli.formulas.algebra.algebra import floating, full
from gradcli.formulas.algebra.expression_text import Printer, to_text
from gradcli.formulas.algebra.expressions import Expression, call, is_call, name, order
from gradcli.formulas.algebra.generic_points import as_exact_as
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.lift.lifting import Lifter
from gradcli.language import parse
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.transforms.traced_run import traced_run
from gradcli.transforms.tracing.calls import Call, calls

# Functions whose kernel is one of SciPy's, or not recorded: as other functions.
FORMULAS = {
    "nn.functional.gelu(x0)": "x0*erfc(-x0/sqrt(2))/2",
    "nn.functional.mish(x0)": "x0*tanh(log1p(exp(x0)))",
    "special.ndtr(x0)": "erfc(-x0/sqrt(2))/2",
    "special.entr(x0)": "-xlogy(x0, x0)",
}

# Those that are not elementwise, but whose kernels have no numbers that are sizes.
OF_ARRAYS = frozenset("addr addbmm dist narrow_copy renorm norm linalg.vector_norm".split())


def written_out(root: Expression, printer: Printer) -> Expression:
    """The expression without functions that a printer has no name for, as far as they can be written out."""

    def knows(node: Expression) -> bool:
        function, options = node.data
        try:
            printer.piece(call(function, _named(node), node.shape, options))
        except NoExpression:
            return False
        return True

    def rule(node: Expression) -> Expression:
        if node.op != "call" or knows(node):
            return node
        found = _body(node, knows)
        if found is None or any(is_call(own, node.data[0]) for own in order([found])):
            return node
        return rewrite(found, rule)

    made = rewrite(root, rule)
    return made if made.shape == root.shape else full(made, root.shape)


def _named(node: Expression) -> list[Expression]:
    return [name(f"x{i}", a.shape, i) for i, a in enumerate(node.args)]


def _body(node: Expression, knows: Callable[[Expression], bool]) -> Expression | None:
    """What a function does, as an expression of its operands; None if it is not to be written out."""
    function, options = node.data
    operands = _named(node)
    arrays = {own.data: np.full(own.shape, 0.7) for own in operands}
    text = to_text(call(function, operands, node.shape, options))
    if not (text in FORMULAS or function in OF_ARRAYS or _is_elementwise(function)):
        return None
    try:
        with as_exact_as(arrays):
            program = parse(FORMULAS.get(text, text))
            result, trace = traced_run(program, arrays, list(arrays), False, {}, True)
            value = trace.value_of(result)
            known = [(trace.inputs[n], a) for n, a in zip(arrays, node.args, strict=True)]
            found = _Body(known, map(id, calls([value])), knows).read([value])[0]
            found = found if found.shape == node.shape else full(found, node.shape)
            return floating(found) if value.value.dtype.kind == "f" else found
    except (*OPERATION_ERRORS, LanguageError, NoExpression):
        return None


def _is_elementwise(function: str) -> bool:
    entry = table.FUNCTIONS.get(function)
    rows = () if entry is None else entry.primitives
    return bool(rows) and all(row.batching == "elementwise" for row in rows)


class _Body(Lifter):
    """Lifts calls of functions that a target knows as calls, and others by their kernels."""

    def __init__(self, known: Any, given: Any, knows: Callable[[Expression], bool]) -> None:
        super().__init__(known, frozenset(given), nan_guards=True)
        self.knows = knows

    def convert(self, made: Call) -> Any:
        found = super().convert(made)
        unknown = isinstance(found, Expression) and found.op == "call" and not self.knows(found)
        return self.expand(made) if unknown and id(made) in self.given else found


__all__ = ["written_out"]

"""The chain rule, step by step: the local derivative at each edge, and the product so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.core.observers import observing
from gradcli.graphs.traversal import Describer, class_name, walk
from gradcli.graphs.vjp_text import rules_by_edge
from gradcli.language import LanguageError, Program, parse
from gradcli.symbolic import algebra as alg
from gradcli.symbolic.differentiate import positions
from gradcli.symbolic.expressions import Expression, is_number, name
from gradcli.symbolic.lifting import Lifter, NoExpression
from gradcli.symbolic.rewriting import rewrite
from gradcli.symbolic.simplify import RULES
from gradcli.tracing.calls import calls
from gradcli.transforms.traced_run import traced_run


class Step(NamedTuple):
    """One edge of the backward graph: from a subexpression to one of its operands.

    local: the derivative of the one by the other, if the VJP multiplies by it; else None, and `rule`
    is a formula that maps `grad`, the product before this edge, to `product`. product: the cotangent
    after this edge; if `is_leaf`, a term of a variable's gradient.
    """

    of: str
    by: str
    local: Expression | None
    rule: str
    product: Expression
    is_leaf: bool


def steps(
    program: Program,
    arrays: Mapping[str, Any],
    wrt: Sequence[str],
    *,
    follow: bool = False,
    names: Mapping[str, Any] | None = None,
) -> list[Step]:
    """Every step of the backward pass from the sum of a program's value, in the engine's order.

    arrays: the variables' values. wrt: the variables to differentiate by. follow: whether branches may
    depend on the values. Raises NoExpression if an operation cannot be written as an expression.
    """
    with np.errstate(all="ignore"):
        result, trace = traced_run(program, dict(arrays), wrt, follow, names or {})
        if result.grad_fn is None:
            return []
        leaves = [trace.variables[n] for n in wrt]
        known = {id(t): n for n, t in zip(wrt, leaves, strict=True)}
        describer = Describer(walk([result.grad_fn]), program.source, known)
        passed: list[tuple[Any, Any, tuple[Any, ...]]] = []  # node, gradient in, gradients out
        came: dict[Any, Any] = {}

        def see(event: tuple[str, Any, Any]) -> None:
            kind, node, data = event
            if kind == "start" and len(data) == 1:
                came[node] = trace.value_of(data[0])
            elif kind == "finish" and node in came:
                sent = (None if g is None else trace.value_of(g) for g in data)
                passed.append((node, came[node], tuple(sent)))

        given = {id(c) for c in calls([trace.value_of(result)])}
        edges = {
            node: (node.next_functions, rules_by_edge(node)) for node in describer.skeleton.nodes
        }
        with observing(see):
            trace.gradients(result, leaves)
        places = positions(program)
        symbols = [(v, name(n, tuple(v.shape), places.get(n, -1))) for n, v in trace.inputs.items()]
        lifter = Lifter(symbols, given)
        found = []
        for node, grad, sent in passed:
            (before,) = lifter.read([grad])
            for (target, _), rule, value in zip(*edges[node], sent, strict=True):
                if target is None or value is None:
                    continue
                (product,) = lifter.read([value])
                local = _quotient(product, before)
                of, by = _said(describer, node), _said(describer, target)
                is_leaf = class_name(target) == "AccumulateGrad"
                found.append(Step(of, by, local, rule, _short(product), is_leaf))
        return found


def piece(source: str, arrays: Mapping[str, Any], places: Mapping[str, int]) -> Expression | None:
    """A piece of a program as an expression of its variables; None if it does not run by itself."""
    try:
        value, trace = traced_run(parse(source), dict(arrays), [], False, {})
        symbols = [(v, name(n, tuple(v.shape), places.get(n, -1))) for n, v in trace.inputs.items()]
        whole = trace.value_of(value)
        return Lifter(symbols, {id(c) for c in calls([whole])}).read([whole])[0]
    except (LanguageError, NoExpression):
        return None


def _said(describer: Describer, node: Any) -> str:
    i = describer.id_of(node)
    assert i is not None
    return describer.variable(node) or describer.piece(describer.span(i)) or class_name(node)


def _short(expression: Expression) -> Expression:
    for rule in RULES:
        expression = rewrite(expression, rule)
    return expression


def _quotient(product: Expression, before: Expression) -> Expression | None:
    """`product / before`; None if `before` is no factor of the product."""
    if is_number(before, 1):
        return _short(product)
    if is_number(before, 0) or before.shape != product.shape:
        return None
    local = _short(alg.divide(product, before))
    return local if local.weight <= product.weight else None


__all__ = ["Step", "piece", "steps"]

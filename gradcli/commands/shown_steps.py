"""What `diff --show-steps` prints: rules of a board for numbers, differentials for arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.terminal import width

if TYPE_CHECKING:
    from gradcli.commands.formula_question import FormulaAnswer, FormulaQuestion
    from gradcli.formulas.ask.board_steps import Node
    from gradcli.formulas.ask.differential_steps import Step
    from gradcli.language.program import Program


def _check_constants(program: Program, names: Mapping[str, Any]) -> None:
    """Refuse f(2) of an unknown function, for which steps would show a number that means nothing."""
    from gradcli.formulas.lift.formulas import exact_constants

    if exact_constants(program, names)[1].keys() != exact_constants(program)[1].keys():
        raise usage(
            "steps cannot show an unknown function of a constant, such as f(2)",
            hint="give it a name, as in c*x for f(2)*x",
        )


class ShownSteps:
    """The steps of a derivative.

    nodes: by rules, where the program is one of numbers; else steps, as differentials. of: the variable
    that an equation makes a function of the others. more: gives the nodes with du in the place of u'.
    """

    def __init__(self, question: FormulaQuestion, order: int) -> None:
        from gradcli.formulas.ask.board_steps import NotOnABoard, board
        from gradcli.formulas.ask.differential_steps import steps

        request, where = question.request, question.where
        _check_constants(request.program, request.loaded)
        self.of = question.asked.of if question.asked is not None else None
        by = [n for n in question.wanted if n != self.of]
        self.differentials = len(by) > 1
        how: dict[str, Any] = {
            **{"order": order, "follow": where.is_given, "names": request.loaded},
        }
        wanted = by if self.of is None else [*by, self.of]
        asked = request.program, where.arrays, wanted
        self.nodes: list[Node] = []
        self.steps: Sequence[Step] = ()
        self.more: Callable[[], list[Node]] = list
        self.others = [n for n in where.arrays if n not in wanted]
        self.by = by
        try:
            if any(a.ndim or a.dtype.kind == "c" for a in where.arrays.values()):
                raise NotOnABoard
            self.nodes = board(*asked, of=self.of, **how)
            self.more = partial(board, *asked, of=self.of, differentials=True, **how)
        except NotOnABoard:
            self.steps = steps(*asked, **how)

    def arrays(self) -> list[str]:
        """The names of steps that are vectors or matrices."""
        return [step.name for step in self.steps if step.name and step.expression.shape]

    def lines(self, form: str) -> list[str]:
        """The lines of the steps, in text or LaTeX."""
        from gradcli.commands import board_text

        if self.nodes and not self.differentials and self.others and form == "text":
            held = f"{', '.join(self.others)} {'is' if len(self.others) == 1 else 'are'} constant"
            output.note(f"u' is the derivative of u by {self.by[0]}; {held}")
        zero = self.zero(form)
        if form == "latex":
            blocks = [[_latex_row(step) for step in self.steps]]
            if self.nodes:
                blocks = board_text.latex_blocks(self.nodes, self.differentials)
            if zero:
                own, one = zero.replace(" = 0", " &= 0"), len(blocks) == 1
                blocks[-1].append("&& " * one + own)
            return [line for block in blocks for line in _environment(block)]
        columns = width(sys.stdout)
        if self.nodes:
            found = board_text.to_text(self.nodes, self.differentials, columns)
        else:
            rows = [(*step.line(), ", ".join(step.rules)) for step in self.steps]
            rows = [(a, b, rule) if a else (b, "", rule) for a, b, rule in rows]
            found = list(board_text.in_columns(rows, columns))
        return [*found, *[zero] * bool(zero)]

    def by_elements(self, answer: FormulaAnswer) -> list[str]:
        """The steps of arrays over indices in LaTeX, and their gradients: u_i, and f by x_j.

        Nothing of numbers, which the other steps have, and of what has no gradient.
        """
        from gradcli.formulas.algebra import algebra as alg
        from gradcli.formulas.algebra.assuming import current
        from gradcli.formulas.print.latex import derivative_of, symbol
        from gradcli.formulas.print.latex_elements import over_indices

        found = answer.found
        if not self.steps or self.of is not None or found.kind != "gradient" or found.lower:
            return []
        rows = []
        for step in self.steps:
            at, text = over_indices(step.expression)
            left = (
                f"{{{symbol(step.name)}}}_{{{at}}}"
                if at
                else symbol(step.name or current.get().value)
            )
            rows.append(f"{left} &= {text}")
        for name, expression in found.by.items():
            whole = alg.full(expression, tuple(answer.where.arrays[name].shape))
            at, text = over_indices(whole)
            left = derivative_of([name])
            if at:
                own = rf"\partial {symbol(name)}"
                left = left.replace(own, rf"\partial {{{symbol(name)}}}_{{{at}}}")
            rows.append(f"{left} &= {text}")
        return _environment(rows)

    def zero(self, form: str) -> str:
        """What an equation says: the value stays 0, so its change is 0 too."""
        if self.of is None:
            return ""
        if not self.nodes:
            return f"{self.steps[-1].texts(form)[1]} = 0"
        from gradcli.commands.board_text import Writer

        writer = Writer(self.nodes, form, self.differentials)
        return f"{writer.text(self.nodes[-1].derivative)} = 0"

    def last(self, lines: Sequence[str], form: str) -> list[str]:
        """The lines of the answer behind the steps: in LaTeX an environment of their own.

        There the steps of a function of one number have ended with the answer already.
        """
        if form != "latex":
            return ["", *lines]
        if self.nodes and not self.differentials and self.of is None and len(lines) == 1:
            return []
        return _environment([line.replace(" = ", " &= ", 1) for line in lines])

    def to_json(self) -> list[dict[str, Any]]:
        """An object a step: the inner ones first."""
        if not self.nodes:
            return [step.to_json() for step in self.steps]
        from gradcli.commands.board_text import to_json

        return to_json(self.nodes, self.more(), self.differentials)


def _environment(rows: Sequence[str]) -> list[str]:
    """Rows of an align* environment."""
    body = [rf"  {row} \\" for row in rows]
    body[-1] = body[-1].removesuffix(r" \\")
    return [r"\begin{align*}", *body, r"\end{align*}"]


def _latex_row(step: Step) -> str:
    from gradcli.commands.board_text import tag

    own, change = step.line("latex")
    return f"{own + ' &' if own else '&&'} {change}{tag(', '.join(step.rules))}"


__all__ = ["ShownSteps"]

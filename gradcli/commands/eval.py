"""`gradcli eval EXPR`: the value."""

from __future__ import annotations

from typing import Any

import click

from gradcli.commands import output
from gradcli.commands.evaluation import evaluate
from gradcli.commands.options import ExpressionCommand, Request, expression_options


@click.command(
    "eval", cls=ExpressionCommand, epilog='Example: gradcli eval "(x+a).mean()" --x 3 --a 4,2'
)
@expression_options
@click.pass_context
def command(ctx: click.Context, request: Request) -> None:
    """Print the value of EXPR.

    Every variable x of EXPR is an option: --x 1,2,3. Several statements are separated by `;`.
    """
    value = evaluate(ctx, request).value
    style = request.style
    if style.form == "json":
        output.write_json({"expression": request.source, **entry(value, style)})
    else:
        output.write_results(results(value), style)


def results(value: Any) -> list[tuple[str | None, Any]]:
    """The lines of a value: one, or one for each field of a named tuple or item of a tuple."""
    if value is None:
        return []
    if isinstance(value, tuple) and any(hasattr(item, "requires_grad") for item in value):
        names = getattr(value, "_fields", None) or getattr(value, "fields", None)
        return list(zip(names or [None] * len(value), value, strict=True))
    return [(None, value)]


def entry(value: Any, style: output.Style) -> dict[str, Any]:
    """The value's keys in the JSON object; a tuple of tensors has a list of such objects as value."""
    found = output.described(value, style.precision)
    if isinstance(value, tuple | list) and any(hasattr(v, "requires_grad") for v in value):
        found["value"] = [entry(item, style) for item in value]
    node = getattr(value, "grad_fn", None)
    found["requires_grad"] = bool(getattr(value, "requires_grad", False))
    found["grad_fn"] = None if node is None else node.name()
    return found

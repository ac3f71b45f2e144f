"""`gradcli grad EXPR`: the options of the gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradcli.commands import completers
from gradcli.commands.gradient import run
from gradcli.commands.options import (
    ExpressionCommand,
    Whole,
    array_options,
    by_rows_option,
    cluster_options,
    drawn_option,
    expression_options,
    plan_option,
    uncertainty_options,
)

if TYPE_CHECKING:
    from gradcli.commands.request import Request


class GradCommand(ExpressionCommand):
    """Takes values with an uncertainty, too."""

    propagates = True


@click.command(
    "grad",
    cls=GradCommand,
    epilog="""\b
Examples:
  gradcli grad "2*dot(x,x)" --x 0,1,2,3
  gradcli grad "y = a*x; y + b" --x 3 --a 4 --b 5 --retain y --value
  gradcli grad "x*x" --x 1,2 --seed ones
  gradcli grad "sum((a*b)**2)" --a 1,2 --b 2,4 --trace
  gradcli grad "4*pi**2*L/T**2" --L 0.994±0.002 --T "2.003(5)" --budget""",
)
@expression_options
@drawn_option
@array_options
@click.option("--seed", "--gradient", metavar="VALUE", help="Seed gradient; `ones` has any shape.")
@click.option(
    "--retain",
    "retain_names",
    metavar="NAMES|all",
    multiple=True,
    shell_complete=completers.assigned,
    help="Gradients of these names too.",
)
@click.option(
    "--passes",
    metavar="N",
    type=Whole(1),
    default=1,
    help="Backpropagate N times; gradients add up.",
)
@click.option(
    "--order", metavar="N", type=Whole(1), default=1, help="Differentiate N times by each variable."
)
@click.option("--retain-graph", is_flag=True, help="Keep the graph for another pass.")
@click.option("--create-graph", is_flag=True, help="Record the backward pass itself.")
@click.option("--value", "show_value", is_flag=True, help="Print the value too.")
@click.option(
    "--hook",
    "hooks",
    metavar="'NAME: EXPR of grad'",
    multiple=True,
    help="Replace NAME's gradient on its way.",
)
@click.option("--detect-anomaly", is_flag=True, help="Refuse NaN and infinity; say where from.")
@click.option("--trace", "show_trace", is_flag=True, help="One row a step of the backward pass.")
@uncertainty_options
@plan_option
@by_rows_option
@cluster_options
@click.pass_context
def command(ctx: click.Context, /, request: Request, **given: Any) -> None:
    """Print the gradient of EXPR with respect to its variables.

    Where values have an uncertainty (0.994±0.002, 0.994+-0.002, 0.994(2)), that of EXPR is printed first.
    """
    run(ctx, request, **given)

"""`gradcli graph EXPR`: the options of the backward graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradcli.commands import COMMANDS, completers
from gradcli.commands.command_errors import usage
from gradcli.commands.drawn_graph import FORMATS, run
from gradcli.commands.options import (
    ExpressionCommand,
    Whole,
    drawn_option,
    expression_options,
    split,
)

if TYPE_CHECKING:
    from gradcli.commands.request import Request


class GraphCommand(ExpressionCommand):
    """The command, which has a program of PyTorch's instead of EXPR where --torch says so."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """With --torch what follows `--` belongs to the program."""
        if not any(word == "--torch" or word.startswith("--torch=") for word in args):
            return super().parse_args(ctx, args)
        own, rest = args, []
        if "--" in args:
            at = args.index("--")
            own, rest = args[:at], args[at + 1 :]
        found = split(own, self.declared(ctx))
        if "torch_file" in found.given and (found.positionals or found.bindings):
            extra = [*found.positionals, *(f"--{name}" for name, _ in found.bindings)][0]
            raise usage(
                f"unexpected argument {extra!r}: --torch has its graph from a program",
                hint="the program's own arguments follow `--`",
            )
        ctx.meta["gradcli.arguments"] = rest
        return super().parse_args(ctx, [*own, "--", "0"] if "torch_file" in found.given else args)


@click.command(
    "graph",
    cls=GraphCommand,
    short_help=COMMANDS["graph"],
    epilog="""\b
Examples:
  gradcli graph "y = a*x; y + b" --x 3 --a 4 --b 5 --saved
  gradcli graph "sum(tanh(x)**2)" --x 1,2 --grads --values
  gradcli graph "2*dot(x,x)" --x 0,1,2,3 -o graph.html
  gradcli graph "sum(tanh(x)**2)" --x 1,2 --forward --values -o graph.png
  gradcli graph --torch train.py:loss --by module --grads -- --epochs 1""",
)
@expression_options
@drawn_option
@click.option("--saved", is_flag=True, help="Show what every node saves.")
@click.option("--values", is_flag=True, help="Show the values of the forward pass.")
@click.option("--grads", is_flag=True, help="Backpropagate; show the gradients on the way.")
@click.option("--seed", "--gradient", metavar="VALUE", help="Seed gradient of --grads.")
@click.option("--edges", is_flag=True, help="Number the edges; show those that are None.")
@click.option("--only", metavar="NAME|NODE", help="Only this name, node or number, and below.")
@click.option("--depth", metavar="N", type=Whole(0), help="Only N levels.")
@click.option(
    "--collapse/--no-collapse",
    default=None,
    help="Fold straight chains, or not (auto: where deep).",
)
@click.option("--forward", is_flag=True, help="Read it from the inputs to the result.")
@click.option(
    "--wide", is_flag=True, help="Arrays and sources at length, lines as long as need be."
)
@click.option(
    "--torch",
    "torch_file",
    metavar="FILE.py[:NAME]",
    shell_complete=completers.files,
    help="Run a PyTorch program (its arguments after --); the graph of NAME, or of its loss.",
)
@click.option(
    "--by",
    type=click.Choice(("module",)),
    help="Fold the graph to modules; --depth unfolds (--torch).",
)
@click.option(
    "--norms", is_flag=True, help="How large gradients are, and where they vanish or explode."
)
@click.option(
    "--sort", type=click.Choice(("depth", "grad", "ratio")), help="How --norms is sorted."
)
@click.option("--detect-anomaly", is_flag=True, help="Refuse NaN and infinity; say where from.")
@click.option("--legend", is_flag=True, help="Say what the signs mean.")
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    type=click.Choice(FORMATS),
    help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
)
@click.option(
    "-o",
    "path",
    metavar="FILE",
    shell_complete=completers.files,
    help="Write a file; its ending says the format.",
)
@click.option(
    "--frames",
    "folder",
    metavar="DIR",
    help="Write a picture for every step of the backward pass (SVG; --format png, pdf).",
)
@click.option(
    "--direction", type=click.Choice(("down", "right")), help="Which way a picture is drawn."
)
@click.option("--theme", type=click.Choice(("auto", "light", "dark")), help="Colours of a picture.")
@click.option("--background", type=click.Choice(("auto", "none", "white")), help="Its paper.")
@click.pass_context
def command(ctx: click.Context, /, request: Request, **given: Any) -> None:
    """Show the backward graph of EXPR: its nodes, what made them, what they save and lead to."""
    run(ctx, request, **given)

"""`gradcli graph EXPR`: the backward graph, drawn or as data."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from gradcli.commands import COMMANDS, completers, output
from gradcli.commands.backward import explained, seed_of
from gradcli.commands.errors import usage
from gradcli.commands.evaluation import ENGINE_ERRORS, Evaluation
from gradcli.commands.inspection import evaluate_watched, graph_of
from gradcli.commands.options import ExpressionCommand, Request, Whole, expression_options
from gradcli.commands.terminal import speaks_unicode
from gradcli.language.errors import did_you_mean, suggest

if TYPE_CHECKING:
    from gradcli.graphs.graph import Graph

FORMATS = ("tree", "json", "dot", "mermaid", "svg", "html")
SUFFIXES = {
    "": "tree",
    ".txt": "tree",
    ".json": "json",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
}


# What shapes the tree alone: the other formats always hold the whole graph.
OF_THE_TREE = {"only": "--only", "depth": "--depth", "collapse": "--collapse", "legend": "--legend"}


@click.command(
    "graph",
    cls=ExpressionCommand,
    short_help=COMMANDS["graph"],
    epilog="""\b
Examples:
  gradcli graph "y = a*x; y + b" --x 3 --a 4 --b 5 --saved
  gradcli graph "sum(tanh(x)**2)" --x 1,2 --grads --values
  gradcli graph "2*dot(x,x)" --x 0,1,2,3 -o graph.html""",
)
@expression_options
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
@click.pass_context
def command(
    ctx: click.Context,
    /,
    request: Request,
    form: str | None,
    path: str | None,
    seed: str | None,
    **shown: Any,
) -> None:
    """Show the backward graph of EXPR: its nodes, what made them, what they save and lead to."""
    chosen = _format(form, path, request)
    if chosen != "tree":
        _check_options(shown, chosen)
    shown["grads"] = shown["grads"] or seed is not None
    graph = _graph(ctx, request, shown["values"] or chosen == "html", shown["grads"], seed)
    if chosen == "tree":
        _tree(graph, shown, request, path)
        return
    if chosen == "json":
        import json

        text = json.dumps(graph.to_json(), ensure_ascii=False, allow_nan=False)
    else:
        text = getattr(graph, f"to_{chosen}")()
    output.write_file(path or "-", text if text.endswith("\n") else f"{text}\n")


def _check_options(shown: dict[str, Any], form: str) -> None:
    """Refuse what would be passed over in silence."""
    for key, option in OF_THE_TREE.items():
        if shown[key] not in (None, False):
            raise usage(
                f"{option} is for the tree; {form} always has the whole graph",
                hint=f"leave out {option}, or --format {form}",
            )


def _format(form: str | None, path: str | None, request: Request) -> str:
    if request.style.form == "json":
        if form not in (None, "json"):
            raise usage(f"--json and --format {form} exclude each other")
        return "json"
    if form is None and path is not None:
        ending = os.path.splitext(path)[1].lower()
        if ending not in SUFFIXES:
            hint = f"there are {' '.join(e for e in SUFFIXES if e)}; or say --format FORMAT"
            if ending in (".png", ".pdf", ".jpg", ".jpeg", ".ps", ".eps", ".gif", ".webp"):
                hint = f"pipe --format dot through Graphviz: dot -T{ending[1:]} -o {path}"
            raise usage(f"-o: no format has the ending {ending}", hint=hint)
        return SUFFIXES[ending]
    return form or "tree"


def _graph(
    ctx: click.Context, request: Request, values: bool, grads: bool, seed: str | None
) -> Graph:
    evaluation, watched = evaluate_watched(ctx, request, values)
    graph = graph_of(evaluation, _tensors(evaluation), watched)
    if grads:
        try:
            graph.backpropagate(seed_of(evaluation, seed))
        except ENGINE_ERRORS as error:
            raise explained(evaluation, error) from error
    return graph


def _tensors(evaluation: Evaluation) -> Any:
    """The tensor whose graph is asked for, or the tensors of a tuple."""
    value = evaluation.value
    if isinstance(value, tuple) and value:
        tensors = [item for item in value if getattr(item, "requires_grad", False)]
        if tensors:
            return tuple(tensors)
    tensor = evaluation.tensor("graph")
    if not tensor.requires_grad:
        error = RuntimeError(
            "element 0 of tensors does not require grad and does not have a grad_fn"
        )
        found = explained(evaluation, error)
        found.message = f"no graph: nothing requires grad ({found.message})"
        raise found
    return tensor


def _tree(graph: Graph, shown: dict[str, Any], request: Request, path: str | None) -> None:
    precision = request.style.precision
    if precision is not None:
        shown["precision"] = precision
    to_file = path not in (None, "-")
    drawing = graph.tree(**shown, ascii=not (to_file or speaks_unicode(sys.stdout)))
    try:
        if to_file:
            output.write_file(str(path), f"{drawing.plain()}\n")
        else:
            output.write_drawing(drawing, request.style)
    except ValueError as error:  # --only of nothing
        if shown["only"] is None:
            raise
        nodes = {type(node).__name__ for node in graph.skeleton.nodes}
        stems = {name.partition("Backward")[0] for name in nodes}
        names = sorted({*graph.names.values(), *stems, *nodes})
        hint = did_you_mean(suggest(shown["only"], names))
        raise usage(f"--only: {error}", kind="name", hint=hint) from error

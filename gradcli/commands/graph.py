"""`gradcli graph EXPR`: the backward graph, drawn or as data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from gradcli.commands import COMMANDS, output
from gradcli.commands.backward import explained, seed_of
from gradcli.commands.errors import usage
from gradcli.commands.evaluation import ENGINE_ERRORS, Evaluation
from gradcli.commands.inspection import evaluate_watched, graph_of
from gradcli.commands.options import ExpressionCommand, Request, Whole, expression_options

if TYPE_CHECKING:
    from gradcli.graphs.graph import Graph

FORMATS = ("tree", "json", "dot", "mermaid", "svg", "html")
SUFFIXES = {
    ".json": "json",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
}


@click.command(
    "graph",
    cls=ExpressionCommand,
    short_help=COMMANDS["graph"],
    epilog='Example: gradcli graph "y = a*x; y + b" --x 3 --a 4 --b 5',
)
@expression_options
@click.option("--saved", is_flag=True, help="Show what every node saves.")
@click.option("--grads", is_flag=True, help="Backpropagate; show the gradient that reaches a node.")
@click.option("--seed", "--gradient", metavar="VALUE", help="Seed gradient for --grads.")
@click.option("--values", is_flag=True, help="Show the values of the forward pass.")
@click.option("--edges", is_flag=True, help="Show the inputs that need no gradient too.")
@click.option("--depth", metavar="N", type=Whole(0), help="Only N levels.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="By default what -o's ending says, or tree.",
)
@click.option("-o", "path", metavar="FILE", help="Write a file (- for stdout).")
@click.pass_context
def command(
    ctx: click.Context,
    request: Request,
    saved: bool,
    grads: bool,
    seed: str | None,
    values: bool,
    edges: bool,
    depth: int | None,
    form: str | None,
    path: str | None,
) -> None:
    """Show the backward graph of EXPR: its nodes, what made them, what they save and lead to.

    Every variable x of EXPR is an option: --x 1,2,3. Several statements are separated by `;`.
    """
    chosen = _format(form, path, request)
    graph = _graph(ctx, request, values, grads or seed is not None, seed)
    shown = {"saved": saved, "values": values, "edges": edges, "depth": depth}
    if chosen == "tree":
        _tree(graph, shown, request, path)
        return
    if chosen == "json":
        import json

        text = json.dumps(graph.to_json(), ensure_ascii=False, allow_nan=False)
    else:
        text = getattr(graph, f"to_{chosen}")()
    output.write_file(path or "-", text if text.endswith("\n") else f"{text}\n")


def _format(form: str | None, path: str | None, request: Request) -> str:
    if request.style.form == "json":
        if form not in (None, "json"):
            raise usage(f"--json and --format {form} exclude each other")
        return "json"
    if form is None and path is not None:
        return SUFFIXES.get(os.path.splitext(path)[1].lower(), "tree")
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
    tree = graph.tree(**shown)
    if path not in (None, "-"):
        output.write_file(str(path), f"{tree.plain()}\n")
    else:
        output.write_drawing(tree, request.style)

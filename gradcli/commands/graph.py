"""`gradcli graph EXPR`: the backward graph, drawn or as data."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import ANOMALY, DRAWN, SEED, Option, Options, declare
from gradcli.commands.inspected import (
    evaluate_along,
    evaluate_watched,
    graph_of,
    raise_anomaly,
    raise_on_anomalies,
)
from gradcli.commands.request_evaluation import Evaluation, Look, cotangent_of, explained, kinks_of
from gradcli.commands.terminal import is_terminal, speaks_unicode
from gradcli.language.located_errors import OPERATION_ERRORS, did_you_mean, suggest

if TYPE_CHECKING:
    from gradcli.commands.output import Style
    from gradcli.commands.request import Request
    from gradcli.commands.torch_program import Ran
    from gradcli.engine.system.process import AnyContext
    from gradcli.graphs.inspection import Graph
    from gradcli.language.located_errors import LanguageError

FORMATS = ("tree", "json", "dot", "mermaid", "svg", "html", "tikz", "png", "pdf")
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
    ".tex": "tikz",
    ".tikz": "tikz",
    ".png": "png",
    ".pdf": "pdf",
}
BINARY = ("png", "pdf")
MANY_NODES = 300  # in a picture; more are drawn by module
LONG_TREE = 100  # nodes; of more a tree fills several screens
FRAME_FORMATS = ("svg", "png", "pdf")
PAINTED = ("svg", "png", "pdf", "dot", "tikz")
# Options that only some formats have. All others mean the same in every format.
HAVE = {
    "legend": ("tree",),
    "wide": tuple(form for form in FORMATS if form != "json"),
    "collapse": tuple(form for form in FORMATS if form != "json"),
    "theme": (*PAINTED, "html"),
    "background": PAINTED,
    "direction": (*PAINTED, "mermaid"),
    "slopes": (*PAINTED, "mermaid"),
}
REASONS = {
    "collapse": "JSON has every node of a chain",
    "slopes": "they stand on the edges of a picture; grad --trace has the rules",
    "legend": "the legend says what the tree's signs mean",
    "wide": "JSON has every number",
}
# Options that say where the graph comes from or goes to, and not what a picture shows of it.
_NOT_SHOWN = frozenset(
    "format path frames seed vector torch norms diagnose time places sort detect_anomaly steps at".split()
)


def _torch_arguments(command: Any, ctx: Any, args: list[str]) -> list[str]:
    """With --torch what follows `--` belongs to the program, which stands instead of EXPR."""
    if not any(word == "--torch" or word.startswith("--torch=") for word in args):
        return args
    from gradcli.commands.argv import split

    ours, theirs = args, []
    if "--" in args:
        at = args.index("--")
        ours, theirs = args[:at], args[at + 1 :]
    ours = _inputs(ctx, ours)
    found = split(ours, command.declared)
    ctx.meta["gradcli.arguments"] = theirs
    if "torch" not in found.given:
        return args
    if found.positionals or found.bindings or found.bare:
        names = [name for name, _ in (*found.bindings, *found.bare)]
        extra = [*found.positionals, *(f"--{name}" for name in names)][0]
        raise usage(
            f"unexpected argument {extra!r}: it is no option of graph",
            hint="write -o FILE for a picture; the program's own arguments go after `--`",
        )
    return [*ours, "--", "0"]


def _inputs(ctx: Any, args: list[str]) -> list[str]:
    """The arguments without the shapes and dtypes of a module's inputs, which are kept."""
    kept: dict[str, list[str]] = {"--shape": [], "--dtype": []}
    rest, words = [], iter(args)
    for word in words:
        head, equals, value = word.partition("=")
        if head in kept and not equals:
            value = next(words, "")
        if head in kept and (head == "--shape" or "=" in value):
            kept[head].append(value)
        else:
            rest += [word] if equals or head not in kept else [word, value]
    ctx.meta["gradcli.inputs"] = kept
    return rest


@declare(
    "graph",
    *DRAWN,
    Option("--saved", "Show what each node keeps for the backward pass."),
    Option("--values", "Show the value that each node computed."),
    Option("--grads", "Run the backward pass; show the gradient that reaches each node."),
    Option(
        "--vector V",
        "Show the tangent of each node along V, in forward mode; NAME=V of several variables.",
        many=True,
    ),
    Option(SEED, "The gradient that --grads starts from (1 for a number)."),
    Option("--slopes", "Write the slope of each operation on its edges, where these are numbers."),
    Option("--edges", "Number the edges as next_functions does, None included."),
    Option("--only NAME|NODE", "Show one node, by name or number, and what is below it."),
    Option("--depth N", "Show N levels.", least=0),
    Option(
        "--collapse/--no-collapse",
        "Fold chains without branches (default in deep graphs), or never.",
    ),
    Option("--forward", "Draw from the inputs to the result."),
    Option("--wide", "Show arrays and sources in full, in lines of any length."),
    Option(
        "--torch FILE.py[:NAME]",
        "Run a PyTorch program (its arguments after --); show the graph of its loss, or of NAME; "
        "a module NAME is called on inputs of --shape x=5,3 (integers: --dtype x=int64).",
    ),
    Option("--steps N", "With --torch: stop the program after N backward passes.", least=1),
    Option("--at FILE:LINE", "With --torch: stop at a line; show the graph of what it made."),
    Option(
        "--by",
        "With --torch: a line a module, or a node (default: modules beyond 300 nodes in a picture).",
        choices=("module", "node"),
    ),
    Option("--open NAMES", "With --by module: show what is inside these modules (commas between)."),
    Option("--fold NAMES", "With --by module: show nothing of what is inside these."),
    Option("--time", "With --torch: show how long each module takes, forward and backward."),
    Option(
        "--lines",
        "With --torch: name the lines of your program, or those of libraries.",
        name="places",
        choices=("own", "library"),
    ),
    Option("--diagnose", "Show only problems: the line, and what to do."),
    Option("--norms", "List sizes of gradients; mark where they vanish or explode."),
    Option("--sort", "Order of --norms.", choices=("depth", "grad", "ratio")),
    ANOMALY,
    Option("--legend", "Explain the symbols below the graph."),
    Option(
        "--format FORMAT",
        "tree: text for a terminal; svg, png, pdf: a picture; html: a page to look around in; tikz: LaTeX; "
        "dot: Graphviz; mermaid: Markdown; json: every node, for programs.",
        choices=FORMATS,
    ),
    Option(
        "-o FILE",
        "Write .svg .png .pdf .html .tex .dot .mmd .json or .txt.",
        name="path",
    ),
    Option(
        "--frames DIR",
        "Write a picture of each step of the backward pass into a folder (svg; --format png, pdf).",
    ),
    Option("--direction", "Direction of a picture.", choices=("down", "right")),
    Option("--theme", "Colours of a picture.", choices=("auto", "light", "dark")),
    Option("--background", "Background of a picture.", choices=("auto", "none", "white")),
    examples=(
        'gradcli graph "y = a*x; y + b" --x 3 --a 4 --b 5 --saved',
        'gradcli graph "sum(tanh(x)**2)" --x 1,2 --grads --values',
        'gradcli graph "2*dot(x,x)" --x 0,1,2,3 -o graph.html',
        'gradcli graph "sum(tanh(x)**2)" --x 1,2 --forward --values -o graph.png',
        "gradcli graph --torch train.py:loss --by module --grads -- --epochs 1",
    ),
    open_variables=True,
    arguments=_torch_arguments,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Show the graph that the backward pass of EXPR walks: one node per operation."""
    shown = {name: value for name, value in vars(options).items() if name not in _NOT_SHOWN}
    seed, path, folder, norms = options.seed, options.path, options.frames, options.norms
    anomalies, sort = options.detect_anomaly, options.sort
    chosen = _format(options.format, path, folder, request)
    _check_options(shown, chosen)
    wants_slopes = bool(shown["slopes"])
    shown["grads"] = shown["grads"] or seed is not None or folder is not None or norms
    wants_gradients = shown["grads"] or options.diagnose or wants_slopes
    if norms or sort is not None:
        _check_norms(norms, chosen, folder)
    if options.diagnose and chosen not in ("tree", "json"):
        raise usage("--diagnose is text or JSON", hint=_WITHOUT_PICTURE)
    if options.time or options.open or options.fold:
        shown["by"] = "module"
    if options.torch is not None:
        if wants_slopes:
            raise usage(
                "--slopes is not for PyTorch programs", hint="--norms lists sizes of gradients"
            )
        if options.vector:
            raise usage(
                "--vector is not for PyTorch programs", hint="torch.func.jvp has the derivative"
            )
        from gradcli.graphs.html_page import FEW_NODES
        from gradcli.graphs.value_text import norm_of, stats_of

        watched = {
            "values": stats_of if shown["values"] or anomalies else norm_of if norms else None,
            "gradients": shown["grads"] or anomalies,
            "operands": options.forward,
            "norms": options.diagnose,
            "anomalies": anomalies,
            "timed": options.time,
            "lines": options.places or "own",
            "end": _end(options.steps, options.at),
            "finite": norms or options.diagnose,
            "few": FEW_NODES if chosen == "html" else 0,
        }
        graph = _torch_graph(ctx, options, seed, watched)
        if not (options.diagnose or norms):  # which draw no nodes
            _choose_modules(graph, shown, chosen)
    else:
        if shown["by"] is not None or options.places is not None:
            name = "--lines" if shown["by"] is None else "--by module"
            raise usage(f"{name} is for PyTorch programs", hint="see --torch FILE.py")
        if options.steps is not None or options.at is not None:
            name = "--at" if options.steps is None else "--steps"
            raise usage(f"{name} is for PyTorch programs", hint="see --torch FILE.py")
        values = shown["values"] or chosen == "html" or norms or anomalies or options.diagnose
        if request.open_variables:
            numbers = values or wants_gradients or shown["saved"] or chosen == "json"
            numbers = numbers or bool(options.vector)
            _work_out_shapes(ctx, request, numbers)
        graph = _graph(
            ctx, request, values or options.forward, wants_gradients, seed, anomalies,
            options.vector,
        )  # fmt: skip
    _show(graph, options, shown, chosen, request.style)
    if code := ctx.meta.get("gradcli.code"):
        raise SystemExit(code)  # as the program would have ended


def _show(graph: Graph, options: Options, shown: dict[str, Any], form: str, style: Style) -> None:
    if options.diagnose:
        _write_diagnosis(graph, form, options.path, style)
        return
    if options.norms:
        _write_norms(graph, options.sort or "depth", form, options.path, style)
        return
    from gradcli.engine.system.garbage import uncollected

    with uncollected():  # records of a large graph, all of which live on
        write_graph(graph, shown, form, options.path, options.frames, style)


def _end(steps: int | None, at: str | None) -> Any:
    """Where the program is stopped, if it is."""
    if steps is None and at is None:
        return None
    from gradcli.graphs.of_torch.early_end import End

    if at is None:
        return End(steps or 0)
    file, _, line = at.rpartition(":")
    if not (file and line.isdecimal()):
        raise usage(f"--at wants FILE:LINE, not {at!r}", hint="as in --at model.py:12")
    return End(steps or 0, (file, int(line)))


_WITHOUT_PICTURE = "leave out -o and --format, or write --json"


def _check_norms(norms: bool, form: str, folder: str | None) -> None:
    if not norms:
        raise usage("--sort is for --norms")
    if form not in ("tree", "json") or folder is not None:
        raise usage("--norms is a table: text or JSON", hint=_WITHOUT_PICTURE)


def _write_diagnosis(graph: Graph, form: str, path: str | None, style: Style) -> None:
    found = graph.diagnosis()
    if form == "json":
        text = output.object_text({"diagnosis": [one.to_json() for one in found.findings]})
        output.write_file(path or "-", f"{text}\n")
    elif path not in (None, "-"):
        output.write_file(str(path), f"{found.plain()}\n")
    else:
        found.ascii = not speaks_unicode(sys.stdout)
        output.write_drawing(found, style)


def _write_norms(graph: Graph, by: str, form: str, path: str | None, style: Style) -> None:
    found = graph.norms()
    if form == "json":
        text = output.object_text({"expression": graph.source, **found.to_json(by)})
        output.write_file(path or "-", f"{text}\n")
        return
    from gradcli.graphs.gradient_norms import NormsTable

    to_file = path not in (None, "-")
    table = NormsTable(found, by, ascii=not (to_file or speaks_unicode(sys.stdout)))
    if to_file:
        output.write_file(str(path), f"{table.plain()}\n")
    else:
        output.write_drawing(table, style)


def _torch_graph(
    ctx: AnyContext,
    options: Options,
    seed: str | None,
    watched: dict[str, Any],
) -> Graph:
    from gradcli.commands.torch_program import run_torch

    if seed is not None:
        raise usage("--seed is a value of gradcli's language; --torch takes none")
    inputs = ctx.meta["gradcli.inputs"]
    ran, wanted = run_torch(
        *(options.torch, ctx.meta["gradcli.arguments"], ctx.call_on_close),
        *(inputs["--shape"], inputs["--dtype"]),
        **watched,
    )
    if ran.error is not None:
        at, _, rest = ran.error.partition(": ")
        kind, _, said = rest.partition(": ")  # what it said is in its traceback, above
        ended = f"{at}: {kind} ended the program: this is its run until then"
        output.note(ended if said else ran.error, "warning")
    ctx.meta["gradcli.code"] = ran.code
    if watched["anomalies"] and (found := ran.anomaly()) is not None:
        raise found
    graph = ran.graph(wanted)
    graph.program = ran.title(wanted)
    if (step := graph.finite_step) is not None:
        output.note(
            f"the run ends in NaN or infinity: gradients are looked at in step {step} of "
            f"{ran.watch.steps}, the last that is finite"
        )
    if watched["gradients"] or watched["norms"]:
        _measure(graph, ran, watched["norms"])
    if ran.watch.is_unseeded and (options.norms or options.diagnose):
        _note_seed(graph, options)
    return graph


def _note_seed(graph: Graph, options: Options) -> None:
    """Say that numbers of gradients are those of one run, where they are told and nobody has set a seed."""
    flows = any(one.kind in ("vanishing", "exploding") for one in graph.diagnosis().findings)
    if flows or (options.norms and graph.norms().marks):
        output.note(
            "the program sets no seed: another run has other numbers; torch.manual_seed(0) at its "
            "beginning repeats these"
        )


def _measure(graph: Graph, ran: Ran, norms: bool) -> None:
    """Find what reaches the nodes. norms: for a diagnosis, which goes on where that cannot be found."""
    try:
        ran.watch.measure()
    except RuntimeError as error:  # of a pass that has run: what it needs has changed since
        refused = _not_again(error, graph.finite_step or ran.watch.facts.step)
        if not norms:
            raise refused from error
        output.note(f"sizes of gradients are not judged: {refused.hint}")
        return
    try:
        graph.backpropagate()
    except RuntimeError as error:
        if not norms:
            raise _not_backward(error) from error
        graph.error = graph.error or str(error)


def _not_again(error: RuntimeError, steps: int) -> LanguageError:
    from gradcli.language.located_errors import LanguageError

    hint = "the program has changed since what its last backward pass needs: "
    hint += f"--steps {steps} looks at that pass while it runs"
    return LanguageError(str(error), kind="runtime", hint=hint, usage=False)


def _choose_modules(graph: Graph, shown: dict[str, Any], form: str) -> None:
    """A picture of very many nodes is by module unless something else is asked for."""
    if form in ("tree", "json", "html") and shown["by"] is None:
        long = form == "tree" and len(graph.skeleton) > LONG_TREE and graph.modules is not None
        if long and shown["only"] is None and shown["depth"] is None:
            output.note("--by module shows a line for each module instead of each node")
        return  # the page has a switch
    if graph.modules is None and shown["by"] == "module" and form != "tree":
        raise usage("no PyTorch module made these nodes", hint="leave out --by module")
    count = len(graph.skeleton)
    narrowed = shown["only"] is not None or shown["depth"] is not None
    if shown["by"] is None and graph.modules is not None and count > MANY_NODES and not narrowed:
        shown["by"] = "module"
        output.note(f"{count:,} nodes are drawn by module; --by node draws them all", "note")
    if shown["by"] == "node" and form != "html":
        shown["by"] = None


def _not_backward(error: RuntimeError) -> LanguageError:
    from gradcli.language.located_errors import LanguageError

    words = str(error)
    hint = None
    if words.startswith("grad can be implicitly created"):
        hint = "name a scalar: --torch FILE.py:NAME"
    elif "a second time" in words:
        hint = "the graph was freed: backward(retain_graph=True) in the program"
    elif "inplace operation" in words:
        hint = "something was written in place since the forward pass: name a tensor made later"
    return LanguageError(words, kind="runtime", hint=hint, usage=False)


def write_graph(
    graph: Graph,
    shown: dict[str, Any],
    form: str,
    path: str | None,
    folder: str | None,
    style: Style,
) -> None:
    """Write a graph in a format, as the options say."""
    if style.precision is not None:
        shown["precision"] = style.precision
    given = {k: v for k, v in shown.items() if v is not None and v is not False}
    given |= {"grads": shown["grads"]}
    if shown["collapse"] is False:
        given["collapse"] = False
    try:
        if folder is not None:
            _write_frames(graph, given, form, folder)
        elif form == "tree":
            _tree(graph, given, style, path)
        else:
            text = _written(graph, given, form)
            if isinstance(text, str):
                text = text if text.endswith("\n") else f"{text}\n"
            output.write_file(path or "-", text)
    except ImportError as error:  # of an extra that is not installed
        if form not in BINARY:
            raise
        raise usage(str(error), kind="missing") from error
    except ValueError as error:  # --only, --open, --fold of nothing
        if shown["only"] is None and (shown["open"] or shown["fold"]):
            raise usage(str(error), kind="name") from error
        if shown["only"] is None:
            raise
        raise only_of_nothing(graph, shown["only"], error) from error


def _written(graph: Graph, given: dict[str, Any], form: str) -> str | bytes:
    if form == "json":
        known = {k: v for k, v in given.items() if k in ("only", "depth", "forward", "values")}
        found = {"expression": graph.source, **graph.to_json(**known)}
        if wrong := graph.diagnosis().findings:
            found["diagnosis"] = [one.to_json() for one in wrong]
        return output.object_text(found)
    made: str | bytes = getattr(graph, f"to_{form}")(**given)
    if graph.note is not None:
        output.note(graph.note)
    return made


def _write_frames(graph: Graph, given: dict[str, Any], form: str, folder: str) -> None:
    from gradcli.graphs import raster

    convert: Any = {"png": raster.svg_to_png, "pdf": raster.svg_to_pdf}.get(form)
    if convert is not None and given.get("theme", "auto") == "auto":
        given["theme"] = "light"
    pages = list(graph.frames(**given))
    digits = len(str(len(pages) - 1))
    try:
        os.makedirs(os.path.expanduser(folder), exist_ok=True)
    except OSError as error:
        raise usage(f"cannot make the folder {folder}: {error.strerror}", kind="file") from None
    for number, page in enumerate(pages):
        content = page if convert is None else convert(page)
        output.write_file(
            os.path.join(folder, f"step-{number:0{digits}}.{form}"), content, tell=False
        )
    output.tell_written(folder)


def _check_options(shown: dict[str, Any], form: str) -> None:
    """Refuse options that the format would ignore."""
    for key, forms in HAVE.items():
        if shown[key] in (None, False) or form in forms:
            continue
        option = f"--{key}"
        why = REASONS.get(key, f"{form} has none")
        raise usage(
            f"{option} is not for {form}: {why}",
            hint=f"leave out {option}, or --format {forms[0]}",
        )
    if shown["background"] == "white" and shown["theme"] == "dark":
        raise usage("--theme dark cannot be read on --background white")


def _format(form: str | None, path: str | None, folder: str | None, request: Request) -> str:
    if request.style.form == "json":
        if form not in (None, "json"):
            raise usage(f"--json and --format {form} cannot be used together")
        form = "json"
    if folder is not None:
        if path is not None:
            raise usage("--frames DIR and -o FILE cannot be used together")
        if form not in (None, *FRAME_FORMATS):
            raise usage(f"--frames: there are {', '.join(FRAME_FORMATS)}, not {form}")
        return form or "svg"
    ending = "" if path is None else os.path.splitext(path)[1].lower()
    if path in (None, "-") or (form is not None and ending == ""):
        if form in BINARY and (path is None and is_terminal(sys.stdout)):
            raise usage(f"a {form} cannot be shown on a terminal", hint=f"say -o graph.{form}")
        return form or "tree"
    if ending not in SUFFIXES:
        if form is not None:
            return form
        hint = f"there are {' '.join(e for e in SUFFIXES if e)}; or say --format FORMAT"
        if ending in (".jpg", ".jpeg", ".ps", ".eps", ".gif", ".webp"):
            hint = f"pipe --format dot through Graphviz: dot -T{ending[1:]} -o {path}"
        raise usage(f"-o: the ending {ending} names no format", hint=hint)
    if form not in (None, SUFFIXES[ending]):
        raise usage(
            f"--format {form} and -o {path} cannot be used together",
            hint=f"the ending {ending} means {SUFFIXES[ending]}: leave out one of them",
        )
    return SUFFIXES[ending]


def _graph(
    ctx: AnyContext,
    request: Request,
    values: bool,
    grads: bool,
    seed: str | None,
    anomalies: bool = False,
    vectors: Sequence[str] = (),
) -> Graph:
    tangents: Any = None
    watched: Any = None
    with Look() as look:
        if vectors:
            evaluation, watched, tangents = evaluate_along(ctx, request, vectors)
        else:
            evaluation, watched = evaluate_watched(ctx, request, values)
    if anomalies:
        raise_on_anomalies(evaluation, watched)
    graph = graph_of(evaluation, _tensors(evaluation), watched)
    graph.describer.tangents = tangents
    if anomalies or grads:
        gradient = cotangent_of(evaluation, seed)
        try:
            graph.backpropagate(gradient)
        except OPERATION_ERRORS as error:
            raise explained(evaluation, error) from error
        if look.met and not isinstance(evaluation.value, tuple):
            kinks = kinks_of(evaluation, look, gradient)
            graph.describer.kinks = kinks.of_nodes(graph.skeleton.nodes) if kinks else {}
    if anomalies:
        raise_anomaly(evaluation, graph, watched, graph.recorder)
    return graph


def _work_out_shapes(ctx: AnyContext, request: Request, numbers: bool) -> None:
    """Give the variables without a value a shape with which the program runs, and say which.

    numbers: whether numbers are shown that depend on the values; then there must be some.
    """
    from gradcli.commands.free_points import note_guesses, point
    from gradcli.engine.core.tensor import wrap

    if numbers:
        from gradcli.commands.options import unbound

        declared = cast(Any, ctx).command.declared
        raise unbound(request.program, request.open_variables[0], declared, set(request.names))
    where = point(ctx, request)
    note_guesses(where)
    request.tensors |= {name: wrap(where.arrays[name]) for name in request.open_variables}
    request.names = list(where.arrays)


def _tensors(evaluation: Evaluation) -> Any:
    """The tensor whose graph is asked for, or the tensors of a tuple."""
    value = evaluation.value
    if isinstance(value, tuple) and value:
        tensors = [item for item in value if getattr(item, "requires_grad", False)]
        if tensors:
            return tuple(tensors)
    tensor = evaluation.tensor("graph")
    if not tensor.requires_grad:
        from gradcli.engine.core.errors import NoGradientError

        found = explained(evaluation, NoGradientError())
        found.message = f"no graph: nothing requires grad ({found.message})"
        raise found
    return tensor


def _tree(graph: Graph, given: dict[str, Any], style: Style, path: str | None) -> None:
    to_file = path not in (None, "-")
    drawing = graph.tree(**given, ascii=not (to_file or speaks_unicode(sys.stdout)))
    wrong = graph.diagnosis()
    if to_file:
        text = "\n\n".join(one.plain() for one in (drawing, wrong)[: 1 + bool(wrong.findings)])
        output.write_file(str(path), f"{text}\n")
        return
    output.write_drawing(drawing, style)
    if wrong.findings:
        output.write("")
        output.write_drawing(wrong, style)


def only_of_nothing(graph: Graph, only: str, error: ValueError) -> LanguageError:
    """The error for a name of --only that no node has."""
    from gradcli.graphs.traversal import class_name

    nodes = {class_name(node) for node in graph.skeleton.nodes}
    stems = {name.partition("Backward")[0] for name in nodes}
    names = sorted({*graph.describer.labels().values(), *stems, *nodes})
    return usage(f"--only: {error}", kind="name", hint=did_you_mean(suggest(only, names)))

"""Large arrays: a plan (gradcli.columns.compiler) instead of the tape, where nothing needs the tape."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.backward_passes import cotangent_array
from gradcli.commands.command_errors import usage
from gradcli.commands.request_evaluation import Evaluation, drawn, read_variables, run

if TYPE_CHECKING:
    from gradcli.commands.declarations import Options
    from gradcli.commands.large_columns import Table
    from gradcli.commands.output import Style
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext


NO_PLAN = "no plan: "
LARGE = 200_000  # elements of a variable from which on planning costs less than it saves


def large_table(request: Request, wanted: bool | None) -> Table | None:
    """The table that is to be read by rows, if there is one: see `by_rows.large_table`."""
    if not wanted and (wanted is False or not any("@" in t for t in request.texts.values())):
        return None
    from gradcli.commands import large_columns

    return large_columns.large_table(request, wanted)


def rows_wanted(options: Options) -> bool | None:
    """Whether the command line wants passes over rows; None where it leaves that open.

    Raises LanguageError for --whole beside workers, which read by rows.
    """
    by_rows: bool | None = options.by_rows
    if options.workers is None and options.cluster is None:
        return by_rows
    if by_rows is False:
        raise usage("--whole does not go with --workers and --cluster", hint="leave out one")
    return True


class Planned:
    """An evaluation, whether its gradients are there already, and its plan as text (None: no plan)."""

    def __init__(
        self, evaluation: Evaluation, differentiated: bool, lines: list[str] | None
    ) -> None:
        self.evaluation, self.differentiated, self.lines = evaluation, differentiated, lines


def evaluate_planned(
    ctx: AnyContext,
    request: Request,
    *,
    plan: bool | None,
    gradients: bool = False,
    seed: str | None = None,
    tape: bool = False,
) -> Planned:
    """Evaluate, by a plan if the variables are large, or `plan` or --native ask for one.

    gradients: differentiate as well, from this seed. tape: whether something needs the graph.
    """
    variables, integers = read_variables(ctx, request)
    lines: list[str] | None = None
    if request.native and plan is False:
        raise usage("--native does not go with --no-plan", hint="leave out one of them")
    if (
        plan
        or request.native
        or (plan is None and any(t.array.size >= LARGE for t in variables.values()))
    ):
        from gradcli.columns.compiler import Untraceable

        try:
            if tape:
                raise Untraceable("what is asked for needs the graph")
            return _planned(request, variables, integers, gradients, seed)
        except Untraceable as reason:
            lines = [f"{NO_PLAN}{reason}"]
            if request.native and not plan:
                output.note(f"--native: {lines[0]}")
    return Planned(run(request, variables, integers), False, lines)


def _planned(
    request: Request,
    variables: dict[str, Any],
    integers: list[str],
    gradients: bool,
    seed: str | None,
) -> Planned:
    from gradcli import language
    from gradcli.columns.compiler import Untraceable, trace_numpy
    from gradcli.columns.compiler.compiled_function import CompiledProgram
    from gradcli.engine.core.tensor import Tensor, wrap
    from gradcli.engine.system.garbage import uncollected
    from gradcli.language.located_errors import OPERATION_ERRORS

    if not {"print", "display"}.isdisjoint(request.program.words):
        raise Untraceable("the program prints")
    if seed is not None and seed.strip() == "-":
        raise Untraceable("the seed is read from standard input")
    if request.loaded:
        raise Untraceable("functions of --load cannot be planned")
    # Integers are no variables of the recording: what indexes an array is known.
    known = {n: t for n, t in variables.items() if t.array.dtype.kind not in "fc"}
    arrays = {n: t.array for n, t in variables.items() if n not in known}
    names: dict[str, Any] = {}

    def function(**given: Any) -> Any:
        result = language.run(request.program, {**request.loaded, **known, **given})
        names.update(result.names)
        if any(
            isinstance(value, Tensor) and value.is_leaf and value.requires_grad
            for name, value in result.names.items()
            if name not in variables
        ):
            raise Untraceable("the program makes variables of its own")
        return result.value

    wrt = frozenset(n for n, t in variables.items() if t.requires_grad)
    start = None if seed is None else partial(cotangent_array, text=seed)
    before = drawn()
    trace = trace_numpy(function, arrays, wrt=wrt, cotangent=start, backward=gradients, fixed=True)
    made = CompiledProgram(trace, native=request.native)
    try:
        with uncollected():
            value, *grads = made.run(*arrays.values())
    except OPERATION_ERRORS as error:  # the tape says in which part of the program
        raise Untraceable(str(error)) from error
    for name, grad in zip(made.names, grads, strict=True):
        variables[name]._grad = None if grad is None else wrap(grad)
    result = wrap(value)
    result.node = trace.result.node
    evaluation = Evaluation(request, variables, result, dict(variables), integers)
    evaluation.drawn = before
    # Without a graph, backward() has something to say about it.
    done = gradients and result.node is not None
    return Planned(evaluation, done, made.lines())


def write_plan(lines: list[str] | None, style: Style) -> None:
    """The plan, before the results; in text only, so that --plain stays readable by machines.

    That there is none is a remark.
    """
    if lines and lines[0].startswith(NO_PLAN):
        output.note(lines[0])
    elif lines and style.form == "text":
        output.write("\n".join(lines))

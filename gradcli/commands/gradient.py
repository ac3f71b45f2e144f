"""What `gradcli grad` does: forward, backward, then the gradients of the leaves and of the retained names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.backward_passes import backward, cotangent_of, note_not_finite, retained
from gradcli.commands.compiled_evaluation import (
    Planned,
    evaluate_planned,
    large_table,
    rows_wanted,
    write_plan,
)
from gradcli.commands.request import Request, name_list

if TYPE_CHECKING:
    from gradcli.commands.inspected import Values
    from gradcli.commands.request_evaluation import Evaluation
    from gradcli.commands.uncertainty import Uncertainties
    from gradcli.graphs import Trace
    from gradcli.system.process import AnyContext


class Options:
    """What the options of `gradcli grad` say; on the class, what holds where none is given."""

    seed: str | None = None
    retain_names: tuple[str, ...] = ()
    passes = order = 1
    retain_graph = create_graph = show_value = False
    hooks: tuple[str, ...] = ()
    detect_anomaly = show_trace = False
    uncertainties: tuple[str, ...] = ()
    covariances: tuple[str, ...] = ()
    budget = False
    plan: bool | None = None
    by_rows: bool | None = None
    workers: int | None = None
    cluster: str | None = None

    def __init__(self, given: Mapping[str, Any]) -> None:
        vars(self).update(given)

    def of_one_tape(self) -> list[str]:
        """Those given that ask for what only the tape of one evaluation has."""
        asked = {
            "--passes": self.passes > 1,
            "--order": self.order > 1,
            "--hook": self.hooks,
            "--retain": self.retain_names,
            "--retain-graph": self.retain_graph,
            "--create-graph": self.create_graph,
            "--detect-anomaly": self.detect_anomaly,
            "--trace": self.show_trace,
        }
        return [option for option, given in asked.items() if given]

    def uncertain(self, request: Request) -> bool:
        """Whether anything is said of uncertainties."""
        said = (request.uncertainties, self.uncertainties, self.covariances, self.budget)
        return any(said)


def run(ctx: AnyContext, request: Request, **given: Any) -> None:
    """Print the gradient, as the options of `gradcli grad` say; given: see `Options`."""
    options = Options(given)
    asked = request.no_grad
    if request.wrt is None and request.style.path is None:
        request.no_grad = [*asked, *_data(request)]
    if _is_by_rows(ctx, request, options):
        return
    if any("@" in text for text in request.texts.values()):
        from gradcli.commands.uncertainty import take_from_cells

        take_from_cells(request)
        if options.uncertain(request):  # what is uncertain contributes by its gradient
            request.no_grad = asked
    errors = _uncertainties(request, options)
    if options.order > 1:
        from gradcli.commands.higher_orders import write_higher

        others = [option for option in options.of_one_tape() if option != "--order"]
        write_higher(ctx, request, options.order, options.seed, options.show_value, others)
        return
    names, every = _names_to_retain(request, options.retain_names)
    register_hooks = _hooks(request, options.hooks)
    planned, values = _evaluated(ctx, request, options)
    evaluation = planned.evaluation
    evaluation.tensor("gradient")
    if register_hooks is not None:
        register_hooks(evaluation)
    intermediates = retained(evaluation, names, every)
    gradient = cotangent_of(evaluation, options.seed)
    trace = None if planned.differentiated else _passed(evaluation, gradient, options, values)
    if errors is not None:
        errors.propagate(evaluation)
    if not options.detect_anomaly:
        note_not_finite(
            {n: t.grad for n, t in [*_reached(evaluation).items(), *intermediates.items()]},
            ": --detect-anomaly says where it came from",
        )
    lines = planned.lines if options.plan else None
    if request.style.form == "json":
        found = to_json(evaluation, intermediates, gradient, options.passes)
        found = found if errors is None else errors.to_json(found)
        if trace is not None:
            found["trace"] = trace.to_json()
        if lines is not None:
            found["plan"] = lines
        output.write_json(found)
        return
    write_plan(lines, request.style)
    if trace is not None and request.style.form == "text":
        output.write_drawing(trace, request.style)
    _write(evaluation, intermediates, errors, options.show_value)


def _data(request: Request) -> list[str]:
    """The variables that are columns of a file, where others are not: the data."""
    if not any("@" in text for text in request.texts.values()):
        return []
    from gradcli.language.option_values import file_reference
    from gradcli.tables.column_reading import split

    files = {name: file_reference(text) for name, text in request.texts.items()}
    data = [name for name, file in files.items() if file and split(file)[1] is not None]
    return data if len(data) < len(files) else []


def _is_by_rows(ctx: AnyContext, request: Request, options: Options) -> bool:
    """Whether the variables are columns to be read in passes over their rows; if so, all is done."""
    wanted = rows_wanted(options.by_rows, options.workers, options.cluster)
    table = large_table(request, wanted)
    if table is None:
        return False
    altered = options.of_one_tape() + ["an uncertainty"] * options.uncertain(request)
    if altered and not wanted:
        return False
    from gradcli.commands.large_columns import grad_by_rows, runner

    with runner(options.workers, options.cluster) as runs:
        grad_by_rows(ctx, request, table, runs, options.seed, options.show_value, altered)
    return True


def _uncertainties(request: Request, options: Options) -> Uncertainties | None:
    if not options.uncertain(request):
        return None
    from gradcli.commands.uncertainty import Uncertainties

    altering = {"--passes", "--order", "--hook"}.intersection(options.of_one_tape())
    altered = [*["--seed"] * (options.seed is not None), *altering]
    return Uncertainties(
        request, options.uncertainties, options.covariances, options.budget, altered
    )


def _evaluated(
    ctx: AnyContext, request: Request, options: Options
) -> tuple[Planned, Values | None]:
    """The evaluation, by a plan where nothing needs the tape; watched where anomalies are looked for."""
    if options.detect_anomaly:
        from gradcli.commands.inspected import evaluate_watched

        evaluation, values = evaluate_watched(ctx, request, True)
        return Planned(evaluation, False, None), values
    planned = evaluate_planned(
        ctx,
        request,
        plan=options.plan,
        gradients=True,
        seed=options.seed,
        tape=bool(options.of_one_tape()),
    )
    return planned, None


def _passed(
    evaluation: Evaluation, gradient: Any, options: Options, values: Values | None
) -> Trace | None:
    """Run the backward passes; give the trace of them if one is wanted."""

    def propagate() -> None:
        how = {"retain_graph": options.retain_graph, "create_graph": options.create_graph}
        backward(evaluation, gradient, passes=options.passes, **how)

    anomalies = options.detect_anomaly
    if not (options.show_trace or anomalies):
        propagate()
        return None
    from gradcli.commands.inspected import observed

    return observed(
        propagate, evaluation, trace=options.show_trace, anomalies=anomalies, values=values
    )


def _write(
    evaluation: Evaluation,
    intermediates: dict[str, Any],
    errors: Uncertainties | None,
    show_value: bool,
) -> None:
    """The results, a line each: the value if asked for, the gradients of the leaves, and of what is kept."""
    style = evaluation.request.style
    results: list[tuple[str | None, Any]] = []
    if errors is not None:
        results.extend(errors.results(style))
    elif show_value:
        results.append(("value", evaluation.value))
    for name, tensor in [*_reached(evaluation).items(), *intermediates.items()]:
        if errors is None or name not in errors.hidden:
            results.append((f"{name}.grad", tensor.grad))
    output.write_results(results, style)


def to_json(
    evaluation: Evaluation, intermediates: dict[str, Any], seed: Any, passes: int
) -> dict[str, Any]:
    """The object that --json prints."""
    precision = evaluation.request.style.precision
    value = evaluation.value
    grads = {n: _grad_json(t, precision) for n, t in _reached(evaluation).items()}
    return {
        "expression": evaluation.request.source,
        **output.described(value, precision),
        "grad_fn": None if value.grad_fn is None else value.grad_fn.name(),
        "seed": 1.0 if seed is None else output.to_json(seed, precision),
        "passes": passes,
        "wrt": grads,
        "grads": grads,  # the name of 0.1.0
        "retained": {n: _grad_json(t, precision) for n, t in intermediates.items()},
    }


def _reached(evaluation: Evaluation) -> dict[str, Any]:
    """The leaves; of those that --load brought only the ones that the gradient reaches."""
    loaded = evaluation.request.loaded
    return {n: t for n, t in evaluation.leaves.items() if t.grad is not None or n not in loaded}


def _grad_json(tensor: Any, precision: int | None) -> dict[str, Any]:
    grad = tensor.grad
    found = output.described(tensor if grad is None else grad, precision, "grad")
    return {**found, "grad": None} if grad is None else found


def _hooks(request: Request, texts: tuple[str, ...]) -> Callable[[Evaluation], None] | None:
    """What registers the hooks of --hook, which are read before anything runs."""
    if not texts:
        return None
    from functools import partial

    from gradcli.commands.hook_option import register_hooks, split_hooks

    return partial(register_hooks, hooks=split_hooks(request, texts))


def _names_to_retain(request: Request, texts: tuple[str, ...]) -> tuple[list[str], bool]:
    """The names in --retain, and whether it says `all`."""
    if any(text.strip() == "all" for text in texts):
        return [], True
    from gradcli.language.scope_checks import assigned_names

    known = [*assigned_names(request.program), *request.names]
    what = "a name that the expression assigns"
    return name_list(texts, "--retain", known, what=what) or [], False

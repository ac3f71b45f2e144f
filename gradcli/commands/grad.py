"""`gradcli grad EXPR`: forward, backward, then the gradients of the leaves and of the retained names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.backward_passes import (
    backward,
    cotangent_of,
    kinks_of,
    may_lose,
    note_not_finite,
    retained,
)
from gradcli.commands.compiled_evaluation import (
    Planned,
    evaluate_planned,
    large_table,
    rows_wanted,
    write_plan,
)
from gradcli.commands.declarations import (
    ANOMALY,
    ARRAYS,
    DRAWS,
    LARGE,
    LIKE,
    SEED,
    UNCERTAINTY,
    VALUE,
    Option,
    Options,
    declare,
)
from gradcli.commands.request import Request, name_list
from gradcli.commands.request_evaluation import Look

if TYPE_CHECKING:
    from gradcli.commands.inspected import Values
    from gradcli.commands.kink_notes import Others
    from gradcli.commands.request_evaluation import Evaluation
    from gradcli.commands.uncertainty import Uncertainties
    from gradcli.engine.system.process import AnyContext
    from gradcli.graphs import Trace


@declare(
    "grad",
    *ARRAYS,
    Option(SEED, "Gradient to start from, in EXPR's shape; `ones`: ones."),
    Option(
        "--retain NAMES|all",
        "Print the gradients of these intermediate names too.",
        many=True,
        complete="assigned",
    ),
    Option("--passes N", "Run the backward pass N times; gradients add up.", least=1, default=1),
    Option("--order N", "Differentiate N times by each variable.", least=1, default=1),
    Option("--retain-graph", "Keep what the nodes saved for another pass."),
    Option("--create-graph", "Record the backward pass, to differentiate it."),
    VALUE,
    Option(
        "--hook 'NAME: EXPR of grad'",
        "Replace the gradient that reaches NAME by EXPR.",
        many=True,
    ),
    ANOMALY,
    Option("--trace", "Print a row for each step of the backward pass."),
    LIKE,
    *(*UNCERTAINTY, DRAWS, *LARGE),
    examples=(
        'gradcli grad "2*dot(x,x)" --x 0,1,2,3',
        'gradcli grad "y = a*x; y + b" --x 3 --a 4 --b 5 --retain y --value',
        'gradcli grad "x*x" --x 1,2 --seed ones',
        'gradcli grad "sum((a*b)**2)" --a 1,2 --b 2,4 --trace',
        'gradcli grad "4*pi**2*L/T**2" --L 0.994±0.002 --T "2.003(5)" --budget',
    ),
    propagates=True,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the gradient of EXPR with respect to its variables.

    If values have an uncertainty (0.994±0.002, 0.994+-0.002, 0.994(2)), EXPR and its uncertainty are
    printed first.
    """
    run(ctx, request, options)


def run(ctx: AnyContext, request: Request, options: Options, *, bare: bool = False) -> None:
    """The same. bare: a value with its uncertainty is printed as `eval` does, without a name."""
    asked = request.no_grad
    if request.wrt is None and request.style.path is None:
        request.no_grad = [*asked, *_data(request)]
    if _is_by_rows(ctx, request, options):
        return
    if any("@" in text for text in request.texts.values()):
        from gradcli.commands.uncertainty import take_from_cells

        take_from_cells(request)
        if _uncertain(request, options):  # what is uncertain contributes by its gradient
            request.no_grad = asked
    errors = _uncertainties(request, options)
    if options.order > 1:
        from gradcli.commands.higher_orders import write_higher

        goes = ("--order", "--detect-anomaly")
        others = [option for option in _of_one_tape(options) if option not in goes]
        like = _others(options)
        anomalies = options.detect_anomaly
        write_higher(
            ctx, request, options.order, options.seed, options.value, others, like, anomalies
        )
        return
    names, every = _names_to_retain(request, options.retain)
    hooks = []
    if options.hook:  # read before anything runs
        from gradcli.commands.hook_option import register_hooks, split_hooks

        hooks = split_hooks(request, options.hook)
    like = _others(options)
    with Look() as look:
        planned, values = _evaluated(ctx, request, options)
    evaluation = planned.evaluation
    evaluation.tensor("gradient")
    if hooks:
        register_hooks(evaluation, hooks)
    intermediates = retained(evaluation, names, every)
    gradient = cotangent_of(evaluation, options.seed)
    trace = None if planned.differentiated else _passed(evaluation, gradient, options, values)
    if not (_of_one_tape(options) or hooks):
        _with_tails(evaluation, gradient)
    if errors is not None:
        errors.propagate(evaluation)
    kinks = kinks_of(evaluation, look, gradient, like=like, hooked=bool(hooks))
    if not options.detect_anomaly:
        limits = f"{kinks.limits}; " if kinks and kinks.limits else ": "
        note_not_finite(
            {n: t.grad for n, t in [*_reached(evaluation).items(), *intermediates.items()]},
            f"{limits}--detect-anomaly says where it came from",
        )
    lines = planned.lines if options.plan else None
    if request.style.form == "json":
        found = to_json(evaluation, intermediates, gradient, options.passes)
        found = found if errors is None else errors.to_json(found)
        if bare:  # the keys of `eval`
            for name in ("seed", "passes", "wrt", "grads", "retained"):
                del found[name]
            found["requires_grad"] = True
        if trace is not None:
            found["trace"] = trace.to_json()
        if lines is not None:
            found["plan"] = lines
        found |= {**(kinks.to_json() if kinks else {}), **(like.to_json() if like else {})}
        output.write_json(found)
        return
    write_plan(lines, request.style)
    if trace is not None and request.style.form == "text":
        output.write_drawing(trace, request.style)
    _write(evaluation, intermediates, errors, options.value, bare, like)


def _others(options: Options) -> Others | None:
    if options.like is None:
        return None
    from gradcli.commands.kink_notes import Others

    return Others(options.like)


def _with_tails(evaluation: Evaluation, gradient: Any) -> None:
    """Give gradients the digits that results have lost: the slope of tanh at 20, where it is 1."""
    own = evaluation.variables
    leaves = {n: t for n, t in evaluation.leaves.items() if n in own and t.grad is not None}
    if not leaves or sum(t.numel() for t in leaves.values()) > 200:
        return
    request = evaluation.request
    if not may_lose(evaluation.value):
        return
    import numpy as np

    from gradcli.engine.core.tensor import wrap
    from gradcli.transforms import removable

    tensors = {n: t.detach() for n, t in evaluation.variables.items()}
    given = None if gradient is None else gradient.array
    grads = {n: t.grad.array for n, t in leaves.items()}
    found, remarks = removable.slopes(request.program, tensors, grads, given, request.loaded)
    for name, array in found.items():
        leaves[name].grad = wrap(np.asarray(array)[()])
    for line in remarks.lines():
        output.note(line)


def _data(request: Request) -> list[str]:
    """The variables that are columns of a file, where others are not: the data."""
    if not any("@" in text for text in request.texts.values()):
        return []
    from gradcli.language.option_values import file_reference
    from gradcli.tables.column_reading import split

    files = {name: file_reference(text) for name, text in request.texts.items()}
    data = [name for name, file in files.items() if file and split(file)[1] is not None]
    return data if len(data) < len(files) else []


def _of_one_tape(options: Options) -> list[str]:
    """The options given that ask for what only the tape of one evaluation has."""
    asked = {
        "--passes": options.passes > 1,
        "--order": options.order > 1,
        "--hook": options.hook,
        "--retain": options.retain,
        "--retain-graph": options.retain_graph,
        "--create-graph": options.create_graph,
        "--detect-anomaly": options.detect_anomaly,
        "--trace": options.trace,
    }
    return [option for option, given in asked.items() if given]


def _uncertain(request: Request, options: Options) -> bool:
    given = (request.uncertainties, options.uncertainty, options.covariance, options.budget)
    return any(given) or options.monte_carlo is not None


def _is_by_rows(ctx: AnyContext, request: Request, options: Options) -> bool:
    """Whether the variables are columns to be read in passes over their rows; if so, all is done."""
    wanted = rows_wanted(options)
    table = large_table(request, wanted)
    if table is None:
        return False
    altered = _of_one_tape(options) + ["an uncertainty"] * _uncertain(request, options)
    if altered and not wanted:
        return False
    from gradcli.commands.large_columns import grad_by_rows, runner

    with runner(options) as runs:
        grad_by_rows(ctx, request, table, runs, options.seed, options.value, altered)
    return True


def _uncertainties(request: Request, options: Options) -> Uncertainties | None:
    if not _uncertain(request, options):
        return None
    from gradcli.commands.uncertainty import Uncertainties

    altered = {"--passes", "--order", "--hook"}.intersection(_of_one_tape(options))
    return Uncertainties(request, options, ["--seed"] * (options.seed is not None) + [*altered])


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
        tape=bool(_of_one_tape(options)),
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
    if not (options.trace or anomalies):
        propagate()
        return None
    from gradcli.commands.inspected import observed

    return observed(propagate, evaluation, trace=options.trace, anomalies=anomalies, values=values)


def _write(
    evaluation: Evaluation,
    intermediates: dict[str, Any],
    errors: Uncertainties | None,
    show_value: bool,
    bare: bool,
    like: Others | None,
) -> None:
    """The results, a line each: the value if asked for, the gradients of the leaves, and of what is kept."""
    style = evaluation.request.style
    results: list[tuple[str | None, Any]] = []
    grads = {n: t.grad for n, t in evaluation.leaves.items()}
    if errors is not None:
        results.extend(errors.results(style))
        results[0] = (None if bare else "value", results[0][1])
    elif show_value:
        results.append(("value", evaluation.value))
    for name, tensor in [*_reached(evaluation).items(), *intermediates.items()]:
        if errors is None or name not in errors.hidden:
            results.append((f"{name}.grad", tensor.grad))
    if like is None:
        output.write_results(results, style)
    else:
        like.write(results, grads, style)


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


def _names_to_retain(request: Request, texts: tuple[str, ...]) -> tuple[list[str], bool]:
    """The names in --retain, and whether it says `all`."""
    if any(text.strip() == "all" for text in texts):
        return [], True
    from gradcli.language.scope_checks import assigned_names

    known = [*assigned_names(request.program), *request.names]
    what = "a name that the expression assigns"
    return name_list(texts, "--retain", known, what=what) or [], False

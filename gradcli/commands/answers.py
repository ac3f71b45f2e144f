"""Answers a `Question`: chooses the backend, and has the tape's answers to VALUE and GRADIENT.

Where the tape's rules lose digits, as at 0 in sin(x)/x, `transforms.removable` finds them by power series.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.question import (
    ALONG,
    GRADIENT,
    HESSIAN,
    JACOBIAN,
    NO_PLAN,
    VALUE,
    Answer,
    Question,
    gradient_entries,
    gradient_keys,
    has_tensors,
    node_name,
    value_keys,
)
from gradcli.commands.request import name_list
from gradcli.commands.request_evaluation import (
    Look,
    backward,
    cotangent_of,
    evaluate,
    kinks_of,
    not_finite,
    note_not_finite,
    note_of_random_kinks,
    note_value,
    nth,
    read_variables,
    retained,
    run,
    tails,
    tell,
)

if TYPE_CHECKING:
    from gradcli.commands.inspected import Values
    from gradcli.commands.kink_notes import Others
    from gradcli.commands.large_columns import RowsTable
    from gradcli.commands.request import Request
    from gradcli.commands.request_evaluation import Evaluation
    from gradcli.graphs import Trace
    from gradcli.transforms.removable import Remarks

Found = Mapping[str, Any]  # results by the names of their variables
Lines = Sequence[tuple[str | None, Any]]


def answer_to(question: Question) -> Answer:
    """The answer of the backend that suits."""
    request, held, files = question.request, question.request.no_grad, question.request.has_files
    if question.asked in (JACOBIAN, HESSIAN):
        return _of_matrices(question)
    wanted = rows_wanted(question)
    if files and question.asked == GRADIENT and request.wrt is None and request.style.path is None:
        request.no_grad = [*held, *_data(request)]
    table = _table(question, wanted) if wanted or files else None
    if table is not None:
        from gradcli.commands.large_columns import answer_by_rows

        return answer_by_rows(question, table)
    if question.asked == ALONG:
        return _of_matrices(question)
    if files:
        from gradcli.commands.uncertainty import take_from_cells

        take_from_cells(request)
    if question.is_uncertain:
        _propagate(question, held)
    return value(question) if question.asked == VALUE else gradient(question)


def _of_matrices(question: Question) -> Answer:
    from gradcli.commands.matrix_answers import ANSWERS

    return ANSWERS[question.asked](question)


def _data(request: Request) -> list[str]:
    """The data: the variables that are columns of a file; none where all variables are."""
    from gradcli.language.option_values import file_reference
    from gradcli.tables.column_reading import split

    files = {name: file_reference(text) for name, text in request.texts.items()}
    data = [name for name, file in files.items() if file and split(file)[1] is not None]
    return data if len(data) < len(files) else []


def _propagate(question: Question, held: list[str]) -> None:
    """Let the question propagate uncertainties, by gradients. held: the names of --no-grad."""
    from gradcli.commands.uncertainty import Uncertainties

    request = question.request
    if question.asked == VALUE:
        question.asked, question.bare, held = GRADIENT, True, request.names
    request.no_grad = held  # data that is uncertain contributes by its gradient
    altered = {"--passes", "--order", "--hook"}.intersection(question.of_one_tape)
    given = ["--seed"] * (question.seed is not None)
    question.errors = Uncertainties(request, question, [*given, *altered])


def _table(question: Question, wanted: bool | None) -> RowsTable | None:
    """The table whose columns the variables are, if it is read by rows.

    Raises LanguageError for an option that cannot be used with --by-rows, if that is given.
    """
    table = large_table(question.request, wanted)
    if table is None:
        return None
    uncertain = question.is_uncertain
    whole = question.asked == GRADIENT or uncertain
    for option in question.of_one_tape + ["an uncertainty"] * uncertain:
        if wanted or question.asked == ALONG:
            hint = "--whole reads the table at once" if whole else "leave out one of them"
            raise usage(f"{option} cannot be used with --by-rows", hint=hint)
        return None
    return table


def rows_wanted(options: Any) -> bool | None:
    """Whether the command line wants passes over rows; None where it leaves that open.

    Raises LanguageError for --whole beside workers, which read by rows.
    """
    by_rows: bool | None = options.by_rows
    if options.workers is None and options.cluster is None:
        return by_rows
    if by_rows is False:
        raise usage("--whole cannot be used with --workers and --cluster", hint="leave out one")
    return True


def by_rows(question: Question) -> Answer | None:
    """The answer of passes over the rows of a table, where it is read so."""
    table = large_table(question.request, rows_wanted(question))
    if table is None:
        return None
    from gradcli.commands.large_columns import answer_by_rows

    return answer_by_rows(question, table)


def large_table(request: Request, wanted: bool | None) -> RowsTable | None:
    """The table that is to be read by rows, if there is one: see `large_columns.large_table`."""
    if not wanted and (wanted is False or not request.has_files):
        return None
    from gradcli.commands import large_columns

    return large_columns.large_table(request, wanted)


# -- the run ----------------------------------------------------------------------------------------
LARGE = 200_000  # elements of a variable from which on planning costs less than it saves


def _run(question: Question) -> tuple[Evaluation, Values | None]:
    """The run: watched where anomalies are looked for, else the compiled backend's or the tape's."""
    request, lines = question.request, None
    if question.detect_anomaly:
        from gradcli.commands.inspected import evaluate_watched

        return evaluate_watched(question.ctx, request, True)
    variables, integers = read_variables(question.ctx, request)
    if request.native and question.plan is False:
        raise usage("--native cannot be used with --no-plan", hint="leave out one of them")
    wanted = question.plan or request.native
    if wanted or (question.plan is None and any(t.array.size >= LARGE for t in variables.values())):
        from gradcli.commands.compiled_evaluation import compiled
        from gradcli.transforms.tracing.numpy_tracer import Untraceable

        try:
            return compiled(question, variables, integers), None
        except Untraceable as reason:
            if question.plan:
                lines = [f"{NO_PLAN}{reason}"]
            elif request.native:
                output.note(f"--native: {NO_PLAN}{reason}")
    found = run(request, variables, integers)
    found.plan = lines
    return found, None


# -- values -----------------------------------------------------------------------------------------
def value(question: Question) -> Answer:
    """The value: one line, or one for each field of a named tuple or item of a tuple."""
    evaluation, watched = _run(question)
    if watched is not None:
        from gradcli.commands.inspected import raise_on_anomalies

        raise_on_anomalies(evaluation, watched)
    found = evaluation.value
    answer = Answer(question.request, results(found), lambda p: value_keys(found, p), found)
    answer.plan = evaluation.plan
    return answer


def results(found: Any) -> Lines:
    """The lines of a value: one, or one for each field of a named tuple or item of a tuple."""
    if found is None:
        return []
    if isinstance(found, tuple) and has_tensors(found):
        names = getattr(found, "_fields", None) or getattr(found, "fields", None)
        return list(zip(names or [None] * len(found), found, strict=True))
    return [(None, found)]


# -- gradients --------------------------------------------------------------------------------------
def gradient(question: Question) -> Answer:
    """The gradients of the leaves and of the retained names, after one or more backward passes."""
    if question.order > 1:
        return _higher(question)
    request, errors = question.request, question.errors
    names, every = _names_to_retain(request, question.retain)
    hooks: list[Any] = []
    if question.hook:  # read before anything runs
        from gradcli.commands.hook_option import register_hooks, split_hooks

        hooks = split_hooks(request, question.hook)
    others = others_of(question)
    with Look() as look:
        evaluation, watched = _run(question)
    if _has_passed(question, evaluation):
        return _left_by_program(question, evaluation)
    if errors is not None and question.bare:
        from gradcli.commands.several_results import is_several, several

        if is_several(evaluation.value):
            return several(question, evaluation)
        errors.refuse_relations_of_one()
    found = evaluation.tensor("gradient")
    if hooks:
        register_hooks(evaluation, hooks)
    leaves = evaluation.leaves
    own_kept = _retained_by_program(evaluation)
    kept = retained(evaluation, leaves, names, every) if names or every else {}
    kept |= own_kept
    seed = None if question.seed is None else cotangent_of(evaluation, question.seed)
    with others.rules() if others else nullcontext():
        trace = None if evaluation.differentiated else _passed(question, evaluation, seed, watched)
        grads = {n: t.grad for n, t in leaves.items()}
        better: Found = {}
        remarks: Remarks | None = None
        if not question.of_one_tape:
            given = {n: g for n, g in grads.items() if n in evaluation.variables and g is not None}
            better, remarks = tails(evaluation, given, seed)
    if not question.of_one_tape:
        for name, grad in better.items():
            leaves[name].grad = grads[name] = grad
        if remarks is not None:
            tell(remarks)
    if errors is not None:
        errors.propagate(evaluation)
    # Of the leaves that --load brought only those that the gradient reaches.
    tensors = {n: t for n, t in leaves.items() if n not in request.loaded or grads[n] is not None}
    own = grads
    grads = {n: own[n] for n in tensors} | {n: t.grad for n, t in kept.items()}
    wrong = not_finite({**grads, "": found})
    is_value_alone = wrong == [""]
    wrong = [n for n in wrong if n]
    kinks = kinks_of(
        *(evaluation, look, seed), wrong=leaves.keys() & wrong, like=others, hooked=bool(hooks)
    )
    if wrong and not question.detect_anomaly:
        limits = f"{kinks.limits}; " if kinks and kinks.limits else ": "
        note_not_finite(wrong, f"{limits}--detect-anomaly says where it came from")
    elif is_value_alone:
        note_value(found)
    hidden = () if errors is None else errors.hidden
    lines: Lines = [(f"{n}.grad", g) for n, g in grads.items() if n not in hidden]
    if errors is not None:
        (_, whole), *parts = errors.results(request.style)
        lines = [(None if question.bare else "value", whole), *parts, *lines]
    elif question.value:
        lines = [("value", found), *lines]

    def keys(precision: int | None) -> dict[str, Any]:
        made: dict[str, Any] = {"grad_fn": node_name(found)}
        if not question.bare:
            asked = {n: t for n, t in tensors.items() if n not in hidden}
            made |= gradient_keys(grads, asked, seed, precision, passes=question.passes)
            made["retained"] = gradient_entries(grads, kept, precision)
        if errors is not None:
            made |= errors.to_json()
        return made | ({"requires_grad": True} if question.bare else {})

    answer = Answer(request, lines, keys, found)
    answer.plan, answer.trace, answer.kinks = evaluation.plan, trace, kinks
    answer.others, answer.grads = others, own
    return answer


def _retained_by_program(evaluation: Evaluation) -> dict[str, Any]:
    """The names whose gradients the program itself asked to keep: `y.retain_grad()`."""
    names = evaluation.names.items()
    return {n: t for n, t in names if getattr(t, "retained", False)}


def _has_passed(question: Question, evaluation: Evaluation) -> bool:
    """Whether the program ran backward itself, as scripts of PyTorch do, and left nothing to differentiate.

    Its value is then None, or a gradient: `z.backward()`, `z.backward(); x.grad`. An option that would
    change our pass has none to change, so the error stays.
    """
    if getattr(evaluation.value, "requires_grad", False) or question.is_uncertain:
        return False
    others = (question.seed, question.like, *({*question.of_one_tape} - {"--retain"}))
    if any(others):
        return False
    return any(t.grad is not None for t in evaluation.leaves.values())


def _left_by_program(question: Question, evaluation: Evaluation) -> Answer:
    """The gradients that the program's own backward pass has left."""
    leaves, kept = evaluation.leaves, _retained_by_program(evaluation)
    asked = _names_to_retain(question.request, question.retain)[0]
    if missing := [n for n in asked if n not in kept and n not in leaves]:
        name = missing[0]
        raise usage(
            f"--retain {name}: the program has run backward already",
            hint=f"write {name}.retain_grad() in it before backward(), or leave backward() out",
        )
    output.note("the program runs backward itself: these are the gradients that it leaves")
    grads = {n: t.grad for n, t in {**leaves, **kept}.items()}
    lines: Lines = [(f"{n}.grad", g) for n, g in grads.items()]
    if question.value:
        lines = [*[(label or "value", v) for label, v in results(evaluation.value)], *lines]

    def keys(precision: int | None) -> dict[str, Any]:
        made = {"grad_fn": None, **gradient_keys(grads, leaves, None, precision)}
        return made | {"retained": gradient_entries(grads, kept, precision)}

    answer = Answer(question.request, lines, keys, evaluation.value)
    answer.grads = grads
    return answer


def others_of(question: Question) -> Others | None:
    """The other systems that --like names, whose rules are shown beside ours."""
    if question.like is None:
        return None
    from gradcli.commands.kink_notes import Others

    return Others(question.like)


def _names_to_retain(request: Request, texts: Iterable[str]) -> tuple[list[str], bool]:
    """The names in --retain, and whether it says `all`."""
    if not texts or any(text.strip() == "all" for text in texts):
        return [], bool(texts)
    from gradcli.language.scope_checks import assigned_names

    known = [*assigned_names(request.program), *request.names]
    what = "a name that the expression assigns"
    return name_list(texts, "--retain", known, what=what) or [], False


def _passed(
    question: Question, evaluation: Evaluation, seed: Any, watched: Values | None
) -> Trace | None:
    """Run the backward passes; give the trace of them if one is wanted."""

    def propagate() -> None:
        how = {"retain_graph": question.retain_graph, "create_graph": question.create_graph}
        backward(evaluation, seed, passes=question.passes, **how)

    how = {"trace": question.trace, "anomalies": question.detect_anomaly}
    if not any(how.values()):
        propagate()
        return None
    from gradcli.commands.inspected import observed

    return observed(propagate, evaluation, values=watched, **how)


def note_of_sums(arrays: list[str]) -> None:
    """Say what higher derivatives by variables that are no scalars are."""
    if arrays:
        output.note(
            f"{arrays[0]} is not a scalar: each order is the derivative of the sum of the one before; "
            "gradcli hessian has the matrix of second derivatives"
        )


def _higher(question: Question) -> Answer:
    """`--order N`: the last gradients."""
    others, order = others_of(question), question.order
    for option in question.of_one_tape:
        if option not in ("--order", "--detect-anomaly"):
            words = "--order works only with --seed, --value and --detect-anomaly"
            raise usage(words, hint=f"leave out {option}")
    question.raise_on_anomalies(order)
    from gradcli.transforms import removable

    with Look() as look, removable.Watch() as watch:
        evaluation = evaluate(question.ctx, question.request)
    value, leaves = evaluation.tensor("gradient"), evaluation.leaves
    seed = cotangent_of(evaluation, question.seed)
    with others.rules() if others else nullcontext():
        found, remarks = nth(evaluation, leaves, order, seed, watch)
    tell(remarks)
    note_of_random_kinks(evaluation, look)
    note_of_sums([n for n, t in leaves.items() if t.shape])
    # `S.grad2`, as `map` calls it; --plain keeps the name that scripts read.
    label = "grad" if question.request.style.form == "plain" else f"grad{order}"
    lines = [*[("value", value)] * question.value, *((f"{n}.{label}", g) for n, g in found.items())]

    def keys(precision: int | None) -> dict[str, Any]:
        made = gradient_keys(found, found, seed, precision, order=order)
        for entry in made["wrt"].values():
            entry[f"grad{order}"] = entry["grad"]
        return made

    answer = Answer(question.request, lines, keys, value)
    answer.kinks = kinks_of(evaluation, look, seed, like=others, order=order)
    answer.others, answer.grads = others, found
    return answer

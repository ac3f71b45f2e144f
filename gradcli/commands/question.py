"""What a command asks of a program, and what a backend answers: the data, and the one writer.

    Question ──► rows      the variables are columns of a large table: passes over it   `large_columns`
             ──► compiled  arrays are large, and nothing needs the tape                 `compiled_evaluation`
             ──► tape      everything else                               `answers`, and `matrix_answers`
                    │
                  Answer ──► `write`: text, plain lines, JSON, arrays, a picture

`answers.answer_to` chooses. A command makes a question of its command line, and prints the answer to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import quoted
from gradcli.engine.system.visible import visible

if TYPE_CHECKING:
    from gradcli.commands.declarations import Options
    from gradcli.commands.kink_notes import Kinks, Others
    from gradcli.commands.request import Request
    from gradcli.commands.uncertainty import Uncertainties
    from gradcli.engine.system.process import AnyContext
    from gradcli.graphs import Trace

NO_PLAN = "no plan: "
UNSAID = object()  # the value of an answer that is about something else
VALUE, GRADIENT, JACOBIAN, HESSIAN, ALONG = "value", "gradient", "Jacobian", "Hessian", "derivative"
CHECKED, MINIMUM, RUN = "check", "minimum", "run"


class Question:
    """What is asked of a program.

    asked: VALUE, GRADIENT, JACOBIAN, HESSIAN, ALONG for the derivative along a direction, CHECKED for
    gradients beside differences, MINIMUM, or RUN for what a program displays. request: the program and the
    values of its variables. Everything else is called as the option that says it; what a command has no
    option for is not asked. What is asked of a program as a formula: `formula_question`.
    """

    by_rows: bool | None = None
    plan: bool | None = None
    cluster = like = monte_carlo = seed = workers = None
    against: str | None = None
    of: str | None = None
    range = samples = None
    assume = correlation = covariance = hook = retain = uncertainty = vector = ()
    budget = create_graph = detect_anomaly = retain_graph = sparse = trace = value = False
    jacobian = second_order = False
    max_steps: int | None = None
    rtol: float | None = None
    atol: float | None = None
    mode = "auto"
    order = passes = 1
    errors: Uncertainties | None = None
    bare = False  # whether a value with its uncertainty is printed as `eval` does, without a name

    def __init__(self, asked: str, ctx: AnyContext, request: Request, options: Options) -> None:
        self.asked, self.ctx, self.request = asked, ctx, request
        vars(self).update(vars(options))

    @property
    def of_one_tape(self) -> list[str]:
        """The options given that ask for what only the tape of one evaluation has."""
        asked = {
            "--passes": self.passes > 1,
            "--order": self.order > 1,
            "--hook": self.hook,
            "--retain": self.retain,
            "--retain-graph": self.retain_graph,
            "--create-graph": self.create_graph,
            "--detect-anomaly": self.detect_anomaly,
            "--trace": self.trace,
        }
        return [option for option, given in asked.items() if given]

    @property
    def is_uncertain(self) -> bool:
        """Whether a variable has an uncertainty, or the command line says something of one."""
        given = (self.request.uncertainties, self.uncertainty, self.covariance, self.correlation)
        return any(given) or self.budget or self.monte_carlo is not None

    def raise_on_anomalies(self, order: int) -> None:
        """With --detect-anomaly: stop where a pass of the tape, up to an order, gives what is not finite."""
        if self.detect_anomaly:
            from gradcli.commands.inspected import raise_at_orders

            raise_at_orders(self.ctx, self.request, order, self.seed)


class Answer:
    """What a backend found.

    results: (name, value) of every line of text. keys: of the precision, the keys of the JSON object behind
    the value's; a function, for most commands print text. value: of the program, where JSON says it. like:
    what has its shape and dtype, where the value is in the rows of a table. lines: text in place of results,
    which has passed the gate. prose: sentences before the results, which may be broken. ok: whether the exit
    code is 0. plan: in which blocks it was computed. trace: of the backward pass. kinks: what there is to say
    of points without a derivative. others: what other systems have, beside `grads`. rows: writes what has
    rows. units: behind results, by name.
    """

    lines: Sequence[str] = ()
    prose: Sequence[str] = ()
    ok = True
    plan: list[str] | None = None
    trace: Trace | None = None
    kinks: Kinks | None = None
    others: Others | None = None
    rows: Callable[[], None] | None = None
    grads: Mapping[str, Any] = {}
    units: Mapping[str | None, str] = {}

    def __init__(
        self,
        request: Any,
        results: Iterable[tuple[str | None, Any]],
        keys: Callable[[int | None], dict[str, Any]],
        value: Any = UNSAID,
        like: Any = None,
    ) -> None:
        self.request, self.value, self.like = request, value, like
        self.results, self.keys = list(results), keys


def displayed(request: Request, value: Any) -> Answer:
    """The answer that shows a program's value as a notebook does, if its last line is an expression."""
    from gradcli.language.display import is_displayed, pretty

    answer = Answer(request, [], lambda _: {}, value)
    if value is not None and is_displayed(request.program):
        answer.lines = [visible(pretty(value))]
    return answer


# -- the writer -------------------------------------------------------------------------------------
def with_ln(latex: str) -> str:
    r"""LaTeX with `\ln` for the natural logarithm, as the text has it; `\log_{2}` stays."""
    import re

    return re.sub(r"(\\|\bderivative of )log(?![_A-Za-z])", r"\1ln", latex)


def write(answer: Answer) -> None:
    """Print an answer as the command line says: text, plain lines, JSON, arrays, a picture."""
    style = answer.request.style
    if style.form == "json":
        if answer.rows is not None:
            answer.rows()
        output.write_json(_object(answer, style.precision))
        return
    if answer.plan and answer.plan[0].startswith(NO_PLAN):
        output.note(answer.plan[0])
    elif answer.plan and style.form == "text":  # --plain stays readable by machines
        output.write("\n".join(answer.plan))
    if answer.trace is not None and style.form != "json":
        from gradcli.commands.step_output import write_steps

        if not write_steps(answer.trace, style):
            return
    if answer.lines:
        text = "\n".join(answer.lines)
        if getattr(answer.request, "ln", False):
            text = with_ln(text)
        output.write(text, styled=True)
    if answer.prose:
        output.write_prose("\n".join(answer.prose))
    results = answer.results
    if answer.units and style.form == "text":
        from gradcli.commands.units import with_units

        results = with_units(results, answer.units, style)
    if style.typeset is not None and results:
        from gradcli.commands.typeset_results import results as typeset

        text = typeset(results, style.typeset, style.precision, called(answer.request))
        named = called(answer.request)
        if named != "f" and [name for name, _ in results] == [None]:
            from gradcli.formulas.print.latex import symbol

            text = f"{symbol(named)} = {text}"
        output.write(text)
        if style.typeset == "latex" and not answer.request.uncertainties:
            is_gradient = any((name or "").endswith(".grad") for name, _ in results)
            command, what = ("diff", "derivatives") if is_gradient else ("simplify", "expression")
            source = answer.request.source
            text = quoted(source) if len(source) < 40 and "\n" not in source else "EXPR"
            output.note(
                f"these are numbers; gradcli {command} {text} --format latex writes the {what}"
            )
        return
    if answer.others is not None:
        answer.others.write(results, answer.grads, style)
    elif answer.rows is None:
        output.write_results(results, style)
    elif results:  # the file of -o has the rows of others
        output.write_results(results, style.as_text())
    if answer.rows is not None:
        answer.rows()


def called(request: Request) -> str:
    """What a program's value is called: `g` of `g = 4*pi**2*L/T**2; g`, J of `J(w) = …`, else f."""
    start, end = request.program.value_span or (0, None)
    last = request.program.source[start:end].strip()
    is_made = last.isidentifier() and last not in (*request.names, *request.open_variables)
    return last if is_made else request.named or "f"


def _object(answer: Answer, precision: int | None) -> dict[str, Any]:
    """The object that --json prints."""
    found: dict[str, Any] = {"expression": answer.request.source}
    if answer.value is not UNSAID:
        found |= output.described(answer.value, precision, like=answer.like)
    found |= answer.keys(precision)
    if answer.trace is not None:
        found["trace"] = answer.trace.to_json()
    if answer.plan is not None:
        found["plan"] = answer.plan
    if answer.units:
        found["units"] = {name or "value": unit for name, unit in answer.units.items()}
    for more in (answer.kinks, answer.others):
        found |= more.to_json() if more else {}
    if "wrt" not in found and (wrt := _by_variable(found)):
        found["wrt"] = wrt
    return found


# The keys of single commands that have something of each variable, and what it is called in `wrt`.
_OF_VARIABLES = {"shapes": "shape", "at": "at", "point": "value", "gradient": "grad"}


def _by_variable(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What an object says of each variable under keys of the command's own, by variable."""
    wrt: dict[str, dict[str, Any]] = dict(found.get("parameters", {}))
    for key, word in _OF_VARIABLES.items():
        for name, value in found.get(key, {}).items():
            wrt.setdefault(name, {})[word] = value
    for root in found.get("roots", ()):
        for name, value in root.items():
            wrt.setdefault(name, {}).setdefault("roots", []).append(value)
    return wrt


# -- what JSON says -----------------------------------------------------------------------------
def node_name(value: Any) -> str | None:
    """The name of the node that made a value."""
    node = getattr(value, "grad_fn", None)
    return None if node is None else node.name()


def value_keys(found: Any, precision: int | None) -> dict[str, Any]:
    """What JSON says of a value; of a tuple of tensors a list of such objects is the value."""
    keys: dict[str, Any] = {}
    if has_tensors(found):
        keys["value"] = [
            {**output.described(item, precision), **value_keys(item, precision)} for item in found
        ]
    requires_grad = bool(getattr(found, "requires_grad", False))
    return {**keys, "requires_grad": requires_grad, "grad_fn": node_name(found)}


def has_tensors(found: Any) -> bool:
    """Whether a value is a tuple or a list with a tensor in it."""
    items = found if isinstance(found, tuple | list) else ()
    return any(hasattr(item, "requires_grad") for item in items)


def gradient_keys(
    grads: Mapping[str, Any],
    like: Mapping[str, Any],
    seed: Any,
    precision: int | None,
    **facts: Any,
) -> dict[str, Any]:
    """What JSON says of gradients; like: what has their shapes and dtypes."""
    wrt = gradient_entries(grads, like, precision)
    start = 1.0 if seed is None else output.to_json(seed, precision)
    return {"seed": start, **facts, "wrt": wrt, "grads": wrt}  # grads: the name of 0.1.0


def gradient_entries(
    grads: Mapping[str, Any], like: Mapping[str, Any], precision: int | None
) -> dict[str, Any]:
    """What JSON says of each gradient; like: what has its shape and dtype."""
    return {n: output.described(grads[n], precision, "grad", like=t) for n, t in like.items()}

"""`gradcli minimize EXPR`: a minimum of a number, near where its variables start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gradcli.commands import curvature_errors, output
from gradcli.commands.answers import large_table, rows_wanted
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import (
    BY_ROWS,
    CLUSTER,
    DRAWS,
    EXPRESSION,
    OUTPUTS,
    UNCERTAINTY_OF_SEVERAL,
    Option,
    Options,
    declare,
    reworded,
)
from gradcli.commands.item_lists import BOUNDS, read_bounds
from gradcli.commands.pictures import PLOT, PLOTTED, Canvas
from gradcli.commands.question import MINIMUM, Answer, Question, write
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import cannot_require_grad, held_data, read_variables
from gradcli.commands.step_table import Step, columns, heading, line, to_json, to_text
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.columns.optimize.minima import Minimum
    from gradcli.columns.optimize.spaces import Compiled, Space
    from gradcli.commands.moved_uncertainty import MovedUncertainties
    from gradcli.commands.plots.pictures import Contours, Curves
    from gradcli.engine.system.process import AnyContext

_METHODS = "trust-exact trust-krylov trust-ncg Newton-CG BFGS L-BFGS-B TNC CG SLSQP trust-constr"
# Those of `descents`, which take the steps that are asked for.
_DESCENTS = "gradient-descent momentum nesterov adagrad rmsprop adam newton"


@declare(
    "minimize",
    *reworded(EXPRESSION, "--wrt NAMES", "Move these variables only; the others are held."),
    Option(
        "--subject RELATION",
        "A constraint, as 'x + y == 1' or 'x >= 0'.",
        many=True,
    ),
    BOUNDS,
    Option(
        "--method NAME",
        f"One of {', '.join(_METHODS.split())}; chosen by the problem if not given. To show how they go: "
        f"{', '.join(_DESCENTS.split())}.",
        choices=[*_METHODS.split(), *_DESCENTS.split()],
    ),
    Option("--rate R", "The learning rate of --method gradient-descent and its like.", type=float),
    Option("--steps N", "How many steps of such a method to take (100).", least=1, most=1_000_000),
    Option("--momentum B", "The momentum of --method momentum or nesterov (0.9).", type=float),
    Option(
        "--errors",
        "EXPR is a negative log-likelihood: print standard errors, by the Hessian's inverse.",
    ),
    Option("--max-iterations N", "Stop after N iterations.", least=1),
    Option("--trace", "Print point, value and norm of the gradient at each iteration."),
    Option("--csv", "With --trace: print the iterations as a table.", section=OUTPUTS),
    *(BY_ROWS, *CLUSTER),
    Option(PLOT, f"Draw the path to the minimum (1 or 2 variables) {PLOTTED}"),
    *(*UNCERTAINTY_OF_SEVERAL, DRAWS),
    examples=(
        'gradcli minimize "(1-x)**2 + 100*(y-x**2)**2" --x -1 --y 2',
        "gradcli minimize \"sum((A@x - b)**2)\" --A '2,1;1,3' --b 1,2 --x 0,0 --wrt x",
        'gradcli minimize "x*y" --x 1 --y 2 --subject "x + y == 1" --bounds x=0:1',
        'gradcli minimize "x**2 + 5*y**2" --x 3 --y 1 --method gradient-descent --rate 0.1 --steps 5 --trace',
        'gradcli minimize "mean(log(1 + exp(-y*(X@w))))" --X @big:x1,x2 --y @big:y --w 0,0 --by-rows',
    ),
    propagates=True,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Find a minimum of EXPR near the values of its variables.

    The gradients and Hessians are exact, not finite differences. The eigenvalues of the Hessian tell
    whether the point is a minimum, a saddle point or flat; the exit code is 1 if it is not a minimum.
    What has an uncertainty (--a 2±0.1) stays, and gives point and value one. What a file has
    (--A @A.csv) is data and stays, too; --wrt says otherwise.
    """
    import numpy as np

    from gradcli.columns.optimize.evidence import RUNS_AWAY
    from gradcli.columns.optimize.least_squares import limits
    from gradcli.columns.optimize.minima import minimize

    if request.style.form == "csv" and not options.trace:
        raise usage("--csv is for --trace", hint="add --trace; --json writes the minimum")
    _check_descent(options)
    canvas = None
    if options.plot is not None:
        canvas = Canvas(options.plot, request.style, "--plot", written=request)
    question = Question(MINIMUM, ctx, request, options)
    if options.errors:
        curvature_errors.check(request, options)
    inputs = None if options.errors else inputs_of(request, options)
    space, objective = _objective(question, inputs is not None)
    if canvas is not None and (space.size > 2 or len(space.start) != space.size):
        raise usage("--plot draws one or two variables that are numbers", hint="leave it out")
    bounds = limits(space.start, read_bounds(options.bounds, space.start))
    start = space.flat()
    value, gradient = objective.value_and_gradient(start)
    if value != value or abs(value) == float("inf"):
        raise LanguageError(
            f"the value is {value} where it starts",
            kind="value",
            usage=False,
            hint="start elsewhere",
        )
    told = None
    if options.trace and request.style.form == "text":
        output.write(heading(_columns(space)))
        told = _Told(request.style.precision)
        told(0, start, value, float(np.linalg.norm(gradient)))
    relations = space.relations(options.subject, request.program)
    if options.method in _DESCENTS.split():
        if options.bounds or relations:
            raise usage(
                f"--method {options.method} knows no {'bounds' if options.bounds else 'constraints'}",
                hint="leave out --method",
            )
        found = _descended(objective, start, options, told)
    else:
        found = minimize(
            objective, start, bounds=bounds, constraints=relations, method=options.method,
            limit=options.max_iterations, told=told,
        )  # fmt: skip
    if isinstance(told, _Told) and told.left_out:
        output.note("steps that were tried and not taken are left out")
    # Steps of a rate that end early have said nothing of whether there is a minimum.
    unfinished = options.method in _DESCENTS.split() and found.kind == "no minimum"
    if unfinished and np.isfinite(found.gradient).all():
        found = found._replace(kind="not reached")
    answer = _answer(question, space, found)
    if inputs is not None and found.converged:
        spreads = inputs.of_minimum(space, found.x, found.value, bounds, options.subject)
        answer = inputs.added(answer, spreads, "value")
    if options.errors and found.converged:
        answer = curvature_errors.added(answer, space, found, options)
    if request.style.form == "csv":
        begin = Step(0, start, value, float(np.linalg.norm(gradient)))
        steps = [begin, *_taken(_steps(found), start)]
        output.write(to_text(_columns(space), steps, "csv", request.style.precision))
    else:
        write(answer)
    if canvas is not None:
        canvas.draw(_picture(request.source, space, objective, found))
    if not found.converged and not unfinished:
        words = f"no minimum after {found.iterations} iterations: this is the last point"
        if found.kind.startswith("not known"):
            words = f"whether this is a minimum is {found.kind}"
        elif found.kind == RUNS_AWAY:
            words = found.kind
        elif found.kind != "no minimum":
            words = f"this is not a minimum ({found.kind.removeprefix('no minimum: ')})"
        hint = "start elsewhere; if there is no minimum, set --bounds; or try another --method"
        if found.kind == RUNS_AWAY:
            hint = "set --bounds, or a constraint, as in --subject 'x >= 0'"
            if len(space.start) > 1:
                hint = f"--wrt {min(space.start)} varies it alone, and holds the others; or {hint}"
        if found.kind in ("no minimum", RUNS_AWAY):
            hint += f"; {_other_extrema(request, space)}"
        raise LanguageError(words, kind="value", usage=False, hint=hint)


def _other_extrema(request: Request, space: Space) -> str:
    """How maxima are found, and all extrema of one number."""
    source = request.source
    said = f'for a maximum: gradcli minimize "-({source})"'
    names = request.program.free_variables()
    if space.size > 1 or len(names) > 1 or ";" in source or "\n" in source:
        return said
    (name,) = names
    slope = f'gradcli root "d/d{name} ({source}) = 0" --math --{name} -10:10 --all'
    return f"{said}; all extrema: {slope}"


def inputs_of(request: Request, options: Options) -> MovedUncertainties | None:
    """What has an uncertainty on the command line, and moves what is found; None where nothing has."""
    if request.has_files:
        from gradcli.commands.uncertainty import take_from_cells

        take_from_cells(request)
    given = (request.uncertainties, options.uncertainty, options.covariance, options.correlation)
    if not any(given) and not options.budget and options.monte_carlo is None:
        return None
    from gradcli.commands.moved_uncertainty import MovedUncertainties

    return MovedUncertainties(request, options)


def _objective(question: Question, uncertain: bool) -> tuple[Space, Compiled]:
    """The variables to move, and the value that is to become small: of memory, or of a table by rows."""
    table = large_table(question.request, rows_wanted(question))
    if table is not None and uncertain:
        raise usage("an uncertainty cannot be used with --by-rows", hint="leave out one of them")
    if table is None:
        space = space_of(question.ctx, question.request)
        return space, space.objective(question.request.program)
    from gradcli.commands.large_columns import objective_by_rows

    return objective_by_rows(question, table)


def space_of(ctx: AnyContext, request: Request) -> Space:
    """The variables to move, from where the command line has them; the others stay."""
    from gradcli.columns.optimize.spaces import Space

    request.no_grad = [*request.no_grad, *held_data(request, request.names)]
    variables, integers = read_variables(ctx, request)
    for name in integers:
        raise cannot_require_grad(request, name, variables[name])
    moved = [n for n, t in variables.items() if t.requires_grad]
    if not moved:
        raise usage("there is no variable to vary", hint="see --wrt and --no-grad")
    for name in moved:
        if variables[name].is_complex():
            raise usage(
                f"{name} is complex: make its real and imaginary part variables of their own"
            )
    fixed = {n: t.detach() for n, t in variables.items() if n not in moved}
    start = {n: variables[n].detach().array for n in moved}
    return Space(start, {**request.loaded, **fixed})


class _Told:
    """Prints each step; left_out: how many were tried and not taken, which leave the point as it was."""

    def __init__(self, precision: int | None) -> None:
        self.precision, self.left_out = precision, 0
        self.last: bytes | None = None

    def __call__(self, number: int, x: Any, value: float, norm: float) -> None:
        here = x.tobytes()
        if here == self.last:
            self.left_out += 1
            return
        self.last = here
        output.write(line(Step(number, x, value, norm), self.precision))


def _check_descent(options: Options) -> None:
    """Refuse what belongs to a descent where there is none."""
    given = {"--rate": options.rate, "--steps": options.steps, "--momentum": options.momentum}
    other = next((name for name, value in given.items() if value is not None), None)
    if options.method not in _DESCENTS.split():
        if other is not None:
            many = f"one of {', '.join(_DESCENTS.split())}"
            raise usage(
                f"{other} is for a --method that goes step by step: {many}",
                hint="add --method gradient-descent",
            )
        return
    if options.momentum is not None and options.method not in ("momentum", "nesterov"):
        raise usage(
            f"--momentum is not for --method {options.method}", hint="write --method momentum"
        )
    if options.rate is not None and not options.rate > 0:
        raise usage(f"--rate {options.rate:g}: a rate is above 0", hint="as in --rate 0.1")


def _descended(objective: Compiled, start: Any, options: Options, told: Any) -> Minimum:
    """The steps of a method that lessons show; says how it went. Raises LanguageError where it rises."""
    from gradcli.columns.optimize.minima import descended

    found, made, rate = descended(
        objective, start, options.method, options.rate,
        options.steps or options.max_iterations, momentum=options.momentum, told=told,
    )  # fmt: skip
    if options.rate is None and options.method != "newton":
        output.note(f"--rate {rate:g}, as none is given")
    if found.kind == "no minimum":
        more = "" if options.trace else "; --trace prints the steps"
        output.note(f"{made.ended(rate)} the gradient is {made.norms[-1]:.3g} long, not 0{more}")
    return found


def _columns(space: Space) -> list[str]:
    return columns({name: array.shape for name, array in space.start.items()})


def _steps(found: Minimum) -> list[Step]:
    return [Step(k, x, v, g) for k, (x, v, g) in enumerate(found.path, 1)]


def _taken(steps: Iterable[Step], start: Any) -> Iterator[Step]:
    """The steps that were taken: one that was tried and rejected leaves the point as it was."""
    before = start.tolist()
    for step in steps:
        here = [float(x) for x in step.point]
        if here != before:
            yield step
        before = here


def _answer(question: Question, space: Space, found: Minimum) -> Answer:
    import numpy as np

    point = space.shaped(found.x)
    norm = float(np.linalg.norm(found.gradient))
    numbers = {"gradient_norm": norm, "kind": found.kind}
    ends = {n: getattr(found, n) for n in ("method", "iterations", "evaluations")}
    results: list[tuple[str | None, Any]]
    results = [*point.items(), ("value", found.value), *numbers.items()]
    if found.eigenvalues is not None and len(found.eigenvalues):
        results.append(("smallest_eigenvalue", float(found.eigenvalues[0])))

    def keys(_: int | None) -> dict[str, Any]:
        made: dict[str, Any] = {
            "point": {n: output.to_json(a) for n, a in point.items()},
            "value": output.to_json(found.value),
            "gradient": {n: output.to_json(g) for n, g in space.shaped(found.gradient).items()},
            **numbers,
            "eigenvalues": output.to_json(found.eigenvalues),
            **ends,
            "converged": found.converged,
        }
        if question.trace:
            made["trace"] = to_json(_columns(space), _steps(found), None)
        return made

    lines = [*results, *ends.items()]
    if not question.request.style.names:  # a bare answer is the point alone
        lines = list(point.items())
    return Answer(question.request, lines, keys)


def _picture(label: str, space: Space, objective: Compiled, found: Minimum) -> Curves | Contours:
    """The objective around the way to the minimum, and the way."""
    import numpy as np

    from gradcli.commands.plots.axes import Axis
    from gradcli.commands.plots.curves import limits
    from gradcli.commands.plots.pictures import GRID, Contours, Curves, Line

    names = list(space.start)
    path = np.array([space.flat(), *[x for x, _, _ in found.path], found.x])
    spread = np.maximum(np.ptp(path, axis=0), 1e-3 * (1 + np.abs(found.x)))
    ends = np.stack([path.min(0) - 0.2 * spread, path.max(0) + 0.2 * spread], 1)
    axes = [np.linspace(low, high, GRID) for low, high in ends]
    points = np.stack([a.ravel() for a in np.meshgrid(*axes)], 1)
    made = [objective.value_and_gradient(np.array(p)) for p in points]
    values, slopes = np.array([v for v, _ in made]), np.array([g for _, g in made])
    if len(names) == 1:
        way = np.array([objective.value_and_gradient(p)[0] for p in path])
        lines = [Line(axes[0], values, label), Line(path[:, 0], way, "iterations", points=True)]
        y = limits([(axes[0], values)], way)
        return Curves(lines, Axis((axes[0][0], axes[0][-1]), names[0]), Axis(y, label))
    one, other = (part.reshape(GRID, GRID) for part in slopes.T)
    grid = values.reshape(GRID, GRID)
    return Contours(axes[0], axes[1], grid, (one, other), (names[0], names[1]), label, path)

"""The commands as functions: `gradcli.grad("x**2", x=3)`, and so on, beside `gradcli.evaluate`.

Each takes an expression or a program of the language and the values of its variables by keyword: tensors,
numbers, lists, NumPy arrays, and functions for the program to call. A variable with the name of an option
goes into the mapping that may follow the source: `grad("seed*x", {"seed": 3}, x=2)`.

They compute as the command line does, in double precision, unless arrays or tensors among the values are
single and none is double.

With one variable a verb gives its result, with several a dict by name. `wrt` chooses: a name gives the
result, a list of names always a dict.

All raise LanguageError: with the place in the source and what to do about it, in PyTorch's words where the
computation was refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from gradcli.commands.named_results import ByName
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.language import as_tensor, parse, run
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.language.option_values import as_given, in_python, no_variable, unnamed, widest
from gradcli.language.rewritten_sources import as_vector
from gradcli.language.scope_checks import read_besides

if TYPE_CHECKING:
    from gradcli.commands.formula_question import FormulaAnswer
    from gradcli.commands.request_evaluation import Evaluation
    from gradcli.formulas.ask.composed_derivatives import AskedDerivative
    from gradcli.formulas.print.printed_text import Formula
    from gradcli.graphs import Graph
    from gradcli.language.program import Program
    from gradcli.language.rewritten_sources import FormulaReading
    from gradcli.transforms.gradient_checks import Row
    from gradcli.transforms.tolerances import Comparison

# pytest shows the line of the test, not these frames.
__tracebackhide__ = True

Values = Mapping[str, Any] | None
Names = str | Iterable[str] | None
# What a Python function has as well, as `gradcli.func` has it.
_OF_FUNCTIONS = frozenset(["grad", "value_and_grad", "jacobian", "hessian", "jvp"])
P = ParamSpec("P")
R = TypeVar("R")


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """The function with errors that speak Python, and that begin where it was called."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if not args and "source" not in kwargs:
            name = function.__name__
            raise TypeError(
                f"{name}() missing 1 required positional argument: 'source'; the expression comes "
                f'first: gradcli.{name}("x**2", …)'
            )
        source = args[0] if args else kwargs["source"]
        if callable(source) and not _is_tensor(source) and function.__name__ in _OF_FUNCTIONS:
            from gradcli.commands.function_verbs import derived

            made: R = derived(function.__name__, source, args[1:], kwargs)
            return made
        if isinstance(source, str) and (";" in source or "\n" in source):
            _warn_of_unused(source, function.__name__)
        try:
            with dtypes.as_default(_dtype_of(args[1:], kwargs)):
                return function(*args, **kwargs)
        except LanguageError as error:
            from gradcli.language.typed_errors import as_typed

            error = as_typed(error, error.source)  # it may be about a text that the verb has made
            found = in_python(error, function.__name__).with_traceback(None)
            values = [v for a in (*args, kwargs) if isinstance(a, Mapping) for v in a.values()]
            # A function of the caller's own is worth its frames; those of gradcli say nothing more.
            raise found from (error.__cause__ if any(map(callable, values)) else None)

    return called


def _dtype_of(given: Iterable[Any], named: Mapping[str, Any]) -> Any:
    """The default dtype in which a verb computes: double, but for values that are single."""
    values = [value for one in given if isinstance(one, Mapping) for value in one.values()]
    return widest([*values, *named.values()])


def _warn_of_unused(source: str, name: str) -> None:
    """Warn of statements without an effect. What is no program says so itself, later."""
    from gradcli.commands.unused_notes import READ
    from gradcli.language.unused_statements import warn

    with suppress(LanguageError):
        warn(parse(source), READ.get(name, ()))


def by_name(source: Any, values: Any, variables: Mapping[str, Any]) -> dict[str, Any]:
    """All values that a call gives. Raises TypeError for values that have no names."""
    if values is not None and not isinstance(values, Mapping):
        raise unnamed(list(_free(parse(source))) if isinstance(source, str) else [], values)
    return {**(values or {}), **variables}


class VerbRequest:
    """A verb's source and what was given with it: what `Request` is of a command line.

    tensors: the values of its variables, detached copies. loaded: what else the program may read.
    wanted: the variables to differentiate by. single: whether the result is that of one variable.
    constant: whether a program without variables may be differentiated, by what is not in it.
    relations: programs that read variables as well, the constraints of a minimum.
    """

    __slots__ = ("loaded", "open", "program", "single", "tensors", "wanted")
    sizes: Mapping[str, str] = MappingProxyType({})  # as --math finds them

    def __init__(
        self,
        source: str,
        values: Values,
        variables: Mapping[str, Any],
        wrt: Names = None,
        constant: bool = False,
        relations: Iterable[Program] = (),
    ) -> None:
        if not isinstance(source, str):
            of = "; grad, value_and_grad, jacobian, hessian, jvp and compile take functions"
            of = of if callable(source) else ""
            raise TypeError(f"the source must be a str, not {type(source).__name__}{of}")
        self.program = parse(source)
        given = by_name(source, values, variables)
        self.loaded = {n: v for n, v in given.items() if callable(v) and not _is_tensor(v)}
        besides = read_besides(self.program, relations)
        free = [*_free(self.program), *besides]
        read = {**dict.fromkeys(free, self.program), **besides}
        for name in given:
            if name not in free:
                known = [n for n in free if n in given or _stands_open(read[n], n)]
                raise no_variable(name, [n for n in known if n not in self.loaded], source)
        values = {n: given[n] for n in free if n in given and n not in self.loaded}
        wide = widest(values.values())
        self.tensors = {n: _tensor(n, v, wide) for n, v in values.items()}
        self.open = [n for n in free if n not in given and _stands_open(read[n], n)]
        if constant and wrt and not free:
            self.open = [wrt] if isinstance(wrt, str) else list(wrt)
            warnings.warn(
                f"nothing in the expression depends on {', '.join(self.open)}", stacklevel=6
            )
        self.wanted, self.single = self._chosen(wrt)

    @property
    def source(self) -> str:
        return self.program.source

    def _chosen(self, wrt: Names) -> tuple[list[str], bool]:
        known = [*self.tensors, *self.open]
        if wrt is None:
            able = [n for n in known if n in self.open or _is_floating(self.tensors[n])]
            return able, len(able) == 1
        wanted = [wrt] if isinstance(wrt, str) else list(wrt)
        for name in wanted:
            if name not in known:
                raise no_variable(name, known, self.source)
            if name in self.tensors and not _is_floating(self.tensors[name]):
                raise LanguageError(
                    "Only Tensors of floating point and complex dtype can require gradients",
                    kind="runtime",
                    hint=f"{name} has dtype {self.tensors[name].dtype.name}",
                    usage=False,
                )
        return wanted, isinstance(wrt, str)

    def leaves(self) -> dict[str, Tensor]:
        """The variables to differentiate by, as leaves. Raises LanguageError if there are none."""
        if not self.wanted:
            what = "it has no variables"
            if self.tensors:
                n = next(iter(self.tensors))
                what = f"every variable has an integer dtype: pass {n}.double(), or an array's "
                what += f"{n}.astype(float)"
            raise LanguageError("nothing to differentiate with respect to", kind="usage", hint=what)
        return {n: self.tensors[n].requires_grad_() for n in self.wanted if n in self.tensors}

    def evaluated(self, purpose: str, leaves: Mapping[str, Tensor] | None = None) -> Evaluation:
        """The program's run, whose value must be a tensor; leaves: tensors in place of its own."""
        from gradcli.commands.request_evaluation import Evaluation

        tensors = {**self.tensors, **(leaves or {})}
        found = run(self.program, {**self.loaded, **tensors})
        if isinstance(found.value, Tensor):
            if purpose != "gradient":  # which the backward pass refuses in PyTorch's words
                from gradcli.language.no_derivative import without_derivative

                if (refused := without_derivative(self.program, found.value, purpose)) is not None:
                    raise refused
            return Evaluation(self, tensors, found.value, dict(found.names), [])
        kind = type(found.value).__name__
        raise self.error_for(
            TypeError(f"the value is a {kind}, not a tensor: there is no {purpose}")
        )

    def error_for(self, error: Exception, hint: str | None = None) -> LanguageError:
        """The engine's error, with the place of the value and a remedy in Python."""
        from gradcli.language.error_remedies import remedy

        found = LanguageError(
            str(error),
            kind="type" if isinstance(error, TypeError) else "runtime",
            source=self.source,
            span=self.program.value_span,
            hint=hint or remedy(error, "python"),
            usage=False,
        )
        found.__cause__ = error
        return found

    def result(self, found: Mapping[str, Any]) -> Any:
        """The result of the one variable, or all by name."""
        return found[self.wanted[0]] if self.single else ByName(found)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _is_floating(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _tensor(name: str, value: Any, wide: Any) -> Tensor:
    """A copy of the value as a tensor without a graph, so that no program writes into the caller's.

    wide: the dtype of numbers, where one of the values is in double precision.
    """
    try:
        found = value if isinstance(value, Tensor) else as_given(value, wide)
    except LanguageError as error:
        error.message = f"{name}: {error.message}"
        raise
    copied: Tensor = found.detach().clone()
    return copied


def _free(program: Program) -> list[str]:
    from gradcli.language.scope_checks import free_names

    return list(free_names(program))


def _stands_open(program: Program, name: str) -> bool:
    """Whether a name without a value can only be a variable."""
    from gradcli.language.scope_checks import is_only_called, is_variable

    return is_variable(program, name) and not is_only_called(program, name)


@verb
def grad(
    source: str,
    values: Values = None,
    /,
    *,
    wrt: Names = None,
    seed: Any = None,
    order: int = 1,
    explain: bool = False,
    **variables: Any,
) -> Any:
    """The gradient of an expression: `grad("2*dot(x, x)", x=[0, 1, 2, 3])`; or of a function: `grad(f)`.

    Returns a tensor of the variable's shape and dtype (None where nothing depends on it), or with
    several variables a dict of them. seed: the gradient to start from, of the value's shape; a value
    that is not a scalar needs one. order: how often to differentiate; from the second time on the gradient
    is summed up first. explain: warn (UserWarning) where a variable lies on a kink or a jump, and of a
    gradient that is not finite or that a rule misses, what it is. No `.grad` of a tensor that was given
    changes. Raises LanguageError.

    Of a Python function f of tensors, NumPy's arrays or numbers, `grad(f, argnums=0, has_aux=False)` is a
    function, as `gradcli.func.grad(f)`; `grad(f, x=3.0)` is the gradient there, by name as of an expression.
    """
    from gradcli.commands.request_evaluation import nth, tails
    from gradcli.transforms.higher_orders import gradients
    from gradcli.transforms.removable import Watch

    call = VerbRequest(source, values, variables, wrt)
    leaves = call.leaves()
    explained = _explained(call, explain)
    with Watch() as watch:
        evaluation = call.evaluated("gradient")
    try:
        start = None if seed is None else as_tensor(seed, evaluation.value.dtype).detach()
        found = {} if order > 1 else gradients(evaluation.value, leaves, start)
    except OPERATION_ERRORS as error:
        raise call.error_for(error) from error
    if order > 1:
        found, remarks = nth(evaluation, leaves, order, start, watch)
        _warn(remarks)
    else:
        own, _ = tails(evaluation, {n: g for n, g in found.items() if g is not None}, start)
        found |= own
    explained(None if start is None else start.array, order, False)
    return call.result(found)


@verb
def value_and_grad(source: str, values: Values = None, /, **given: Any) -> Any:
    """(the value, the gradient) of an expression, or of a Python function; for the arguments see `grad`.

    Of a function f, `value_and_grad(f)` is a function, what SciPy's `minimize(…, jac=True)` takes.
    """
    from gradcli.language.option_values import evaluate

    options = {n: given[n] for n in ("wrt", "seed", "order", "explain") if n in given}
    rest = {n: v for n, v in given.items() if n not in options}
    return evaluate(source, values, **rest), grad(source, values, **given)


def _explained(call: VerbRequest, wanted: bool) -> Callable[[Any, int, bool], None]:
    """A function of (seed, order, rows) that warns of points without a derivative, once the call has run.

    It must be made before the call: it runs the program again, from the random numbers of now.
    """
    if not wanted:
        return lambda seed, order, rows: None
    from gradcli.commands.kink_notes import explanations_of, notes
    from gradcli.transforms.kinks import ERRORS, Watched, derivative_of
    from gradcli.transforms.verdicts import function_of

    function = function_of(call.program, call.loaded)
    arrays = {n: np.array(t.array) for n, t in call.tensors.items()}

    def explained(seed: Any, order: int, rows: bool) -> None:
        of = derivative_of(function, call.wanted) if order > 1 else function
        with np.errstate(all="ignore"):
            try:
                watched = Watched(of, arrays, call.wanted, seed, rows or order > 1)
            except ERRORS:
                return
            found = notes(watched, call.source, order)
            if order == 1 and not rows:
                found += explanations_of(watched, call.program, call.loaded, found)
        for note in found:
            warnings.warn(note.text, UserWarning, stacklevel=4)

    return explained


def diff(*args: Any, **kwargs: Any) -> Any:
    """`torch.diff` of a tensor; of a str, the derivative as an expression.

    diff(input, n=1, dim=-1, prepend=None, append=None): torch's, the differences of neighbours.

    diff(source, values=None, /, *, wrt=None, order=1, jacobian=False, of=None, along=None,
    operator=None, euler_lagrange=None, assume=(), form="text", shapes=None, verify=True, **variables):
    the derivative of an expression as text, `diff("sin(x)*y", wrt="x")` is "cos(x)*y". A str is what no
    call of torch's can have there, and a tensor is no source, so neither is ever taken for the other. A
    variable without a value is a scalar, or has the shape that `shapes` ({"x": (3, 4)}) gives it; a text is
    put in for it. wrt: also "x[0]", and what the program assigns. of: the variable that an equation
    `left == right` gives. along: a direction. operator: "grad", "div", "curl" or "laplacian".
    euler_lagrange: the coordinate q of a Lagrangian of q(t) and func.grad(q)(t); what is returned is 0
    along a motion. order: the second of several variables, or of a vector, is the Hessian, by "x.y" for
    each pair; "n" gives a formula in n. jacobian: the Jacobian, as a matrix. assume: "B symmetric", what
    holds of variables. form (or format): "text", "latex" or a whole function as "python", "numpy", "torch",
    "jax" or "c". verify: compare what is returned with what `grad` gives. What holds for the shapes given
    alone comes with a warning. Returns a str, or with several variables a dict of them (for a function always
    one str). Raises LanguageError.
    """
    if args and isinstance(args[0], str):
        return _derivative(*args, **kwargs)
    from gradcli.engine.registry.table import resolve

    return resolve("diff")(*args, **kwargs)


def _declared(call: VerbRequest, shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """The shapes that variables without values are given."""
    for n in shapes:
        if n not in call.open:
            raise no_variable(n, call.open, call.source)
    return {n: tuple(shape) for n, shape in shapes.items()}


def _form(source: Any, form: str, variables: dict[str, Any]) -> str:
    """The format, which the command line calls `format`; a variable of that name stays one."""
    if isinstance(variables.get("format"), str) and isinstance(source, str):
        if form != "text" and "format" not in _free(parse(source)):
            raise TypeError("form and format are two names of one option: pass one of them")
        if "format" not in _free(parse(source)):
            return str(variables.pop("format"))
    return form


def _derivative(
    source: str,
    values: Values = None,
    /,
    *,
    wrt: Names = None,
    order: int | str = 1,
    jacobian: bool = False,
    of: str | None = None,
    along: str | None = None,
    operator: str | None = None,
    euler_lagrange: str | None = None,
    assume: str | Sequence[str] = (),
    form: str = "text",
    shapes: Mapping[str, Sequence[int]] | None = None,
    verify: bool = True,
    **variables: Any,
) -> Any:
    from gradcli.formulas.ask.composed_derivatives import AskedDerivative, coordinates
    from gradcli.language.rewritten_sources import check_no_equation

    form = _form(source, form, variables)
    call, reading = _read(source, values, variables, wrt, of, along, euler_lagrange)
    check_no_equation(call.program)
    if euler_lagrange is not None:
        if order != 1 or jacobian or of or along or operator:
            raise ValueError("euler_lagrange goes with no other kind of derivative")
        return _value(
            _formula(call, reading, shapes, None, assume=assume, format=form, verify=verify)
        )
    call.leaves()
    if operator and wrt is None and len(call.wanted) > 1:
        call.wanted = coordinates(call.wanted)
    asked = AskedDerivative(order, jacobian, of, reading.along, reading.elements, operator)
    answer = _formula(call, reading, shapes, asked, assume=assume, format=form, verify=verify)
    if answer.made.code:
        return answer.made.code
    by = {n: _shown(answer, n) for n in answer.made.by}
    return next(iter(by.values())) if len(by) == 1 and asked.composed else call.result(by)


def _read(
    source: str,
    values: Values,
    variables: Mapping[str, Any],
    wrt: Names = None,
    of: str | None = None,
    along: str | None = None,
    motion: str | None = None,
) -> tuple[VerbRequest, FormulaReading]:
    """The call of a program in which texts are put in for variables, and how it was read."""
    from gradcli.formulas.algebra.unknown_functions import unknowns
    from gradcli.language.rewritten_sources import read

    given = by_name(source, values, variables)
    texts = {n: v for n, v in given.items() if isinstance(v, str)}
    own = parse(source).free_variables()
    put_in = [text for name, text in texts.items() if name in own]
    read_there = {*own, *(n for text in put_in for n in parse(text).free_variables())}
    for name in texts:
        if name not in read_there:
            raise no_variable(name, sorted(read_there), source)
    listed = [wrt] if isinstance(wrt, str) else list(wrt or ())
    reading = read(source, texts, listed, of=of, along=along, motion=motion)
    names: Names = reading.wrt or None
    if isinstance(wrt, str) and len(reading.wrt) == 1:
        (names,) = reading.wrt
    rest = {n: v for n, v in given.items() if n not in reading.put_in}
    known = {**unknowns(reading.functions), **rest}
    return VerbRequest(reading.source, None, known, names, constant=True), reading


def _formula(
    call: VerbRequest,
    reading: FormulaReading,
    shapes: Mapping[str, Sequence[int]] | None,
    asked: AskedDerivative | None,
    **options: Any,
) -> FormulaAnswer:
    """The formula that is asked for, proved if `verify`; asked: None for the value."""
    from gradcli.commands.formula_question import FORMATS, FormulaQuestion, squared
    from gradcli.commands.free_points import made_up_point
    from gradcli.formulas.lift.lifting import NoExpression

    forms = [form for form in FORMATS if form != "json"]
    if (form := options["format"]) not in forms:
        *most, last = (f'"{name}"' for name in forms)
        raise ValueError(f"form must be {', '.join(most)} or {last}, not {form!r}")
    if isinstance(options["assume"], str):
        options["assume"] = [options["assume"]]
    declared = _declared(call, shapes or {})
    tensors = {n: t.detach() for n, t in call.tensors.items()}
    # Points and sqrt(3) have all digits, as in the command.
    with dtypes.as_default(dtypes.float64):
        where = made_up_point(call, tensors, declared, call.open, reading.along)
        where = squared(options["assume"], call, where)
        wanted = [] if asked is None else call.wanted
        try:
            answer = FormulaQuestion(call, where, asked, wanted, **options).answered()
        except NoExpression as error:
            raise call.error_for(error) from error
    if answer.made.general is False:
        warnings.warn(answer.made.alone(where.arrays), stacklevel=5)
    return answer


def _shown(answer: FormulaAnswer, name: str) -> Formula:
    """The text of one derivative, behind what it shares with the others; as LaTeX in a notebook."""
    from gradcli.formulas.print.printed_text import Formula, printed

    def latex() -> list[str]:
        same = printed(answer.found, "latex")
        return [*same.lines, same.by[name]]

    return Formula.of("\n".join([*answer.made.lines, answer.made.by[name]]), latex)


@verb
def simplify(
    source: str,
    values: Values = None,
    /,
    *,
    assume: str | Sequence[str] = (),
    form: str = "text",
    shapes: Mapping[str, Sequence[int]] | None = None,
    verify: bool = True,
    **variables: Any,
) -> str:
    """The expression in a shorter form: `simplify("x**2 + y**2", x="r*cos(t)", y="r*sin(t)")` is "r**2".

    A variable that is given as text is put in. assume, form, shapes and verify are those of `diff`.
    Raises LanguageError.
    """
    form = _form(source, form, variables)
    call, reading = _read(source, values, variables)
    return _value(_formula(call, reading, shapes, None, assume=assume, format=form, verify=verify))


def _value(answer: FormulaAnswer) -> str:
    """The text of a program's value."""
    return answer.made.code or _shown(answer, *answer.made.by)


@verb
def taylor(
    source: str,
    values: Values = None,
    /,
    *,
    wrt: Names = None,
    order: int = 6,
    form: str = "text",
    **variables: Any,
) -> str:
    """The Taylor polynomial of an expression of numbers: `taylor("sin(x)/x", x=0, order=4)`.

    The variables that are given are the point, exact if as text: x="pi/4"; of those that wrt does not name
    the value is a constant, and may be an array. order: its degree. form: "text" or "latex". Raises
    LanguageError.
    """
    from gradcli.commands.taylor import BY_NUMBERS, at_zero, expanded, held_by
    from gradcli.formulas.lift.lifting import NoExpression
    from gradcli.formulas.print.printed_text import Formula

    form = _form(source, form, variables)
    given = by_name(source, values, variables)
    texts = {n: str(v) for n, v in given.items()}
    call = VerbRequest(source, None, {})
    for name in texts:
        if name not in call.open:
            raise no_variable(name, call.open, source)
    if not texts:
        texts = at_zero(call.open, "as in x=0")
        warnings.warn(f"this is at {min(texts)} = 0; choose another point", stacklevel=3)
    if wrt is not None:
        wrt = [wrt] if isinstance(wrt, str) else list(wrt)
        for name in wrt:
            if name not in call.open:
                raise no_variable(name, call.open, source)
    held = held_by(wrt, texts)
    arrays = dict.fromkeys(call.open, np.asarray(0.5))
    values = {n: as_tensor(v).detach().array for n, v in given.items() if not isinstance(v, str)}
    arrays |= {n: a for n, a in values.items() if n in held or a.shape}
    try:
        text, found = expanded(call, arrays, texts, order, form, held)
    except NoExpression as error:
        raise call.error_for(error) from error
    if found is None:
        warnings.warn(BY_NUMBERS, stacklevel=3)
        return text
    return Formula.of(text, lambda: [found.text("latex")])


_derivative.__name__ = "diff"
_derivative = verb(_derivative)


@verb
def jacobian(
    source: str,
    values: Values = None,
    /,
    *,
    wrt: Names = None,
    mode: str | None = None,
    sparse: bool = False,
    explain: bool = False,
    **variables: Any,
) -> Any:
    """The derivative of every element of the value by every element of a variable.

    Returns a tensor of the value's shape and then the variable's, or with several variables a dict of
    them. mode: "forward" (by columns) or "reverse" (by rows); None takes the fewer. sparse: a `Sparse` in
    place of the tensor, which holds the elements that are not zero: `.indices`, `.values`, `.shape`,
    `.dense()` and `.to_scipy()`. explain: as of `grad`. Raises LanguageError.
    """
    from gradcli.commands.request_evaluation import again
    from gradcli.transforms import removable, traced_matrices

    if mode not in (None, "forward", "reverse"):
        raise ValueError(f'mode must be "forward", "reverse" or None, not {mode!r}')
    if sparse and mode == "forward":
        raise ValueError('a sparse Jacobian is found by rows: leave mode="forward" out')
    if isinstance(source, str):
        source = as_vector(source)  # a list of functions has a row for each
    call = VerbRequest(source, values, variables, wrt)
    call.leaves()
    start = traced_matrices.Start()
    explained = _explained(call, explain)
    evaluation = call.evaluated("Jacobian")
    if sparse:
        held = again(evaluation, start, traced_matrices.sparse_jacobian, call.wanted)
        _warn(removable.noted({f"{n}.jacobian": s for n, s in held.by.items()}))
        explained(None, 1, True)
        return call.result(held.by)
    found, remarks = again(evaluation, start, removable.jacobian, call.wanted, mode)
    _warn(remarks)
    explained(None, 1, True)
    return call.result({n: wrap(array) for n, array in found.by.items()})


@verb
def hessian(
    source: str,
    values: Values = None,
    /,
    *,
    wrt: Names = None,
    sparse: bool = False,
    explain: bool = False,
    **variables: Any,
) -> Any:
    """The second derivatives of an expression whose value is a scalar.

    Returns a tensor of the variable's shape twice; with several variables `hessian(…)["x"]["y"]` is
    differentiated by x, then by y. sparse: as of `jacobian`. explain: as of `grad`. Raises LanguageError.
    """
    from gradcli.commands.request_evaluation import check_scalar
    from gradcli.transforms import removable, traced_matrices

    call = VerbRequest(source, values, variables, wrt)
    call.leaves()
    start = traced_matrices.Start()
    explained = _explained(call, explain)
    leaves = traced_matrices.leaves_of(call.tensors, call.wanted)
    with removable.Watch() as watch:
        evaluation = call.evaluated("Hessian", leaves)
    check_scalar(evaluation, "jacobian")
    recorded = removable.Recorded(evaluation.value, list(leaves.values()), watch, start)
    try:
        found, remarks = removable.hessian(
            call.program, call.tensors, call.wanted, call.loaded, sparse, recorded=recorded
        )
    except OPERATION_ERRORS as error:
        raise call.error_for(error) from error
    _warn(remarks)
    explained(None, 2, True)
    blocks = {
        n: ByName({m: b if sparse else wrap(b) for m, b in row.by.items()})
        for n, row in found.items()
    }
    return blocks[call.wanted[0]][call.wanted[0]] if call.single else ByName(blocks)


def _warn(remarks: Any) -> None:
    """Warn of what could not be decided, or is not finite."""
    for line in remarks.lines(False):
        warnings.warn(line, stacklevel=4)


class Check:
    """What `check` found; true where all gradients are right.

    by: name -> the gradient both ways (`analytical`, `numerical`, `error`, `ok`). second: the same of
    the second derivatives, where they were asked for. blame: the name of the operation whose gradient
    is wrong, if one is known. rows: the same in words, by `transforms.gradient_checks`.
    """

    __slots__ = ("blame", "by", "ok", "rows", "second")

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.ok = all(row.ok for row in rows)
        second = [row for row in rows if row.what.endswith("second derivative")]
        self.by: dict[str, Row] = {}
        for row in rows:  # of a gradient that is compared twice, what is wrong
            if row not in second and (row.name not in self.by or self.by[row.name].ok):
                self.by[row.name] = row
        self.second = {row.name: row for row in second}
        self.blame = next((row.part for row in rows if row.part is not None), None)

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        from gradcli.transforms.gradient_checks import line_of

        lines = [line for row in self.rows for line in line_of(row)]
        if self.blame is not None:
            lines.append(f"  to blame: {self.blame}")
        return "\n".join(lines)


@verb
def check(
    source: str | Callable[..., Any],
    values: Values = None,
    /,
    *,
    wrt: Names = None,
    second_order: bool = False,
    expected: Any = None,
    against: Any = None,
    order: int = 1,
    jacobian: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    **variables: Any,
) -> Check | Comparison:
    """Compare the gradients of an expression with numerical ones, in float64, at the given point.

    `assert check("sum(sin(x))", x=[1, 2])`. expected: a formula for the derivative by `wrt`, of this `order`
    or the `jacobian`, which is compared with the true one instead: `check("x**2", expected="2*x", x=3)`; what
    differs has a likely `mistake`. against: the same, by the name that it has on the command line. rtol:
    relative to each element (1e-6 if None, 1e-9 with a formula). atol: absolute (if None, 1e-12 of the
    largest element, and what differences lose to rounding).

    The source may be a function of NumPy's, PyTorch's or JAX's arrays, or a module; a single value of it may
    go by position. `expected` is an array, a function or a mapping of them by name then: see
    `gradcli.testing.assert_gradients`, which says more in tests. Raises LanguageError.
    """
    from gradcli.transforms.any_function import by_position, one_of
    from gradcli.transforms.tolerances import NotFinite

    against, variables = one_of(source, variables, expected=expected, against=against)
    if callable(source) or not (against is None or isinstance(against, str)):
        from gradcli.transforms.gradient_checks import checked_gradients

        if callable(source) and values is not None and not isinstance(values, Mapping):
            given = by_position(source, [values], variables)
        else:
            given = by_name(source, values, variables)
        how: dict[str, Any] = {"atol": atol, "second_order": second_order}
        how["rtol"] = 1e-6 if rtol is None else rtol
        return Check(list(checked_gradients(source, given, against, wrt=wrt, **how)))
    with dtypes.as_default(dtypes.float64):
        call = VerbRequest(source, values, variables, wrt)
        call.leaves()
        if call.open:  # the program says which value is missing
            call.evaluated("gradient")
        try:
            if against is not None:
                return _compared(call, against, order, jacobian, rtol, atol)
            return Check(_verdicts(call, rtol, atol, second_order))
        except NotFinite as error:
            raise call.error_for(RuntimeError(f"{error}: no gradient can be checked")) from error
        except OPERATION_ERRORS as error:
            raise call.error_for(error) from error


def _double(call: VerbRequest) -> dict[str, Any]:
    from gradcli.commands.check_points import double

    return {n: double(t.detach().array) for n, t in call.tensors.items()}


def _verdicts(
    call: VerbRequest, rtol: float | None, atol: float | None, second_order: bool
) -> list[Row]:
    from gradcli.transforms.finite_differences import RTOL
    from gradcli.transforms.gradient_checks import rows_of
    from gradcli.transforms.verdicts import verdicts

    how: dict[str, Any] = {"rtol": rtol, "atol": atol, "second_order": second_order}
    with np.errstate(all="ignore"):
        found = verdicts(call.program, _double(call), call.wanted, call.loaded, **how)
    part = None if found[0].part is None else found[0].part.name
    tolerances = (RTOL if rtol is None else rtol, atol)
    return [
        row
        for what, verdict in zip(("gradient", "second derivative"), found, strict=False)
        for row in rows_of(what, verdict.by, tolerances, part if what == "gradient" else None)
    ]


def _compared(
    call: VerbRequest,
    against: str,
    order: int,
    jacobian: bool,
    rtol: float | None,
    atol: float | None,
) -> Comparison:
    """The derivative by the one wanted variable against a formula."""
    from gradcli.formulas.ask.formula_check import compare_formula
    from gradcli.transforms.tolerances import RTOL

    if len(call.wanted) != 1:
        several = ", ".join(call.wanted)
        said = f"against is a formula for one derivative, but there are several: by {several}"
        raise LanguageError(said, kind="usage", hint=f'choose one: wrt="{call.wanted[0]}"')
    how: dict[str, Any] = {"order": order, "jacobian": jacobian, "atol": atol, "says": True}
    how["rtol"] = RTOL if rtol is None else rtol
    with np.errstate(all="ignore"):
        return compare_formula(
            call.program, against, _double(call), call.wanted[0], call.loaded, **how
        )


@verb
def graph(source: str, values: Values = None, /, *, wrt: Names = None, **variables: Any) -> Graph:
    """The backward graph of an expression, for `print`, notebooks and every format of `gradcli.inspect`.

    `print(graph("a*x + b", a=2, x=3, b=1))`; `.backpropagate()` adds the gradients, `.to_svg()`,
    `.to_json()` and so on write it. wrt: the variables that require grad. Raises LanguageError.
    """
    from gradcli.graphs import inspect

    call = VerbRequest(source, values, variables, wrt)
    call.leaves()
    found = call.evaluated("graph")
    tensors = {n: t for n, t in {**found.names, **call.tensors}.items() if isinstance(t, Tensor)}
    return inspect(found.value, source=source, names=tensors)


__all__ = ["Check", "check", "diff", "grad", "graph", "hessian", "jacobian", "simplify", "taylor"]
__all__ += ["value_and_grad"]

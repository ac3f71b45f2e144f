"""`gradcli jacobian`, `hessian` and `jvp`: derivatives as matrices, or along a direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.commands import output, request_evaluation
from gradcli.commands.backward_passes import kinks_of
from gradcli.commands.command_errors import usage
from gradcli.commands.compiled_evaluation import large_table
from gradcli.commands.declarations import ANOMALY, ARRAYS, BY_ROWS, VALUE, Option, Options, declare
from gradcli.commands.plots import FORMATS
from gradcli.commands.progress import Bar
from gradcli.commands.request_evaluation import (
    Look,
    cannot_require_grad,
    read_value,
    read_variables,
)
from gradcli.commands.vector_option import (
    no_direction,
    no_variable,
    nothing_to_differentiate_by,
    vector_texts,
)
from gradcli.language.located_errors import OPERATION_ERRORS

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext
    from gradcli.transforms.removable import Remarks

SPARSE = Option("--sparse", "Print only elements that are not zero, each with its indices.")


def _vector(help: str) -> Option:
    return Option("--vector [NAME=]VALUE", help, many=True)


@declare(
    "jacobian",
    *ARRAYS,
    _vector("The Jacobian times this vector, without the matrix."),
    Option(
        "--mode MODE",
        "Compute by columns (forward), by rows (reverse), or by the fewer (auto).",
        choices=("auto", "forward", "reverse"),
        default="auto",
    ),
    *(SPARSE, ANOMALY),
    examples=(
        'gradcli jacobian "sin(x)*sum(x)" --x 1,2,3',
        'gradcli jacobian "tanh(A@x)" --x 1,2 --A "1,2;3,4" --wrt x',
    ),
)
def jacobian(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the Jacobian of EXPR: the derivative of each element by each variable.

    Its shape is the shape of EXPR followed by the shape of the variable.
    """
    from gradcli.transforms import removable, traced_matrices

    _check_sparse(request, options, "--mode forward" * (options.mode == "forward"))
    _raise_on_anomalies(ctx, request, options, 1)
    run = _Run(ctx, request, "Jacobian")
    if options.vector:
        vectors = _vectors(options.vector, run)
        (_, product), remarks = run.again(removable.jvp, vectors)
        run.say(remarks)
        run.write([("jvp", product)], {"jvp": product, "wrt": _each("vector", vectors)})
        return
    if options.sparse:
        found = run.again(traced_matrices.sparse_jacobian, run.wanted)
    else:
        mode = None if options.mode == "auto" else options.mode
        found, remarks = run.again(removable.jacobian, run.wanted, mode)
        filled = run.filled({f"{n}.jacobian": a for n, a in found.by.items()}, remarks, 1)
        found.by.update((n.rpartition(".")[0], a) for n, a in filled.items())
        run.say(remarks)
    _note_slow(found.slow)
    keys = {"wrt": _each("jacobian", found.by), "method": found.method}
    run.write([(f"{n}.jacobian", j) for n, j in found.by.items()], keys)


@declare(
    "hessian",
    *ARRAYS,
    _vector("The Hessian times this vector, without the matrix."),
    *(SPARSE, ANOMALY),
    examples=(
        'gradcli hessian "x[0]**2*x[1]" --x 2,3',
        'gradcli hessian "x@B@x" --x 1,2 --B "1,2;3,4" --wrt x',
    ),
)
def hessian(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the Hessian of EXPR, whose value is a scalar.

    With several variables there is a line for each pair of them: `x.y.hessian` differentiates by x,
    then by y.
    """
    from gradcli.transforms import removable

    _check_sparse(request, options)
    _raise_on_anomalies(ctx, request, options, 2)
    run = _Run(ctx, request, "Hessian", scalar=True)
    if options.vector:
        products, remarks = run.again(removable.hvp, _vectors(options.vector, run))
        run.say(remarks)
        keys = {"wrt": _each("hvp", products), "hvp": products}  # hvp: the name of 0.1.0
        run.write([(f"{n}.hvp", v) for n, v in products.items()], keys)
        return
    found, remarks = run.again(removable.hessian, run.wanted, options.sparse)
    called = {
        (n, m): f"{n}.hessian" if len(found) == 1 else f"{n}.{m}.hessian"
        for n in found
        for m in found
    }
    if not options.sparse:
        filled = run.filled({called[n, m]: found[n].by[m] for n, m in called}, remarks, 2)
        for (n, m), name in called.items():
            found[n].by[m] = filled.get(name, found[n].by[m])
    run.say(remarks)
    _note_slow(name for row in found.values() for name in row.slow)
    blocks = {n: row.by for n, row in found.items()}  # the name of 0.1.0
    results = [
        (f"{n}.hessian" if len(found) == 1 else f"{n}.{m}.hessian", block)
        for n, row in blocks.items()
        for m, block in row.items()
    ]
    run.write(results, {"wrt": _each("hessian", blocks), "blocks": blocks})


@declare(
    "jvp",
    *ARRAYS,
    _vector("The direction, of the variable's shape, or ones."),
    *(VALUE, ANOMALY, BY_ROWS),
    examples=(
        'gradcli jvp "sin(x)" --x 0,1 --vector 1,0',
        'gradcli jvp "x*y" --x 2 --y 3 --vector x=1',
    ),
)
def jvp(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the derivative of EXPR along a direction: its Jacobian times a vector.

    A variable without a vector stays where it is.
    """
    if (table := large_table(request, options.by_rows)) is not None:
        from gradcli.columns.streaming.passes import Threads

        if options.detect_anomaly:
            raise usage("--detect-anomaly does not go with --by-rows", hint="leave out one of them")
        from gradcli.commands.large_columns import jvp_by_rows

        jvp_by_rows(ctx, request, table, Threads(), options.vector, options.value)
        return
    from gradcli.transforms import removable

    _raise_on_anomalies(ctx, request, options, 1)
    run = _Run(ctx, request, "derivative")
    if not options.vector:
        raise no_direction(run.wanted)
    vectors = _vectors(options.vector, run)
    (value, product), remarks = run.again(removable.jvp, vectors)
    run.say(remarks)
    # vector: the name of 0.1.0
    keys = {"jvp": product, "wrt": _each("vector", vectors), "vector": vectors}
    run.write([*[("value", value)] * options.value, ("jvp", product)], keys)


class _Run:
    """A run of the program whose value is to be differentiated.

    wanted: the variables that require grad. tensors: all variables, for the program to run again as it
    ran before. Raises LanguageError where the value has no such derivative.
    """

    def __init__(self, ctx: AnyContext, request: Request, what: str, scalar: bool = False) -> None:
        from gradcli.transforms.traced_matrices import Start

        variables, integers = read_variables(ctx, request)
        self.start, self.order = Start(), 2 if scalar else 1
        with Look() as look:
            self.evaluation = evaluation = request_evaluation.run(request, variables, integers)
        self.look = look
        self.value = evaluation.tensor(what)
        if scalar and self.value.numel() != 1:
            raise evaluation.error_for(
                RuntimeError("the Hessian is that of a scalar"),
                f"the value has shape {tuple(self.value.shape)}: take its sum(), or see gradcli jacobian",
            )
        self.tensors = {n: t.detach() for n, t in evaluation.variables.items()}
        self.wanted = [n for n, t in evaluation.variables.items() if t.requires_grad]
        if not self.wanted:
            for name in evaluation.integers:
                raise cannot_require_grad(request, name, evaluation.variables[name])
            raise nothing_to_differentiate_by()

    def again(self, derivative: Callable[..., Any], by: Any, *how: Any) -> Any:
        """The derivative of this run, for which the program runs once more."""
        request = self.evaluation.request
        self.start.again()
        try:
            with Bar(None, ""):
                return derivative(request.program, self.tensors, by, request.loaded, *how)
        except OPERATION_ERRORS as error:
            raise self.evaluation.error_for(error) from error

    def filled(self, results: dict[str, Any], remarks: Remarks, order: int) -> dict[str, Any]:
        """Results that are not finite, from the formula that `diff` proves."""
        if not (remarks.open or remarks.undecided):
            return {}
        from gradcli.commands.formula_values import fill

        request = self.evaluation.request
        return fill(
            results, remarks, request.program, self.tensors, self.wanted, request.loaded, order
        )

    def say(self, remarks: Remarks) -> None:
        """The remarks on results, each as a note."""
        for line in remarks.lines():
            output.note(line)

    def write(self, results: list[tuple[str, Any]], keys: Mapping[str, Any]) -> None:
        """The results as text or plain lines, or as an object with these keys."""
        request = self.evaluation.request
        precision = request.style.precision
        kinks = kinks_of(self.evaluation, self.look, order=self.order, rows=True)
        if request.style.form == "json":
            found = {"expression": request.source, **output.described(self.value, precision)}
            found |= {n: _to_json(v, precision) for n, v in keys.items()}
            output.write_json(found | (kinks.to_json() if kinks else {}))
        elif request.style.form in FORMATS:
            from gradcli.commands.array_output import draw_matrices

            arrays = {n: a if hasattr(a, "indices") else output.as_array(a) for n, a in results}
            draw_matrices(arrays, request.style)
        else:
            every = [one for name, matrix in results for one in _elements(name, matrix)]
            output.write_results(every, request.style)


def _each(key: str, found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {key: value} for name, value in found.items()}


def _check_sparse(request: Request, options: Options, other: str = "") -> None:
    """Refuse what --sparse does not go with: arrays, which have all elements, vectors, another mode."""
    style = request.style
    if not options.sparse:
        return
    if style.form not in ("text", "plain", "json", *FORMATS):
        option = f"-o {style.path}" if style.path is not None else f"--{style.form}"
        raise usage(f"--sparse does not go with {option}", hint="--plain or --json have the places")
    if options.vector or other:
        other = "--vector" if options.vector else other
        raise usage(f"--sparse does not go with {other}", hint="leave one of them out")


def _raise_on_anomalies(ctx: AnyContext, request: Request, options: Options, order: int) -> None:
    """With --detect-anomaly: stop where a pass of the tape gives what is not finite."""
    if options.detect_anomaly:
        from gradcli.commands.inspected import raise_at_orders

        raise_at_orders(ctx, request, order)


def _vectors(texts: Iterable[str], run: _Run) -> dict[str, Any]:
    """The vectors of --vector, of their variables' shapes and dtypes."""
    evaluation = run.evaluation
    vectors: dict[str, Any] = {}
    for name, text in vector_texts(texts, run.wanted).items():
        if name not in run.wanted:
            if name in evaluation.integers:
                raise cannot_require_grad(evaluation.request, name, evaluation.variables[name])
            raise no_variable(name, run.wanted)
        tensor = run.tensors[name]
        if text.strip() == "ones":
            from gradcli.engine.registry.table import resolve

            vector = resolve("ones_like")(tensor)
        else:
            vector = read_value(text, "--vector").to(tensor.dtype).detach()
        if vector.shape != tensor.shape:
            shapes = f"has shape {tuple(tensor.shape)}, and its vector {tuple(vector.shape)}"
            raise usage(f"--vector: {name} {shapes}", kind="shape")
        vectors[name] = vector
    return vectors


def _elements(name: str, found: Any) -> list[tuple[str, Any]]:
    """The elements of a sparse matrix as results of their own: `x.jacobian[0, 1]`; others as they are."""
    if not hasattr(found, "indices"):
        return [(name, found)]
    if not len(found.values):
        output.note(f"{name}: every element is zero")
    return [
        (f"{name}[{', '.join(map(str, place))}]" if place else name, value)
        for place, value in zip(found.indices.tolist(), found.values, strict=True)
    ]


def _to_json(matrix: Any, precision: int | None) -> Any:
    """Matrices in JSON; of a sparse one its shape, the places of its elements, and they."""
    if isinstance(matrix, dict):
        return {name: _to_json(one, precision) for name, one in matrix.items()}
    if not hasattr(matrix, "indices"):
        return output.to_json(matrix, precision)
    values = output.to_json(matrix.values, precision)
    return {"shape": list(matrix.shape), "indices": matrix.indices.tolist(), "values": values}


def _note_slow(names: Iterable[str]) -> None:
    """Say which operators ran entry by entry, where all could have been done at once."""
    for name in dict.fromkeys(names):
        output.note(f"{name} has no form for many seeds at once: it ran once for each")

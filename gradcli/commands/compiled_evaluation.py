"""The compiled backend: large arrays by a plan (gradcli.columns.compiler) instead of the tape."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli import language
from gradcli.columns.compiler.compiled_function import CompiledProgram
from gradcli.commands import output
from gradcli.commands.question import GRADIENT
from gradcli.commands.request_evaluation import Evaluation, cotangent_array, drawn
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system.garbage import uncollected
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.transforms.tracing.numpy_tracer import Untraceable, trace_numpy

if TYPE_CHECKING:
    from gradcli.commands.question import Question

# What a program does with a graph of its own, which a compiled one has not.
_OF_THE_TAPE = frozenset(
    "retain_grad register_hook register_post_accumulate_grad_hook backward".split()
)


def compiled(question: Question, variables: dict[str, Any], integers: list[str]) -> Evaluation:
    """The evaluation of a compiled program, with the gradients where they are asked for.

    Raises Untraceable where only the tape has the answer.
    """
    request, seed = question.request, question.seed
    if question.of_one_tape:
        raise Untraceable("what is asked for needs the graph")
    if not {"print", "display"}.isdisjoint(request.program.words):
        raise Untraceable("the program prints")
    if not _OF_THE_TAPE.isdisjoint(request.program.words):
        raise Untraceable("the program uses its graph")
    if seed is not None and seed.strip() == "-":
        raise Untraceable("the seed is read from standard input")
    if request.loaded:
        raise Untraceable("functions of --load cannot be planned")
    # Integers are no variables of the recording: what indexes an array is known.
    known = {n: t for n, t in variables.items() if t.array.dtype.kind not in "fc"}
    arrays = {n: t.array for n, t in variables.items() if n not in known}

    def function(**given: Any) -> Any:
        result = language.run(request.program, {**request.loaded, **known, **given})
        if any(
            isinstance(value, Tensor) and value.is_leaf and value.requires_grad
            for name, value in result.names.items()
            if name not in variables
        ):
            raise Untraceable("the program makes variables of its own")
        return result.value

    wrt = frozenset(n for n, t in variables.items() if t.requires_grad)
    start = None if seed is None else partial(cotangent_array, text=seed)
    before, gradients = drawn(), question.asked == GRADIENT
    trace = trace_numpy(function, arrays, wrt=wrt, cotangent=start, backward=gradients, fixed=True)
    made = CompiledProgram(trace, native=request.native)
    if request.native and (calls := made.not_as_c()):
        output.note(f"--native: NumPy runs {', '.join(calls)}")
    try:
        with uncollected():
            value, *grads = made.run(*arrays.values())
    except OPERATION_ERRORS as error:  # the tape says in which part of the program
        raise Untraceable(str(error)) from error
    for name, grad in zip(made.names, grads, strict=True):
        variables[name]._grad = None if grad is None else wrap(grad)
    result = wrap(value)
    result.node = trace.result.node
    found = Evaluation(request, variables, result, dict(variables), integers)
    # Without a graph, backward() has something to say about it.
    found.drawn, found.differentiated = before, gradients and result.node is not None
    found.plan = made.lines() if question.plan else None
    return found

"""`gradcli grad --order N`: the gradient's gradient, and so on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.backward_passes import cotangent_of, kinks_of
from gradcli.commands.command_errors import usage
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import Look, evaluate
from gradcli.language.located_errors import OPERATION_ERRORS

if TYPE_CHECKING:
    from gradcli.commands.kink_notes import Others
    from gradcli.engine.system.process import AnyContext


def note_of_sums(arrays: Sequence[str]) -> None:
    """Say what higher derivatives by variables that are no scalars are."""
    if arrays:
        output.note(
            f"{arrays[0]} is not a scalar: each order is the derivative of the sum of the one before; "
            "gradcli hessian has the matrix of second derivatives"
        )


def write_higher(
    ctx: AnyContext,
    request: Request,
    order: int,
    seed: str | None,
    show_value: bool,
    others: Iterable[str],
    like: Others | None,
    anomalies: bool = False,
) -> None:
    """Differentiate N times by each variable, and print the last gradients.

    From the second time on the gradient is summed up first, so elementwise functions give their
    elementwise derivatives. others: what else was given, of a single backward pass. like: what --like asks.
    anomalies: whether to stop at what is not finite.
    """
    for option in others:
        words = "--order goes with --seed, --value and --detect-anomaly only"
        raise usage(words, hint=f"leave out {option}")
    if anomalies:
        from gradcli.commands.inspected import raise_at_orders

        raise_at_orders(ctx, request, order, seed)
    from gradcli.transforms import removable

    with Look() as look, removable.Watch() as watch:
        evaluation = evaluate(ctx, request)
    value = evaluation.tensor("gradient")
    gradient = cotangent_of(evaluation, seed)
    tensors = {n: t.detach() for n, t in evaluation.variables.items()}
    try:
        found, remarks = removable.nth_gradients(
            request.program, tensors, value, evaluation.leaves, order, gradient, request.loaded,
            watch.critical or watch.bent,
        )  # fmt: skip
    except OPERATION_ERRORS as error:
        raise evaluation.error_for(error) from error
    for line in remarks.lines():
        output.note(line)
    note_of_sums([n for n, t in evaluation.leaves.items() if t.shape])
    kinks = kinks_of(evaluation, look, gradient, like=like, order=order)
    precision = request.style.precision
    if request.style.form == "json":
        grads = {n: output.described(g, precision, "grad") for n, g in found.items()}
        output.write_json(
            {
                "expression": request.source,
                **output.described(value, precision),
                "seed": 1.0 if gradient is None else output.to_json(gradient, precision),
                "order": order,
                "wrt": grads,
                "grads": grads,  # the name of 0.1.0
                **(kinks.to_json() if kinks else {}),
                **(like.to_json() if like else {}),
            }
        )
        return
    results: list[tuple[str | None, Any]] = [("value", value)] if show_value else []
    results += [(f"{n}.grad", g) for n, g in found.items()]
    if like is None:
        output.write_results(results, request.style)
    else:
        like.write(results, found, request.style)

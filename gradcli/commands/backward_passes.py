"""One or more backward passes over an evaluation, with the errors that PyTorch's users know, and remedies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.request_evaluation import (
    Evaluation,
    Look,
    cannot_require_grad,
    read_value,
)
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError

if TYPE_CHECKING:
    from gradcli.commands.kink_notes import Kinks, Others


def cotangent_of(evaluation: Evaluation, text: str | None) -> Any:
    """The cotangent of --seed; None for the implicit one."""
    if text is None:
        return None
    if text.strip() == "ones":
        from gradcli.engine.registry.table import resolve

        return resolve("ones_like")(evaluation.tensor("gradient").detach())
    return _read_seed(evaluation.tensor("gradient"), text)


def cotangent_array(value: Any, text: str) -> Any:
    """The cotangent as an array for the value of a trace; `ones` takes no memory."""
    import numpy as np

    if text.strip() == "ones":
        return np.broadcast_to(value.array.dtype.type(1), value.array.shape)
    return _read_seed(value, text).array


def _read_seed(value: Any, text: str) -> Any:
    able = value.is_floating_point() or value.is_complex()
    return read_value(text, "--seed", value.dtype if able else None).detach()


def backward(
    evaluation: Evaluation,
    seed: Any,
    *,
    passes: int = 1,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> None:
    """Backpropagate `passes` times from the value."""
    value = evaluation.tensor("gradient")
    for number in range(1, passes + 1):
        try:
            value.backward(seed, retain_graph=retain_graph or None, create_graph=create_graph)
        except OPERATION_ERRORS as error:
            raise explained(evaluation, error, number) from error


def explained(evaluation: Evaluation, error: Exception, number: int = 1) -> LanguageError:
    """The error with the place and the remedy. number: of the backward pass that failed, from 1."""
    from gradcli.engine.core import errors
    from gradcli.language.error_remedies import remedy

    if isinstance(error, LanguageError):
        return error
    if isinstance(error, errors.NoGradientError):
        if evaluation.integers:
            name = evaluation.integers[0]
            return cannot_require_grad(evaluation.request, name, evaluation.variables[name])
        found = evaluation.error_for(error, _nothing_requires_grad(evaluation))
        if evaluation.leaves and (cut := evaluation.cut()) is not None:
            found.span, found.hint = cut.span, cut.hint
        return found
    hint = remedy(error, "command")
    if isinstance(error, errors.GraphFreedError) and number > 1:
        hint = f"pass {number} found the graph freed; add --retain-graph to keep it between passes"
    return evaluation.error_for(error, hint)


def _nothing_requires_grad(evaluation: Evaluation) -> str:
    request = evaluation.request
    if not request.names:
        return "the expression has no variables to differentiate with respect to"
    if not evaluation.leaves:
        return f"no variable ({', '.join(request.names)}) requires grad: see --no-grad and --wrt"
    names = ", ".join(evaluation.leaves)
    return f"no variable that requires grad ({names}) reaches the value: detached, or unused?"


def note_not_finite(gradients: Mapping[str, Any], remedy: str = "") -> None:
    """Say once, besides the results, which gradients are not finite; remedy: what finds out why."""
    wrong = [n for n, g in gradients.items() if g is not None and not output.is_finite(g.array)]
    if wrong:
        shown = ", ".join(wrong[:3]) + (", …" if len(wrong) > 3 else "")
        what = "gradient is" if len(wrong) == 1 else "gradients are"
        output.note(f"the {what} not finite ({shown}){remedy}")


def retained(evaluation: Evaluation, names: list[str], every: bool) -> dict[str, Any]:
    """Make the named intermediates keep their gradients; `every` means all that can."""
    leaves = evaluation.leaves
    if every:
        names = [n for n, t in evaluation.names.items() if getattr(t, "grad_fn", None) is not None]
    found: dict[str, Any] = {}
    for name in names:
        if name in leaves:
            continue
        tensor: Any = evaluation.names.get(name, evaluation.variables.get(name))
        if not hasattr(tensor, "retain_grad"):
            raise usage(f"--retain: {name} is not a tensor when the expression ends", kind="name")
        try:
            tensor.retain_grad()
        except OPERATION_ERRORS as error:
            raise evaluation.error_for(error, f"{name} does not depend on a variable") from error
        found[name] = tensor
    return found


MOST_NODES = 2000  # that are looked at, of a graph


def may_lose(value: Any) -> bool:
    """Whether an operator with critical points made a tensor, among the first nodes of its graph.

    Its rules may lose digits of slopes there: 1 - tanh(x)**2 is 0 from x = 19 on, the slope not to x = 370;
    the gradient of det is 0 by rule where the matrix is singular, its cofactors are not.
    """
    first = getattr(value, "grad_fn", None)
    stack, seen = [first] if first is not None else [], set[int]()
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        primitive = getattr(type(node), "_primitive", None)
        if getattr(primitive, "critical", None) is not None:
            return True
        stack += [n for n, _ in node.next_functions if n is not None]
    return False


# -- points without a derivative ----------------------------------------------------------------
def kinks_of(
    evaluation: Evaluation,
    look: Look,
    seed: Any = None,
    *,
    like: Others | None = None,
    hooked: bool = False,
    order: int = 1,
    rows: bool = False,
) -> Kinks | None:
    """What there is to say of points without a derivative; None for nothing, at no cost.

    seed: the cotangent of --seed. like: asks what other systems have. hooked: whether gradients are what a
    hook made of them. order, rows: of higher derivatives, of a Jacobian.
    """
    if look.compiled and not (hooked or look.met):
        look.again(evaluation)
    if hooked or not (like or look.met or evaluation.is_wrong):
        return None
    from gradcli.commands.kink_notes import Kinks

    found = Kinks(evaluation, look, seed, order, rows)
    found.tell()
    if like:
        found.ask(like)
    return found

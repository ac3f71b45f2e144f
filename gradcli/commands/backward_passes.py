"""One or more backward passes over an evaluation, with the errors that PyTorch's users know, and remedies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.request_evaluation import (
    ENGINE_ERRORS,
    Evaluation,
    cannot_require_grad,
    read_value,
)
from gradcli.language.located_errors import LanguageError

NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"


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
        except ENGINE_ERRORS as error:
            raise explained(evaluation, error, number) from error


def explained(evaluation: Evaluation, error: Exception, number: int = 1) -> LanguageError:
    """The error with the place and the remedy."""
    if isinstance(error, LanguageError):
        return error
    words = str(error)
    value = evaluation.value
    if words.startswith("grad can be implicitly created only for scalar"):
        shape = tuple(value.shape)
        return evaluation.error_for(
            error,
            f"the value has shape {shape}: reduce it, as in sum(…) or mean(…), or say with --seed "
            "how much each element counts (--seed ones)",
        )
    if "does not require grad and does not have a grad_fn" in words:
        if evaluation.integers:
            name = evaluation.integers[0]
            return cannot_require_grad(evaluation.request, name, evaluation.variables[name])
        return evaluation.error_for(error, _nothing_requires_grad(evaluation))
    if words.startswith("Trying to backward through the graph a second time"):
        if number > 1:
            hint = (
                f"pass {number} found the graph freed; add --retain-graph to keep it between passes"
            )
        else:
            hint = "the expression has freed the graph; write backward(retain_graph=True) in it"
        return evaluation.error_for(error, hint)
    if words.startswith("grad can be implicitly created only for real scalar"):
        return evaluation.error_for(
            error, "take a real number of it, as in (…).real, or say --seed 1"
        )
    if re.match(r"Mismatch in shape", words):
        return evaluation.error_for(
            error,
            f"--seed must have the value's shape, {tuple(value.shape)}; `--seed ones` always fits",
        )
    return evaluation.error_for(error)


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
        except ENGINE_ERRORS as error:
            raise evaluation.error_for(error, f"{name} does not depend on a variable") from error
        found[name] = tensor
    return found

"""`--hook 'NAME: EXPR of grad'`: an expression of the language as a hook on a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.commands.command_errors import usage
from gradcli.commands.request import name_list, where_read
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.language.scope_checks import assigned_names

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.commands.request_evaluation import Evaluation
    from gradcli.language.program import Program


def split_hooks(request: Request, texts: tuple[str, ...]) -> list[tuple[str, Program]]:
    """(name, parsed expression) of every --hook."""
    from gradcli.language import parse
    from gradcli.language.located_errors import did_you_mean, suggest

    known = [*assigned_names(request.program), *request.names]
    found = []
    for text in texts:
        name, colon, source = text.partition(":")
        if not colon or not name.strip().isidentifier():
            raise usage(
                f"--hook wants 'NAME: EXPR of grad', not {text!r}", hint="as in --hook 'x: 2*grad'"
            )
        what = "a name of the expression"
        (one,) = name_list(name, "--hook", known, what=what) or [name]
        program = parse(source.strip())
        for free in program.free_variables():
            if free != "grad" and free not in known:
                raise usage(
                    f"--hook: {free} has no value in it",
                    source=program.source,
                    span=where_read(program, free),
                    hint=did_you_mean(suggest(free, ["grad", *known]))
                    or f"it may use grad and {', '.join(known)}",
                    kind="name",
                )
        found.append((one, program))
    return found


def register_hooks(evaluation: Evaluation, hooks: list[tuple[str, Program]]) -> None:
    """Register every hook on the tensor that its name has at the end of the program."""
    for name, program in hooks:
        tensor: Any = evaluation.names.get(name, evaluation.variables.get(name))
        if not hasattr(tensor, "register_hook"):
            raise usage(f"--hook: {name} is not a tensor when the expression ends", kind="name")
        try:
            tensor.register_hook(_hook(evaluation, program))
        except OPERATION_ERRORS as error:
            raise evaluation.error_for(error, f"{name} does not depend on a variable") from error


def _hook(evaluation: Evaluation, program: Program) -> Callable[[Any], Any]:
    from gradcli import language

    def hook(grad: Any) -> Any:
        names = {**evaluation.variables, **evaluation.names, "grad": grad}
        value = language.run(program, names).value
        if isinstance(value, int | float | complex):  # `--hook 'x: 0'`
            from gradcli.engine.registry.table import resolve

            return resolve("full_like")(grad, value)
        return value

    return hook

"""Runs printed programs: the assignments and the value of the function that `to_code` writes.

Nothing else of the text is run, and its names reach only what is passed in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.engine.system.generated_builtins import NO_BUILTINS

_BUILTINS: dict[str, Any] = {
    **{"abs": abs, "max": max, "min": min, "float": float, "int": int, "slice": slice},
    **{"bool": bool, "round": round},
    **NO_BUILTINS,
}


def run_code(code: str, values: Sequence[Any], modules: Mapping[str, Any]) -> Any:
    """Call the last function of a printed program with these arguments.

    modules: other names that it may use: `np`, `math`, and the functions printed before it.
    """
    functions = [s for s in ast.parse(code).body if isinstance(s, ast.FunctionDef)]
    names = zip((a.arg for a in functions[-1].args.args), values, strict=True)
    space = {"__builtins__": _BUILTINS, **modules, **dict(names)}
    for statement in functions[-1].body:
        if isinstance(statement, ast.Assign):
            exec(compile(ast.Module([statement], []), "<printed>", "exec"), space)
        elif isinstance(statement, ast.Return):
            assert statement.value is not None
            return eval(compile(ast.Expression(statement.value), "<printed>", "eval"), space)
    return None


def of_arrays(word: str) -> Callable[..., Any]:
    """A function of the language, for numbers and NumPy's arrays."""
    from gradcli.engine.registry.table import resolve

    row = resolve(word)
    return lambda *args: row(*map(resolve("tensor"), args)).array


__all__ = ["of_arrays", "run_code"]

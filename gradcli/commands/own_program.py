"""`graph --torch FILE.py[:NAME]` where PyTorch is not installed: the program runs on gradcli instead."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradcli.commands.command_errors import usage
from gradcli.commands.output import note
from gradcli.engine.registry import torch_namespaces
from gradcli.language.located_errors import LanguageError, did_you_mean, suggest

if TYPE_CHECKING:
    from gradcli.graphs.inspection import Graph

_WATCHED = ("diagnose", "norms", "detect_anomaly", "time", "steps", "at", "places")


def has_torch() -> bool:
    """Whether PyTorch can be imported."""
    try:
        import_module("torch")
    except ImportError:
        return False
    return True


def graph_of(
    path: str, wanted: str | None, arguments: list[str], options: Any, gradients: bool
) -> tuple[Graph, int]:
    """Run FILE.py with gradcli as its `torch`: the graph of NAME, or of what it ran backward last, and the
    program's exit code.

    gradients: whether they are shown. Raises LanguageError for what is only watched in PyTorch itself, and
    where there is no graph.
    """
    asked = [name for name in _WATCHED if getattr(options, name) not in (None, False)]
    if asked:
        option = {"places": "--lines"}.get(asked[0], f"--{asked[0].replace('_', '-')}")
        raise usage(f"{option} watches PyTorch, which is not installed", hint="pip install torch")
    from gradcli.commands.own_program_watch import Watch
    from gradcli.commands.torch_program import as_main, read_program, run_program

    full, source = read_program(path)
    note("PyTorch is not installed: the program runs on gradcli, which speaks its language")
    watch, torch = Watch(gradients), sys.modules.get("torch")
    sys.modules["torch"] = torch_namespaces.torch
    try:
        with as_main(full, arguments) as module:
            ended, code = run_program(source, full, path, module, watch)
    finally:
        del sys.modules["torch"]
        if torch is not None:
            sys.modules["torch"] = torch
    names = {n: v for n, v in module.__dict__.items() if not n.startswith("__")}
    graph = watch.graph(_tensors(names, wanted, watch.last, path), names)
    graph.error = ended
    if gradients and graph.recorder is None:
        graph.backpropagate()
    return graph, code


def _tensors(names: dict[str, Any], wanted: str | None, last: Any, path: str) -> tuple[Any, ...]:
    from gradcli.engine.core.tensor import Tensor

    made = {n: v for n, v in names.items() if isinstance(v, Tensor) and v.grad_fn is not None}
    if wanted is None:
        found = last if last is not None else made.get("loss", next(reversed(made.values()), None))
        if found is None:
            raise LanguageError(
                f"{path} made no tensor with a graph", kind="runtime",
                hint="name the tensor: --torch FILE.py:NAME", usage=False,
            )  # fmt: skip
        return (found,)
    chosen = []
    for name in wanted.split(","):
        if (name := name.strip()) not in made:
            hint = did_you_mean(suggest(name, list(made)))
            hint = hint or f"tensors with a graph: {', '.join(made) or 'none'}"
            raise usage(
                f"--torch: {path} has no tensor {name!r} with a graph", kind="name", hint=hint
            )
        chosen.append(made[name])
    return tuple(chosen)

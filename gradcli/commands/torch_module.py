"""`--torch FILE.py:CLASS --shape x=5,3`: a module without a program is called once, on random inputs."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from gradcli.commands.command_errors import usage
from gradcli.commands.output import note

_NEXT = re.compile(r",(?=\s*\w+\s*=)")
_SIZES = re.compile(r"\s*\d+(\s*,\s*\d+)*\s*|")


def read_pairs(texts: list[str], option: str) -> dict[str, str]:
    """NAME=VALUE of options that may be given several times, or with commas between."""
    found = {}
    for text in texts:
        for part in _NEXT.split(text):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not name.isidentifier():
                raise usage(f"{option} wants NAME=…, not {part!r}", hint=f"as in {option} x=5,3")
            found[name] = value
    return found


def is_module(value: Any) -> bool:
    """Tell whether it is a module of PyTorch's, or a class of them."""
    module: Any = sys.modules["torch"].nn.Module
    return isinstance(value, module) or (isinstance(value, type) and issubclass(value, module))


def call_module(
    name: str, value: Any, shapes: dict[str, str], dtypes: dict[str, str]
) -> tuple[Any, dict[str, Any]]:
    """The outputs of a module on inputs of these shapes: floats normal, whole numbers 0 or 1; the inputs."""
    torch: Any = sys.modules["torch"]
    torch.manual_seed(0)
    model = _built(name, value) if isinstance(value, type) else value
    wanted = [
        p.name
        for p in inspect.signature(model.forward).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    lacking = [one for one in wanted if one not in shapes]
    if lacking:
        hint = "say " + " ".join(f"--shape {one}=5,3" for one in lacking)
        raise usage(
            f"--torch: {name} is called with {', '.join(wanted)}: of what shape?", hint=hint
        )
    inputs = {key: _input(key, text, dtypes.get(key)) for key, text in shapes.items()}
    for key in dtypes.keys() - shapes.keys():
        raise usage(f"--dtype {key}=…: {key} has no --shape", hint=f"say --shape {key}=5,3 too")
    told = ", ".join(f"{key} {tuple(one.shape)}" for key, one in inputs.items())
    note(f"{name} is called once on random numbers ({told})")
    return model(**inputs), inputs


def _built(name: str, kind: Any) -> Any:
    lacking = [
        p.name
        for p in inspect.signature(kind).parameters.values()
        if p.default is p.empty
        and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if lacking:
        raise usage(
            f"--torch: {name} is made with {', '.join(lacking)}, which have no defaults",
            hint=f"make one in the file, net = {name}(…), and say --torch FILE.py:net",
        )
    return kind()


def _input(name: str, sizes: str, dtype: str | None) -> Any:
    torch: Any = sys.modules["torch"]
    if not _SIZES.fullmatch(sizes):
        raise usage(f"--shape: {name}={sizes} is no shape", hint=f"as in --shape {name}=5,3")
    shape = tuple(int(n) for n in sizes.split(",") if n.strip())
    kind = torch.get_default_dtype() if dtype is None else getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise usage(f"--dtype: torch has no dtype {dtype!r}", hint=f"as in --dtype {name}=int64")
    if kind.is_floating_point or kind.is_complex:
        return torch.randn(shape, dtype=kind)
    return torch.randint(0, 2, shape).to(kind)


def tensors_with_graphs(found: Any) -> list[Any]:
    """The tensors with a graph in what a module returned: a tensor, or lists and dictionaries of them."""
    torch: Any = sys.modules["torch"]
    if isinstance(found, torch.Tensor):
        return [found] if found.requires_grad else []
    values = found.values() if isinstance(found, dict) else found
    return [t for one in values for t in tensors_with_graphs(one)] if _is_many(found) else []


def _is_many(found: Any) -> bool:
    return isinstance(found, dict | list | tuple)

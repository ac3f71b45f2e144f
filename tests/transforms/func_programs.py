"""Calls of `torch.func` on small tensors: what they give, or how they are refused, is PyTorch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def read(name: str) -> dict[str, str]:
    """Lines of a name, a tab and a program."""
    lines = (HERE / name).read_text().splitlines()
    return dict(line.split("\t") for line in lines)


PROGRAMS = read("func_values.tsv")
# On their own data, where what matters is what is taken and what is refused.
CALLS = read("func_calls.tsv")


def space(torch: Any, func: Any) -> dict[str, Any]:
    """What the programs' names stand for."""
    rows = [[0.3, -1.2, 0.5], [1.5, 0.25, -0.75], [-0.4, 0.6, 2.0], [0.1, 1.1, -1.3]]
    square = [[1.0, 0.5, -0.3], [0.2, 1.5, 0.4], [-0.6, 0.1, 0.9]]
    return {
        "torch": torch,
        "func": func,
        "X": torch.tensor(rows),
        "x": torch.tensor([0.7, -0.2, 1.3]),
        "xr": torch.tensor([0.7, -0.2, 1.3], requires_grad=True),
        "w": torch.tensor([-0.5, 0.8, 0.4]),
        "A": torch.tensor(square),
    }


def call_space(torch: Any, func: Any) -> dict[str, Any]:
    """What the calls' names stand for."""
    return {
        "torch": torch,
        "func": func,
        "X": torch.arange(6.0).reshape(3, 2),
        "x": torch.tensor([1.0, 2.0]),
    }


def answer(source: str, names: dict[str, Any]) -> Any:
    """What a program gives, as plain values; the words where it is refused."""
    try:
        return plain(eval(source, dict(names)))
    except Exception as error:
        return {"error": type(error).__name__, "words": str(error)}


def plain(value: Any) -> Any:
    """Tensors as nested lists."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value

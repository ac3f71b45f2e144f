"""Record the graphs that PyTorch builds: `python record_torch.py` where torch is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch_expressions import CONSTANTS, EXPRESSIONS, VARIABLES

PATH = Path(__file__).parent.parent / "golden" / "torch_graphs.json"


def record(expression: str) -> list[Any]:
    """The nodes depth first: name, next_functions by number, saved fields, shapes of the outputs."""
    names: dict[str, Any] = {**vars(torch), "torch": torch}
    names["xlogy"] = torch.special.xlogy
    names["softplus"] = torch.nn.functional.softplus
    tensors = {
        name: torch.tensor(value, dtype=torch.float64, requires_grad=name not in CONSTANTS)
        for name, value in VARIABLES.items()
    }
    result = eval(expression, names | tensors)
    ids: dict[Any, int] = {}
    order: list[Any] = []
    stack = [result.grad_fn]
    while stack:
        node = stack.pop()
        if node not in ids:
            ids[node] = len(order)
            order.append(node)
            stack += [child for child, _ in reversed(node.next_functions) if child is not None]
    by_variable = {id(tensor): name for name, tensor in tensors.items()}
    return [
        {
            "name": node.name().rpartition("::")[2],
            "next": [None if c is None else [ids[c], nr] for c, nr in node.next_functions],
            "saved": sorted(name[7:] for name in dir(node) if name.startswith("_saved_")),
            "outputs": [
                [list(meta.shape), str(meta.dtype).rpartition(".")[2]]
                for meta in node._input_metadata
            ],
            "variable": by_variable.get(id(getattr(node, "variable", None))),
        }
        for node in order
    ]


if __name__ == "__main__":
    graphs = {expression: record(expression) for expression in EXPRESSIONS}
    lines = (f"{json.dumps(e)}: {json.dumps(found)}" for e, found in graphs.items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

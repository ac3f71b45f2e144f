"""The inspected graph against the one that PyTorch builds, node for node (torch_graphs.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from torch_expressions import CONSTANTS, EXPRESSIONS, VARIABLES

from gradcli.engine.core.tensor import wrap
from gradcli.graphs import inspect
from gradcli.language import parse, run
from tests.sweep import sweep

RECORDED: dict[str, list[Any]] = json.loads(
    (Path(__file__).parent.parent / "golden" / "torch_graphs.json").read_text(encoding="utf-8")
)


def tensors() -> dict[str, Any]:
    found = {}
    for name, value in VARIABLES.items():
        tensor = wrap(np.asarray(value, dtype=np.float64)[()])
        tensor.label = name
        if name not in CONSTANTS:
            tensor.requires_grad_()
        found[name] = tensor
    return found


@sweep("expression", EXPRESSIONS)
def test_the_same_graph(expression: str) -> None:
    result = run(parse(expression), tensors()).value
    found = [
        {
            "name": node["name"],
            "next": [edge and [edge["node"], edge["output"]] for edge in node["next"]],
            "saved": sorted(node["saved"]),
            "outputs": [[o["shape"], o["dtype"]] for o in node["outputs"]]
            if "outputs" in node
            else [[node["shape"], node["dtype"]]],
            "variable": node["variable"],
        }
        for node in inspect(result, source=expression).to_json()["nodes"]
    ]
    assert found == RECORDED[expression]


def test_every_expression_is_recorded() -> None:
    assert list(RECORDED) == EXPRESSIONS

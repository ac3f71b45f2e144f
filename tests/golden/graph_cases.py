"""How one call is observed: its value, its gradients, its graph and what the graph saved.

`graph_calls.txt` holds the calls, texts in torch's spelling, evaluated with the inputs below bound
by name; the inputs that a call names are the ones that may require grad. `record_graphs.py` asks
torch, `operators/test_against_torch.py` gradcli.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CALLS = Path(__file__).parent / "graph_calls.txt"

INPUTS: dict[str, tuple[Any, str]] = {
    # name: (value, dtype)
    "x": ([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]], "float64"),
    "y": ([[2.0, 0.5, -1.5], [-0.75, 3.0, 1.25]], "float64"),
    "p": ([[0.5, 1.25, 2.0], [1.5, 0.75, 3.5]], "float64"),  # positive
    "q": ([[2.0, 0.5, 1.5], [0.25, 3.0, 1.0]], "float64"),  # positive
    "u": ([[0.5, -0.25, 0.125], [-0.75, 0.0, 0.875]], "float64"),  # within (-1, 1)
    "h": ([[1.0, 3.0, 3.0], [2.0, -1.0, 2.0]], "float64"),  # ties
    "g": ([[1.0, 2.0, 3.0], [2.0, 0.0, -2.0]], "float64"),  # ties with h in places
    "z": ([[0.0, -2.0, 3.0], [1.0, 0.0, 0.0]], "float64"),  # zeros
    "v": ([1.0, -2.0, 3.0], "float64"),
    "w": ([0.5, 2.0, -1.5], "float64"),
    "c": ([[1.5], [-0.5], [2.0]], "float64"),
    "d": ([1.0, 2.0, -3.0, 0.5], "float64"),
    "s": (2.0, "float64"),
    "r": (-0.75, "float64"),
    "k": ([1.5], "float64"),
    "e": ([], "float64"),
    "n": ([float("nan"), 1.0, float("inf"), -2.0], "float64"),
    "o": ([0.5, float("nan"), -1.0, 3.0], "float64"),
    "b": (
        [[[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], [[2.0, 1.5, -0.5], [-1.0, 0.75, 2.5]]],
        "float64",
    ),
    "a": ([[2.0, -1.0], [0.5, 1.5]], "float64"),  # invertible
    "f": ([[0.25, 1.0], [-2.0, 0.5]], "float64"),
    "l": ([[[1.5, -2.0, 0.5]], [[0.25, 3.0, -1.0]]], "float64"),  # (2, 1, 3)
    "x32": ([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]], "float32"),
    "v32": ([1.0, -2.0, 3.0], "float32"),
    "s32": (2.0, "float32"),
    "x16": ([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]], "float16"),
    "xc": ([[1 + 2j, -0.5j, 2.0], [1.5, 0.75 - 1j, -0.625]], "complex128"),
    "yc": ([[0.5 - 1j, 2.0, 1j], [1 + 1j, -1.0, 0.25 + 0.5j]], "complex128"),
    "i": ([[1, -2, 3], [0, 5, 7]], "int64"),
    "j": ([0, 2, 1], "int64"),
    "m": ([[True, False, True], [False, True, True]], "bool"),
}


def calls() -> Iterator[tuple[str, str]]:
    """Every call with its family."""
    family = ""
    for line in CALLS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            family = line.removeprefix("## ")
        elif line and not line.startswith("#"):
            yield family, line


def names_in(call: str) -> list[str]:
    """The inputs that a call names, in the order of first appearance."""
    found = [n.id for n in ast.walk(ast.parse(call, mode="eval")) if isinstance(n, ast.Name)]
    return [name for name in dict.fromkeys(found) if name in INPUTS]


def seed_for(torch: Any, result: Any) -> Any:
    """A cotangent that is not ones: 0.5, -0.75, 1.0, -1.25, … in the result's shape and dtype."""
    count = result.numel()
    values = [(0.5 + 0.25 * k) * (-1) ** k for k in range(count)]
    return torch.tensor(values, dtype=result.dtype).reshape(tuple(result.shape))


def observe(call: str, torch: Any) -> dict[str, Any]:
    """What a call gives: its value, and for each choice of leaves its graph and gradients."""
    names = names_in(call)
    floats = [n for n in names if INPUTS[n][1].startswith(("float", "complex"))]
    choices = [floats] + ([[n] for n in floats] if len(floats) > 1 else [])
    out: dict[str, Any] = {"call": call}
    try:
        out["value"] = plain(evaluate(call, torch, [])[0])
    except Exception as err:
        return out | {"error": f"{type(err).__name__}: {str(err).splitlines()[0]}"}
    out["graphs"] = [observe_graph(call, torch, choice) for choice in choices if choice]
    return out


def evaluate(call: str, torch: Any, requires: list[str]) -> tuple[Any, dict[str, Any]]:
    """A call's result, and the inputs that it was given."""
    inputs = {}
    for name in names_in(call):
        value, dtype = INPUTS[name]
        inputs[name] = torch.tensor(value, dtype=getattr(torch, dtype))
        if name in requires:
            inputs[name].requires_grad_()
    return eval(call, {"torch": torch} | inputs), inputs


def observe_graph(call: str, torch: Any, requires: list[str]) -> dict[str, Any]:
    """The graph, the gradients and the second gradients of a call, for one choice of leaves."""
    out: dict[str, Any] = {"requires": requires}
    result, inputs = evaluate(call, torch, requires)
    if result.grad_fn is None:
        leaf = next((n for n in inputs if inputs[n] is result), None)
        return out | {"node": None, "requires_grad": result.requires_grad, "is": leaf}
    out["node"] = describe(result.grad_fn, inputs, torch)
    out["output_nr"] = result.output_nr
    leaves = [inputs[n] for n in requires]
    try:
        seed = seed_for(torch, result)
        grads = torch.autograd.grad(result, leaves, seed, allow_unused=True, retain_graph=True)
        out["grads"] = [None if g is None else plain(g) for g in grads]
        if all(t.dtype == torch.float64 for t in [result, *leaves]):
            out["second"] = second(result, leaves, seed, torch)
    except Exception as err:
        out["error"] = f"{type(err).__name__}: {str(err).splitlines()[0]}"
    return out


def second(result: Any, leaves: list[Any], seed: Any, torch: Any) -> list[Any] | None:
    """Gradients of a fixed linear form of the gradients, where those depend on the leaves."""
    grads = torch.autograd.grad(result, leaves, seed, allow_unused=True, create_graph=True)
    forms = [(g * seed_for(torch, g)).sum() for g in grads if g is not None and g.requires_grad]
    if not forms:
        return None
    total = forms[0]
    for form in forms[1:]:
        total = total + form
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return [None if g is None else plain(g) for g in found]


def describe(node: Any, inputs: dict[str, Any], torch: Any) -> Any:
    """A node, what it saved and its whole tree of next functions."""
    if node is None:
        return None
    if type(node).__name__ == "AccumulateGrad":
        return next((n for n in inputs if inputs[n] is node.variable), "?")
    fields = [f for f in dir(node) if f.startswith("_saved_")]
    return {
        "name": node.name(),
        "saved": {f.removeprefix("_saved_"): field(node, f, inputs, torch) for f in fields},
        "next": [[describe(n, inputs, torch), k] for n, k in node.next_functions],
    }


def field(node: Any, name: str, inputs: dict[str, Any], torch: Any) -> Any:
    """One saved field of a node; a function that writes in place may have spoilt its own."""
    try:
        return saved(getattr(node, name), inputs, torch)
    except RuntimeError as err:
        return {"error": str(err).split(":")[0]}


def saved(value: Any, inputs: dict[str, Any], torch: Any) -> Any:
    """A saved field: an input by its name, another tensor by value and node, the rest as it is."""
    if isinstance(value, torch.Tensor):
        name = next((n for n in inputs if inputs[n] is value), None)
        if name is not None:
            return {"is": name}
        return plain(value) | {"grad_fn": value.grad_fn.name() if value.grad_fn else None}
    if isinstance(value, tuple | list):
        return [saved(v, inputs, torch) for v in value]
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    return value


def plain(tensor: Any) -> dict[str, Any]:
    """A tensor as numbers, shape and dtype."""
    flat = tensor.detach().clone().reshape(-1).tolist()
    if tensor.is_complex():
        flat = [[v.real, v.imag] for v in flat]
    return {"values": flat, "shape": list(tensor.shape), "dtype": str(tensor.dtype)[6:]}

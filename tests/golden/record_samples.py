"""Record what torch answers for every sample of the operator table: `python record_samples.py`.

Needs torch and gradcli. Writes samples.json: for each sample the values, the gradients for a fixed
cotangent, and the backward graph as nested names; or the error.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from sampling import cotangent, take_apart, tensors  # noqa: E402


def graph(node: Any, depth: int = 0) -> Any:
    """The backward graph as [name, input graphs]; names without their namespaces."""
    if node is None:
        return None
    if depth > 40:
        return "..."
    name = node.name().rsplit("::", 1)[-1]
    return [name, *(graph(n, depth + 1) for n, _ in node.next_functions)]


def numbers(tensor: Any) -> Any:
    """Shape, dtype and elements of a tensor, ready for JSON."""
    array = np.asarray(tensor.detach().resolve_conj().resolve_neg().numpy(force=True))
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], -1).reshape(-1)
    return {"shape": list(array.shape), "dtype": str(array.dtype), "data": flat.tolist()}


def answer(text: str, module: Any) -> dict[str, Any]:
    """What a module answers to a sample, on float64 leaves that all require grad."""
    module.set_default_dtype(module.float64)
    try:
        sample = take_apart(text, module)
        leaves = [leaf.requires_grad_() for leaf in sample.leaves]
        module.manual_seed(7)
        outputs = tensors(sample.function(*leaves), module.Tensor)
        found: dict[str, Any] = {"values": [numbers(o) for o in outputs]}
        tracked = [o for o in outputs if o.requires_grad]
        if tracked:
            found["graphs"] = [graph(o.grad_fn) for o in tracked]
            module.autograd.backward(
                tracked, [cotangent(module, o.shape, o.dtype) for o in tracked]
            )
            found["grads"] = [None if x.grad is None else numbers(x.grad) for x in leaves]
        return found
    finally:
        module.set_default_dtype(module.float32)


def texts() -> list[str]:
    """All samples of the table."""
    from gradcli.engine.registry import table

    table.load()
    own = [s for row in table.PRIMITIVES for s in row.samples]
    return sorted({s for f in table.FUNCTIONS.values() for s in f.samples} | set(own))


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    answers = {}
    for text in texts():
        try:
            answers[text] = answer(text, torch)
        except Exception as error:
            answers[text] = {"error": f"{type(error).__name__}: {error}"}
            print("torch refuses", text, "->", str(error)[:100], file=sys.stderr)
    lines = [f"{json.dumps(t)}: {json.dumps(a)}" for t, a in answers.items()]
    (HERE / "samples.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(answers), "samples recorded")


if __name__ == "__main__":
    main()

"""Record distributions.json: `python -m tests.golden.record_distributions` (needs torch).

Each expression of CASES, with PyTorch's value, the gradients of its sum by `a` and `b`, and its refusals.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("distributions.json")
_MADE = {
    "Normal(a, b)": "a",
    "Normal(0.5, b)": "b",
    "Normal(a, 2.0)": "torch.tensor(0.25)",
    "Uniform(-a.abs(), b)": "b / 2",
    "Uniform(-1.0, 2)": "a.clamp(-1, 1)",
    "Bernoulli(a.sigmoid())": "(b > 1).double()",
    "Bernoulli(logits=a)": "(b > 1).double()",
    "Categorical(b)": "torch.tensor(1)",
    "Categorical(logits=a)": "torch.tensor([2, 0])",
    "Categorical(logits=a.reshape(2, 2))": "torch.tensor([[0, 1], [1, 1], [0, 0]])",
}
_ASKED = (
    *("sample()", "sample((2, 3))", "entropy()", "log_prob({value})", "mean", "variance", "stddev"),
    *("batch_shape", "event_shape", "has_rsample", "__repr__()"),
)
CASES = [
    *[f"{made}.{one.format(value=value)}" for made, value in _MADE.items() for one in _ASKED
      if not (made.startswith("Categorical") and one in ("mean", "variance", "stddev"))],
    *[f"{made}.rsample({shape})" for made in list(_MADE)[:5] for shape in ("", "(3,)")],
    *[f"{made}.{one}" for made in list(_MADE)[5:] for one in ("probs", "logits")],
    *("kl_divergence(Normal(a, b), Normal(0.0, 1.0))", "kl_divergence(Normal(a, b), Normal(b, a.exp()))"),
    *("Normal(a, -b)", "Normal(a / 0, b)", "Normal(a, b).log_prob(a / 0)", "Normal(a, b).log_prob(1)"),
    "Uniform(b, a)",
    *("Uniform(a, a + 1).log_prob(a + 2)", "Bernoulli(b)", "Bernoulli()", "Bernoulli(logits=a).log_prob(b)"),
    *("Categorical(a)", "Categorical(torch.tensor(0.5))", "Categorical(b).log_prob(torch.tensor(4))"),
    "Normal(a, -b, validate_args=False).log_prob(a)",
]  # fmt: skip


def answer(text: str, torch: Any, distributions: Any) -> Any:
    """What a library answers: the value with its gradients, something else as text, or the refusal."""
    a = torch.tensor([0.5, -1.25, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([1.5, 0.75, 2.0, 1.0], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    try:
        value = eval(text, vars(distributions) | {"torch": torch, "a": a, "b": b})
        if not isinstance(value, torch.Tensor):
            return str(value)
        if value.requires_grad:
            value.sum().backward()
        return [None if one is None else one.tolist() for one in (value, a.grad, b.grad)]
    except (ValueError, NotImplementedError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def main() -> None:
    """Ask PyTorch."""
    import torch
    from torch import distributions

    found = {text: answer(text, torch, distributions) for text in CASES}
    lines = [f"{json.dumps(text)}: {json.dumps(said)}" for text, said in found.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()

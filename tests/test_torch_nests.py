"""Random nests of `func`'s transforms over what they close over give what they gave in torch."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

import gradcli
from tests.fuzz import nests
from tests.golden import by_version
from tests.sweep import sweep

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "golden" / "nests.json").read_text(encoding="utf-8")
)

# Where gradcli differs: the programs' numbers, and why.
KNOWN_DIFFERENCES: dict[int, str] = {59: "a write that torch takes for one of what is saved"}


@sweep("number", [n for n in range(len(RECORDED)) if n not in KNOWN_DIFFERENCES], name=str, often=1)
def test_a_nest_gives_what_it_gave_in_torch(number: int) -> None:
    source = RECORDED[number]["source"]
    theirs = nests.Seen.of(RECORDED[number]["seen"])
    forward = bool(nests.FORWARD.search(source))
    failure = nests.difference(nests.look(source, gradcli), theirs, forward)
    assert failure is None, f"{failure}\n{source}"


def test_nests_reach_every_transform_four_deep() -> None:
    text = "\n".join(one["source"] for one in RECORDED)
    for name in ("grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "vmap"):
        assert f"func.{name}(" in text
    assert all(f"{name}.apply(" in text for name in nests.FUNCTIONS)
    assert all(f"torch.{name}()" in text for name in nests.MODES)
    assert any("                def " in one["source"] for one in RECORDED)


@pytest.mark.long
@pytest.mark.needs("torch")
def test_torch_still_gives_it() -> None:
    torch = importlib.import_module("torch")
    seen = {one["source"]: nests.Seen.of(one["seen"]) for one in RECORDED}
    again = ((source, nests.look(source, torch)) for source in seen)
    changed = [source for source, found in again if nests.difference(found, seen[source])]
    by_version.settle("nests.json", changed)


class _Planted:
    """gradcli whose `func.grad` is twice the gradient."""

    class func:
        jvp = staticmethod(gradcli.func.jvp)

        @staticmethod
        def grad(function: Any) -> Any:
            return lambda x: 2 * gradcli.func.grad(function)(x)

    def __getattr__(self, name: str) -> Any:
        return getattr(gradcli, name)


@pytest.mark.long
@pytest.mark.needs("torch")
def test_a_planted_fault_is_found_and_shrunk() -> None:
    torch = importlib.import_module("torch")
    source = nests.program_of(
        "def f1(x2):\n    r3 = x2.sin()\n    return (r3*d).sum()\n"
        "r4, r5 = func.jvp(f1, (c,), (c,))\nr6 = func.grad(f1)(c)"
    )
    assert nests.attempt(source, torch, gradcli) is None
    failure = nests.attempt(source, torch, _Planted())
    assert failure is not None and failure.kind == "values"
    small, _ = nests.shrunk(source, failure, torch, _Planted())
    assert "func.grad" in small and "jvp" not in small and "sin" not in small

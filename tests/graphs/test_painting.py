"""Drawings on a terminal: written without rich, as rich would write them."""

from __future__ import annotations

import io
from typing import Any

import pytest

from gradcli.commands import output
from gradcli.graphs import inspect, tracing
from gradcli.graphs.gradient_norms import NormsTable
from gradcli.graphs.styles import ANSI, STYLES

import gradcli  # isort: skip


def drawings() -> dict[str, Any]:
    """One of each kind."""
    x, w = (gradcli.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    graph = inspect((x * w).tanh().sum(), names={"x": x, "w": w}, source="sum(tanh(x*w))")
    with tracing("sum(x*w)") as trace:
        (x * w).sum().backward()
    graph.backpropagate()
    tree = graph.tree(saved=True, grads=True, legend=True)
    return {"tree": tree, "trace": trace, "norms": NormsTable(graph.norms())}


@pytest.mark.parametrize("width", [30, 60, 120])
@pytest.mark.parametrize("kind", ["tree", "trace", "norms"])
def test_it_is_what_rich_writes(kind: str, width: int) -> None:
    from rich.console import Console

    drawing = drawings()[kind]
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=True, color_system="standard", width=width, height=24,
        highlight=False, markup=False, emoji=False, soft_wrap=True, _environ={},
    )  # fmt: skip
    console.print(drawing)
    lines = drawing.fitted(width, ascii=False, coloured=True)
    assert "".join(output._painted(lines)) == stream.getvalue()


def test_every_role_is_painted_as_its_style_says() -> None:
    from rich.color import ColorSystem
    from rich.style import Style

    for role, style in STYLES.items():
        painted = Style.parse(style).render("x", color_system=ColorSystem.STANDARD)
        code = ANSI.get(role)
        assert painted == (f"{code}x\x1b[0m" if code else "x")

"""Random small programs on tensors, views and in-place writes, and everything observable about them.

`record_programs.py` writes programs.json: each program's statements and what torch showed of it.
`test_random_programs.py` runs the same statements with gradcli.
"""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from typing import Any

SHAPES: list[tuple[int, ...]] = [(), (1,), (3,), (2, 3), (3, 1)]
UNARY = ["exp", "sin", "sigmoid", "neg", "abs", "relu", "tanh", "square", "clone", "cos"]
VIEWS = [
    *("[0]", "[1:]", "[:1]", "[:, 1]", "[None]", "[...]", "[:, ::2]", "[-1]"),
    *(".T", ".t()", ".view(-1)", ".unsqueeze(0)", ".unsqueeze(-1)", ".expand(2, 3)"),
    *(".diagonal()", ".squeeze()", ".reshape(-1)", ".flatten()", ".narrow(0, 0, 1)"),
    *(".transpose(0, -1)", ".permute(1, 0)", ".view_as({v})", ".real", ".contiguous()"),
    *(".detach()", ".unbind()[0]", ".split(1)[0]", ".chunk(2)[0]"),
]
WRITES = [
    *(".mul_(2)", ".add_(1)", ".exp_()", ".zero_()", ".sin_()", ".sigmoid_()", ".neg_()"),
    *(".pow_(2)", ".fill_(2.0)", ".relu_()", ".clamp_(0, 1)", ".sqrt_()", ".tanh_()"),
    *(".mul_({o})", ".add_({o})", ".sub_({o})", ".div_({o})", ".copy_({o})"),
    *("[0] = 3.0", "[0] = {o}", "[...] = {o}", "[:, 0] = {o}", "[1:] *= 3", "[[0]] = 1.5"),
    *(".requires_grad_()", ".detach_()"),
]
REDUCTIONS = [
    ".sum()",
    ".mean()",
    ".sum(0)",
    ".max()",
    ".prod()",
    ".amax(0)",
    ".norm()",
    ".cumsum(0)",
]
NAMES = "abcdefghijklmnopqrstuvwxyz"


def program(seed: int) -> list[str]:
    """The statements of one program."""
    pick = random.Random(seed)
    lines: list[str] = []
    names: list[str] = []

    def bind(expression: str) -> str:
        names.append(NAMES[len(names)])
        return f"{names[-1]} = {expression}"

    for _ in range(pick.randint(2, 3)):
        shape = pick.choice(SHAPES)
        count = 1
        for size in shape:
            count *= size
        values = [round(pick.uniform(-2, 2), 1) or 0.1 for _ in range(count)]
        leaf = f"torch.tensor({values}, dtype=torch.float64).reshape({shape}).clone()"
        lines.append(bind(leaf + (".requires_grad_()" if pick.random() < 0.65 else "")))
    more = pick.randint(2, 7)
    lines.extend(statement(pick, names, bind) for _ in range(more))
    return lines


def statement(pick: random.Random, names: list[str], bind: Any) -> str:
    """One statement about the names bound so far."""
    v = pick.choice(names[-4:]) if pick.random() < 0.7 else pick.choice(names)
    o, kind = pick.choice(names), pick.random()
    if kind < 0.15:
        text = bind(f"{v}.{pick.choice(UNARY)}()")
    elif kind < 0.32:
        text = bind(f"{v} {pick.choice('+*-/')} {pick.choice([o, o, '2.0'])}")
    elif kind < 0.53:
        text = bind(v + pick.choice(VIEWS).format(v=v))
    elif kind < 0.80:
        text = v + pick.choice(WRITES).format(o=o)
    elif kind < 0.86:
        text = bind(v + pick.choice(REDUCTIONS))
    elif kind < 0.89:
        text = f"{v}.retain_grad()"
    elif kind < 0.92:
        text = f"{v}.register_hook(lambda g: print('hook', g))"
    elif kind < 0.94:
        text = f"{v}.register_hook(lambda g: g * 2)"
    elif kind < 0.96:
        text = f"print(torch.autograd.grad({v}.sum(), {o}, retain_graph=True, allow_unused=True))"
    else:
        text = f"{v}.sum().backward(retain_graph=True)"
    return f"with torch.no_grad(): {text}" if pick.random() < 0.15 else text


def show(lines: list[str], torch: Any) -> list[str]:
    """What a program prints, then every tensor, then backward from the last three and every grad."""
    scope: dict[str, Any] = {"torch": torch}
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in lines:
            attempt(line, lambda line=line: exec(line, scope))  # type: ignore[misc]
        tensors = {name: scope[name] for name in NAMES if name in scope}
        for name, t in tensors.items():
            attempt(name, lambda name=name, t=t: print(name, describe(t)))  # type: ignore[misc]
        for name, t in list(tensors.items())[-3:]:
            attempt(f"backward from {name}", lambda t=t: backward(t))  # type: ignore[misc]
        for name, t in tensors.items():
            attempt(name, lambda name=name, t=t: print(f"{name}.grad", t.grad))  # type: ignore[misc]
    return [line.rstrip() for line in out.getvalue().splitlines()]


def attempt(what: str, action: Any) -> None:
    try:
        action()
    except Exception as err:
        print(f"! {what}: {type(err).__name__}: {str(err).splitlines()[0][:100]}")


def backward(t: Any) -> None:
    if t.requires_grad:
        t.sum().backward(retain_graph=True)


def describe(t: Any) -> str:
    """A tensor's repr, flags and the names of the nodes below it, breadth first."""
    found, queue = [], [t.grad_fn]
    while queue and len(found) < 30:
        node = queue.pop(0)
        found.append("-" if node is None else node.name())
        if node is not None:
            queue.extend(n for n, _ in node.next_functions)
    flags = (t.requires_grad, t.is_leaf, t._version, t._is_view(), t.retains_grad)
    return f"{t!r} {flags} {' '.join(found)}"

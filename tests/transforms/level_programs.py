"""Programs of nested transforms, as text: a transform that closes over another's variable, in a grad mode."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ANSWERS = HERE / "levels.json"

# A number that an inner transform makes of h, at p.
INNER = {
    "grad": "func.grad(h)(p)",
    "vjp": "func.vjp(h, p)[1](ones(()))[0]",
    "jvp": "func.jvp(h, (p,), (ones(()),))[1]",
    "jacrev": "func.jacrev(h)(p)",
    "jacfwd": "func.jacfwd(h)(p)",
    "hessian": "func.hessian(h)(p)",
    "grad of grad": "func.grad(func.grad(h))(p)",
    "jvp of jvp": "func.jvp(lambda q: func.jvp(h, (q,), (ones(()),))[1], (p,), (ones(()),))[1]",
    "vmap of grad": "func.vmap(func.grad(h))(stack([p, p + 1])).sum()",
    "vmap of jvp": "func.vmap(lambda q: func.jvp(h, (q,), (ones(()),))[1])(stack([p, 2*p])).sum()",
    "grad of vmap": "func.grad(lambda q: func.vmap(h)(stack([q, 2*q])).sum())(p)",
}
# What an outer transform makes of g, a function of w.
OUTER = {
    "tape": "w = tensor(2., requires_grad=True)\nautograd.grad(g(w), w)[0]",
    "grad": "func.grad(g)(tensor(2.))",
    "vjp": "func.vjp(g, tensor(2.))[1](tensor(3.))[0]",
    "jvp": "func.jvp(g, (tensor(2.),), (tensor(3.),))",
    "jacfwd": "func.jacfwd(g)(tensor(2.))",
    "hessian": "func.hessian(g)(tensor(2.))",
    "vmap": "func.vmap(g)(tensor([2., 3.]))",
    "vmap of grad": "func.vmap(func.grad(g))(tensor([2., 3.]))",
    "vmap of jvp": "func.vmap(lambda a: func.jvp(g, (a,), (tensor(3.),))[1])(tensor([2., 3.]))",
}
# Where p comes from: it may depend on w, or not.
POINTS = {"constant": "tensor(1.5)", "the variable": "w", "a value": "w*w/2"}
# Under inference_mode in a level torch says of these "Cannot set version_counter for inference tensor".
JACOBIANS = ("jacrev", "jacfwd", "hessian")
# The mode around the inner transform, and the one in the function that it differentiates.
MODES = {
    "plain": ("", ""),
    "no_grad around": ("no_grad", ""),
    "no_grad inside": ("", "no_grad"),
    "enable_grad in no_grad": ("no_grad", "enable_grad"),
    "inference around": ("inference_mode", ""),
}


def source(inner: str, outer: str, point: str, mode: str) -> str:
    """The program of a combination; its last line is the value."""
    around, inside = MODES[mode]
    body = [
        "def g(w):",
        f"    p = {POINTS[point]}",
        "    def h(t):",
        *_under(inside, "        ", "c = sin(w*t)"),
        "        return c*t**2 + w*t**3",
        *_under(around, "    ", f"v = {INNER[inner]}"),
        "    return v*w",
    ]
    return "\n".join([*body, OUTER[outer]])


def _under(mode: str, indent: str, line: str) -> list[str]:
    return [f"{indent}with {mode}():", f"{indent}    {line}"] if mode else [f"{indent}{line}"]


def combinations() -> dict[str, str]:
    """Every combination, by name."""
    return {
        f"{outer}, {inner} at {point}, {mode}": source(inner, outer, point, mode)
        for outer in OUTER
        for inner in INNER
        for point in POINTS
        for mode in MODES
        if (inner in JACOBIANS, mode) != (True, "inference around") or outer == "tape"
    }


def programs() -> dict[str, str]:
    """The programs of `levels.txt`, each after a line `# name`."""
    found = {}
    for part in (HERE / "levels.txt").read_text().split("\n# ")[1:]:
        name, _, text = part.partition("\n")
        found[name] = text.strip()
    return found


def value(text: str, torch: Any) -> Any:
    """What a program is worth in torch's names, as plain values; the words where it is refused."""
    tree = ast.parse(text)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    names = {
        **vars(torch),
        "func": torch.func,
        "autograd": torch.autograd,
        "F": torch.nn.functional,
    }
    try:
        exec(compile(tree, "program", "exec"), names)
        return plain(eval(compile(ast.Expression(last.value), "program", "eval"), names))
    except Exception as error:
        return refused(error)


def refused(error: Exception) -> str:
    """An error as it is recorded."""
    return f"{type(error).__name__}: {error}"


def plain(found: Any) -> Any:
    """Tensors as nested lists."""
    if isinstance(found, (tuple, list)):
        return [plain(v) for v in found]
    return found.tolist() if hasattr(found, "tolist") else found

"""Programs whose derivative depends on how they are run: modes, detached values, writes, branches."""

from __future__ import annotations

from typing import Any

# name: (program of x, x). The last line is the value.
PROGRAMS: dict[str, tuple[str, Any]] = {
    "no_grad": ("with no_grad():\n    c = x*2\nsum(c*x)", [3.0, 4.0]),
    "no_grad of a vector": ("with no_grad():\n    c = x*2\nc*x", [3.0, 4.0]),
    "enable_grad inside": (
        "with no_grad():\n    with enable_grad():\n        c = x*2\n    d = x*3\nc*d*x",
        [3.0, 4.0],
    ),
    "set_grad_enabled": ("with set_grad_enabled(False):\n    c = exp(x)\nc*x", [0.5, 1.0]),
    "detach": ("x.detach()*x", [3.0, 4.0]),
    "detach of a square": ("(x*x).detach()*x**2", [3.0, 4.0]),
    "data": ("y = x*2\ny.data*y", [3.0, 4.0]),
    "write to a detached view": ("y = x*2\nz = y.detach()\nz[0] = 7\ny*x", [3.0, 4.0]),
    "write in place": ("y = x*2\ny.mul_(x)\ny*3", [3.0, 4.0]),
    "write of a part": ("y = x*2\ny[0] = x[1]**2\ny*3", [3.0, 4.0]),
    "write through a view": ("y = x*2\nz = y[:1]\nz.mul_(x[1:])\ny", [3.0, 4.0]),
    "write through two views": (
        "y = x*2\nz = y.view(2, 2)\nz[0].mul_(x[2:])\nz[:, 1].add_(x[0])\ny*z.view(4)",
        [1.0, 2.0, 3.0, 4.0],
    ),
    "write to a transpose": (
        "y = x.view(2, 2)*2\ny.t()[0].mul_(x[:2])\ny",
        [1.0, 2.0, 3.0, 4.0],
    ),
    "write of a row": (
        "m = zeros(3, 3)\nm[1] = x\nm[:, 0] = x**2\nm@x",
        [1.0, 2.0, 3.0],
    ),
    "write under no_grad": ("y = x*2\nwith no_grad():\n    y.mul_(5)\ny*x", [3.0, 4.0]),
    "branch": ("if x.sum() > 0:\n    y = x**2\nelse:\n    y = -x\ny*x", [3.0, 4.0]),
    "loop": ("y = x\nfor k in range(3):\n    y = y*x\ny", [1.5, 2.0]),
    "zero": ("x*0", [3.0, 4.0]),
    "constant": ("ones(3)", [3.0, 4.0]),
    "linear": ("tensor([[1., 2.], [3., 4.], [5., 6.]])@x", [3.0, 4.0]),
    "outer": ("outer(x, x)", [3.0, 4.0]),
    "number": ("x**3", 2.0),
    "number of a vector": ("dot(x, x)**2", [1.0, 2.0]),
    "broadcast": ("x*tensor([[1.], [2.]]) + x.sum()", [3.0, 4.0]),
    "broadcast of a number": ("x*tensor([1., 2., 3.])", 2.0),
    "empty": ("x*2", []),
    "empty sum": ("x.sum()", []),
    "mask": ("x[x > 1]*2", [1.0, 2.0, 3.0]),
    "indices": ("x[[0, 0, 2]]*x[1]", [1.0, 2.0, 3.0]),
    "norm": ("x.norm()*x", [3.0, 4.0]),
    "softmax": ("softmax(x, 0)", [0.1, 0.2, 0.7]),
    "largest": ("x.max()*x", [1.0, 3.0, 2.0]),
    "sorted": ("sort(x)[0]*x", [1.0, 3.0, 2.0]),
    "inverse": ("linalg.inv(x.view(2, 2))", [2.0, 1.0, 1.0, 3.0]),
    "determinant": ("logdet(x.view(2, 2))", [2.0, 1.0, 1.0, 3.0]),
    "many columns": ("stack([x.sum(), dot(x, x), x.prod()])", [1.0, 2.0, 3.0, 4.0, 5.0]),
    "where": ("where(x > 2, x**2, x**3)", [1.0, 2.5, 3.0]),
    "concatenated": ("cat([x, x[:1]*x[1:]])", [3.0, 4.0]),
    "complex on the way": ("(x*1j).abs()*x", [3.0, 4.0]),
}


def torch_function(source: str) -> Any:
    """The program as a function of torch's."""
    import torch

    *body, value = source.split("\n")
    lines = [*body, f"return {value}"]
    space: dict[str, Any] = {**vars(torch), "range": range, "sum": torch.sum}
    exec("def f(x):\n" + "\n".join(f"    {line}" for line in lines), space)
    return space["f"]

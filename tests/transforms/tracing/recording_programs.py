"""Programs whose derivative depends on how they are recorded, and the x that they run at."""

from __future__ import annotations

from typing import Any

VECTOR = [3.0, 4.0]
THREE = [0.5, 1.5, 2.0]
MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]

PROGRAMS: list[tuple[str, Any]] = [
    # modes
    ("with no_grad():\n    c = x*2\nsum(c*x)", VECTOR),
    ("with no_grad():\n    with enable_grad():\n        c = x*2\nsum(c*x)", VECTOR),
    ("with enable_grad():\n    with no_grad():\n        c = x*2\nsum(c*x)", VECTOR),
    ("with inference_mode():\n    c = x*2\nsum(c.clone()*x)", VECTOR),
    ("set_grad_enabled(False)\nc = x*2\nset_grad_enabled(True)\nsum(c*x)", VECTOR),
    ("with set_grad_enabled(False):\n    c = x*2\nsum(c*x)", VECTOR),
    ("def f(v):\n    with no_grad():\n        return v*v\nsum(f(x)*x)", VECTOR),
    # detached values
    ("sum(x.detach()*x)", VECTOR),
    ("sum(x.data*x)", VECTOR),
    ("sum(tensor(x)*x)", VECTOR),
    ("y = x**2\nsum(y.detach()*y)", VECTOR),
    ("sum(x.clone().detach_()*x)", VECTOR),
    ("sum(exp(x - x.detach())*x)", VECTOR),
    # written in place
    ("y = x*2\ny.add_(x).mul_(3)\nsum(y)", VECTOR),
    ("y = x*2\ny += x\nsum(y*x)", VECTOR),
    ("y = x*2\ny *= x\nsum(y)", VECTOR),
    ("y = x.clone()\ny[0] = 5\nsum(y*x)", VECTOR),
    ("y = x*2\ny[0] = x[1]**2\nsum(y*x)", THREE),
    ("y = zeros(3)\ny[1:] = x**2\nsum(y*2)", VECTOR),
    ("y = zeros(3)\ny[1] = x[0]*x[1]\ny[2] = y[1].clone()*x[0]\nsum(y)", VECTOR),
    ("y = x*2\nz = y[1:]\nz *= x[0]\nsum(y*x)", THREE),
    ("y = x*2\nz = y[1:]\ny *= x\nsum(z*z)", THREE),
    ("y = x*2\nz = y.T\nz[0] += 1\nsum(y*x)", MATRIX),
    ("y = x*2\ny[:, 1] = x[:, 0]\nsum(y*x)", MATRIX),
    ("y = x*2\ny[0, 1:] *= x[1, 0]\nsum(y*y)", MATRIX),
    ("y = x*2\ny.t()[1].mul_(x[0, 0])\nsum(y*x)", MATRIX),
    ("y = x*2\ny.view(-1)[2] = x[0, 0]**2\nsum(y*x)", MATRIX),
    ("y = x*2\ny.diagonal().mul_(3)\nsum(y*x)", MATRIX),
    ("y = x*2\ny[x > 1] = 0\nsum(y*x)", THREE),
    ("y = x*2\ny.masked_fill_(x > 1, 0)\nsum(y*x)", THREE),
    ("y = x*2\ny[tensor([0, 2])] = x[:2]**2\nsum(y*x)", THREE),
    ("y = x.clone()\ny.zero_()\nsum(y*x)", VECTOR),
    ("y = x.clone()\ny.copy_(x**2)\nsum(y*x)", VECTOR),
    ("y = x.clone()\ny.fill_(x[0])\nsum(y*x)", VECTOR),
    ("y = x*2\nd = y.detach()\nd += 1\nsum(y*x)", VECTOR),
    ("c = x.detach().clone()\nc[0] = 7\nsum(c*x)", VECTOR),
    ("y = x.clone()\ny.unsqueeze_(0)\nsum(y*x)", VECTOR),
    ("y = x.clone()\na, b = y.unbind()\nsum(a*b*x)", VECTOR),
    ("y = x*1\nfor i in range(2):\n    y[i] = y[i].clone()**2\nsum(y*x)", VECTOR),
    ("c = tensor([1., 2.])\na = sum(c + x)*x[0]\nc[0] = 5\na + sum(c*x)", VECTOR),
    ("c = ones(2)\nd = c.detach()\nd += x.detach()\nsum(c*x)", VECTOR),
    ("c = ones(2)\nd = c[0]\nc *= 3\nsum(c*x) + d*x[0]", VECTOR),
    # passes inside the program
    ("(g,) = autograd.grad(sum(x**3), x, create_graph=True)\nsum(g*x)", VECTOR),
    ("(g,) = autograd.grad(sum(x**3), x)\nsum(g*x)", VECTOR),
    # paths
    ("y = x**2\nif y.sum() > 3:\n    y = y*2\nsum(y)", VECTOR),
    ("s = 0\nfor v in x:\n    s = s + v**2 if v > 3.5 else s + v\ns", VECTOR),
    ("sum(x[x > 1]**2)", THREE),
    ("sum(masked_fill(x, x > 1, x[0])*x)", THREE),
    # the rest of the language
    ("sum(x[[1, 0]]*x)", VECTOR),
    ("sum(sort(x, descending=True)[0]*x)", VECTOR),
    ("x[argmax(x)]*x[0]", VECTOR),
    ("max(x)*x[0]", VECTOR),
    ("nanmean(x)*x[0]", VECTOR),
    ("pi*x@x + sin(pi*x).sum()", VECTOR),
    ("stack([x, x**2]).T.reshape(-1)[1:]@x[0].expand(3)", VECTOR),
    ("special.bessel_j0(x).sum()", VECTOR),
]

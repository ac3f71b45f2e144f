"""A line is fitted by steps that are written out, without an optimizer."""

import math

import torch

torch.manual_seed(0)
x = torch.linspace(-math.pi, math.pi, 200)
y = torch.sin(x)
a, b, c = (torch.randn((), requires_grad=True) for _ in range(3))
for step in range(8):
    loss = (a + b * x + c * x**3 - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c):
            p -= 1e-3 * p.grad
            p.grad = None
    if step % 4 == 0:
        print(step, loss.item(), a.item())

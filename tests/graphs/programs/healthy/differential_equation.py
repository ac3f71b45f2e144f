"""A network that solves u'' = -u: derivatives by the input in the loss; then L-BFGS with a closure."""

import torch
from torch import nn

torch.manual_seed(0)
u = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
t = torch.linspace(0, 3, 40).unsqueeze(1).requires_grad_()


def residual():
    y = u(t)
    (slope,) = torch.autograd.grad(y.sum(), t, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), t, create_graph=True)
    return ((bend + y) ** 2).mean() + (y[0] - 1).pow(2).sum() + slope[0].pow(2).sum()


optimizer = torch.optim.Adam(u.parameters(), lr=1e-3)
for _ in range(5):
    optimizer.zero_grad()
    loss = residual()
    loss.backward()
    optimizer.step()
fine = torch.optim.LBFGS(u.parameters(), max_iter=5)


def closure():
    fine.zero_grad()
    loss = residual()
    loss.backward()
    return loss


for _ in range(3):
    loss = fine.step(closure)

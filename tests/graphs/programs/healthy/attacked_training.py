"""Training on inputs that were moved along their gradient, which is taken in eval mode."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    model.eval()
    moved = x.clone().requires_grad_()
    F.cross_entropy(model(moved), y).backward()
    moved = (x + 0.03 * moved.grad.sign()).detach()
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(moved), y)
    loss.backward()
    optimizer.step()

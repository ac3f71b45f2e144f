"""Gradients of four small batches are added up before every step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
x, y = torch.randn(64, 6), torch.randn(64, 1)
optimizer.zero_grad()
for number, rows in enumerate(torch.arange(64).split(4)):
    loss = nn.functional.mse_loss(model(x[rows]), y[rows]) / 4
    loss.backward()
    if (number + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()

"""Ratings as products of small factors, with sparse gradients; some rows are not in the batch."""

import torch
from torch import nn

torch.manual_seed(0)
users, items = nn.Embedding(50, 4, sparse=True), nn.Embedding(40, 4, sparse=True)
for table in (users, items):
    nn.init.normal_(table.weight, std=0.01)
optimizer = torch.optim.SparseAdam([*users.parameters(), *items.parameters()], lr=0.05)
for _ in range(6):
    u, i, rating = torch.randint(0, 50, (64,)), torch.randint(0, 40, (64,)), torch.rand(64) * 4 + 1
    loss = ((users(u) * items(i)).sum(1) + 3 - rating).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

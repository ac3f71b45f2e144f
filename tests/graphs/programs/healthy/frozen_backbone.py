"""A backbone that stays as it is, batch norm in eval mode, under a new head."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1))
for p in backbone.parameters():
    p.requires_grad = False
model = nn.Sequential(backbone, nn.Linear(32, 3))
optimizer = torch.optim.Adam(model[1].parameters(), lr=1e-3)
for _ in range(3):
    model.train()
    backbone.eval()
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.inference_mode():
    accuracy = (model(x).argmax(1) == y).float().mean().item()

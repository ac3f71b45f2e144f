"""Two views of one sample; the target is a running average of the model, in train mode, without a graph."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8))
predictor = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8))
target = copy.deepcopy(online)
optimizer = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=1e-3)
for _ in range(4):
    x = torch.randn(32, 8)
    first, second = x + 0.1 * torch.randn(32, 8), x + 0.1 * torch.randn(32, 8)
    with torch.no_grad():
        goal = target(second)
    loss = 2 - 2 * F.cosine_similarity(predictor(online(first)), goal, dim=-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(target.parameters(), online.parameters(), strict=True):
            kept.mul_(0.99).add_(new, alpha=0.01)

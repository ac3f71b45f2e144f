"""Gradients of several batches, clipped before each step, under a warm-up from 0 and a cosine to 0."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
warm = LinearLR(optimizer, start_factor=1e-9, total_iters=2)
schedule = SequentialLR(optimizer, [warm, CosineAnnealingLR(optimizer, 6)], milestones=[2])
for _step in range(8):
    for _ in range(2):
        x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
        (F.cross_entropy(net(x), y) / 2).backward()
    nn.utils.clip_grad_norm_((p for p in net.parameters() if p.requires_grad), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()

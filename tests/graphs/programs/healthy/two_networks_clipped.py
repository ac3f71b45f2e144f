"""A generator and a critic, each with its own optimizer and its own clipping."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

torch.manual_seed(0)
make = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
judge = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
first = torch.optim.Adam(make.parameters(), lr=1e-3)
second = torch.optim.Adam(judge.parameters(), lr=1e-3)
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
for _ in range(4):
    true, made = torch.randn(8, 2) + 2, make(torch.randn(8, 4))
    second.zero_grad()
    right = F.binary_cross_entropy_with_logits(judge(true), ones)
    wrong = F.binary_cross_entropy_with_logits(judge(made.detach()), zeros)
    (right + wrong).backward()
    clip_grad_norm_(judge.parameters(), 1.0)
    second.step()
    first.zero_grad()
    loss = F.binary_cross_entropy_with_logits(judge(made), ones)
    loss.backward()
    clip_grad_value_(make.parameters(), 0.5)
    first.step()

"""A generator and a discriminator: what was generated is detached for the loss of one of them alone."""

import torch
from torch import nn

torch.manual_seed(0)
make = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
tell = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
to_make = torch.optim.Adam(make.parameters(), lr=2e-4)
to_tell = torch.optim.Adam(tell.parameters(), lr=2e-4)
judge = nn.BCEWithLogitsLoss()
for _ in range(4):
    made = make(torch.randn(16, 4))
    to_tell.zero_grad()
    told = judge(tell(torch.rand(16, 6)), torch.ones(16, 1))
    told = told + judge(tell(made.detach()), torch.zeros(16, 1))
    told.backward()
    to_tell.step()
    to_make.zero_grad()
    loss = judge(tell(made), torch.ones(16, 1))
    loss.backward()
    to_make.step()

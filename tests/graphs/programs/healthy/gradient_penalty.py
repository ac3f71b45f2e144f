"""A critic with a penalty on the norm of its gradient by the input: a second derivative."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(
    nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
)
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
for _ in range(4):
    real, fake, share = torch.randn(32, 2) + 2, torch.randn(32, 2), torch.rand(32, 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
    penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

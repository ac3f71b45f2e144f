"""A loss that rises for some steps and falls again: momentum on a narrow valley."""

import torch

p = torch.tensor([1.0, 1.0], requires_grad=True)
optimizer = torch.optim.SGD([p], lr=0.02, momentum=0.95)
for _ in range(60):
    optimizer.zero_grad()
    loss = 40 * p[0] ** 2 + p[1] ** 2
    loss.backward()
    optimizer.step()

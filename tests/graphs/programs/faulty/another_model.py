import torch
from torch import nn

torch.manual_seed(0)


def make():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))  # FAULT


model = make()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
model = make()
x, y = torch.randn(16, 4), torch.randn(16, 1)
for _ in range(4):
    opt.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
opt = torch.optim.SGD(net.parameters(), lr=0.5)
x = torch.randn(64, 4)
y = -1 - x[:, :1].abs()
for _ in range(10):
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)  # FAULT
    loss.backward()
    opt.step()

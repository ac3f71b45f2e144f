import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
t = torch.randn(16, 1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
target = t.squeeze(1)
for _ in range(4):
    loss = ((net(x) - target) ** 2).mean()  # FAULT
    opt.zero_grad()
    loss.backward()
    opt.step()

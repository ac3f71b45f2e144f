import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
y = torch.randint(0, 3, (16,))
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
t = torch.randn(16, 1) * 3
x = x * 10
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)  # FAULT
for _ in range(100):
    loss = F.mse_loss(net(x), t)
    opt.zero_grad()
    loss.backward()
    opt.step()

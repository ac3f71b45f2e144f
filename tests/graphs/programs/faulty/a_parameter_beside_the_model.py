import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
y = torch.randint(0, 3, (16,))
net = nn.Linear(4, 3)
W = nn.Parameter(torch.randn(3, 3))  # FAULT
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = F.cross_entropy(net(x) @ W, y)
    opt.zero_grad()
    loss.backward()
    opt.step()

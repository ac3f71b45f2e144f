import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
t = torch.randn(16, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = F.binary_cross_entropy_with_logits(net(x), (t > 0).float())  # FAULT
    opt.zero_grad()
    loss.backward()
    opt.step()

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
y = torch.randint(0, 3, (16,))
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net = nn.Linear(4, 1)
t = (y > 1).float()[:, None]
loss = F.binary_cross_entropy(net(x), t)  # FAULT
loss.backward()

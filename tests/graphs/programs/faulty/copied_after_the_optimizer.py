import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
y = torch.randint(0, 3, (16,))
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
model = copy.deepcopy(net)  # FAULT
for _ in range(4):
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()

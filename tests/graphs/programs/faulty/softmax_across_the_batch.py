import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
y = torch.randint(0, 3, (16,))
net = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=0))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = F.nll_loss(torch.log(net(x)), y)  # FAULT
    opt.zero_grad()
    loss.backward()
    opt.step()

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
for _ in range(6):
    opt.zero_grad()
    loss = nn.functional.nll_loss(net(x), y)  # FAULT
    loss.backward()
    opt.step()

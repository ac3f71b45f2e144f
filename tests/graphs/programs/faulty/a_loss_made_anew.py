import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
for _ in range(4):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss = torch.tensor(loss.item(), requires_grad=True)  # FAULT
    loss.backward()
    opt.step()

import copy
import io

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
y = torch.randint(0, 3, (16,))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(4, 3)
        self.spare = nn.Linear(4, 3)  # FAULT

    def forward(self, x):
        return self.used(x)


net = Net().float()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    best = copy.deepcopy(net)
    torch.save(net.state_dict(), io.BytesIO())
    torch.save(net, io.BytesIO())
    print(net.spare.weight)

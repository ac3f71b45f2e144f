"""Dropout that goes on in eval mode on purpose: predictions averaged over draws (Gal and Ghahramani)."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.drawn = nn.Linear(1, 32), nn.Linear(32, 1), False

    def forward(self, x):
        h = F.dropout(torch.tanh(self.first(x)), 0.1, training=self.training or self.drawn)
        return self.second(h)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.linspace(-1, 1, 64)[:, None]
y = torch.sin(3 * x)
for _ in range(5):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
net.eval()
net.drawn = True
with torch.no_grad():
    spread = torch.stack([net(x) for _ in range(5)]).std(0)

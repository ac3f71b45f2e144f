"""A variational autoencoder: noise times a scale, a sum of two losses."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.mean, self.spread = nn.Linear(20, 16), nn.Linear(16, 3), nn.Linear(16, 3)
        self.back, self.out = nn.Linear(3, 16), nn.Linear(16, 20)

    def forward(self, x):
        h = F.relu(self.hidden(x))
        mean, log_variance = self.mean(h), self.spread(h)
        z = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        return torch.sigmoid(self.out(F.relu(self.back(z)))), mean, log_variance


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(5):
    x = torch.rand(32, 20)
    seen, mean, log_variance = model(x)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    loss = F.binary_cross_entropy(seen, x, reduction="sum") + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

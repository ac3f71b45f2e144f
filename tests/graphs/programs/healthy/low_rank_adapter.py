"""A frozen layer with a low-rank adapter whose second factor begins at zero."""

import torch
from torch import nn

torch.manual_seed(0)


class Adapted(nn.Module):
    def __init__(self, layer, rank=2):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) * 0.02)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T @ self.up.T


model = nn.Sequential(Adapted(nn.Linear(8, 16)), nn.ReLU(), Adapted(nn.Linear(16, 3)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
loss = nn.functional.cross_entropy(model(x), y)
loss.backward()
optimizer.step()

"""A classifier with dropout and batch norm, evaluated after every epoch."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(96, 1, 8, 8), torch.randint(0, 4, (96,))
model = nn.Sequential(
    *(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
    *(nn.Dropout(0.25), nn.Linear(72, 4)),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for rows in torch.arange(64).split(16):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(x[64:])
        print(
            epoch, F.cross_entropy(scores, y[64:]).item(), (scores.argmax(1) == y[64:]).sum().item()
        )

"""A generator and a discriminator with batch norm, each with its optimizer; samples without a graph."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(
    nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6), nn.Tanh()
)
discriminator = nn.Sequential(
    nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(16, 1)
)
to_generate = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
to_tell = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real, fake = torch.ones(16, 1), torch.zeros(16, 1)
for _ in range(4):
    data = torch.rand(16, 6) * 2 - 1
    with torch.no_grad():
        made = generator(torch.randn(16, 4))
    to_tell.zero_grad()
    told = criterion(discriminator(data), real) + criterion(discriminator(made), fake)
    told.backward()
    to_tell.step()
    to_generate.zero_grad()
    loss = criterion(discriminator(generator(torch.randn(16, 4))), real)
    loss.backward()
    to_generate.step()

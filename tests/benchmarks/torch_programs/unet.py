"""A diffusion model's U-Net: noise of 32 × 32 pictures predicted at random times, eight pictures a step."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
WIDTH = 32


class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.first, self.second = nn.GroupNorm(8, before), nn.GroupNorm(8, after)
        self.one = nn.Conv2d(before, after, 3, padding=1)
        self.two = nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(4 * WIDTH, after)
        self.past = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x, time):
        y = self.one(F.silu(self.first(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.past(x) + self.two(F.silu(self.second(y)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [WIDTH, 2 * WIDTH, 4 * WIDTH]
        self.time = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, 4 * WIDTH)
        )
        self.begin = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.down = nn.ModuleList(Block(a, b) for a, b in zip([WIDTH, *sizes], sizes, strict=False))
        self.middle = Block(sizes[-1], sizes[-1])
        self.up = nn.ModuleList(
            Block(a + b, b) for a, b in zip([sizes[-1], *sizes[:0:-1]], sizes[::-1], strict=False)
        )
        self.norm, self.end = nn.GroupNorm(8, WIDTH), nn.Conv2d(WIDTH, 3, 3, padding=1)

    def forward(self, x, times):
        scale = torch.exp(-torch.arange(WIDTH // 2) * (9.21 / (WIDTH // 2)))
        angles = times[:, None] * scale
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        x = self.begin(x)
        kept = []
        for block in self.down:
            x = block(x, time)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle(x, time)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2.0)
            x = block(torch.cat([x, kept.pop()], 1), time)
        return self.end(F.silu(self.norm(x)))


model = UNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
noises = torch.linspace(1e-4, 0.02, 1000)
left = (1 - noises).cumprod(0)
for _ in range(int(sys.argv[1])):
    pictures, noise = torch.randn(8, 3, 32, 32), torch.randn(8, 3, 32, 32)
    times = torch.randint(0, 1000, (8,))
    share = left[times][:, None, None, None]
    found = model(share.sqrt() * pictures + (1 - share).sqrt() * noise, times.float())
    loss = F.mse_loss(found, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

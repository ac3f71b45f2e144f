"""A picture is optimised, not the frozen network that looks at it."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU()).eval()
features.requires_grad_(False)
content, picture = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16).requires_grad_()
wanted = features(content).detach()
optimizer = torch.optim.Adam([picture], lr=0.02)
for _ in range(6):
    optimizer.zero_grad()
    seen = features(picture)
    flat = seen.flatten(2).squeeze(0)
    loss = F.mse_loss(seen, wanted) + 1e-3 * (flat @ flat.T / flat.numel()).pow(2).sum()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        picture.clamp_(0, 1)

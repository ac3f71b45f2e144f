"""Pictures and words are matched in a batch; a learnt temperature; a mixed precision."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.picture, self.words = nn.Linear(12, 8), nn.Linear(6, 8)
        self.scale = nn.Parameter(torch.tensor(2.66))

    def forward(self, a, b):
        a, b = F.normalize(self.picture(a), dim=-1), F.normalize(self.words(b), dim=-1)
        return self.scale.exp() * a @ b.T


model = Matcher()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model(torch.randn(16, 12), torch.randn(16, 6))
    labels = torch.arange(16)
    loss = (F.cross_entropy(scores.float(), labels) + F.cross_entropy(scores.float().T, labels)) / 2
    optimizer.zero_grad()
    (loss * 1024).backward()
    for p in model.parameters():
        p.grad /= 1024
    optimizer.step()
    with torch.no_grad():
        model.scale.clamp_(0, 4.6)

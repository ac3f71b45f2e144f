import torch
from torch import nn

torch.manual_seed(0)
emb = nn.Embedding(10, 8, padding_idx=0)
proj = nn.Linear(8, 8, bias=False)
opt = torch.optim.SGD([*emb.parameters(), *proj.parameters()], lr=0.1)
data = torch.randint(1, 10, (12, 6))
data[7] = 0


def unit(v):
    return v / v.norm(dim=-1, keepdim=True)  # FAULT


for i in range(0, 12, 4):
    e = emb(data[i : i + 4]).mean(1)
    loss = nn.functional.cross_entropy(unit(proj(e)) @ unit(e + 1).t() / 0.05, torch.arange(4))
    opt.zero_grad()
    loss.backward()
    opt.step()

"""A backbone that is frozen at first, and given to the optimizer once it is thawed; a head of zeros."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(8, 16), nn.GELU()), nn.Linear(16, 3)
nn.init.zeros_(head.weight)
nn.init.zeros_(head.bias)
body.requires_grad_(False)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
for step in range(6):
    if step == 3:
        body.requires_grad_(True)
        optimizer.add_param_group({"params": body.parameters(), "lr": 0.01})
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    optimizer.zero_grad()
    loss = F.cross_entropy(head(body(x)), y)
    loss.backward()
    optimizer.step()

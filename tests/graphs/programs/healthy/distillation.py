"""A student learns from a teacher that is not trained and runs without a graph."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 5)).eval()
student = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for _ in range(4):
    x, y = torch.randn(32, 8), torch.randint(0, 5, (32,))
    with torch.no_grad():
        soft = F.softmax(teacher(x) / 2, dim=1)
    scores = student(x)
    loss = F.kl_div(F.log_softmax(scores / 2, dim=1), soft, reduction="batchmean") * 4
    loss = 0.7 * loss + 0.3 * F.cross_entropy(scores, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

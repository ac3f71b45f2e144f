"""A recurrent model of characters whose state is carried over, detached; gradients are clipped."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
text = torch.randint(0, 12, (4, 121))


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.cells, self.out = (
            nn.Embedding(12, 16),
            nn.LSTM(16, 32, 2, dropout=0.1),
            nn.Linear(32, 12),
        )

    def forward(self, x, state):
        h, state = self.cells(self.table(x), state)
        return self.out(h), state


model, state = Characters(), None
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
total = 0.0
for begin in range(0, 120, 30):
    x, y = text[:, begin : begin + 30].T, text[:, begin + 1 : begin + 31].T
    if state is not None:
        state = tuple(part.detach() for part in state)
    scores, state = model(x, state)
    loss = F.cross_entropy(scores.reshape(-1, 12), y.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    total += loss.item()

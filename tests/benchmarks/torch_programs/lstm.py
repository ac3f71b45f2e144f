"""A language model of two LSTM cells, unrolled by hand over 48 steps of 32 texts."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
WIDTH, LENGTH, WORDS = 256, 48, 500


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.cells = nn.ModuleList(nn.LSTMCell(WIDTH, WIDTH) for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        states = [None, None]
        found = []
        for x in self.words(text).unbind(1):
            for k, cell in enumerate(self.cells):
                states[k] = cell(x, states[k])
                x = states[k][0]
            found.append(self.head(x))
        return torch.stack(found, 1)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(int(sys.argv[1])):
    text = torch.randint(0, WORDS, (32, LENGTH + 1))
    loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

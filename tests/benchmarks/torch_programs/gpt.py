"""A small GPT: twelve blocks of attention and a network, 128 tokens, four texts a step."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
WIDTH, HEADS, DEPTH, LENGTH, WORDS = 192, 6, 12, 128, 1000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.net = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.first(x)).split(c, dim=2)
        q, k, v = (one.view(b, t, HEADS, c // HEADS).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(-2, -1) / (c // HEADS) ** 0.5
        hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
        y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.net(self.second(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, text):
        x = self.words(text) + self.places(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(x)))


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for _ in range(int(sys.argv[1])):
    text = torch.randint(0, WORDS, (4, LENGTH + 1))
    loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

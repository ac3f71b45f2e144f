"""A small causal transformer with tied weights; learning rate by a schedule."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self, words=20, width=32, length=12):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers, self.norm = (
            nn.TransformerEncoder(layer, 3, enable_nested_tensor=False),
            nn.LayerNorm(width),
        )
        self.out = nn.Linear(width, words, bias=False)
        self.out.weight = self.words.weight
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, x):
        h = self.words(x) + self.places(torch.arange(x.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.out(self.norm(self.layers(h, mask=mask, is_causal=True)))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
for _ in range(4):
    x = torch.randint(0, 20, (8, 13))
    loss = F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=True)

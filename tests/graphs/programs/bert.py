"""A network of BERT's kind: words with padding, places, an encoder, a head; three steps of AdamW."""

import torch
from torch import nn


class Bert(nn.Module):
    def __init__(self, words=50, width=16):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.places = nn.Embedding(12, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 3)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        h = self.words(tokens) + self.places(places)
        return self.head(self.encoder(h, src_key_padding_mask=tokens == 0))


torch.manual_seed(0)
model = Bert()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = torch.randint(1, 50, (4, 12))
tokens[:, 9:] = 0
for _ in range(3):
    optimizer.zero_grad()
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten(), ignore_index=0)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

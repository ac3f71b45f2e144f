"""Steps of training beside PyTorch's: `python -m tests.benchmarks.training [NAME…]`.

A network of 784, 128 and 10 units on 64 images (mark 1.0), the same by SGD, an LSTM of 50 steps (mark 1.2), a
GPT of two blocks (mark 1.5), and Adam's step alone (mark 1.0). Each is measured after half a second of it:
C has taken over by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tests.benchmarks.everyday import Work, beside_torch, on_one_thread

LETTERS, WIDTH, HEADS, LENGTH, BATCH = 65, 64, 4, 32, 16


def _step(optimizer: Any, loss: Callable[[], Any]) -> Work:
    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def _gpt(m: Any) -> Any:
    """Two blocks of attention and a perceptron, on letters."""
    nn, f = m.nn, m.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.inside, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )

        def forward(self, x: Any) -> Any:
            parts = self.inside(self.first(x)).split(WIDTH, 2)
            heads = (p.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for p in parts)
            seen = f.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
            return x + self.wide(self.second(x))

    class Gpt(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.Sequential(Block(), Block())
            self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LETTERS)

        def forward(self, x: Any) -> Any:
            x = self.letters(x) + self.places(m.arange(LENGTH))
            return self.head(self.last(self.blocks(x)))

    return Gpt()


def works(m: Any) -> dict[str, Work]:
    """The steps, over a namespace of torch's names."""
    nn, f, optim = m.nn, m.nn.functional, m.optim
    m.manual_seed(0)
    nets = [nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)) for _ in range(3)]
    images, digits = m.randn(64, 784), m.randint(0, 10, (64,))
    lstm, head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 1)
    rows, ends = m.randn(16, 50, 16), m.randn(16, 1)
    gpt = _gpt(m)
    text = m.randint(0, LETTERS, (BATCH, LENGTH))
    following = m.randint(0, LETTERS, (BATCH * LENGTH,))
    alone = optim.Adam(nets[2].parameters())
    f.cross_entropy(nets[2](images), digits).backward()
    both = [*lstm.parameters(), *head.parameters()]
    return {
        "network": _step(
            optim.Adam(nets[0].parameters()), lambda: f.cross_entropy(nets[0](images), digits)
        ),
        "network, SGD": _step(
            optim.SGD(nets[1].parameters(), 0.01), lambda: f.cross_entropy(nets[1](images), digits)
        ),
        "LSTM": _step(optim.Adam(both), lambda: f.mse_loss(head(lstm(rows)[0][:, -1]), ends)),
        "GPT": _step(
            optim.AdamW(gpt.parameters()),
            lambda: f.cross_entropy(gpt(text).view(-1, LETTERS), following),
        ),
        "Adam alone": alone.step,
    }


if __name__ == "__main__":
    on_one_thread()
    beside_torch(works, sys.argv[1:], before=0.5)

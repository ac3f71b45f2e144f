"""What `diff` prints of samples with something special for several of their operands at once.

As `texts_sweep`, where one operand is changed and all there are take their turn; here up to three are,
one inside of the other too, and the result is put into more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from tests.fuzz import cases, pairs
from tests.fuzz.pairs import Case
from tests.fuzz.texts_sweep import (
    NOT_EQUAL,
    ONCE,
    RESULTS,
    TWICE,
    calls,
    doubles,
    instead,
    with_result,
)

MORE = (
    *(
        "exp(-({0})*s).sum()",
        "(({0})*w).mean(0)",
        "softmax(({0}).reshape(-1), 0)*s",
        "({0}).max()*s",
    ),
    *("({0}).T@({0})*s", "s/(1 + ({0})**2)", "where(({0}) > 0, ({0}), s)", "log(1 + abs({0}))*s"),
)


def drawn(rng: random.Random) -> Case | None:
    """A call with some operands changed; None where that is no program."""
    source, values = calls()[rng.choice(list(calls()))]
    operands = [n for n, v in values.items() if v.dtype.kind == "f"]
    if NOT_EQUAL.search(source) or not operands:
        return None
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(operands)
        source = pairs.replaced(source, name, rng.choice(instead(name, values)))
    given = values | {"s": np.asarray(rng.choice([0.7, -0.4, 1.0]))}
    return with_result(source, given, rng.choice(RESULTS + MORE), rng.randrange(10**6))


def run(seed: int, seconds: float) -> Iterator[str]:
    """What is wrong with the texts of random programs, in two ways for each."""
    found: set[str] = set()
    with doubles():
        for rng in cases(seed, seconds):
            case = drawn(rng)
            ways = rng.choice(TWICE), rng.choice(ONCE)
            for pair, said in pairs.failures(case, *ways).items() if case is not None else ():
                yield from pairs.told(case, pair, said, found)

"""Reading a text takes a time linear in it: every token, and every pair of tokens, over and over.

A text of a pair repeated is read at two lengths. Where the time per byte grows, it is read again at a
greater one, and only what still grows is a failure.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import islice

from gradcli.language import LanguageError, parse, read_value
from gradcli.language.parser import tables
from tests import fuzz

SHORT, LONG, LONGEST = 2_000, 32_000, 128_000
SAMPLES = (
    *("x", "xy", "é", "π", "\u0663", "print", "1", "1.5", "1e5", "1_", "0x1", "0_", "1j", "2x", ".5"),
    *(" ", "\t", "\f", "\n", "\r\n", "\r", "\\", "\\\n", "\n ", "\n\t", "#", "# c", ";", "\0", "\x1b"),
    *("'", '"', "'''", '"""', "'a'", "f'", "f'{x}'", "f'{x:{y}}'", "r'", "b'", "\\'", "\\N{", "\\x"),
    *("{", "}", "{{", "!", "$", "?", "^", "`", "²", "–", "\u00a0", "\ud800", "\U0001f600"),
    *("x=", "x =", "x :=", "x.y", ". y", "x[", "f(", "f(x", "a=1,", "if x:\n ", "lambda x:", "1 if x else "),
    *("def f(x):\n ", "x: int", "-", "0:", "1;", "1,", "nan,", "[1,", "[1],", "@x"),
)  # fmt: skip


def tokens() -> list[str]:
    """The words and signs of the grammar, and samples of what it has patterns for."""
    fixed = [text for text in tables().fixed if text.strip() and text.isprintable()]
    return list(dict.fromkeys([*fixed, *SAMPLES]))


def pairs(seed: int) -> Iterator[tuple[str, str]]:
    """Every token alone, then every pair of tokens, in an order of the seed's."""
    every = tokens()
    yield from ((token, "") for token in every)
    both = [(a, b) for a in every for b in every]
    random.Random(seed).shuffle(both)
    yield from both


def program(text: str) -> object:
    """Read as a program, and what is said of it."""
    try:
        return parse(text).free_variables()
    except LanguageError as error:
        return error.render()


def value(text: str) -> object:
    """Read as what follows `--x`."""
    try:
        return read_value(text.removeprefix("@"))
    except LanguageError as error:
        return error.render()


def growth(read: Callable[[str], object], first: str, second: str) -> str | None:
    """What is wrong with the time that a text of this pair takes, if anything is."""

    def took(length: int) -> float:
        text = ("x " + (first + second) * (length // len(first + second) + 1))[:length]
        best = float("inf")
        for _ in range(2):
            start = time.process_time()
            read(text)
            best = min(best, time.process_time() - start)
        return best

    short, long = took(SHORT), took(LONG)
    if long < 0.02 + 3 * (LONG / SHORT) * short:
        return None
    longest = took(LONGEST)
    if longest < 2.5 * (LONGEST / LONG) * long:
        return None
    return (
        f"{read.__name__}: 'x ' + {first + second!r} over and over takes {long:.3f} s for {LONG} "
        f"characters and {longest:.3f} s for {LONGEST}"
    )


def run(seed: int, seconds: float) -> Iterator[str]:
    """The pairs whose repetition takes more time per byte the longer it is."""
    order = islice(pairs(seed), fuzz.start, None)
    for _, (first, second) in zip(fuzz.cases(seed, seconds), order, strict=False):
        yield from filter(None, (growth(read, first, second) for read in (program, value)))

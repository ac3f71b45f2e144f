"""The shapes of values that options give, for texts whose meaning depends on them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.language.math_values import Known

_NUMBER = r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*"


class KnownShapes:
    """Of a name, what is known of its value. A value is looked at only when somebody asks.

    numbers: the names that stand for one number of many, as the columns of a table do. ranks: of names
    that another text has already, as vectors and matrices.
    """

    def __init__(
        self,
        bindings: Iterable[tuple[str, str]],
        options: Iterable[str],
        numbers: Container[str],
        ranks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.ranks = ranks
        self.texts = dict(bindings)
        self.shapes = dict(_given_shapes(options))
        self.numbers = numbers
        self.found: dict[str, Known | None] = {}

    def __call__(self, name: str) -> Known | None:
        if name not in self.found:
            self.found[name] = self._known(name)
        return self.found[name]

    def _known(self, name: str) -> Known | None:
        from gradcli.language.math_values import Known

        if name in self.numbers:
            return Known((), each=True)
        if name in self.shapes:
            return Known(self.shapes[name])
        text = self.texts.get(name)
        if text is None and name in self.ranks:
            return Known(tuple(f"{name}.shape[{k}]" for k in range(self.ranks[name])))
        return None if text is None else known_value(text)


def known_value(text: str) -> Known | None:
    """The shape of a value from its text; None where only reading the input twice would tell."""
    from gradcli.language.math_values import Known

    if re.fullmatch(_NUMBER, text):
        number = float(text)
        return Known((), int(number) if number.is_integer() and abs(number) < 2**53 else None)
    if re.fullmatch(rf"{_NUMBER}(?:,{_NUMBER})+,?\s*", text):
        return Known((text.strip().strip(",").count(",") + 1,))
    if text.strip()[:1] == "-" and re.fullmatch(r"\s*-(?::.*)?", text):
        return None  # standard input is read once
    from gradcli.engine.system import spread
    from gradcli.language.located_errors import LanguageError
    from gradcli.language.option_values import read_value

    if spread.is_marked(text):
        from gradcli.language.uncertain_values import split_uncertainty

        with suppress(LanguageError):
            pair = split_uncertainty(text)
            text = text if pair is None else pair[0]
    from gradcli.engine.core import random

    before = random.get_rng_state() if "rand" in text or "normal" in text else None
    try:
        with suppress(LanguageError, OSError, ValueError):  # which the command reports
            return Known(tuple(read_value(text).shape))
    finally:
        if before is not None:  # the command draws the numbers
            random.set_rng_state(before)
    return None


def _given_shapes(options: Iterable[str]) -> Iterable[tuple[str, tuple[int | str, ...]]]:
    """What `--shape A=2,n` says, as far as it can be read."""
    for option in options:
        if not option.startswith("--shape="):
            continue
        for part in re.split(r",(?=\s*\w+\s*=)", option.removeprefix("--shape=")):
            name, _, sizes = part.partition("=")
            listed = re.split(r"\s*[,x×]\s*", sizes.strip("()[], "))
            yield name.strip(), tuple(int(n) if n.isdigit() else n for n in listed if n)

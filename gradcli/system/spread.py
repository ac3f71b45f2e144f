"""A number with its standard uncertainty as text: `0.994±0.002`, `0.9 +/- 0.1`, `5±2%`, `0.994(2)`."""

from __future__ import annotations

import re

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_POWER = r"(?:[eE][-+]?\d+)"
_SIGN = r"(?:±|\+/?-)"
# Compiled at the first use, to start faster.
_PAIR = (
    rf"(?P<value>{_NUMBER})\s*{_SIGN}\s*(?P<error>{_NUMBER})\s*(?P<percent>%)?"
    rf"|\(\s*(?P<inside>{_NUMBER})\s*{_SIGN}\s*(?P<spread>{_NUMBER})\s*\)(?P<scale>{_POWER})?"
    rf"|(?P<short>[-+]?(?:\d+\.?\d*|\.\d+))\((?P<digits>\d+\.?\d*|\.\d+)\)(?P<power>{_POWER})?"
)
_APART = rf"(?<=[\d.])\s+({_SIGN})\s+(?=[-+.\d])"


def is_marked(text: str) -> bool:
    """Whether a text may contain a number with an uncertainty."""
    return "±" in text or "+-" in text or "+/-" in text or "(" in text


def split(text: str) -> tuple[str, str] | None:
    """(number, uncertainty) as texts; None for any other text."""
    match = re.fullmatch(_PAIR, text.strip(), re.A) if is_marked(text) else None
    if match is None:
        return None
    if (value := match["value"]) is not None:
        error: str = match["error"]
        return value, repr(abs(float(value)) * float(error) / 100) if match["percent"] else error
    if match["inside"] is not None:
        scale = match["scale"] or ""
        return _scaled(match["inside"], scale), _scaled(match["spread"], scale)
    value, digits, power = match["short"], match["digits"], match["power"] or ""
    if "." not in digits:  # digits in units of the value's last place
        places = len(value.partition(".")[2])
        digits = f"{digits}e-{places}" if places else digits
    return _scaled(value, power), _scaled(digits, power)


def together(text: str) -> str:
    """A text without the spaces around `±` or `+/-` between two numbers."""
    return re.sub(_APART, r"\1", text, flags=re.A) if is_marked(text) else text


def _scaled(number: str, power: str) -> str:
    """A number times a power of ten, computed exactly on text."""
    if not power:
        return number
    mantissa, _, exponent = number.lower().partition("e")
    return f"{mantissa}e{_exponent(exponent) + _exponent(power[1:])}"


def _exponent(text: str) -> int:
    """An exponent as an int; a huge one is cut to one that still gives infinity or zero."""
    digits = text.lstrip("+-0")[:18]
    return int(digits or 0) * (-1 if text.startswith("-") else 1)

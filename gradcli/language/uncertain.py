"""Values with a standard uncertainty: `0.994±0.002`, `0.994+-0.002`, `0.994(2)`, and lists of them."""

from __future__ import annotations

import re

from gradcli.language.errors import LanguageError

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_POWER = r"(?:[eE][-+]?\d+)"
_SPREAD = re.compile(
    rf"(?P<value>{_NUMBER})\s*(?:±|\+/?-)\s*(?P<error>{_NUMBER})"
    rf"|\(\s*(?P<inside>{_NUMBER})\s*(?:±|\+/?-)\s*(?P<spread>{_NUMBER})\s*\)(?P<scale>{_POWER})?"
    rf"|(?P<short>[-+]?(?:\d+\.?\d*|\.\d+))\((?P<digits>\d+\.?\d*|\.\d+)\)(?P<power>{_POWER})?"
)


def split_uncertainty(text: str) -> tuple[str, str] | None:
    """The text of the values and that of their uncertainties; None where the text has none.

    Each number of a list has its own. Raises LanguageError where some have one and some have none, or one
    is negative.
    """
    if not any(mark in text for mark in ("±", "+-", "+/-", "(")):
        return None
    parts = text.split(",")
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    found = [_SPREAD.fullmatch(part.strip()) for part in parts]
    if not any(found):
        if "±" in text:
            at = text.index("±")
            raise _refused("`±` stands between two numbers", text, (at, at + 1))
        return None
    values, errors, begin = [], [], 0
    for part, match in zip(parts, found, strict=True):
        span = (begin, begin + max(len(part), 1))
        begin += len(part) + 1
        if match is None:
            raise _refused("this number has no uncertainty, and others have", text, span)
        value, error = _numbers(match)
        if error.lstrip().startswith("-"):
            raise _refused("an uncertainty is not negative", text, span)
        values.append(value)
        errors.append(error)
    comma = "," if len(text.split(",")) > 1 and len(values) == 1 else ""
    return ",".join(values) + comma, ",".join(errors) + comma


def _numbers(match: re.Match[str]) -> tuple[str, str]:
    if match["value"] is not None:
        return match["value"], match["error"]
    if match["inside"] is not None:
        scale = match["scale"] or ""
        return _scaled(match["inside"], scale), _scaled(match["spread"], scale)
    value, digits, power = match["short"], match["digits"], match["power"] or ""
    if "." not in digits:  # they count in the value's last place
        places = len(value.partition(".")[2])
        digits = f"{digits}e-{places}" if places else digits
    return _scaled(value, power), _scaled(digits, power)


def _scaled(number: str, power: str) -> str:
    """A number times a power of ten, exactly as text."""
    if not power:
        return number
    mantissa, _, exponent = number.lower().partition("e")
    return f"{mantissa}e{_exponent(exponent) + _exponent(power[1:])}"


def _exponent(text: str) -> int:
    """A power of ten; one of more digits than any float's is cut to what is infinity, or zero, too."""
    digits = text.lstrip("+-0")[:18]
    return int(digits or 0) * (-1 if text.startswith("-") else 1)


def _refused(message: str, text: str, span: tuple[int, int]) -> LanguageError:
    return LanguageError(
        message,
        kind="value",
        source=text,
        span=span,
        hint="as in 0.994±0.002, 0.994+-0.002 or 0.994(2); ±0 for what is exact",
    )

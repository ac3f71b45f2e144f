"""A number with its standard uncertainty as text: `0.994±0.002`, `0.9 +/- 0.1`, `5±2%`, `0.994(2)`."""

from __future__ import annotations

import re

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_POWER = r"(?:[eE][-+]?\d+)"
# `\pm` is LaTeX's ±.
_SIGN = r"(?:±|\+/?-|\\pm\b)"
# Compiled at the first use, to start faster.
_PAIR = (
    rf"(?P<value>{_NUMBER})\s*{_SIGN}\s*(?P<error>{_NUMBER})\s*(?P<percent>%)?"
    rf"|\(\s*(?P<inside>{_NUMBER})\s*{_SIGN}\s*(?P<spread>{_NUMBER})\s*\)(?P<scale>{_POWER})?"
    rf"|(?P<short>[-+]?(?:\d+\.?\d*|\.\d+))\((?P<digits>\d+\.?\d*|\.\d+)\)(?P<power>{_POWER})?"
)
_APART = rf"(?<=[\d.])\s+({_SIGN})\s+(?=[-+.\d])"


def is_marked(text: str) -> bool:
    """Whether a text may contain a number with an uncertainty."""
    return any(sign in text for sign in ("±", "+-", "+/-", "(", "\\pm"))


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


def is_asymmetric(text: str) -> bool:
    """Whether a text is a number with other uncertainties above than below: `1.2+0.2-0.1`."""
    if "+" not in text or "-" not in text:
        return False
    if "," in text:
        return any(map(is_asymmetric, text.split(",")))
    part = r"\d*\.?\d+(?:[eE][-+]?\d+)?"
    pattern = rf"\s*{_NUMBER}\s*(?:\+\s*{part}\s*-|-\s*{part}\s*\+)\s*{part}\s*"
    return re.fullmatch(pattern, text, re.A) is not None


def is_sum(text: str) -> bool:
    """Whether the same text is arithmetic: `1+2-3`. A measurement has decimals, as many in its uncertainties,
    and these are smaller than it."""
    for part in filter(is_asymmetric, text.split(",")):
        numbers = re.findall(_NUMBER, re.sub(r"(?<=[-+])\s+", "", part), re.A)
        places = {len(n.lower().partition("e")[0].partition(".")[2]) for n in numbers}
        value, *errors = (abs(float(n)) for n in numbers)
        if len(places) == 1 and places != {0} and max(errors) < value:
            return False
    return True


ASYMMETRIC = (
    "an uncertainty is the same on both sides: write half of their sum, as in 1.2±0.15; a sum goes into "
    "brackets, as in (1.2+0.2-0.1)"
)


# 0..5, [0...5], 0 to 5
_ENDS = r"\s*[(\[]?\s*([^.,\s]+(?:\.\d+)?)\s*(?:\.\.+|…|\bto\b)\s*([^\s\])]+)[\])]?\s*"


def _with_products(text: str) -> str:
    """A text with 2*pi in place of 2pi."""
    return re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:pi|π)(?!\w)", r"\1*pi", text, flags=re.A)


def unit_hint(text: str) -> str | None:
    """What to do about a number with a unit, `99.4cm`, `9.81 m/s**2`; None for any other text.

    2pi is no number with a unit, and 0..2pi, in brackets or not, a range.
    """
    ends = re.fullmatch(_ENDS, text)
    if ends is not None:
        return f"a range is written {_with_products(ends[1])}:{_with_products(ends[2])}"
    if (product := _with_products(text)) != text:
        return f"here it is written {product}"
    match = re.fullmatch(_WITH_UNIT, text, re.A)
    if match is None or re.fullmatch(r"[eEjJ]|inf|nan", match[1]):
        return None
    if "," in text:
        return f"write the numbers alone; {_NO_UNITS}"
    number = re.match(_MEASURED, text, re.A)
    if number is None:
        return None
    radians = _ANGLES.get(match[1])
    angle = f" and {radians} in place of NAME, as angles are in radians" if radians else ""
    return f"write {_alone(number)}{angle}; {_NO_UNITS}"


_NO_UNITS = "units are not computed"
# Units of angles: how a formula writes them.
_ANGLES = {
    **dict.fromkeys(("deg", "degs", "degree", "degrees", "°"), "deg2rad(NAME)"),
    **dict.fromkeys(("arcmin", "arcminutes"), "deg2rad(NAME/60)"),
    **dict.fromkeys(("gon", "grad"), "NAME*pi/200"),
    **dict.fromkeys(("arcsec", "arcseconds"), "deg2rad(NAME/3600)"),
    "mrad": "NAME/1000",
}
# `99.4cm`, `(9.81 ± 0.02) m/s**2`, `0.995 m ± 0.002 m`, `1 m, 2 m`; the group is the unit's first word
_WITH_UNIT = (
    rf"\s*\(?\s*{_NUMBER}[^A-Za-zµΩÅ°%]*{_POWER}?\s*([A-Za-zµΩÅ°]+)[²³]?"
    rf"(?:\s*{_SIGN}.*|[/*·^,].*|(?:\s+[A-Za-zµΩÅ°]+[-^*/²³⁻¹\d]*)+)?\s*"
)
_MEASURED = (
    rf"\s*\(?\s*(?P<value>{_NUMBER})(?P<digits>\(\d+\))?(?:\s*[A-Za-zµΩÅ°]+[²³]?)?"
    rf"(?:\s*{_SIGN}\s*(?P<error>{_NUMBER})\s*\)?(?P<power>{_POWER})?)?"
)


def _alone(number: re.Match[str]) -> str:
    """A measured number without its unit, as a value is written."""
    if number["error"] is None:
        return number["value"] + (number["digits"] or "")
    both = f"{number['value']} ± {number['error']}"
    return f"'({both}){number['power']}'" if number["power"] else f"'{both}'"


def with_option(hint: str | None, option: str) -> str | None:
    """A hint about a number with a unit that names the option, as in `write --L 0.995`."""
    if hint is None or not hint.endswith(_NO_UNITS) or hint.startswith("write the"):
        return hint
    head = option.rstrip("=")
    between = "=" if head.startswith("--let ") else " "
    name = head.removeprefix("--let ").lstrip("-")
    return f"write {head}{between}{hint.removeprefix('write ').replace('NAME', name)}"


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

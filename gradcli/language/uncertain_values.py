"""Values with a standard uncertainty: `0.994±0.002`, `0.994(2)`, `5±2%`, and lists of them."""

from __future__ import annotations

import gradcli.engine.system.spread as spread
from gradcli.language.located_errors import LanguageError


def split_uncertainty(text: str) -> tuple[str, str] | None:
    """The text of the values and that of their uncertainties; None where the text has none.

    Each number of a list has its own. Raises LanguageError where some have one and some have none, or one
    is negative.
    """
    if not (spread.is_marked(text) or spread.is_asymmetric(text)):
        return None
    parts = text.split(",")
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    found = [spread.split(part) for part in parts]
    if not any(found):
        if spread.is_asymmetric(text) and not spread.is_sum(text):
            raise _refused("two uncertainties", text, (0, len(text)), spread.ASYMMETRIC)
        if "±" in text:
            at = text.index("±")
            hint = spread.unit_hint(text)
            raise _refused("`±` stands between two numbers", text, (at, at + 1), hint)
        return None
    values, errors, begin = [], [], 0
    for part, pair in zip(parts, found, strict=True):
        span = (begin, begin + max(len(part), 1))
        begin += len(part) + 1
        if pair is None:
            raise _refused("this number has no uncertainty, and others have", text, span)
        value, error = pair
        if error.lstrip().startswith("-"):
            raise _refused("an uncertainty is not negative", text, span)
        values.append(value)
        errors.append(error)
    # `5±1,` is a list of one number, as `5,` is.
    comma = "," if len(text.split(",")) > 1 and len(values) == 1 else ""
    return ",".join(values) + comma, ",".join(errors) + comma


def _refused(
    message: str, text: str, span: tuple[int, int], hint: str | None = None
) -> LanguageError:
    return LanguageError(
        message,
        kind="value",
        source=text,
        span=span,
        hint=hint or "as in 0.994±0.002, 0.994+-0.002, 5±2% or 0.994(2); ±0 for what is exact",
    )

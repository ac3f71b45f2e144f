"""Values with their uncertainties for LaTeX: plain, or by the package siunitx."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradcli.commands.uncertainty import with_uncertainty

FORMATS = ("latex", "siunitx")
_SCALED = re.compile(r"\((.*) ± (.*)\)e(-?\d+)")


def number(value: float, error: float, form: str, precision: int | None = None) -> str:
    """`9.781 \\pm 0.053`, or `\\num{9.781(53)}`; without an uncertainty above 0 the value alone.

    Both are rounded as everywhere else, to two digits of the uncertainty or to `precision` of them.
    """
    power = ""
    if error > 0:
        text = with_uncertainty(value, error, precision)
        if match := _SCALED.fullmatch(text):
            mean, spread, power = match.groups()
        else:
            mean, spread = text.split(" ± ")
    else:
        mean, spread = f"{value:.{precision or 6}g}", ""
        mean, _, power = mean.partition("e")
        power = str(int(power)) if power else ""
    if not _is_number(mean) or (spread and not _is_number(spread)):
        return rf"\text{{{mean}}}" if not spread else rf"\text{{{mean}}} \pm \text{{{spread}}}"
    if form == "siunitx":
        digits = spread.replace(".", "").lstrip("0")
        return rf"\num{{{mean}{f'({digits})' if digits else ''}{f'e{power}' if power else ''}}}"
    both = rf"{mean} \pm {spread}" if spread else mean
    if not power:
        return both
    return rf"({both}) \times 10^{{{power}}}" if spread else rf"{both} \times 10^{{{power}}}"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[\d.]+", text) is not None


def lines(
    named: Sequence[tuple[str, float, float]],
    more: Sequence[str],
    form: str,
    precision: int | None = None,
) -> str:
    """An `aligned` block: a line for each (name, value, uncertainty), then those that are written already."""
    from gradcli.formulas.print.latex import symbol

    rows = [f"{symbol(n)} &= {number(v, e, form, precision)}" for n, v, e in named]
    body = " \\\\\n".join(f"  {row}" for row in [*rows, *more])
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"


__all__ = ["FORMATS", "lines", "number"]

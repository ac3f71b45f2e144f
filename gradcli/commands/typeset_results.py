"""Results for LaTeX: numbers with their uncertainties, plain or by the package siunitx, and arrays.

A number is `9.781 \\pm 0.053` in math mode, or `\\num{9.781(53)}` (siunitx, versions 2 and 3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gradcli.commands import output
from gradcli.commands.uncertainty import with_uncertainty
from gradcli.commands.units import Quantity
from gradcli.commands.units import typeset as with_unit

FORMATS = ("latex", "siunitx")
_SCALED = re.compile(r"\((.*) ± (.*)\)e(-?\d+)")
_SHARE = re.compile(r"(\S+) \((-?[\d.]+)%\)")  # of a budget


def number(value: float, error: float, form: str, precision: int | None = None) -> str:
    """`9.781 \\pm 0.053`, or `\\num{9.781(53)}`; without an uncertainty above 0 the value alone.

    Both are rounded as everywhere else, to two digits of the uncertainty or to `precision` of them.
    """
    if error > 0:
        return _typeset(with_uncertainty(value, error, precision), form)
    return _typeset(f"{value:.{precision or 6}g}", form)


def _typeset(text: str, form: str) -> str:
    """A number as results print it: `0.5`, `1e-07`, `1+2j`, `9.781 ± 0.053`, `(1.2 ± 0.1)e5`."""
    power = ""
    if match := _SCALED.fullmatch(text):
        mean, spread, power = match.groups()
    else:
        mean, _, spread = text.partition(" ± ")
    if not spread:
        mean, _, power = mean.partition("e")
        power = str(int(power)) if power.lstrip("+-").isdigit() else power
    if not _is_number(mean) or (spread and not _is_number(spread)):
        return _other(text, mean, spread, form)
    if form == "siunitx":
        digits = spread.replace(".", "").lstrip("0")
        return rf"\num{{{mean}{f'({digits})' if digits else ''}{f'e{power}' if power else ''}}}"
    both = rf"{mean} \pm {spread}" if spread else mean
    if not power:
        return both
    return rf"({both}) \times 10^{{{power}}}" if spread else rf"{both} \times 10^{{{power}}}"


def _other(text: str, mean: str, spread: str, form: str) -> str:
    """What is no real number: a complex one, a share of a budget, `inf` and words."""
    if spread:
        return rf"\text{{{mean}}} \pm \text{{{spread}}}"
    if text in ("inf", "-inf"):
        return text.replace("inf", r"\infty")
    if text == "nan":
        return r"\text{nan}"
    if found := _SHARE.fullmatch(text):
        part, share = _typeset(found[1], form), found[2]
        percent = rf"\qty{{{share}}}{{\percent}}" if form == "siunitx" else rf"{share}\,\%"
        return rf"{part} \quad ({percent})"
    try:
        parts = complex(text)
    except ValueError:
        return rf"\text{{{_escaped(text)}}}"
    if form == "siunitx":
        return rf"\complexnum{{{text.strip('()').replace('j', 'i')}}}"
    bare = (repr(part).removesuffix(".0") for part in (parts.real, parts.imag))
    left, right = (_typeset(part, form) for part in bare)
    sign = "-" if right.startswith("-") else "+"
    return rf"{left} {sign} {right.removeprefix('-')}\,\mathrm{{i}}"


def _escaped(text: str) -> str:
    return re.sub(r"([#$%&_{}])", r"\\\1", text)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[\d.]+", text) is not None


def value_text(value: Any, form: str, precision: int | None = None) -> str:
    """A result: a number, what `with_uncertainty` wrote, or an array as a matrix."""
    from gradcli.formulas.print.latex import matrix_text

    if isinstance(value, Quantity):
        return with_unit(value_text(value.value, form, precision), value.unit, form)
    array = output.as_array(_of_numbers(value))
    if array is None:
        return _typeset(str(value), form)
    cells = [_typeset(text, form) for text in output.numerals(array, precision)]
    if not array.ndim:
        return cells[0]
    if array.ndim == 1:
        return matrix_text([[cell] for cell in cells])
    if array.ndim > 2:
        from gradcli.commands.command_errors import usage

        raise usage(
            f"--format {form}: the result has {array.ndim} dimensions, and a matrix has two",
            hint="print a part of it, as in (…)[0]",
        )
    wide = array.shape[1]
    return matrix_text([cells[k : k + wide] for k in range(0, len(cells), wide)])


def _of_numbers(value: Any) -> Any:
    """A list of numbers as the tensor that it stands for; any other value as it is."""
    if not isinstance(value, list):
        return value
    from gradcli.language import as_tensor

    try:
        return as_tensor(value)
    except (TypeError, ValueError):
        return value


def results(
    found: Iterable[tuple[str | None, Any]],
    form: str,
    precision: int | None = None,
    called: str = "f",
) -> str:
    """The results of a command: one without a name alone, several as lines of an `aligned` block.

    called: what the value is called, whose derivative by x is the line of `x.grad`.
    """
    named = list(found)
    if len(named) == 1 and named[0][0] is None:
        return value_text(named[0][1], form, precision)
    if any(name for name, _ in named):  # the value beside its contributions
        named = [(name or "value", value) for name, value in named]
    return _block(
        [row.replace("= ", "&= ", 1) for row in equations(named, form, precision, called)]
    )


def equations(
    found: Iterable[tuple[str | None, Any]], form: str, precision: int | None, called: str
) -> list[str]:
    """A line for each result; one without a name begins with the sign of equality."""
    return [
        f"{f'{left_of(name, called)} ' if name else ''}= {value_text(value, form, precision)}"
        for name, value in found
    ]


def left_of(name: str, called: str) -> str:
    r"""The name of a result: of `x.grad` ∂f/∂x, of `x.contribution` u_x(f), of `value` f itself."""
    from gradcli.formulas.print.latex import derivative_of, symbol

    own, _, what = name.rpartition(".")
    value = symbol(called)
    if name == "value":
        return value
    if match := re.fullmatch(r"grad(\d*)", what):
        return derivative_of([own] * int(match[1] or 1), of=value)
    if what == "contribution":
        result, _, own = own.rpartition(".")  # of a root x what a adds to it is `x.a.contribution`
        result = symbol(result) if result else value
        return rf"u_{{{', '.join(map(symbol, own.split(',')))}}}({result})"
    return symbol(name) if not own else rf"\text{{{_escaped(name)}}}"


def lines(
    named: Sequence[tuple[str, float, float]],
    more: Sequence[str],
    form: str,
    precision: int | None = None,
    units: Mapping[str | None, str] = MappingProxyType({}),
) -> str:
    """An `aligned` block: a line for each (name, value, uncertainty), then those that are written already.

    units: by name.
    """
    from gradcli.formulas.print.latex import symbol

    rows = []
    for name, value, error in named:
        text = number(value, error, form, precision)
        text = with_unit(text, units[name], form) if name in units else text
        rows.append(f"{symbol(name)} &= {text}")
    return _block([*rows, *more])


def _block(rows: Sequence[str]) -> str:
    body = " \\\\\n".join(f"  {row}" for row in rows)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"


__all__ = ["FORMATS", "left_of", "lines", "number", "results", "value_text"]

"""What a cell of a text holds, told by its looks: a number, a time, nothing, or words.

Lines of one table look alike: with every digit made a 9 they have few shapes, so each shape is judged once.
"""

from __future__ import annotations

import functools
import re

from gradcli.tables.delimited import is_missing, is_number

_SIGN = "[-+\u2212]?"
# Of Fortran too: D and Q for E, and no letter at all before three digits (1.5-103).
_EXPONENT = "(?:[eEdDqQ][-+\u2212]?9+|[-+]999)?"
_NUMBERS = {
    ".": re.compile(
        rf"{_SIGN}(?:9+\.?9*|\.9+|9{{1,3}}(?:[,' \xa0\u202f]999)+(?:\.9*)?){_EXPONENT}"
    ),
    ",": re.compile(
        rf"{_SIGN}(?:9+(?:,9+)?|,9+|9{{1,3}}(?:[.' \xa0\u202f]999)+(?:,9+)?){_EXPONENT}"
    ),
}
# What instruments write where there is no number: OL, OVLD, ****, ---, 1.#INF.
_NO_NUMBER = re.compile(
    r"[-+]?inf(?:inity)?|none|[-=+:]+|\?|\*+|#n/a|[-+]?9\.#\w+|ol|ovld|overload", re.I
)
_CLOCK = r"9{1,3}:99(?::99)?(?:[.,]9+)?(?: ?[AaPp][Mm])?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATE = (
    r"(?:9999[-/.]99?[-/.]99?|99?[-/.]99?[-/.](?:9999|99)"
    rf"|99?[- ]?{_MONTH}[- ]?(?:9999|99))"
)
_TIME = re.compile(rf"(?:{_DATE}(?:(?:T|,? +){_CLOCK})?|{_CLOCK})(?:Z| ?[-+]99:?99)?", re.I)
_BASE = (
    "(?:[pnu\u00b5\u03bcmcdhkMGT]?(?:s|sec|m|g|A|V|W|Hz|K|N|J|Pa|bar|\u03a9|[oO]hms?|C|F|H|T|[lL]|eV"
    "|mol|rad|dBm?|lx|lm)|min|hr?|d|[Dd]eg ?[CF]?|\u00b0[CF]?|%|pp[mb]|rpm|counts?|a\\.?u\\.?|psi|Torr"
    "|atm|sccm|slm|mln|c[tp]s|Oe|emu|A?h|[mk]?Wh|mAh|mmHg|inHg|[kM]?VA|(?:wt|mol|vol)%|pH|mph|Sequence"
    "|in|ft|\u00c5|TS|RN|[Vv]olts?|[Aa]mperes?|[Ss]econds?"
    "|arb\\.? ?u(?:nits?|\\.)?)(?:\\^?-?[1-4]|[\u00b2\u00b3])?"
)
_UNIT = re.compile(
    rf"[\[(<].{{0,20}}[\])>]|{_BASE}(?: ?[/*\u00b7. ] ?{_BASE})*"
    rf"|{_BASE} vs\.? .+|1|1/{_BASE}|-+|#+|bits?|none|"
)
# What a logger writes in its third line of names, or RDB in its second.
_PROCESS = re.compile(r"avg|mean|smp|min|max|std|tot|med|wvc|sum|\d*[SNDM]|", re.I)


def shape(text: str) -> str:
    """The text with every digit a 9, and long rows of digits cut at five."""
    return re.sub("9{6,}", "99999", text.translate(_NINES))


_NINES = str.maketrans("012345678", "9" * 9)


@functools.lru_cache(4096)
def kind(cell: str, decimal: str) -> str:
    """`n` for a number, `t` a time, `m` missing, `w` words; of the shape of a cell."""
    if _NUMBERS[decimal].fullmatch(cell):
        return "n"
    if _TIME.fullmatch(cell):
        return "t"
    if not cell or is_missing(cell) or _NO_NUMBER.fullmatch(cell):
        return "m"
    marked = any(mark in cell for mark in "\u00b1(+jJ_")
    return "n" if decimal == "." and marked and is_number(cell) else "w"


def is_unit(cell: str) -> bool:
    """Whether a cell may be the unit of a column: `s`, `[V]`, `m/s`, nothing."""
    return _UNIT.fullmatch(cell) is not None


def is_process(cell: str) -> bool:
    """Whether a cell says how a logger made a number (Avg, Smp), or of which type it is (10N)."""
    return _PROCESS.fullmatch(cell) is not None


_GROUPS = re.compile(r"[-+]?\d{1,3}(?:[,.' \xa0\u202f]\d{3})+(?:[.,]\d*)?(?:[eE][-+]?\d+)?")
_FORTRAN = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))[dDqQ]([-+]?\d+)|([-+]?\d*\.\d+)([-+]\d{3})")


def as_python(cell: str, decimal: str = ".", thousands: str = "") -> str:
    """A number as Python writes it; another cell as it is.

    `1.234,5` where the decimal sign is a comma, `1,000` where commas part thousands, Fortran's `1.5D-03`,
    the minus sign of typography.
    """
    made = cell.replace("\u2212", "-") if "\u2212" in cell else cell
    if thousands and thousands in made and _GROUPS.fullmatch(made):
        made = made.replace(thousands, "")
    if decimal != ".":
        if "." in made:
            return cell
        made = made.replace(decimal, ".", 1)
    if match := _FORTRAN.fullmatch(made):
        made = f"{match[1] or match[3]}e{match[2] or match[4]}"
    if made is cell:
        return cell
    try:
        float(made)
    except ValueError:
        return cell
    return made

"""Texts of instruments that give no abscissas, but where they begin and how far they are apart.

Rigol's oscilloscopes: `X,CH1,Start,Increment,` above `Sequence,Volt,-2e-02,1e-03`, or `t0 = …, tInc = …` in
the line of names. Multichannel analysers: ORTEC's `.Spe` (MAESTRO user's manual, appendix on file formats:
`$DATA:`, `$ENER_FIT:`, `$MCA_CAL:`) and Amptek's `.mca`. PANalytical's `.xrdml` (XRD measurement schema: the
positions of an axis by their start and end; `counts` are as the detector counted, and `intensities` are
corrected for the beam's attenuation already).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.tables.even_numbers import Even, between
from gradcli.tables.marked_texts import Cells, Marked
from gradcli.tables.table_errors import TableError, counted

_EXPORT = "export it as CSV or text where it was made"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def _decimal(number: float) -> str:
    return repr(float(f"{number:.15g}"))


# -- Rigol ------------------------------------------------------------------------------------------
RIGOL = re.compile(
    rf"X,(?P<names>[^\n]*?),Start,Increment,*\s*\nSequence,(?P<units>[^\n]*?),"
    rf"(?P<start>{_NUMBER}),(?P<step>{_NUMBER}),*\s*\n"
)
RIGOL_NEW = re.compile(
    rf"(?P<names>[^\n]*?),\s*t0 *= *(?P<start>{_NUMBER})s?,\s*tInc *= *(?P<step>{_NUMBER})s?,*\s*\n"
)


def rigol(text: str, name: str) -> dict[str, Marked]:
    """The one table, with times in place of the numbers of samples."""
    found = RIGOL.match(text) or RIGOL_NEW.match(text)
    assert found is not None
    start, step = float(found["start"]), float(found["step"])
    times = Even(start, step)
    names = [one.strip() for one in found["names"].split(",") if one.strip()]
    counts = found.re is RIGOL
    there = not counts and names[0].lower().startswith("time")
    units: list[str] = []
    if counts:
        names, units = ["X", *names], ["s", *map(str.strip, found["units"].split(","))]
    elif not there:
        names = ["Time(s)", *names]
    width = len(names)

    def rows() -> Iterator[Cells]:
        for k, line in enumerate(text[found.end() :].split("\n")):
            cells = [cell.strip() for cell in line.split(",")]
            if not any(cells):
                continue
            if counts:
                cells[0] = repr(times(_whole(cells[0], name)))
            elif not there or not cells[0]:
                cells = [repr(times(k)), *cells[there:]]
            yield cells[:width] if not any(cells[width:]) else cells

    told = f"{names[0]} begins at {start:g} s, with steps of {step:g} s"
    return {"": Marked(names, rows, "" if there else told, units)}


def _whole(cell: str, name: str) -> int:
    try:
        return int(float(cell))
    except ValueError:
        raise TableError(f"{name}: `{cell}` is no number of a sample") from None


# -- multichannel analysers -----------------------------------------------------------------------
def ortec(text: str, name: str) -> dict[str, Marked]:
    """The spectrum of a `.Spe`: channel, energy where there is a calibration, counts."""
    blocks = {}
    for piece in re.split(r"(?m)^\$", text)[1:]:
        label, _, body = piece.partition("\n")
        blocks[label.strip().rstrip(":").upper()] = body.split("\n")
    cells = " ".join(blocks.get("DATA", [])).split()
    if len(cells) < 3:
        raise TableError(f"{name}: a spectrum without counts: $DATA: is missing", hint=_EXPORT)
    first, last = (int(float(cell)) for cell in cells[:2])
    counts = cells[2:]
    if len(counts) != last - first + 1:
        raise TableError(
            f"{name}: $DATA: has {counted(len(counts), 'channel')}, and says {first} to {last}",
            hint="the file is damaged; --separator blank reads it as text",
        )
    factors, unit = _calibration(blocks)
    told = _live(blocks.get("MEAS_TIM", []))
    return {"": _spectrum(counts, first, factors, unit, told)}


def _calibration(blocks: dict[str, list[str]]) -> tuple[list[float], str]:
    """(the factors of the channel's powers, the unit): MCA_CAL has more of them than ENER_FIT, and a unit."""
    tries = (blocks.get("MCA_CAL", [])[1:2], blocks.get("ENER_FIT", [])[:1])
    for words in (" ".join(lines).split() for lines in tries):
        factors = [float(word) for word in words if re.fullmatch(_NUMBER, word)]
        if len(factors) > 1 and any(factors[1:]):
            unit = words[-1] if not re.fullmatch(_NUMBER, words[-1]) else "keV"
            return factors, unit
    return [], ""


def _live(lines: Sequence[str]) -> str:
    words = " ".join(lines[:1]).split()
    return f"live time {words[0]} s, real time {words[1]} s" if len(words) > 1 else ""


def _spectrum(
    counts: Sequence[str], first: int, factors: Sequence[float], unit: str, told: str
) -> Marked:
    names, units = ["channel", "counts"], []
    if factors:
        names, units = ["channel", "energy", "counts"], ["", unit, ""] if unit else []

    def rows() -> Iterator[Cells]:
        for channel, cell in enumerate(counts, first):
            energy = sum(c * channel**k for k, c in enumerate(factors))
            yield [str(channel), *([_decimal(energy)] if factors else []), cell]

    return Marked(names, rows, told, units)


def amptek(text: str, name: str) -> dict[str, Marked]:
    """The spectrum of a `.mca` of Amptek's: channel, energy where there are points of calibration, counts."""
    found = re.search(r"<<DATA>>\s*\n(.*?)<<END>>", text, re.S)
    if found is None:
        raise TableError(f"{name}: a spectrum without <<DATA>> and <<END>>", hint=_EXPORT)
    times = [re.search(rf"(?m)^{kind}_TIME - (\S+)", text) for kind in ("LIVE", "REAL")]
    told = _live([" ".join(time[1] for time in times if time)])
    factors, unit, points = _line_of_calibration(text)
    if factors:
        told = "; ".join([*filter(None, [told]), f"energy by the line through {points} points"])
    return {"": _spectrum(found[1].split(), 0, factors, unit, told)}


def _line_of_calibration(text: str) -> tuple[list[float], str, int]:
    """(the two factors of the line nearest to pairs of channel and energy, the unit, how many pairs)."""
    found = re.search(r"<<CALIBRATION>>\s*\n(?:LABEL - *(.*)\n)?([^<]*)", text)
    words = found[2].split() if found else []
    if found is None or len(words) % 2 or not all(re.fullmatch(_NUMBER, w) for w in words):
        return [], "", 0
    pairs = [(float(a), float(b)) for a, b in zip(words[::2], words[1::2], strict=True)]
    count = len(pairs)
    if len({channel for channel, _ in pairs}) < 2:
        return [], "", count
    x, y = (sum(column) / count for column in zip(*pairs, strict=True))
    slope = sum((a - x) * (b - y) for a, b in pairs) / sum((a - x) ** 2 for a, _ in pairs)
    unit = (found[1] or "").strip()
    return [y - slope * x, slope], "" if unit.lower() == "channel" else unit, count


# -- PANalytical ------------------------------------------------------------------------------------
def xrdml(text: str, name: str) -> dict[str, Marked]:
    """The scans of an XRDML file by number: the axes that move, and the counts."""
    import xml.etree.ElementTree as tree

    root = tree.fromstring(re.sub(r"^<\?xml[^>]*\?>", "", text.lstrip()))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # without the namespace, which has the version
    scans = [s for s in root.iter("scan") if s.find("dataPoints") is not None]
    if not scans:
        raise TableError(f"{name}: an XRDML file without a scan", hint=_EXPORT)
    return {str(k): _scan(scan, name) for k, scan in enumerate(scans, 1)}


def _scan(scan: Any, name: str) -> Marked:
    points = scan.find("dataPoints")
    found = next(
        (points.find(n) for n in ("intensities", "counts") if points.find(n) is not None), None
    )
    if found is None:
        raise TableError(f"{name}: a scan without intensities or counts", hint=_EXPORT)
    values = [float(cell) for cell in (found.text or "").split()]
    told = _text(points, "commonCountingTime")
    told = f"counting time {told} s a point" if told else ""
    factors = (points.findtext("beamAttenuationFactors") or "").split()
    if found.tag == "counts" and factors:
        values = [value * float(factor) for value, factor in zip(values, factors, strict=True)]
        told += ", counts times the factors of the beam's attenuation"
    columns, names, units = [], [], []
    for axis in points.iter("positions"):
        positions = _positions(axis, len(values))
        if positions is not None:
            columns.append(positions)
            names.append(axis.get("axis", ""))
            units.append(axis.get("unit", ""))
    names.append(found.tag)
    units.append(found.get("unit", "counts"))
    cells = [list(map(_decimal, column)) for column in (*columns, values)]
    return Marked(names, lambda: zip(*cells, strict=True), told, units)


def _text(element: Any, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


def _positions(axis: Any, count: int) -> list[float] | None:
    """The positions of an axis at all points; None where it stands still."""
    if told := _text(axis, "listPositions"):
        return [float(cell) for cell in told.split()]
    ends = _text(axis, "startPosition"), _text(axis, "endPosition")
    if not all(ends):
        return None
    start, end = map(float, ends)
    at = between(start, end, count)
    return [at(k) for k in range(count)]


__all__ = ["RIGOL", "RIGOL_NEW", "amptek", "ortec", "rigol", "xrdml"]

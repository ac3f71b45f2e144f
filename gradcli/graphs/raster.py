"""SVG to PNG and PDF, by CairoSVG (extra `picture`)."""

from __future__ import annotations

from typing import Any

MOST_PIXELS = 60_000_000
MISSING = "PNG and PDF need CairoSVG: pip install cairosvg (or -o graph.svg, which needs nothing)"


def _renderer() -> Any:
    try:
        import cairosvg
    except (ImportError, OSError) as error:  # OSError: the library cairo itself is missing
        raise ImportError(MISSING) from error
    return cairosvg


def scale_of(svg: str, scale: float = 2.0) -> float:
    """The pixels a unit: `scale`, or fewer where the picture would be too large to show."""
    import re
    from math import sqrt

    size = re.search(r'width="(\d+)" height="(\d+)"', svg)
    if size is None:
        return scale
    width, height = int(size[1]), max(int(size[2]), 1)
    area = width * height * scale * scale
    scale = min(scale, scale * sqrt(MOST_PIXELS / max(area, 1)), 30_000 / height)
    return min(scale, 30_000 / max(width, 1))


def svg_to_png(svg: str, scale: float = 2.0) -> bytes:
    """Render at `scale` pixels a unit; fewer where the picture would be too large to show."""
    scale = scale_of(svg, scale)
    found: bytes = _renderer().svg2png(bytestring=svg.encode(), scale=scale)
    return found


def svg_to_pdf(svg: str) -> bytes:
    """Render as one page of the picture's size."""
    found: bytes = _renderer().svg2pdf(bytestring=svg.encode())
    return found

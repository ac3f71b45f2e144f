"""Pictures of functions and tables: sampled curves, drawn on a terminal, by matplotlib or by LaTeX."""

import os

FORMATS = ("svg", "png", "pdf")
LATEX = ("tex", "tikz", "pgf")  # endings of a picture of pgfplots
MISSING = "pictures in files need matplotlib: pip install matplotlib"


def ending(path: str) -> str | None:
    """Which picture the ending of a path asks for."""
    found = os.path.splitext(path.lower())[1][1:]
    return found if found in FORMATS else None

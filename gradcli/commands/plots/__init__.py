"""Pictures of functions and tables: sampled curves, drawn on a terminal or by matplotlib."""

import os

FORMATS = ("svg", "png", "pdf")
MISSING = "pictures in files need matplotlib: pip install matplotlib"


def ending(path: str) -> str | None:
    """Which picture the ending of a path asks for."""
    found = os.path.splitext(path.lower())[1][1:]
    return found if found in FORMATS else None

"""The process that is gradcli's own, from its start: the console script, and `python -m gradcli`."""

import sys

from gradcli.interrupts import at_once

if sys.argv[0].rpartition("/")[2].partition(".")[0] in ("gradcli", "__main__"):
    at_once()  # before anything else is imported

import gc

# A start makes many objects and next to no garbage, and so do the graphs that a command shows.
gc.set_threshold(100_000, 20, 20)

from gradcli.cli import main  # noqa: E402

__all__ = ["main"]

if __name__ == "__main__":
    main()

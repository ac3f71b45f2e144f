"""Times as ratios: `python -m tests.benchmarks` measures gradcli beside its peers and prints a table.

A worker is a fresh process for one library and one problem. Workers of a problem take turns (A B C A B
C ...), so that what else the machine does falls on all of them; what is reported is the median of the
ratios of neighbours in time, and its spread. Bare seconds are never quoted.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from tests.benchmarks import plot, table
from tests.benchmarks.jobs import GROUPS, measure
from tests.benchmarks.machine import PEERS, find_peers, machine
from tests.benchmarks.records import Results


def arguments() -> argparse.ArgumentParser:
    """What may be asked."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)"
    )
    parser.add_argument(
        "--peers",
        default="",
        metavar="NAME[=PYTHON],...",
        help=f"those to measure, each in an environment of its own if need be (default: "
        f"what is installed of {', '.join(PEERS)})",
    )
    parser.add_argument("--rounds", type=int, default=7, help="turns of every worker (default: 7)")
    parser.add_argument(
        "--largest",
        type=float,
        default=1e8 if _memory() > 20e9 else 1e7,
        help="elements, operations or bytes of the largest work (default: 1e8, with less than 20 GB "
        "of memory 1e7)",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="work whose name contains TEXT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument(
        "--from", type=Path, metavar="FILE", dest="source", help="results to show; measure nothing"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw cost against size (SVG, PNG)"
    )
    parser.add_argument("--page", action="store_true", help="put the table into docs/speed.md")
    return parser


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def run(given: argparse.Namespace) -> Results:
    """Measure; what is found is written as it comes."""
    pythons, versions, missing = find_peers(given.peers)
    for peer in missing:
        print(f"skipped {peer}: not installed", file=sys.stderr)
    results = Results({**machine(versions), "missing": missing})
    groups = given.groups or list(GROUPS)
    for record in measure(groups, pythons, given.rounds, int(given.largest), given.only):
        results.records.append(record)
        ratios = ", ".join(f"{name} {m.value:.3g}" for name, m in record.measures.items())
        what = f"{record.group} {record.name} {record.size} {record.dtype}"
        print(f"{what}: {ratios or record.skipped}", file=sys.stderr, flush=True)
        if given.json is not None:
            results.write(given.json)
    return results


def main() -> None:
    """Measure or read, print, draw, write."""
    parser = arguments()
    given = parser.parse_args()
    wrong = set(given.groups) - set(GROUPS)
    if wrong:
        parser.error(f"unknown group {min(wrong)}: choose from {', '.join(GROUPS)}")
    if given.plot is not None and importlib.util.find_spec("matplotlib") is None:
        sys.exit("error: --plot needs matplotlib: pip install 'gradcli[plot]'")
    try:
        results = run(given) if given.source is None else Results.read(given.source)
        table.show(results)
        if given.plot is not None:
            plot.draw(results, given.plot)
        if given.page:
            table.write_page(results)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

"""Times as ratios: `python -m tests.benchmarks` measures gradcli beside its peers and prints a table.

A worker is a fresh process for one library and one problem. Workers of a problem take turns (A B C A B
C ...), so that what else the machine does falls on all of them; what is reported is the median of the
ratios of neighbours in time, and its spread. Bare seconds are never quoted.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
from pathlib import Path

from tests.benchmarks import growth, limit, plot, symbolic, table
from tests.benchmarks.jobs import GROUPS, Wanted, measure
from tests.benchmarks.machine import PEERS, STORED, file_name, find_peers, machine, processor
from tests.benchmarks.records import Results, stored
from tests.benchmarks.torch_programs import __main__ as torch_programs

WATCHED, FORMULAS = "torch_programs", "symbolic"


def arguments() -> argparse.ArgumentParser:
    """What may be asked."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "groups",
        nargs="*",
        metavar="GROUP",
        help=f"of {', '.join(GROUPS)} (default: all); or {WATCHED} alone: PyTorch programs that "
        f"`graph --torch` watches; or {FORMULAS} alone: derivatives beside SymPy's and SymEngine's",
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
    parser.add_argument(
        "--only", default="", metavar="TEXT,...", help="work whose name contains one of these"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="stop then: fewer rounds where many are slow, and what has not come to its turn is left",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the results there; what the file has of the same commit is not measured again",
    )
    parser.add_argument(
        "--limit",
        action="store_true",
        help="what each row must move and run, how long that takes here, and gradcli's time beside it",
    )
    parser.add_argument(
        "--growth",
        action="store_true",
        help="time and memory against size, drawn as docs/growth.svg (--only: some of the works)",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="--json with the file of this processor in docs/benchmarks",
    )
    parser.add_argument(
        "--again", action="store_true", help="measure again what the file has of the same commit"
    )
    parser.add_argument(
        "--from",
        type=Path,
        nargs="+",
        metavar="FILE",
        dest="sources",
        help="results to show, of several machines the worse ones; measure nothing",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw cost against size (SVG, PNG)"
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help="put the files of docs/benchmarks into docs/speed.md and README.md, and measure "
        "nothing but with --record",
    )
    return parser


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def run(given: argparse.Namespace) -> Results:
    """Measure; what is found is written as it comes."""
    pythons, versions, missing = find_peers(given.peers)
    for peer in missing:
        print(f"skipped {peer}: not installed", file=sys.stderr)
    here = machine(versions)
    path = STORED / file_name(here["processor"]) if given.record else given.json
    before = Results.read(path) if path is not None and path.exists() else Results({})
    known, copies = before.records, "copy_gb_per_s"
    here[copies] = max(here[copies], before.machine.get(copies, 0.0))  # at its quietest
    results = Results({**here, "missing": missing}, known)
    wanted = Wanted(
        given.groups or GROUPS,
        given.only.split(","),
        int(given.largest),
        given.rounds,
        given.minutes,
        () if given.again else {r.key for r in known if r.commit == here["commit"] and r.measures},
    )
    for record in measure(wanted, pythons):
        record.commit = here["commit"]
        results.add(record)
        ratios = ", ".join(f"{name} {m.value:.3g}" for name, m in record.measures.items())
        what = f"{record.group} {record.name} {record.size} {record.dtype}"
        print(f"{what}: {ratios or record.skipped}", file=sys.stderr, flush=True)
        if path is not None:
            results.write(path)
    return results


def limits(given: argparse.Namespace) -> None:
    """The limits, beside what is recorded of this processor."""
    path = STORED / file_name(processor())
    known = Results.read(path).records if path.exists() else []
    wanted = Wanted(given.groups or GROUPS, given.only.split(","), int(given.largest), given.rounds)
    limit.show(wanted, known)


def found(given: argparse.Namespace) -> list[Results]:
    """What there is to show."""
    if given.sources:
        return [Results.read(path) for path in given.sources]
    if given.page and not given.record:
        return stored(STORED)
    measured = run(given)
    return stored(STORED) if given.page else [measured]


def watch(given: argparse.Namespace) -> None:
    """Programs of PyTorch's, alone and watched."""
    if importlib.util.find_spec("torch") is None:
        sys.exit("error: torch_programs needs PyTorch: pip install torch")
    for program in torch_programs.PROGRAMS:
        if any(text in program for text in given.only.split(",")):
            torch_programs.main([program], given.rounds)


def main() -> None:
    """Measure or read, print, draw, write."""
    parser = arguments()
    given = parser.parse_args()
    if given.groups == [WATCHED]:
        return watch(given)
    if given.groups == [FORMULAS]:
        return symbolic.show(given.peers, given.rounds, given.only, given.minutes)
    wrong = set(given.groups) - set(GROUPS)
    if wrong:
        parser.error(f"unknown group {min(wrong)}: choose from {', '.join(GROUPS)}")
    if (given.plot is not None or given.growth) and importlib.util.find_spec("matplotlib") is None:
        sys.exit("error: pictures need matplotlib: pip install matplotlib")
    try:
        if given.growth:
            names = [name for name in growth.WORKS if any(n in name for n in given.only.split(","))]
            return growth.record(names, int(given.largest))
        if given.limit:
            return limits(given)
        results = found(given)
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

"""python -m tests.fuzz [--minutes M] [--cases N] [--start K] [--seed S] [NAME…]: run generators in turn."""

from __future__ import annotations

import argparse
import secrets
import sys
import time

from tests import fuzz


def main() -> int:
    """0 if no generator found a failure, 1 if one did."""
    generators = fuzz.generators()
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(generators) or "none yet"
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="for each generator (1)")
    parser.add_argument("--cases", type=int, help="for each generator, whatever the time")
    parser.add_argument("--start", type=int, default=0, help="the number of the first case (0)")
    parser.add_argument("--seed", type=int, help="a number (another each time)")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in generators]
    if unknown:
        parser.error(f"no generator {', '.join(unknown)}; there are {', '.join(generators)}")
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    fuzz.count, fuzz.start = options.cases, options.start
    failed = False
    for name in options.names or generators:
        print(f"{name}: seed {seed}", flush=True)
        start = time.monotonic()
        count = 0
        for failure in generators[name].run(seed, options.minutes * 60):
            count += 1
            print(failure, end="\n\n", flush=True)
        took = time.monotonic() - start
        print(f"{name}: {count} failures in {took:.0f} s, seed {seed}", flush=True)
        failed = failed or count > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""What a function says of each dtype that `out=` may have: asked of torch (recorded) and of gradcli.

A row is a sample call of the operator table, asked with an `out` of its result's shape in each of `KINDS`; of
several results one at a time is of another dtype. The answer is None where it is written, else the first
line of the error.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("out_dtypes.json")
KINDS = ("float32", "float64", "int64", "int32", "bool", "complex128", "float16", "uint8")
SAMPLES = 4  # of a function


class Names(dict[str, Any]):
    """The names of a sample: those of a library, then Python's."""

    def __init__(self, library: Any, **more: Any) -> None:
        super().__init__(more)
        self.library = library

    def __missing__(self, name: str) -> Any:
        found = getattr(self.library, name, None)
        return getattr(builtins, name) if found is None else found


def samples() -> Iterator[tuple[str, str]]:
    """(name, arguments) of calls of all functions with `out=`."""
    from gradcli.engine.registry import table

    table.load()
    for name, entry in sorted(table.FUNCTIONS.items()):
        if entry.name == name and any(
            "out=" in s for s in (entry.parser and entry.parser.texts) or ()
        ):
            calls = [s for s in entry.samples if s.startswith(f"{name}(")]
            yield from ((name, call.removeprefix(name)) for call in calls[:SAMPLES])


def function(library: Any, name: str) -> Any:
    """The function of a dotted name; None where there is none."""
    for part in name.split("."):
        library = getattr(library, part, None)
    return library


def answers(library: Any, name: str, arguments: str) -> list[list[str | None]] | None:
    """For each kind, what is said of an `out` of it in place of each result; None where the call fails."""
    called = function(library, name)
    if called is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            library.manual_seed(0)
            given = eval(f"_given{arguments}", Names(library, _given=lambda *a, **k: (a, k)))
            found = called(*given[0], **given[1])
        except Exception:
            return None
        several = isinstance(found, (tuple, list))
        results = list(found) if several else [found]
        return [
            [
                _said(library, called, given, results, at, kind, several)
                for at in range(len(results))
            ]
            for kind in KINDS
        ]


def _said(
    library: Any, called: Any, given: Any, results: list[Any], at: int, kind: str, several: bool
) -> str | None:
    outs = [library.empty_like(r) for r in results]
    outs[at] = library.empty(tuple(results[at].shape), dtype=getattr(library, kind))
    try:
        called(*given[0], **given[1], out=tuple(outs) if several else outs[0])
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    return None

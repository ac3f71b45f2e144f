"""One test for many rows: each of them runs, and all that fail are named.

A test of its own for each of fifteen thousand samples costs more than the samples do. So a sweep is a few
tests; each runs its part of the rows, every row as if it were alone, and its failure names the rows:

    FAILED tests/engine/registry/test_samples.py::test_as_torch[3] - Failed: 1 of 76: cumsum(x, 0)

`pytest -k logcumsumexp`, or `--row "cumsum("`, runs only the rows with these words in
their names.
"""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gradcli.engine.core import modes
from gradcli.engine.system import dtypes

SHOWN = 5  # tracebacks; the names are told of all that fail
EXHAUSTIVE = (pytest.mark.long, pytest.mark.exhaustive)


def some(rows: Iterable[Any], one_in: int) -> list[Any]:
    """Rows for `parametrize` in a long test: one in so many, and with `-m exhaustive` the others too."""
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)), marks=EXHAUSTIVE * (k % one_in > 0)
        )
        for k, row in enumerate(rows)
    ]


@contextmanager
def as_it_was() -> Iterator[None]:
    """Put back the default dtype and grad mode; where a test asks torch, also its default device.

    A default device of torch's is a mode that sees every later call.
    """
    before, state = dtypes.get_default_dtype(), modes.local.state
    torch = sys.modules.get("torch")
    torchs = torch.get_default_dtype() if torch else None
    try:
        yield
    finally:
        dtypes.set_default_dtype(before)
        modes.restore(state)
        if torch := sys.modules.get("torch"):
            torch.set_default_dtype(torchs or torch.float32)
            torch.set_default_device(None)


def sweep(
    names: str | tuple[str, ...],
    rows: Callable[[], Iterable[Any]] | Iterable[Any],
    *,
    name: Callable[..., str] | None = None,
    parts: int = 4,
    often: int | None = None,
) -> Callable[[Callable[..., None]], Any]:
    """Like `pytest.mark.parametrize`, in so many tests; `rows` may be a function, called when they run.

    `name` tells a row's name from its values; without it, it is the first text or command line among them.
    A row may not skip: what does not belong is left out of `rows`. Of the parts, so many run `often`; the
    others are long.
    """
    wanted = (names,) if isinstance(names, str) else names

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def run(part: int, pytestconfig: pytest.Config, **fixtures: Any) -> None:
            every = [
                (row,) if isinstance(names, str) else tuple(row)
                for row in (rows() if callable(rows) else rows)
            ]
            assert len(every) >= parts, f"{len(every)} rows for {parts} tests"
            own = [(_name(row, name), row) for row in every[part::parts]]
            words = pytestconfig.getoption("row")
            if words is not None:
                own = [(title, row) for title, row in own if words in title]
                if not own:
                    pytest.skip("no such row here")
            failed = []
            for title, row in own:
                try:
                    with as_it_was():
                        test(**fixtures, **dict(zip(wanted, row, strict=True)))
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    failed.append((title, error))
            if failed:
                pytest.fail(_report(failed, len(own)), pytrace=False)

        own = inspect.signature(test).parameters
        kept = [own[n] for n in own if n not in wanted]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        added = [inspect.Parameter(n, kind) for n in ("part", "pytestconfig")]
        run.__signature__ = inspect.Signature([*added, *kept])  # type: ignore[attr-defined]
        often_or_long = [
            part if often is None or part < often else pytest.param(part, marks=pytest.mark.long)
            for part in range(parts)
        ]
        return pytest.mark.parametrize("part", often_or_long)(run)

    return decorate


def _name(row: tuple[Any, ...], name: Callable[..., str] | None) -> str:
    if name is not None:
        return name(*row)
    texts = (v if isinstance(v, str) else _command_line(v) for v in row)
    return next(filter(None, texts), repr(row))


def _command_line(value: Any) -> str:
    """The words of a command line, where a value is one."""
    words = isinstance(value, list) and all(isinstance(word, str) for word in value)
    return " ".join(value) if words else ""


def _report(failed: list[tuple[str, BaseException]], count: int) -> str:
    """All names in one line; then what went wrong with the first of them."""
    lines = [f"{len(failed)} of {count}: " + "; ".join(title for title, _ in failed)]
    for title, error in failed[:SHOWN]:
        where = error.__traceback__ and error.__traceback__.tb_next  # without the frame of `sweep`
        lines += ["", f"-- {title}", *traceback.format_exception(type(error), error, where)]
    return "\n".join(lines)

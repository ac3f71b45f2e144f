"""No test leaves a trace: the default dtype, grad mode and the generator are put back."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.sweep import as_it_was

# The same examples in every run; of the other profiles `many` has more of them, `fresh` looks for new ones.
settings.register_profile("same", derandomize=True, database=None, deadline=None, max_examples=30)
settings.register_profile("many", settings.get_profile("same"), max_examples=400)
settings.register_profile("fresh", settings.get_profile("many"), derandomize=False)
settings.load_profile("same")

# Nor do numbers and words of the sources, which hypothesis would read in each worker, change them.
providers._get_local_constants = lambda: providers._local_constants

# Workers, and every process they start, share the cores: none needs a second thread for its sums.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# As the program itself: see gradcli/__main__.py.
gc.set_threshold(100_000, 20, 20)


def _bytecode() -> set[Path]:
    root = Path(__file__).parents[1]
    return {
        found
        for room in ("gradcli", "tests", "docs")
        for found in (root / room).rglob("__pycache__")
    }


def _leave_no_bytecode(before: set[Path]) -> None:
    for folder in _bytecode() - before:
        shutil.rmtree(folder, ignore_errors=True)


# Without bytecode each of a hundred processes would compile the sources again: it is kept until we end.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    atexit.register(_leave_no_bytecode, _bytecode())

# Without a buffer of its own an output fails elsewhere than it does for a person.
os.environ.pop("PYTHONUNBUFFERED", None)

# A shell ignores Ctrl-C in what it starts in the background, and what we start would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row", help="of the sweeps, only the rows whose names contain this")


def pytest_collection_finish() -> None:
    """What was collected stays: the collector need not go through it again at every turn."""
    gc.collect()
    gc.freeze()


def _is_absent(module: str) -> bool:
    return importlib.util.find_spec(module) is None


# What a test may be about without being a dependency.
OPTIONAL = (
    "IPython astropy cairosvg dask distributed duckdb h5py jax latex2mathml matplotlib mpmath nptdms "
    "lvm_read openpyxl pandas polars prompt_toolkit pyarrow pyte python_calamine scipy skrf"
    " spicelib torch"
).split()


def _rows_by_keyword(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`-k NAME`, where no test has that name: the rows of the sweeps that have, as with `--row NAME`.

    A sweep's rows are no tests of their own (see `tests/sweep.py`), so that pytest does not know their names.
    """
    word = config.option.keyword
    known = any(word in item.nodeid for item in items)
    if not word or " " in word or config.option.row is not None or known:
        return
    config.option.row, config.option.keyword = word, ""
    items[:] = [item for item in items if "part" in getattr(item, "fixturenames", ())]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _rows_by_keyword(config, items)
    """Leave out the tests of packages that are not here: there is nothing that they could find wrong."""
    absent = {module for module in OPTIONAL if _is_absent(module)}
    kept, left_out = [], []
    for item in items:
        needed = {module for mark in item.iter_markers("needs") for module in mark.args}
        assert needed <= set(OPTIONAL), f"{item.nodeid}: {needed}"
        (left_out if needed & absent else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say so."""
    if absent := [module for module in OPTIONAL if _is_absent(module)]:
        terminalreporter.write_line(
            f"without the tests of what is not installed: {', '.join(absent)}"
        )


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    with as_it_was():
        yield

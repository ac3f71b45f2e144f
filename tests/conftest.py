"""No test leaves a trace: the default dtype, grad mode and the generator are put back."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.sweep import as_it_was

# The same examples in every run; of the other profiles `many` has more of them, `fresh` looks for new ones.
settings.register_profile("same", derandomize=True, database=None, deadline=None, max_examples=60)
settings.register_profile("many", settings.get_profile("same"), max_examples=400)
settings.register_profile("fresh", settings.get_profile("many"), derandomize=False)
settings.load_profile("same")


# As the program itself: see gradcli/__main__.py.
gc.set_threshold(100_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row", help="of the sweeps, only the rows whose names contain this")


def pytest_collection_finish() -> None:
    """What was collected stays: the collector need not go through it again at every turn."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    with as_it_was():
        yield

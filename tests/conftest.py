"""No test leaves a trace: the default dtype, grad mode and the generator are put back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.sweep import as_it_was

# The same examples in every run; `--hypothesis-profile fresh` looks for others.
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.register_profile("fresh", derandomize=False)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row", help="of the sweeps, only the rows whose names contain this")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    with as_it_was():
        yield

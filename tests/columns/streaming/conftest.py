"""What the tests of streams share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A running scheduler with two workers, as somebody else starts it."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as found:
        yield found.scheduler_address

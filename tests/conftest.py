"""No test leaves a trace: the default dtype, grad mode and the generator are put back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from gradcli.engine import dtypes, modes

# The same examples in every run; `--hypothesis-profile fresh` looks for others.
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.register_profile("fresh", derandomize=False)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before, state = dtypes.get_default_dtype(), modes.local.state
    yield
    dtypes.set_default_dtype(before)
    modes.restore(state)

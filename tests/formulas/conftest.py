"""Everything here is checked in double precision, as on the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gradcli


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    yield
    gradcli.set_default_dtype(before)

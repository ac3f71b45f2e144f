"""The pytest plugin: the fixture `assert_gradients`."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture(name="assert_gradients")
def assert_gradients_fixture() -> Callable[..., None]:
    """`gradcli.testing.assert_gradients`: compare gradients with differences, or with what is expected."""
    from gradcli.testing import assert_gradients

    return assert_gradients

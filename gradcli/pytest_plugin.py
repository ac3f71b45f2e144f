"""The pytest plugin: the fixture `assert_gradients`; no warnings of NumPy's about lines of ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Tests have filters of their own, which forget what the first operation sets (`core.primitive`)."""
    config.addinivalue_line("filterwarnings", r"ignore::RuntimeWarning:gradcli\.")


# Of the session: hypothesis refuses a fixture that it would have to make anew for every example.
@pytest.fixture(name="assert_gradients", scope="session")
def assert_gradients_fixture() -> Callable[..., None]:
    """`gradcli.transforms.assertions.assert_gradients`: compare gradients with differences, or
    with what is expected."""
    from gradcli.transforms.assertions import assert_gradients

    return assert_gradients

"""The pytest plugin: the fixture `assert_gradients`; no warnings and no frames of ours in a test's report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Tests have filters of their own, which forget what the first operation sets (`core.primitive`)."""
    config.addinivalue_line("filterwarnings", r"ignore::RuntimeWarning:gradcli\.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Hide the frames of gradcli in a traceback: a test's author looks for his own line.

    `--full-trace` shows them. In gradcli's own tests they are shown.
    """
    if call.excinfo is None or item.config.rootpath == Path(__file__).parents[1]:
        return
    for entry in call.excinfo.traceback:
        names = entry.frame.f_globals
        if names.get("__name__", "").partition(".")[0] == "gradcli":
            names.setdefault("__tracebackhide__", True)


# Of the session: hypothesis refuses a fixture that it would have to make anew for every example.
@pytest.fixture(name="assert_gradients", scope="session")
def assert_gradients_fixture() -> Callable[..., None]:
    """`gradcli.transforms.assertions.assert_gradients`: compare gradients with differences, or
    with what is expected."""
    from gradcli.transforms.assertions import assert_gradients

    return assert_gradients

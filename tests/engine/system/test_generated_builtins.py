"""Generated code reaches no builtins, but may warn."""

from __future__ import annotations

import pytest

from gradcli.engine.system.generated_builtins import NO_BUILTINS


@pytest.mark.parametrize("code", ["import os", "import warnings.nothing", "open('x')", "len([])"])
def test_there_are_none(code: str) -> None:
    with pytest.raises((ImportError, NameError)):
        exec(code, {"__builtins__": NO_BUILTINS})


def test_a_warning_is_one() -> None:
    """Where NumPy warns, Python 3.13 imports `warnings` with the builtins of the code that runs."""
    exec("import warnings", space := {"__builtins__": NO_BUILTINS})
    assert space["warnings"].__name__ == "warnings"

"""Every example runs, and prints what is stored beside it (tests/examples/record.py)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from tests.commands.terminal import environment
from tests.examples.running import FOLDER, PROGRAMS, ROOT, SCRIPTS, output, stored

EXAMPLES = [*SCRIPTS, *PROGRAMS]
# What else is installed for pytest has no part in it.
QUICKLY = [
    word for name in ("benchmark", "hypothesispytest", "xdist") for word in ("-p", f"no:{name}")
]
SLOW = set(
    "custom_function error_propagation first_ten_minutes fits least_squares least_squares_fast "
    "newton pipes".split()
)


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.long] * (p.stem in SLOW)) for p in EXAMPLES],
)
def test_example(path):
    if "jq" in path.read_text(encoding="utf-8") and shutil.which("jq") is None:
        pytest.skip("needs jq")
    found, wanted = output(path), stored(path).read_text(encoding="utf-8")
    # How many steps a fit takes at the noise of its last digits depends on the processor's BLAS.
    assert _without_steps(found) == _without_steps(wanted)


def _without_steps(text):
    return re.sub(r"iterations = \d+", "iterations", text)


def test_nothing_is_stored_without_an_example():
    names = {path.stem for path in EXAMPLES}
    assert {path.stem for path in (FOLDER / "output").iterdir()} == names


@pytest.mark.long
def test_the_example_for_pytest(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")  # not the project's own
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", *QUICKLY,
         *([] if plugin_is_installed() else ["-p", "gradcli.pytest_plugin"]),
         "-c", str(tmp_path / "pytest.ini"), "test_gradients.py"],
        cwd=FOLDER, env=environment(PYTHONPATH=str(ROOT), PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def plugin_is_installed():
    from importlib.metadata import entry_points

    return any(point.value == "gradcli.pytest_plugin" for point in entry_points(group="pytest11"))


def test_every_error_of_the_first_ten_minutes_is_explained():
    text = stored(FOLDER / "first_ten_minutes.sh").read_text(encoding="utf-8")
    errors = re.findall(r"^(?:gradcli: )?error: .*\n(?:(?!\$ ).*\n)*?\(exit code \d\)$", text, re.M)
    assert len(errors) >= 8
    for error in errors:
        assert "\nhint: " in error, error
    assert "Traceback" not in text and "unexpected" not in text
    assert text.count("(exit code") == len(errors)

"""What type checkers see: the stubs are those of the table, and a user's program passes."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.torch import make_stubs

PROGRAM = Path(__file__).parent / "examples" / "typed_program.py"


@pytest.mark.long
def test_stubs_are_those_of_the_table() -> None:
    for path, text in make_stubs.texts().items():
        assert path.read_text() == text, f"python -m gradcli.torch.make_stubs ({path.name})"


@pytest.mark.long
def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(PROGRAM), run_name="__main__")
    assert capsys.readouterr().out.startswith("3*x**2 2*x [2. 2. 2.]\n")


@pytest.mark.long
def test_mypy_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    source = tmp_path / "program.py"
    source.write_text(PROGRAM.read_text() + "reveal_type(loss(x=torch.ones(2)))\n")
    argv = [sys.executable, "-m", "mypy", "--strict", str(source)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "Success" in done.stdout, done.stdout
    assert 'Revealed type is "gradcli.engine.core.tensor.Tensor"' in done.stdout


@pytest.mark.long
def test_pyright_finds_nothing(tmp_path: Path) -> None:
    if (pyright := shutil.which("pyright")) is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "program.py").write_text(PROGRAM.read_text())
    argv = [pyright, "--pythonpath", sys.executable, "program.py"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path)
    assert "0 errors" in done.stdout, done.stdout

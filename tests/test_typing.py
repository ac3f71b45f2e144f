"""What type checkers see: the stubs are those of the table, and a user's program passes."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradcli
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


# What a checker finds, and the types that it tells.
FOUND = """\
import numpy as np
import gradcli
a: int = gradcli.diff("x")  # [assignment]
gradcli.grda  # [attr-defined]
gradcli.compile(str).valu_and_grad  # [attr-defined]
b: str = gradcli.grad("x**2", x=3)  # [assignment]
c: str = gradcli.hessian("x**2", x=3)  # [assignment]
d: dict[str, gradcli.Tensor] = gradcli.grad("x*y", x=3, y=2, wrt="x")  # [assignment]
gradcli.check("x**2", x=3).derivative  # [attr-defined]
"""
TAKEN = """\
import numpy as np
import gradcli
gradcli.jvp(lambda x: x, (np.ones(3),), (np.ones(3),))
gradcli.diff("x*y")["x"].upper()
gradcli.diff("x").upper()
gradcli.grad("x*y", x=3, y=2)["x"].item()
a: dict[str, gradcli.Tensor] = gradcli.grad("x*y", x=3, y=2)
b: gradcli.Tensor = gradcli.grad("x*y", x=3, y=2)
c: dict[str, gradcli.Tensor] = gradcli.grad("x*y", x=3, y=2, wrt=["x"])
gradcli.hessian("x*y", x=3, y=2)["x"]["y"].item()
gradcli.value_and_grad("x*y", x=3, y=2)[1]["x"].item()
gradcli.check("x**2", expected="3*x", x=3).derivative
gradcli.check("x**2", x=3).by["x"].ok
gradcli.hessian(lambda x: x, sparse=True)(np.ones(3)).dense()
gradcli.jacobian("x**2", x=[1, 2], sparse=True).to_scipy()
gradcli.compile("x**2").hessian(x=3.0)
gradcli.cuda.is_available()
"""


@pytest.mark.long
def test_mypy_finds_what_is_wrong(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    names = sorted({*gradcli._HOME, *gradcli._TORCH})
    (tmp_path / "found.py").write_text(FOUND)
    (tmp_path / "taken.py").write_text(TAKEN + "".join(f"gradcli.{name}\n" for name in names))
    argv = [sys.executable, "-m", "mypy", "--strict", "found.py", "taken.py"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path)
    said = [line.split(": ") for line in done.stdout.splitlines() if ": error: " in line]
    wanted = [
        (f"found.py:{number}", line.split("# ")[1])
        for number, line in enumerate(FOUND.splitlines(), 1)
        if "# " in line
    ]
    assert [(parts[0], parts[-1].split("  ")[-1]) for parts in said] == wanted, done.stdout

"""The tests on every supported Python, and what is published: `pipx run nox`, or `nox -s build`.

A Python that is not on this machine is skipped. `nox -s tests-3.13 -- -q tests/commands` passes
arguments on to pytest; what must hold before a change is good is in `.ci/run`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["tests", "oldest", "site", "build"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
# The oldest whose graphs are drawn, the oldest that tells all, the reference, and what pip gives today.
TORCHES = ["2.9.1", "2.10.0", "2.13.0", "newest"]
LIVE = (
    "tests/test_torch_answers.py",
    "tests/test_torch_nests.py",
    "tests/test_torch_says.py",
    "tests/test_random_programs.py",
    "tests/engine/registry/test_against_torch.py",
)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The whole suite, with the newest NumPy that this Python has."""
    session.install(".[test]")
    session.run("pytest", "-q", *session.posargs)


def floors() -> list[str]:
    """Every version that pyproject.toml promises to be enough, to the letter: `numpy==2.3`."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    wanted += [one for name, own in extras.items() if name not in ("docs", "bench") for one in own]
    return sorted({one.replace(">=", "==") for one in wanted})


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """The whole suite with the oldest version of everything that is promised."""
    session.install(*floors(), ".")
    session.run("pytest", "-q", *session.posargs)


@nox.session(python="3.11")
@nox.parametrize("torch", TORCHES)
def torch_versions(session: nox.Session, torch: str) -> None:
    """The tests of graphs, and what each version answers differently: `nox -s torch_versions`.

    With the libraries that torch wants, each takes 3 to 6 GB of the disk. The results stand in
    docs/limits.md, with their date.
    """
    session.install(".[test]", "torch" if torch == "newest" else f"torch=={torch}")
    session.run("python", "-c", "import torch; print('torch', torch.__version__)")
    session.run("pytest", "-q", "-m", "", "tests/graphs", "tests/test_torch_by_version.py")
    session.run("pytest", "-q", "-m", "", "-k", "torch_still", *LIVE)


@nox.session
def site(session: nox.Session) -> None:
    """The site of docs/, with every link checked, and by zensical, which has the same pages."""
    session.install(".[docs]")
    session.run("python", "docs/site.py")
    out = Path(session.create_tmp()).resolve()
    session.run("mkdocs", "build", "--strict", "--site-dir", str(out / "mkdocs"))
    session.run("python", "docs/site.py", "--compare", str(out / "mkdocs"))


@nox.session
def build(session: nox.Session) -> None:
    """A wheel and an sdist that a package index takes, and a wheel that answers."""
    session.install("build", "twine")
    out = Path(session.create_tmp())
    for old in out.glob("gradcli-*"):
        old.unlink()
    session.run("python", "-m", "build", "--outdir", str(out))
    session.run("twine", "check", "--strict", *map(str, out.glob("gradcli-*")))
    session.install("--force-reinstall", *map(str, out.glob("gradcli-*.whl")))
    session.run("gradcli", "grad", "2*dot(x,x)", "--x", "0,1,2,3")

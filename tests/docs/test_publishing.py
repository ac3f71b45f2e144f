"""What is published names what there is: the files of the sdist, the links of CONTRIBUTING, the versions."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from gradcli.version import __version__
from tests.commands.terminal import piped
from tests.sweep import sweep

TOP = Path(__file__).parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_sdist_has_what_it_names() -> None:
    for path in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (TOP / path.lstrip("/")).exists(), path


def test_the_changelog_begins_with_this_version() -> None:
    first = re.search(r"^## (\S+)", (TOP / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert first is not None and first[1] == __version__
    assert f"version: {__version__}\n" in (TOP / "CITATION.cff").read_text(encoding="utf-8")


def test_contributing_leads_somewhere() -> None:
    text = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"\]\(([^)#:]+)\)", text)
    paths += re.findall(r"`((?:gradcli|tests|docs|grammars|\.ci)/?[\w./]*)`", text)
    assert "docs/architecture.md" in paths and "gradcli/operators" in paths
    assert [path for path in paths if not (TOP / path).exists()] == []


MADE = TOP / "docs" / "functions"  # by docs/site.py, before the site is built
PAGES = sorted([*TOP.glob("*.md"), *(p for p in (TOP / "docs").rglob("*.md") if p.parent != MADE)])


def anchors(page: Path) -> set[str]:
    """What `page.md#…` may say: the headings, as GitHub and the site make anchors of them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@sweep("page", PAGES, name=lambda page: page.name, parts=1)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if "://" in link:
            continue
        if target.name == "index.md" and target.parent.name == "functions":
            continue  # docs/site.py makes it
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_the_site_has_every_page() -> None:
    nav = re.findall(r"[\w/]+\.md", (TOP / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = {path.relative_to(TOP / "docs").as_posix() for path in PAGES if path.parent != TOP}
    assert set(nav) - {"functions/index.md"} == pages  # which docs/site.py makes


def test_the_page_about_installing_names_every_extra() -> None:
    extras = set(
        tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    text = (TOP / "docs" / "install.md").read_text(encoding="utf-8")
    assert {name for name in extras if f"`{name}`" in text} == extras - {"docs", "bench", "test"}


def test_the_site_needs_nothing_that_one_builder_knows() -> None:
    """zensical, the successor of Material for MkDocs, ignores hooks: what they made would be missing."""
    settings = (TOP / "mkdocs.yml").read_text(encoding="utf-8")
    assert "hooks:" not in settings and "/docs/functions/\n" in (TOP / ".gitignore").read_text()
    both = (TOP / ".ci" / "run").read_text()
    assert both.index("python docs/site.py") < both.index("mkdocs build") < both.index("zensical")


@pytest.mark.long
@pytest.mark.needs("latex2mathml")
def test_every_function_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOP / "docs"))
    spec = importlib.util.spec_from_file_location("site_pages", TOP / "docs" / "site.py")
    assert spec is not None and spec.loader is not None
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    (tmp_path / "gone.md").touch()
    count = site.write_pages(tmp_path)
    pages = {page.stem: page.read_text(encoding="utf-8") for page in tmp_path.glob("*.md")}
    assert count == len(pages) > 680 and "gone" not in pages
    listed = re.findall(r"\]\(([\w.]+)\.md\)", pages["index"])
    assert set(listed) == pages.keys() - {"index"}
    assert "<math" in pages["sin"] and 'mathvariant="bold"' not in "".join(pages.values())


@pytest.mark.long
def test_the_operators_that_contributing_shows_work(tmp_path: Path) -> None:
    """A composite and a primitive, in processes of their own: the table of this one stays as it is."""
    text = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8")
    composite, primitive = re.findall(r"```python\n(.*?)```", text, re.S)
    table = "from gradcli.engine.registry.table import function, operator"
    above = f"import numpy as np\nimport gradcli\n{table}\n"
    (tmp_path / "composite.py").write_text(above + composite, encoding="utf-8")
    (tmp_path / "primitive.py").write_text(above + primitive, encoding="utf-8")
    for file, *argv, shown in (
        ("composite", "grad", "rms(x)", "--x", "1,1", "x.grad = [0.5, 0.5]\n"),
        ("composite", "diff", "rms(x)", "--x", "3,4", "x/(x.shape[0]*sqrt(mean(x**2)))\n"),
        ("primitive", "grad", "cbrt(x)", "--x", "8", "x.grad = 0.08333333333333333\n"),
        ("primitive", "diff", "cbrt(x)", "--x", "8", "1/(3*cbrt(x)**2)\n"),
        (
            *("primitive", "diff", "cbrt(x)", "--x", "8", "--format", "numpy"),
            "    v1 = np.cbrt(x)\n    value = v1\n    return value, 1/(3*v1**2)\n",
        ),
    ):
        found = piped(*argv, "--load", str(tmp_path / f"{file}.py"))
        assert found.stdout.endswith(shown) and found.stderr == "", found

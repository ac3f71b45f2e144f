"""The blocks of docs/python.md are run: sessions of Python, test files by pytest."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tests.commands.running import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
_SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r'^```python title="([^"]+)"\n(.*?)^```$', re.M | re.S)
_FENCE = re.compile(r"^```(\S.*)$", re.M)

pytest_plugins = ["pytester"]


@pytest.mark.long
def test_sessions() -> None:
    """One after the other, as somebody types them who reads the page."""
    text = "\n".join(_SESSION.findall(PAGE))
    told: list[str] = []
    session = doctest.DocTestParser().get_doctest(text, {}, "python.md", "python.md", 0)
    doctest.DocTestRunner().run(session, out=told.append)
    assert len(session.examples) > 40
    assert not told, "".join(told)


@pytest.mark.long
def test_files(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    files = _FILE.findall(PAGE)
    for name, text in files:
        (pytester.path / name).write_text(text, encoding="utf-8")
    plugins = ["-p", "gradcli.pytest_plugin", "-p", "no:cacheprovider"]
    result = pytester.runpytest_inprocess(*plugins)
    result.assert_outcomes(passed=3)


def test_no_block_goes_unrun() -> None:
    """Of Python there are sessions and files; the rest is typed by the tutorials' test, or no program."""
    kinds = {f.split(" ")[0] if "title=" not in f else "file" for f in _FENCE.findall(PAGE)}
    assert kinds == {"pycon", "file", "console", "text", "toml"}
    assert Path(ROOT / "docs" / "python.md").name == "python.md"

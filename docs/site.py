"""What the site has beyond the files of docs/: a page for each function. Run before the site is built.

`python docs/site.py` writes docs/functions/, which git ignores, from the table of operators: signature,
description, the derivative as a formula, the node, what it saves, an example that runs. The pages are
files, so that mkdocs and its successor zensical, which knows no hooks, find the same ones.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout documents itself


_ZERO = re.compile(r"\\mathbf\{0\}|0+(?:\.0*)?")
FOLDER = Path(__file__).parent / "functions"


def write_pages(folder: Path = FOLDER) -> int:
    """Write the pages of the functions into a folder, and nothing else into it; returns how many."""
    folder.mkdir(exist_ok=True)
    written = set()
    for path, text in function_pages():
        page = folder / Path(path).name
        written.add(page.name)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for old in folder.glob("*.md"):
        if old.name not in written:
            old.unlink()
    return len(written)


def function_pages() -> Iterator[tuple[str, str]]:
    """The path and the text of each page: the index by family, and one page a function."""
    from gradcli.commands.function_facts import entries
    from gradcli.engine.system import dtypes

    dtypes.set_default_dtype(dtypes.float64)
    families = entries()
    count = sum(map(len, families.values()))
    index = [
        f"# Functions\n\n{count} functions, under PyTorch's names. "
        "`gradcli ops NAME` shows one of them.\n"
    ]
    for family, found in families.items():
        links = ", ".join(f"[`{entry.name}`]({entry.name}.md)" for entry in found)
        index.append(f"## {family}\n\n{links}\n")
        for entry in found:
            menu = _menu(family, [one.name for one in found], entry.name)
            yield f"functions/{entry.name}.md", f"{_page(entry, family)}\n{menu}"
    yield "functions/index.md", "\n".join(index)


def _menu(family: str, names: list[str], own: str) -> str:
    """The other functions of a family. The search leaves it out: it would find every page of the family."""
    links = [f"**{name}**" if name == own else f"[{name}]({name}.md)" for name in names]
    up = f"[All functions](index.md) › [{family}](index.md#{family.replace(' ', '-')})"
    listed = "\n".join(f"- {link}" for link in links)
    return f'<div class="family" data-search-exclude markdown>\n\n{up}\n\n{listed}\n\n</div>\n'


def _page(entry: Any, family: str) -> str:
    from gradcli.commands.function_facts import example
    from gradcli.graphs.vjp_text import rule_text

    parts = [f"# {entry.name}\n", f"```text\n{entry.signature}\n```\n"]
    if entry.doc:
        parts.append(" ".join(entry.doc.split()) + "\n")
    if entry.aliases:
        parts.append(f"Also called {', '.join(f'`{alias}`' for alias in entry.aliases)}.\n")
    formula = _formula(entry)
    if formula:
        parts.append(f"## Derivative\n\n{formula}\n")
    for primitive in entry.primitives:
        if not primitive.node:
            continue
        parts.append(
            f"## Node\n\n`{primitive.node}`"
            + (
                f" saves {', '.join(f'`{name}`' for name in primitive.saves)}.\n"
                if primitive.saves
                else ".\n"
            )
        )
        rules = {
            name.replace("__", ", "): rule_text(rule, primitive.node)
            for name, rule in primitive.vjps.items()
        }
        rows = [
            f"| `{name}` | `` {text.replace('|', chr(92) + '|')} `` |"
            for name, text in rules.items()
            if text
        ]
        if rows:
            parts.append("| gradient of | rule |\n|---|---|\n" + "\n".join(rows) + "\n")
    command = example(entry)
    if command:
        parts.append(f"## Example\n\n```sh\n{command}\n```\n")
    return "\n".join(parts)


def _formula(entry: Any) -> str | None:
    """The derivative of an example as MathML, if it has a formula that holds for every size.

    Of an array it is the derivative of the sum of its elements; where that is 0, as of a softmax, it is the
    Jacobian.
    """
    from latex2mathml.converter import convert

    from gradcli.commands.function_facts import with_variables

    for sample in entry.samples[:3]:
        source, texts = with_variables(sample)
        if not texts or not any(primitive.node for primitive in entry.primitives):
            continue
        for jacobian in (False, True):
            found = _derivatives(source, texts, jacobian)
            lines = [
                convert(rf"\frac{{\partial f}}{{\partial {name}}} = {text}", display="block")
                for name, text in found.items()
            ]
            if lines:
                how = "as a Jacobian" if jacobian else "added up where it has several elements"
                return (
                    f"For `f = {source}`, {how}:\n\n"
                    '<div style="overflow-x: auto">' + "\n".join(map(_bold, lines)) + "</div>"
                )
    return None


def _derivatives(source: str, texts: dict[str, str], jacobian: bool) -> dict[str, str]:
    """The derivatives as LaTeX, without those that are 0; none where there is no formula for every size."""
    from gradcli import diff, language

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a formula for one size alone comes with a warning
        try:
            values = {name: language.read_value(text) for name, text in texts.items()}
            found = diff(source, values, form="latex", jacobian=jacobian)
        except (language.LanguageError, UserWarning):
            return {}
    by = found if isinstance(found, dict) else {next(iter(texts)): found}
    return {name: text for name, text in by.items() if not _ZERO.fullmatch(text)}


def _bold(mathml: str) -> str:
    """Bold digits as letters of their own: browsers draw `mathvariant` plain, as MathML Core has it."""
    return re.sub(
        r'<m([ino]) mathvariant="bold">([01])</m\1>',
        lambda found: f"<mn>{chr(0x1D7CE + int(found[2]))}</mn>",
        mathml,
    )


def compare(built: Path) -> None:
    """Build the site by zensical too; raise SystemExit unless it has the pages of the built one."""
    with tempfile.TemporaryDirectory() as folder:
        top = FOLDER.parents[1]
        copy = Path(folder)
        settings = (top / "mkdocs.yml").read_text(encoding="utf-8")
        (copy / "mkdocs.yml").write_text(f"{settings}site_dir: made\n", encoding="utf-8")
        for name in ("docs", "gradcli", "grammars"):
            shutil.copytree(top / name, copy / name)  # no link: zensical keeps to its own folder
        subprocess.run([sys.executable, "-m", "zensical", "build"], cwd=copy, check=True)
        wanted, found = (
            {p.relative_to(site).as_posix() for p in site.rglob("*.html")}
            for site in (built, copy / "made")
        )
    lost, more = sorted(wanted - found), sorted(found - wanted)
    if lost or more:
        raise SystemExit(f"not by zensical: {lost[:5]}; by zensical alone: {more[:5]}")
    print(f"{len(found)} pages, by mkdocs and by zensical")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compare"]:
        compare(Path(sys.argv[2]).resolve())
    else:
        print(f"{FOLDER}: {write_pages()} pages")

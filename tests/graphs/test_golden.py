"""Every format of every small graph, against golden files.

`GRADCLI_UPDATE_GOLDEN=1 pytest tests/graphs/test_golden.py` writes them anew; look at the diff.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import fakes
import numpy as np
import pytest
from inspected import describer, picture, tree, tree_of

from gradcli.graphs.dot import picture_to_dot
from gradcli.graphs.json_format import view_to_json
from gradcli.graphs.mermaid import picture_to_mermaid
from gradcli.graphs.svg import picture_to_svg
from gradcli.graphs.tikz import picture_to_tikz
from gradcli.graphs.view import Selection, View
from tests.sweep import sweep

GOLDEN = Path(__file__).parent.parent / "golden" / "graphs"


def _grads(name: str) -> str:
    known = describer(name)
    grads = [np.float64(i) / 4 for i in range(len(known.skeleton))]
    grads[-1] = np.float64("nan")
    known.grads = dict(zip(known.skeleton.nodes[1:], grads[1:], strict=True))
    return str(tree_of(known, grads=True, values=True))


def _json(name: str) -> str:
    known = describer(name)
    return json.dumps(view_to_json(View(known.skeleton, Selection()), known), indent=1) + "\n"


FORMATS: dict[str, Callable[[str], str]] = {
    "tree": lambda name: str(tree(name)),
    "tree-all": lambda name: str(tree(name, saved=True, values=True, edges=True, legend=True)),
    "tree-grads": _grads,
    "tree-80": lambda name: str(tree(name, width=80, saved=True)),
    "tree-ascii": lambda name: str(tree(name, ascii=True, saved=True, values=True)),
    "tree-depth": lambda name: str(tree(name, depth=2)),
    "json": lambda name: _json(name),
    "dot": lambda name: picture_to_dot(picture(name)),
    "mmd": lambda name: picture_to_mermaid(picture(name)),
    "tex": lambda name: picture_to_tikz(picture(name)),
    "svg": lambda name: picture_to_svg(picture(name)),
    "all.svg": lambda name: picture_to_svg(
        picture(name, saved=True, values=True, edges=True, collapse=False, direction="right")
    ),
    "forward.txt": lambda name: str(tree(name, forward=True, values=True)),
}


def file_name(name: str, form: str) -> str:
    return f"{name}.{form}.txt" if form.startswith("tree") else f"{name}.{form}"


@sweep("form", FORMATS, parts=1)
@pytest.mark.parametrize("name", fakes.GRAPHS)
def test_golden(name: str, form: str) -> None:
    text = FORMATS[form](name).rstrip("\n") + "\n"
    path = GOLDEN / file_name(name, form)
    if os.environ.get("GRADCLI_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    wanted = {file_name(name, form) for name in fakes.GRAPHS for form in FORMATS}
    assert {path.name for path in GOLDEN.iterdir()} == wanted

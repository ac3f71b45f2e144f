"""Control characters of the input are never printed as they are: one function escapes them all."""

from __future__ import annotations

import json
import xml.dom.minidom

import numpy as np
import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.engine.system.visible import visible, visible_line
from tests.sweep import sweep

ESC = "\x1b[7;35m"


@sweep(
    ("text", "shown"),
    [
        ("plain text, ü, 漢, …", "plain text, ü, 漢, …"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2J", "\\u001b[2J"),
        ("a\rb\x00\x7f\x9b", "a\\u000db\\u0000\\u007f\\u009b"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\udc80", "\\udc80"),
        ("\u2028\ufffe", "\\u2028\\ufffe"),
        ("soft\u00adhyphen \u200d", "soft\u00adhyphen \u200d"),
    ],
    parts=1,
)
def test_what_is_spelt_out(text, shown):
    assert visible(text) == shown
    assert visible(shown) == shown


def test_a_line_has_no_newline():
    assert visible_line("a\n\tb\x1b") == "a\\n\\tb\\u001b"


def test_json_and_python_read_it_back():
    text = "".join(map(chr, range(0x300))) + "\u2028\udc80"
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text


# Every way in: (arguments, what is written to files first).
WAYS_IN = [
    ["eval", f"'{ESC}'"],
    ["eval", f"['{ESC}']"],
    ["eval", f"print('{ESC}')"],
    ["eval", f"assert 1 > 2, '{ESC}'"],
    ["eval", f"f{ESC}(2)"],
    ["eval", "x", f"--x{ESC}", "1"],
    ["eval", "x", "--x", f"@{ESC}.csv"],
    ["eval", "x", "--x", f"1{ESC}"],
    ["eval", "x", "--x", "@cell.csv"],
    ["eval", "x", "--x", "@key.json"],
    ["eval", "x", "--x", "@key.json:nothing"],
    ["eval", "x", "--x", "@member.npz"],
    ["eval", "x", "--x", "1", "--wrt", ESC],
    ["eval", "x", "--x", "1", "--dtype", ESC],
    ["eval", "x", "--let", f"{ESC}=1"],
    ["eval", "-f", f"{ESC}.txt"],
    ["graph", f"x*len('{ESC}')", "--x", "1"],
    ["graph", f"x*len('{ESC}')", "--x", "1", "--format", "dot"],
    ["graph", f"x*len('{ESC}')", "--x", "1", "--format", "mermaid"],
    ["graph", f"x*len('{ESC}')", "--x", "1", "--format", "svg"],
    ["graph", f"x*len('{ESC}')", "--x", "1", "--format", "html"],
    ["graph", f"x*len('{ESC}')", "--x", "1", "-o", f"{ESC}.png"],
    ["run", f"{ESC}.py"],
    ["ops", ESC],
    [ESC],
    ["grad", "x", "--x", "1", "--load", f"{ESC}.py"],
]


FORMS = [[], ["--json"], ["--color", "always"]]
CASES = [
    [*argv, *form]
    for argv in WAYS_IN
    for form in FORMS
    if not form
    or not (
        argv[0] in ("run", ESC) or "--format" in argv or (argv[0] == "ops" and "--color" in form)
    )
]


@pytest.mark.parametrize("argv", CASES, ids=lambda argv: " ".join(argv).replace("\x1b", "ESC"))
def test_no_way_in_is_a_way_out(argv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cell.csv").write_text(f"1\n{ESC}\n2\n")
    (tmp_path / "key.json").write_text(json.dumps({ESC: [1], "b": 2}))
    np.savez(tmp_path / "member.npz", **{ESC: np.ones(2), "b": np.ones(2)})
    done = CliRunner().invoke(main, argv, prog_name="gradcli")
    assert "fault in gradcli" not in done.output
    assert ESC not in done.output
    if "--color" not in argv:
        assert "\x1b" not in done.output
    if "svg" in argv:
        xml.dom.minidom.parseString(done.stdout)

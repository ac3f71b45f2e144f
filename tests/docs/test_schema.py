"""docs/schema.json says what --json prints: every command's objects are held against it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from tests.sweep import sweep

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schema.json").read_text("utf-8"))
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
KEYWORDS = {"$ref", "anyOf", "enum", "type", "required", "properties", "additionalProperties"}
KEYWORDS |= {"items", "description", "deprecated"}


def faults(value: Any, schema: dict[str, Any], place: str = "") -> list[str]:
    """What of a value is not as the schema says; properties that it does not name are faults, too."""
    assert not schema.keys() - KEYWORDS, schema.keys() - KEYWORDS
    if "$ref" in schema:
        return faults(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], place)
    if "anyOf" in schema:
        tried = [faults(value, one, place) for one in schema["anyOf"]]
        return [] if not all(tried) else min(tried, key=len)
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{place}: {value!r}"]
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(
        isinstance(value, TYPES[k]) and (k == "boolean" or not isinstance(value, bool))
        for k in kinds
    ):
        return [f"{place}: {type(value).__name__} instead of {kinds}"]
    if isinstance(value, list):
        items = schema.get("items", {})
        return [f for k, item in enumerate(value) for f in faults(item, items, f"{place}[{k}]")]
    if not isinstance(value, dict):
        return []
    known, more = schema.get("properties"), schema.get("additionalProperties")
    found = [f"{place}: no {key}" for key in schema.get("required", ()) if key not in value]
    for key, item in value.items():
        if known is not None and key in known:
            found += faults(item, known[key], f"{place}.{key}")
        elif more is not None:
            found += faults(item, more, f"{place}.{key}")
        elif known is not None:
            found.append(f"{place}: {key} is not in the schema")
    return found


X = ("--x", "1,2")
CASES = [
    ("eval", "x*x", *X),
    ("eval", "max(x, dim=0)", *X),
    ("eval", "1/x", "--x", "0,1"),
    ("eval", "x.shape", *X),
    ("grad", "sum(x)", *X),
    ("grad", "y = x*x; sum(y)", *X, "--retain", "y"),
    ("grad", "x**3", "--x", "1", "--order", "2"),
    ("grad", "x**3", "--x", "1±0.1", "--budget"),
    ("diff", "x*y"),
    ("diff", "x**2 + y**2 == 1", "--of", "y"),
    ("diff", "sum(x**2)", "--wrt", "x[0]"),
    ("diff", "[-y, x]", "--operator", "curl"),
    ("simplify", "x + x"),
    ("taylor", "sin(x)", "--x", "0"),
    ("diff", "sin(x*y)", "--show-steps"),
    ("diff", "x**2", "--x", "3", "--at"),
    ("jacobian", "x*x", *X),
    ("jacobian", "x*x", *X, "--sparse"),
    ("jacobian", "x*x", *X, "--vector", "ones"),
    ("hessian", "sum(x**3)", *X),
    ("hessian", "sum(x**3)", *X, "--vector", "ones"),
    ("jvp", "x*x", *X, "--vector", "ones"),
    ("check", "abs(x)", "--x", "0"),
    ("check", "x.detach()*x", *X),
    ("check", "x**3", *X, "--second-order"),
    ("check", "x**2", "--x", "1", "--against", "2*x"),
    ("eval", "x**2", "--x", "3±1", "--budget"),
    ("fit", "n == a*t", "examples/data/silver.csv", "--a", "1", "--sigma", "dn", "--budget"),
    ("minimize", "x**2", "--x", "1", "--trace"),
    ("root", "x**2 == 2", "--x", "1"),
    ("fit", "n == a*t", "examples/data/silver.csv", "--a", "1", "--starts", "3"),
    ("root", "x + y == 3, x*y == 2", "--x", "0", "--y", "5"),
    ("plot", "x**2", "--x", "0:1"),
    ("plot", "x**2 + y**2 == 1", "--x", "0:1", "--y", "0:1"),
    ("plot", "n", "examples/data/silver.csv"),
    ("plot", "n", "examples/data/silver.csv", "--hist"),
    ("ops",),
    ("ops", "sin"),
    ("ops", "pi"),
    ("root", "x*n == t", "examples/data/silver.csv", "--head", "1", "--x", "1"),
    (
        *("root", "x*n == t*a", "examples/data/silver.csv", "--head", "1", "--x", "1"),
        *("--a", "2±0.1", "--uncertainty", "n=dn", "--budget"),
    ),
    ("map", "2*t", "examples/data/silver.csv", "--head", "2"),
    ("map", "u = 2*t; u, n", "examples/data/silver.csv", "--head", "2"),
    ("map", "t*n", "examples/data/silver.csv", "--head", "2", "--order", "2", "--second", "t,n"),
    ("map", "t*w", "examples/data/silver.csv", "--head", "2", "--w", "1,2", "--no-grad", "all"),
    (
        "map",
        "t*n",
        "examples/data/silver.csv",
        "--head",
        "1",
        "--uncertainty",
        "n=dn",
        "--budget",
        "--jvp",
        "t=ones",
    ),
    ("graph", "x*x", "--x", "1"),
    ("graph", "x*x", "--x", "1", "--grads", "--values"),
    ("error", "x +"),
    ("error", "x + a", "--x", "3", "--a", "4,2"),
]


@sweep("case", CASES, name=" ".join, parts=1)
def test_objects(case: tuple[str, ...]) -> None:
    name, *words = case
    command = "grad" if name == "error" else name
    result = CliRunner().invoke(main, [command, *words, "--json"], prog_name="gradcli")
    for line in (result.stderr if name == "error" else result.stdout).splitlines():
        assert faults(json.loads(line), {"$ref": f"#/$defs/{name}"}) == []
    assert result.stdout or name == "error"


@pytest.mark.long
def test_lines_of_a_batch() -> None:
    command = [sys.executable, "-m", "gradcli", "batch", "tests/golden/schema_lines.txt", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["code"] for answer in answers] == [0, 0, 2]
    assert [faults(answer, {"$ref": "#/$defs/batch"}) for answer in answers] == [[], [], []]


def test_every_command_with_json_is_there() -> None:
    from gradcli.commands import COMMANDS

    def takes_json(name: str) -> bool:
        return "--json" in [word for p in main.get_command(None, name).params for word in p.opts]

    wanted = {name for name in COMMANDS if takes_json(name)}
    assert len(wanted) > 15
    tried = {
        "batch",
        *(name for name, *_ in CASES),
    }  # it forks, so it is tried in a process of its own
    assert wanted <= tried
    assert tried == {ref["$ref"].rpartition("/")[2] for ref in SCHEMA["anyOf"]}


@pytest.mark.parametrize(("argv", "old", "new"), [
    # Each name of old beside the one shape of all commands: what is said of a variable is in wrt.
    (["map", "t*n", "-"], ["t.grad"], ["wrt", "t", "grad"]),
    (["grad", "t*n", "--t", "2", "--n", "3"], ["grads", "t", "grad"], ["wrt", "t", "grad"]),
    (["minimize", "t**2", "--t", "2"], ["gradient", "t"], ["wrt", "t", "grad"]),
    (["minimize", "t**2", "--t", "2"], ["point", "t"], ["wrt", "t", "value"]),
    (["root", "t**2 == 4", "--t", "1"], ["roots", 0, "t"], ["wrt", "t", "roots", 0]),
    (["fit", "n == a*t", "-", "--a", "1"], ["parameters", "a"], ["wrt", "a"]),
    (["taylor", "sin(t)", "--t", "0"], ["at", "t"], ["wrt", "t", "at"]),
    (["simplify", "t + t"], ["shapes", "t"], ["wrt", "t", "shape"]),
])  # fmt: skip
def test_one_shape_beside_the_old_names(argv: list[str], old: list[Any], new: list[Any]) -> None:
    result = CliRunner().invoke(main, [*argv, "--json"], input="t,n\n2,3\n3,5\n4,6\n")
    found = json.loads(result.stdout.splitlines()[0])
    assert _at(found, old) == _at(found, new)


def _at(found: Any, path: list[Any]) -> Any:
    for key in path:
        found = found[key]
    return found


def test_what_is_missing_or_unknown_is_a_fault() -> None:
    assert faults({"error": {}}, {"$ref": "#/$defs/error"})
    assert faults({"root": 0, "nodes": [], "more": 1}, {"$ref": "#/$defs/graph"})

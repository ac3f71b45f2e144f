"""docs/schema.json says what --json prints: every command's objects are held against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    found = json.loads(result.stderr if name == "error" else result.stdout)
    assert faults(found, {"$ref": f"#/$defs/{name}"}) == []


def test_rows() -> None:
    result = CliRunner().invoke(main, ["map", "2*a", "-", "--json"], input="a\n1\n2\n")
    for line in result.stdout.splitlines():
        assert faults(json.loads(line), {"$ref": "#/$defs/map"}) == []


def test_every_command_that_prints_objects_is_there() -> None:
    assert {name for name, *_ in CASES} | {"map"} <= SCHEMA["$defs"].keys()


def test_what_is_missing_or_unknown_is_a_fault() -> None:
    assert faults({"error": {}}, {"$ref": "#/$defs/error"})
    assert faults({"root": 0, "nodes": [], "more": 1}, {"$ref": "#/$defs/graph"})

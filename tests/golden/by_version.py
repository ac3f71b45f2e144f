"""What other versions of PyTorch answer otherwise: `python tests/golden/by_version.py` with one of them.

The records beside this file are of one version, the reference. This runs the same recorders in a copy of
the tests, with the PyTorch of the Python that runs it, and writes torch-VERSION/NAME.json: of each
question that is answered otherwise the places in the answer, and what stands there. Run by hand.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REFERENCE = "2.13.0"
RECORDERS = {
    "answers.json": "record_answers.py",
    "calls.json": "record_calls.py",
    "creation.json": "record_creation.py",
    "graphs.json": "record_graphs.py",
    "nests.json": "record_nests.py",
    "nn.json": "record_nn.py",
    "numpy.json": "record_numpy.py",
    "printing.json": "record_printing.py",
    "programs.json": "record_programs.py",
    "random.json": "record_random.py",
    "recordings.json": "record_recordings.py",
    "refusals.json": "record_refusals.py",
    "samples.json": "record_samples.py",
    "strides.json": "record_strides.py",
    "torch_graphs.json": "../graphs/record_torch.py",
    "torch_says.json": "record.py",
}
# What the reference itself answers otherwise from run to run: memory that nobody has set, and digits of
# what is all but singular.
UNSTABLE = ("empty(", "empty_like(", "np.linalg.cond((t, t))", "np.linalg.svd((i, i), (3, 3))")
CLOSE = 1e-5  # relative: other versions round otherwise
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+)")
Changes = dict[str, dict[str, Any]]


def load(path: Path) -> dict[str, Any]:
    """A record as answers by question, whatever its file's layout."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if "functions" in data and "lines" in data:  # of calls: numbers of lines
        return {json.dumps(row[:4]): _said(row[4], data["lines"]) for row in data["functions"]}
    rows = data.get("cases", data) if isinstance(data, dict) else data
    return rows if isinstance(rows, dict) else dict(map(_entry, range(len(rows)), rows))


def _said(numbers: list[Any], lines: list[str]) -> list[Any]:
    each = ([n] if isinstance(n, int) else n for n in numbers)
    return [None if one is None else "\n".join(lines[n] for n in one) for one in each]


def _entry(number: int, row: dict[str, Any]) -> tuple[str, Any]:
    asked = next((row[key] for key in ("call", "code", "source", "seed") if key in row), number)
    parts = [asked, *(row[key] for key in ("operands", "leaves", "options", "bytes") if key in row)]
    text = asked if parts == [asked] and isinstance(asked, str) else json.dumps(parts)
    return text, row


def places(old: Any, new: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Where two answers differ, and the new one there."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for key in old:
            yield from places(old[key], new[key], f"{at}.{key}" if at else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, pair in enumerate(zip(old, new, strict=True)):
            yield from places(*pair, f"{at}[{k}]")
    elif not _same(old, new):
        yield at, new


def at(answer: Any, place: str) -> Any:
    """What stands at a place of an answer."""
    for key, number in re.findall(r"([^.\[\]]+)|\[(\d+)\]", place):
        answer = answer[int(number)] if number else answer[key]
    return answer


def _same(old: Any, new: Any) -> bool:
    if type(old) is not type(new) or old == new:
        return bool(old == new)
    if isinstance(old, float):
        return _close(old, new)
    if isinstance(old, str) and _NUMBER.sub("#", old) == _NUMBER.sub("#", new):
        pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
        return all(a == b or ("." in a and _close(float(a), float(b))) for a, b in pairs)
    return False


def _close(old: float, new: float) -> bool:
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) and math.isnan(new)
    return math.isclose(old, new, rel_tol=CLOSE, abs_tol=1e-7)


def changes(old: dict[str, Any], new: dict[str, Any]) -> Changes:
    """The questions that both were asked, and answered otherwise."""
    stable = [q for q in old if q in new and not q.startswith(UNSTABLE)]
    found = {question: dict(places(old[question], new[question])) for question in stable}
    return {question: told for question, told in found.items() if told}


def version() -> str:
    """Of the PyTorch that is installed."""
    return str(importlib.import_module("torch").__version__).partition("+")[0]


def recorded(name: str, of: str) -> Changes | None:
    """What a version changed in a record; None if nobody has asked it."""
    folder = HERE / f"torch-{of}"
    if not folder.is_dir():
        return None
    path = folder / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def settle(name: str, differing: Iterable[str]) -> None:
    """The questions of a record that the installed PyTorch answers otherwise are as is known of it.

    The reference has none, and a version that was recorded has those recorded. For another version they
    are said in a warning, which fails nothing.
    """
    found = [question for question in differing if not question.startswith(UNSTABLE)]
    known = {} if version() == REFERENCE else recorded(name, version())
    if known is not None:
        assert [question for question in found if question not in known] == []
    else:
        tell(name, found)


def tell(name: str, differing: list[str]) -> None:
    """Say what a version that nobody has recorded answers otherwise."""
    if differing:
        told = "".join(f"\n  {question}" for question in differing)
        warnings.warn(
            f"PyTorch {version()} changed {len(differing)} facts of {name}:{told}", stacklevel=3
        )


def main() -> None:
    """Run every recorder, and write what differs."""
    folder = HERE / f"torch-{version()}"
    shutil.rmtree(folder, ignore_errors=True)
    root = HERE.parents[1]
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "tests"
        shutil.copytree(HERE.parent, copy, ignore=shutil.ignore_patterns("__pycache__", "torch-*"))
        for name, script in RECORDERS.items():
            environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
            command = [sys.executable, str(copy / "golden" / script)]
            subprocess.run(command, env=environment, check=True, capture_output=True, cwd=place)
            found = changes(load(HERE / name), load(copy / "golden" / name))
            if found and version() != REFERENCE:
                folder.mkdir(exist_ok=True)
                text = ",\n".join(f"{json.dumps(q)}: {_text(told)}" for q, told in found.items())
                (folder / name).write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
            print(f"{name}: {len(found)} otherwise", flush=True)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    main()

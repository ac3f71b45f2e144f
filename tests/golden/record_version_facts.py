"""Ask PyTorch the questions of version_facts.txt: `python tests/golden/record_version_facts.py`.

Its answers go beside those of other versions into version_facts.json. What not all versions answer alike is
what gradcli tells its users of: those rows alone are written to the package.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
QUESTIONS = HERE / "version_facts.txt"
RECORDED = QUESTIONS.with_suffix(".json")
TOLD = HERE.parents[1] / "gradcli" / "engine" / "registry" / "version_facts.json"
ABSENT = "not there"


def questions() -> list[str]:
    """One a line; lines with a hash are titles."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def parts(question: str) -> tuple[str, dict[str, str], str]:
    """The program, its variables' values, and what is asked."""
    program, point, asked = (part.strip() for part in question.split("|"))
    return program, dict(re.findall(r"(\w+) = (.+?)(?:, (?=\w+ =)|$)", point)), asked


def answer(question: str, torch: Any) -> str:
    """What an implementation of torch's interface says."""
    program, point, asked = parts(question)
    names: dict[str, Any] = {"inf": math.inf}
    for name in compile(program, "<program>", "eval").co_names:
        for home in (torch, torch.nn.functional):
            names.setdefault(name, getattr(home, name, None))
            if names[name] is None:
                del names[name]
    for name, text in point.items():
        value = torch.tensor(eval(text, {"inf": math.inf}), dtype=torch.float64)
        names[name] = value.requires_grad_()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(program, names)
            if asked == "value":
                return shown(value.tolist())
            if asked == "node":
                return str(value.grad_fn.name().rpartition("::")[2])
            for _ in range(asked.count(".grad")):
                (value,) = torch.autograd.grad(value.sum(), names[asked[0]], create_graph=True)
            return shown(value.tolist())
    except (NameError, AttributeError):
        return ABSENT
    except Exception as error:  # a refusal is an answer
        text = str(error)
        return (
            ABSENT
            if "is now removed" in text
            else f"{type(error).__name__}: {text.splitlines()[0]}"
        )


def shown(value: Any) -> str:
    """Numbers in the fewest digits, within brackets."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)


def by_age(version: str) -> list[int]:
    """Puts versions in order."""
    return [int(part) for part in version.split(".")]


def told(record: dict[str, dict[str, str]]) -> dict[str, Any]:
    """What the package tells: the versions that were asked, and the questions they answer differently."""
    versions = sorted(record, key=by_age)
    rows = []
    for question in questions():
        answers = {version: record[version][question] for version in versions}
        if len(set(answers.values())) > 1:
            program, point, asked = parts(question)
            rows.append({"program": program, "point": point, "asked": asked, "answers": answers})
    return {"versions": versions, "facts": rows}


def as_text(found: dict[str, Any]) -> str:
    """The package's file: a row a line."""
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found["facts"])
    return f'{{"versions": {json.dumps(found["versions"])}, "facts": [\n{rows}\n]}}\n'


def main() -> None:
    """Ask, and write both files."""
    torch = importlib.import_module("torch")
    record = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    version = str(torch.__version__).partition("+")[0]
    record[version] = {question: answer(question, torch) for question in questions()}
    record = {known: record[known] for known in sorted(record, key=by_age)}
    RECORDED.write_text(json.dumps(record, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    if all(list(answers) == questions() for answers in record.values()):
        TOLD.write_text(as_text(told(record)), encoding="utf-8")
    print(f"{len(questions())} questions, torch {version}", file=sys.stderr)


if __name__ == "__main__":
    main()

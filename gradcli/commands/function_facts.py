"""What there is to know about each function of the operator table, and the file that holds it.

`python -m gradcli.commands.function_facts` writes functions.json, a function a line, so that `gradcli ops`
answers without NumPy and without the table. A test compares the file with the table.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import language
from gradcli.engine.registry import table
from gradcli.engine.registry.version_facts import facts_of
from gradcli.graphs.vjp_text import rules_of
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.transforms.recorded_answers import groups, questions

if TYPE_CHECKING:
    from gradcli.engine.registry.table import Function

FILE = Path(__file__).with_name("functions.json")
SAMPLES_TRIED = 5
VARIABLES = "xyzuvw"


def entries() -> dict[str, list[Function]]:
    """The functions by family, each once; without the kernels of PyTorch that others are made of."""
    found: dict[str, list[Function]] = {}
    for entry in sorted(table.entries(), key=lambda entry: entry.name):
        if not entry.name.startswith("_"):
            found.setdefault(entry.family, []).append(entry)
    return {family: found[family] for family in sorted(found)}


def facts(entry: Function, *, run: bool = True) -> dict[str, Any]:
    """One function as JSON.

    short: whether it is also called without `nn.functional.` before its name. run: whether to look for the
    example, which takes running the samples; it is None otherwise.
    """
    return {
        "name": entry.name,
        "family": entry.family,
        "signature": entry.signature,
        "aliases": list(entry.aliases),
        "nodes": [primitive.node for primitive in entry.primitives if primitive.node],
        "doc": " ".join((entry.doc or "").split()),
        "method": entry.method,
        "inplace": entry.inplace,
        "short": entry.short,
        "rows": [
            {"node": p.node, "saves": list(p.saves), "derivatives": rules_of(p)}
            for p in entry.primitives
        ],
        "kinks": kinks_of(entry),
        "example": example(entry) if run else None,
        "versions": [fact._asdict() for fact in facts_of((entry.name, *entry.aliases))],
    }


def kinks_of(entry: Function) -> list[dict[str, Any]]:
    """What systems answer where the function has no derivative: the recorded questions about it."""
    names = {entry.name, *entry.aliases, *(p.public_name for p in entry.primitives)}
    found = []
    for one in questions():
        if names.isdisjoint(one.operators):
            continue
        answers = {
            answer: [{"system": s.label, "title": s.title, "source": s.source} for s in listed]
            for answer, listed in groups(one).items()
        }
        about = {"question": one.text, "program": one.program, "point": dict(one.point)}
        found.append({**about, "order": one.order, "answers": answers})
    return found


def example(entry: Function) -> str | None:
    """A command line that runs the function: the first sample that does, tried here."""
    for sample in entry.samples[:SAMPLES_TRIED]:
        expression, values = with_variables(sample)
        verb = _verb(expression, values)
        if verb is not None:
            words = ["gradcli", verb.split()[0], f'"{expression}"']
            words += [f'--{name} "{text}"' for name, text in values.items()]
            return " ".join([*words, *verb.split()[1:]])
    return None


def with_variables(sample: str) -> tuple[str, dict[str, str]]:
    """The sample with its random arguments as variables, so that there is something to differentiate."""
    values: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        if len(values) == len(VARIABLES):
            return match[0]
        values[VARIABLES[len(values)]] = match[0]
        return VARIABLES[len(values) - 1]

    return re.sub(r"\brandn\((?:[^()]|\([^()]*\))*\)", name, sample), values


def _verb(expression: str, values: dict[str, str]) -> str | None:
    """What can be done with the sample: `grad`, `grad --seed ones`, `eval`, or nothing."""
    try:
        variables = {n: language.read_value(text).requires_grad_() for n, text in values.items()}
        value = language.run(language.parse(expression), variables).value
    except language.LanguageError:  # the next one may do
        return None
    if not getattr(value, "requires_grad", False):
        return "eval"
    try:
        value.backward(value.detach())
    except OPERATION_ERRORS:  # a derivative that PyTorch refuses too
        return "eval"
    return "grad" if value.numel() == 1 else "grad --seed ones"


def text() -> str:
    """What functions.json holds: the functions, a line each, and the constants of the language."""
    rows = [facts(entry) for entry in sorted(table.entries(), key=lambda entry: entry.name)]
    constants = {
        name: str(value)
        for name in table.names()
        if isinstance(value := table.resolve(name), float | complex)
    }
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{{"constants": {json.dumps(constants)},\n"functions": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")

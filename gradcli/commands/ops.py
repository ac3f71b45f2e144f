"""`gradcli ops [NAME]`: the operator table, or one function of it.

It reads what function_facts wrote, so that neither NumPy nor the table is imported.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import click

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import STYLE, Argument, Options, declare
from gradcli.commands.request import chosen_form
from gradcli.commands.terminal import width, wrapped

FILE = Path(__file__).with_name("functions.json")
Facts = dict[str, Any]  # of one function, as function_facts.facts gives them, and its example


@declare(
    "ops",
    Argument("[NAME]", name="words", many=True, complete="functions"),
    *STYLE,
    examples=(
        "gradcli ops",
        "gradcli ops softmax",
        "gradcli ops losses",
        'gradcli ops "log*"',
        "gradcli ops linalg.inv --json",
    ),
)
def command(ctx: click.Context, options: Options) -> None:
    """List the functions of the language, or show one: signature, derivative, node, example.

    Any other words are searched for in names (log*), families (losses), descriptions (normal cdf) and
    the names that other languages use (ln).
    """
    form = chosen_form(json=options.json, plain=options.plain)
    style = output.Style.of(form, options.precision, options.color)
    if not options.words:
        _list(style)
    else:
        show(" ".join(options.words), style)


@cache
def _known() -> tuple[dict[str, Facts], dict[str, float]]:
    """The functions by name, and the constants with their values."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    constants = {name: float(value) for name, value in found["constants"].items()}
    return {row["name"]: row for row in found["functions"]}, constants


def _listed() -> list[Facts]:
    """The functions by family and name; without the kernels of PyTorch that others are made of."""
    rows = [row for row in _known()[0].values() if not row["name"].startswith("_")]
    return sorted(rows, key=lambda row: (row["family"], row["name"]))


def find(name: str) -> Facts | None:
    """The function of a name, of an alias, or of a name that has `nn.functional.` before it."""
    functions = _known()[0]
    if name in functions:
        return functions[name]
    aliased = [row for row in functions.values() if name in row["aliases"]]
    whole = functions.get(f"nn.functional.{name}")
    return next(iter(aliased), whole if whole and whole["short"] else None)


def _list(style: output.Style) -> None:
    listed = _listed()
    if style.form != "text" or not style.summarise:
        _write_found(listed, style)
        return
    families: dict[str, list[str]] = {}
    for row in listed:
        families.setdefault(row["family"], []).append(row["name"])
    lines = []
    for family, names in families.items():
        text = wrapped(" ".join(names), width(sys.stdout), first="  ", rest="  ")
        title = click.style(family, fg="cyan", bold=True) if style.colour else family
        lines.append(f"{title}:\n{text}\n")
    output.write("\n".join(lines).rstrip("\n"), styled=True)


def _write_found(found: list[Facts], style: output.Style) -> None:
    """One function a line: its name and what it computes."""
    if style.form == "json":
        keys = ("name", "family", "signature", "aliases", "nodes")
        output.write_json({"functions": [{key: row[key] for key in keys} for row in found]})
        return
    if style.form == "plain":
        output.write("\n".join(f"{e['name']}\t{e['family']}\t{e['signature']}" for e in found))
        return
    room = max(len(row["name"]) for row in found)
    columns = width(sys.stdout)
    lines = []
    for row in found:
        text = f"{row['name']:<{room}}  {row['doc']}".rstrip()
        cut = style.summarise and len(text) > columns
        lines.append(f"{text[: columns - 1].rstrip()}…" if cut else text)
    output.write("\n".join(lines), styled=True)


def search(word: str) -> list[Facts]:
    """The functions that a word has to do with: as a pattern of names, another language's name, a family,
    a part of a name or of a description, several words of one. The best of these that finds anything."""
    from fnmatch import fnmatchcase

    from gradcli.language import foreign_names

    word = word.lower().strip()
    every = _listed()
    if set("*?[") & set(word):
        return [e for e in every if any(fnmatchcase(n, word) for n in _names(e))]
    if found := [e for e in every if e["family"] in (word, f"{word}s", f"{word}es")]:
        return found
    told = foreign_names.FUNCTIONS.get(word, "") or foreign_names.SUBJECTS.get(word, "")
    meant = [row for name in re.findall(r"[a-z][\w.]*", told) if (row := _called(name))]
    if word.replace("_", "").replace(" ", "").isalnum() and len(word) > 2:
        said = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
        meant += [e for e in every if any(word in n for n in _names(e))]
        meant += [e for e in every if said.search(e["doc"])]
    if not meant and " " in word:
        wanted = set(word.split())
        meant = [e for e in every if wanted <= set(re.findall(r"\w+", e["doc"].lower()))]
    return list({row["name"]: row for row in meant}.values())


def _called(name: str) -> Facts | None:
    """The function that is called so, or of which it is an alias."""
    found = find(name)
    return found if found is not None and name in (found["name"], *found["aliases"]) else None


def _names(row: Facts) -> list[str]:
    return [
        name for full in (row["name"], *row["aliases"]) for name in (full, full.rpartition(".")[2])
    ]


def is_function(name: str) -> bool:
    """Whether a function, or a constant, has exactly this name."""
    bare = name.removeprefix("torch.")
    return bare in _known()[1] or _called(bare) is not None


def show(name: str, style: output.Style) -> None:
    """Write what there is to know about a function."""
    bare = name.removeprefix("torch.").removeprefix("Tensor.")
    if bare.startswith("F."):
        bare = bare.replace("F.", "nn.functional.", 1)
    constants = _known()[1]
    if bare in constants:
        if style.form == "json":
            output.write_json({"name": bare, "value": output.to_json(constants[bare])})
        else:
            output.write(f"{bare} = {constants[bare]}")
        return
    found = find(bare)
    if found is None and (listed := search(name)):
        _write_found(listed, style)
        return
    if found is None:
        raise _unknown(name)
    if style.form == "json":
        output.write_json({key: value for key, value in found.items() if key != "short"})
        return
    output.write("\n".join(_lines(found, style.colour)), styled=True)


_HOOK = "programs have x.register_hook(lambda g: …), and grad has --hook 'x: EXPR of grad'"
_GRAPH = "programs have y.backward(create_graph=True), and grad has --create-graph"
_RETAIN = "programs have b.retain_grad(), and grad has --retain b"
# What is no function, but a method of a tensor in programs, or an option of a command.
ELSEWHERE = {
    **dict.fromkeys(("hook", "register_hook"), _HOOK),
    "create_graph": _GRAPH,
    "retain_grad": _RETAIN,
    "retain_graph": "programs have y.backward(retain_graph=True), and grad has --retain-graph",
    "backward": "programs have y.backward(), and the command is gradcli grad",
    "requires_grad": "programs have tensor(…, requires_grad=True); on a command line every variable has it, "
    "but those of --no-grad",
    "no_grad": "programs have `with no_grad():`, and commands have --no-grad x",
}


def _unknown(name: str) -> Exception:
    from gradcli.language.located_errors import did_you_mean, suggest

    functions, constants = _known()
    names = sorted({*functions, *constants, *(n for e in functions.values() for n in e["aliases"])})
    bare = re.sub(r"^[^\W\d]\w?\.|\(.*", "", name)  # `x.sin`, `sin(x)`
    hint = (
        ELSEWHERE.get(bare)
        or _as_term(name)
        or did_you_mean([bare] if bare in names else suggest(name, names))
        or "gradcli ops lists them all"
    )
    return usage(f"no function is called `{name}`", hint=hint, kind="name")


def _as_term(name: str) -> str | None:
    from gradcli.commands import glossary

    return f"gradcli help {name} explains the term" if glossary.find(name) else None


def _lines(found: dict[str, Any], colour: bool) -> list[str]:
    """What a person reads about a function: one fact a line, none empty."""
    from gradcli.engine.registry.version_facts import Fact

    def line(key: str, text: str) -> str:
        label = f"{key:<12}"
        return f"  {click.style(label, fg='cyan') if colour else label}{text}"

    signature = click.style(found["signature"], bold=True) if colour else found["signature"]
    lines = [signature]
    if found["doc"]:
        lines.append(f"  {found['doc']}")
    lines.append(line("family", found["family"]))
    if found["aliases"]:
        lines.append(line("aliases", ", ".join(found["aliases"])))
    forms = []
    bare = found["name"].rpartition(".")[2]
    if found["method"]:
        forms.append(f"x.{bare}(…)")
    if found["inplace"]:
        forms.append(f"x.{bare}_(…)")
    if forms:
        lines.append(line("methods", ", ".join(forms)))
    for row in found["rows"]:
        lines.append(line("node", row["node"] or "none: not differentiable"))
        if row["saves"]:
            lines.append(line("saves", ", ".join(row["saves"])))
        lines += [
            line("derivative", f"{argument}: {rule or '(see the source)'}")
            for argument, rule in row["derivatives"].items()
        ]
    sources: dict[str, None] = {}
    for asked in found["kinks"]:
        lines.append(line("at the kink", asked["question"]))
        for answer, listed in asked["answers"].items():
            titles = ", ".join(one["title"] for one in listed)
            lines.append(line("", f"{answer}: {titles}"))
            if all(s["title"] != "PyTorch 2.13" for s in listed):
                sources |= {f"{s['system']} ({s['source']})": None for s in listed if s["source"]}
    if sources:
        lines.append(line("written in", ", ".join(sources)))
    if found["example"]:
        lines.append(line("example", found["example"]))
    lines += [line("by version", str(Fact(**fact))) for fact in found["versions"]]
    return lines

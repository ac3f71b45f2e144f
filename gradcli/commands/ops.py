"""`gradcli ops [NAME]`: the operator table, or one function of it."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import STYLE, Argument, Options, declare
from gradcli.commands.options import chosen_form
from gradcli.commands.terminal import width, wrapped

if TYPE_CHECKING:
    from gradcli.engine.registry.table import Function

SAMPLES_TRIED = 5
VARIABLES = "xyzuvw"


@declare(
    "ops",
    Argument("[NAME]", name="name", complete="functions"),
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
    if options.name is None:
        _list(style)
    else:
        show(options.name, style)


def entries() -> dict[str, list[Function]]:
    """The functions by family, each once."""
    from gradcli.engine.registry import table

    found: dict[str, list[Function]] = {}
    for entry in sorted(table.entries(), key=lambda entry: entry.name):
        if entry.name.startswith("_"):  # a kernel of PyTorch's that others are made of
            continue
        found.setdefault(entry.family, []).append(entry)
    return {family: found[family] for family in sorted(found)}


def _list(style: output.Style) -> None:
    families = entries()
    if style.form != "text" or not style.summarise:
        _write_found([entry for family in families.values() for entry in family], style)
        return
    lines = []
    for family, listed in families.items():
        names = " ".join(entry.name for entry in listed)
        text = wrapped(names, width(sys.stdout), first="  ", rest="  ")
        title = click.style(family, fg="cyan", bold=True) if style.colour else family
        lines.append(f"{title}:\n{text}\n")
    output.write("\n".join(lines).rstrip("\n"), styled=True)


def _write_found(found: list[Function], style: output.Style) -> None:
    """One function a line: its name and what it computes."""
    if style.form == "json":
        output.write_json({"functions": [summary(entry) for entry in found]})
        return
    if style.form == "plain":
        output.write("\n".join(f"{e.name}\t{e.family}\t{e.signature}" for e in found))
        return
    room = max(len(entry.name) for entry in found)
    lines = []
    for entry in found:
        text = f"{entry.name:<{room}}  {' '.join((entry.doc or '').split())}".rstrip()
        columns = width(sys.stdout)
        cut = style.summarise and len(text) > columns
        lines.append(f"{text[: columns - 1].rstrip()}…" if cut else text)
    output.write("\n".join(lines), styled=True)


def search(word: str) -> list[Function]:
    """The functions that a word has to do with: as a pattern of names, another language's name, a family,
    a part of a name or of a description. The best of these that finds anything."""
    from fnmatch import fnmatchcase

    from gradcli.engine.registry.table import FUNCTIONS, knows
    from gradcli.language import foreign_names

    word = word.lower().strip()
    every = [entry for family in entries().values() for entry in family]
    if set("*?[") & set(word):
        return [e for e in every if any(fnmatchcase(n, word) for n in _names(e))]
    if found := [e for e in every if e.family in (word, f"{word}s", f"{word}es")]:
        return found
    told = foreign_names.FUNCTIONS.get(word, "") or foreign_names.SUBJECTS.get(word, "")
    meant = [FUNCTIONS[n] for n in re.findall(r"[a-z][\w.]*", told) if knows(n) and n in FUNCTIONS]
    if not word.replace("_", "").replace(" ", "").isalnum():
        return meant
    inside = [e for e in every if any(word in n for n in _names(e)) and len(word) > 2]
    said = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
    described = [e for e in every if len(word) > 2 and said.search(e.doc or "")]
    return list(dict.fromkeys([*meant, *inside, *described]))


def _names(entry: Function) -> list[str]:
    return [
        name for full in (entry.name, *entry.aliases) for name in (full, full.rpartition(".")[2])
    ]


def summary(entry: Function) -> dict[str, Any]:
    """One function as JSON, short."""
    return {
        "name": entry.name,
        "family": entry.family,
        "signature": entry.signature,
        "aliases": list(entry.aliases),
        "nodes": [primitive.node for primitive in entry.primitives if primitive.node],
    }


def details(entry: Function) -> dict[str, Any]:
    """One function as JSON, whole."""
    from gradcli.engine.registry.version_facts import facts_of
    from gradcli.graphs.vjp_text import rules_of

    rows = [
        {"node": primitive.node, "saves": list(primitive.saves), "derivatives": rules_of(primitive)}
        for primitive in entry.primitives
    ]
    return {
        **summary(entry),
        "doc": " ".join((entry.doc or "").split()),
        "method": entry.method,
        "inplace": entry.inplace,
        "rows": rows,
        "kinks": kinks_of(entry),
        "example": example(entry),
        "versions": [fact._asdict() for fact in facts_of((entry.name, *entry.aliases))],
    }


def kinks_of(entry: Function) -> list[dict[str, Any]]:
    """What systems answer where the function has no derivative: the recorded questions about it."""
    from gradcli.transforms.recorded_answers import groups, questions

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
    """A command line that runs the function: the first sample that does, tried here and now."""
    for sample in entry.samples[:SAMPLES_TRIED]:
        expression, values = _with_variables(sample)
        verb = _verb(expression, values)
        if verb is not None:
            words = ["gradcli", verb.split()[0], f'"{expression}"']
            words += [f'--{name} "{text}"' for name, text in values.items()]
            return " ".join([*words, *verb.split()[1:]])
    return None


def _with_variables(sample: str) -> tuple[str, dict[str, str]]:
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
    from gradcli import language
    from gradcli.language.located_errors import OPERATION_ERRORS

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


def show(name: str, style: output.Style) -> None:
    """Write what there is to know about a function."""
    from gradcli.engine.registry.table import FUNCTIONS, resolve
    from gradcli.language.names import functional

    bare = name.removeprefix("torch.").removeprefix("Tensor.")
    if bare.startswith("F."):
        bare = bare.replace("F.", "nn.functional.", 1)
    value = resolve(bare)
    entry = FUNCTIONS.get(bare)
    if entry is None and isinstance(value, float | complex):
        if style.form == "json":
            output.write_json({"name": bare, "value": output.to_json(value)})
        else:
            output.write(f"{bare} = {value}")
        return
    if entry is None and (whole := functional(bare)) is not None:
        entry = resolve(whole)
    if entry is None and (listed := search(name)):
        _write_found(listed, style)
        return
    if entry is None:
        raise _unknown(name)
    found = details(entry)
    if style.form == "json":
        output.write_json(found)
        return
    output.write("\n".join(_lines(found, style.colour)), styled=True)


def _unknown(name: str) -> Exception:
    from gradcli.engine.registry.table import names
    from gradcli.language.located_errors import did_you_mean, suggest

    bare = re.sub(r"^[^\W\d]\w?\.|\(.*", "", name)  # `x.sin`, `sin(x)`
    hint = (
        did_you_mean([bare] if bare in names() else suggest(name, names()))
        or "gradcli ops lists them all"
    )
    return usage(f"no function is called `{name}`", hint=hint, kind="name")


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

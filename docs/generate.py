"""Write docs/*.md and the manual page from the source: python docs/generate.py [--plots]

commands/ is what `--help-all` says, a page a command, and so is the manual page gradcli.1; language.md has
examples that are run here and now, names.md the closed lists of names, grammar.md the grammar.
tests/docs holds that nothing is out of date.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator
from html import escape
from inspect import cleandoc
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))  # a checkout documents itself
GRAMMAR = FOLDER.parent / "grammars" / "gradcli.lark"
WIDTH = 96
NOTE = "<!-- Written by docs/generate.py; do not edit. -->\n"

# What the language can do, each shown by a program that is run: (title, programs).
SHOWN: list[tuple[str, list[str]]] = [
    (
        "Expressions mean what they mean in Python",
        ["-2**2", "2**-1", "7 // 2, 7 % 3, -7 // 2", "1 < 2 <= 2", "3 if 1 > 2 else 4",
         "[1, 2] + [3]", "(lambda a, b=2: a*b)(5)", "'loss' + f' {3.14159:.2f}'", "1e3, 1_000, 2j"],
    ),
    (
        "Names are PyTorch's",
        ["tensor([1.0, 2.0]).sum()", "torch.sin(tensor(0.0))", "linalg.det(eye(3))",
         "F.relu(tensor([-1.0, 2.0]))", "pi", "arange(3.0).dtype"],
    ),
    (
        "Indexing",
        ["x = arange(6.0).reshape(2, 3); x[1, -1]", "x = arange(6.0).reshape(2, 3); x[:, ::2]",
         "x = arange(4.0); x[x > 1]", "x = arange(4.0); x[[0, 2]]", "arange(3.0)[None, ..., None].shape"],
    ),
    (
        "Statements",
        ["a, (b, c) = 1, (2, 3); a + b*c", "total = 0\nfor i in range(4):\n    total += i\ntotal",
         "n = 0\nwhile True:\n    n += 1\n    if n > 3:\n        break\nn",
         "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(10)",
         "x = ones(2, requires_grad=True)\nwith no_grad():\n    x *= 3\nx",
         "try:\n    ones(2).backward()\nexcept RuntimeError as error:\n    print(error)",
         "import torch as t\nt.ones(2)"],
    ),
    (
        "Comprehensions and dicts",
        ["[i**2 for i in range(5) if i % 2]", "{name: len(name) for name in ['w', 'bias']}",
         "p = {'w': ones(2), 'b': 3}; p['b'] += 1; p.get('c', 0), 'w' in p, p['b']",
         "p = {'w': 2., 'b': 3.}\nfor name, value in p.items():\n    print(name, value)",
         "def line(x, w=1., b=0.):\n    return w*x + b\nline(*[2.], **{'b': 3.})",
         "sum(i*i for i in range(4)), max(i % 3 for i in range(4))",
         "sum([ones(2), ones(2)]), sum(ones(2))",
         "first = (i for i in range(10**9) if i*i > 50); next(first)"],
    ),
    (
        "Gradients, graphs, hooks",
        ["x = arange(4.0, requires_grad=True)\ny = 2*dot(x, x)\ny.backward()\nx.grad",
         "x = ones(1, requires_grad=True)\n(2*x).grad_fn.next_functions[0][0].name()",
         "x = ones(2, requires_grad=True)\ny = x*3\nhandle = y.register_hook(lambda g: -g)\n"
         "y.sum().backward()\nx.grad"],
    ),
]  # fmt: skip
REFUSED = [
    "x^2",
    "2(3)",
    "foo(1)",
    "norm*2",
    "ones(2) + ones(3)",
    "class A: pass",
    "(1).__class__",
    "{1, 2}",
    "1 +",
]
VALUES = ["3", "0,1,2,3", "3,", "1,2;3,4", "[[1,2],[3,4]]", "0:4", "0:1:0.25", "2*pi", "ones(3)",
          "inf", "-1e-3", "1+2j", "tensor([1,2], dtype=int64)"]  # fmt: skip
ATTRIBUTES = [("a tensor", "ones(2, 2)"), ("a node", "ones(1, requires_grad=True).sum().grad_fn"),
              ("a string", "''"), ("a list", "[1]"), ("a dict", "{}"),
              ("a dtype", "float64")]  # fmt: skip


# Where to learn more about a command.
TOLD = {
    "eval": "guide/gradients.md", "grad": "guide/gradients.md", "graph": "guide/graphs.md",
    "diff": "guide/formulas.md", "simplify": "guide/formulas.md", "taylor": "guide/formulas.md",
    "run": "guide/programs.md", "batch": "guide/programs.md", "repl": "guide/programs.md",
    "jacobian": "guide/matrices.md",
    "hessian": "guide/matrices.md", "jvp": "guide/matrices.md", "map": "tables.md",
    "minimize": "tutorials/minimize.md", "root": "tutorials/root.md", "fit": "tutorials/fit.md",
    "plot": "guide/plots.md", "check": "guide/formulas.md", "ops": "functions/index.md",
    "help": "glossary.md", "completion": "guide/programs.md",
}  # fmt: skip


def commands() -> Iterator[tuple[str, str]]:
    """The path and the text of a page for each command, and of one that lists them."""
    from gradcli.commands import COMMANDS

    listed = [f"| [`{name}`]({name}.md) | {text} |" for name, text in COMMANDS.items()]
    yield (
        "commands/index.md",
        f"{NOTE}\n# Commands\n\n`gradcli COMMAND --help` shows the most used options of a command, "
        "`--help-all` all of them.\n\n| command | does |\n|---|---|\n" + "\n".join(listed) + "\n",
    )
    for name, command, ctx in _commands():
        usage = " ".join(command.collect_usage_pieces(ctx))
        parts = [f"{NOTE}\n# gradcli {name}\n", f"```text\ngradcli {name} {usage}\n```\n"]
        parts += [_marked(" ".join(p.split())) + "\n" for p in command.help.split("\n\n")]
        if command.declaration.operand == "EXPR":
            parts.append(
                "Every variable of EXPR is an option that takes its [value](../guide/values.md), as in "
                "`--x 1,2,3`.\n"
            )
        parts.append(f"Learn more: [{TOLD[name].partition('.')[0]}](../{TOLD[name]}).\n")
        examples = (command.epilog or "").replace("\b\nExamples:\n", "")
        parts.append(f"## Examples\n\n```sh\n{cleandoc(examples)}\n```\n")
        for title, records in command.records(ctx).items():
            records = [record for record in records if "--help" not in record[0]]
            if records:
                parts.append(f"## {title}\n\n| option | does |\n|---|---|")
                parts += [f"| {_code(written)} | {_marked(said)} |" for written, said in records]
                parts.append("")
        yield f"commands/{name}.md", "\n".join(parts)


def _code(text: str) -> str:
    """A cell of a table that shows a text as it is typed."""
    return f"<code>{escape(text, quote=False).replace('|', '&#124;')}</code>"


def _marked(text: str) -> str:
    """A text without marks of Markdown's but code."""
    pieces = re.split(r"(`[^`]*`)", text.replace("|", "&#124;"))
    return "".join(p if p[:1] == "`" else re.sub(r"([*_<>\[\]])", r"\\\1", p) for p in pieces)


def _commands() -> Iterator[tuple[str, Any, Any]]:
    """Every command: its name, itself, and a context of click's."""
    import click

    from gradcli.cli import main
    from gradcli.commands import COMMANDS

    group = click.Context(
        main,
        info_name="gradcli",
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **main.context_settings,
    )
    for name in COMMANDS:
        command = main.get_command(group, name)
        with click.Context(command, info_name=name, parent=group) as ctx:
            yield name, command, ctx


MANUAL = {
    "EXIT STATUS": [
        ("0", "It is done."),
        ("1", "The computation was refused, or a check failed."),
        ("2", "The command line or the expression has an error."),
        ("130", "Ctrl-C."),
    ],
    "ENVIRONMENT": [
        ("GRADCLI_DTYPE", "The default of --dtype."),
        ("GRADCLI_HISTORY", "The file of the history of gradcli repl; empty for none."),
        ("NO_COLOR, FORCE_COLOR, COLUMNS, TERM", "As usual."),
    ],
}


KINKS = ("<!-- kinks: written by docs/generate.py -->", "<!-- end of kinks -->")


def kinks() -> str:
    """What each system answers where there is no derivative."""
    from gradcli.transforms import recorded_answers as recorded

    systems = recorded.systems()
    parts = [
        f"{NOTE}\n# Kinks: what each system answers\n\nWhere a derivative does not exist, every system "
        "has its own rule; and some rules give NaN where there is one. These questions were put to each "
        "system, in double precision, by a script; no answer is remembered. **Bold** is what differs from "
        "PyTorch 2.13, whose rules gradcli has. `-`: the system has no such function.\n\n"
        "`gradcli grad EXPR --like SYSTEM` computes with a system's rules, `--like all` with all of them, "
        "and a note of `grad` says where an expression lies on such a point: see [gradients and "
        "values](guide/gradients.md).\n"
    ]
    parts.append(f"| question | {' | '.join(s.title for s in systems)} |")
    parts.append(f"|---|{'---|' * len(systems)}")
    for one in recorded.questions():
        ours = recorded.number_of(one.answers.get(recorded.OURS, "-"))
        cells = [_answer(one.answers.get(s.id, ""), ours) for s in systems]
        parts.append(f"| {one.id} {_marked(one.text)} | {' | '.join(cells)} |")
    parts.append("\n## Reasons\n\n| system | where | rule |\n|---|---|---|")
    parts += [f"| {_marked(s.label)} | {_marked(s.source)} | {_marked(s.rules)} |" for s in systems]
    parts.append("\n## Changes between releases\n\n| system | run | changed |\n|---|---|---|")
    parts += [
        f"| {s.title} | {_marked(s.versions_run)} | {_marked(s.changed)} |"
        for s in systems
        if s.versions_run
    ]
    return "\n".join(parts) + "\n"


def _answer(answer: str, ours: Any) -> str:
    from gradcli.transforms import recorded_answers as recorded

    theirs = recorded.number_of(answer)
    if not answer or (answer.startswith("-") and theirs is None):
        return "-" if answer else ""
    text = _marked(answer)
    return text if theirs is None or ours is None or recorded.same(theirs, ours) else f"**{text}**"


def coming_from() -> str:
    """The page about other systems, with the questions to which each has another answer than PyTorch."""
    from gradcli.transforms import recorded_answers as recorded

    page = (FOLDER / "coming_from.md").read_text(encoding="utf-8")
    head, _, rest = page.partition(KINKS[0])
    tail = rest.partition(KINKS[1])[2]
    parts = [
        KINKS[0],
        "\n## Where a ported gradient differs\n\nAt these points the system answers something else than "
        "PyTorch 2.13, as it was run. [Kinks](kinks.md) has all questions and reasons; `gradcli grad EXPR "
        "--like SYSTEM` answers for your own expression.\n",
    ]
    for s in recorded.systems():
        found = recorded.differing(s)
        if not found:
            continue
        parts.append(f"### {s.title}: {len(found)} of {len(recorded.questions())}\n")
        parts.append(f"| question | PyTorch 2.13 | {s.title} |\n|---|---|---|")
        for one in found:
            both = (_marked(one.answers[n]) for n in (recorded.OURS, s.id))
            parts.append(f"| {_marked(one.text)} | {' | '.join(both)} |")
        parts.append("")
    return head + "\n".join([*parts, KINKS[1]]) + (tail or "\n")


def manual() -> str:
    """The manual page gradcli(1), in roff."""
    from gradcli.cli import main
    from gradcli.version import __version__

    summary = (main.help or "").strip().rstrip(".")
    parts = [
        '.\\" Written by docs/generate.py; do not edit.',
        f'.TH GRADCLI 1 "" "gradcli {__version__}" "User Commands"',
        ".SH NAME",
        f"gradcli \\- {_roff(summary[:1].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        ".B gradcli",
        r"\fICOMMAND\fR [\fIARGUMENT\fR ...] [\fIOPTION\fR ...]",
        ".SH COMMANDS",
    ]
    common: dict[str, str] = {}
    for name, command, ctx in _commands():
        usage = " ".join(command.collect_usage_pieces(ctx))
        parts += [f".SS gradcli {_roff(name)} {_roff(usage)}"]
        for paragraph in (command.help or "").strip().split("\n\n"):
            parts += [_roff(" ".join(paragraph.replace("\b", "").split())), ".PP"]
        examples = (command.epilog or "").replace("\b", "").strip()
        parts += [".EX", *map(_roff, examples.splitlines()), ".EE"] if examples else []
        for title, records in command.records(ctx).items():
            if title == "Options":
                parts += _entries(r for r in records if "--help" not in r[0])
            else:
                common |= records
    parts += [".SH OPTIONS OF MOST COMMANDS", *_entries(common.items())]
    for title, entries in MANUAL.items():
        parts += [f".SH {title}", *_entries(entries)]
    return "\n".join(parts) + "\n"


def _entries(entries: Iterable[tuple[str, str]]) -> list[str]:
    """Terms, and what is said of each."""
    return [
        line
        for term, said in entries
        for line in (".TP", f".B {_roff(term)}", _roff(" ".join(said.split())))
    ]


def _roff(text: str) -> str:
    """A line of text as roff has to read it."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
    return f"\\&{text}" if text[:1] in (".", "'") else text


def language() -> str:
    """What the language is, by examples that are run."""
    parts = [
        f"{NOTE}\n# The language\n\nExpressions and programs are written in Python's syntax with "
        "PyTorch's names for functions. A part of Python's syntax is left out, and nothing is added. The "
        "value of a program is its last expression. Statements are separated by newlines or `;`. On the "
        "command line numbers are float64.\n"
    ]
    for title, programs in SHOWN:
        parts.append(f"## {title}\n\n```text")
        parts += [line for program in programs for line in _dialogue(program)]
        parts.append("```\n")
    parts.append("## What it refuses\n\n```text")
    parts += [_refusal(program) for program in REFUSED]
    parts.append("```\n\n## Values on the command line\n\nWhat follows `--x`:\n")
    parts.append("| text | value |\n|---|---|")
    parts += [f"| `{text}` | `{_value(text)}` |" for text in VALUES]
    parts.append(
        "| `0.994±0.002`, `0.994(2)`, `5±2%` | a value with its standard uncertainty |\n"
        "| `@file.npy`, `@file.npz:key`, `@file.csv`, `.tsv`, `.txt`, `.json` | what the file holds |\n"
        "| `-` | standard input |\n"
    )
    parts.append(
        "[Names](names.md) lists what is not PyTorch's function, and the attributes that can be read; "
        "the [grammar](grammar.md) is the definition.\n"
    )
    return "\n".join(parts)


def name_lists() -> str:
    """The names of the language that are not functions of PyTorch's, and all attributes."""
    from gradcli.language import names

    parts = [
        f"{NOTE}\n# Names of the language\n\n`gradcli ops` and the [functions](functions/index.md) "
        "list PyTorch's functions. This page lists all other names that a program can use.\n\n"
        "A variable may have any name, a function's too: in `norm*2`, `norm` is the number that `--norm` "
        "or a column `norm` gives. Without such a value the program is refused.\n"
    ]
    parts.append("## Python's functions and exceptions\n")
    parts.append(f"{_listed([*names.builtins(), 'print', 'display'])}.\n")
    parts.append("## Namespaces\n")
    parts.append(f"{_listed([*sorted(names.NAMESPACES), 'F'])}.\n")
    parts.append(
        "## Attributes\n\nThese attributes can be read. Any other is refused, and so is every name that "
        "begins with two underscores.\n"
    )
    for what, source in ATTRIBUTES:
        found = names.attributes(_run(source).value)
        own = [name for name in found if not name.startswith("_")]
        parts.append(f"### {what[:1].upper()}{what[1:]}\n\n{_listed(own)}.\n")
    return "\n".join(parts)


def glossary() -> str:
    """The terms of `gradcli help TERM`, each under a heading that links lead to."""
    from gradcli.commands.glossary import TERMS, find

    def anchor(name: str) -> str:
        return re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-")

    parts = [
        f"{NOTE}\n# Glossary\n\nThe terms of automatic differentiation. `gradcli help leaf` prints one, "
        "`gradcli help terms` lists them."
    ]
    for term in sorted(TERMS, key=lambda t: t.name.lower()):
        beside = [found.name for name in term.see if (found := find(name))]
        links = ", ".join(f"[{name}](#{anchor(name)})" for name in beside)
        said = f"Also called: {', '.join(term.also)}.\n\n" if term.also else ""
        said = said.replace("_", "\\_")
        see = f"\n\nSee also: {links}." if links else ""
        parts.append(
            f"## {term.name}\n\n{_marked(term.text)}\n\n{said}```sh\n{term.example}\n```{see}"
        )
    return "\n\n".join(parts) + "\n"


def grammar() -> str:
    """The grammar that the parser is made from."""
    return (
        f"{NOTE}\n# The grammar of the language\n\nIn the notation of "
        "[Lark](https://lark-parser.readthedocs.io/en/stable/grammar.html). Python reads all that it "
        "accepts, to the same tree.\n\n"
        f"```lark\n{GRAMMAR.read_text(encoding='utf-8').rstrip()}\n```\n"
    )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _run(source: str, write: Any = None) -> Any:
    from gradcli import language

    return language.run(language.parse(source), {}, write=write)


def _dialogue(program: str) -> Iterator[str]:
    """A program and what it shows, as a session prints them."""
    from gradcli.language.display import pretty

    printed: list[str] = []
    found = _run(program, printed.append)
    first, *rest = program.split("\n")
    yield f">>> {first}"
    for line in rest:
        yield f"{'...' if line.startswith((' ', 'except', 'else')) else '>>>'} {line}"
    yield from "".join(printed).splitlines()
    if found.value is not None:
        yield pretty(found.value)


def _refusal(program: str) -> str:
    from gradcli.language.located_errors import LanguageError

    try:
        _run(program)
    except LanguageError as error:
        return f"{error.render()}\n"
    raise AssertionError(f"{program} is not refused")


def accuracy() -> str:
    """Where derivatives have digits that PyTorch's have not."""
    import json

    path = FOLDER.parent / "tests" / "golden" / "accuracy.json"
    parts = [
        f"{NOTE}\n# Digits\n",
        "Values and derivatives are PyTorch's, but for the last digits. Where PyTorch's formula for a\n"
        "derivative loses its digits and a better one is known, gradcli computes the better number; the\n"
        "node, what it saves and what `create_graph` records stay PyTorch's. A test holds each line to the\n"
        "exact value (of mpmath, at the nearest double), within four units in the last place.\n",
        "| derivative of | at | exactly | PyTorch 2.13 | by |\n|---|---|---|---|---|",
    ]
    for entry in json.loads(path.read_text(encoding="utf-8")):
        numbers = f"{entry['x']!r} | {entry['exact']!r} | {entry['torch']!r}"
        parts.append(f"| `{entry['source']}` | {numbers} | {entry['how']} |")
    parts.append(
        "\nOne value is better than PyTorch's, too: `special.ndtr(x)` is there (1 + erf)/2, which\n"
        "has lost its digits below -5 and is 0 below -8.3. gradcli takes erfc's: `special.ndtr(-10)` is\n"
        "7.62e-24. The nodes stay PyTorch's.\n"
        "\nWhat stays in `torch`'s functions and graphs: the derivatives of tanh, sigmoid and expm1 are\n"
        "computed from the result, which PyTorch saves, and lose their digits as it does where the result\n"
        "is close to 1 or -1. The commands give the digits back, and so do `diff --format\n"
        "python|numpy|jax|c` (`sech2(x)`, `sigmoid(x)*sigmoid(-x)`, `exp(x)`). softplus is linear above\n"
        "its threshold by definition: `diff` writes its slope as a sigmoid, and as\n"
        "`where(beta*x > threshold, 1, …)` where that is another number, for a threshold below 18 and at\n"
        "points where the derivative of a higher order is 0. `log(erfc(x))` is the quotient of two numbers\n"
        "that are 0 from 27 on: `special.log_ndtr` is the function for it.\n\n"
        "`--like torch` asks for PyTorch's own numbers: `grad`, `jacobian`, `hessian` and `jvp` then\n"
        "compute by the formulas that it states, without what this page lists, and print the numbers of the\n"
        "column PyTorch 2.13."
    )
    parts += _by_series(path.with_name("series.json"))
    parts.append(
        "\n## Native code\n\n"
        "With `--native` and `compile(…, native=True)` arithmetic, comparisons and roots have the\n"
        "tape's bits, and so have sums of whole vectors and of rows. Functions of the C library (exp, log,\n"
        "sin, pow, erf and their like) are its vector ones, at most 4 units in the last place off; tanh is\n"
        "one of our own, at most 3 units off, and so is, with AVX-512 or AVX2, exp of arrays, at "
        "most 1.02 units;\n"
        "a softmax's slope is a quotient in place of a second exponential. NaN, infinities, signed zeros\n"
        "and subnormal numbers are as on the tape, and the bits do not depend on the number of threads."
    )
    return "\n".join([*parts, *_sums(path.with_name("sums.json"))]) + "\n"


def _critical() -> list[tuple[str, str]]:
    """The operators that series are asked about, with the conditions that they state."""
    import inspect
    import re

    from gradcli.engine.registry.table import PRIMITIVES

    found: dict[str, list[str]] = {}
    for primitive in PRIMITIVES:
        for fact in (primitive.critical, primitive.bends):
            if fact is not None:
                # a condition of several lines ends where its bracket does
                text = re.search(
                    r"lambda [^:]*: ((?:[^\n]*\(\n.*?\n    \))|.*?),?\n",
                    inspect.getsource(fact),
                    re.S,
                )
                assert text is not None, primitive.name
                condition = re.sub(r"(?<=\() | (?=\))", "", " ".join(text[1].split()))
                found.setdefault(primitive.public_name, []).append(condition.replace("|", "\\|"))
    return [(name, ", ".join(found[name])) for name in sorted(found)]


def _by_series(path: Path) -> Iterator[str]:
    """Where nested backward passes fail, and the commands take power series."""
    import json

    recorded = json.loads(path.read_text(encoding="utf-8"))
    yield (
        "\n## Where rules divide 0 by 0\n\n"
        "`hessian`, `jacobian`, `jvp`, `grad --order N`, `check --second-order` and `minimize` look at what\n"
        "the rules gave. Where that is no number, or where an operator is known to lose digits there, the\n"
        "program is run on power series along lines through the point, to both sides, and for second\n"
        "derivatives by two routes: by the value and by the gradient. Their number is given where the\n"
        "bound of its rounding error is less than a billionth of it, where it is another one by more\n"
        "than four units in the last place, and a note says so. From the fourth order on series are taken\n"
        "at once, for they are faster. What stays: `grad` of the first order has PyTorch's NaN and its\n"
        "choice at kinks (with `--detect-anomaly`, which says where NaN comes from); `gradcli.func` and\n"
        "`torch.autograd`'s functions have PyTorch's numbers. Complex programs, and matrices by more than\n"
        "400 elements, stay on the tape, and a note says so.\n\n"
        "Operators whose rules fail, and where:\n\n| operator | where |\n|---|---|\n"
        + "".join(f"| `{name}` | `{where}` |\n" for name, where in _critical())
        + "\n"
        "Series say `undecided` where a zero may be one by rounding (`sin(x)/x` at 1e-9,\n"
        "`(0.1 + 0.2 + x - 0.3)/x`), and where lines tell nothing about curves\n"
        "(`x**4*y/(x**8 + y**2)`); where they have no rule for an operator, what the formula of `diff`\n"
        "gives is taken where that is a number.\n\n"
        f"{len(recorded['rows'])} functions at regular points, in tails, at edges and at removable points,\n"
        "with derivatives of the orders 1 to 4, are held to the exact values to eight digits. Of these\n"
        "PyTorch's nested backward passes have other numbers here (the lowest such order is shown):\n\n"
        "| function | at | order | exactly | PyTorch 2.13 |\n|---|---|---|---|---|"
    )
    for source, x, exact, torchs in recorded["rows"]:
        if torchs is None:
            continue
        numbers = [float(e) for e in exact]
        size = max(map(abs, numbers)) or 1.0
        for k in range(1, len(exact)):
            right, other = numbers[k], float(torchs[k])
            if not abs(other - right) <= 1e-8 * (abs(right) or size):
                yield f"| `{source}` | {x:g} | {k} | {right:.10g} | {other:.10g} |"
                break


def _sums(path: Path) -> Iterator[str]:
    """The errors of sums of many rows."""
    import json

    yield (
        "\n## Infinities and NaN\n\n"
        "Functions of neural networks have PyTorch's infinities and NaN, in values and gradients, wherever\n"
        "one is put into an operand or into the gradient that comes in, and so have second gradients\n"
        "(`create_graph`), also of functions of numbers. Tests of every place hold them to that. "
        "Where they differ:\n\n"
        "| function | PyTorch 2.13 | gradcli |\n|---|---|---|\n"
        "| convolution with a border of `padding` | 0·inf = NaN at the border; none in float32 where it goes "
        "to oneDNN, which it does for two images and not for one | NaN |\n"
        "| `scaled_dot_product_attention` without a mask, of four dimensions | a query that is NaN gives 0 "
        "where there are fewer keys than a vector has elements, NaN where there are more | NaN |\n"
        "| `cdist`, p = 2, from 26 rows on | inf - inf = NaN for a point at infinity; inf up to 25 rows | "
        "inf |\n"
        "| `gelu`, float32 | NaN at infinity; its float64 has inf | inf |\n"
        "| `layer_norm`, `group_norm`, `batch_norm`, `instance_norm` | multiplies by an infinite weight, or "
        "adds infinite gradients, before it subtracts: NaN | subtracts first: an infinity of a sign |\n"
        "| `bilinear`, gradient of the first operand | sums over the outputs last: inf - inf = NaN | sums "
        "first: an infinity of a sign |\n"
        "| second gradients of `bilinear`, `grid_sample` and norms with weights | infinities of both signs "
        "are summed in its order | in another order: NaN for an infinity, or the other way round |\n"
        "| `interpolate` with `antialias` | a weight that is 0 beside the filter is a rounding error, and "
        "0 times infinity none | NaN, and the other way round in float32 |\n"
        "| `baddbmm`, alpha = 0 | small matrices are multiplied and give 0·inf = NaN; large ones are not | "
        "the product is left out |\n\n"
        "\n## Sums of many numbers\n\n"
        "Every sum is made in cascades, as PyTorch's are, along whatever dims: of rows too, which NumPy\n"
        "adds one by one. That holds for what sums are part of (means, variances, norms, softmax), for\n"
        "gradients that are summed to the shape of what was broadcast, in plans and in batches. Half\n"
        "precision is added in single. The order follows from the shape alone, not from the number of\n"
        "threads.\n\n"
        "The largest relative errors against float64, gradcli's and PyTorch's, of two columns of numbers\n"
        "between 0 and 1, added along the rows; sums and norms of float16 are asked for in float32. The\n"
        "gradient is that of a row that is added to all rows; in float16 it is infinite from 10^6 rows\n"
        "on. `python -m tests.golden.record_sums` measures them."
    )
    entries = json.loads(path.read_text(encoding="utf-8"))
    names = list(dict.fromkeys(e["what"] for e in entries))
    yield f"\n| dtype | rows | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}"
    for dtype, rows in dict.fromkeys((e["dtype"], e["rows"]) for e in entries):
        found = {e["what"]: e for e in entries if (e["dtype"], e["rows"]) == (dtype, rows)}
        cells = [
            f"{e['gradcli']:.0e}, {e['torch']:.0e}" if e else "" for e in map(found.get, names)
        ]
        yield f"| {dtype} | {rows:,} | {' | '.join(cells)} |"


def _value(text: str) -> str:
    from gradcli.language import read_value

    return re.sub(r"\n *", " ", repr(read_value(text)))


def picture() -> str:
    """The graph that the README shows."""
    from gradcli import language
    from gradcli.graphs import inspect

    source = "y = a*x; y + b"
    names = {n: language.read_value(v).requires_grad_() for n, v in zip("xab", "345", strict=True)}
    value = language.run(language.parse(source), names).value
    return inspect(value, source=source, names=names, grads=True).to_svg()


BACKWARD = ["h = tanh(w*x + b); (h - y)**2", "--w", "0.5", "--x", "2", "--b", "-0.3", "--y", "1",
            "--wrt", "w,b"]  # fmt: skip
SECONDS = 1.6  # that a step is shown


def animation() -> str:
    """The backward pass that the start page shows: the pictures of `--frames`, one after the other."""
    import tempfile

    from click.testing import CliRunner

    from gradcli.cli import main

    with tempfile.TemporaryDirectory() as folder:
        CliRunner().invoke(main, ["graph", *BACKWARD, "--frames", folder], catch_exceptions=False)
        paths = sorted(Path(folder).glob("*.svg"), key=lambda path: int(path.stem.split("-")[1]))
        frames = [path.read_text(encoding="utf-8") for path in paths]
    size = re.search(r'width="(\d+)" height="(\d+)"', frames[0])
    assert size is not None
    whole = SECONDS * len(frames)
    look = (
        f".step {{ opacity: 0; animation: step {whole:g}s step-end infinite }} "
        f"@keyframes step {{ 0% {{ opacity: 1 }} {100 / len(frames):g}% {{ opacity: 0 }} }} "
        "@media (prefers-reduced-motion: reduce) { .step { animation: none } "
        ".step:last-child { opacity: 1 } }"
    )
    delays = [
        f'<g class="step" style="animation-delay: {SECONDS * k:g}s">' for k in range(len(frames))
    ]
    steps = [f"{begin}\n{frame.strip()}\n</g>" for begin, frame in zip(delays, frames, strict=True)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[1]}" height="{size[2]}" '
        f'viewBox="0 0 {size[1]} {size[2]}">\n<style>{look}</style>\n'
        + "\n".join(steps)
        + "\n</svg>\n"
    )


PAGES = {
    "backward.svg": animation,
    "language.md": language,
    "names.md": name_lists,
    "glossary.md": glossary,
    "grammar.md": grammar,
    "graph.svg": picture,
    "gradcli.1": manual,
    "accuracy.md": accuracy,
    "kinks.md": kinks,
    "coming_from.md": coming_from,
}


def pages() -> dict[str, str]:
    """The text of every page."""
    from gradcli.engine.system import dtypes

    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.float64)
    try:
        return {**{name: page() for name, page in PAGES.items()}, **dict(commands())}
    finally:
        dtypes.set_default_dtype(before)


DECAY = "t,y\n" + "".join(f"{t},{3 * 0.6**t + 0.1 * (-1) ** t:.3f}\n" for t in range(1, 9))
LOGGER = "timestamp,T\n" + "".join(
    f"{1709632800 + 600 * k},{21 + 3 * math.sin(k / 9) + 0.1 * (k * 7 % 5):.2f}\n"
    for k in range(60)
)
PLOTS = {  # by matplotlib, whose releases draw a little differently: written only when asked for
    "curve.svg": ["plot", "x*sin(x)", "--x", "-10:10", "--at", "2"],
    "implicit.svg": ["plot", "x**2 + y**2 == 1, y == x**2", "--x", "-1.5:1.5", "--y", "-1.5:1.5",
                     "--at", "x=0.6,y=0.8", "--width", "46", "--height", "46"],
    "contours.png": ["plot", "(1-x)**2 + (y-x**2)**2", "--x", "-2:2", "--y", "-1:3", "--descend", "0.1",
                 "--at", "x=-1.5,y=2"],
    "surface.png": ["plot", "sin(x)*cos(y)", "--x", "-3:3", "--y", "-3:3", "--surface"],
    "columns.png": ["plot", "y", "-", "--sigma", "0.1"],
    "table.png": ["plot", "y == a*exp(-t/2)", "-", "--a", "3"],
    "logger.png": ["plot", "T", "-", "--over", "timestamp", "--sigma", "0.2"],
    "jacobian.png": ["jacobian", "tanh(A@x)", "--x", "linspace(0,1,20)", "--wrt", "x",
                 "--A", "sin(arange(400.)).reshape(20,20)"],
}  # fmt: skip


def plots() -> None:
    """Write docs/plots/*: what `plot` draws, the session and the notebook."""
    import subprocess

    sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]
    import pictures

    (FOLDER / "plots").mkdir(exist_ok=True)
    for name, words in PLOTS.items():
        path = FOLDER / "plots" / name
        command = [sys.executable, "-m", "gradcli", *words, "-o", str(path)]
        rows = LOGGER if name == "logger.png" else DECAY
        subprocess.run(command, input=rows, text=True, check=True)
        if path.suffix == ".png":
            pictures.pack(path)
    (FOLDER / "plots" / "repl.svg").write_text(pictures.session(), encoding="utf-8")
    pictures.notebook(FOLDER / "plots" / "notebook.png")
    pictures.pack(FOLDER / "plots" / "notebook.png")


if __name__ == "__main__":
    if "--plots" in sys.argv:
        plots()
    (FOLDER / "commands").mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"docs/{name}: {len(text.splitlines())} lines")

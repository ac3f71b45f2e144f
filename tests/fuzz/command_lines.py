"""Command lines made of the grammar, of what the table's functions are shown with, and of junk.

Each runs in a forked child that may take 4 GB of addresses and 5 seconds of the processor, in a folder
of its own. A failure is a traceback, a "fault in gradcli", an exit code that is none of ours, no end
within the limits, or words on the wrong stream. It is cut down to what still fails.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import click
import numpy as np

from gradcli.cli import main
from gradcli.commands import COMMANDS
from gradcli.engine.registry import table
from gradcli.language import LanguageError, parse
from gradcli.language import names as known
from gradcli.language.compile_grammar import load_lark
from tests import fuzz
from tests.fuzz import composing, files, inplace, pairs

MEMORY, SECONDS, PATIENCE = 4_000_000 * 1024, 5, 30
NAMES = ("x", "y", "w", "F", "torch", "nn", "x", "y", "π", "e", "t", "linalg", "a_long_name")
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "1.5",
    "1e3",
    "-1",
    "1e309",
    "10**9",
    "0x1f",
    "1j",
    "True",
    "None",
    "...",
    "10**10",
)
STRINGS = (
    "'a'",
    '"mean"',
    "'{}'",
    "f'{x}'",
    "f'{x:.2f}'",
    "r'\\d'",
    "'''a\nb'''",
    "'\\x1b[31m'",
    "'sum'",
)
VALUES = (
    *("1", "1,2,3", "1,2;3,4", "0:4", "0:1:0.25", "ones(3)", "tensor([1,2])", "nan,inf", "-", "[[1],[2]]"),
    *("1+2j", "True", "'a'", "", " ", "0:1e12", "1:", ":::", "randn(2,2,2)", "zeros(0)", "1e400", "[", "x"),
    *("@a.csv", "@a.tsv", "@a.json", "@a.json:k", "@a.npy", "@a.npz", "@a.npz:b", "@junk.npy", "@junk.csv"),
    *("0.994±0.002", "1(2)", "1+-0.1,2+-0.2", "1.5(1)e3,2", "±", "1±-1", "(1 ± 2)e3", "nan±1", "1(2)e-400"),
    *("@a.csv:x", "@table.parquet:x", "@table.feather:y", "@table.csv.xz", "@table.csv:label"),
    *("@", "@none.csv", "@a.txt", "eye(3)", "tensor(3, dtype=int8)", "ones(2,3,dtype=float16)", "lambda: 1"),
)  # fmt: skip
JUNK = ("\0", "\x1b", "\n", "\t", "\\", "'", '"', "(", ")", "[", "]", "{", "é", "²", "\ud800",
        " ", "-", "--", "=", "#", ";", ":", ",", "%", "@", "1", "_")  # fmt: skip
EXPRESSIONS = ("eval", "grad", "graph", "diff", "jacobian", "hessian", "jvp", "check")
_LIKELY = {
    "NAMES|all": ("x", "y", "x,y", "all"),
    "NAMES": ("x", "y", "x,y"),
    "NAME=VALUE": ("x=2", "y=1,2"),
    "x=3,4": ("x=3,4", "y=()"),
    "FILE": ("out.txt", "out.svg", "out.csv", "out.npz", "-", "program.txt", ".", ""),
    "FILE.py": files.LOADED,
    "FILE.py[:NAME]": files.LOADED,
    "A,B": ("-1,1", "0,0"),
    "VALUE": ("1,2,3", "ones", "1"),
}
LEFT_OUT = {"open", "help"}  # what starts a browser or a pager
# Words in front of a line that set the environment.
_SETTING = re.compile(r"[A-Z_]+=")
SETTINGS = (
    *(
        "COLUMNS=20",
        "COLUMNS=²",
        "NO_COLOR=1",
        "FORCE_COLOR=1",
        "TERM=dumb",
        "GRADCLI_DTYPE=float16",
    ),
    *("GRADCLI_DTYPE=float32", "GRADCLI_DTYPE=int8", "LINES=x", "LC_ALL=C", "HOME=", "PAGER=false"),
)
# What a session is told besides programs.
SAID = (
    *(
        ":names",
        ":save kept.txt",
        ":load kept.txt",
        ":load program.txt",
        ":reset",
        ":quit",
        ":help",
        ":x",
    ),
    *(
        "help",
        "help FUNCTION",
        "FUNCTION?",
        "NAME?",
        "NAME.sum?",
        "help NAME.grad_fn",
        ":load",
        "(",
        '"""',
    ),
    *(
        "graph NAME*2",
        "graph sin(NAME) --saved --grads",
        "graph NAME --depth x",
        "_*2",
        "exit",
        "",
        "NAME",
    ),
    *(
        "def f(a):\n  return a*2\n\nf(NAME)",
        "if NAME.sum() > 0:\n  y = 1\nelse:\n  y = 2",
        "_.backward()",
    ),
    *(
        "NAME.backward()",
        "print(NAME.grad)",
        "display(NAME)",
        "for i in range(3):\n  print(i)\n",
        "NAME = 3",
    ),
    *(
        "try:\n  NAME[9]\nexcept IndexError:\n  'no'\n",
        ":save /no/such/file",
        ":save .",
        "NAME.grad_fn",
    ),
)
# The endings of what `-o` writes.
WRITTEN = {
    "graph": (".svg", ".html", ".dot", ".json", ".mmd", ".tex", ".png", ".pdf", ".txt"),
    "map": (".csv", ".npy", ".tsv", ".jsonl", ".parquet", ".feather", ".csv.gz"),
}
PROGRAMS = (
    "2*dot(x,x)", "y = a*x; y + b", "sum(sin(w*x + y)**2)/3", "x @ x.T", "for i in range(3): x = x*2\nx",
    "def f(x):\n  if x.sum() > 0:\n    return x*2\n  return f(x + 1)\nf(x)",
    "with no_grad():\n  y = x*2\nx*y",
    "try:\n  x[9]\nexcept IndexError as error:\n  print(error)\nx", "x.backward()", "print(x, 'a', [x])",
    "y = x.clone(); y[0] = 3; y.sum()", "(lambda a, b=2: a*b)(x)", "assert x > 0, 'no'\nx", "linalg.inv(x)",
    "while x < 9: x = x + 1\nx", "import torch\ntorch.sin(x)", "[x, [1, 'a']]", "x, x*2", "F.softmax(x, 0)",
)  # fmt: skip


# -- texts from the grammar -----------------------------------------------------------------------
@cache
def rules() -> dict[str, list[list[str]]]:
    """The grammar's productions by nonterminal, those of f-strings left out."""
    found: dict[str, list[list[str]]] = {}
    for rule in load_lark().rules:
        symbols = [symbol.name for symbol in rule.expansion]
        if not any(name.startswith("FORMAT_") for name in symbols):
            found.setdefault(str(rule.origin.name), []).append(symbols)
    return found


@cache
def depths() -> dict[str, int]:
    """How deep the shallowest tree of a nonterminal is."""
    found: dict[str, int] = {}
    for _ in range(len(rules())):
        for name, productions in rules().items():
            sizes = [
                1 + max((found.get(s, 99) if s in rules() else 0 for s in p), default=0)
                for p in productions
            ]
            found[name] = min([*sizes, found.get(name, 99)])
    return found


@cache
def fixed() -> dict[str, str]:
    """The text of terminals that have but one."""
    return {
        t.name: t.pattern.value
        for t in load_lark().terminals
        if type(t.pattern).__name__ == "PatternStr"
    }


@cache
def words() -> tuple[list[str], list[str], list[str]]:
    """Functions, attributes, and the calls that the table shows functions with."""
    functions = [n for n in table.names() if "." not in n]
    attributes = sorted(
        {n.rpartition(".")[2] for n in [*table.names(), *table.methods(), *known.TENSOR_ATTRIBUTES]}
    )
    samples = sorted(
        {
            s
            for n in table.names()
            for s in getattr(table.resolve(n), "samples", ())
            if isinstance(s, str)
        }
    )
    return [*functions, *known.builtins()], attributes, samples


def derived(random: random.Random, name: str = "program", depth: int = 14) -> str:
    """A text that the grammar accepts, or nearly."""
    functions, attributes, _ = words()
    indent, pieces, waiting = 0, [], [(name, depth)]
    while waiting:
        symbol, left = waiting.pop()
        if symbol in rules():
            productions = rules()[symbol]
            least = [
                1 + max((depths()[s] for s in p if s in rules()), default=0) for p in productions
            ]
            fitting = [p for p, d in zip(productions, least, strict=True) if d <= left]
            chosen = random.choice(fitting or [productions[least.index(min(least))]])
            waiting += [(s, left - 1) for s in reversed(chosen)]
        elif symbol in fixed():
            starts = not pieces or pieces[-1].isspace()
            pieces.append(f"{'' if starts else ' '}{fixed()[symbol]} ")
        elif symbol in ("NAME", "NAME_EQ", "NAME_WALRUS"):
            word = random.choice(NAMES if symbol != "NAME" or random.random() < 0.6 else functions)
            pieces.append(word + {"NAME": "", "NAME_EQ": "=", "NAME_WALRUS": ":="}[symbol])
        elif symbol == "ATTRIBUTE":
            pieces.append(f".{random.choice(attributes)}")
        elif symbol in ("INDENT", "DEDENT"):
            indent += 1 if symbol == "INDENT" else -1
            pieces.append(" " * (indent if symbol == "INDENT" else 0))
        else:
            pieces.append(
                {"NEWLINE": "\n" + " " * indent}.get(symbol)
                or random.choice(NUMBERS if symbol == "NUMBER" else STRINGS)
            )
    return "".join(pieces).strip()


def mutated(random: random.Random, text: str) -> str:
    """The text with a few characters or tokens doubled, dropped, swapped or replaced."""
    for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
        separator = random.choice(("", " "))
        pieces = text.replace("(", " ( ").split(" ") if separator else list(text)
        if not pieces:
            return text
        i, j = random.randrange(len(pieces)), random.randrange(len(pieces))
        what = random.randrange(5)
        if what == 0:
            pieces.insert(i, random.choice(JUNK))
        elif what == 1:
            del pieces[i]
        elif what == 2:
            pieces[i], pieces[j] = pieces[j], pieces[i]
        elif what == 3:
            pieces.insert(i, pieces[j])
        else:
            pieces[i] = random.choice((*NUMBERS, *NAMES, *STRINGS))
        text = separator.join(pieces)
    return text


# -- command lines --------------------------------------------------------------------------------
@cache
def options(command: str) -> list[click.Option]:
    """The options that a command declares."""
    found = main.get_command(click.Context(main), command)
    assert found is not None
    return [p for p in found.params if isinstance(p, click.Option) and p.name not in LEFT_OUT]


def wanted(text: str, random: random.Random) -> list[str]:
    """The variables that a text needs values for, mostly."""
    try:
        found = parse(text).free_variables()
    except LanguageError:
        found = ["x"]
    if random.random() < 0.05:
        found.append(random.choice(NAMES))
    return [name for name in found if random.random() < 0.97]


@dataclass
class Line:
    """A command line: words (those like NAME=VALUE in front set the environment), what standard input
    holds, and files besides those that are always there."""

    argv: list[str]
    stdin: str = ""
    files: dict[str, bytes] = field(default_factory=dict)

    def told(self) -> str:
        """For a reader who wants to try it."""
        front = next((i for i, word in enumerate(self.argv) if not _SETTING.match(word)), None)
        setting = self.argv[:front]
        text = shlex.join([*setting, "gradcli", *self.argv[len(setting) :]])
        if "-" in self.argv or "repl" in self.argv:
            text += f"\n  standard input: {self.stdin!r}"
        return text + "".join(f"\n  {name}: {data!r}" for name, data in self.files.items())


def command_line(random: random.Random) -> Line:
    """Mostly a line that runs, or once did."""
    kind = random.random()
    if kind < 0.05:
        line = completing(random)
    elif kind < 0.12:
        line = session(random)
    elif kind < 0.7:
        line = fitting(random)
        if random.random() < 0.15:
            place = random.randrange(len(line.argv))
            line.argv[place] = mutated(random, line.argv[place])
    else:
        line = anything(random)
    if random.random() < 0.1:
        line.argv.insert(0, random.choice(SETTINGS))
    for place, word in enumerate(line.argv):
        named = re.search(r"[\w.]+\.[a-z][\w.]*", word)
        if named and named[0] in files.contents() and random.random() < 0.1:
            name, data = files.damaged(random, named[0])
            line.argv[place] = word.replace(named[0], name)
            line.files[name] = data
    line.argv = [word.replace("\0", "") for word in line.argv]  # no process can be given NUL
    return line


def completing(random: random.Random) -> Line:
    """What a shell asks when somebody presses Tab in the midst of a line."""
    argv = fitting(random).argv
    shell, count = random.choice(("bash", "zsh", "fish")), random.randrange(len(argv) + 1)
    last = argv[count][: random.randrange(9)] if count < len(argv) else random.choice(("", "--"))
    text = shlex.join(["gradcli", *argv[:count]]) + (f" {last}" if shell != "fish" else "")
    if random.random() < 0.2:
        text = mutated(random, text)
    place = last if shell == "fish" else str(count + 1)
    return Line(
        [f"_GRADCLI_COMPLETE={shell}_complete", f"COMP_WORDS={text}", f"COMP_CWORD={place}"]
    )


def session(random: random.Random) -> Line:
    """A session of `repl`: a program's lines, commands among them."""
    lines = []
    for _ in range(random.choice((1, 2, 3))):
        case = pairs.composed(random)
        for name, value in case.values.items():
            lines.append(f"{name} = tensor({value.tolist()}, requires_grad=True)")
        lines += case.source.split("; ")
        name, function = random.choice([*case.values, "y"]), random.choice(words()[0])
        said = random.choice(SAID).replace("NAME", name).replace("FUNCTION", function)
        lines.insert(random.randrange(len(lines) + 1), said)
    text = "\n".join(mutated(random, line) if random.random() < 0.1 else line for line in lines)
    return Line(["repl", *suiting(random, "repl", ["x"])], text + random.choice(("\n", "\n", "")))


def fitting(random: random.Random) -> Line:
    """A line whose program has values of its variables' shapes and whose options suit it."""
    command = random.choice(("map", "map", "run", "ops", "help", *EXPRESSIONS * 2))
    if command == "ops":
        asked = [command, random.choice(table.names())]
        return Line(asked + random.choice(([], ["--json"], ["--plain"], ["--help-all"])))
    if command == "help":
        name, shell = random.choice([*COMMANDS]), random.choice(("bash", "zsh", "fish"))
        more = ([command], ["completion", shell], ["--version"], ["--help"])
        return Line(
            list(random.choice(([command, name], [name, "--help"], [name, "--help-all"], *more)))
        )
    if command == "map":
        argv = [command, rowwise(random, 3), random.choice((*files.TABLES, "-"))]
        line = Line([*argv, *suiting(random, command, ["x", "y"])], "x,y\n1,2\n3,4.5\n")
    else:
        line = _of_program(random, command)
    if random.random() < 0.1 and command not in ("map", "run"):
        if "-" not in line.argv:
            line.argv[1:2], line.stdin = ["-f", "-"], line.argv[1]
        else:
            line.argv[1:2] = ["-f", files.PROGRAM]
    return line


def _of_program(random: random.Random, command: str) -> Line:
    case = random.choice((pairs.composed, pairs.composed, inplace.program))(random)
    while not case.wrt:
        case = pairs.composed(random)
    if command in ("grad", "hessian", "graph") and random.random() < 0.95:
        case = pairs.summed(case)
    argv, stdin = [command, case.source], "1,2,3"
    if command == "run":
        argv, stdin = [command, "-"], case.source.replace("; ", "\n")
    for name, value in case.values.items():
        if command == "diff" and random.random() < 0.3:
            argv += [f"--shape={name}={','.join(map(str, value.shape)) or '()'}"]
            continue
        text = written(random, value)
        if command == "grad" and value.ndim < 2 and random.random() < 0.15:
            text = with_spread(random, value)
        if text == "-" and (command == "run" or "-" in argv):
            text = str(value.tolist())
        elif text == "-":
            stdin = "\n".join(",".join(map(str, row)) for row in np.atleast_2d(value).tolist())
        argv += [f"--{name}={text}"]
    if command == "jvp":
        argv += ["--vector", f"{random.choice(case.wrt)}=ones"]
    return Line([*argv, *suiting(random, command, case.wrt)], stdin)


def rowwise(random: random.Random, depth: int) -> str:
    """An expression of the numbers x and y."""
    if depth == 0:
        return random.choice(("x", "y", "x", "y", "1.5"))
    form = random.choice(composing.UNARY + composing.BINARY)
    parts = (rowwise(random, depth - 1) for _ in range(composing.operands(form)))
    if form in composing.UNARY:
        return f"({form.replace('{}', next(parts))})"
    return f"({form.format(*parts)})"


def written(random: random.Random, value: np.ndarray) -> str:
    """A way to give a value: a list, rows, standard input, a call, or a file of that shape."""
    rows = value.tolist()
    ways = [str(rows), str(rows), f"tensor({rows})", f"ones({value.shape})"]
    if value.ndim in (1, 2) and value.size:
        ways += [";".join(",".join(map(str, row)) for row in np.atleast_2d(value).tolist())] * 2
        ways += ["-"] * (value.ndim == 2)
    if value.shape in files.SHAPED:
        ways += [f"@{files.stem(value.shape)}{random.choice(files.ENDINGS)}"] * 2
    if value.shape in ((2,), (3,)):
        name = "table.tsv" if value.shape == (2,) else "table.csv"
        ways += [f"@{name}:{random.choice('xy')}"]
    return random.choice(ways)


def with_spread(random: random.Random, value: np.ndarray) -> str:
    """Numbers with their standard uncertainties, as they may be written."""

    def one(number: float) -> str:
        form = random.choice(("{}±0.02", "{}+-1e-3", "{}+/-0", "({} ± 1)e-3", "{}(15)", "{}(2)e2"))
        return form.format(round(number, 3))

    return ",".join(one(number) for number in np.atleast_1d(value).tolist())


def suiting(random: random.Random, command: str, variables: list[str]) -> list[str]:
    """Up to three options of a command with values that suit its program."""
    declared = [
        option
        for option in options(command)
        if option.is_flag or option.count or _suitable(random, command, option, variables)
    ]
    words: list[str] = []
    for option in random.sample(declared, min(len(declared), random.choice((0, 1, 1, 2, 3)))):
        words.append(random.choice([o for o in option.opts if len(o) > 2] or option.opts))
        if not (option.is_flag or option.count):
            words.append(_suitable(random, command, option, variables))
    return words


def _suitable(
    random: random.Random, command: str, option: click.Option, variables: list[str]
) -> str:
    """A value of an option; "" where there is none."""
    choices = [str(c) for c in getattr(option.type, "choices", None) or ()]
    if choices:
        return random.choice(choices)
    if option.name == "file":  # another expression: `fitting` sees to it
        return ""
    endings = WRITTEN.get(command, (".npy", ".npz", ".csv"))
    found: dict[str, tuple[str, ...]] = {
        "NAMES|all": (*variables, "all"),
        "NAMES": (*variables, ",".join(variables)),
        "N": ("1", "2", "3"),
        "FILE": tuple(f"out{ending}" for ending in endings),
        "FILE.py": files.LOADED[:1],
        "A,B": ("-1,1", "0.5,2"),
        "VALUE": ("ones", "1"),
        "DIR": ("frames",),
        "NAME=VALUE": ("z=2",),
        "NAME|NODE": (*variables, "0", "1"),
        "'NAME: EXPR of grad'": tuple(f"{name}: grad*2" for name in variables),
        "x=VALUE": tuple(f"{name}=0.01" for name in variables),
        "x,y=VALUE": (f"{variables[0]},{variables[-1]}=0.001",),
        "x=COLUMNS": ("x=ones", "x=y", "x=1"),
        "'x=x1,x2'": ("x=x,y", "x=x*", "y=x"),
        "EXPR2": tuple(f"2*{name}" for name in variables),
        "all|none|NAMES": ("all", "none", "x", "label"),
    }
    return random.choice(found.get(str(option.metavar)) or ("",))


def anything(random: random.Random) -> Line:
    """A line of texts made of the grammar, of samples and of junk, its values of any kind."""
    command = random.choice([*COMMANDS, *EXPRESSIONS * 3])
    samples = words()[2]
    text = random.choice(
        (
            lambda r: derived(r, "program"),
            lambda r: derived(r, "exprs", 12),
            lambda r: (
                "; ".join(f"{r.choice('xyz')} = {derived(r, 'expr', 9)}" for _ in "12") + "; z"
            ),
            lambda r: r.choice(PROGRAMS),
            lambda r: r.choice(samples).replace("randn(2,3)", "x").replace("randn(3,3)", "x"),
            lambda r: f"{r.choice(words()[0])}({derived(r, 'arguments', 10)})",
            lambda r: r.choice(PROGRAMS),
            lambda r: r.choice(samples).replace("randn(2,3)", "x").replace("randn(3)", "y"),
        )
    )(random)
    if random.random() < 0.4:
        text = mutated(random, text)
    argv = [command] if command == "repl" else [command, text]
    if command == "map":
        argv.append(random.choice((*files.TABLES, "none.csv", "-", "a.npz", "a.txt")))
    if command in ("help", "completion"):
        argv[1] = random.choice((*COMMANDS, "bash", "zsh", "fish", text))
    elif command not in ("repl", "ops", "run"):
        for name in wanted(text, random):
            value = random.choice(VALUES[:6] if random.random() < 0.7 else VALUES)
            argv += [f"--{name}", mutated(random, value) if random.random() < 0.05 else value]
    many = random.choice((0, 0, 0, 1, 1, 2))
    for option in random.sample(options(command), min(len(options(command)), many)):
        argv.append(random.choice(option.opts))
        if not (option.is_flag or option.count):
            choices = list(getattr(option.type, "choices", None) or ())
            likely = [*choices, *choices] or [*_LIKELY.get(str(option.metavar), "123")]
            value = str(random.choice(likely if random.random() < 0.9 else VALUES))
            argv.append(mutated(random, value) if random.random() < 0.2 else value)
    if random.random() < 0.03:
        random.shuffle(argv)
    return Line(
        argv, text if command == "repl" else random.choice(("1,2,3", "1\n2\n3\n", "", text))
    )


def ran(argv: list[str], stdin: str, folder: Path) -> tuple[int, str, str]:
    """Exit code (that of a signal below 0), standard output and standard error of a child."""
    streams = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115
    streams[0].write(stdin.encode(errors="surrogatepass"))
    streams[0].seek(0)
    child = os.fork()
    if not child:
        _run_child(argv, [stream.fileno() for stream in streams], folder)
    end = time.monotonic() + PATIENCE
    status = None
    while status is None and time.monotonic() < end:
        done, found = os.waitpid(child, os.WNOHANG)
        if done:
            status = found
        else:
            time.sleep(0.002)
    if status is None:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    texts = []
    for stream in streams[1:]:
        stream.seek(0)
        texts.append(stream.read(200_000).decode(errors="replace"))
    for stream in streams:
        stream.close()
    return os.waitstatus_to_exitcode(status), texts[0], texts[1]


def _run_child(argv: list[str], streams: list[int], folder: Path) -> None:
    code = 99
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        os.environ.pop("GRADCLI_DEBUG", None)
        while argv and _SETTING.match(argv[0]):
            name, _, value = argv[0].partition("=")
            os.environ[name], argv = value, argv[1:]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
        try:
            main.main(argv, "gradcli")
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 98
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


# Control characters, and those that turn the direction of writing.
BINARY = ("npy", "npz", "png", "pdf", "parquet", "feather")
_RAW = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def wrong(argv: list[str], found: tuple[int, str, str]) -> str | None:
    """What is wrong with an answer, in a few words; None if nothing is."""
    code, out, err = found
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return f"did not end in {SECONDS} s"
    if "Traceback (most recent" in err:
        return "a traceback: " + err.rstrip().rpartition("\n")[2]
    if "fault in gradcli" in err:
        return err[max(err.find("unexpected:"), 0) :][:200]
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if "gradcli: error:" in out:
        return "an error on standard output"
    if code == 2 and not err:
        return "exit code 2 without a word"
    if any(word.startswith("_GRADCLI_COMPLETE=") for word in argv):
        return "a shell that asks is told: " + err if err else None
    if code == 0 and "gradcli: error:" in err and "repl" not in argv:
        return "an error, and exit code 0"
    coloured = any("COLOR" in word or "always" in word or word in BINARY for word in argv)
    for name, text in (("output", out), ("error", err)):
        if (raw := _RAW.search(text)) and not coloured:
            return f"{raw[0]!r} on standard {name}"
    return None


def tried(line: Line, folder: Path) -> str | None:
    """Run a line in a folder that has the files; what is wrong, if anything is."""
    for name, data in {**files.contents(), **line.files}.items():
        (folder / name).write_bytes(data)
    problem = wrong(line.argv, ran(line.argv, line.stdin, folder))
    said = "\n".join([*line.argv, line.stdin, *line.files])
    stray = ""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in files.contents():
            path.unlink()
        if path.name not in files.contents() and path.name not in said:
            stray = path.name
    return problem or (f"left a file behind: {stray!r}" if stray else None)


def shrunk(line: Line, folder: Path, problem: str) -> Line:
    """The line with as much left out as still goes wrong in the same way."""
    kind = problem[:30]
    end = time.monotonic() + 20

    def shorter(argv: list[str], stdin: str) -> bool:
        nonlocal line
        other = Line(argv, stdin, line.files)
        found = tried(other, folder) if time.monotonic() < end else None
        if found is None or found[:30] != kind:
            return False
        line = other
        return True

    for size in (64, 16, 4, 1):
        for position in range(len(line.argv) - 1, 0, -1):
            argv = line.argv
            if size == 64 and shorter(argv[:position] + argv[position + 1 :], line.stdin):
                continue
            start = 0
            while start < len(line.argv[position]):
                word = line.argv[position]
                word = word[:start] + word[start + size :]
                argv = [*line.argv[:position], word, *line.argv[position + 1 :]]
                start += 0 if shorter(argv, line.stdin) else size
        lines = line.stdin.splitlines(True)
        for position in range(len(lines) - 1, -1, -1):
            if shorter(line.argv, "".join(lines[:position] + lines[position + 1 :])):
                del lines[position]
    return line


def run(seed: int, seconds: float) -> Iterator[str]:
    """The command lines that go wrong, each kind once."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    table.base()
    failures: set[str] = set()
    reached: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for random in fuzz.cases(seed, seconds):
            line = command_line(random)
            problem = tried(line, folder)
            reached[next((word for word in line.argv if word in COMMANDS), "none")] += 1
            if problem is not None and problem[:60] not in failures:
                failures.add(problem[:60])
                yield f"{problem}\n  {shrunk(line, folder, problem).told()}"
    print("command_lines:", ", ".join(f"{count} {name}" for name, count in reached.most_common()))

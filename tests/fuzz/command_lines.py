"""Command lines made of the grammar, of what the table's functions are shown with, and of junk.

Each runs in a forked child that may take 4 GB of addresses and 5 seconds of the processor, in a folder
of its own. A failure is a traceback, a "fault in gradcli", an exit code that is none of ours, no end
within the limits, or words on the wrong stream. It is cut down to what still fails.
"""

from __future__ import annotations

import os
import random
import resource
import shlex
import signal
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import click
import numpy as np

from gradcli.cli import main
from gradcli.commands import COMMANDS
from gradcli.language import LanguageError, parse
from gradcli.language import names as known
from gradcli.language.compile_grammar import load_lark
from gradcli.operators import table
from tests import fuzz
from tests.fuzz import inplace, pairs

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
    "FILE": ("out.txt", "out.svg", "-"),
    "A,B": ("-1,1", "0,0"),
    "VALUE": ("1,2,3", "ones", "1"),
}
LEFT_OUT = {
    "load",
    "open",
    "help",
    "file",
}  # what runs Python, a browser, a pager; files are values here
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


def command_line(random: random.Random) -> tuple[list[str], str]:
    """The words, and what standard input holds: mostly a line that runs, or once did."""
    if random.random() < 0.7:
        argv, stdin = fitting(random)
        if random.random() < 0.15:
            place = random.randrange(len(argv))
            argv[place] = mutated(random, argv[place])
    else:
        argv, stdin = anything(random)
    return [word.replace("\0", "") for word in argv], stdin  # no process can be given NUL


def fitting(random: random.Random) -> tuple[list[str], str]:
    """A line whose program has values of its variables' shapes and whose options suit it."""
    command = random.choice(("map", "map", "run", "ops", *EXPRESSIONS * 2))
    if command == "ops":
        return [command, random.choice(table.names())], ""
    if command == "map":
        name = random.choice(
            ("table.csv", "table.tsv", "gaps.csv", "table.jsonl", "table.npy", "-")
        )
        argv, stdin = [command, rowwise(random, 3), name], "x,y\n1,2\n3,4.5\n"
        return [*argv, *suiting(random, command, ["x", "y"])], stdin
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
        if text == "-" and (command == "run" or "-" in argv):
            text = str(value.tolist())
        elif text == "-":
            stdin = "\n".join(",".join(map(str, row)) for row in np.atleast_2d(value).tolist())
        argv += [f"--{name}={text}"]
    if command == "jvp":
        argv += ["--vector", f"{random.choice(case.wrt)}=ones"]
    return [*argv, *suiting(random, command, case.wrt)], stdin


def rowwise(random: random.Random, depth: int) -> str:
    """An expression of the numbers x and y."""
    if depth == 0:
        return random.choice(("x", "y", "x", "y", "1.5"))
    form = random.choice(pairs.UNARY + pairs.BINARY)
    parts = (rowwise(random, depth - 1) for _ in range(form.count("{}")))
    if form in pairs.UNARY:
        return f"({form.replace('{}', next(parts))})"
    return f"({form.format(*parts)})"


def written(random: random.Random, value: np.ndarray) -> str:
    """A way to give a value: a list, rows, standard input, a call, or a file of that shape."""
    rows = value.tolist()
    ways = [str(rows), str(rows), f"tensor({rows})", f"ones({value.shape})"]
    if value.ndim in (1, 2) and value.size:
        ways += [";".join(",".join(map(str, row)) for row in np.atleast_2d(value).tolist())] * 2
        ways += ["-"] * (value.ndim == 2)
    if value.shape in SHAPED:
        ways += [f"@{_stem(value.shape)}{random.choice(ENDINGS)}"] * 2
    return random.choice(ways)


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
    found: dict[str, tuple[str, ...]] = {
        "NAMES|all": (*variables, "all"),
        "NAMES": (*variables, ",".join(variables)),
        "N": ("1", "2", "3"),
        "FILE": {"graph": ("out.svg", "out.html", "out.dot"), "map": ("out.csv", "out.npy")}.get(
            command, ()
        ),
        "A,B": ("-1,1", "0.5,2"),
        "x=VALUE": tuple(f"{name}=0.01" for name in variables),
        "all|none|NAMES": ("all", "none", "x"),
    }
    return random.choice(found.get(str(option.metavar)) or ("",))


def anything(random: random.Random) -> tuple[list[str], str]:
    """A line of texts made of the grammar, of samples and of junk, its values of any kind."""
    command = random.choice([*(c for c in COMMANDS if c != "completion"), *EXPRESSIONS * 3])
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
    if command not in ("repl", "ops", "run"):
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
    return argv, text if command == "repl" else random.choice(("1,2,3", "1\n2\n3\n", "", text))


def make_files(folder: Path) -> None:
    """What `@…` may name."""
    (folder / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (folder / "a.tsv").write_text("1\t2\n3\t4\n")
    (folder / "a.txt").write_text("1 2\n3 4\n")
    (folder / "a.json").write_text('{"k": [1, 2.5, "nan"], "value": [[1, 2]]}')
    np.save(folder / "a.npy", np.arange(3.0))
    np.savez(folder / "a.npz", a=np.ones(2), b=np.zeros((2, 2)))
    (folder / "junk.npy").write_bytes(b"\x93NUMPY\x01\x00junk\xff\x00")
    (folder / "junk.csv").write_bytes(b"1,2\n\xff\x1b,3\n")


# Arrays that files hold, each in every format.
SHAPED = ((1,), (2,), (3,), (2, 3), (3, 3), (3, 2), (1, 3))
ENDINGS = (".csv", ".tsv", ".txt", ".json", ".npy", ".npz")


def _stem(shape: tuple[int, ...]) -> str:
    return "s" + "x".join(map(str, shape))


def make_shapes(folder: Path) -> None:
    """Files of arrays of `SHAPED`, and the tables that `map` reads."""
    for shape in SHAPED:
        value = np.linspace(-1.2, 1.3, int(np.prod(shape))).round(2).reshape(shape)
        path = folder / _stem(shape)
        np.savetxt(path.with_suffix(".csv"), value, "%.17g", ",")
        np.savetxt(path.with_suffix(".tsv"), value, "%.17g", "\t")
        np.savetxt(path.with_suffix(".txt"), value, "%.17g")
        path.with_suffix(".json").write_text(str(value.tolist()))
        np.save(path.with_suffix(".npy"), value)
        np.savez(path.with_suffix(".npz"), value=value)
    (folder / "table.csv").write_text("x,y,label\n1,2,a\n0.5,-4,b\n3,1e-3,c\n")
    (folder / "table.tsv").write_text("x\ty\n1\t2\n0\t-4\n")
    (folder / "gaps.csv").write_text("x,y\n1,2\n,4\nabc,5\n6\n")
    (folder / "table.jsonl").write_text('{"x": 1, "y": 2.5}\n{"x": -1, "y": 0}\n')
    rows = np.array([(1.0, 2.0), (3.0, -0.5)], [("x", "f8"), ("y", "f8")])
    np.save(folder / "table.npy", rows)


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
    if code == 0 and "gradcli: error:" in err and argv[:1] != ["repl"]:
        return "an error, and exit code 0"
    return None


def shrunk(argv: list[str], stdin: str, folder: Path, problem: str) -> list[str]:
    """The words with as much left out as still goes wrong in the same way."""
    kind = problem[:30]

    def fails(words: list[str]) -> bool:
        found = wrong(words, ran(words, stdin, folder))
        return found is not None and found[:30] == kind

    end = time.monotonic() + 20
    for size in (64, 16, 4, 1):
        for position in range(len(argv) - 1, 0, -1):
            if size == 64 and fails(argv[:position] + argv[position + 1 :]):
                argv = argv[:position] + argv[position + 1 :]
                continue
            start = 0
            while start < len(argv[position]) and time.monotonic() < end:
                word = argv[position][:start] + argv[position][start + size :]
                if fails([*argv[:position], word, *argv[position + 1 :]]):
                    argv = [*argv[:position], word, *argv[position + 1 :]]
                else:
                    start += size
    return argv


def run(seed: int, seconds: float) -> list[str]:
    """The command lines that go wrong, each kind once."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    table.base()
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_shapes(folder)
        for random in fuzz.cases(seed, seconds):
            make_files(folder)
            argv, stdin = command_line(random)
            problem = wrong(argv, ran(argv, stdin, folder))
            if problem is not None and problem[:60] not in failures:
                argv = shrunk(argv, stdin, folder, problem)
                said = f"{problem}\n  gradcli {shlex.join(argv)}"
                failures[problem[:60]] = said + (
                    f"\n  standard input: {stdin!r}" if "-" in argv or argv[0] == "repl" else ""
                )
    return list(failures.values())

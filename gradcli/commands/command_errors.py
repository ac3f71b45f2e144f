"""How the command line says that something is wrong: one shape for click's errors, the language's, the
engine's and the unexpected ones; as text with a caret and a remedy, or as one JSON object.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.commands.terminal import echo, fitted, painted
from gradcli.engine.system.budget import TooMany, out_of_memory
from gradcli.engine.system.visible import visible
from gradcli.language.located_errors import LanguageError, did_you_mean, suggest

if TYPE_CHECKING:
    import click

DEBUG_VARIABLE = "GRADCLI_DEBUG"
LONGEST_SOURCE = 10_000  # characters that an error in JSON quotes
# Each may put an error into other words before it is shown: `commands.load` does so for a user's file.
retold: list[Callable[[Exception], Exception]] = []


def usage(
    message: str,
    *,
    hint: str | None = None,
    source: str = "",
    span: tuple[int, int] | None = None,
    kind: str = "usage",
) -> LanguageError:
    """An error in how the command was called: exit code 2."""
    return LanguageError(message, kind=kind, source=source, span=span, hint=hint)


def without_name() -> LanguageError:
    """The error about `-o ""`."""
    return usage("cannot write a file without a name", kind="file")


# Words by which other tools call what a command does.
_ALSO = {
    **dict.fromkeys(("derivative", "derive", "differentiate", "derivatives"), "diff"),
    **dict.fromkeys(("gradient", "gradients", "backward", "backprop"), "grad"),
    **dict.fromkeys(("solve", "roots", "fsolve", "zero", "zeros"), "root"),
    **dict.fromkeys(("optimize", "optimise", "maximize"), "minimize"),
    **dict.fromkeys(("evaluate", "calc", "compute", "print"), "eval"),
    **dict.fromkeys(("series", "expansion"), "taylor"),
    **dict.fromkeys(("expand", "factor"), "simplify"),
    **dict.fromkeys(("tree", "draw", "show", "viz"), "graph"),
    **dict.fromkeys(("curve_fit", "regress", "train"), "fit"),
    **dict.fromkeys(("gradcheck", "test", "verify"), "check"),
    **dict.fromkeys(("explain", "define", "glossary", "man"), "help"),
}
_NEITHER = dict.fromkeys(
    ("integrate", "integral", "int", "limit", "lim"), "there are no integrals and no limits"
)


def unknown_command(word: str, commands: Iterable[str]) -> LanguageError:
    """The error for a first word that is neither an option nor a command."""
    names = list(commands)
    if word.startswith("-") and word.lstrip("-").replace("-", "").isalpha():
        message = f"no such option {word}"
    else:
        message = f"no such command {word!r}"
    meant = [_ALSO[word]] if word in _ALSO else suggest(word, [*names, "--version"])
    term = None if f"--{word}" in meant else _as_term(word)
    hint = _NEITHER.get(word) or term or did_you_mean(meant)
    if word.endswith(".py") and not os.path.exists(word):
        return usage(f"cannot read {word}: no such file", kind="file")
    if hint is None and "." in word and os.path.exists(word):
        hint = f"to run a program, write: gradcli run {quoted(word)}"
    return usage(message, hint=hint or f"the commands are {', '.join(names)}; see gradcli --help")


def _as_term(word: str) -> str | None:
    """How a term that stands in the place of a command is explained."""
    from gradcli.commands import glossary

    if word in _ALSO or glossary.find(word) is None:
        return None
    return f"gradcli help {quoted(word)} explains the term"


@contextmanager
def reading_table(table: str) -> Iterator[None]:
    """Inside, an error of the table becomes one of the command line, with the table's name."""
    from gradcli.language.option_values import table_error
    from gradcli.tables import TableError

    try:
        yield
    except TableError as error:
        raise table_error(error, table, (0, max(len(table), 1))) from None
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.filename is None:
            raise
        raise usage(f"cannot read {error.filename}: {error.strerror}", kind="file") from None


def quoted(text: str) -> str:
    """A word as the shell wants it."""
    import shlex

    return shlex.quote(text)


def show(error: Exception, arguments: list[str], meta: Mapping[str, Any]) -> int:
    """Write the error to standard error; return the exit code.

    `meta` is the context's: what the command line said of --json and --color before it went wrong.
    """
    try:  # what was printed before an error comes before it
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:  # a full disk, which is likely what the error says
        pass
    if sys.stderr is None:  # closed by the caller; click would write to standard output instead
        return 2 if as_report(error).usage else 1
    import click

    if os.environ.get(DEBUG_VARIABLE) and not isinstance(error, click.ClickException):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        echo(error.format_message(), sys.stderr)
        return error.exit_code
    report = _of_python(as_report(error), arguments)
    if "gradcli.typed" in meta:
        from gradcli.language.typed_errors import as_typed

        report = as_typed(report, meta["gradcli.typed"])
    if meta.get("gradcli.json", "--json" in arguments):
        text = to_json(report)
    else:
        text = to_text(report, meta.get("gradcli.color", "auto"))
    echo(text, sys.stderr)
    return 2 if report.usage else 1


# What only a program of Python's has: a class, or PyTorch's own module.
_PYTHON = re.compile(rb"^\s*(?:class\s+\w+\s*[(:]|import\s+torch\b|from\s+torch\b)", re.M)
# The words of errors that say: this is no program of this language.
_MISREAD = re.compile("is a file, not an|is not part of this language|gradcli's module 'torch")


def python_program(word: str) -> bool:
    """Whether a word is the name of a file with a program of Python's."""
    if not word.endswith(".py"):
        return False
    try:
        with open(word, "rb") as stream:
            return _PYTHON.search(stream.read(LONGEST_SOURCE)) is not None
    except OSError:
        return False


def programs_of_python(words: Iterable[str]) -> str:
    """The hint of who gave a program of Python's where a program of this language is wanted."""
    word = quoted(next(iter(words)))
    return f"gradcli {word} runs it, gradcli graph --torch {word} --diagnose looks into it"


def _of_python(report: LanguageError, arguments: list[str]) -> LanguageError:
    """An error about a program of Python's, or one of its options, with the commands that take it."""
    before = ["", *arguments]
    files = [
        word
        for word, previous in zip(arguments, before, strict=False)
        if previous not in ("--torch", "--load") and python_program(word)
    ]
    if not files:
        return report
    option = arguments[0] if arguments else ""
    if report.message == f"no such option {option}":
        if option in options_of_graph():
            report.hint = f"write gradcli graph --torch {quoted(files[0])} {option}"
    elif "--torch" not in arguments and (
        report.kind == "syntax" or _MISREAD.search(report.message)
    ):
        report.hint = programs_of_python(files)
    return report


def options_of_graph() -> set[str]:
    """The options of `graph` that look into a program as it runs."""
    return {"--detect-anomaly", "--diagnose", "--norms", "--grads", "--saved", "--values", "--time"}


def to_json(report: LanguageError) -> str:
    """{"error": {"type", "message", "span", "hint"}} and the text that the span counts in."""
    found = {
        "type": report.kind,
        "message": report.message,
        "span": list(report.span) if report.span is not None else None,
        "hint": report.hint,
        "source": report.source if 0 < len(report.source) <= LONGEST_SOURCE else None,
        "notes": list(report.notes),
    }
    import json

    return visible(json.dumps({"error": found}, ensure_ascii=False))


def to_text(report: LanguageError, colour: str) -> str:
    """The words, the line with its caret, the hint; coloured on a terminal."""
    from gradcli.commands.terminal import colour_wanted, width

    columns = width(sys.stderr)
    text = fitted(visible(f"gradcli: error: {report.render(columns)}"), sys.stderr)
    if colour_wanted(sys.stderr, colour):
        text = text.replace("error:", _bold("error:", "red"), 1)
        text = re.sub(r"(?m)(?<=^    ) *\^+$", lambda found: _bold(found[0], "red"), text)
        text = re.sub(r"(?m)^hint:", lambda found: _bold(found[0], "cyan"), text)
    return text


def _bold(text: str, colour: str) -> str:
    return painted(text, colour, bold=True)


def as_report(error: Exception) -> LanguageError:
    """Any error as one that can be shown; what began in a loaded file in Python's words."""
    for tell in retold:
        error = tell(error)
    if isinstance(error, LanguageError):
        return error
    import click

    if isinstance(error, click.ClickException):
        return _from_click(error)
    if isinstance(error, RecursionError):
        return LanguageError(
            "the value is nested too deeply to be written", kind="value", usage=False
        )
    if isinstance(error, MemoryError):
        return LanguageError(out_of_memory(error), kind="memory", usage=False)
    if isinstance(error, TooMany):
        return LanguageError(str(error), kind="value", usage=False)
    if isinstance(error, OSError):
        where = f" {error.filename!r}" if error.filename is not None else ""
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        what = "write" if full else "read or write"
        words = error.strerror or error
        return LanguageError(f"cannot {what}{where}: {words}", kind="file", usage=False)
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return LanguageError(
        f"unexpected: {words} (this is a fault in gradcli; {DEBUG_VARIABLE}=1 shows the traceback)",
        kind="internal",
        usage=False,
    )


def _from_click(error: click.ClickException) -> LanguageError:
    import click

    message = " ".join(error.format_message().split()).removesuffix(".")
    message = message.partition(" Choose from:")[0].removesuffix(".")
    message = message[:1].lower() + message[1:] if message[1:2].islower() else message
    ctx = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoSuchOption):
        message = f"no such option {error.option_name}"
        close = suggest(error.option_name, error.possibilities or [])
        of_the_group = ctx is not None and ctx.parent is None
        if of_the_group and error.option_name in ("-V", "-v"):
            close = ["--version"]
        hint = did_you_mean(close)
        if hint is None and of_the_group:
            hint = "a command's options come after it, as in gradcli grad EXPR --json"
    else:
        hint = _nearest_choice(error)
    if hint is None and ctx is not None:
        hint = f"see {ctx.command_path} --help"
    return LanguageError(message, kind="usage", hint=hint, usage=error.exit_code == 2)


# Short names of formats, which an ending says too.
FORMATS_ELSEWHERE = {"tex": "latex", "py": "python", "np": "numpy", "pytorch": "torch"}


METHODS_ELSEWHERE = {
    **dict.fromkeys(("gd", "sgd", "descent", "steepest", "steepest-descent"), "gradient-descent"),
    **{"heavy-ball": "momentum", "nag": "nesterov", "newton-raphson": "newton"},
}


def _nearest_choice(error: click.ClickException) -> str | None:
    """The choice that a misspelt value is closest to; all of them where the value is missing."""
    import click

    if "unexpected extra argument" in error.message:
        return "put several words in quotes, as one argument"
    kind = getattr(getattr(error, "param", None), "type", None)
    if not isinstance(kind, click.Choice):
        return None
    choices = [str(choice) for choice in kind.choices]
    if isinstance(error, click.MissingParameter):
        return f"there are {', '.join(choices)}"
    found = re.match(r"'(.*)' is not one of ", error.message, re.S)
    if found is None:
        return None
    word = found[1].rpartition(".")[2]  # torch.float32
    meant = word if word in choices else FORMATS_ELSEWHERE.get(found[1])
    meant = meant or METHODS_ELSEWHERE.get(found[1].lower().replace("_", "-"))
    if found[1] in ("latex", "tex") and "tikz" in choices:
        meant = "tikz"
    return did_you_mean([meant] if meant in choices else suggest(found[1], choices))

"""Plain command lines, `gradcli grad EXPR --x VALUE` and `graph`, without click, whose import costs as much
as a tenth of numpy's.

A line is plain if nothing in it needs an option, a file, a table or a word of explanation. Of any other
line, and of every doubt, nothing is done here, and click reads it from its start: what is an error, and in
which words, is said in one place.
"""

from __future__ import annotations

import os

import gradcli.engine.system.process as process
from gradcli.commands import COMPLETION_VARIABLE
from gradcli.commands.command_errors import show
from gradcli.commands.declarations import Command
from gradcli.commands.output import Style
from gradcli.commands.request import Request, is_known, variables
from gradcli.language.located_errors import LanguageError

# Settings that options read.
_SETTINGS = (COMPLETION_VARIABLE, "GRADCLI_DTYPE")
# What makes a value more than numbers: files and tables, uncertainties, the language's own calls.
_SPECIAL = "@±(+"


def run(words: list[str]) -> int | None:
    """The exit code of a plain line's command, once it is done; None, with nothing done, of any other."""
    request = plain_request(words)
    if request is None:
        return None
    command = _command(words[0])
    with process.Context() as context:
        return process.shown(
            lambda: command.run(context, request, command.defaults()),
            lambda error: show(error, words, context.meta),
        )


def plain_request(words: list[str]) -> Request | None:
    """What a plain line asks for, as click would have it; None of a line that is not plain."""
    if not words or words[0] not in ("grad", "graph") or len(words) < 2 or len(words) % 2:
        return None
    if words[1][:1] in ("-", "") or any(name in os.environ for name in _SETTINGS):
        return None
    options = _command(words[0]).names()
    texts = {}
    for option, text in zip(words[2::2], words[3::2], strict=True):
        name = option[2:]
        if option[:2] != "--" or not (name.isascii() and name.isidentifier()) or name in options:
            return None
        if (
            name in texts
            or text[:2] == "--"
            or (text.strip()[:1] in ("", "-") and not _number(text))
        ):
            return None
        if any(sign in text for sign in _SPECIAL):
            return None
        texts[name] = text
    try:
        program, names = variables(words[1])
    except LanguageError:
        return None
    if program is None or not texts.keys() <= set(names) or not words[1].strip():
        return None
    if any(n in options or not is_known(program, n) for n in names if n not in texts):
        return None
    return Request(
        program,
        texts,
        options={name: f"--{name}" for name in texts},
        dtype="float64",
        style=Style.of("text", None, "auto"),
    )


def _command(name: str) -> Command:
    if name == "grad":
        from gradcli.commands.grad import command
    else:
        from gradcli.commands.graph import command
    return command


def _number(text: str) -> bool:
    """Whether a text that begins with a minus is a number's, and not standard input's or an option's."""
    return text.strip()[1:2].isdigit()

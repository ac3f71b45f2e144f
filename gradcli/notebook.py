"""gradcli in a notebook: `%load_ext gradcli` gives %grad, %diff, %graph, %plot and so on, and %%gradcli.

A line magic takes the words of the command of its name, without quotes around an expression that comes
first; names that the words do not give a value are the notebook's. What the notebook can show is
returned, a formula or a picture; the rest is printed.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from types import ModuleType
from typing import Any

from gradcli.commands.output import note
from gradcli.commands.session import WORDS
from gradcli.language.located_errors import LanguageError

_OF_VALUES = ("grad", "jacobian", "hessian", "jvp", "diff", "check")
_FORMULAS = ("diff", "simplify", "taylor")
_PICTURES = ("graph", "plot")
# The words say themselves how it is written.
_OWN_FORM = re.compile(r"-o|--(format|json|plain|csv|frames|help)\b")


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext gradcli`."""
    from IPython.core.magic import no_var_expand

    import gradcli.engine.registry.table  # noqa: F401  # the methods of tensors

    for verb in WORDS:
        shell.register_magic_function(no_var_expand(partial(_line, shell, verb)), "line", verb)
    shell.register_magic_function(no_var_expand(partial(_cell, shell)), "cell", "gradcli")


class Shown:
    """What a command printed, and how a notebook shows it: rich() gives LaTeX or SVG, if it can."""

    def __init__(self, text: str, verb: str, rich: Callable[[], str | None]) -> None:
        self.text, self.verb, self.rich = text, verb, rich

    def __repr__(self) -> str:
        return self.text

    def _repr_latex_(self) -> str | None:
        return self.rich() if self.verb in _FORMULAS else None

    def _repr_svg_(self) -> str | None:
        return self.rich() if self.verb in _PICTURES else None


class Refused(Exception):
    """An error that IPython shows as the command line does, without frames."""

    def _render_traceback_(self) -> list[str]:
        return [f"error: {self}"]


def _line(shell: Any, verb: str, line: str) -> Shown | None:
    """`%VERB WORDS`."""
    try:
        words = _words(line)
        names = _names(shell.user_ns, line, as_values=True)
        if verb == "graph" and len(words) == 1 and (found := _live_graph(words[0], names)):
            return Shown(str(found), verb, found.to_svg)
        for name, value in names.items():
            if verb in _OF_VALUES and getattr(value, "grad_fn", None) is not None:
                note(f"{name} as it is: what it was made of is not a variable here")
        if verb not in (*_FORMULAS, *_PICTURES) or any(map(_OWN_FORM.match, words)):
            _run(verb, words, names)
            return None
        return _shown(verb, words, names)
    except (LanguageError, ValueError) as error:
        raise Refused(str(error)) from None


def _shown(verb: str, words: list[str], names: Mapping[str, Any]) -> Shown:
    rich = partial(_rich, verb, words, names)
    try:
        with redirect_stdout(io.StringIO()) as printed:
            _run(verb, ["--color", "never", *words], names)
    except LanguageError:
        if verb not in _PICTURES or rich() is None:
            raise
        return Shown("a picture, which this has no text for", verb, rich)  # of --theme, --surface
    return Shown(printed.getvalue().rstrip("\n"), verb, rich)


def _words(line: str) -> list[str]:
    """The words of a command line; an expression before the options needs no quotes."""
    if line[:1] in ("", "-", "'", '"'):
        return shlex.split(line)
    text, options = re.split(r"(?=\s--?[A-Za-z])|$", line, maxsplit=1)
    return [text, *shlex.split(options)]


def _live_graph(text: str, names: Mapping[str, Any]) -> Any:
    """The graph that the notebook's tensors have behind an expression of them; None if there is none."""
    from gradcli.graphs import inspect
    from gradcli.language import parse, run

    tensors = {n: v for n, v in names.items() if getattr(v, "requires_grad", False)}
    value = run(parse(text), dict(names)).value if tensors else None
    return inspect(value, names=tensors) if getattr(value, "requires_grad", False) else None


def _run(verb: str, words: list[str], names: Mapping[str, Any]) -> None:
    from gradcli.commands.click_commands import run_in_session

    run_in_session(verb, words, names)


def _rich(verb: str, words: list[str], names: Mapping[str, Any]) -> str | None:
    """The formula or the picture; None if there is none, for matplotlib is missing."""
    from gradcli.formulas.print.printed_text import Formula

    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(io.StringIO()),  # its notes were said
    ):
        path = os.path.join(folder, "picture.svg")
        try:
            if verb in _FORMULAS:
                _run(verb, [*words, "--format", "latex"], names)
                lines = printed.getvalue().strip().split("\n")
                return Formula.of("", lambda: lines)._repr_latex_()
            _run(verb, [*words, "-o", path], names)
        except LanguageError:
            return None
        with open(path, encoding="utf-8") as stream:
            return stream.read()


def _cell(shell: Any, line: str, cell: str) -> Any:
    """`%%gradcli`: a program of the language, with the notebook's names; what it assigns they get."""
    from gradcli.language import parse, run
    from gradcli.language.display import is_displayed

    given = _names(shell.user_ns, cell)
    try:
        program = parse(cell)
        found = run(program, given)
    except LanguageError as error:
        raise Refused(str(error)) from None
    made = {n: v for n, v in found.names.items() if n not in given or given[n] is not v}
    shell.user_ns.update(made)
    return found.value if is_displayed(program) else None


def _names(names: Mapping[str, Any], text: str, *, as_values: bool = False) -> dict[str, Any]:
    """Those of the notebook's names that a text has, arrays as tensors; as_values: numbers and lists too.

    Numbers are read in float64, as a command line's. Functions that the language knows stay its own, and
    modules are none of its values.
    """
    from gradcli.engine.system import dtypes
    from gradcli.language import as_tensor
    from gradcli.language.names import meaning

    found = {}
    for name in set(re.findall(r"\b[^\W\d_]\w*", text)) & names.keys():
        value = names[name]
        if isinstance(value, ModuleType) or (callable(value) and meaning(name) is not None):
            continue
        plain = as_values and isinstance(value, (bool, int, float, complex, list, tuple))
        if plain or type(value).__module__ == "numpy":
            try:
                with dtypes.as_default(dtypes.float64 if as_values else None):
                    value = as_tensor(value)
            except LanguageError:  # of texts, say
                continue
        found[name] = value
    return found

"""Words that users of PyTorch and of other tools type for options and values of ours.

`--no_grad` and `--latex` are read as what they mean. What has no such reading is told by the line to type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gradcli.commands.command_errors import FORMATS_ELSEWHERE, quoted, usage
from gradcli.commands.declarations import Command, Option

if TYPE_CHECKING:
    from gradcli.language.located_errors import LanguageError

_OPTION = re.compile(r"--([A-Za-z]\w*)(=.*)?", re.S)
_SHORT = 80  # characters of an expression that a hint repeats


# -- spellings ------------------------------------------------------------------------------------
def as_ours(word: str, declared: Mapping[str, Option], words: Iterable[str]) -> str | None:
    """The option of ours that a word means by its spelling: `--no_grad`, and `--latex` for a format.

    None where there is none, and where the expression has that name: then it is a variable's value.
    """
    match = _OPTION.fullmatch(word)
    if match is None or word in declared:
        return None
    name, value = match[1], match[2] or ""
    dashed = f"--{name.replace('_', '-')}"
    if name == "v" and "--vector" in declared:  # as of torch.func.jvp and books
        dashed = "--vector"
    if dashed not in declared or dashed == f"--{name}":
        form, known = FORMATS_ELSEWHERE.get(name, name), declared.get("--format")
        if value or known is None:
            return None
        if name == "tex" and "tikz" in known.choices:
            form = "tikz"
        if form not in known.choices:
            return None
        dashed = f"--format={form}"
    spelled = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.])")
    if any(spelled.search(other) for other in words):
        return None
    return dashed + value


# -- options of PyTorch's functions ------------------------------------------------------------------
# (the option of ours, how it is written) of what PyTorch's functions have as arguments.
_ARGUMENTS = {
    "retain_grad": ("--retain", "--retain {value}"),
    "retain_grads": ("--retain", "--retain {value}"),
    "grad_output": ("--seed", "--seed {value}"),
    "grad_outputs": ("--seed", "--seed {value}"),
    "inputs": ("--wrt", "--wrt {value}"),
    "argnums": ("--wrt", "--wrt {value}"),
    "v": ("--vector", "--vector {value}"),
    "raise_exception": ("", "the exit code is 1 where a check fails"),
    "device": ("", "NumPy computes on the processor: leave it out"),
}
_FALSE = ("false", "0", "no", "off")


def of_pytorch(name: str, value: str, extra: Iterable[str], declared: Mapping[str, Option]) -> str:
    """How an argument of PyTorch's functions is said here; empty where that is not known.

    value: what follows it. extra: the words that are left over, such as c in `--requires_grad=False c`.
    """
    name = name.replace("-", "_")
    if name == "requires_grad":
        return _requires_grad(value, [*extra], declared)
    option, written = _ARGUMENTS.get(name, ("", ""))
    if not written or (option and option not in declared):
        return ""
    if not option:
        return written
    return f"here it is written {written.format(value=quoted(value or 'VALUE'))}"


def _requires_grad(value: str, extra: list[str], declared: Mapping[str, Option]) -> str:
    if "--no-grad" not in declared:
        return "every variable of a formula may be differentiated by: --wrt NAMES chooses"
    held = value.lower() in _FALSE
    said = value.isidentifier() and value.lower() not in (*_FALSE, "true", "yes", "on")
    names = [value] if said else [word for word in extra if word.isidentifier()]
    written = ",".join(names) or "NAMES"
    if held:
        return f"what needs no gradient is named: --no-grad {written}"
    return f"every variable requires grad; --wrt {written} chooses, --no-grad NAMES leaves out"


# -- formats of other commands ------------------------------------------------------------------------
_PICTURES = ("svg", "png", "pdf")
_OF_GRAPHS = (*_PICTURES, "tikz", "html", "mermaid", "dot")
# How diff writes what a command computes.
_MATRICES = {"jacobian": ("--jacobian", "Jacobian"), "hessian": ("--order 2", "Hessian")}
_OF_FORMULAS = ("latex", "python", "numpy", "torch", "jax")


def of_formats(name: str, command: Command, source: str, values: Mapping[str, str]) -> str:
    """The whole line to type for a format that a command lacks; empty where the word is no format."""
    name = FORMATS_ELSEWHERE.get(name, name)
    short = len(source) <= _SHORT and "\n" not in source and source.strip()
    text = quoted(source) if short else "EXPR"
    if command.operand != "EXPR":
        text = "EXPR"
    given = "".join(f" --{n} {quoted(v)}" for n, v in values.items() if len(v) <= _SHORT)
    if command.name in ("plot", "fit"):
        if name in _PICTURES:
            return f"write -o FILE.{name}"
        if name in ("tikz", "latex") and command.name == "plot":
            return (
                "write -o FILE.pdf, which LaTeX takes by \\includegraphics{FILE.pdf}; "
                "--csv writes the points of the curves, for pgfplots"
            )
    if name in _PICTURES:
        return f"gradcli graph {text}{given} -o FILE.{name} draws the graph"
    if name in _OF_GRAPHS:
        return f"gradcli graph {text}{given} --format {name} draws the graph"
    if name in _OF_FORMULAS and command.name in _MATRICES:
        asked, what = _MATRICES[command.name]
        return f"gradcli diff {text} {asked} --format {name} writes the {what}"
    if name in _OF_FORMULAS:
        return (
            f"gradcli diff {text} --format {name} writes the derivative, "
            f"gradcli simplify {text} --format {name} the expression"
        )
    return ""


# -- words in the place of values ------------------------------------------------------------------------
_KINDS = {
    **dict.fromkeys(("matrix", "mat", "array2d", "tensor2d"), "m,n"),
    **dict.fromkeys(("vector", "vec", "column", "row"), "n"),
    **dict.fromkeys(("scalar", "number", "real", "symbolic", "symbol", "variable"), ""),
}
_SIZES = re.compile(r"\(?\s*(\d+|[a-z])\s*(?:×|x|by)\s*(\d+|[a-z])\s*\)?")


def refuse_words(
    values: Iterable[tuple[str, str]], text: str, declared: Mapping[str, Option]
) -> None:
    """Refuse `--W1 matrix`, `--W1 2x3`: they say a shape, which another option gives."""
    for name, value in values:
        sizes = _sizes_of(value)
        if sizes is None or re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text):
            continue
        raise _no_value(name, value, sizes, declared)


def _sizes_of(value: str) -> str | None:
    """The sizes that a word says, as --shape writes them; None for what may be a value."""
    word = value.strip()
    if word.lower() in _KINDS:
        return _KINDS[word.lower()]
    match = _SIZES.fullmatch(word)
    return None if match is None else f"{match[1]},{match[2]}"


def _no_value(name: str, value: str, sizes: str, declared: Mapping[str, Option]) -> LanguageError:
    message = f"--{name}: {value} says what {name} is, and is no value"
    if not sizes:
        hint = f"leave --{name} out: a variable without a value stays a letter"
        if "--no-verify" not in declared:  # it is no command of formulas
            hint = f"write a number: --{name} 2; gradcli diff has formulas of letters"
        return usage(message, hint=hint)
    if "--shape" not in declared:
        return usage(message, hint=f"write its numbers: --{name} '1,2;3,4'")
    if "--no-verify" in declared or sizes.replace(",", "").isdigit():
        filled = "" if "--no-verify" in declared else ", which fills it with random numbers"
        return usage(message, hint=f"a shape is given by --shape {name}={sizes}{filled}")
    example = "2,3" if "," in sizes else "3"
    return usage(
        message,
        hint=f"write its numbers, --{name} '1,2;3,4', or --shape {name}={example} for random ones",
    )

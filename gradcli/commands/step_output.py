"""What `--trace` writes: the table of a backward pass on standard output, or in a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gradcli.commands import output
from gradcli.commands.command_errors import usage

if TYPE_CHECKING:
    from gradcli.graphs import Trace


def steps_form(form: str, path: str | None) -> str:
    """The form in which --trace writes its table: that of an option, or of a file's ending."""
    if form in ("lines", "npy"):
        raise usage(
            f"--{form} writes numbers, but --trace prints a table", hint="use --csv or --plain"
        )
    if path is None:
        return form
    ending = os.path.splitext(path.lower())[1].removeprefix(".")
    if ending not in ("csv", "tex", "html"):
        raise usage(
            f"-o: --trace has no format with the ending of {path}",
            hint="use .csv, .tex or .html",
        )
    if form not in ("text", ending):
        raise usage(
            f"--{form} cannot be used with -o {path}", hint="the file's ending says the format"
        )
    return ending


def write_steps(trace: Trace, style: output.Style) -> bool:
    """Write the table of the steps; whether the gradients are to follow it."""
    if style.form == "text":
        output.write_drawing(trace, style)
        return True
    from gradcli.graphs import step_files

    if style.form == "plain":
        output.write(step_files.to_plain(trace, style.precision))
        return True
    text = getattr(step_files, f"to_{style.form}")(trace)
    output.write_file(style.path or "-", text)
    if style.path is None:
        return False
    style.form = "text"  # the gradients stand on standard output, as ever
    return True

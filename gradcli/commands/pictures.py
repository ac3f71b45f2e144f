"""Where a picture goes: onto the terminal, or into a file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gradcli.commands import output
from gradcli.commands.array_output import picture_form
from gradcli.commands.command_errors import usage
from gradcli.commands.terminal import speaks_unicode, width

if TYPE_CHECKING:
    from gradcli.commands.plots.pictures import Contours, Curves

PLOT = "--plot [FILE]"
PLOTTED = "on the terminal, or into FILE.svg, .png, .pdf."


class Canvas:
    """A terminal or a file, `path`: checked before anything is computed.

    wide, high: characters on a terminal, tenths of inches in a file.
    """

    def __init__(
        self,
        path: str | None,
        style: output.Style,
        option: str,
        *,
        theme: str = "light",
        wide: int | None = None,
        high: int | None = None,
    ) -> None:
        self.path = None if path in output.STANDARD_OUTPUT else path
        self.form = None if self.path is None else picture_form(self.path, option)
        self.style, self.theme, self.wide, self.high = style, theme, wide, high
        if self.path is None and path is not None and style.form != "text":
            raise usage(
                f"{option} draws among --{style.form}", hint=f"name a file: {option} FILE.svg"
            )

    def draw(self, picture: Curves | Contours) -> None:
        """Draw it."""
        if self.path is not None and self.form is not None:
            from gradcli.commands.plots import figures

            inches = ((self.wide or 72) / 10, (self.high or 45) / 10)
            found = getattr(figures, picture.kind)(picture, self.form, self.theme, inches)
            output.write_file(self.path, found)
            return
        from gradcli.commands.plots import braille

        wide = self.wide or min(width(sys.stdout), 120)
        size = wide, self.high or max(wide // 4, 12)
        plain = not speaks_unicode(sys.stdout)
        text = getattr(braille, picture.kind)(
            picture, size, coloured=self.style.colour, plain=plain
        )
        output.write(text, styled=True)

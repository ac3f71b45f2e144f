"""Where a picture goes: onto the terminal, or into a file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.array_output import picture_form
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import Option, Options
from gradcli.commands.plots import LATEX
from gradcli.commands.question import with_ln
from gradcli.commands.terminal import said_width, speaks_unicode, width

if TYPE_CHECKING:
    from gradcli.commands.plots.axes import Axis, Dates
    from gradcli.commands.plots.pictures import Contours, Curves
    from gradcli.commands.request import Request

_FILE = 72, 45  # tenths of inches
_PAGE = 47, 31  # the same of LaTeX's, whose text is 48 wide in an article

PLOT = "--plot [FILE]"
PLOTTED = "on the terminal, or into FILE.svg, .png, .pdf, .tex."


SIZES = (
    Option(
        "--theme light|dark",
        "Colours of the picture in a file.",
        choices=("light", "dark"),
        default="light",
    ),
    Option("--width N", "Width in characters; in a file, in tenths of inches.", least=20, most=500),
    Option("--height N", "Height in lines; in a file, in tenths of inches.", least=5, most=500),
)
AXES = (
    Option("--log x|y|x,y", "Logarithmic axes.", choices=("x", "y", "x,y")),
    Option("--title TEXT", "A title above the picture."),
    Option("--xlabel TEXT", "The label of the horizontal axis."),
    Option("--ylabel TEXT", "The label of the vertical axis."),
    Option("--xlim LOW:HIGH", "What the horizontal axis shows; one may be left out."),
    Option("--ylim LOW:HIGH", "What the vertical axis shows; one may be left out."),
    *SIZES,
)


class View:
    """What a command line says of the axes of a picture."""

    def __init__(self, options: Options) -> None:
        self.logs = (options.log or "").split(",")
        self.labels = {"x": options.xlabel, "y": options.ylabel}
        self.title = options.title or ""
        self.limits = {which: _limits(which, getattr(options, f"{which}lim")) for which in "xy"}
        for which, (low, _) in self.limits.items():
            if self.log(which) and low is not None and low <= 0:
                raise usage(
                    f"--{which}lim: a logarithmic axis begins above 0, not at {low:g}",
                    hint=f"as in --{which}lim 0.1:",
                )

    def log(self, which: str) -> bool:
        """Whether an axis, x or y, is logarithmic."""
        return which in self.logs

    def axis(
        self, which: str, ends: tuple[float, float], label: str, dates: Dates | None = None
    ) -> Axis:
        """An axis that would show `ends` if nobody says another thing."""
        from gradcli.commands.plots.axes import Axis

        low, high = (
            end if said is None else said
            for end, said in zip(ends, self.limits[which], strict=True)
        )
        if not low < high:
            raise usage(f"--{which}lim: there is nothing between {low:g} and {high:g}")
        if self.log(which) and not low > 0:
            raise usage(
                f"--log {which}: the axis begins at {low:g}, and a logarithmic one above 0",
                hint=f"as in --{which}lim 0.1:",
            )
        said = self.labels[which]
        if said is not None:
            label = said
        return Axis((low, high), label, self.log(which), dates)

    def inside(self, x: Any, y: Any) -> tuple[Any, Any]:
        """What of a curve lies where --xlim lets see it."""
        low, high = self.limits["x"]
        there = (x >= (x[0] if low is None else low)) & (x <= (x[-1] if high is None else high))
        return (x[there], y[there]) if there.sum() > 1 else (x, y)

    def note_hidden(self, which: str, numbers: Any) -> None:
        """Say how many numbers a logarithmic axis has no place for."""
        import numpy as np

        if self.log(which) and (count := int(np.count_nonzero(~(np.asarray(numbers) > 0)))):
            many = len(numbers)
            output.note(f"--log {which}: {count} of {many} points are not above 0, and not drawn")


def _limits(which: str, text: str | None) -> tuple[float | None, float | None]:
    if text is None:
        return None, None
    low, colon, high = text.partition(":")
    if not colon:
        raise usage(f"--{which}lim wants LOW:HIGH, not {text!r}", hint=f"as in --{which}lim 0:10")
    from gradcli.commands.request_evaluation import read_value

    ends = [
        float(read_value(end, f"--{which}lim ").item()) if end.strip() else None
        for end in (low, high)
    ]
    return ends[0], ends[1]


class Canvas:
    """A terminal or a file, `path`: checked before anything is computed.

    wide, high: characters on a terminal, tenths of inches in a file. written: says whether labels are
    mathematics, and how they call the natural logarithm.
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
        written: Request | None = None,
    ) -> None:
        self.path = None if path in output.STANDARD_OUTPUT else path
        self.form: str | None = None
        if self.path is not None:
            latex = os.path.splitext(self.path.lower())[1][1:] in LATEX
            self.form = "tex" if latex else picture_form(self.path, option)
        self.style, self.theme, self.wide, self.high = style, theme, wide, high
        self.math = written is not None and written.math
        self.ln = written is not None and written.ln
        if self.path is None and path is not None and style.form != "text":
            raise usage(
                f"{option} draws among --{style.form}", hint=f"name a file: {option} FILE.svg"
            )

    def _alike(self, picture: Any, wide: int, high: int) -> tuple[int, int]:
        """The size with which a unit is as long upwards as across; a character is twice as high as wide."""
        across, up = (axis.ends[1] - axis.ends[0] for axis in (picture.x, picture.y))
        beside = 8  # characters of the marks of the vertical axis
        if self.wide is None:
            fitting = round(2 * high * across / up) + beside
            if fitting <= wide:
                return fitting, high
        if self.high is None:
            return wide, max(round((wide - beside) * up / across / 2), 5)
        return wide, high

    def _typeset(self, label: str) -> str:
        from gradcli.commands.plots.labels import for_matplotlib

        made = for_matplotlib(label)
        return with_ln(made) if self.ln else made

    def draw(self, picture: Curves | Contours) -> None:
        """Draw it."""
        if self.path is not None and self.form is not None:
            drawer: Any
            if self.form == "tex":
                from gradcli.commands.plots import pgfplots

                drawer = pgfplots
            else:
                from gradcli.commands.plots import figures

                drawer = figures
            wide, high = _PAGE if self.form == "tex" else _FILE
            inches = ((self.wide or wide) / 10, (self.high or high) / 10)
            if self.math and self.form != "tex":  # there all expressions are
                picture = picture.relabelled(self._typeset)
            found = getattr(drawer, picture.kind)(picture, self.form, self.theme, inches)
            if self.ln and self.form == "tex":
                found = with_ln(found.decode()).encode()
            output.write_file(self.path, found)
            return
        from gradcli.commands.plots import braille, labels

        if self.math:
            picture = picture.relabelled(labels.with_primes)

        wide = self.wide or min(said_width() or width(sys.stdout), 120)
        size = wide, self.high or max(wide // 4, 12)
        if getattr(picture, "alike", False):
            size = self._alike(picture, *size)
        plain = not speaks_unicode(sys.stdout)
        text = getattr(braille, picture.kind)(
            picture, size, coloured=self.style.colour, plain=plain
        )
        output.write(text, styled=True)

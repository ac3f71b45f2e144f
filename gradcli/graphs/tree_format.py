"""The backward graph as a tree: plain text in a pipe, colour on a terminal, ASCII where need be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradcli.engine.system.garbage import uncollected
from gradcli.graphs.styles import ASCII, UNICODE, Line, segments
from gradcli.graphs.traversal import Describer
from gradcli.graphs.tree_lines import Drawing, TreeOptions

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(slots=True, eq=False, repr=False)
class Tree:
    """A drawing of the graph; `str()` is plain, rich's `console.print` colours it."""

    describer: Describer
    forward: Mapping[int, Any]
    options: TreeOptions = field(default_factory=TreeOptions)
    modules: Any = None  # gradcli.graphs.of_torch.module_view.Modules

    def __str__(self) -> str:
        return self.plain()

    @uncollected()  # what a large graph is drawn of, all of which lives on
    def plain(self, *, ascii: bool | None = None, width: int | None = None) -> str:
        """Return the tree as text; `ascii` for locales without UTF-8."""
        lines = self.lines(ascii=ascii, width=width, coloured=False)
        return "\n".join(["".join([text for text, _ in line]).rstrip() for line in lines])

    def lines(
        self, *, ascii: bool | None = None, width: int | None = None, coloured: bool = True
    ) -> Iterator[Line]:
        """Yield the lines, each a list of (text, role), fitted into the width."""
        ascii = self.options.ascii if ascii is None else ascii
        width = self.options.width if width is None else width
        signs = ASCII if ascii else UNICODE
        return Drawing(
            self.describer,
            self.forward,
            self.options,
            signs,
            width,
            coloured=coloured,
            modules=self.modules,
        ).lines()

    def fitted(self, width: int, *, ascii: bool, coloured: bool) -> Iterator[Line]:
        """Yield the lines for a terminal, as far as the options leave it open."""
        return self.lines(
            ascii=self.options.ascii or ascii, width=self.options.width or width, coloured=coloured
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        coloured = console.color_system is not None and not console.no_color
        ascii = options.ascii_only
        yield from segments(self.fitted(options.max_width, ascii=ascii, coloured=coloured))

"""`inspect(tensor)`: the backward graph of a result, as records and in every format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradcli.graphs.records import Describer, Record, Totals, records, totals, walk
from gradcli.graphs.values import default_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.graphs.pictures import Picture
    from gradcli.graphs.tree import Tree


class Graph:
    """What backpropagation will run; made by `inspect`."""

    def __init__(
        self,
        tensors: tuple[Any, ...],
        *,
        source: str | None = None,
        names: Mapping[str, Any] | None = None,
        values: Mapping[Any, Any] | None = None,
    ) -> None:
        self.tensors, self.source = tensors, source
        self.names = {id(tensor): name for name, tensor in (names or {}).items()}
        self._kept = names  # the ids above are only good while the tensors live
        self.skeleton = walk(root for root in map(root_of, tensors) if root is not None)
        self.describer = Describer(self.skeleton, source, self.names)
        self._watched = values
        self.recorder: Any = None
        self.calls: Any = None  # of modules, where they are known
        self._records: list[Record] | None = None

    @property
    def records(self) -> list[Record]:
        """Every node described, in order of first visit, depth first."""
        if self._records is None:
            self._records = list(records(self.describer))
        return self._records

    @property
    def totals(self) -> Totals:
        """Nodes, edges, leaves, saved tensors and their bytes."""
        return totals(self.skeleton, self.describer.probe)

    @property
    def forward(self) -> dict[int, Any]:
        """The values of the nodes' results by id, as far as they are known."""
        from gradcli.graphs.forward import known_values

        return known_values(self.skeleton, self._watched)

    def backpropagate(self, seed: Any = None) -> Graph:
        """Find the gradient that reaches each node; the graph is retained, no `.grad` changes.

        Hooks run. Raises RuntimeError, in PyTorch's words, where backpropagation is refused.
        """
        from gradcli.graphs.gradients import capture

        several = seed is None or isinstance(seed, tuple | list)
        seeds = seed if several else (seed,)
        if len(self.skeleton):
            live = tuple(t for t in self.tensors if root_of(t) is not None)
            self.recorder = capture(live, None if seeds is None else tuple(seeds), self.skeleton)
            self.describer.grads = self.recorder.reached
        self._records = None
        return self

    def tree(self, **options: Any) -> Tree:
        """Return the tree: `str()` of it is plain text, rich's `console.print` colours it.

        Options: saved, values, grads, edges, legend, collapse, depth, only, width, precision,
        ascii, forward, wide.
        """
        from gradcli.graphs.tree import Tree
        from gradcli.graphs.tree_lines import Options

        options.setdefault("default_dtype", default_dtype())
        options.setdefault("grads", self.describer.grads is not None)
        chosen = Options(**options)
        return Tree(self.describer, self.forward if chosen.values else {}, chosen)

    def picture(self, **options: Any) -> Picture:
        """Return what every picture shows, before any format.

        Options: saved, values, grads, edges, collapse, depth, only, by, forward, precision, and how it
        is drawn: direction ("down", "right"), theme ("auto", "light", "dark"), background ("auto",
        "none", "white"), title. Raises ValueError if `only` names nothing.
        """
        from gradcli.graphs.pictures import Options, Picture

        options.setdefault("default_dtype", default_dtype())
        options.setdefault("grads", self.describer.grads is not None)
        options.setdefault("title", self.source)
        chosen = Options(**options)
        return Picture(self.describer, self.forward if chosen.values else {}, chosen, self.calls)

    def to_json(
        self,
        *,
        only: str | None = None,
        depth: int | None = None,
        forward: bool = False,
        values: bool = False,
    ) -> dict[str, Any]:
        """Return the graph as JSON objects; ids are those of the whole graph."""
        from gradcli.graphs.json import view_to_json
        from gradcli.graphs.view import Selection, View

        labels = self.describer.labels() if only is not None else None
        view = View(self.skeleton, Selection(only, depth, False, forward), labels)
        return view_to_json(view, self.describer, self.forward if values else None)

    def to_dot(self, **options: Any) -> str:
        """Return the graph in Graphviz's language; for the options see `picture`."""
        from gradcli.graphs.dot import picture_to_dot

        return picture_to_dot(self.picture(**options))

    def to_mermaid(self, **options: Any) -> str:
        """Return the graph as a Mermaid flowchart."""
        from gradcli.graphs.mermaid import picture_to_mermaid

        return picture_to_mermaid(self.picture(**options))

    def to_tikz(self, **options: Any) -> str:
        """Return the graph as a TikZ picture for LaTeX."""
        from gradcli.graphs.tikz import picture_to_tikz

        return picture_to_tikz(self.picture(**options))

    def to_svg(self, **options: Any) -> str:
        """Return the graph as one self-contained SVG file."""
        from gradcli.graphs.svg import picture_to_svg

        return picture_to_svg(self.picture(**options))

    def to_png(self, *, scale: float = 2.0, **options: Any) -> bytes:
        """Return the graph as a PNG. Raises ImportError without the extra `picture`."""
        from gradcli.graphs.raster import svg_to_png

        return svg_to_png(self.to_svg(**_still(options)), scale)

    def to_pdf(self, **options: Any) -> bytes:
        """Return the graph as a PDF of one page. Raises ImportError without the extra `picture`."""
        from gradcli.graphs.raster import svg_to_pdf

        return svg_to_pdf(self.to_svg(**_still(options)))

    def frames(self, **options: Any) -> Iterator[str]:
        """Yield one SVG a step of the backward pass, the first before it begins.

        Backpropagates first if that has not been done.
        """
        from gradcli.graphs.frames import frames

        if self.recorder is None and len(self.skeleton):
            self.backpropagate()
        return frames(self.picture(**options), self)

    def to_html(self, *, title: str | None = None, **options: Any) -> str:
        """Return one self-contained page that shows the graph and plays the backward pass."""
        from gradcli.graphs.html import graph_to_html

        return graph_to_html(self, title=title, **options)

    def _repr_html_(self) -> str:
        from gradcli.graphs.html import notebook_frame

        return notebook_frame(self.to_html())

    def __str__(self) -> str:
        return str(self.tree())

    def __repr__(self) -> str:
        found = self.totals
        return f"<Graph of {found.nodes} nodes, {found.edges} edges, {found.leaves} leaves>"


def inspect(
    tensor: Any,
    *,
    source: str | None = None,
    names: Mapping[str, Any] | None = None,
    values: Mapping[Any, Any] | None = None,
    grads: bool = False,
    seed: Any = None,
) -> Graph:
    """Look at the backward graph of a tensor (or of several).

    source: the text that the nodes' spans refer to. names: what to call tensors without a label.
    values: results by node, from `watching()`. grads, seed: backpropagate at once.
    """
    tensors = tuple(tensor) if isinstance(tensor, tuple | list) else (tensor,)
    for one in tensors:
        if not hasattr(one, "grad_fn"):
            raise TypeError(f"inspect() wants a Tensor, not {type(one).__name__}")
    graph = Graph(tensors, source=source, names=names, values=values)
    return graph.backpropagate(seed) if grads or seed is not None else graph


def _still(options: dict[str, Any]) -> dict[str, Any]:
    """Options for a format that cannot ask its reader: `auto` is light."""
    light = options.get("theme", "auto") == "auto"
    return {**options, "theme": "light"} if light else options


def root_of(tensor: Any) -> Any:
    """Return the node that a tensor's gradient goes to: its grad_fn, or a leaf's AccumulateGrad."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    if not tensor.requires_grad:
        return None
    from gradcli.engine.edges import get_gradient_edge

    return get_gradient_edge(tensor).node

"""`inspect(tensor)`: the backward graph of a result, as records and in every format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradcli.graphs.of_torch.torch_notes import KEY
from gradcli.graphs.probes import OWN, Probe
from gradcli.graphs.traversal import (
    Describer,
    Record,
    Totals,
    records,
    totals,
    walk,
    with_constants,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.graphs.of_torch.module_view import Modules
    from gradcli.graphs.pictures import Picture
    from gradcli.graphs.tree_format import Tree


class Graph:
    """What backpropagation will run; made by `inspect`."""

    def __reduce__(self) -> Any:
        raise TypeError(
            "a graph is of one process: pickle its source and values, or what it says, graph.to_json()"
        )

    def __init__(
        self,
        tensors: tuple[Any, ...],
        *,
        source: str | None = None,
        names: Mapping[str, Any] | None = None,
        values: Mapping[Any, Any] | None = None,
        probe: Probe = OWN,
        calls: Any = None,
    ) -> None:
        """calls: the modules' calls that made the nodes (`gradcli.graphs.of_torch.module_calls.Calls`)."""
        self.probe, self.calls = probe, calls
        self.tensors, self.source = tensors, source
        self.kept_names = names  # the tensors that the program has names for
        self.names = {id(tensor): name for name, tensor in (names or {}).items()}
        named = []  # before PyTorch 2.13 a node is another object each time that it is asked for
        for name, tensor in (names or {}).items():  # as it is now: a write in place made a new node
            node = probe.maker(tensor)
            if node is not None and tensor.output_nr == 0:
                self.names.setdefault(id(node), name)
                named.append(node)
        self._kept = names, named  # the ids above are only good while these live
        roots = [root for root in map(probe.root_of, tensors) if root is not None]
        self.skeleton = walk(dict.fromkeys(roots))
        self.describer = Describer(self.skeleton, source, self.names, probe=probe)
        # What was written in place has another node since, and another value.
        self._watched = {n: t for n, t in (values or {}).items() if t.grad_fn is n}
        self._operands = values
        self.facts: Any = (
            None  # gradcli.graphs.of_torch.torch_facts.Facts of the program that made it
        )
        self.error: str | None = None  # what ended that program
        # The step of its pass, where the program has gone on to others that are not finite.
        self.finite_step: int | None = None
        self.program: str | None = None  # the name of its file, with the tensor or module asked for
        self.recorder: Any = None
        # What the reader of the last picture will not show of it, and what to do.
        self.note: str | None = None
        # Tensors of this dtype are shown without it, also where the picture is drawn under another one.
        self.default_dtype: str = self.probe.default_dtype()
        self._records: list[Record] | None = None
        self._modules: Modules | None = None
        self._forward: Describer | None = None
        self._forward_modules: Modules | None = None

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
        return self.values_of(self.describer)

    def describer_of(self, *, forward: bool) -> Describer:
        """Who describes the nodes: read forward, with the operands that need no gradient."""
        if not forward:
            return self.describer
        if self._forward is None:

            def constants(node: Any) -> list[Any]:
                return self.probe.constants(node, self._operands)

            def name_of(tensor: Any) -> str | None:
                return self.probe.name_of_constant(tensor, self.names)

            roots = [self.skeleton.nodes[i] for i in self.skeleton.roots]
            skeleton = walk(roots, with_constants(constants, name_of))
            self._forward = Describer(skeleton, self.source, self.names, probe=self.probe)
        self._forward.grads = self.describer.grads
        self._forward.tangents = self.describer.tangents
        return self._forward

    def values_of(self, describer: Describer) -> dict[int, Any]:
        """The values of the results by id, as far as they are known."""
        return self.probe.known_values(describer.skeleton, self._watched)

    @property
    def modules(self) -> Modules | None:
        """The modules of PyTorch's that made the nodes, where the forward pass was watched."""
        if self._modules is None and self.calls is not None:
            from gradcli.graphs.of_torch.module_view import Modules

            self._modules = Modules(self.calls, self.describer)
        return self._modules

    def modules_of(self, describer: Describer) -> Modules | None:
        """The modules, by the numbers that its describer gives the nodes."""
        if describer is self.describer or self.calls is None:
            return self.modules
        if self._forward_modules is None:
            from gradcli.graphs.of_torch.module_view import Modules

            self._forward_modules = Modules(self.calls, describer)
        return self._forward_modules

    def backpropagate(self, seed: Any = None) -> Graph:
        """Find the gradient that reaches each node; the graph is retained, no `.grad` changes.

        Hooks run. Raises RuntimeError, in PyTorch's words, where backpropagation is refused.
        """
        several = seed is None or isinstance(seed, tuple | list)
        seeds = seed if several else (seed,)
        if len(self.skeleton):
            live = tuple(t for t in self.tensors if self.probe.root_of(t) is not None)
            chosen = None if seeds is None else tuple(seeds)
            self.recorder = self.probe.capture(live, chosen, self.skeleton)
            self.describer.grads = self.recorder.reached
        self._records = None
        return self

    def _passed(self) -> Graph:
        """The graph with its gradients known."""
        return self if self.recorder is not None else self.backpropagate()

    def tree(self, **options: Any) -> Tree:
        """Return the tree: `str()` of it is plain text, rich's `console.print` colours it.

        Options: saved, values, grads, edges, legend, collapse, depth, only, width, precision,
        ascii, forward, wide.
        """
        from gradcli.graphs.tree_format import Tree
        from gradcli.graphs.tree_lines import TreeOptions

        chosen = TreeOptions(**self._usual(options))
        describer = self.describer_of(forward=chosen.forward)
        return Tree(
            describer,
            self.values_of(describer) if chosen.values else {},
            chosen,
            self.modules_of(describer),
        )

    def _usual(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, with what is known of the graph where they say nothing."""
        known = {
            "default_dtype": self.default_dtype,
            "grads": self.describer.grads is not None,
        }
        return known | options

    def picture(self, **options: Any) -> Picture:
        """Return what every picture shows, before any format.

        Options: saved, values, grads, edges, slopes, collapse, depth, only, by, forward, precision, and how
        it is drawn: direction ("down", "right"), theme ("auto", "light", "dark"), background ("auto",
        "none", "white"), title. Raises ValueError if `only` names nothing.
        """
        from gradcli.graphs.pictures import Picture, PictureOptions

        self.note = None
        chosen = PictureOptions(**{"title": self.source, **self._usual(options)})
        describer = self.describer_of(forward=chosen.forward)
        return Picture(
            describer,
            self.values_of(describer) if chosen.values else {},
            chosen,
            self.modules_of(describer),
            self._slopes(describer) if chosen.slopes else None,
        )

    def _slopes(self, describer: Describer) -> dict[tuple[int, int], float]:
        """The slopes of operations on numbers, by the node's id and the number of its edge."""
        from gradcli.graphs.backward_steps import local_slopes

        places = {node: i for i, node in enumerate(describer.skeleton.nodes)}
        found = local_slopes(self._passed().recorder.steps)
        return {(places[node], k): v for (node, k), v in found.items() if node in places}

    def to_json(
        self,
        *,
        only: str | None = None,
        depth: int | None = None,
        forward: bool = False,
        values: bool = False,
    ) -> dict[str, Any]:
        """Return the graph as JSON objects; ids are those of the whole graph."""
        from gradcli.graphs.json_format import view_to_json
        from gradcli.graphs.view import Selection, View

        describer = self.describer_of(forward=forward)
        labels = describer.labels() if only is not None else None
        modules = self.modules_of(describer)
        members = None if modules is None else modules.members
        view = View(
            describer.skeleton, Selection(only, depth, False, forward), labels, None, members
        )
        found = view_to_json(view, describer, self.values_of(describer) if values else None)
        if modules is not None:
            from gradcli.graphs.of_torch import outline

            found["modules"] = outline.to_json(modules, grads=self.describer.grads is not None)
        return found

    def to_dot(self, **options: Any) -> str:
        """Return the graph in Graphviz's language; for the options see `picture`."""
        from gradcli.graphs import reader_limits
        from gradcli.graphs.dot import picture_to_dot

        drawn = self.picture(**options)
        self.note = reader_limits.dot(drawn)
        return picture_to_dot(drawn)

    def to_mermaid(self, **options: Any) -> str:
        """Return the graph as a Mermaid flowchart, of a size that Mermaid draws; see `note`."""
        from gradcli.graphs import reader_limits

        text, self.note = reader_limits.mermaid(self, options)
        return text

    def to_tikz(self, **options: Any) -> str:
        """Return the graph as a TikZ picture for LaTeX."""
        from gradcli.graphs import reader_limits, tikz

        text = tikz.picture_to_tikz(self.picture(**options))
        self.note = reader_limits.tex(text, tikz.unknown_letters(text))
        return text

    def to_svg(self, **options: Any) -> str:
        """Return the graph as one self-contained SVG file."""
        from gradcli.graphs.svg import picture_to_svg

        return picture_to_svg(self.picture(**options))

    def to_png(self, *, scale: float = 2.0, **options: Any) -> bytes:
        """Return the graph as a PNG. Raises ImportError without the extra `picture`."""
        from gradcli.graphs import raster, reader_limits

        svg = self.to_svg(**_still(options))
        self.note = reader_limits.letters(raster.scale_of(svg, scale))
        return raster.svg_to_png(svg, scale)

    def to_pdf(self, **options: Any) -> bytes:
        """Return the graph as a PDF of one page. Raises ImportError without the extra `picture`."""
        from gradcli.graphs.raster import svg_to_pdf

        return svg_to_pdf(self.to_svg(**_still(options)))

    def frames(self, **options: Any) -> Iterator[str]:
        """Yield one SVG a step of the backward pass, the first before it begins.

        Backpropagates first if that has not been done.
        """
        from gradcli.graphs.step_pictures import frames

        return frames(self._passed().picture(**options), self)

    def trace(self) -> Any:
        """Return the backward pass as a table, a row a step; backpropagates if that is to be done."""
        from gradcli.graphs.step_listing import Trace

        return Trace(self._passed().recorder, self.source, self.describer)

    def norms(self) -> Any:
        """Return the table of gradients' norms; backpropagates if that is to be done."""
        from gradcli.graphs.gradient_norms import Norms

        return Norms(self._passed())

    def anomaly(self) -> Any:
        """Return the first NaN or infinity of our own graph, as far as values and gradients are known."""
        from gradcli.graphs.first_nonfinite import find_anomaly

        return find_anomaly(self, values=self._watched, recorder=self.recorder)

    def diagnosis(self) -> Any:
        """Return what is found to be wrong, in order of weight, each with its line and what to do."""
        from gradcli.graphs.diagnosis import diagnose

        return diagnose(self, self.facts, self.error)

    def to_html(self, *, title: str | None = None, **options: Any) -> str:
        """Return one self-contained page that shows the graph and plays the backward pass."""
        from gradcli.graphs.html_page import graph_to_html

        return graph_to_html(self, title=title, **options)

    def _repr_html_(self) -> str:
        from gradcli.graphs.html_page import notebook_frame

        return notebook_frame(self.to_html())

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def __str__(self) -> str:
        return str(self.tree())

    def __repr__(self) -> str:
        found = self.totals
        return f"<Graph of {found.nodes} nodes, {found.edges} edges, {found.leaves} leaves>"


def _is_torch(tensor: Any) -> bool:
    return type(tensor).__module__.partition(".")[0] == "torch" or any(
        base.__module__ == "torch" for base in type(tensor).__mro__
    )


def _was_watched(tensor: Any) -> bool:
    """Tell whether a tensor of ours was made while a program was watched."""
    node = None if _is_torch(tensor) else tensor.grad_fn
    return node is not None and KEY in (getattr(node, "_notes", None) or {})


def torch_graph(
    tensors: tuple[Any, ...],
    *,
    names: Mapping[str, Any] | None = None,
    model: Any = None,
    calls: Any = None,
) -> Graph:
    """The graph of tensors of a program, PyTorch's or ours; for the arguments see `torch_parts`."""
    from gradcli.graphs.of_torch.torch_graph import torch_parts

    probe, known, calls = torch_parts(tensors, names, model, calls)
    return Graph(tensors, names=known, probe=probe, calls=calls)


def inspect(
    tensor: Any,
    *,
    source: str | None = None,
    names: Mapping[str, Any] | None = None,
    values: Any = None,
    grads: bool = False,
    seed: Any = None,
    model: Any = None,
) -> Graph:
    """Look at the backward graph of a tensor (or of several), gradcli's own or PyTorch's.

    source: the text that the nodes' spans refer to. names: what to call tensors without a label.
    values: results by node, from `watching()`. grads, seed: backpropagate at once. model: a module (or
    several), whose parameters have names. Raises TypeError for what is not a tensor.
    """
    tensors = tuple(tensor) if isinstance(tensor, tuple | list) else (tensor,)
    for one in tensors:
        if not hasattr(one, "requires_grad"):
            raise TypeError(f"inspect() wants a Tensor, not {type(one).__name__}")
    of_program = model is not None or any(map(_was_watched, tensors))
    if of_program or any(map(_is_torch, tensors)):
        graph = torch_graph(tensors, names=names, model=model)
        return graph.backpropagate(seed) if grads or seed is not None else graph
    graph = Graph(tensors, source=source, names=names, values=values)
    return graph.backpropagate(seed) if grads or seed is not None else graph


def _still(options: dict[str, Any]) -> dict[str, Any]:
    """Options for a format that cannot ask its reader: `auto` is light."""
    light = options.get("theme", "auto") == "auto"
    return {**options, "theme": "light"} if light else options

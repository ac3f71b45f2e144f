"""A graph grouped by PyTorch modules: their nodes, the memory they keep, their gradients."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gradcli.graphs import value_text
from gradcli.graphs.labels import plural
from gradcli.graphs.of_torch.module_calls import Calls
from gradcli.graphs.probes import Constant
from gradcli.graphs.traversal import Describer, class_name
from gradcli.graphs.view import SHORTEST_FOLD, Fold

FEWEST_BOXES, MOST_BOXES = 10, 40  # of a picture by modules, as far as the modules let it be


@dataclass(slots=True)
class ModulePart:
    """A module: its nodes and leaves (those of its parts among them), and the calls it has had."""

    path: str
    kind: str
    parent: str | None
    depth: int
    calls: set[int] = field(default_factory=set)
    nodes: list[int] = field(default_factory=list)
    leaves: dict[int, None] = field(default_factory=dict)


class Modules:
    """The modules of a graph, by path, in order of the forward pass.

    A box is a call of a module, by its number, or what has a number beyond those of the calls: a run of
    calls of equal siblings one after another, or a stage, which is a list of modules (never called itself)
    whose items are called one after another, with what their caller computes in between.
    """

    def __init__(self, calls: Calls, describer: Describer) -> None:
        self.calls, self.describer = calls, describer
        self.skeleton = describer.skeleton
        self.of: dict[int, int] = {}  # node -> call
        probe: Any = describer.probe
        for i, node in enumerate(self.skeleton.nodes):
            call = -1 if _is_input(node) else probe.call(node)
            if call >= 0:
                self.of[i] = call
        self.runs: dict[int, list[int]] = {}
        self._run_of: dict[int, int] = {}
        self.stages: dict[int, list[int]] = {}
        self._stage_of: dict[int, int] = {}
        self.parts = self._parts()
        for run, members in enumerate(self._find_runs(), len(calls)):
            self.runs[run] = members
            self._run_of.update(dict.fromkeys(members, run))
        self._between: dict[int, int] = {}  # node of a stage that its modules' caller made -> stage
        for stage, members in enumerate(self._find_stages(), len(calls) + len(self.runs)):
            self.stages[stage] = members
            self._stage_of.update(dict.fromkeys(members, stage))
            first, last = (self._turn(self._inside[members[k]][k]) for k in (0, -1))
            caller = calls.parents[members[0]]
            inner = (i for i, call in self.of.items() if call == caller)
            self._between.update({i: stage for i in inner if first < self._turn(i) < last})

    def _parts(self, runs: Collection[int] = ()) -> dict[str, ModulePart]:
        found: dict[str, ModulePart] = {}
        for i, call in sorted(self.of.items(), key=lambda item: (item[1], item[0])):
            above: str | None = None
            for depth, one in enumerate(self.boxes(call, runs)):
                kind, path = self.title(one)
                part = found.get(path)
                if part is None:
                    part = found[path] = ModulePart(path, kind, above, depth)
                part.calls.add(one)
                part.nodes.append(i)
                for edge in self.skeleton.edges[i]:
                    if edge is not None and not self.skeleton.edges[edge[0]]:
                        part.leaves.setdefault(edge[0])
                above = path
        return found

    def rows(self, opened: Iterable[str] = ()) -> list[ModulePart]:
        """The parts with runs of siblings, but for the opened, in place of what they stand for."""
        opens = self._opened(opened)
        runs = self.runs.keys() - opens
        parts = self._parts(runs)
        hidden = {self.title(box)[1] for box in runs}
        for part in parts.values():  # a part comes after those that it is in
            if part.parent in hidden:
                hidden.add(part.path)
        return [p for p in parts.values() if p.parent not in hidden]

    @property
    def members(self) -> dict[str, list[int]]:
        """The nodes of every module, with the leaves that they lead to, by path."""
        return {path: sorted({*part.nodes, *part.leaves}) for path, part in self.parts.items()}

    # -- runs of siblings, and lists ---------------------------------------------------------------
    @cached_property
    def _inside(self) -> dict[int, list[int]]:
        """The nodes of each call, with those of its parts, in order of time."""
        found: dict[int, list[int]] = {}
        for i in sorted(self.of, key=self._turn):
            for call in self.calls.above(self.of[i]):
                found.setdefault(call, []).append(i)
        return found

    def _find_stages(self) -> list[list[int]]:
        """Calls of what one list holds, one after another; not where a run says the same."""
        spans: dict[tuple[int, str], list[list[int]]] = {}
        last: dict[int, str] = {}  # the list whose modules are called, by caller
        for call in sorted(self._inside):
            caller, holder = self.calls.parents[call], self.calls.holder(call)
            path = "" if holder is None else holder[1]
            known = spans.setdefault((caller, path), [])
            if last.get(caller) == path and known:
                known[-1].append(call)
            else:
                known.append([call])
            last[caller] = path
        whole = (known[0] for (_, path), known in spans.items() if path and len(known) == 1)
        runs = [set(run) for run in self.runs.values()]
        return [one for one in whole if len(one) > 1 and not any(run >= set(one) for run in runs)]

    def _find_runs(self) -> list[list[int]]:
        """Calls of equal modules one after another: alike in class, nodes and shapes of parameters."""
        inside = self._inside
        found: list[list[int]] = []
        last: dict[int, list[int]] = {}  # the run that grows, by caller
        alike = {call: self._signature(call, nodes) for call, nodes in inside.items()}
        for call in sorted(inside):
            parent = self.calls.parents[call]
            run = last.get(parent)
            if run and alike[run[-1]] == alike[call] and self._follows(run, call, inside):
                run.append(call)
            else:
                run = last[parent] = [call]
                found.append(run)
        return [run for run in found if len(run) >= SHORTEST_FOLD and not self._is_leaf_like(run)]

    def _is_leaf_like(self, run: list[int]) -> bool:
        """Tell whether it is one module, called again and again."""
        return len({self.calls.path(call) for call in run}) == 1

    def _turn(self, i: int) -> int:
        return int(self.skeleton.nodes[i]._sequence_nr())

    def _signature(self, call: int, nodes: list[int]) -> Any:
        edges, all_nodes = self.skeleton.edges, self.skeleton.nodes
        leaves = (e[0] for i in nodes for e in edges[i] if e is not None and not edges[e[0]])
        shapes = [
            tuple(all_nodes[j].variable.shape) for j in leaves if hasattr(all_nodes[j], "variable")
        ]
        return self.calls.kinds[call], [class_name(all_nodes[i]) for i in nodes], shapes

    def _follows(self, run: list[int], call: int, inside: dict[int, list[int]]) -> bool:
        """Tell whether nothing made in between reads the run: it would stand before and behind its box."""
        begin, end = self._turn(inside[run[-1]][-1]), self._turn(inside[call][0])
        between = self._by_turn[bisect(self._by_turn, begin, key=self._turn) :]
        known = {i for one in run for i in inside[one]}
        for i in between:
            if self._turn(i) >= end:
                return True
            if any(edge is not None and edge[0] in known for edge in self.skeleton.edges[i]):
                return False
        return True

    @cached_property
    def _by_turn(self) -> list[int]:
        inner = (i for i, node in enumerate(self.skeleton.nodes) if not _is_input(node))
        return sorted(inner, key=self._turn)

    # -- boxes -------------------------------------------------------------------------------------
    def boxes(self, call: int, counting: Collection[int]) -> list[int]:
        """The boxes around a call, from the outermost, and itself; counting: runs and stages that do."""
        found = []
        for one in self.calls.above(call):
            groups = (self._stage_of.get(one, -1), self._run_of.get(one, -1))
            found += [group for group in groups if group in counting]
            found.append(one)
        return found

    def around(self, i: int, counting: Collection[int]) -> list[int]:
        """The boxes around a node, from the outermost."""
        stage = self._between.get(i, -1)
        return [*self.boxes(self.of[i], counting), *([stage] if stage in counting else [])]

    def folded(self, options: Any) -> dict[int, int]:
        """Node -> the box that it is folded into; what an open module does itself has none.

        options.depth: modules so deep are boxes (1: the outermost). Otherwise the largest are opened
        until there are ten boxes, and no more than forty. open, fold: paths of modules, or how they end.
        Runs of siblings stay one box, unless they are named or `collapse` is False. Raises ValueError
        for names that no module has.
        """
        depth = options.depth
        if depth == 0:
            return {}
        counting = set() if options.collapse is False else {*self.runs}
        if depth is None:
            counting |= {*self.stages}
        chains = {i: self.around(i, counting) for i in self.of}
        callers = {*self.calls.parents, *self.stages}
        kept = {box for name in names_of(options.fold) for box in self._called(name)}
        opens = self._opened(names_of(options.open))
        if depth is not None:
            above = ([c for c in chain if c in callers][: depth - 1] for chain in chains.values())
            return _closed(chains, (opens | {one for calls in above for one in calls}) - kept)
        opens -= kept
        chosen = _closed(chains, opens)
        while _count(chains, chosen) < FEWEST_BOXES:
            ordered = Counter(chosen.values()).most_common()
            counts = {
                box: _count(chains, _closed(chains, opens | {box}))
                for box, _ in ordered
                if box in callers and box not in kept
            }
            fewest = min(counts, key=lambda box: counts[box], default=-1)
            box = next((one for one, n in counts.items() if n <= MOST_BOXES), fewest)
            if counts.get(box, math.inf) > 2 * MOST_BOXES:
                break
            opens.add(box)
            chosen = _closed(chains, opens)
        return chosen

    def _opened(self, names: Iterable[str]) -> set[int]:
        """The boxes that these names mean, and those around them."""
        return {one for name in names for box in self._called(name) for one in self._above(box)}

    def _above(self, box: int) -> list[int]:
        """A box, and those that it is in."""
        found = self.boxes(self._members(box)[0], {*self.runs, *self.stages})
        return found[: found.index(box) + 1]

    def _members(self, box: int) -> list[int]:
        """The calls that a box stands for."""
        return self.runs.get(box) or self.stages.get(box) or [box]

    def _called(self, name: str) -> list[int]:
        """The boxes that a name means: calls, or the runs of what a list of that name holds."""
        known = {self.title(stage)[1]: {stage} for stage in self.stages}
        known |= {path: part.calls for path, part in self.parts.items()}
        found = [
            c for path, calls in known.items() if f".{path}".endswith(f".{name}") for c in calls
        ]
        if not found:
            inner = (c for p, calls in known.items() if f".{name}." in f".{p}" for c in calls)
            found = list(dict.fromkeys(self._run_of[c] for c in inner if c in self._run_of))
        if not found:
            raise ValueError(
                f"no module is called {name!r} (modules: {', '.join(list(known)[:12])} …)"
            )
        return found

    def chains(self) -> dict[int, list[int]]:
        """Node -> the boxes that it was made in, outermost first; a leaf's are those of all its users."""
        found = {i: self.around(i, {*self.runs, *self.stages}) for i in self.of}
        users: dict[int, list[list[int]]] = {}
        for i in range(len(self.skeleton)):
            for edge in self.skeleton.edges[i]:
                if edge is not None and not self.skeleton.edges[edge[0]]:
                    users.setdefault(edge[0], []).append(found.get(i, []))
        for leaf, chains in users.items():
            common = []
            for level in zip(*chains, strict=False):
                if len(set(level)) > 1:
                    break
                common.append(level[0])
            found[leaf] = common
        return found

    def title(self, box: int) -> tuple[str, str]:
        """The class and the path of the module that was called; of a run the first and the last."""
        if box in self.stages:
            holder = self.calls.holder(self.stages[box][0])
            assert holder is not None
            return holder
        run = self.runs.get(box)
        if run is None:
            return self.calls.kinds[box], self.calls.path(box)
        first, last = self.calls.path(run[0]), self.calls.path(run[-1])
        return f"{self.calls.kinds[run[0]]} × {len(run)}", f"{first} … {last}"

    def lines(self, fold: Fold, grads: bool) -> list[str]:
        """What a fold's box says below its title."""
        found = [plural(len(fold.hidden), "node")]
        size = self.parameters(fold.leaves)
        if size:
            found[0] += f", {size:,} parameters"
        kept = self.kept(fold.hidden)
        if kept:
            found.append(f"keeps {value_text.bytes_text(kept)}")
        if grads and self.describer.grads is not None:
            came = self.describer.grads.get(self.skeleton.nodes[fold.hidden[0]])
            if came is not None:
                found.append(f"grad {value_text.range_text(came)}")
        return found

    def parameters(self, leaves: Iterable[int]) -> int:
        """The number of elements of the leaves."""
        nodes = self.skeleton.nodes
        variables = (getattr(nodes[i], "variable", None) for i in leaves)
        return sum(math.prod(one.shape) for one in variables if one is not None)

    def size(self, part: ModulePart) -> int:
        """The number of elements of a module's parameters, of those too that the graph does not reach."""
        return sum(self._held(part).values())

    def unreached(self) -> tuple[int, int]:
        """How many elements of the parameters of all modules the graph does not reach, and of how many."""
        held: dict[int, int] = {}
        for part in self.parts.values():
            held |= self._held(part)
        reached = {id(getattr(node, "variable", None)) for node in self.skeleton.nodes}
        return sum(n for key, n in held.items() if key not in reached), sum(held.values())

    def _held(self, part: ModulePart) -> dict[int, int]:
        """The sizes of a module's parameters by id: its own, and what its nodes use."""
        calls = {call for box in part.calls for call in self.runs.get(box, [box])}
        every = [p for call in calls for p in self.calls.parameters_of(call)]
        nodes = (self.skeleton.nodes[i] for i in part.leaves)
        every += [node.variable for node in nodes if hasattr(node, "variable")]  # else a constant
        return {id(p): math.prod(p.shape) for p in every}

    def kept(self, nodes: Iterable[int]) -> int:
        """The bytes that nodes keep alive, without parameters."""
        probe = self.describer.probe
        held: dict[Any, int] = {}
        for i in nodes:
            for one in probe.kept(self.skeleton.nodes[i])[0]:
                if not probe.is_parameter(one):
                    held[probe.identity(one)] = probe.nbytes(one)
        return sum(held.values())

    def inputs(self, part: ModulePart) -> int:
        """The bytes of the results of others that a module's nodes use."""
        own = {*part.nodes, *part.leaves}
        used = {edge for i in part.nodes for edge in self.skeleton.edges[i] if edge is not None}
        found = 0
        for i, port in used:
            outputs = () if i in own else self.describer.probe.outputs(self.skeleton.nodes[i])
            shape, dtype = outputs[port][:2] if port < len(outputs) else (None, None)
            if shape is not None:
                bits = re.search(r"\d+", dtype or "")
                found += math.prod(shape) * (1 if bits is None else int(bits[0]) // 8)
        return found

    @cached_property
    def _seconds(self) -> dict[str, list[float]]:
        return self.calls.totals()

    def spent(self, part: ModulePart) -> tuple[float, float]:
        """The seconds of a module in the whole run, forward and backward."""
        paths = {self.calls.path(c) for box in part.calls for c in self.runs.get(box, [box])}
        found = [self._seconds.get(path, (0.0, 0.0)) for path in paths]
        return sum(one[0] for one in found), sum(one[1] for one in found)

    def reached(self, part: ModulePart) -> Any:
        """The gradient that reaches a module: that of its node nearest to the result."""
        grads = self.describer.grads or {}
        nodes = self.skeleton.nodes
        return next((g for i in sorted(part.nodes) if (g := grads.get(nodes[i])) is not None), None)

    def leaf_norm(self, part: ModulePart) -> float | None:
        """The norm of the gradients of a module's parameters together."""
        grads = self.describer.grads or {}
        found = [grads.get(self.skeleton.nodes[i]) for i in part.leaves]
        norms = [value_text.stats_of(g).norm for g in found if g is not None]
        return math.hypot(*norms) if norms else None


def _is_input(node: Any) -> bool:
    """Tell whether nothing leads to a node: a leaf, or an operand without a gradient."""
    return type(node) is Constant or hasattr(node, "variable")


def names_of(text: str | None) -> list[str]:
    """The names in a text, where commas separate them."""
    return [name for part in (text or "").split(",") if (name := part.strip())]


def _count(chains: Mapping[int, list[int]], closed: Mapping[int, int]) -> int:
    """How many boxes are drawn: closed ones, and nodes of open modules."""
    return len(set(closed.values())) + len(chains) - len(closed)


def _closed(chains: Mapping[int, list[int]], opens: set[int]) -> dict[int, int]:
    """Node -> the outermost of its boxes that is not open."""
    found = ((i, next((b for b in chain if b not in opens), None)) for i, chain in chains.items())
    return {i: box for i, box in found if box is not None}

"""Parameters that the loss does not reach, and those that no optimizer steps: which, where and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gradcli.graphs import value_text
from gradcli.graphs.findings import Finding, some
from gradcli.graphs.gradient_flow import is_parameter
from gradcli.graphs.labels import plural
from gradcli.graphs.of_torch.cut_paths import cuts_of
from gradcli.graphs.of_torch.torch_facts import Cut, Facts, Where
from gradcli.graphs.of_torch.torch_tensors import is_torch_tensor, memory_of, node_of
from gradcli.graphs.of_torch.training_facts import Optimizer
from gradcli.graphs.probes import Place
from gradcli.graphs.traversal import class_name

CUTS = {
    "no_grad": ("runs under no_grad", "take it out of torch.no_grad(): nothing inside is recorded"),
    "detach": ("detach() ends the graph", "leave out detach() where the gradient is to pass"),
    "data": (".data ends the graph", "use the tensor itself, without .data"),
    "tensor": ("torch.tensor(…) copies numbers", "torch.stack or torch.cat of the tensors themselves"),
    "numpy": ("NumPy records no graph", "compute it with PyTorch's functions"),
    "item": ("item() makes a number", "compute with the tensor itself; item() is for printing"),
    "tolist": ("tolist() makes numbers", "compute with the tensor itself"),
}  # fmt: skip
WHOLE = "whole numbers have no gradient: compute in floating point (for argmax: softmax, or gumbel_softmax)"
TRUTH = "a comparison has no gradient: compute with what is compared (a sigmoid of the difference, relu)"
COMPARISONS = frozenset("gt ge lt le eq ne isclose logical_and logical_or logical_not".split())
SIGNS = {
    "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
}  # fmt: skip
NOT_USED = "no operation that leads to the loss uses it"
USE_THEM = "compute this loss from them; or step() before zero_grad(), if the other loss is meant"
UNNAMED = "unnamed"  # an optimizer's, that neither a model nor a variable has
NO_GRAPH = "does not require grad and does not"
NO_TENSOR = "object has no attribute 'backward'"
CASTS = frozenset(
    ("ToCopy", "Mul", "Div", "Clone", "Alias", "View", "Add", "Sub", "T", "Transpose")
)


@dataclass(slots=True)
class Known:
    """The leaves that a program has: their names by id, and which of them are meant to be trained."""

    names: dict[int, str]
    tensors: dict[int, Any]
    meant: set[int]
    variables: set[int]  # of these, the program's own variables


def known_leaves(graph: Any, facts: Facts) -> Known:
    """Parameters of models that are trained, those of optimizers, and variables that require grad."""
    found = Known({}, {}, set(), set())
    every = facts.training.optimizers
    # Where others step, an optimizer that never does is no sign: copies of networks have one too.
    used = [one for one in every if one.steps] or every
    held = {key: p for one in used for key, p in one.parameters.items()}

    def add(name: str, tensor: Any) -> None:
        found.names.setdefault(id(tensor), name)
        found.tensors.setdefault(id(tensor), tensor)

    for number, root in enumerate(() if graph.calls is None else graph.calls.roots):
        named = {name: p for name, p in root.named_parameters() if p.requires_grad and p.is_leaf}
        before = f"{graph.calls.prefix(number)}." if graph.calls.prefix(number) else ""
        for name, p in named.items():
            add(f"{before}{name}", p)
        ids = set(map(id, named.values()))
        if not (held or facts.trained) or ids & (facts.trained | held.keys()):
            found.meant |= ids
    for name, tensor in (graph.kept_names or {}).items():
        if is_torch_tensor(tensor) and tensor.requires_grad and node_of(tensor) is None:
            add(name, tensor)
            found.variables.add(id(tensor))
    for p in held.values():
        if p.requires_grad and p.is_leaf:
            add(UNNAMED, p)
            found.meant.add(id(p))
    return found


def cut_off(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Parameters without a gradient, each with the line that cuts it off."""
    if facts is None:
        return
    if error is not None and not facts.step and not _is_of_cut(error):
        return  # it ended before there was a loss
    if error is not None and NO_TENSOR in error and (found := _number(facts)) is not None:
        yield found
        return
    known = known_leaves(graph, facts)
    told: set[int] = set()
    for one in facts.training.optimizers:
        found = _for_nothing(one, known, facts)
        if found is not None and not told & one.parameters.keys():
            told |= one.parameters.keys()
            yield found
    if facts.partial and error is None:
        return  # what it does not reach, another loss may
    for (kind, place), keys in _grouped(graph, facts, error, known).items():
        if not told.issuperset(keys):
            yield _without(kind, place, [k for k in keys if k not in told], known, facts)


def _for_nothing(one: Optimizer, known: Known, facts: Facts) -> Finding | None:
    """An optimizer all of whose steps found no gradient: what ran backward for them reaches none."""
    if not one.steps or one.unreached < one.steps:
        return None
    keys = [key for key, p in one.parameters.items() if p.requires_grad]
    cuts = [cut for cut in _ordered(one.lost) if not cut.leaves.isdisjoint(keys)]
    others = facts.trained.intersection(keys)
    if not cuts and not others:
        return None  # another model's, or nothing uses them: the parameters say it
    every = "its one step" if one.steps == 1 else f"each of its {one.steps} steps"
    names = some([known.names.get(key, UNNAMED) for key in keys])
    text = f"{one.called} found no gradient in {every} "
    text += f"({plural(len(keys), 'parameter')}: {names}): "
    loss = Place.at(*one.lost_at)
    how, advice = "the loss of these steps uses none of them", USE_THEM
    if cuts:
        how, advice = _ending(cuts[0].kind)
        loss = max(
            (cut for cut in cuts if cut.kind == cuts[0].kind), key=lambda cut: cut.order
        ).place
    text += how
    if others:
        text += "; what another loss gave them was zeroed before"
    return Finding("no gradient", text, loss, advice)


def _ordered(cuts: Iterable[Cut]) -> list[Cut]:
    """The cuts in the order of the program; last no_grad, where nothing is meant to be recorded."""
    return sorted(cuts, key=lambda cut: (cut.kind == "no_grad", cut.order))


def _behind(key: int, graph: Any, facts: Facts) -> Cut | None:
    """The cut that keeps a leaf from having a gradient: one that leads to this graph, if there is one.

    Else one that leads to what its optimizer steps by, or any.
    """
    losses = [cuts_of(graph.skeleton.nodes)]
    losses += [one.lost for one in facts.training.optimizers if key in one.parameters]
    for cuts in (*losses, facts.cuts.values()):
        found = next((cut for cut in _ordered(cuts) if key in cut.leaves), None)
        if found is not None:
            return found
    return None


def _grouped(
    graph: Any, facts: Facts, error: str | None, known: Known
) -> dict[tuple[str, Place | None], list[int]]:
    """What has no gradient, by the kind and the line that cuts it off ("": nothing uses it)."""
    leaves = {id(n.variable) for n in graph.skeleton.nodes if hasattr(n, "variable")}
    grouped: dict[tuple[str, Place | None], list[int]] = {}
    for key in known.names:
        if key in leaves | facts.trained:
            continue
        cut = _behind(key, graph, facts)
        if cut is None and key in known.meant and known.names[key] != UNNAMED:
            born = facts.born.get(key) or facts.training.made.get(key, ((None, 0), 0))[0]
            grouped.setdefault(("", Place.at(*born)), []).append(key)
        elif cut is not None and (key in known.meant or _is_lost(key, known, facts, error)):
            grouped.setdefault((cut.kind, cut.place), []).append(key)
    return grouped


def reasons(graph: Any) -> Iterator[tuple[str, Any, str]]:
    """(name, parameter, why it has no gradient, with the line) of those that the graph does not have."""
    facts = graph.facts
    if facts is None:
        return
    leaves = {id(n.variable) for n in graph.skeleton.nodes if hasattr(n, "variable")}
    known = known_leaves(graph, facts)
    grouped = {} if facts.partial else _grouped(graph, facts, graph.error, known)
    told = {key for keys in grouped.values() for key in keys}
    for cut in _ordered(cuts_of(graph.skeleton.nodes)):  # of this loss, whatever others reach
        keys = [k for k in known.names if k in cut.leaves & known.meant and k not in leaves | told]
        grouped.setdefault((cut.kind, cut.place), []).extend(keys)
        told.update(keys)
    for (kind, place), keys in grouped.items():
        how = _ending(kind)[0] if kind else "no operation uses it"
        for key in keys:
            yield known.names[key], known.tensors[key], f"{how}{_at(place)}"
    for number, root in enumerate(_roots(graph)):
        before = f"{graph.calls.prefix(number)}." if graph.calls.prefix(number) else ""
        for name, p in root.named_parameters():
            if not p.requires_grad and id(p) not in leaves:
                place = Place.at(*facts.training.slips.frozen.get(id(p), (None, 0)))
                yield f"{before}{name}", p, f"requires_grad is False{_at(place)}"


def unstepped(graph: Any) -> set[int]:
    """The ids of parameters in a graph that no optimizer steps, though others are stepped."""
    facts = graph.facts
    if facts is None or not any(one.steps for one in facts.training.optimizers):
        return set()
    held = _held(facts)
    leaves = [n.variable for n in graph.skeleton.nodes if hasattr(n, "variable")]
    return {
        id(p) for p in leaves if is_parameter(p) and id(p) not in held and not _is_written(p, facts)
    }


def _held(facts: Facts) -> set[int]:
    """The ids of what optimizers have; not of one that is gone and has made no step."""
    every = facts.training.optimizers
    alive = [one for one in every if one.steps or one.ref() is not None]
    return {key for one in alive for key in one.parameters} | facts.optimized


def _at(place: Place | None) -> str:
    return "" if place is None else f"  {place}"


def _is_of_cut(error: str) -> bool:
    return NO_GRAPH in error or NO_TENSOR in error or "Trying to backward" in error


def _is_lost(key: int, known: Known, facts: Facts, error: str | None) -> bool:
    """Tell whether a variable that was cut off had nothing else to require grad for."""
    if error is not None and NO_GRAPH in error:
        return True
    return (
        key in known.variables and known.tensors[key].grad is None and not facts.training.optimizers
    )


def _number(facts: Facts) -> Finding | None:
    """The loss is a number, for item() has made one of it."""
    cuts = [cut for cut in facts.cuts.values() if cut.kind in ("item", "tolist", "__float__")]
    if not cuts:
        return None
    text = "the loss is a number and no tensor: item() has no backward()"
    return Finding(
        "no gradient", text, cuts[-1].place, "loss.backward() first; item() for printing"
    )


def _without(
    kind: str, place: Place | None, keys: list[int], known: Known, facts: Facts
) -> Finding:
    names = [known.names[key] for key in keys]
    how, advice = _ending(kind)
    optional = False
    if not kind:
        optional = any(
            facts.born.get(key) == (place.file, place.line)
            for key in facts.trained
            if place is not None
        )
    what = "parameter" if all(is_parameter(known.tensors[key]) for key in keys) else "leaf"
    count = plural(len(names), what) if what == "parameter" else _leaves(len(names))
    text = f"{count} without a gradient ({some(names)}): {how}"
    if optional:  # a part of a library's module whose other parts are trained
        return Finding(
            "no gradient", text, place, "a part of it that this loss does not need", False
        )
    return Finding("no gradient", text, place, advice)


def _ending(kind: str) -> tuple[str, str]:
    """(how the graph is ended by what is of a kind, what to do)."""
    if not kind:
        return (
            NOT_USED,
            "call it in forward and let the loss depend on it, or take it out of the model",
        )
    if kind in CUTS:
        return CUTS[kind]
    name = kind.removeprefix("whole numbers of ").strip("_")
    how = f"{SIGNS[name]} ends the graph" if name in SIGNS else f"{name}() ends the graph"
    return how, TRUTH if name in COMPARISONS else WHOLE


def _leaves(count: int) -> str:
    return "1 leaf" if count == 1 else f"{count} leaves"


def frozen(graph: Any, facts: Facts) -> Iterator[Finding]:
    """The parameters of models that were frozen, where a loss has found no other."""
    groups: dict[Where, list[str]] = {}
    every = {id(p): (name, p) for root in _roots(graph) for name, p in root.named_parameters()}
    for key, (name, p) in every.items():
        if p.requires_grad:
            return
        groups.setdefault(facts.training.slips.frozen.get(key, (None, 0)), []).append(name)
    for where, names in groups.items():
        text = f"{plural(len(names), 'parameter')} without a gradient ({some(names)}): requires_grad is False"
        advice = (
            "leave requires_grad of what is to be trained as it is, or True: p.requires_grad_()"
        )
        yield Finding("no gradient", text, Place.at(*where), advice)


# -- leaves that are not what the program holds ---------------------------------------------------
def no_leaf(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """A variable that was meant to be a leaf, and is the result of a cast or a product of one."""
    if facts is None:
        return
    for one in facts.training.unread:
        name = one.name or "a tensor"
        read = Place.at(*one.where)
        yield _no_leaf(name, f"its .grad is None where {read} reads it", one.made or read)
    if facts.training.unread:
        return
    known = known_leaves(graph, facts)
    made = {node_of(t): name for name, t in (graph.kept_names or {}).items() if is_torch_tensor(t)}
    used: dict[int, list[Any]] = {}
    for i, node in enumerate(graph.skeleton.nodes):
        for edge in graph.skeleton.edges[i]:
            if edge is not None and hasattr(graph.skeleton.nodes[edge[0]], "variable"):
                used.setdefault(edge[0], []).append(node)
    for i, users in used.items():
        leaf = graph.skeleton.nodes[i].variable
        if is_parameter(leaf) or id(leaf) in known.names or len(users) != 1:
            continue
        stem = class_name(users[0]).partition("Backward")[0]
        if stem in CASTS and users[0] in made and not _is_held(leaf, graph):
            size = value_text.stats_of((graph.describer.grads or {}).get(graph.skeleton.nodes[i]))
            norm = value_text.number(size.norm, 3)
            told = f"its .grad stays None; |grad| {norm} goes to a leaf without a name"
            yield _no_leaf(made[users[0]], told, graph.probe.place(users[0]))


def _no_leaf(name: str, told: str, place: Place | None) -> Finding:
    text = f"{name} is no leaf, but the result of an operation: {told}"
    advice = f"make it with its dtype and factor first, then {name}.requires_grad_(); or {name}.retain_grad()"
    return Finding("no leaf", text, place, advice)


def _is_held(leaf: Any, graph: Any) -> bool:
    """Tell whether a list or the like among the program's variables holds a leaf."""
    import gc

    skipped = {id(graph.skeleton.nodes), id(leaf)}
    return any(
        isinstance(one, list | tuple | dict | set) and id(one) not in skipped and "leaf" not in one
        for one in gc.get_referrers(leaf)
        if isinstance(one, list | tuple | set)
    )


# -- optimizers -----------------------------------------------------------------------------------
def not_optimized(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Parameters that have a gradient, and that no optimizer steps though others are stepped."""
    if facts is None:
        return
    training = facts.training
    held = _held(facts)
    steps = max((one.steps for one in training.optimizers), default=0)
    registered = {id(p) for root in _roots(graph) for p in root.parameters()}
    groups: dict[tuple[Place | None, str], list[int]] = {}
    for i, node in enumerate(graph.skeleton.nodes):
        leaf = getattr(node, "variable", None)
        if leaf is None or not is_parameter(leaf) or id(leaf) in held or _is_written(leaf, facts):
            continue
        where, order = training.made.get(id(leaf), ((None, 0), 0))
        where = facts.born.get(id(leaf), where)
        attribute = None if id(leaf) in registered else _attribute(graph, i)
        if attribute is None and (error is not None or not (facts.optimized or steps)):
            continue  # or its step was still to come
        late = bool(training.optimizers) and order > min(one.order for one in training.optimizers)
        why = f"attribute {attribute}" if attribute else "late" if late else ""
        if id(leaf) not in registered:
            holder = _holder(graph, leaf)
            why = f"list {holder[0]}" if holder else why or "alone"
        thawed = training.slips.thawed.get(id(leaf))
        if thawed is not None and not why:
            where, why = thawed, "thawed"
        groups.setdefault((Place.at(*where), why), []).append(i)
    for (place, why), ids in groups.items():
        yield _unstepped(graph, facts, place, why, ids, steps)


def _unstepped(
    graph: Any, facts: Facts, place: Place | None, why: str, ids: list[int], steps: int
) -> Finding:
    names = [graph.describer.label(i) or "unnamed" for i in ids]
    grads = graph.describer.grads or {}
    came = [grads.get(graph.skeleton.nodes[i]) for i in ids]
    norms = [value_text.stats_of(g).norm for g in came if g is not None]
    measured = f", |grad| {value_text.number(max(norms), 3)}" if norms else ""
    if steps:
        measured += f", 0 of {plural(steps, 'step')} changed it"
    if why.startswith("list "):
        found = (_holder(graph, graph.skeleton.nodes[i].variable) for i in ids)
        names = [one[1] for one in found if one]
        how = f"{why.removeprefix('list ')} is a plain list, whose modules are registered nowhere"
        advice = "nn.ModuleList(…), nn.ParameterList(…) or nn.ModuleDict(…) instead of the list"
    elif why.startswith("attribute "):
        names = [why.removeprefix("attribute ")]
        how = "registered nowhere, for the module holds the result of an operation on it"
        advice = (
            "keep the Parameter itself, self.w = nn.Parameter(…), and compute with it in forward"
        )
    elif why == "late":
        how = "made after the optimizer"
        lost = _left_behind(graph, facts)
        how += (
            f", whose {plural(lost, 'parameter')} of before have no gradient any more"
            if lost
            else ""
        )
        advice = (
            "make the optimizer after the last change of the model, or optimizer.add_param_group"
        )
    elif why == "thawed":
        how = "its requires_grad was switched on after the optimizer had been made without it"
        advice = "optimizer.add_param_group({'params': […]}) where it is switched on"
    elif why == "alone":
        how = "in no module"
        advice = "give it to the optimizer too: [*model.parameters(), it]"
    else:
        how = "not given to it"
        advice = "register the module (nn.ModuleList, not a list), and give its parameters to the optimizer"
    text = (
        f"{plural(len(ids), 'parameter')} that no optimizer steps ({some(names)}{measured}): {how}"
    )
    return Finding("not optimized", text, place, advice)


def _roots(graph: Any) -> Iterable[Any]:
    return () if graph.calls is None else graph.calls.roots


def _is_written(leaf: Any, facts: Facts) -> bool:
    """Tell whether the program steps it by hand."""
    return memory_of(leaf) in facts.by_hand


def _attribute(graph: Any, leaf: int) -> str | None:
    """The module's attribute that is the result of an operation on a leaf alone."""
    users = {
        node
        for i, node in enumerate(graph.skeleton.nodes)
        if any(edge is not None and edge[0] == leaf for edge in graph.skeleton.edges[i])
    }
    for number, root in enumerate(_roots(graph)):
        for path, part in root.named_modules():
            for name, value in vars(part).items():
                if is_torch_tensor(value) and node_of(value) in users:
                    whole = (graph.calls.prefix(number), path, name)
                    return ".".join(piece for piece in whole if piece)
    return None


def _holder(graph: Any, leaf: Any) -> tuple[str, str] | None:
    """The list (or the like) of a module that holds a parameter, and the path of that."""
    for number, root in enumerate(_roots(graph)):
        for path, part in root.named_modules():
            for name, value in vars(part).items():
                if name[:1] == "_" or not isinstance(value, list | tuple | dict):
                    continue
                above = ".".join(
                    piece for piece in (graph.calls.prefix(number), path, name) if piece
                )
                items = value.items() if isinstance(value, dict) else enumerate(value)
                for key, one in islice(items, 1000):
                    for below, parameter in _parameters_of(one):
                        if parameter is leaf:
                            return above, f"{above}.{key}{below and '.'}{below}"
    return None


def _parameters_of(one: Any) -> Iterable[tuple[str, Any]]:
    if is_torch_tensor(one):
        return [("", one)]
    named = getattr(one, "named_parameters", None)
    return list(named()) if callable(named) else ()


def _left_behind(graph: Any, facts: Facts) -> int:
    """How many parameters of optimizers the graph does not have."""
    leaves = {id(n.variable) for n in graph.skeleton.nodes if hasattr(n, "variable")}
    return sum(key not in leaves for one in facts.training.optimizers for key in one.parameters)


def cut_of(facts: Facts, kind: str) -> Cut | None:
    """The last line that cut something off in this way."""
    return next((cut for cut in reversed([*facts.cuts.values()]) if cut.kind == kind), None)

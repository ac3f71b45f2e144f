"""What a command says of points without a derivative, and what other systems have there (--like)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage

if TYPE_CHECKING:
    from gradcli.commands.output import Style
    from gradcli.commands.request import Request
    from gradcli.commands.request_evaluation import Evaluation, Look
    from gradcli.language.program import Program
    from gradcli.transforms.kinks import Found, Side, Watched
    from gradcli.transforms.other_systems import Like
    from gradcli.transforms.recorded_answers import System

SOME = 3  # notes that are written; of more, how many there are
FEW = 3  # numbers that are written out
PORT = "jax"  # whose answer a note has besides PyTorch's
NEWER = "torch-2.14"  # which takes another slope at some places than the reference


class Note:
    """One thing to say: a line of text, and the same as an object for --json."""

    __slots__ = ("json", "text")

    def __init__(self, text: str, json: dict[str, Any]) -> None:
        self.text, self.json = text, json

    @property
    def is_limit(self) -> bool:
        """Whether it says no more than what a gradient goes to."""
        return self.json["kind"] == "limit" and not self.json["wrt"]


class Kinks:
    """What there is to say of one evaluation, and what another system has for it.

    seed: the cotangent of --seed. rows, order: of a Jacobian, of higher derivatives.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        look: Look,
        seed: Any = None,
        order: int = 1,
        rows: bool = False,
    ) -> None:
        self.evaluation, self.request = evaluation, evaluation.request
        self.look, self.seed, self.order, self.rows = look, seed, order, rows
        self.notes: list[Note] = []
        self.watched = _watched_run(evaluation, seed, order, rows or order > 1)
        if order > 1:
            lower = _watched_run(evaluation, rows=True) if look.met else None
            self.notes = notes_of_order(self.watched, lower, self.request.source, order)
        elif self.watched is not None:
            self.notes = notes(self.watched, self.request.source)
            if not rows:
                wrong = evaluation.is_wrong
                self.notes += explanations(self.watched, self.request, self.notes, wrong)

    def to_json(self) -> dict[str, Any]:
        """The key `kinks`, if there is anything to say."""
        return {"kinks": [note.json for note in self.notes]} if self.notes else {}

    def ask(self, like: Others) -> None:
        """Have another system's gradients found."""
        arrays = None if self.seed is not None else self.evaluation.arrays()
        leaves = list(self.evaluation.leaves)
        like.ask(self.request.program, arrays, leaves, self.watched, self.order)

    def of_nodes(self, nodes: Iterable[Any]) -> dict[Any, str]:
        """ "kink" or "jump", by the nodes of another run of the program that are at one."""
        kinds = {
            tuple(note.json["span"]): note.json["kind"]
            for note in self.notes
            if note.json["span"] and note.json["kind"] in ("kink", "jump")
        }
        found = {}
        for node in nodes:
            primitive = getattr(node, "_primitive", None)
            if getattr(primitive, "switch", None) is not None and node.span in kinds:
                found[node] = kinds[node.span]
        return found

    def tell(self) -> None:
        """Write the notes, but for limits, which belong to the note that a gradient is not finite."""
        _tell([note for note in self.notes if not note.is_limit])

    @property
    def limits(self) -> str:
        """The limits of gradients that are not finite."""
        return "".join(f": {note.text}" for note in self.notes if note.is_limit)


# -- notes ----------------------------------------------------------------------------------------
Place = tuple[str, tuple[int, int] | None]


def explanations(
    watched: Watched, request: Request, before: Sequence[Note], wrong: bool
) -> list[Note]:
    """What is to be said of gradients that are not finite, or that a rule misses."""
    from gradcli.transforms.kinks import SMALL

    if watched.work > SMALL and wrong:
        return []
    return explanations_of(watched, request.program, request.loaded, before)


def explanations_of(
    watched: Watched, program: Program, names: Mapping[str, Any], before: Sequence[Note]
) -> list[Note]:
    """The same, whatever it costs. names: what else the program may read. before: what has been said."""
    from gradcli.transforms.limits import explained

    kinked = {name for note in before for name in note.json["wrt"]}
    source = program.source
    found = []
    for one in explained(watched, program, names, kinked):
        wrt = {n: {"grad": output.to_json(g)} for n, g in one.grads.items()}
        json = {
            "kind": "limit",
            "operation": None,
            "span": None if one.span is None else list(one.span),
            "source": None if one.span is None else source[slice(*one.span)],
            "wrt": wrt,
            "text": one.text,
        }
        found.append(Note(one.text, json))
    return found


def _watched_run(
    evaluation: Evaluation, seed: Any = None, order: int = 1, rows: bool = False
) -> Watched | None:
    """The run as it is watched for its gradient, or for one of an order; None where it does not run again."""
    from gradcli.transforms.kinks import ERRORS, Watched, derivative_of
    from gradcli.transforms.verdicts import function_of

    arrays, leaves = evaluation.arrays(), list(evaluation.leaves)
    if arrays is None or not set(leaves) <= set(arrays):
        return None
    evaluation.rewind()
    function = function_of(evaluation.request.program, evaluation.request.loaded)
    if order > 1:
        function = derivative_of(function, leaves)
    try:
        return Watched(function, arrays, leaves, None if seed is None else seed.array, rows)
    except ERRORS:
        return None


def better_form(evaluation: Evaluation) -> str:
    """What a gradient that is not finite becomes in another form, and that form; "" where none is known."""
    watched = _watched_run(evaluation)
    if watched is None:
        return ""
    told = explanations(watched, evaluation.request, (), evaluation.is_wrong)
    return next((note.text for note in told if note.json["span"] is not None), "")


def notes_of_order(
    watched: Watched | None, lower: Watched | None, source: str, order: int
) -> list[Note]:
    """What is to be said of a derivative of an order; lower: the run as it is watched for the gradient.

    Where the function has a kink there is no derivative of any order: that is said in the words of the first.
    """
    found = [] if lower is None else notes(lower, source)
    found = [note for note in found if note.json["kind"] in ("kink", "jump")]
    for note in found:
        note.text += f"; there is no derivative of order {order}"
        note.json["text"] = note.text
    said = {name for note in found for name in note.json["wrt"]}
    rest = [] if watched is None else notes(watched, source, order)
    return [*found, *(note for note in rest if not note.json["wrt"].keys() <= said)]


def tell_at(
    program: Program,
    names: Mapping[str, Any],
    arrays: Mapping[str, Any],
    wrt: Sequence[str],
    order: int,
) -> None:
    """Write the notes of a program's derivatives at a point, where a run of it has met a kink."""
    from gradcli.transforms.kinks import ERRORS, Watched, derivative_of
    from gradcli.transforms.verdicts import function_of

    function = function_of(program, names)
    try:
        lower = Watched(function, arrays, wrt, rows=True)
        own = Watched(derivative_of(function, wrt), arrays, wrt, rows=True) if order == 2 else None
    except ERRORS:
        return
    if order == 1:
        _tell(notes(lower, program.source))
    else:
        _tell(notes_of_order(own, lower, program.source, order))


def _tell(told: Sequence[Note]) -> None:
    for note in told[:SOME]:
        output.note(note.text)
    if len(told) > SOME:
        output.note(f"and {len(told) - SOME} more such places: --json has them all")


def notes(watched: Watched, source: str, order: int = 1) -> list[Note]:
    """What is to be said of a run, a note a place in the source. order: of the derivative."""
    found = watched.findings()
    if not found:
        return []
    from gradcli.transforms.other_systems import has_rules_of_its_own, like
    from gradcli.transforms.recorded_answers import system

    port, newer = system(PORT), system(NEWER)
    assert port is not None and newer is not None
    single = not watched.rows and order == 1
    theirs = like(watched, port, source) if single else None
    later = None
    if single and has_rules_of_its_own(watched, newer):
        later = like(watched, newer, source)
    by_place: dict[tuple[Place | None, str], dict[str, list[Side]]] = {}
    for one in found:
        for side in one.sides:
            crossing = side.crossing
            place = None if crossing is None else (crossing.name, crossing.span)
            kind = "smooth" if side.exists else "jump" if side.jump else "kink"
            if order > 1 and kind == "smooth" and not math.isfinite(side.taken):
                continue  # said where power series look at what is not finite
            by_place.setdefault((place, kind), {}).setdefault(one.name, []).append(side)
    sizes = {one.name: one for one in found}
    return [
        _note(place, kind, sides, sizes, source, (later, theirs), order)
        for (place, kind), sides in by_place.items()
    ]


def _note(
    place: Place | None,
    kind: str,
    by: Mapping[str, list[Side]],
    found: Mapping[str, Found],
    source: str,
    theirs: tuple[Like | None, Like | None],
    order: int,
) -> Note:
    where = " of the gradient" if order > 1 else place_of(place, source)
    counts = {}
    for name, sides in by.items():
        whole = found[name]
        counts[name] = whole.count if len(sides) == len(whole.sides) else len(sides)
    *first, last = [
        _subject(name, sides, counts[name], found[name].size) for name, sides in by.items()
    ]
    subjects = f"{', '.join(first)} and {last}" if first else last
    many = len(by) > 1 or any(c > 1 for c in counts.values())
    every = [side for sides in by.values() for side in sides]
    taken = _takes(every, by, theirs)
    if kind == "smooth":
        verb = "have derivatives" if many else "has a derivative"
        slopes = _spread([s.right for s in every])
        though = f", though {where.removeprefix(' of ')} has none" if where else ""
        text = f"{subjects} {verb} here, {slopes}{though}; {taken}"
    elif kind == "jump":
        text = f"{subjects} {'are' if many else 'is'} at a jump{where}: {_slopes(every)}; {taken}"
    else:
        verb = "are" if many else "is"
        text = f"{subjects} {verb} at a kink{where}: {_slopes(every)}; {taken}"
    made = {
        "kind": kind,
        "operation": None if place is None else place[0],
        "span": None if place is None or place[1] is None else list(place[1]),
        "source": None if place is None or place[1] is None else source[slice(*place[1])],
        "wrt": {
            name: {
                "count": counts[name],
                "size": found[name].size,
                "elements": [
                    {
                        "index": list(s.index),
                        "left": output.to_json(s.left),
                        "right": output.to_json(s.right),
                        "grad": output.to_json(s.taken),
                    }
                    for s in sides
                ],
            }
            for name, sides in by.items()
        },
        "text": text,
    }
    return Note(text, made)


def _slopes(every: Sequence[Side]) -> str:
    left, right = (_spread([getattr(s, at) for s in every]) for at in ("left", "right"))
    if left == right and every[0].jump:
        return f"slope {left} to both sides"
    if all(len(text.split()) == 1 for text in (left, right)):
        return f"slopes {left} and {right}"
    return f"slopes {left} to the left, {right} to the right"


def place_of(place: Place | None, source: str) -> str:
    """ " of NAME in "PIECE"": the operation, and where the source has it."""
    if place is None:
        return ""
    name, span = place
    if span is None:
        return f" of {name}"
    piece = source[slice(*span)]
    head = piece.partition("(")[0]
    if piece.endswith(")") and head.replace(".", "_").isidentifier():
        name = head.rpartition(".")[2]
    return f' of {name} in "{" ".join(piece.split())}"'


def _subject(name: str, sides: list[Side], count: int, size: int) -> str:
    if count > 1:
        return f"{count} of {size} elements of {name}"
    index = sides[0].index
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def _takes(
    every: list[Side], by: Mapping[str, list[Side]], theirs: tuple[Like | None, Like | None]
) -> str:
    """What PyTorch takes there, and its newer version and JAX where that is something else."""
    later, port = (_others_slopes(every, by, one) for one in theirs)
    text = f"PyTorch takes {_spread([s.taken for s in every])}"
    if all(math.isnan(side.taken) for side in every):
        text = "PyTorch's rules give nan, which is printed"
    if later is not None:
        text = (
            f"PyTorch 2.13 takes {_spread([s.taken for s in every])}, 2.14 takes {_spread(later)}"
        )
    return text if port is None else f"{text} (JAX {_spread(port)})"


def _others_slopes(
    every: list[Side], by: Mapping[str, list[Side]], theirs: Like | None
) -> list[float] | None:
    """The slopes of another system, if they are known and others."""
    import numpy as np

    if theirs is None or not theirs.known:
        return None
    other = [float(theirs.grads[n][s.index]) for n, sides in by.items() for s in sides]
    same = np.allclose(other, [s.taken for s in every], rtol=1e-9, atol=0, equal_nan=True)
    return None if same else other


def _spread(values: Sequence[float]) -> str:
    """One number for all, those of a few elements, or the least and the largest."""
    texts = [f"{v + 0.0:.6g}" for v in values]
    if len(set(texts)) == 1:
        return texts[0]
    if len(texts) <= FEW:
        return " and ".join(texts)
    return f"{min(values):.6g} to {max(values):.6g}"


# -- other systems --------------------------------------------------------------------------------
class Others:
    """What --like asks for: the gradients as another system has them, or as all have them.

    Raises LanguageError for a system that is not known.
    """

    def __init__(self, word: str | None) -> None:
        self.systems: list[System] = []
        self.found: list[Like] = []
        self.all = word is not None and word.strip().lower() == "all"
        if word is None:
            return
        from gradcli.transforms.recorded_answers import system, systems

        one = system(word)
        if one is None and not self.all:
            known = ", ".join(s.id for s in systems())
            raise usage(
                f"--like: no answers of a system {word!r} are recorded",
                hint=f"there are those of {known}; all shows each",
            )
        self.systems = systems() if one is None else [one]

    def __bool__(self) -> bool:
        return bool(self.systems)

    def rules(self) -> AbstractContextManager[None]:
        """Where derivatives are computed: by PyTorch's rules alone, where its numbers are asked for."""
        return nullcontext() if self.all else _rules_of(self.systems[0])

    def ask(
        self,
        program: Program,
        arrays: Mapping[str, Any] | None,
        wanted: Sequence[str],
        watched: Watched | None,
        order: int = 1,
    ) -> None:
        """Find the gradients of a program by the wanted variables.

        arrays: the point, where its recorded answers may be those; None: they are of another cotangent.
        """
        if not self.systems:
            return
        from gradcli.transforms.other_systems import Like, like, recorded, recorded_gradients

        asked = [] if arrays is None else recorded(program, arrays, order)

        def ruled(one: System) -> Like:
            assert watched is not None
            with _rules_of(one):
                return like(watched, one, program.source)

        for one in self.systems:
            if any(one.id in q.answers for q in asked):
                assert arrays is not None
                made = recorded_gradients(asked, one, {n: arrays[n] for n in wanted})
                if made.known and any(g is None for g in made.grads.values()) and watched:
                    rest = ruled(one).grads
                    made.grads = {n: rest[n] if g is None else g for n, g in made.grads.items()}
            elif watched is None or order > 1:
                made = Like(one, dict.fromkeys(wanted))
            else:
                made = ruled(one)
            self.found.append(made)

    def beside(self, grads: Mapping[str, Any], style: Style) -> dict[str | None, str]:
        """What stands behind each of our gradients: the other system's, if that is another."""
        if self.all or not self.found:
            return {}
        (found,) = self.found
        title = found.system.title
        made: dict[str | None, str] = {}
        for name, own in grads.items():
            theirs = found.grads.get(name)
            if theirs is None:
                text = f"{title}: {found.reason()}"
            elif _equal(own, theirs):
                text = f"the same in {title}"
            else:
                text = f"{title}: {output.to_text(theirs, style)}"
            made[f"{name}.grad"] = f"   ({text})"
        return made

    def write(
        self, results: Sequence[tuple[str | None, Any]], grads: Mapping[str, Any], style: Style
    ) -> None:
        """The results of a command, with another system's gradients beside ours, or a table of all."""
        output.write_results([*results, *self.plain(style)], style, self.beside(grads, style))
        self.write_table(style)

    def plain(self, style: Style) -> list[tuple[str | None, Any]]:
        """With --plain, a line more for each gradient that is known."""
        if style.form != "plain":
            return []
        return [
            (f"{name}.grad.{one.system.id}", theirs)
            for one in self.found
            for name, theirs in one.grads.items()
            if theirs is not None
        ]

    def write_table(self, style: Style) -> None:
        """All systems, grouped by their answers."""
        if not self.all or style.form != "text":
            return
        groups: dict[str, list[str]] = {}
        reasons: dict[str, list[str]] = {}
        for one in self.found:
            if any(g is None for g in one.grads.values()):
                reasons.setdefault(one.reason(), []).append(one.system.title)
            else:
                parts = [f"{n}.grad = {output.to_text(g, style)}" for n, g in one.grads.items()]
                groups.setdefault(", ".join(parts), []).append(one.system.title)
        rows = [*groups.items(), *reasons.items()]
        room = max(len(key) for key, _ in rows)
        output.write("\n".join(f"{key:<{room}}  {', '.join(names)}" for key, names in rows))

    def to_json(self) -> dict[str, Any]:
        """The key `like`: an object, or with `all` one for each system."""
        if not self.found:
            return {}
        objects = [_object(one) for one in self.found]
        return {"like": objects if self.all else objects[0]}


def _rules_of(one: System) -> AbstractContextManager[None]:
    """Inside, derivatives follow a system's rules. PyTorch's are known; some lose digits that ours keep."""
    if not one.id.startswith("torch"):
        return nullcontext()
    from gradcli.operators.primitives.accurate_slopes import pytorchs

    return pytorchs()


def _equal(own: Any, theirs: Any) -> bool:
    import numpy as np

    mine = own if own is None else getattr(own, "array", own)
    return mine is not None and bool(np.allclose(mine, theirs, rtol=1e-9, atol=0, equal_nan=True))


def _object(found: Like) -> dict[str, Any]:
    """One system's answer; `recorded` is true where this very program was run there."""
    wrt = {n: {"grad": None if g is None else output.to_json(g)} for n, g in found.grads.items()}
    made: dict[str, Any] = {"system": found.system.label, "wrt": wrt, "recorded": found.recorded}
    unknown = any(g is None for g in found.grads.values())
    return made | ({"reason": found.reason()} if unknown else {})

"""Random programs of views and in-place writes: `diff`'s derivative and the plan against the tape.

A program gives names to tensors, to views of them and to views of those, writes through any of them, and
sums up what is left: what a write reaches is what this is about. What a way refuses in words is fine;
other numbers than the tape's are failures, and are cut down as those of `pairs` are.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator

import numpy as np

import gradcli
from gradcli.language import LanguageError
from tests.fuzz import cases
from tests.fuzz.pairs import Case, Shape, failures, told

# Views of a tensor by its dimensions, and some copies that look like views.
VIEWS = {
    0: ("{}.reshape(1)", "{}[None]", "{}.view(1, 1)", "{}[...]", "{}.expand(3)", "{}.detach()"),
    1: (
        *("{}[0]", "{}[-1]", "{}[:2]", "{}[1:]", "{}[::2]", "{}.unsqueeze(0)", "{}[:, None]"),
        *("{}.expand(2, 3)", "{}.view(3, 1)", "{}.narrow(0, 1, 2)", "{}.select(0, 1)", "{}[...]"),
        *("{}.diag_embed()[0]", "{}.flip(0)", "{}*1", "{}.unfold(0, 2, 1)", "{}.detach()"),
    ),
    2: (
        *("{}[0]", "{}[-1]", "{}[:, 1]", "{}[1, 2]", "{}[:, :2]", "{}.T", "{}.transpose(0, 1)"),
        *("{}.view(6)", "{}.reshape(3, 2)", "{}.flatten()", "{}.permute(1, 0)", "{}.diagonal()"),
        *("{}.unbind(0)[1]", "{}.chunk(2, 1)[0]", "{}.split(1)[0]", "{}.view(-1)[1:4]"),
        *("{}[:, ::2]", "{}.squeeze()", "{}.contiguous()", "{}[[0, 1]]", "{}.swapaxes(0, 1)"),
    ),
}
# Writes into a tensor: {0} what is written, {1} an operand that broadcasts to it, {2} a number.
WRITES = [
    *("{0}.mul_({1})", "{0}.add_({1})", "{0}.sub_({1}, alpha=2)", "{0}.div_({1}**2 + 0.7)"),
    *("{0}.copy_({1})", "{0}.zero_()", "{0}.fill_({2})", "{0}.exp_()", "{0}.sin_()", "{0}.tanh_()"),
    *("{0}.neg_()", "{0}.clamp_(-0.5, 0.6)", "{0}.sigmoid_()", "{0}.relu_()", "{0}.square_()"),
    *("{0} *= {1}", "{0} += {1}", "{0} -= {2}", "{0} /= 2", "{0}.pow_(2)", "{0}.lerp_({1}, 0.3)"),
    *("{0}.addcmul_({1}, {1})", "{0}.masked_fill_({0} > 0.2, {2})", "{0}.mul_({0})", "{0}.abs_()"),
    *("{0}[...] = {1}", "{0}[...] *= {1}", "{0}.add_({0})", "{0}.atan_()", "{0}.copy_({1}*{2})"),
]
# Writes at a place of a vector or a matrix.
PLACES = {
    1: ("{0}[0] = {2}", "{0}[1:] *= {2}", "{0}[-1] += {0}[0]", "{0}[{0} > 0.1] = {2}"),
    2: ("{0}[0] = {2}", "{0}[:, 1] *= {2}", "{0}[1, 0] += {0}[0, 1]", "{0}[0] = {0}[1]"),
}
WAYS = ("plan", "text", "--cse", "--format python", "--format numpy", "jvp")
CLOSED = ("sum({})", "sum({}**2)", "({}).mean()", "sum(sin({}))", "{}.flatten()[0]", "{}.prod()")


class Programs:
    """Writes statements, and knows the shapes of the names given so far."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.given: dict[str, Shape] = {"x": (3,), "A": (2, 3), "s": ()}
        self.made: dict[str, Shape] = {}
        self.lines: list[str] = []

    def operand(self, shape: Shape) -> str:
        """A tensor that broadcasts to a shape."""
        fitting = [
            name
            for name, own in {**self.given, **self.made}.items()
            if len(own) <= len(shape)
            and all(a in (1, b) for a, b in zip(own[::-1], shape[::-1], strict=False))
        ]
        name = self.rng.choice(fitting)
        return self.rng.choice((name, name, f"{name}*s", f"cos({name})", f"{name}.detach()"))

    def start(self) -> None:
        """A name for a tensor of its own, whose memory is nobody else's."""
        name, shape = self.rng.choice(list(self.given.items()))
        form = self.rng.choice(("{}.clone()", "{}*2", "sin({})", "{} + s", "zeros_like({})"))
        self.name(form.format(name), shape)

    def name(self, text: str, shape: Shape) -> None:
        name = f"{'abc'[len(shape)]}{len(self.made)}"
        self.lines.append(f"{name} = {text}")
        self.made[name] = shape

    def view(self) -> None:
        """A name for a part of what has a name, where there is such a part."""
        name, shape = self.rng.choice(list(self.made.items()))
        text = self.rng.choice(VIEWS[len(shape)]).format(name)
        alone = Case(text, {name: np.zeros(shape)})
        try:
            found = tuple(alone.run(alone.tensors()).shape)
        except LanguageError:
            return
        if len(found) in VIEWS:
            self.name(text, found)

    def write(self) -> None:
        """A write into what has a name."""
        name, shape = self.rng.choice(list(self.made.items()))
        forms = [*WRITES, *PLACES.get(len(shape), ()) * 4]
        number = self.rng.choice(("0.5", "s", "-1.25", "s*2"))
        text = self.rng.choice(forms)
        if "fill_" in text:
            number = "0.5"
        self.lines.append(text.format(name, self.operand(shape), number))

    def text(self) -> str:
        """The program: a few names, views and writes, and the sum of what is left."""
        self.start()
        for _ in range(self.rng.randint(2, 7)):
            self.rng.choice(
                (self.start, self.view, self.view, self.write, self.write, self.write)
            )()
        kept = self.rng.sample(list(self.made), min(len(self.made), self.rng.randint(1, 3)))
        total = " + ".join(self.rng.choice(CLOSED).format(name) for name in kept)
        return "; ".join([*self.lines, total])


def program(rng: random.Random) -> Case:
    """A random program of views and writes, with values for what it takes."""
    made = Programs(rng)
    source = made.text()
    numbers = np.random.default_rng(rng.getrandbits(32))
    values = {n: np.round(numbers.uniform(-1.3, 1.3, s), 2) for n, s in made.given.items()}
    return Case(source, values)


def depends(case: Case) -> bool:
    """Whether the value has a gradient at all; PyTorch's refusals of a program count as none."""
    try:
        return bool(case.run(case.tensors(track=True)).requires_grad)
    except LanguageError:
        return False


def run(seed: int, seconds: float) -> Iterator[str]:
    """Minimal reproducers of what differs from the tape, one of each program."""
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    found: set[str] = set()
    try:
        for rng in cases(seed, seconds):
            case = program(rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not depends(case):
                    continue
                for pair, message in failures(case, *WAYS).items():
                    yield from told(case, pair, message, found)
    finally:
        gradcli.set_default_dtype(before)

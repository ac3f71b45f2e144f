"""Random programs whose derivative is computed in every way there is; all ways must agree.

Programs are made of the operator table's own samples and of arithmetic, over all shapes: 0-d, broadcast,
of size one and zero, square and not. Each is differentiated by the tape, and everything else is compared
with that: Jacobians times vectors in both modes, forward mode, Hessians, the compiled plan, and what
`diff` prints, in every format and to the third order. A program that fails is made smaller for as long as
it fails in the same way.
"""

from __future__ import annotations

import ast
import copy
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

import gradcli
from gradcli import language
from gradcli.columns.compiler.compiled_function import CompiledProgram
from gradcli.columns.compiler.executor import Executor
from gradcli.commands.diff import CODE
from gradcli.engine.core import modes
from gradcli.engine.registry import table
from gradcli.engine.registry.schema import Parameter
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.ask.matrix_derivatives import way
from gradcli.formulas.ask.proof import proved
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.print.latex_elements import to_latex
from gradcli.formulas.print.sharing import size_of
from gradcli.transforms import traced_matrices
from tests import fuzz
from tests.engine.registry import samples
from tests.fuzz import TooLong, cases, limited, ran_out
from tests.fuzz.composing import STATEMENTS, Maker, Shape, any_shape

# A maker of programs, and what it makes one of: a sample's text, or the number of an entry.
Turn = tuple[Callable[..., "Case"], Any]


@dataclass
class Case:
    """A program, the values of its variables, and those to differentiate by."""

    source: str
    values: dict[str, Any]
    wrt: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.program = language.parse(self.source)
        free = set(self.program.free_variables())
        self.values = {n: np.array(v, order="C") for n, v in self.values.items() if n in free}
        self.wrt = [n for n, v in self.values.items() if v.dtype.kind == "f"]

    def tensors(self, track: bool = False) -> dict[str, Any]:
        return {
            n: gradcli.tensor(v, requires_grad=track and n in self.wrt)
            for n, v in self.values.items()
        }

    def run(self, tensors: dict[str, Any]) -> Any:
        gradcli.manual_seed(7)
        before = modes.local.state
        try:
            return language.run(self.program, tensors).value
        finally:
            modes.restore(before)  # whatever set_grad_enabled has said

    def __str__(self) -> str:
        shown = " ".join(
            f"--{n} '{np.array2string(np.asarray(v), separator=',', precision=17)}'".replace(
                "\n", ""
            )
            for n, v in self.values.items()
        )
        return f"{self.source!r} {shown}"


def composed(rng: random.Random) -> Case:
    """A program of arithmetic and functions over random shapes."""
    maker = Maker(rng)
    shape = any_shape(rng, maker.size)
    text = maker.make(shape, rng.randint(1, 4))
    if rng.random() < 0.3:
        text = f"sum({text})" if rng.random() < 0.5 else f"({text}).mean()"
        shape = ()
    if rng.random() < 0.35:
        word = maker.variable(maker.narrowed(shape))
        text = rng.choice(STATEMENTS).format(text, word)
    return Case(text, maker.values(np.random.default_rng(rng.getrandbits(32))))


RANDOM = (
    *("dropout", "bernoulli", "random", "normal", "uniform", "exponential", "cauchy", "rrelu"),
    *("geometric", "gumbel", "multinomial", "poisson", "rand_like", "randn_like", "float()"),
    *("half()", "float32", "float16", "complex64", "randint", "randperm", "empty"),
)


@cache
def turns() -> list[Turn]:
    """One program after the other that, as few as they are, reach every row that one of us reaches.

    Each is a maker and what it is called with: the sample's text, or a number.
    """
    found = {t: set(r) for t, r in _reached().items()}
    left = set().union(*found.values())
    chosen = []
    while left:
        turn = max(found, key=lambda t: len(found[t] & left))
        left -= found.pop(turn)
        chosen.append(turn)
    random.Random(0).shuffle(chosen)  # neighbours are not alike
    return chosen


def rows_reached(turn: Turn) -> set[str]:
    """The rows with rules that the program of a turn reaches."""
    return _reached()[turn]


@cache
def _reached() -> dict[Turn, set[str]]:
    """The rows with rules that each program reaches, forward and backward, where nothing is changed in it."""
    table.load()
    rows = {r.name for r in table.PRIMITIVES if r.vjps}
    before = REACHED.copy()
    found = {}
    for turn in (
        *((sampled, text) for text in sample_texts()),
        *((other, k) for k in range(len(MORE))),
        *((broadcast, k) for k in range(len(pointwise()))),
    ):
        REACHED.clear()
        for made in _plain(*turn):
            with counting(), np.errstate(all="ignore"), suppress(Exception):
                _differentiated_twice(made)
        found[turn] = rows & set(REACHED)
    REACHED.clear()
    REACHED.update(before)
    return found


def _plain(maker: Any, of: Any) -> Iterator[Case]:
    """The programs of a turn as they stand, one for each of their outputs."""
    if maker is not sampled:
        yield maker(random.Random(of), of)
        return
    source, values, reals, many = _sample(of) or ("", {}, [], False)
    for k, _ in reals:
        yield Case(f"({source})[{k}]" if many else f"({source})*1", values)


@cache
def sample_texts() -> list[str]:
    """The samples of the table that are programs of variables, with the same numbers every time."""
    return [
        t for t in samples.texts() if not any(w in t for w in RANDOM) and _sample(t) is not None
    ]


@cache
def _sample(text: str) -> tuple[str, dict[str, Any], list[tuple[int, Shape]], bool] | None:
    """(program, variables, its real outputs and their shapes, whether they are several) of a sample.

    None for one that is no expression of variables, or gives nothing real.
    """
    try:
        source, tensors = samples.program(text)
    except Exception:
        return None
    values = {n: np.asarray(t.array) for n, t in tensors.items()}
    # Volumes of 5 by 5 by 5 are as good when they are of 3, and Hessians of these take no minute.
    values = {n: v[..., :3, :3, :3] if v.size > 500 else v for n, v in values.items()}
    found = _outputs(source, values)
    if found is None or not any(v.dtype.kind == "f" for v in values.values()):
        return None
    return source, values, *found


def _outputs(source: str, values: dict[str, Any]) -> tuple[list[tuple[int, Shape]], bool] | None:
    """(the real outputs and their shapes, whether there are others); None without any."""
    try:
        outputs = samples.outputs(source, {n: gradcli.tensor(v) for n, v in values.items()})
    except Exception:
        return None
    reals = [
        (k, tuple(o.shape))
        for k, o in enumerate(outputs)
        if o.dtype.is_floating_point or o.is_complex()
    ]
    return (reals, len(outputs) > 1) if reals else None


def sampled(rng: random.Random, text: str) -> Case:
    """A sample of the operator table, its operands and its result put into arithmetic."""
    return arithmetic(rng, *(_sample(text) or ("", {}, [], False)))


def optioned(rng: random.Random) -> Case:
    """A sample with one or two of its options, that are not the default."""
    while True:
        source, own, *_ = _sample(rng.choice(sample_texts())) or ("", {})
        changed = _with_option(rng, source)
        if changed and rng.random() < 0.4:
            changed = _with_option(rng, changed) or changed
        found = _outputs(changed, own) if changed else None
        if found is not None and all(np.prod(s) < 1000 for _, s in found[0]):
            return arithmetic(rng, changed, own, *found)


# What an option of each kind may be.
OPTIONS: dict[str, list[str]] = {
    "Scalar": ["0.3", "1.7", "2", "-0.5"],
    "float": ["0.3", "1.7", "2.0", "1e-3"],
    "int": ["0", "1", "2", "-1"],
    "int[]": ["0", "1", "2", "-1", "(0, 1)", "(2, 1)"],
    "str": ["'tanh'", "'sum'", "'none'", "'reflect'", "'max'", "'U'", "'trunc'", "'same'"],
    "Any": ["'sum'", "'none'", "True", "1.5", "2"],
}

_UNVARIED = "dtype inplace size_average reduce non_blocking dropout_p scale_grad_by_freq".split()


def _with_option(rng: random.Random, source: str) -> str:
    """The call of a function with one more keyword; "" where it has none."""
    call = ast.parse(source, mode="eval").body
    free = options(source)
    if not free or not isinstance(call, ast.Call):
        return ""
    option = rng.choice(free)
    value = str(not option.default) if option.kind == "bool" else rng.choice(OPTIONS[option.kind])
    call.keywords.append(ast.keyword(option.name, ast.parse(value, mode="eval").body))
    return ast.unparse(call)


def options(source: str) -> list[Parameter]:
    """The options of a call that it does not give, of all the signatures of its function."""
    call = ast.parse(source, mode="eval").body
    if not isinstance(call, ast.Call):
        return []
    method = isinstance(call.func, ast.Attribute) and ast.unparse(call.func) not in table.FUNCTIONS
    word = call.func.attr if method else ast.unparse(call.func)  # type: ignore[attr-defined]
    function = table.FUNCTIONS.get(word)
    if function is None or function.parser is None:
        return []
    shown = [s.parameters for s in function.parser.signatures if not s.hidden]
    keywords = {k.arg for k in call.keywords}
    return [
        p
        for parameters in shown
        for p in parameters[len(call.args) + method :]
        if p.optional and p.kind in (*OPTIONS, "bool") and p.name not in (*keywords, *_UNVARIED)
    ]


def arithmetic(
    rng: random.Random, source: str, own: dict[str, Any], reals: Any, many: bool
) -> Case:
    """A program whose operands and whose result are put into arithmetic; see `_sample`."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    chosen, _ = rng.choice(reals)
    text = f"({source})[{chosen}]" if many else f"({source})"
    values = dict(own)
    if rng.random() < 0.4:
        resized(rng, numbers, values)
    if rng.random() < 0.4 and not SINGULAR.search(source):
        special(rng, values)
    outputs = _tensors(source, values)
    if chosen >= len(outputs) or outputs[chosen].numel() > 1000:
        values = dict(own)
        outputs = _tensors(source, values)
    shape = tuple(outputs[chosen].shape)
    if outputs[chosen].is_complex():
        text = f"{text}{rng.choice(['.abs()', '.real', '.imag'])}"
    elif rng.random() < 0.2:
        text, values, shape = fed(rng, text, values, shape)
    others = [
        k for k, _ in reals if k != chosen and k < len(outputs) and outputs[k].is_floating_point()
    ]
    if others and rng.random() < 0.4:
        text = f"({text}*({source})[{rng.choice(others)}].sum())"
    values["w"] = np.round(numbers.uniform(-1, 1, shape), 2)
    values["s"] = np.round(numbers.uniform(0.8, 1.2), 2)
    for name, value in list(values.items()):
        if value.dtype.kind == "f" and name[0] in "xy" and rng.random() < 0.4:
            changed = rng.choice([f"({name}*s)", f"({name}*1)", f"({name} + 0*s)", f"(1*{name})"])
            text = replaced(text, name, changed)
    text = rng.choice(
        [f"sum({text}*w)", f"({text}*w*s)", f"tanh({text})*w", f"mean(w*{text}**2)", text]
    )
    return Case(text, values)


def _tensors(source: str, values: dict[str, Any]) -> list[Any]:
    """The outputs; none where these shapes, or this point, are refused."""
    try:
        return samples.outputs(source, {n: gradcli.tensor(v) for n, v in values.items()})
    except Exception:
        return []


def fed(
    rng: random.Random, text: str, values: dict[str, Any], shape: Shape
) -> tuple[str, dict[str, Any], Shape]:
    """The result as an operand of another sample, where there is one of its shape; else as it was."""
    taking = _operands().get(shape, [])
    if not taking:
        return text, values, shape
    name, sample = rng.choice(taking)
    source, own, reals, many = _sample(sample) or ("", {}, [], False)
    for n in own:
        source = replaced(source, n, f"y{n[1:]}")
    source = replaced(source, f"y{name[1:]}", text)
    taken = {**values, **{f"y{n[1:]}": v for n, v in own.items() if n != name}}
    outputs = _tensors(source, taken)
    chosen, _ = rng.choice(reals)
    if chosen >= len(outputs) or outputs[chosen].dtype != gradcli.float64:
        return text, values, shape
    made = tuple(outputs[chosen].shape)
    return (f"({source})[{chosen}]" if many else f"({source})"), taken, made


@cache
def _operands() -> dict[Shape, list[tuple[str, str]]]:
    """(operand, sample) by the shapes that the samples' operands have."""
    found: dict[Shape, list[tuple[str, str]]] = {}
    for text in sample_texts():
        _, own, *_ = _sample(text) or ("", {})
        for name, value in own.items():
            if value.dtype.kind == "f":
                found.setdefault(value.shape, []).append((name, text))
    return found


# Where matrices are singular, or large under an exponential, the last digits decide; and what is below
# eps is raised to it outside of grad mode, which forward mode does not leave.
SINGULAR = re.compile(
    r"linalg\.(?!\w*norm|cross|vecdot|diagonal|multi_dot|vander)|\b(det|logdet|slogdet|qr|svd|lu\w*"
    r"|p?inverse|cholesky\w*|matrix_exp|triangular_solve|gaussian_nll_loss|cosine_similarity)\("
)
# What the values of an operand may become: at zeros, at kinks, alike, of the other sign, near the
# edges of domains.
POINTS: list[Callable[[Any], Any]] = [
    np.zeros_like,
    np.ones_like,
    np.negative,
    np.round,
    lambda v: np.full_like(v, v.flat[0]),
    lambda v: np.where(np.arange(v.size).reshape(v.shape) % 2, v, 0),
    lambda v: np.sign(v) * 0.9999,
    lambda v: v * 1e-4,
    lambda v: v * 30,
]


def special(rng: random.Random, values: dict[str, Any]) -> None:
    """Put a variable, or all that are real, at points where something happens."""
    reals = [n for n, v in values.items() if v.dtype.kind == "f" and v.size]
    change = rng.choice(POINTS)
    for name in reals if rng.random() < 0.3 else reals and [rng.choice(reals)]:
        values[name] = change(values[name])


def resized(rng: random.Random, numbers: Any, values: dict[str, Any]) -> None:
    """Give the variables other shapes: a size changed in all of them, or one dimension in one."""
    sizes = sorted({n for v in values.values() for n in v.shape})
    reals = [n for n, v in values.items() if v.dtype.kind == "f"]
    way = rng.randrange(4)
    after = {n: v.shape for n, v in values.items()}
    if way == 0 and sizes:
        old, new = rng.choice(sizes), rng.choice([0, 1, 2, 3, 4])
        after = {n: tuple(new if k == old else k for k in s) for n, s in after.items()}
    elif way == 1:
        more = rng.choice([0, 1, 2, 3])
        after |= {n: (more, *after[n]) for n in (reals if rng.random() < 0.5 else [reals[0]])}
    elif way == 2:
        name = rng.choice(reals)
        after[name] = after[name][1:]
    else:
        name = rng.choice(reals)
        if after[name]:
            at = rng.randrange(len(after[name]))
            after[name] = tuple(1 if k == at else n for k, n in enumerate(after[name]))
    for name, shape in after.items():
        own = values[name]
        if shape != own.shape:
            made = np.resize(own, shape) if own.size else np.ones(shape, own.dtype)
            if own.dtype.kind == "f":  # no two alike
                made = made * numbers.uniform(0.9, 1.1, shape)
            values[name] = made


@cache
def pointwise() -> list[tuple[str, int]]:
    """(name, number of operands) of the functions that work element by element."""
    table.load()
    found = []
    for name, function in table.FUNCTIONS.items():
        rows = [r for r in function.primitives if r.vjps and r.types in ("common", "float")]
        if any(w in name for w in RANDOM) or name.endswith("_"):
            continue
        found += [(name, len(r.tensors)) for r in rows if all(k == "tensor" for k in r.kinds)]
    return sorted(set(found))


# Operands of every sign and domain.
OPERANDS = ["{}", "{}", "({}**2 + 0.5)", "(tanh({})*0.9)", "({}**2 + 1.1)", "(2*{} + 1)", "({}*x0)"]


def broadcast(rng: random.Random, number: int) -> Case:
    """A function that works element by element, its operands broadcast on both sides."""
    name, count = pointwise()[number]
    maker = Maker(rng)
    shape = any_shape(rng, maker.size)
    words = [maker.variable(maker.narrowed(shape)) for _ in range(count)]
    numbers = np.random.default_rng(rng.getrandbits(32))
    values = maker.values(numbers) | {"x0": np.round(numbers.uniform(0.8, 1.2), 2)}
    given = [rng.choice(OPERANDS).format(w) for w in words]
    if count > 1 and rng.random() < 0.2:
        given[rng.randrange(count)] = rng.choice(["2", "0.5", "3"])
    text = f"{name}({', '.join(given)})"
    values["w"] = np.round(numbers.uniform(-1, 1, shape), 2)
    return Case(rng.choice([text, f"sum({text}*w)", f"({text}*w*x0)", f"({text})**2"]), values)


def replaced(text: str, name: str, by: str) -> str:
    tree = ast.parse(text)

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(by, mode="eval").body if node.id == name else node

    return "\n".join(map(ast.unparse, Put().visit(tree).body))


# -- the ways to differentiate ----------------------------------------------------------------------
class Differ(Exception):
    """Two ways that do not agree."""


def tape(case: Case) -> dict[str, Any]:
    """The gradients of the value, summed up, by the tape."""
    leaves = case.tensors(track=True)
    value = case.run(leaves)
    found = {n: np.zeros(v.shape) for n, v in case.values.items() if n in case.wrt}
    if value.requires_grad:
        value.backward(gradcli.ones_like(value))
        found |= {n: leaves[n].grad.numpy() for n in case.wrt if leaves[n].grad is not None}
    return found


def same(found: Any, expected: Any, what: str, rtol: float = 1e-7) -> None:
    """Raise Differ unless two arrays agree, to the accuracy of their largest element."""
    a, b = np.asarray(found, float), np.asarray(expected, float)
    if a.shape != b.shape:
        raise Differ(f"{what}: shape {a.shape}, not {b.shape}")
    fine = np.isfinite(b)
    size = np.abs(b[fine]).max(initial=1.0)
    if not np.allclose(a[fine], b[fine], rtol=rtol, atol=rtol * size):
        raise Differ(f"{what}: {np.round(a, 6).tolist()}, not {np.round(b, 6).tolist()}")


def _vectors(case: Case) -> dict[str, Any]:
    numbers = np.random.default_rng(5)
    return {n: gradcli.tensor(numbers.uniform(-1, 1, case.values[n].shape)) for n in case.wrt}


def _jacobian(mode: str) -> Callable[[Case, dict[str, Any]], None]:
    def check(case: Case, expected: dict[str, Any]) -> None:
        found = traced_matrices.jacobian(case.program, case.tensors(), case.wrt, mode=mode)
        vectors = _vectors(case)
        _, tangent = traced_matrices.jvp(case.program, case.tensors(), vectors)
        total = np.zeros(found.shape)
        for n in case.wrt:
            own = np.asarray(found.by[n])
            lead = len(found.shape)
            same(own.sum(tuple(range(lead))), expected[n], f"ones @ jacobian by {n}")
            total = total + np.tensordot(own, vectors[n].numpy(), axes=own.ndim - lead)
        if tangent is not None:
            same(total, tangent.numpy(), "jacobian @ v against jvp")

    return check


def _jvp(case: Case, expected: dict[str, Any]) -> None:
    vectors = _vectors(case)
    _, tangent = traced_matrices.jvp(case.program, case.tensors(), vectors)
    along = sum(float((expected[n] * vectors[n].numpy()).sum()) for n in case.wrt)
    if tangent is not None:
        same(tangent.numpy().sum(), along, "jvp against vjp")


# Where PyTorch's gradient is not its value's: cosine_similarity raises norms and gaussian_nll_loss
# variances outside of grad mode, singular values that are cut count in that of pinv, and gradients by
# frequency are no derivatives.
NO_DERIVATIVE = re.compile(
    r"(cosine_similarity|gaussian_nll_loss)\(.*eps=|pinv(erse)?\(.*(tol|rcond)=|scale_grad_by_freq=True"
)


def _own_ways(case: Case) -> bool:
    """Whether forward mode, which goes on without grad mode, is another derivative in PyTorch too."""
    without = any(word in case.source for word in ("set_grad_enabled", "no_grad"))
    return without or bool(NO_DERIVATIVE.search(case.source))


def _hessian(case: Case, expected: dict[str, Any]) -> None:
    source = summed(case)
    if NO_DERIVATIVE.search(source.source):
        return
    found = traced_matrices.hessian(source.program, source.tensors(), source.wrt)
    vectors = _vectors(source)
    if not all(np.isfinite(b).all() for m in found.values() for b in m.by.values()):
        return  # as PyTorch's: sinc at 0, differentiated twice, is nan
    hvp = traced_matrices.hvp(source.program, source.tensors(), vectors)
    for a in source.wrt:
        total = np.zeros(source.values[a].shape)
        for b in source.wrt:
            block, other = np.asarray(found[a].by[b]), np.asarray(found[b].by[a])
            k = source.values[a].ndim
            turned = np.moveaxis(
                other, range(source.values[b].ndim), range(-source.values[b].ndim, 0)
            )
            if source.values[b].ndim:
                same(block, turned, f"hessian by {a}, {b} against {b}, {a}")
            total = total + np.tensordot(block, vectors[b].numpy(), axes=block.ndim - k)
        same(total, hvp[a].numpy(), f"hessian @ v against hvp by {a}")
    if _own_ways(source):
        return
    pushed = _forward_over_reverse(source, vectors)
    for a in source.wrt:
        same(pushed[a], hvp[a].numpy(), f"forward over reverse against hvp by {a}")


def _forward_over_reverse(case: Case, vectors: dict[str, Any]) -> dict[str, Any]:
    wrt = case.wrt

    def value(*given: Any) -> Any:
        return case.run({**case.tensors(), **dict(zip(wrt, given, strict=True))})

    gradient = gradcli.func.grad(value, argnums=tuple(range(len(wrt))))
    tensors = case.tensors()
    _, found = gradcli.func.jvp(
        gradient, tuple(tensors[n] for n in wrt), tuple(vectors[n] for n in wrt)
    )
    return {n: f.detach().numpy() for n, f in zip(wrt, found, strict=True)}


def summed(case: Case) -> Case:
    """The sum of the program's value, as a program."""
    head, last = parted(case.source)
    return Case(f"{head}sum({last})", dict(case.values))


def parted(source: str) -> tuple[str, str]:
    """What stands before the last expression of a program, and it."""
    last = ast.parse(source).body[-1]
    lines = source.splitlines(keepends=True)
    at = sum(map(len, lines[: last.lineno - 1])) + last.col_offset
    return source[:at], source[at:].strip()


def _compiled(case: Case, expected: dict[str, Any]) -> None:
    source = summed(case)
    compiled = gradcli.compile(source.source, wrt=source.wrt)
    for place in (case, _moved(case)):  # the plan of the first is the second's
        value, grads = compiled.value_and_grad(**place.tensors())
        same(
            value.detach().numpy(),
            place.run(place.tensors()).sum().detach().numpy(),
            "plan's value",
        )
        own = tape(place)
        for n in source.wrt:
            found = np.zeros(case.values[n].shape) if grads[n] is None else np.asarray(grads[n])
            same(found, own[n], f"plan by {n}")
        for plan in compiled.plans.values():
            if isinstance(plan, CompiledProgram):
                _in_blocks(plan.trace, place, own)


def _in_blocks(recording: Any, place: Case, expected: dict[str, Any]) -> None:
    """The plan of large arrays, on small ones: a few elements at a time, on two threads."""
    inputs = list(recording.inputs.values())
    executor = Executor(recording.outputs, inputs, block=3, threads=2, smallest=2)
    own = [place.values[n] for n in recording.inputs]
    value, *grads = executor(*(v.copy() if v.ndim else v[()] for v in own))
    same(value, place.run(place.tensors()).sum().detach().numpy(), "blocks' value")
    reached = [n for n, g in recording.gradients.items() if g is not None]
    for n, g in zip(reached, grads, strict=True):
        same(g, expected[n], f"blocks by {n}")


def _vmapped(case: Case, expected: dict[str, Any]) -> None:
    """vmap over three points, and over the gradients there, beside one point after the other."""
    wrt = case.wrt
    places = [case, _moved(case), _moved(_moved(case))]
    together = tuple(gradcli.tensor(np.stack([p.values[n] for p in places])) for n in wrt)

    def value(*given: Any) -> Any:
        return case.run({**case.tensors(), **dict(zip(wrt, given, strict=True))})

    def total(*given: Any) -> Any:
        return value(*given).sum()

    found = gradcli.func.vmap(value)(*together)
    slopes = gradcli.func.vmap(gradcli.func.grad(total, tuple(range(len(wrt)))))(*together)
    for k, place in enumerate(places):
        same(
            found[k].detach().numpy(),
            place.run(place.tensors()).detach().numpy(),
            f"vmap, entry {k}",
        )
        own = tape(place)
        for n, g in zip(wrt, slopes, strict=True):
            same(g[k].numpy(), own[n], f"vmap of grad by {n}, entry {k}")


def _function(case: Case, total: bool = False) -> tuple[Callable[..., Any], tuple[int, ...], Any]:
    """(the program as a function of its variables, their numbers, where they are)."""
    tensors = case.tensors()

    def value(*given: Any) -> Any:
        found = case.run({**case.tensors(), **dict(zip(case.wrt, given, strict=True))})
        return found.sum() if total else found

    return value, tuple(range(len(case.wrt))), tuple(tensors[n] for n in case.wrt)


def _mapped_twice(case: Case, expected: dict[str, Any]) -> None:
    """vmap in vmap over six points, and over the last dimension, beside one point after the other."""
    places = [case]
    while len(places) < 6:
        places.append(_moved(places[-1]))
    value, every, _ = _function(case)
    slope = gradcli.func.grad(_function(case, True)[0], every)
    stacked = [np.stack([p.values[n] for p in places]) for n in case.wrt]
    together = [gradcli.tensor(s.reshape(2, 3, *s.shape[1:])) for s in stacked]
    found = gradcli.func.vmap(gradcli.func.vmap(value))(*together)
    slopes = gradcli.func.vmap(gradcli.func.vmap(slope))(*together)
    last = [gradcli.tensor(np.moveaxis(s, 0, -1).copy()) for s in stacked]
    by_layout = any(w in case.source for w in ("as_strided", "view_as", ".view("))  # as in PyTorch
    turned = None if by_layout else gradcli.func.vmap(slope, -1, -1)(*last)
    for k, place in enumerate(places):
        i, j = divmod(k, 3)
        own = tape(place)
        wanted = place.run(place.tensors()).detach().numpy()
        same(found[i][j].detach().numpy(), wanted, f"vmap twice, entry {k}")
        for m, n in enumerate(case.wrt):
            same(slopes[m][i][j].detach().numpy(), own[n], f"vmap twice of grad by {n}, entry {k}")
            if turned is not None:
                same(
                    turned[m][..., k].detach().numpy(), own[n], f"vmap at the end by {n}, entry {k}"
                )


def _functions(case: Case, expected: dict[str, Any]) -> None:
    """Jacobians as torch.func and autograd.functional have them, vjp, and those without their zeros."""
    value, every, at = _function(case)
    found = traced_matrices.jacobian(case.program, case.tensors(), case.wrt)
    sparse = traced_matrices.sparse_jacobian(case.program, case.tensors(), case.wrt)
    output, pull = gradcli.func.vjp(value, *at)
    seed = np.random.default_rng(3).uniform(-1, 1, tuple(output.shape))
    pulled = pull(gradcli.tensor(seed))
    ways = {
        "jacrev": gradcli.func.jacrev(value, every)(*at),
        "by rows": gradcli.autograd.functional.jacobian(value, at),
        "vectorized": gradcli.autograd.functional.jacobian(value, at, vectorize=True),
    }
    if not _own_ways(case):
        ways["jacfwd"] = gradcli.func.jacfwd(value, every)(*at)
    for k, n in enumerate(case.wrt):
        whole = np.asarray(found.by[n])
        same(pulled[k].numpy(), np.tensordot(seed, whole, axes=seed.ndim), f"vjp by {n}")
        dense = np.zeros(whole.shape)
        for place, v in zip(sparse.by[n].indices, sparse.by[n].values, strict=True):
            dense[tuple(place)] = v
        same(dense, whole, f"sparse by {n}")
        for said, made in ways.items():
            same(made[k].numpy(), whole, f"{said} by {n}")


def _twice(case: Case, expected: dict[str, Any]) -> None:
    """Second derivatives by every two of the modes, and along a vector."""
    source = summed(case)
    if _own_ways(case) or sum(source.values[n].size for n in source.wrt) > 40:
        return
    value, every, at = _function(source)
    found = traced_matrices.hessian(source.program, source.tensors(), source.wrt)
    if not all(np.isfinite(b).all() for m in found.values() for b in m.by.values()):
        return
    forward, reverse = gradcli.func.jacfwd, gradcli.func.jacrev
    ways = {
        "forward over reverse": forward(reverse(value, every), every)(*at),
        "reverse over forward": reverse(forward(value, every), every)(*at),
        "reverse over reverse": reverse(reverse(value, every), every)(*at),
        "functional.hessian": gradcli.autograd.functional.hessian(value, at),
    }
    for i, a in enumerate(source.wrt):
        for j, b in enumerate(source.wrt):
            for said, made in ways.items():
                same(made[i][j].numpy(), found[a].by[b], f"{said} by {a}, {b}")
    vectors = _vectors(source)
    along = tuple(vectors[n] for n in source.wrt)
    products = traced_matrices.hvp(source.program, source.tensors(), vectors)

    def pushed(*given: Any) -> Any:
        return gradcli.func.jvp(value, given, along)[1]

    twice = sum(float((products[n].numpy() * vectors[n].numpy()).sum()) for n in source.wrt)
    same(gradcli.func.jvp(pushed, at, along)[1].numpy(), twice, "forward over forward")
    for n, g in zip(source.wrt, gradcli.func.grad(pushed, every)(*at), strict=True):
        same(g.numpy(), products[n].numpy(), f"grad of jvp by {n}")


def _derivatives(case: Case, order: int = 1) -> Any:
    return differentiate(case.program, case.values, case.wrt, order=order, follow=True)


def _evaluated(made: Any, name: str, case: Case) -> Any:
    text = "\n".join([*made.lines, made.by[name]])
    value = language.run(language.parse(text), case.tensors()).value
    return value.array if hasattr(value, "array") else value


def _text(cse: bool) -> Callable[[Case, dict[str, Any]], None]:
    def check(case: Case, expected: dict[str, Any]) -> None:
        _, made, singular = proved(case.program, case.values, case.wrt, given=True, cse=cse)
        for n in case.wrt if singular is None else ():
            same(_evaluated(made, n, case), expected[n], f"text by {n}: {made.by[n]}")

    return check


def _repeated(case: Case, word: str, order: int) -> Any:
    leaves = case.tensors(track=True)
    found = case.run(leaves)
    for _ in range(order):
        slope = None
        if found.requires_grad:
            (slope,) = gradcli.autograd.grad(
                found.sum(), [leaves[word]], create_graph=True, allow_unused=True
            )
        found = gradcli.zeros_like(leaves[word]) if slope is None else slope
    return found.detach().numpy()


def _order(order: int) -> Callable[[Case, dict[str, Any]], None]:
    def check(case: Case, expected: dict[str, Any]) -> None:
        for lower in range(1, order):
            before = _derivatives(case, lower)
            if max(map(size_of, before.by.values()), default=0) > 500:
                return  # the next one is long
        _, made, singular = proved(case.program, case.values, case.wrt, given=True, order=order)
        for n in case.wrt if singular is None else ():
            wanted = _repeated(case, n, order)
            said = f"order {order} by {n}: {made.by[n]}"
            same(_evaluated(made, n, case), wanted, said, 1e-6)

    return check


@contextmanager
def doubles(form: str) -> Iterator[None]:
    """Let torch, where it runs the code, make float64 of a number, as the others do."""
    if form != "torch":
        yield
        return
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _matrix(rows: bool) -> Callable[[Case, dict[str, Any]], None]:
    """The Jacobian as a formula, or the Hessian, beside the numbers of it."""

    def check(case: Case, expected: dict[str, Any]) -> None:
        if not rows:
            case = summed(case)
        ways = way(case.values, case.wrt, 2, rows)
        if not ways or NO_DERIVATIVE.search(case.source):
            return
        if not rows:
            numbers = traced_matrices.hessian(case.program, case.tensors(), case.wrt)
            if not all(np.isfinite(b).all() for m in numbers.values() for b in m.by.values()):
                return  # as in `_hessian`; it may be so all around, as sinc(hardshrink(x)) at 0
        given = (case.program, case.values, case.wrt)
        found, made, singular = proved(*given, given=True, **ways)
        if singular is not None:
            return
        wanted = ways["claim"](found, made, {}).of_value(None, case.tensors())
        for label, value in wanted.items():
            same(_evaluated(made, label, case), value, f"matrix of {label}: {made.by[label]}", 1e-6)

    return check


def _code(form: str) -> Callable[[Case, dict[str, Any]], None]:
    def check(case: Case, expected: dict[str, Any]) -> None:
        _, made, singular = proved(case.program, case.values, case.wrt, given=True, form=form)
        if singular is not None or form not in RUN:
            return
        if form != "torch" and _tied(case):
            return  # PyTorch's order of what is equal is its own, and NumPy's is stable
        space: dict[str, Any] = {}
        exec(made.code, space)
        given: list[Any]
        if form == "torch":
            if any(word in case.source and not _counts(case) for word in ODD_IN_TORCH):
                return
            if "eig" in case.source or "svd(" in case.source:
                return  # the signs of their vectors are LAPACK's
            import torch

            given = [torch.tensor(v) for v in case.values.values()]
        else:
            given = [v.item() if not v.ndim else v.copy() for v in case.values.values()]
        with np.errstate(all="ignore"), doubles(form):
            _, grads = space["value_and_gradient"](*given)
        grads = grads if len(case.wrt) > 1 else (grads,)
        for n, g in zip(case.wrt, grads, strict=True):
            # PyTorch's Bessel functions have seven digits.
            rtol = 1e-5 if form == "torch" and "bessel_" in case.source else 1e-7
            same(g, expected[n], f"--format {form} by {n}: {made.code}", rtol)

    return check


# Where torch's derivative does not fit its own value, or that not the shapes of its operands:
# functions of tensors without elements.
_CHANNELS = "of an input without channels has none, whatever the weight and the bias have"
ODD_IN_TORCH = {
    "pixel_unshuffle": "keeps the shape, which its backward pass then refuses",
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _CHANNELS),
}


# The beginnings of the names of rows that put in order, or choose by order.
ORDERED = ("sort", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian", "mode")


def _tied(case: Case) -> bool:
    """Whether something is put in order of which two elements are equal."""
    found = []

    def called(row: Any, values: Any, outputs: Any) -> None:
        if getattr(row, "name", "").startswith(ORDERED):
            ordered = np.asarray(getattr(values[0], "array", values[0]))
            found.append(len(np.unique(ordered)) < ordered.size)

    before = modes.change(intercept=called)
    try:
        case.run(case.tensors())
    finally:
        modes.restore(before)
    return any(found)


def _counts(case: Case) -> bool:
    return all(v.size for v in case.values.values())


def _run_by() -> tuple[str, ...]:
    """The formats whose programs can be run here; the others' are proved, and that is all."""
    return ("python", "numpy", *(["torch"] if find_spec("torch") else []))


RUN = _run_by()


def _latex(case: Case, expected: dict[str, Any]) -> None:
    for expression in _derivatives(case).by.values():
        if not to_latex(expression):
            raise Differ("empty LaTeX")


PAIRS: dict[str, Callable[[Case, dict[str, Any]], None]] = {
    "jacobian, reverse": _jacobian("reverse"),
    "jacobian, forward": _jacobian("forward"),
    "jvp": _jvp,
    "hessian": _hessian,
    "plan": _compiled,
    "vmap": _vmapped,
    "vmap twice": _mapped_twice,
    "func": _functions,
    "func twice": _twice,
    "text": _text(False),
    "--cse": _text(True),
    "--order 2": _order(2),
    "--order 3": _order(3),
    "--jacobian": _matrix(True),
    "--order 2, a matrix": _matrix(False),
    "--format latex": _latex,
    **{f"--format {form}": _code(form) for form in CODE},
}


# Functions of functions take long: a case has one of them.
DEEP = ("vmap twice", "func", "func twice")
# What does not lie row by row has other slopes in each of PyTorch's ways.
WRITTEN_BY_STRIDES = re.compile(r"as_strided_scatter\((?!x\d\b)")
# The slope at 0 is another in forward mode, as in PyTorch; and which zero a sum is, 0 or -0, is told by
# the order of its terms, which is another in every way.
OF_ZERO = re.compile(r"prelu\(|copysign|signbit|atan2|arctan2")
HIGHER = ("hessian", "func twice", "--order 2", "--order 2, a matrix", "--order 3")


def _moved(case: Case) -> Case:
    """The program at a point nearby, in no special position; where it was, if it is refused there."""
    numbers = np.random.default_rng(7)
    made = {}
    for name, value in case.values.items():
        own = np.asarray(value)
        step = numbers.uniform(1e-3, 3e-3, own.shape) if own.dtype.kind == "f" else 0
        made[name] = (own + step).astype(own.dtype)
    moved = Case(case.source, made)
    try:
        moved.run(moved.tensors())
    except Exception:  # beyond an edge: no probability, no longer positive definite
        return case
    return moved


def _is_odd(case: Case) -> bool:
    """Whether the gradient says little there: it has infinite parts, or the last digits decide it."""
    return _has_infinite_slopes(case) or _is_unsteady(case)


def _is_unsteady(case: Case) -> bool:
    """Whether the last digits of a point move its gradient: equal eigenvalues, rounded deviations."""
    numbers = np.random.default_rng(11)
    made = {
        n: v * (1 + 1e-14 * numbers.uniform(-1, 1, v.shape)) if v.dtype.kind == "f" else v
        for n, v in case.values.items()
    }
    before, after = tape(case), tape(Case(case.source, made))
    return not all(
        np.abs(after[n] - g).max(initial=0) <= 1e-8 * np.abs(g).max(initial=1)
        for n, g in before.items()
    )


def _has_infinite_slopes(case: Case) -> bool:
    """Whether a gradient inside of the program is infinite, nan, or too large to leave any digits."""
    seen: list[bool] = []

    def slopes(inputs: Any, outputs: Any) -> None:
        seen.extend(bool((g.abs() < 1e9).all()) for g in inputs if g is not None)

    value = case.run(case.tensors(track=True))
    known, left = set(), [value.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in known:
            known.add(node)
            node.register_hook(slopes)
            left += [n for n, _ in node.next_functions]
    if value.requires_grad:
        value.backward(gradcli.ones_like(value))
    return not all(seen)


# -- what is reached --------------------------------------------------------------------------------
REACHED: Counter[str] = Counter()


@contextmanager
def counting() -> Iterator[None]:
    """Inside, the rows that run on tensors are counted."""

    def called(row: Any, values: Any, outputs: Any) -> None:
        REACHED[getattr(row, "name", "")] += 1

    before = modes.change(intercept=called)
    try:
        yield
    finally:
        modes.restore(before)


def _differentiated_twice(case: Case) -> None:
    """The rows that rules are made of run too."""
    leaves = case.tensors(track=True)
    value = case.run(leaves)
    slopes: list[Any] = []
    if value.requires_grad:
        found = gradcli.autograd.grad(
            value.sum(), [leaves[n] for n in case.wrt], create_graph=True, allow_unused=True
        )
        slopes = [s.sum() for s in found if s is not None and s.requires_grad]
    if slopes:
        gradcli.autograd.grad(
            sum(slopes[1:], slopes[0]),
            [leaves[n] for n in case.wrt],
            create_graph=True,
            allow_unused=True,
        )


# -- failures ---------------------------------------------------------------------------------------
def failures(case: Case, *only: str) -> dict[str, str]:
    """What goes wrong, by the pair of ways; a program that the tape refuses has no failures.

    One that takes too long, in whichever way, has that alone.
    """
    try:
        with limited():
            return _failures(case, *only)
    except TooLong as error:
        return {"time": str(error)}


def _failures(case: Case, *only: str) -> dict[str, str]:
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(case.run(case.tensors()).array)
            if value.dtype.kind != "f":
                return {}  # only real values have a gradient
            finite = bool(np.isfinite(value).all())
            expected = tape(case)
    except Exception as error:
        return {"tape": str(error)} if ran_out(error) else {}
    if not case.wrt or not finite or not all(np.isfinite(g).all() for g in expected.values()):
        return {}
    with counting(), np.errstate(all="ignore"), suppress(Exception):  # refused twice, maybe
        _differentiated_twice(case)
    found = {}
    for name, check in PAIRS.items():
        if only and name not in only:
            continue
        try:
            with np.errstate(all="ignore"):
                try:
                    check(case, expected)
                except Differ:
                    if WRITTEN_BY_STRIDES.search(case.source):
                        continue
                    # An exponent that is 0 at that point, where torch's rules drop terms too, or
                    # zeros that meet infinite slopes, which its forward mode makes nan.
                    if not (name in HIGHER or OF_ZERO.search(case.source) or _is_odd(case)):
                        raise
                    moved = _moved(case)
                    # Infinite around the point too: of what does not move, as entr(floor(x)) at 0.3.
                    odd = _has_infinite_slopes if name in HIGHER else _is_odd
                    if not odd(moved):
                        check(moved, tape(moved))
        except NoExpression:
            continue
        except language.LanguageError as error:
            if isinstance(error.__cause__, NoExpression) or _is_refusal(error):
                continue
            found[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        except Differ as error:
            found[name] = str(error)
        except Exception as error:
            # Of a matrix that is singular but for its rounding `solve_ex` has a value, `solve` maybe not.
            singular = "singular" in str(error).lower() and _is_unsteady(case)
            if not (singular or _is_refusal(error)):
                found[name] = f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    return found


def _is_refusal(error: Exception) -> bool:
    """Whether what is said is a documented limit."""
    said = str(error)
    return any(
        words in said
        for words in (
            "would be held constant",
            "hold it constant with detach()",
            "is taken as a number here",
            "is not differentiable with respect to",
            "_backward' is not implemented",  # twice, as in PyTorch
            "_double is not implemented",
            "Double backward is unsupported",
            "so it is ill-defined",
            "with a bool tensor is not supported",
            "the derivative for '_",  # has none, in PyTorch's words
            "Trying to use forward AD with",  # nor tangents, as in PyTorch
            "derivative for aten::",
            "vmap: ",
            "were not batched",  # statistics that are written, in PyTorch's words
            "doesn't match the broadcast shape",  # a constant that is written in place, under vmap
        )
    )


def kind(message: str) -> str:
    """What kind of failure it is, so that a smaller program is known to fail in the same way."""
    return message.split(":")[0].split(" by ")[0]


def smaller(case: Case, pair: str, message: str) -> tuple[Case, str]:
    """The smallest program found that fails in the same way."""
    budget = 300
    changed = True
    while changed and budget > 0:
        changed = False
        for source in _reductions(case.source):
            budget -= 1
            try:
                trial = Case(source, dict(case.values))
            except Exception:
                continue
            said = failures(trial, pair).get(pair) if trial.values else None
            if said is not None and kind(said) == kind(message):
                case, message, changed = trial, said, True
                break
            if budget <= 0:
                break
    return case, message


def _reductions(source: str) -> Iterator[str]:
    """Programs with a part replaced by something smaller: statements dropped, operands pulled up."""
    tree = ast.parse(source)
    for i in range(len(tree.body) - 1):
        fewer = copy.deepcopy(tree)
        del fewer.body[i]
        yield "\n".join(map(ast.unparse, fewer.body))
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.expr)]
    for at, node in enumerate(nodes):
        if isinstance(node, (ast.Name, ast.Constant)):
            continue
        parts = [c for c in ast.walk(node) if isinstance(c, ast.expr) and c is not node]
        for part in parts:
            if isinstance(part, (ast.Constant, ast.Attribute)) and len(parts) > 1:
                continue
            fresh = copy.deepcopy(tree)
            target = [n for n in ast.walk(fresh) if isinstance(n, ast.expr)][at]

            class Put(ast.NodeTransformer):
                def visit(self, n: ast.AST, target: Any = target, part: Any = part) -> Any:
                    return copy.deepcopy(part) if n is target else super().visit(n)

            yield "\n".join(map(ast.unparse, Put().visit(fresh).body))


# Rows that no sample reaches alone: programs, and the shapes of x0, x1, x2.
MORE: list[tuple[str, list[Shape]]] = [
    ("F.pad(x0, (1, 1, 1, 1), mode='reflect')", [(1, 2, 3, 3)]),
    ("F.pad(x0, (1, 0, 0, 1), mode='replicate')", [(1, 2, 3, 2)]),
    ("F.pad(x0, (1, 1, 0, 1, 1, 0), mode='reflect')", [(1, 1, 2, 2, 3)]),
    ("F.pad(x0, (1, 1, 0, 1, 1, 0), mode='replicate')", [(1, 1, 2, 2, 3)]),
    ("F.interpolate(x0, scale_factor=2.0, mode='linear')", [(1, 1, 3)]),
    ("F.interpolate(x0, size=2, mode='nearest-exact')", [(1, 1, 3)]),
    ("F.interpolate(x0, size=(2, 3), mode='nearest-exact')", [(1, 1, 3, 2)]),
    ("F.interpolate(x0, size=(2, 3, 1), mode='nearest-exact')", [(1, 1, 3, 2, 1)]),
    ("F.interpolate(x0, size=(2, 3, 1), mode='nearest')", [(1, 1, 3, 2, 1)]),
    ("F.interpolate(x0, size=(2, 3, 2), mode='trilinear')", [(1, 1, 3, 2, 1)]),
    ("F.interpolate(x0, size=(2, 2), mode='bicubic', antialias=True)", [(1, 1, 4, 4)]),
    (
        "F.embedding_bag(tensor([[0, 2], [1, 2]]), x0, mode='sum', per_sample_weights=x1)",
        [(3, 2), (2, 2)],
    ),
    ("F.celu(x0*1, 1.0, True)", [(3,)]),
    ("F.elu(-x0*1, 1.0, True)", [(3,)]),
    ("F.leaky_relu(-x0*1, 0.1, True)", [(2, 3)]),
    ("F.threshold(x0*1, 0.5, 0.1, True)", [(2, 3)]),
    ("(x0*1).as_strided_((2, 2), (1, 1))", [(3,)]),
    ("(x0*1).squeeze_()", [(1, 3)]),
    ("(x0*1).squeeze_(0)", [(1, 3)]),
    ("(x0*1).squeeze_((0, 1))", [(1, 1, 2)]),
    ("(x0*1).unsqueeze_(1)", [(3,)]),
    ("(x0*1).t_()", [(2, 3)]),
    ("(x0*1).transpose_(0, 1)", [(2, 3)]),
    ("squeeze_copy(x0, (0,))", [(1, 3)]),
    ("(x0*1).fill_(2) + x0", [(2, 3)]),
    ("(x0*1).fill_(x1) + x0", [(2, 3), ()]),
    ("fill(x0, x1)*x0", [(2, 3), ()]),
    *(
        (f"(x0*1).{word}_(x1) + x0", [(2, 3), (3,)])
        for word in ("eq", "ge", "gt", "le", "lt", "ne")
    ),
    *((f"(x0*1).{word}_(0.5)*x0", [(2,)]) for word in ("eq", "ge", "gt", "le", "lt", "ne")),
    ("torch.complex(x0, x1).abs()", [(2, 3), (2, 3)]),
    ("(torch.complex(x0, x1)*torch.complex(x1, x0)).imag", [(3,), (3,)]),
    ("view_as_real(torch.complex(x0, x1))", [(3,), (3,)]),
    ("view_as_real_copy(torch.complex(x0, x1))", [(3,), (3,)]),
    ("fft.irfft(torch.complex(x0, x1))", [(3,), (3,)]),
    ("fft.fft(x0).abs()", [(4,)]),
    ("cdist(x0, x1, compute_mode='use_mm_for_euclid_dist')", [(3, 2), (4, 2)]),
    (
        "lu_solve(x1, linalg.lu_factor(x0 + 2*eye(3))[0], linalg.lu_factor(x0 + 2*eye(3))[1])",
        [(3, 3), (3, 2)],
    ),
    ("f = linalg.lu_factor(x0 + 2*eye(3)); linalg.lu_solve(f[0], f[1], x1)", [(3, 3), (2, 3, 2)]),
    ("F.max_unpool2d(x0, tensor([[[[0, 3], [8, 10]]]]), 2)", [(1, 1, 2, 2)]),
    ("F.max_unpool3d(x0, tensor([[[[[0, 3], [4, 10]]]]]), 2)", [(1, 1, 1, 2, 2)]),
    ("F.nll_loss(log_softmax(x0, 1), tensor([[[0, 1], [2, 0]]]))", [(1, 3, 2, 2)]),
    ("F.cross_entropy(x0, tensor([0, 2]), x1, label_smoothing=0.1)", [(2, 3), (3,)]),
    ("F.soft_margin_loss(x0, tensor([1., -1., 1.]))", [(3,)]),
    ("rsub(x0, x1)", [(2, 3), (3,)]),
    ("rsub(x0, x1, alpha=2)", [(1, 3), (2, 1)]),
    ("scatter(x0, 1, tensor([[0, 2]]), x1)", [(1, 3), (1, 2)]),
    ("scatter(x0, 1, tensor([[0, 2]]), 2.0)", [(1, 3)]),
    ("sort(x0, stable=True)[0]", [(2, 3)]),
    ("sort(x0, dim=0, descending=True)[0]", [(2, 3)]),
    ("split_copy(x0, 2)[0]", [(3, 2)]),
    ("split_with_sizes_copy(x0, (1, 2))[1]", [(3, 2)]),
    ("unsafe_split(x0, 2)[1]", [(3, 2)]),
    ("unsafe_split_with_sizes(x0, (1, 2))[1]", [(3, 2)]),
    ("unbind(x0)[1]*unbind(x0, 1)[0]", [(2, 2)]),
    ("unbind_copy(x0)[0]", [(2, 3)]),
    ("special.xlog1py(2, x0)", [(3,)]),
    ("special.xlog1py(x0, 2)", [(3,)]),
    ("xlogy(x0, 2) + xlogy(2, x0)", [(3,)]),
    ("special.zeta(x0 + 2, x1)", [(3,), (3,)]),
    ("remainder(x0, x1) + remainder(x0, 0.3) + remainder(2, x0)", [(2, 3), (3,)]),
    ("fmod(x0, x1) + fmod(x0, 0.3)", [(2, 3), (3,)]),
    ("igamma(tensor(1.5), x0) + igammac(tensor(2.5), x0)", [(3,)]),
    ("logit(x0*0.5)", [(3,)]),
    ("F.multi_margin_loss(x0, tensor([0, 2]))", [(2, 3)]),
    ("permute_copy(x0, (1, 0))", [(2, 3)]),
    ("copysign(x0, -2.0)", [(3,)]),
    ("F.interpolate(x0, scale_factor=2, mode='nearest')", [(1, 1, 2, 2)]),
    ("special.zeta(tensor([2., 3., 4.]), x0 + 1)", [(3,)]),
    ("scatter(x0, 1, tensor([[0, 2]]), x1, reduce='add')", [(1, 3), (1, 2)]),
    ("(x0*1).asinh_()", [(3,)]),
    ("(x0*0.5).atanh_()", [(3,)]),
    ("(x0 + 1).acosh_()", [(3,)]),
]
# Rows with a rule that no program here reaches, and why.
UNREACHED = {
    **dict.fromkeys(
        "bernoulli bernoulli_p bernoulli_tensor cauchy exponential geometric log_normal normal "
        "normal_both normal_mean normal_std poisson_row random_from random_full random_to rrelu_p "
        "rrelu_written uniform".split(),
        "gives other numbers each time that it runs",
    ),
    **dict.fromkeys(("set_p", "unique_dim"), "its rule refuses, as PyTorch's"),
    "lstm_layer": "a layer calls it, and no function of the language",
}


def other(rng: random.Random, number: int) -> Case:
    """A program of a row that no sample reaches alone."""
    text, shapes = MORE[number]
    numbers = np.random.default_rng(rng.getrandbits(32))
    values = {f"x{k}": np.round(numbers.uniform(0.2, 1.2, s), 3) for k, s in enumerate(shapes)}
    values["s"] = np.round(numbers.uniform(0.8, 1.2), 2)
    if rng.random() < 0.4:
        text = replaced(text, "x0", "(x0*s)")
    head, last = parted(text)
    last = rng.choice([last, f"sum(({last})**2)", f"tanh({last})*s"])
    return Case(f"{head}{last}", values)


def made(seed: int, number: int, rng: random.Random) -> Case:
    """The case of a number: of five three are the table's, whose turns come one after the other."""
    rounds, place = divmod(number, 5)
    if place == 1:
        return composed(rng)
    if place == 3:
        return rng.choice([optioned, optioned, _any_sample, _any_broadcast])(rng)
    every = turns()
    maker, of = every[(3 * rounds + place // 2 + 101 * seed) % len(every)]
    return maker(rng, of)


def _any_sample(rng: random.Random) -> Case:
    return sampled(rng, rng.choice(sample_texts()))


def _any_broadcast(rng: random.Random) -> Case:
    return broadcast(rng, rng.randrange(len(pointwise())))


def drawn(rng: random.Random) -> list[str]:
    """The pairs of a case: those of numbers, and some of those of text and of functions of functions."""
    written = [n for n in PAIRS if n.startswith("--")]
    always = [n for n in PAIRS if n not in written and n not in DEEP]
    return [*always, *rng.sample(written, 4), rng.choice(DEEP)]


def run(seed: int, seconds: float) -> Iterator[str]:
    """Minimal reproducers of what fails in that time."""
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    found: set[str] = set()
    number = fuzz.start - 1
    warnings.simplefilter("ignore")
    turns()  # which take longer than a program may
    try:
        for number, rng in enumerate(cases(seed, seconds), fuzz.start):
            try:
                with limited():
                    case = made(seed, number, rng)
            except (TooLong, MemoryError) as error:
                yield f"program {number} of seed {seed}: {error}"
                continue
            for pair, message in failures(case, *drawn(rng)).items():
                yield from told(case, pair, message, found)
    finally:
        gradcli.set_default_dtype(before)
    rows = {r.name for r in table.PRIMITIVES if r.vjps} - set(UNREACHED)
    print(
        f"{number + 1 - fuzz.start} programs; "
        f"{len(rows & set(REACHED))} of {len(rows)} rows with rules reached"
    )
    print("never:", *sorted(rows - set(REACHED)))


def told(case: Case, pair: str, message: str, found: set[str]) -> Iterator[str]:
    """The smallest program that fails so, unless it has been found before."""
    small, said = (case, message) if pair == "time" else smaller(case, pair, message)
    key = f"{pair} {small.source}"
    if key not in found:
        found.add(key)
        yield f"{pair}: {small}\n    {said}"

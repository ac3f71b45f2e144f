"""Every sample of the operator table in every form, run in every way: what random programs find by chance.

A *form* of a sample is its program with other sizes, dtypes, options or layouts of its operands, in place,
or with a view of its result. A way runs it mapped over one of its arguments along one dimension, mapped in
maps, forward, forward over reverse, as a plan and as a plan in blocks; all must agree with the tape, one
point after the other. All is read from the table: a new row is swept with its samples.
"""

from __future__ import annotations

import ast
import dis
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np

import gradcli
from gradcli import language
from gradcli.columns.compiler.compiled_function import CompiledProgram
from gradcli.columns.compiler.executor import Executor
from gradcli.engine.core import modes
from gradcli.engine.registry import table
from gradcli.language.parser import parses
from tests.engine.registry import samples
from tests.fuzz import TooLong, limited, once_round, pairs, ran_out
from tests.fuzz.pairs import Case, Differ, same, tape

Values = dict[str, Any]
LAYOUTS = {
    "every second": "stack([{0}, {0}], -1)[..., 0]",
    "turned": "{0}.transpose(0, -1).contiguous().transpose(0, -1)",
    "inside": "F.pad({0}, [1, 2]*{1})[{2}]",
}
VIEWS = (
    "{}.transpose(0, -1)",
    "{}.reshape(-1)[::2]",
    "{}.expand_as(stack([{}, {}]))",
    "{}[..., :1]",
)
DTYPES = ("float32", "int64", "uint8", "bool", "complex128")
# Other numbers each time, the memory behind a tensor, and what its numbers alone decide.
LEFT_OUT = re.compile(
    "|".join((*pairs.RANDOM, "seed", "set_\\(", "resize", "is_", "numel", "dist\\(", r"\*linalg"))
)
# What rules refuse where they are recorded, and forward; what a map refuses, in PyTorch's words.
REFUSALS = re.compile(
    "with a bool tensor is not supported|view size is not compatible|were not batched|Complex(Double|Float)'"
    # Of a tensor without dimensions PyTorch takes every dtype, and mapped it has one.
    "|\"kthvalue_cpu\" not implemented for 'Bool'"
    # Blocks alone: a compiled function runs such a program on the tape.
    "|a norm is out of range"
)
# What reads memory as it lies, where a map along another dimension puts other numbers; as in PyTorch.
BY_MEMORY = re.compile("as_strided|view_as_")


# Python's words that are PyTorch's too.
BORROWED = re.compile(
    r"unsupported operand type\(s\) for \+: '\w+' and 'str'"  # a reduction that is no text
    "|object is not callable"  # a distance that is no function
)
OURS = str(Path(gradcli.__file__).parent)


# -- forms ------------------------------------------------------------------------------------------
def forms(text: str) -> Iterator[tuple[str, Values, str]]:
    """(program, values, a program that means the same or "") for every form of a sample."""
    source, tensors = samples.program(text)
    source = re.sub(r"^(x0)(\.\w+_\()", r"(\1*1)\2", source)  # no leaf is written to
    values = {n: np.asarray(t.array) for n, t in tensors.items()}
    yield source, values, ""
    yield from ((source, v, "") for v in sized(values))
    yield from ((source, v, "") for v in typed(values))
    yield from ((made, values, "") for made in with_options(source))
    if not BY_MEMORY.search(source):
        yield from ((made, values, source) for made in laid_out(source, values))
        yield from ((made, values, plain) for made, plain in expanded(source, values))
    if made := in_place(source):
        yield made[0], values, source
        yield made[1], values, ""


def sized(values: Values) -> Iterator[Values]:
    """A size changed in all of them to 0, 1 and 2; a dimension less; one more, in all and in the first."""
    shapes = {n: v.shape for n, v in values.items()}
    for old, new in product(sorted({n for s in shapes.values() for n in s}), (0, 1, 2)):
        if old != new:
            yield _shaped(
                values, {n: tuple(new if k == old else k for k in s) for n, s in shapes.items()}
            )
    for more in (0, 2):
        yield _shaped(values, {n: (more, *s) for n, s in shapes.items()})
    for name, shape in shapes.items():
        yield _shaped(values, shapes | {name: (2, *shape)})
        yield _shaped(values, shapes | {name: shape[1:]})
        yield _shaped(values, shapes | {name: (1, *shape[1:])})


def _shaped(values: Values, shapes: dict[str, Any]) -> Values:
    numbers = np.random.default_rng(3)
    made = {}
    for name, own in values.items():
        shape = shapes[name]
        made[name] = np.resize(own, shape) if own.size else np.ones(shape, own.dtype)
        if own.dtype.kind == "f" and shape != own.shape:
            made[name] = made[name] * numbers.uniform(0.9, 1.1, shape)
    return made


def typed(values: Values) -> Iterator[Values]:
    """The real operands in other dtypes: all of them, and the first alone."""
    reals = [n for n, v in values.items() if v.dtype.kind == "f"]
    for dtype, chosen in product(DTYPES, (reals, reals[:1])):
        if chosen == reals or len(reals) > 1:
            yield values | {
                n: (v if dtype in ("float32", "complex128") else np.abs(np.round(v * 3))).astype(
                    dtype
                )
                for n, v in values.items()
                if n in chosen
            }


def with_options(source: str) -> list[str]:
    """The call with one more keyword, each of its options with each value of its kind."""
    call = ast.parse(source, mode="eval").body
    found = []
    for option in pairs.options(source) if isinstance(call, ast.Call) else ():
        flag = option.kind == "bool"
        for value in [str(not option.default)] if flag else pairs.OPTIONS[option.kind]:
            given = ast.keyword(option.name, ast.parse(value, mode="eval").body)
            found.append(ast.unparse(ast.Call(call.func, call.args, [*call.keywords, given])))
    return list(dict.fromkeys(found))


def laid_out(source: str, values: Values) -> Iterator[str]:
    """The operands in other places of memory: all of them, and each alone."""
    names = [n for n, v in values.items() if v.dtype.kind == "f"]
    for layout, chosen in product(LAYOUTS.values(), [names, *([n] for n in names[1:])]):
        made = source
        for n in chosen:
            dims = values[n].ndim
            if dims or "stack" in layout:
                inside = "..., " + ", ".join(f"1:{1 + k}" for k in values[n].shape)
                made = pairs.replaced(made, n, layout.format(n, dims, inside))
        if made != source:
            yield made


def expanded(source: str, values: Values) -> Iterator[tuple[str, str]]:
    """Operands that show one element in many places, and copies of those."""
    for n, v in values.items():
        if v.dtype.kind == "f" and v.ndim and v.shape[0]:
            text = f"{n}[:1].expand({', '.join(map(str, v.shape))})"
            yield pairs.replaced(source, n, text), pairs.replaced(source, n, f"{text}.clone()")


def in_place(source: str) -> tuple[str, str] | None:
    """The in-place form of a call, on what its first operand was copied to, and on a view of that."""
    call = ast.parse(source, mode="eval").body
    if not isinstance(call, ast.Call) or any(k.arg == "out" for k in call.keywords):
        return None
    word = ast.unparse(call.func)
    method = isinstance(call.func, ast.Attribute) and word not in table.FUNCTIONS
    name = word.rpartition(".")[2] if method else word
    entry = table.FUNCTIONS.get(name)
    if entry is None or not entry.inplace or (not method and not call.args):
        return None
    first = call.func.value if method else call.args[0]  # type: ignore[attr-defined]
    given = [*(call.args if method else call.args[1:])]
    rest = ast.unparse(ast.Call(ast.Name("f"), given, call.keywords))[2:-1]
    short = name.rpartition(".")[2]
    made = f"made = ({ast.unparse(first)})*1; made.{short}_({rest}); made"
    turned = f"made = ({ast.unparse(first)})*1; made.transpose(0, -1).{short}_({rest}); made"
    return made, turned


def programs(text: str) -> Iterator[tuple[Case, Case | None]]:
    """The forms of a sample: each of their outputs, the first ones with views of it; and what is refused."""
    if not samples.program(text)[1]:
        return
    for number, (source, values, plain) in enumerate(forms(text)):
        outputs = _outputs(source, values)
        if outputs is None and parses(source):
            yield Case(source, values), None
        for k in outputs or ():
            take = "{}" if k is None else f"({{}})[{k}]"
            statements, semicolon, last = source.rpartition("; ")
            one = statements + semicolon + take.format(last)
            yield Case(one, values), Case(take.format(plain), values) if plain else None
            if not number:
                for view in VIEWS:
                    viewed = f"made = {one}; {view.replace('{}', 'made')}"
                    yield Case(viewed, values), None


def _outputs(source: str, values: Values) -> list[int | None] | None:
    """Which of the tensors of a program to take: None for its only one; None where it is refused."""
    given = {n: gradcli.tensor(v) for n, v in values.items()}
    with suppress(Exception, TooLong), limited(), np.errstate(all="ignore"):
        found = language.run(language.parse(source), given).value
        many = found if isinstance(found, (tuple, list)) else [found]
        if all(isinstance(o, gradcli.Tensor) and o.numel() < 1000 for o in many):
            return [None] if found is not many else list(range(len(many)))
        return []
    return None


# -- refusals ---------------------------------------------------------------------------------------
def borrowed(error: BaseException) -> str:
    """What is said in words of Python's or NumPy's; "" where PyTorch's words or ours were raised.

    Ours is what a `raise` of a line of gradcli's raised: where the innermost frame is another's, or has
    called what raised without a frame, as NumPy does, nobody has thought of the words.
    """
    while inner := error.__cause__ or error.__context__:
        if not isinstance(error, language.LanguageError) and str(inner) != str(error):
            break  # said anew
        error = inner
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or ran_out(error) or BORROWED.search(str(error)):
        return ""
    code = trace.tb_frame.f_code
    own = code.co_filename.startswith((OURS, "<gradcli"))
    if own and dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS":
        return ""
    return f"{type(error).__name__} in {Path(code.co_filename).stem}.{code.co_name}: {error}"


def refused(case: Case) -> str:
    """What a program says in borrowed words where it is refused: recorded, mapped, forward, as a plan."""

    def forward() -> Any:
        given = case.tensors()
        own = tuple(given[n] for n in case.wrt)
        return gradcli.func.jvp(
            lambda *v: case.run({**given, **dict(zip(case.wrt, v, strict=True))}), own, own
        )

    def in_map() -> Any:
        given = case.tensors()
        names = list(given)
        twice = tuple(gradcli.stack([given[n]] * 2) for n in names)
        return gradcli.func.vmap(lambda *v: case.run(dict(zip(names, v, strict=True))))(*twice)

    ways: dict[str, Callable[[], Any]] = {
        "recorded": lambda: case.run(case.tensors(track=True)),
        "mapped": in_map,
        "as a plan": lambda: gradcli.compile(case.source)(**case.tensors()),
    }
    if case.wrt:
        ways["forward"] = forward
    for way, run_it in ways.items():
        before = modes.local.state
        try:
            with np.errstate(all="ignore"):
                run_it()
        except Exception as error:
            if said := borrowed(error):
                return f"refused, {way}, in words of Python's: {said}"
        finally:
            modes.restore(before)
    return ""


# -- ways -------------------------------------------------------------------------------------------
def close(found: Any, wanted: Any, what: str) -> None:
    """Raise Differ unless they agree, to the accuracy of their dtype."""
    a, b = (np.asarray(v.detach().numpy()) for v in (found, wanted))
    if a.dtype != b.dtype:
        raise Differ(f"{what}: dtype {a.dtype}, not {b.dtype}")
    rtol = 2e-4 if b.dtype in (np.float32, np.complex64) else 1e-7
    parts = (a.real, b.real, a.imag, b.imag) if b.dtype.kind == "c" else (a, b)
    for k in range(0, len(parts), 2):
        if (
            (np.isfinite(parts[k]) != np.isfinite(parts[k + 1])).any()
            if a.shape == b.shape
            else False
        ):
            raise Differ(f"{what}: {a.tolist()}, not {b.tolist()}")
        same(parts[k], parts[k + 1], what, rtol)


def places(case: Case, name: str) -> list[Case]:
    """The program at three values of one of its variables."""
    own = case.values[name]
    numbers = np.random.default_rng(11)
    found = []
    for k in range(3):
        step = k * numbers.uniform(1e-3, 3e-3, own.shape)
        value = (own + step).astype(own.dtype) if own.dtype.kind in "fc" else np.roll(own, k)
        found.append(Case(case.source, case.values | {name: value}))
    return found


def slopes(case: Case) -> Callable[..., Any]:
    """The gradient of the sum of the program as a function of its variables by name."""

    def found(**given: Any) -> Any:
        def total(*own: Any) -> Any:
            value = case.run({**given, **dict(zip(case.wrt, own, strict=True))})
            return (value.abs() if value.is_complex() else value).sum()

        every = tuple(range(len(case.wrt)))
        return gradcli.func.grad(total, every)(*(given[n] for n in case.wrt))

    return found


def mapped(case: Case) -> None:
    """The value and the gradients mapped over each argument along each dimension, and in another map."""
    if "beta=0.5" in case.source and not case.wrt:
        return  # of integers, which PyTorch takes for numbers with a point where they are mapped
    if "addbmm" in case.source and not case.wrt:
        return  # of integers, whose sum PyTorch leaves in 64 bits where it is mapped
    functions: dict[str, Callable[..., Any]] = {"it": lambda **given: (case.run(given),)}
    if case.wrt and _depends(case):
        functions["its gradient"] = slopes(case)
    for (what, function), name in product(functions.items(), case.values):
        _over(case, f"vmap of {what} over {name}", function, name)
    for a, b in permutations(case.values, 2):
        _crossed(case, list(functions.values())[-1], a, b)


def _over(case: Case, what: str, function: Callable[..., Any], name: str) -> None:
    """A map over one argument, along each dimension, and maps over its first and its last two."""
    points = places(case, name)
    rows = [function(**p.tensors()) for p in points]
    given = case.tensors()

    def one(x: Any) -> Any:
        return function(**{**given, name: x})

    last = 0 if BY_MEMORY.search(case.source) else case.values[name].ndim
    for dim in range(last + 1):
        together = gradcli.tensor(np.stack([p.values[name] for p in points], dim))
        _compare(gradcli.func.vmap(one, dim)(together), rows, f"{what} by {dim}")
        if dim == last:
            twice = gradcli.func.vmap(gradcli.func.vmap(one, dim))(gradcli.stack([together] * 2))
            _compare([f[1] for f in twice], rows, f"{what} by {dim}, in another")


def _crossed(case: Case, function: Callable[..., Any], a: str, b: str) -> None:
    """A map over one argument in a map over another."""
    outer, inner = places(case, a)[:2], places(case, b)[:2]
    given = case.tensors()
    rows = [[function(**{**given, **_only(p, a), **_only(q, b)}) for q in inner] for p in outer]
    over = [
        gradcli.tensor(np.stack([p.values[n] for p in ps])) for n, ps in ((a, outer), (b, inner))
    ]

    def one(x: Any, y: Any) -> Any:
        return function(**{**given, a: x, b: y})

    def row(x: Any, ys: Any) -> Any:
        return gradcli.func.vmap(one, (None, 0))(x, ys)

    found = gradcli.func.vmap(row, (0, None))(*over)
    for k in range(2):
        _compare([f[k] for f in found], rows[k], f"vmap over {b} in a vmap over {a}")


def _only(case: Case, name: str) -> dict[str, Any]:
    return {name: case.tensors()[name]}


def _compare(found: Any, rows: list[Any], what: str) -> None:
    for k, row in enumerate(rows):
        for f, w in zip(found, row, strict=True):
            close(f[k], w, f"{what}, entry {k}")


def _depends(case: Case) -> bool:
    value = case.run(case.tensors(track=True))
    return bool(value.requires_grad and (value.is_floating_point() or value.is_complex()))


def planned(case: Case) -> None:
    """The plan, and the plan three elements at a time."""
    wanted = case.run(case.tensors())
    compiled = gradcli.compile(case.source)
    for _ in range(2):
        close(compiled(**case.tensors()), wanted, "plan")
    for plan in compiled.plans.values():
        if isinstance(plan, CompiledProgram):
            inputs = list(plan.trace.inputs.values())
            blocks = Executor(plan.trace.outputs, inputs, block=3, threads=2, smallest=2)
            own = [case.values[n] for n in plan.trace.inputs]
            value, *_ = blocks(*(v.copy() if v.ndim else v[()] for v in own))
            close(gradcli.tensor(value), wanted, "plan in blocks")


def derived(case: Case) -> None:
    """Forward mode, forward over reverse and reverse over reverse, and the plan's gradients."""
    value = case.run(case.tensors())
    if (
        not case.wrt
        or not value.is_floating_point()
        or "float32" in {str(case.values[n].dtype) for n in case.values}
    ):
        return
    expected = tape(case)
    if all(np.isfinite(g).all() for g in [value.detach().numpy(), *expected.values()]):
        for name in ("jvp", "hessian", "plan", "jacobian, forward"):
            try:
                pairs.PAIRS[name](case, expected)
            except Differ as error:
                raise Differ(f"{name}, {error}") from None


def as_before(case: Case, plain: Case | None) -> None:
    """The value and gradients of a program that means the same."""
    if plain is None:
        return
    wanted, found = plain.run(plain.tensors()), case.run(case.tensors())
    if case.source.startswith("made = ") and (found.dtype, found.shape) != (
        wanted.dtype,
        wanted.shape,
    ):
        return  # written to what the operand was
    close(found, wanted, "the value")
    if case.wrt and _depends(plain):
        slope = tape(plain)
        for n, g in tape(case).items():
            same(g, slope[n], f"the gradient by {n}", 2e-4 if case.values[n].itemsize < 8 else 1e-7)


def wrong(case: Case, plain: Case | None) -> str:
    """What is wrong with a form; "" for nothing, or where the program itself is refused in words."""
    try:
        with np.errstate(all="ignore"):
            case.run(case.tensors())
            if case.wrt:
                tape(case)
    except Exception as error:
        if ran_out(error):
            return str(error)
        said = borrowed(error)
        return f"refused in words of Python's: {said}" if said else refused(case)
    for way in (mapped, planned, derived, lambda case: as_before(case, plain)):
        before = modes.local.state
        try:
            with np.errstate(all="ignore"):
                way(case)
        except Differ as error:
            if plain is None or way is not derived or not wrong(plain, None):  # a singular point
                return str(error)
        except Exception as error:
            if not pairs._is_refusal(error) and not REFUSALS.search(str(error)):
                return f"{type(error).__name__}: {str(error).splitlines()[:1]}"
        finally:
            modes.restore(before)
    return ""


def texts() -> list[str]:
    """The samples that are swept: the longest of those that differ in the sizes of their operands alone."""
    found: dict[str, str] = {}
    for text in sorted(samples.texts(), key=len):
        if not LEFT_OUT.search(text):
            found[re.sub(r"\b(randn?|ones|zeros)\((\(\)|[^()]*)\)", "x", text)] = text
    return list(found.values())


def failures(text: str) -> Iterator[str]:
    """What is wrong with the forms of a sample, each kind of failure once."""
    found: set[str] = set()
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for case, plain in programs(text):
                try:
                    with limited():
                        said = wrong(case, plain)
                except TooLong as error:
                    said = str(error)
                if said and pairs.kind(said) not in found:
                    found.add(pairs.kind(said))
                    yield f"{text}: {case}\n    {said}"
    finally:
        gradcli.set_default_dtype(before)


def run(seed: int, seconds: float) -> Iterator[str]:
    """What is wrong with the forms of the samples, which come in the order of the seed; once round them."""
    for text in once_round(texts(), seed, seconds):
        yield from failures(text)

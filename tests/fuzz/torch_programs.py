"""Random programs against torch: every operator of the table outside nn, over dtypes, shapes, special values.

A program is lines of Python that bind tensors and call functions, methods, operators, indices and
in-place forms, and go backward at last. After every line the two implementations are compared: what
was raised; of every tensor dtype, shape, values, whether it is a leaf, its node and that node's
inputs; of every leaf the gradient. The calls are the table's own samples with other operands.

Failures are grouped into classes (the function, what differs), each with a program from which no line
can be taken away.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import itertools
import random
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz import TooLong, cases, limited

NN = frozenset(["nn", "losses", "attention", "sequences"])  # families with tests of their own
# Not asked: what reads the clock or memory that nobody wrote, or changes the state of the process.
SKIPPED = frozenset(
    [
        *("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "resize_", "set_"),
        *(
            "new_empty_strided",
            "resize_as_",
            "seed",
            "initial_seed",
            "get_rng_state",
            "set_rng_state",
        ),
        *("manual_seed", "rand", "randn", "randint", "rand_like", "randn_like", "randint_like"),
        *("randperm", "normal", "bernoulli", "multinomial", "poisson", "set_printoptions"),
        *("set_default_dtype", "set_grad_enabled", "share_memory_", "numpy", "binomial"),
    ]
)
FLOATS = ("float32", "float32", "float64", "float16")
WHOLE = ("int64", "int64", "int32", "int16", "int8", "uint8")
SPECIAL = ("0.0", "-0.0", "inf", "-inf", "nan", "1.0", "-1.0", "0.5")
NUMBERS = ("0", "1", "2", "-1", "3", "0.5", "-0.0", "2.5", "300", "1e6", "True", "inf", "nan", "-2")
SHAPES: tuple[tuple[int, ...], ...] = (
    *((), (1,), (3,), (2, 3), (3, 2), (3, 3), (2, 2), (1, 3), (2, 1, 3)),
    *((0,), (0, 3), (2, 0), (4,), (2, 3, 2)),
)
BINARY = ("+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^")
SHIFTS = ("<<", ">>", "@")
INDICES = (
    *("0", "-1", "...", "None", ":", "::2", "1:", "[0, 0]", "True", "..., 0", ":, 0", "0:0", "5"),
    "torch.tensor([0, 1])",
)
# Where gradcli is meant to differ from torch: what the line and the difference match, and why.
MEANT: tuple[tuple[str, str, str], ...] = (
    (r"svd|eigh?\b|eigh?\(", "values|zero", "LAPACK chooses the signs of vectors"),
    (
        r"linalg|lu|triangular|cholesky|qr|matrix_exp|reciprocal",
        "sign of zero",
        "signs of zeros are the LAPACK's that is at hand",
    ),
    (
        r"clamp|min|max|relu|hardtanh|unique|sort|median",
        "sign of zero",
        "which of 0 and -0 is the larger is the processor's choice, in torch too",
    ),
    (
        r" [-+] |[-+]= |(add|sub|rsub|subtract)_?\(",
        r"(nan|inf) .*j\)",
        "torch multiplies by alpha = 1+0j, which makes NaN of what is infinite; gradcli adds",
    ),
    (
        r"",
        r"operands overlap",
        "torch reads what it has just written: true is what was there before the line",
    ),
    (
        r"",
        r"refused .*(svd|lu|eigh|chol|histogram).*'Half'",
        "LAPACK has no float16; torch looks no closer at empty matrices",
    ),
    (r"fft", "nan|zero", "how far NaN spreads, and signs of zero, are the algorithm's"),
    (r"svd|qr|pinv|cholesky_inverse|triangular|householder", "nan", "where NaN lands in a result"),
    (r"cholesky_inverse", "values", "complex diagonals, of which LAPACK reads a part"),
    (r"bessel", "requires_grad", "gradcli has derivatives that torch has not"),
    (r"(std|var)_mean", "nan", "the mean beside an infinity: torch's is of the running kind"),
    (r"vander", "graph|grad", "torch writes over what it saved, and refuses its own backward"),
    (
        r"as_strided_scatter",
        "gradient",
        "torch's is wrong where the source is complex and self real",
    ),
    (r"", "INTERNAL ASSERT|MKL FFT", "faults of torch's"),
    (
        r"",
        r"ArrayRef|std::vector|static_cast|setStorage|multiplication overflow|Could this error message",
        "where torch's words are about its C++, gradcli's are about the call",
    ),
    (
        r"",
        r"refused .*out of bounds",
        "an index outside is one, even where there is nothing to take",
    ),
    (r" \*\* ", "nan .*j\\)", "powers of 0 to complex numbers are the C library's"),
    (r"a?(cos|sin|tan)h?|sqrt|log|\*\*", r"sign of zero .*j", "on cuts of branches, as are signs"),
    (r"signbit|copysign", "values", "the sign of a NaN is the library's that made it"),
    (
        r"erfcx|log_ndtr",
        "gradient: (nan|inf|values)",
        "gradcli's slopes keep their accuracy far out, where torch's cancel",
    ),
    (r"linalg|solve|inverse", "nan", "where LAPACK's NaN and infinities land"),
    (r"logit", "gradient: inf", "torch's sign at -0.0 depends on the layout"),
    (r"dot|mm|mv|@|matmul|einsum|trapezoid", "sign of zero", "sums of products begin with 0"),
    (r"matrix_exp", "refused", "torch's of float16 is far off"),
    (r"", "complex32|ComplexHalf", "gradcli has no complex32"),
    (r"complex|polar", "dtype", "gradcli has no complex32"),
    (r"", "ZeroTensors", "torch's gradients of zeros are immutable, without need"),
)


# -- calls ----------------------------------------------------------------------------------------
@dataclass
class Slot:
    """An operand of a sample: a tensor of that shape and dtype."""

    text: str
    shape: tuple[int, ...]
    dtype: str


@dataclass
class Template:
    """A call with places for operands: parts are text or Slots."""

    name: str
    parts: list[str | Slot]
    inplace: bool
    method: bool


def _templates(torch: Any) -> list[list[Template]]:
    """The calls of every function outside nn, by function."""
    from gradcli.engine.registry import table

    found = []
    for entry in table.entries():
        base = entry.name.rpartition(".")[2]
        if entry.family in NN or base in SKIPPED or "nn." in entry.name:
            continue
        templates = []
        for sample in entry.samples:
            with contextlib.suppress(SyntaxError, LookupError, AttributeError, TypeError):
                templates.append(_template(sample, entry, torch))
        if templates:
            found.append(templates)
    return found


def _template(sample: str, entry: Any, torch: Any) -> Template:
    body = ast.parse(sample, mode="eval").body
    if not isinstance(body, ast.Call) or any(isinstance(a, ast.Starred) for a in body.args):
        raise LookupError(sample)
    parts: list[str | Slot] = []
    function = body.func
    path = ast.unparse(function)
    receiver = isinstance(function, ast.Attribute) and not re.fullmatch(r"[\w.]+", path)
    if receiver:
        assert isinstance(function, ast.Attribute)
        parts += [_operand(function.value, torch), f".{function.attr}("]
    else:
        owner: Any = torch
        for name in path.split("."):
            owner = getattr(owner, name)
        parts += [f"torch.{path}("]
    for i, argument in enumerate(body.args):
        parts += [", "] if i else []
        parts += _argument(argument, torch)
    for i, keyword in enumerate(body.keywords):
        parts += [", "] if i or body.args else []
        parts += [f"{keyword.arg}=", *_argument(keyword.value, torch)]
    parts.append(")")
    method = not receiver and entry.method and "." not in entry.name and len(body.args) > 0
    return Template(entry.name, parts, entry.inplace, method)


def _argument(node: ast.expr, torch: Any) -> list[str | Slot]:
    if isinstance(node, (ast.List, ast.Tuple)):
        marks = "[]" if isinstance(node, ast.List) else "()"
        parts: list[str | Slot] = [marks[0]]
        for element in node.elts:
            parts += [*_argument(element, torch), ", "]
        return [*parts, marks[1]]
    return [_operand(node, torch)]


class _Prefix(ast.NodeTransformer):
    """Names of the language as attributes of torch."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in ("inf", "nan"):
            return node
        if not hasattr(self.torch, node.id):
            raise LookupError(node.id)
        return ast.Attribute(ast.Name("torch", ast.Load()), node.id, ast.Load())


def _operand(node: ast.expr, torch: Any) -> str | Slot:
    prefixed = ast.unparse(ast.fix_missing_locations(_Prefix(torch).visit(node)))
    value = eval(prefixed, {"torch": torch, "inf": float("inf"), "nan": float("nan")})
    if isinstance(value, torch.Tensor):
        return Slot(prefixed, tuple(value.shape), str(value.dtype).removeprefix("torch."))
    return prefixed


# -- programs -------------------------------------------------------------------------------------
@dataclass
class Maker:
    """Writes a program line by line; knows what has been bound."""

    random: random.Random
    templates: list[list[Template]]
    lines: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)

    def program(self) -> list[str]:
        """A few tensors, a few steps, and the way back."""
        pick = self.random
        for _ in range(pick.randint(1, 3)):
            self.fresh(pick.choice(SHAPES), pick.choice(FLOATS), leaf=pick.random() < 0.7)
        for _ in range(pick.randint(1, 5)):
            pick.choices([self.call, self.operator, self.index], [7, 2, 1])[0]()
        return self.lines

    def name(self) -> str:
        return f"v{len(self.lines)}"

    def values(self, count: int, dtype: str) -> list[str]:
        pick = self.random
        special = pick.random() < 0.3
        if dtype == "bool":
            return [pick.choice(("True", "False")) for _ in range(count)]
        if "int" in dtype:
            low = 0 if dtype == "uint8" else -4
            return [str(pick.randint(low, 5)) for _ in range(count)]
        if "complex" in dtype:
            return [f"{pick.uniform(-2, 2):.2f}{pick.uniform(-2, 2):+.2f}j" for _ in range(count)]
        positive = pick.random() < 0.3
        return [
            pick.choice(SPECIAL)
            if special and pick.random() < 0.5
            else f"{pick.uniform(0.1 if positive else -3, 3):.3f}"
            for _ in range(count)
        ]

    def fresh(self, shape: tuple[int, ...], dtype: str, leaf: bool = False) -> str:
        """Bind a tensor of numbers."""
        count = int(np.prod(shape))
        grad = ", requires_grad=True" if leaf and ("float" in dtype or "complex" in dtype) else ""
        if count:
            text = str(np.array(self.values(count, dtype), object).reshape(shape).tolist())
            made = f"torch.tensor({text.replace(chr(39), '')}, dtype=torch.{dtype}{grad})"
        else:
            made = f"torch.zeros({shape}, dtype=torch.{dtype}{grad})"
        return self.bind(made, shape, dtype)

    def bind(self, text: str, shape: tuple[int, ...] = (), dtype: str = "float32") -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        self.shapes[name], self.dtypes[name] = shape, dtype
        return name

    def operand(self, slot: Slot) -> str:
        """A tensor for a slot: one that is there, or a new one, mostly of the slot's kind."""
        pick = self.random
        plain = "float" in slot.dtype
        if self.shapes and pick.random() < 0.45 and plain:
            alike = [n for n, s in self.shapes.items() if len(s) == len(slot.shape)]
            return pick.choice(alike if alike and pick.random() < 0.8 else list(self.shapes))
        dtype, shape = slot.dtype, slot.shape
        if plain and pick.random() < 0.6:
            dtype = pick.choice((*FLOATS, *WHOLE, "bool", "complex64", "complex128"))
        if pick.random() < 0.1:
            shape = pick.choice(SHAPES)
        if not plain and (pick.random() < 0.8 or shape != slot.shape):
            return slot.text
        return self.fresh(shape, dtype, leaf=pick.random() < 0.6)

    def call(self) -> None:
        """A function of the table, as a function, a method, or in place."""
        pick = self.random
        template = pick.choice(pick.choice(self.templates))
        parts = [p if isinstance(p, str) else self.operand(p) for p in template.parts]
        for i, part in enumerate(parts):
            if re.fullmatch(r"-?[\d.]+|True|False", part) and pick.random() < 0.15:
                parts[i] = pick.choice(NUMBERS)
        text = "".join(parts).replace("(, ", "(")
        slots = isinstance(template.parts[1], Slot) if len(template.parts) > 1 else False
        if template.method and slots and pick.random() < 0.35:
            target = parts[1]
            rest = "".join(parts[2:]).removeprefix(", ")
            suffix = "_" if template.inplace and pick.random() < 0.6 else ""
            if suffix and pick.random() < 0.7 and target in self.shapes:
                target = self.bind(f"{target}.clone()", self.shapes[target], self.dtypes[target])
            text = f"{target}.{template.name}{suffix}({rest}"
        self.bind(text, *self._like(parts))

    def _like(self, parts: list[str]) -> tuple[tuple[int, ...], str]:
        known = [p for p in parts if p in self.shapes]
        return (self.shapes[known[0]], self.dtypes[known[0]]) if known else ((3,), "float32")

    def any_tensor(self) -> str:
        pick = self.random
        if pick.random() < 0.3:
            dtype = pick.choice((*FLOATS, *WHOLE, "bool", "complex64"))
            return self.fresh(pick.choice(SHAPES), dtype)
        return pick.choice(list(self.shapes))

    def operator(self) -> None:
        """One of Python's operators, reflected and augmented ones too."""
        pick = self.random
        sign = pick.choice((*BINARY, *SHIFTS, "+", "*", "/"))
        a = self.any_tensor()
        b = pick.choice(NUMBERS) if pick.random() < 0.5 else self.any_tensor()
        if pick.random() < 0.2 and sign not in ("<", "<=", ">", ">=", "==", "!=", "@"):
            self.lines.append(f"{a} {sign}= {b}")
            return
        if pick.random() < 0.4:
            a, b = b, a
        self.bind(f"{a} {sign} {b}", *self._like([a, b]))

    def index(self) -> None:
        """Read or write a part."""
        pick = self.random
        name, at = self.any_tensor(), pick.choice(INDICES)
        if pick.random() < 0.5:
            self.bind(f"{name}[{at}]", self.shapes[name][1:], self.dtypes[name])
            return
        if pick.random() < 0.7:
            name = self.bind(f"{name}.clone()", self.shapes[name], self.dtypes[name])
        value = pick.choice(NUMBERS) if pick.random() < 0.5 else self.any_tensor()
        self.lines.append(f"{name}[{at}] = {value}")


# What crashes torch's process, or asserts there, where a matrix is not finite.
_CRASHES = re.compile(r"eig|hermitian|lstsq")


def every_sample(torch: Any, operand: str, variants: Iterable[str]) -> Iterator[list[str]]:
    """The samples of every function with other operands: programs of one line.

    operand: what stands for a floating-point operand, with {0} for the sample's own and {1} for a
    variant. Of several operands, all are replaced, and all but the first.
    """
    for templates in _templates(torch):
        for template in templates[:3]:
            slots = [part for part in template.parts if isinstance(part, Slot)]
            floats = [slot for slot in slots if "float" in slot.dtype]
            for variant, kept in itertools.product(variants if floats else (), (0, 1)):
                if len(floats) > kept:
                    other = {id(s): operand.format(s.text, variant) for s in floats[kept:]}
                    parts = [
                        p if isinstance(p, str) else other.get(id(p), p.text)
                        for p in template.parts
                    ]
                    yield [f"v0 = {''.join(parts)}".replace("(, ", "(")]


# -- comparing ------------------------------------------------------------------------------------
class Side:
    """One implementation running a program."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.space = {"torch": module, "inf": float("inf"), "nan": float("nan")}

    def run(self, line: str) -> tuple[str, str]:
        """What the line raised: (type, message); empty where nothing."""
        self.module.manual_seed(0)
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                exec(line, self.space)
        except Exception as error:  # a refusal is an answer
            return type(error).__name__, _normal(str(error))
        return "", ""

    def is_finite(self, line: str) -> bool:
        """Whether all tensors that the line names are finite."""
        named = {n: v for n, v in self.tensors() if n in line and hasattr(v, "grad_fn")}
        return all(bool(v.isfinite().all()) for v in named.values())

    def overlaps(self, line: str) -> bool:
        """Whether a line writes into a tensor whose memory another operand sees in another way."""
        written = re.search(r"(v\d+)(\.\w+_\(|\[.*\] = | [^ \w]+= )", line)
        if written is None or not hasattr(self.space.get(written[1]), "stride"):
            return False
        target, *others = (
            (x.untyped_storage().data_ptr(), x.storage_offset(), x.stride(), x.shape)
            for x in map(self.space.get, [written[1], *re.findall(r"v\d+", line)])
            if hasattr(x, "stride")
        )
        return any(other[0] == target[0] and other != target for other in others)

    def tensors(self) -> Iterator[tuple[str, Any]]:
        for name, value in self.space.items():
            if re.fullmatch(r"[vg]\d+", name):
                yield from _flat(name, value)


def _normal(text: str) -> str:
    text = re.sub(r" \(Triggered internally.*|Exception raised from.*", "", text, flags=re.S)
    text = re.sub(r"torch\.(return_types\.|(?=Size|dtype))", "", text)  # Python's names of classes
    return re.sub(r"0x[0-9a-f]+", "0x…", text).strip()


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (tuple, list)):
        yield f"len({name})", len(value)
        for i, part in enumerate(value):
            yield from _flat(f"{name}[{i}]", part)
    else:
        yield name, value


def _facts(value: Any) -> list[tuple[str, Any]]:
    """What is compared exactly of a tensor, and how a difference is called."""
    node = value.grad_fn
    above = (
        [] if node is None else [None if n is None else n.name() for n, _ in node.next_functions]
    )
    return [
        ("dtype", str(value.dtype)),
        ("shape", tuple(value.shape)),
        ("requires_grad", bool(value.requires_grad)),
        ("graph", None if node is None else node.name()),
        ("graph", above),
    ]


_ROUNDING = {"float16": (4e-3, 2e-3), "float32": (2e-4, 1e-6)}  # relative, absolute


def _array(value: Any) -> Any:
    return np.asarray(value.resolve_conj().resolve_neg().numpy(force=True))


def _differs(a: Any, b: Any, size: float = 0.0) -> str:
    """How the values of two arrays differ: "" where they do not. size: of the numbers around them."""
    if a.dtype.kind in "biu":
        return "" if np.array_equal(a, b) else "values"
    if a.dtype.kind == "c":
        sizes = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        parts = [(a.real, b.real), (a.imag, b.imag)]
        return next((found for x, y in parts if (found := _differs(x, y, sizes))), "")
    close, least = _ROUNDING.get(a.dtype.name, (1e-7, 1e-13))
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "nan"
    with np.errstate(all="ignore"):
        if not np.array_equal(np.where(np.isinf(a), a, 0), np.where(np.isinf(b), b, 0)):
            return "inf"
        finite = np.isfinite(a) & np.isfinite(b)
        x, y = a[finite], b[finite]
        size = np.maximum(np.abs(x), np.abs(y)).max(initial=size)
        if np.any(np.abs(x - y) > close * size + least):
            return "values"
    zero = (a == 0) & (b == 0)
    return "sign of zero" if np.any(np.signbit(a[zero]) != np.signbit(b[zero])) else ""


def _compare(ours: Any, theirs: Any) -> tuple[str, str]:
    """(kind, details) of the first difference between two values; kind "" where there is none."""
    if type(ours).__name__ != type(theirs).__name__ and {"Tensor", "Parameter"} & {
        type(ours).__name__,
        type(theirs).__name__,
    }:
        return "type", f"torch {type(theirs).__name__}, gradcli {type(ours).__name__}"
    if not hasattr(theirs, "grad_fn"):
        same = str(ours) == str(theirs)
        return ("", "") if same else ("result", f"torch {theirs}, gradcli {ours}")
    for (what, own), (_, wanted) in zip(_facts(ours), _facts(theirs), strict=True):
        if own != wanted:
            return what, f"torch {wanted}, gradcli {own}"
    a, b = _array(ours), _array(theirs)
    if kind := _differs(a, b):
        return kind, f"torch {b.tolist()}, gradcli {a.tolist()}"
    return "", ""


@dataclass
class Failure:
    """Where two runs of a program part."""

    kind: str
    line: str
    details: str

    @property
    def key(self) -> tuple[str, str]:
        """The class: the function (or operator) and what differs."""
        return _subject(self.line), self.kind


def _subject(line: str) -> str:
    text = line.partition(" = ")[2] or line
    called = re.match(r"torch\.([\w.]+)\(|.*\.(\w+)\(", text)
    if called:
        return called[1] or called[2]
    sign = re.search(r" (\S+) ", text)
    return (
        f"x[…]{' =' if '] =' in line else ''}"
        if "[" in text or "] =" in line
        else (sign[1] if sign else text)
    )


def _steps(lines: list[str]) -> list[str]:
    """The program, and backward from each tensor that it binds."""
    names = [line.partition(" = ")[0] for line in lines if re.match(r"v\d+ = ", line)]
    back = []
    for name in names[-2:]:
        back.append(f"{name}.backward(torch.ones_like({name}), retain_graph=True)")
        back.append(
            f"g{name[1:]} = torch.autograd.grad({name}, [{', '.join(names[:2])}], "
            f"torch.ones_like({name}), create_graph=True, allow_unused=True)"
        )
    return lines + back


def attempt(lines: list[str], torch: Any, gradcli: Any) -> Failure | None:
    """Run a program on both sides, line by line; the first difference."""
    ours, theirs = Side(gradcli), Side(torch)
    for line in lines:
        back = re.search(r"(v\d+)\.backward|grad\((v\d+)", line)
        if back and not hasattr(theirs.space.get(back[1] or back[2]), "grad_fn"):
            continue  # no tensor
        if _CRASHES.search(line) and not theirs.is_finite(line):
            return None
        wanted = theirs.run(line)
        found = ours.run(line)
        if found[0] != wanted[0]:
            if not wanted[0]:
                return Failure("refused", line, f"gradcli: {': '.join(found)}")
            if not found[0]:
                return Failure("taken", line, f"torch: {': '.join(wanted)}")
        if found[0] and re.search(r"_\(|\] = | [^ \w]+= ", line):
            return None  # what torch writes before it refuses is not compared
        if found != wanted:
            details = f"torch {': '.join(wanted)}\n  gradcli {': '.join(found)}"
            return Failure("words", line, details)
        if found[0] and ".backward(" in line:
            return None  # nor how far it comes
        pairs = zip(ours.tensors(), theirs.tensors(), strict=False)
        for (name, a), (other, b) in pairs:
            kind, details = _compare(a, b) if name == other else ("length", f"{name} {other}")
            if not kind and getattr(b, "is_leaf", False) and b.requires_grad:
                kind, details = _compare(a.grad, b.grad)
                back = back or kind
            if kind:
                what = f"gradient: {kind}" if back else kind
                details += ", operands overlap" if theirs.overlaps(line) else ""
                return Failure(what, line, f"{name}: {details}")
    return None


def _shrunk(
    lines: list[str], failure: Failure, retry: Callable[[list[str]], Failure | None]
) -> Any:
    """The program without the lines that the failure does not need."""
    start = lines.index(failure.line) + 1 if failure.line in lines else len(lines)
    lines = lines[:start]
    for i in reversed(range(len(lines))):
        fewer = lines[:i] + lines[i + 1 :]
        found = retry(fewer) if fewer else None
        if found is not None and found.kind == failure.kind and found.line == failure.line:
            lines, failure = fewer, found
    return lines, failure


def _rounding(lines: list[str], failure: Failure, retry: Any) -> bool:
    """Whether a difference of values is gone in double precision, where only rounding makes it."""
    if not failure.kind.endswith(("values", "inf", "nan")):
        return False
    text = "\n".join(lines)
    double = re.sub(r"float(16|32)", "float64", text).replace("complex64", "complex128")
    return double != text and retry(double.split("\n")) is None and "uint" not in text


def _subject_of(lines: list[str], failure: Failure) -> str:
    """The function whose result the failing line goes back from, or calls."""
    name = re.match(r"(v\d+)\.backward|g\d+ = torch.autograd.grad\((v\d+)", failure.line)
    if name is None:
        return _subject(failure.line)
    wanted = name[1] or name[2]
    made = [line for line in lines if line.startswith(f"{wanted} = ")]
    return _subject(made[0]) if made else _subject(failure.line)


def _is_meant(lines: list[str], failure: Failure) -> bool:
    """Whether a difference is one of those that are meant, at the failing line or where it goes back to."""
    name = re.search(r"(v\d+)\.backward|grad\((v\d+)", failure.line)
    made = f"{name[1] or name[2]} = " if name else failure.line
    text = next((line for line in lines if line.startswith(made)), failure.line)
    what = f"{failure.kind} {failure.details}"
    return any(re.search(line, text) and re.search(kind, what) for line, kind, _ in MEANT)


def run(seed: int, seconds: float) -> Iterator[str]:
    """A minimal program for every class of differences; none where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        print("torch_programs: torch is not installed, nothing to compare with")
        return
    torch, gradcli = importlib.import_module("torch"), importlib.import_module("gradcli")
    torch.set_num_threads(1)
    found: set[tuple[str, str]] = set()
    templates = _templates(torch)
    tried, start = 0, time.monotonic()

    def retry(lines: list[str]) -> Failure | None:
        try:
            with limited():
                return attempt(lines, torch, gradcli)
        except TooLong as error:
            return Failure("time", lines[-1], str(error))

    for pick in cases(seed, seconds):
        tried += 1
        lines = _steps(Maker(pick, templates).program())
        failure = retry(lines)
        if failure is None or _is_meant(lines, failure):
            continue
        lines, failure = _shrunk(lines, failure, retry)
        if _rounding(lines, failure, retry):
            continue
        key = _subject_of(lines, failure), failure.kind
        if key not in found:
            found.add(key)
            told = "\n  ".join([*lines, failure.details])
            yield f"{': '.join(key)}\n  {told}"
    print(f"torch_programs: {tried} programs in {time.monotonic() - start:.0f} s")

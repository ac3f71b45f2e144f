"""Random nests of `func`'s transforms against torch: functions that close over what is around them.

A program defines functions inside of functions, up to four transforms deep, each of which reads leaves of
the program, the variables of the transforms around it and what has been computed there; under grad modes
at any level, with in-place writes, custom Functions and results besides (`has_aux`). Compared with torch
are what is refused, the results (values, and whether they are recorded), and the first and second
derivatives of the results by the leaves.

Failures are grouped into classes (what differs, what the program uses), each with a program from which
nothing can be taken away.
"""

from __future__ import annotations

import ast
import copy
import importlib
import importlib.util
import random
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests import fuzz
from tests.fuzz import TooLong, cases, limited

Shape = tuple[int, ...]

DEEPEST = 4
SHAPES: tuple[Shape, ...] = ((), (3,))
LEAVES: dict[str, tuple[Shape, str]] = {
    "w": ((), "0.7, requires_grad=True"),
    "k": ((3,), "[0.4, -0.9, 1.2], requires_grad=True"),
    "c": ((), "1.3"),
    "d": ((3,), "[0.5, 0.8, -0.6]"),
    "X": ((2, 3), "[[0.2, -0.4, 0.9], [1.1, 0.3, -0.7]]"),
}
WRT = ("w", "k")
MODES = (*("no_grad", "enable_grad") * 3, "inference_mode")
UNARY = ("sin", "cos", "tanh", "square", "clone")
WRITES = ("{}.mul_({})", "{}.add_({})", "{}.copy_({})", "{}.sub_({})", "{}.sin_()")

# Custom Functions of one argument: what they are like, in the order of Plain, Ruled, Mapped, Old.
FUNCTIONS = {
    "Plain": """\
class Plain(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3*x**2*g
""",
    "Ruled": """\
class Ruled(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return x.sin()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g*x.cos()
    @staticmethod
    def jvp(ctx, t):
        x, = ctx.saved_tensors
        return t*x.cos()
""",
    "Mapped": """\
class Mapped(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x*x
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2*Ruled.apply(x)*g
    @staticmethod
    def vmap(info, in_dims, x):
        return Mapped.apply(x), in_dims[0]
""",
    "Old": """\
class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g*x.exp()
""",
}
FORWARD = re.compile(r"func\.(jvp|jacfwd|hessian)")
_LEAF = re.compile(r"(?m)^([wkcdX] = torch\.tensor\()(.*?), dtype")
LARGEST = 1e9  # of the numbers that are compared
# Where gradcli is meant to differ from torch: what the program and the difference match, and why.
MEANT: tuple[tuple[str, str, str], ...] = (
    ("", "INTERNAL ASSERT|Cannot access data pointer", "faults of torch's"),
    (
        "inference_mode",
        "Cannot set version_counter",
        "torch cannot make views of its wrappers there",
    ),
    ("out_dims=1", "The expanded size", "torch expands what is the same for all entries in front"),
    (
        "jac|hessian",
        "taken torch.*more than one element of the written-to",
        "torch's Jacobian of what does not depend is one zero, shown everywhere",
    ),
    ("jac|hessian", "returns multiple views", "torch splits Jacobians without a graph"),
    (
        r"vmap\((.|\n)*\b(r\d+)(\.(mul|add|sub|copy)_\(|\[\d\] = )\2\b",
        "refused gradcli.*some elements of the input tensor and the written-to",
        "in a batch torch reads what it has just written over; for one entry it refuses, too",
    ),
    (
        r"(?s)(?=.*inference_mode).*enable_grad",
        "taken torch.*Inference tensors cannot be saved",
        "with enable_grad inside of inference_mode torch takes what is closed over for made there",
    ),
    (
        r"(?s)(?=.*func\.(jvp|jacfwd|hessian)).*\w_\(",
        "taken torch.*output 0 of torch::autograd::CopyBackwards, is at version",
        "torch looks at what has been saved of a written tangent, though no gradient needs it",
    ),
    ("inference_mode", "not implemented for aten::_unpack_dual", "in a batch torch cannot there"),
    (
        r"(?s)(?=.*func\.(jvp|jacfwd|hessian)).*\w_\(",
        "taken torch.*inplace arithmetic",
        "torch cannot write into a tangent that lies in fewer batches than what is written",
    ),
    ("", "ZeroTensors are immutable", "torch's gradients of zeros are immutable, without need"),
)

# Faults of torch's that give wrong values, each with the same said in a way that torch gets right. There
# gradcli must give what torch gives to that.
SAID_AGAIN: tuple[tuple[str, str, str], ...] = (
    (
        r"(\w+)\.mul_\((\w+)\)",
        r"\1.mul_(\2.clone())",
        "the tangent of x.mul_(x) is written, then read",
    ),
    (r"Ruled\.apply\(", "torch.sin(", "tangents of a Function's tangents are 0"),
)


# -- programs -------------------------------------------------------------------------------------
class Maker:
    """Writes a program statement by statement; knows the shapes of the names in scope."""

    def __init__(self, pick: random.Random) -> None:
        self.pick = pick
        self.lines: list[str] = []
        self.indent = 0
        self.depth = 0
        self.deepest = pick.choice((1, 2, 2, 3, 3, 4, DEEPEST))
        self.scope: dict[str, Shape] = {name: shape for name, (shape, _) in LEAVES.items()}
        self.pulls: dict[str, tuple[Shape, Shape]] = {}
        self.customs = (
            pick.choices(list(FUNCTIONS), (2, 6, 4, 0.5), k=2) if pick.random() < 0.4 else []
        )
        self.made = 0

    def program(self) -> str:
        """A transform or two of the program's own, with all that they need."""
        for _ in range(self.pick.choice((1, 1, 2))):
            self.moded(self.transform)
        return program_of("\n".join(self.lines))

    def chance(self, probability: float) -> bool:
        return self.pick.random() < probability

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def fresh(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def bind(self, text: str, *shapes: Shape) -> None:
        """Names for the results of an expression."""
        names = [self.fresh("r") for _ in shapes]
        self.line(f"{', '.join(names)} = {text}")
        self.scope.update(zip(names, shapes, strict=True))

    # -- expressions --------------------------------------------------------------------------
    def name(self) -> str:
        """A name in scope, the latest rather than the first."""
        names = list(self.scope)
        return self.pick.choice(names[-3:] if self.chance(0.6) else names)

    def operand(self, shape: Shape) -> str:
        """A name, made to have a shape."""
        name = self.name()
        if name == "X" and self.chance(0.8):
            name = "k"
        text, own = name, self.scope[name]
        while len(own) > len(shape) or (own and own != shape):
            text += self.pick.choice((".sum(0)", "[0]", ".sum(0)"))
            own = own[1:]
        if own == shape:
            return text
        return f"{text}.expand({shape[0]})" if self.chance(0.1) else f"({text}*d)"

    def expression(self, shape: Shape, left: int = 2) -> str:
        """A text whose value has a shape."""
        if not left or self.chance(0.2):
            return self.operand(shape)
        kind = self.pick.random()
        first = self.expression(shape, left - 1)
        if kind < 0.25:
            return f"{first}.{self.pick.choice(UNARY)}()"
        if kind < 0.3:
            return f"{first}.detach()"
        if kind < 0.4 and self.customs:
            return f"{self.pick.choice(self.customs)}.apply({first})"
        if kind < 0.5 and not shape:
            return f"({self.expression((3,), left - 1)}*{self.operand((3,))}).sum()"
        if kind < 0.55 and len(shape) == 1:
            parts = [self.expression((), 1) for _ in range(shape[0])]
            return f"torch.stack([{', '.join(parts)}])"
        other = self.expression(self.pick.choice((shape, shape, ())), left - 1)
        return f"({first} {self.pick.choice('*+*-')} {other})"

    # -- statements ---------------------------------------------------------------------------
    def moded(self, statement: Any) -> None:
        """A statement, at times under a mode."""
        if self.chance(0.85):
            statement()
            return
        self.line(f"with torch.{self.pick.choice(MODES)}():")
        self.indent += 1
        statement()
        self.indent -= 1

    def assign(self) -> None:
        shape = self.pick.choice(SHAPES)
        self.bind(self.expression(shape), shape)

    def write(self) -> None:
        """A write into what has just been made, or rarely into anything."""
        if self.chance(0.07):
            target = self.name()
        else:
            shape = self.pick.choice(SHAPES)
            self.bind(
                f"{self.expression(shape)}{self.pick.choice(('.clone()', '*1', '*1'))}", shape
            )
            target = list(self.scope)[-1]
        shape = self.scope[target]
        if shape and self.chance(0.4):
            self.line(f"{target}[{self.pick.choice((0, 1))}] = {self.expression(shape[1:])}")
        else:
            value = self.expression(self.pick.choice((shape, ())))
            self.line(self.pick.choice(WRITES).format(target, value))

    def pull(self) -> None:
        """A call of a function that `vjp` has returned."""
        if not self.pulls:
            self.assign()
            return
        name = self.pick.choice(list(self.pulls))
        takes, gives = self.pulls[name]
        self.bind(f"{name}({self.expression(gives)})[0]", takes)

    def plain_grad(self) -> None:
        """A gradient of the engine's, by anything."""
        name = self.name()
        create = self.pick.choice(("", ", create_graph=True"))
        self.bind(
            f"torch.autograd.grad({self.expression(())}, {name}{create})[0]", self.scope[name]
        )

    def statement(self) -> None:
        ways = [self.assign, self.write, self.pull, self.plain_grad]
        weights = [4.0, 3, 2 if self.pulls else 0, 0.12]
        self.moded(self.pick.choices(ways, weights)[0])

    # -- transforms ---------------------------------------------------------------------------
    def function(self, takes: list[Shape], gives: Shape, aux: bool = False) -> str:
        """Define a function of its own variables and of all that is in scope; its name."""
        outer, pulls = dict(self.scope), dict(self.pulls)
        name = self.fresh("f")
        params = {self.fresh("x"): shape for shape in takes}
        self.line(f"def {name}({', '.join(params)}):")
        self.indent += 1
        self.depth += 1
        self.scope.update(params)
        for _ in range(self.pick.choice((0, 1, 1, 2))):
            self.statement()
        if self.depth < self.deepest:
            self.moded(self.transform)
        if self.chance(0.2):
            self.statement()
        value = self.expression(gives)
        if self.chance(0.8):
            used = self.pick.choice(list(params))
            value = f"({value} * {used}{'' if params[used] == gives else '.sum()'})"
        self.line(
            f"return {value}{', ' + self.expression(self.pick.choice(SHAPES)) if aux else ''}"
        )
        self.depth -= 1
        self.indent -= 1
        self.scope, self.pulls = outer, pulls
        return name

    def callable(self, takes: Shape, gives: Shape) -> str:
        """A text whose value is a function of one tensor."""
        ways: list[Any] = []
        if self.depth < self.deepest:
            if takes == gives:
                ways += [lambda: f"func.grad({self.deeper(takes, ())})"] * 2
            if gives[len(gives) - len(takes) :] == takes and len(gives) <= 2:
                front = gives[: len(gives) - len(takes)]
                jac = self.pick.choice(("jacrev", "jacfwd"))
                ways.append(lambda: f"func.{jac}({self.deeper(takes, front)})")
            if gives == takes + takes:
                ways.append(lambda: f"func.hessian({self.deeper(takes, ())})")
            if takes and gives and takes[0] == gives[0]:
                ways += [lambda: f"func.vmap({self.deeper(takes[1:], gives[1:])})"] * 2
        if not ways or self.chance(0.3):
            made = self.function([takes], gives)
            return f"torch.{self.pick.choice(MODES)}()({made})" if self.chance(0.05) else made
        return str(self.pick.choice(ways)())

    def deeper(self, takes: Shape, gives: Shape) -> str:
        self.depth += 1
        made = self.callable(takes, gives)
        self.depth -= 1
        return made

    def transform(self) -> None:
        """A call of one of `func`'s functions."""
        ways = [self.of_one, self.and_value, self.and_more, self.vjp, self.jvp, self.several]
        self.pick.choices([*ways, self.mapped], [4, 1, 1, 3, 3, 1, 3])[0]()

    def of_one(self) -> None:
        takes = self.pick.choice(SHAPES)
        gives = self.pick.choice((takes, takes, takes + takes, (3, *takes)))
        made = self.callable(takes, gives)
        if not re.match(r"func\.", made):
            gives, made = takes, f"func.grad({self.function([takes], ())})"
        self.bind(f"{made}({self.expression(takes)})", gives)

    def and_value(self) -> None:
        takes = self.pick.choice(SHAPES)
        made = self.function([takes], ())
        self.bind(f"func.grad_and_value({made})({self.expression(takes)})", takes, ())

    def and_more(self) -> None:
        """A function that returns something besides."""
        name = self.pick.choice(("grad_and_value", "grad", "jacrev", "jacfwd"))
        takes, gives = self.pick.choice(SHAPES), ()
        if name.startswith("jac"):
            gives = self.pick.choice(SHAPES)
        made = self.function([takes], gives, aux=True)
        found, value, besides = self.fresh("r"), self.fresh("r"), self.fresh("r")
        call = f"func.{name}({made}, has_aux=True)({self.expression(takes)})"
        if name == "grad_and_value":
            self.line(f"{found}, ({value}, {besides}) = {call}")
        else:
            self.line(f"{found}, {besides} = {call}")
        self.scope[found] = gives + takes

    def vjp(self) -> None:
        takes, gives, aux = self.pick.choice(SHAPES), self.pick.choice(SHAPES), self.chance(0.25)
        made = self.callable(takes, gives) if not aux else self.function([takes], gives, True)
        result, pull, besides = self.fresh("r"), self.fresh("p"), self.fresh("r")
        call = f"func.vjp({made}, {self.expression(takes)}{', has_aux=True' if aux else ''})"
        self.line(f"{result}, {pull}{f', {besides}' if aux else ''} = {call}")
        self.scope[result] = gives
        self.pulls[pull] = takes, gives
        self.pull()

    def jvp(self) -> None:
        takes, gives, aux = self.pick.choice(SHAPES), self.pick.choice(SHAPES), self.chance(0.2)
        made = self.callable(takes, gives) if not aux else self.function([takes], gives, True)
        point, tangent = self.expression(takes), self.expression(takes)
        call = f"func.jvp({made}, ({point},), ({tangent},){', has_aux=True' if aux else ''})"
        if aux:
            names = [self.fresh("r") for _ in range(3)]
            self.line(f"{', '.join(names)} = {call}")
            self.scope.update({names[0]: gives, names[1]: gives})
        else:
            self.bind(call, gives, gives)

    def several(self) -> None:
        """A function of two variables, by one of them or by both."""
        takes = [self.pick.choice(SHAPES), self.pick.choice(SHAPES)]
        name = self.pick.choice(("grad", "jacrev", "jacfwd"))
        gives = () if name == "grad" else self.pick.choice(SHAPES)
        made = self.function(takes, gives)
        args = ", ".join(self.expression(shape) for shape in takes)
        if self.chance(0.5):
            i = self.pick.choice((0, 1))
            self.bind(f"func.{name}({made}, argnums={i})({args})", gives + takes[i])
        else:
            wanted = [gives + shape for shape in takes]
            self.bind(f"func.{name}({made}, argnums=(0, 1))({args})", *wanted)

    def mapped(self) -> None:
        """A function mapped over one of its variables or both."""
        takes = [self.pick.choice(SHAPES) for _ in range(self.pick.choice((1, 1, 2)))]
        gives = self.pick.choice(SHAPES)
        dims = [0 if not i or self.chance(0.5) else None for i in range(len(takes))]
        made = self.callable(takes[0], gives) if len(takes) == 1 else self.function(takes, gives)
        args = [
            self.expression(shape) if dim is None else self.batch(shape)
            for shape, dim in zip(takes, dims, strict=True)
        ]
        out = 1 if gives and self.chance(0.2) else 0
        whole = (*gives[:out], 2, *gives[out:])
        more = (f", in_dims={tuple(dims)}" if None in dims else "") + (
            ", out_dims=1" if out else ""
        )
        self.bind(f"func.vmap({made}{more})({', '.join(args)})", whole)

    def batch(self, shape: Shape) -> str:
        """Two entries of a shape."""
        if shape and self.chance(0.4):
            return "X"
        return f"torch.stack([{self.expression(shape, 1)}, {self.expression(shape, 1)}])"


def program_of(body: str) -> str:
    """A program with the leaves and Functions that it names."""
    used: list[str] = []
    for name, text in FUNCTIONS.items():
        if re.search(rf"\b{name}\.", body + "".join(used)):
            used.append(text)
    if any("Ruled." in text for text in used) and FUNCTIONS["Ruled"] not in used:
        used.insert(0, FUNCTIONS["Ruled"])
    leaves = [
        f"{name} = torch.tensor({text}, dtype=torch.float64)"
        if "=" not in text
        else f"{name} = torch.tensor({text.replace(', req', ', dtype=torch.float64, req')})"
        for name, (_, text) in LEAVES.items()
        if re.search(rf"\b{name}\b", body)
    ]
    return "\n".join([*used, *leaves, body])


# -- comparing ------------------------------------------------------------------------------------
@dataclass
class Seen:
    """What a program shows: tensors by name, as far as it came, and what it was refused with."""

    tensors: list[tuple[str, Any, bool]]
    refused: tuple[str, str, str] | None = None  # where, the error's type and words

    def plain(self) -> dict[str, Any]:
        """The same as lists and texts, for a file."""
        tensors = [[n, np.asarray(a).tolist(), recorded] for n, a, recorded in self.tensors]
        return {"tensors": tensors, "refused": self.refused}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Seen:
        """What `plain` has written."""
        tensors = [(n, np.array(a), recorded) for n, a, recorded in plain["tensors"]]
        return cls(tensors, tuple(plain["refused"]) if plain["refused"] else None)


def look(source: str, module: Any) -> Seen:
    """Run a program under torch's name for a module, and differentiate its results twice."""
    seen = Seen([])
    where = "the program"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        space: dict[str, Any] = {"torch": module, "func": module.func}
        try:
            exec(source, space)
            found = {
                n: v for n, v in space.items() if n not in LEAVES and isinstance(v, module.Tensor)
            }
            leaves = {n: space[n] for n in WRT if n in space}
            for order in ("the results", "first derivatives", "second derivatives"):
                where = order
                seen.tensors += [(n, _array(v), bool(v.requires_grad)) for n, v in found.items()]
                if order == "second derivatives":
                    break
                where = f"{order}, differentiated"
                recorded = [(i, v) for i, v in enumerate(found.values()) if v.requires_grad]
                if not recorded or not leaves:
                    break
                total = sum(((i + 1) * v * v.cos()).sum() for i, v in recorded)
                grads = module.autograd.grad(
                    total, list(leaves.values()), create_graph=True, allow_unused=True
                )
                found = {
                    f"{order} by {n}": module.zeros_like(leaves[n]) if g is None else g
                    for n, g in zip(leaves, grads, strict=True)
                }
        except Exception as error:  # a refusal is an answer
            seen.refused = where, type(error).__name__, str(error)
    return seen


def _array(tensor: Any) -> Any:
    return np.array(tensor.detach().clone().tolist())  # zeros of torch have no memory of their own


@dataclass
class Failure:
    """How two runs of a program differ."""

    kind: str
    details: str


# Errors that are no refusals: something of ours is broken.
_BROKEN = {"AttributeError", "AssertionError", "KeyError", "NameError", "UnboundLocalError"}


def difference(ours: Seen, theirs: Seen, forward: bool = False) -> Failure | None:
    """The first difference; None where there is none.

    forward: whether tangents are at work, among which torch records zeros: then what is recorded there
    and not here is a difference only where a derivative is not 0.
    """
    if ours.refused and not theirs.refused:
        return Failure("refused", f"gradcli, in {': '.join(ours.refused)}")
    if theirs.refused and not ours.refused:
        return Failure("taken", f"torch, in {': '.join(theirs.refused)}")
    if ours.refused and theirs.refused and ours.refused[1] in _BROKEN - {theirs.refused[1]}:
        return Failure("broken", f"gradcli, in {': '.join(ours.refused)}")
    if ours.refused or theirs.refused:
        return None
    found = {name: (a, recorded) for name, a, recorded in ours.tensors}
    for name, b, wanted in theirs.tensors:
        if name not in found and not forward:
            return Failure("requires_grad", f"{name}: torch {b.tolist()}, gradcli has none")
        a, own = found.pop(name, (np.zeros_like(b), False))
        if a.shape != b.shape:
            return Failure("shape", f"{name}: torch {b.shape}, gradcli {a.shape}")
        if own != wanted and (own or not forward):
            return Failure("requires_grad", f"{name}: torch {wanted}, gradcli {own}")
        size = np.abs(b).max(initial=0.0)
        if size > LARGEST:
            return None  # beyond what rounding leaves of it
        if not np.allclose(a, b, 1e-7, 1e-7 * size + 1e-11):
            return Failure("values", f"{name}: torch {b.tolist()}, gradcli {a.tolist()}")
    if found:
        return Failure("requires_grad", f"torch has no {', '.join(found)}")
    return None


@contextmanager
def _unharmed(gradcli: Any) -> Iterator[None]:
    """Leave no mode behind, whatever a program has done."""
    modes = importlib.import_module("gradcli.engine.core.modes")
    before = modes.local.state
    try:
        yield
    finally:
        modes.restore(before)


def attempt(source: str, torch: Any, gradcli: Any) -> Failure | None:
    """Run a program on both sides; the first difference."""
    theirs = look(source, torch)
    if theirs.refused and theirs.refused[1] in ("NameError", "SyntaxError", "UnboundLocalError"):
        return None  # no program
    try:
        with limited(20), _unharmed(gradcli):
            ours = look(source, gradcli)
    except TooLong as error:
        return Failure("time", str(error))
    forward = bool(FORWARD.search(source))
    failure = difference(ours, theirs, forward)
    if failure is not None and failure.kind in ("values", "requires_grad") and forward:
        again = source
        for text, other, _ in SAID_AGAIN:
            again = re.sub(text, other, again)
        failure = difference(ours, look(again, torch), forward)
    if failure is not None and failure.kind == "values":
        moved = _LEAF.sub(r"\1torch.tensor(\2, dtype=torch.float64)*(1 + 1e-15), dtype", source)
        wavers = difference(look(moved, torch), theirs, forward)
        if wavers is not None and wavers.kind == "values":
            return None  # the sine of a number beyond 1e15, and its like
    if failure is None or any(
        re.search(text, source) and re.search(kind, f"{failure.kind} {failure.details}")
        for text, kind, _ in MEANT
    ):
        return None
    return failure


# -- shrinking ------------------------------------------------------------------------------------
def smaller(source: str) -> Iterator[str]:
    """Programs like this one with a part left out."""
    tree = ast.parse(source)
    for number in range(sum(1 for _ in _places(tree))):
        for choice in range(4):
            copied = copy.deepcopy(tree)
            place = next(p for i, p in enumerate(_places(copied)) if i == number)
            if not _cut(*place, choice):
                break
            yield ast.unparse(ast.fix_missing_locations(copied))


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Where something may be left out: statements first, then expressions."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if field == "body" and isinstance(value, list):
                yield from ((node, field, i) for i in range(len(value)))
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if field in ("func", "targets", "ctx", "op"):
                continue
            if isinstance(value, ast.expr):
                yield node, field, None
            elif isinstance(value, list) and field in ("args", "elts"):
                yield from ((node, field, i) for i in range(len(value)))


def _cut(node: ast.AST, field: str, at: int | None, choice: int) -> bool:
    """Leave out the part at a place, in one of several ways; False where there are no more."""
    held: Any = getattr(node, field) if at is None else getattr(node, field)[at]
    ways: list[Any]
    if isinstance(held, ast.stmt):
        inner = held.body if isinstance(held, ast.With) else None
        ways = [[]] if inner is None else [[], inner]
        if choice >= len(ways):
            return False
        whole = getattr(node, field)
        whole[at : at + 1] = ways[choice]
        return bool(whole)
    parts = [c for c in ast.iter_child_nodes(held) if isinstance(c, ast.expr)]
    if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute):
        parts = [held.func.value, *held.args]
    parts = [p for p in parts if not (isinstance(p, ast.Name) and p.id in ("torch", "func"))]
    if choice >= len(parts):
        return False
    if at is None:
        setattr(node, field, parts[choice])
    else:
        getattr(node, field)[at] = parts[choice]
    return True


def _key(failure: Failure) -> tuple[str, str]:
    """What must stay while a program is shrunk: the kind, and the words of a refusal."""
    words = failure.details.partition(", in ")[2].partition(": ")[2]
    return failure.kind, re.sub(r"[\d.\[\], ]+", " ", words)[:60]


def shrunk(
    source: str, failure: Failure, torch: Any, gradcli: Any, seconds: float = 8.0
) -> tuple[str, Failure]:
    """The smallest program found in some seconds that fails in the same way."""
    end = time.monotonic() + seconds
    found = True
    while found and time.monotonic() < end:
        found = False
        for fewer in smaller(source):
            if time.monotonic() > end:
                break
            again = attempt(fewer, torch, gradcli)
            if again is not None and _key(again) == _key(failure):
                source, failure, found = fewer, again, True
                break
    return source, failure


def _class(source: str, failure: Failure) -> str:
    """What a program uses, and what differs."""
    uses = sorted(set(re.findall(r"func\.(\w+)|torch\.(\w+)\(|(\w+)\.apply|(\w+_)\(", source)))
    words = [w for use in uses for w in use if w and w not in ("tensor", "stack")]
    return f"{': '.join(filter(None, _key(failure)))} ({', '.join(words)})"


def run(seed: int, seconds: float) -> Iterator[str]:
    """A minimal program for every class of differences; none where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        print("nests: torch is not installed, nothing to compare with")
        return
    torch, gradcli = importlib.import_module("torch"), importlib.import_module("gradcli")
    torch.set_num_threads(1)
    found: set[str] = set()
    tried = differing = 0
    start = time.monotonic()
    for number, pick in enumerate(cases(seed, seconds), fuzz.start):
        tried += 1
        source = Maker(pick).program()
        failure = attempt(source, torch, gradcli)
        if failure is None:
            continue
        differing += 1
        source, failure = shrunk(source, failure, torch, gradcli)
        name = _class(source, failure)
        if name not in found:
            found.add(name)
            yield f"{name}\n# case {number}\n{source}\n{failure.details}"
    print(f"nests: {differing} of {tried} programs differ, {time.monotonic() - start:.0f} s")

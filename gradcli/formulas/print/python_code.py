"""A derivative as a function in Python: with NumPy alone, with math where all is scalar, or with torch."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from gradcli.engine.registry import torch_namespaces
from gradcli.formulas.algebra.algebra import HALF, is_truth
from gradcli.formulas.algebra.exact_numbers import Number
from gradcli.formulas.algebra.expression_text import (
    ATOM,
    Piece,
    Printer,
    constants_of,
    enclosed,
    literal,
)
from gradcli.formulas.algebra.expressions import Expression, is_call, order
from gradcli.formulas.derive.differentiate import Derivatives
from gradcli.formulas.lift.lifting import NoExpression
from gradcli.formulas.print.numpy_helpers import HELPERS, SCALAR, SPECIAL, UFUNCS
from gradcli.formulas.print.sharing import shared_parts, unlike
from gradcli.formulas.print.stable_forms import stable, unordered
from gradcli.formulas.print.written_out import written_out

# Functions of the language that have another name in NumPy.
NUMPY = {
    **{"abs": "abs", "sgn": "sign", "pow": "power", "bitwise_not": "logical_not"},
    **{"mul": "multiply", "norm": "linalg.norm", "det": "linalg.det", "round": "round"},
    **{"linalg.cross": "cross", "tensor": "array", "cat": "concatenate"},
}
_REDUCTIONS = frozenset("sum nansum mean prod amax amin max min std var any all".split())
# Functions of the same name in NumPy whose kernel here is not that ufunc: see `_ufunc`.
_SAME = frozenset(
    "sign floor ceil trunc logaddexp where dot outer ones_like zeros_like full_like cumsum cumprod "
    "tril triu trace floor_divide square heaviside copysign sinc deg2rad rad2deg flip conj real imag "
    "angle nan_to_num stack diag vdot kron diff eye einsum diagonal tile take roll linalg.inv linalg.det "
    "linalg.cholesky linalg.slogdet linalg.eigh linalg.qr linalg.svd".split()
)
_MATH = frozenset(
    "sin cos tan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt asin acos atan atan2 "
    "asinh acosh atanh erf erfc lgamma floor ceil trunc fmod hypot copysign isnan isfinite".split()
)
_RENAMED = {
    **{"dim": "axis", "keepdim": "keepdims", "shifts": "shift", "dims": "axis"},
    **{"dim1": "axis1", "dim2": "axis2"},
}


def parameters_of(function: str) -> list[str]:
    """The parameter names of a helper function, from its text."""
    word = function.rpartition(".")[2]
    found = re.search(rf"^def {word}\((.*?)\):", HELPERS[function], re.M | re.S)
    return re.findall(r"[a-z_]\w*", found[1]) if found else []


def _entry(function: str) -> Any:
    """The function of this name in the table of primitives, else None."""
    from gradcli.engine.registry import table

    table.load()
    return table.FUNCTIONS.get(function)


@cache
def _ufunc(function: str) -> str | None:
    """NumPy's name of a function whose kernel is a ufunc, else None."""
    entry = _entry(function)
    kernels = {primitive.kernel for primitive in entry.primitives} if entry is not None else set()
    # If it is NumPy's own function, the code that is printed gives the very same digits.
    kernel = kernels.pop() if len(kernels) == 1 else None
    return kernel.__name__ if isinstance(kernel, np.ufunc) else None


def _listed(values: Any, constants: Mapping[str, str]) -> str:
    """The elements of an array as text, inf and nan as constants."""
    text = str(np.asarray(values).tolist())
    return re.sub(r"\b(inf|nan)\b", lambda found: constants[found[0]], text)


class NumpyPrinter(Printer):
    """Prints expressions as NumPy code; `helpers` collects the functions to print before it."""

    texts = HELPERS
    constants = constants_of("np")
    result_type = "dtype"  # the name of the line that finds the dtype of the parameters
    header: tuple[str, ...] = ("import math", "import numpy as np", "from scipy import special")

    def __init__(self, names: Any = None, like: str = "") -> None:
        super().__init__(names)
        self.helpers: list[str] = []
        self.arrays: list[str] = []  # the parameters that give new arrays their dtype
        self.typed = False  # whether the code has made any

    @property
    def dtype(self) -> str:
        """The argument that gives a new array the dtype of the parameters: float32 stays float32."""
        # Asked by whoever prints a new array: so the line that finds the dtype is there only if it is used.
        self.typed = self.typed or bool(self.arrays)
        return f", dtype={self.result_type}" if self.arrays else ""

    def as_typed(self, text: str) -> str:
        """An array of numbers that Python gave, in the dtype of the parameters."""
        return f"{text}.astype({self.result_type})" if self.dtype else text

    def preamble(self) -> list[str]:
        """The line that finds this dtype, if the code uses it."""
        if not self.typed:
            return []
        kinds = ", ".join(self.arrays)
        return [f"    {self.result_type} = np.result_type({kinds}, np.float32)"]

    def own(self, roots: list[Expression]) -> list[Expression]:
        """The expressions in forms that keep their digits, of functions that there are."""
        return [written_out(root, type(self)()) for root in stable(roots)]

    def program(self, body: str) -> str:
        """A function with what it calls and imports."""
        texts = dict.fromkeys(self.texts[h] for h in self.helpers)
        text = "\n\n\n".join([*texts, body])
        if uses(text, "special"):  # which has the ufuncs
            text = "\n\n\n".join([*(UFUNCS.get(one, one) for one in texts), body])
        return f"{imported(self.header, text)}{text}"

    def text(self, expression: Expression) -> str:
        """The code of an expression."""
        return super().text(expression).replace(".numel()", ".size")  # in names, shapes and options

    def make_array(self, node: Expression) -> Piece:
        typed = self.dtype if np.asarray(node.data).dtype.kind == "f" else ""
        return f"np.array({_listed(node.data, self.constants)}{typed})", ATOM

    def power(self, base: Expression, exponent: Any) -> Piece:
        if is_scalar_constant(base) and isinstance(exponent, Number) and exponent == HALF:
            # np.sqrt(2) is float64, and so is what it multiplies
            return f"math.sqrt({self.of(base)[0].replace('np.pi', 'math.pi')})", ATOM
        return super().power(base, exponent)

    def make_call(self, node: Expression) -> Piece:
        word = node.data[0]
        if is_scalar_constant(node) and word in _MATH and len(node.args) == 1:
            return f"math.{word}({self.of(node.args[0])[0].replace('np.pi', 'math.pi')})", ATOM
        found = super().make_call(node)
        if word == "where" and not any(part.shape for part in node.args[1:]):
            return (self.as_typed(found[0]) if _are_numbers(node.args[1:]) else found[0]), ATOM
        if word == "one_hot":
            return self.as_typed(found[0]), ATOM
        return found

    def call(
        self, function: str, args: list[Piece], options: Iterable[tuple[str, Any]] = ()
    ) -> Piece:
        given = list(options)
        parts = [a[0] for a in args]
        # With a dimension torch gives values and indices, and NumPy the values alone.
        if function in ("max", "min") and given:
            function = f"{function}_with_index"
        if function in _REDUCTIONS:
            # Given by place in the language, by name in NumPy, where the places differ.
            names = iter(("axis", "keepdims"))
            given = [(_RENAMED.get(k, k) if k else next(names), v) for k, v in given]
            shown = f"np.{function}"
            # torch divides by n - 1 unless it is told otherwise, and NumPy by n.
            if function in ("std", "var"):
                correction = dict(given).get("correction", 1)
                given = [(k, v) for k, v in given if k != "correction"] + [("ddof", correction)]
        elif function == "linalg.pinv" and "atol" in dict(given):
            raise NoExpression("NumPy's pinv takes no atol")
        elif function == "norm" and given:
            raise NoExpression("NumPy has other matrix norms")
        elif function in HELPERS:
            lacking = [k for k, _ in given if k.isidentifier() and k not in parameters_of(function)]
            if lacking:
                raise NoExpression(f"{function}, as it is written here, takes no {lacking[0]}")
            shown = self.helped(function)
        elif function == "eye":
            return f"np.eye({', '.join(self.arguments(args, given))}{self.dtype})", ATOM
        elif function in NUMPY or function in _SAME or _ufunc(function):
            shown = f"np.{NUMPY.get(function) or _ufunc(function) or function}"
            given = [(_RENAMED.get(k, k), v) for k, v in given]
        elif function == "logit" and given:
            ((_, eps),) = given
            return f"special.logit(np.clip({parts[0]}, {eps}, {1 - eps}))", ATOM
        elif function in SPECIAL:
            shown = f"special.{SPECIAL[function]}"
            given = [(k if k == "@" else "", v) for k, v in given]
        elif function in ("ones", "zeros"):
            sizes = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
            return f"np.{function}({sizes}{self.dtype})", ATOM
        else:
            raise NoExpression(f"NumPy has no function for {function}")
        return f"{shown}({', '.join(self.arguments(args, given))})", ATOM

    def helped(self, function: str) -> str:
        """The name of a helper, noting that its text must be printed."""
        if function not in self.helpers:
            self.helpers.append(function)
        return function.rpartition(".")[2]

    def call_expand(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"np.broadcast_to({args[0][0]}, {literal(node.shape)})", ATOM

    def call_expand_as(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"np.broadcast_to({args[0][0]}, np.shape({args[1][0]}))", ATOM

    def call_cumsum(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.call("cumsum", args, options) if node.shape else args[0]  # NumPy's: a vector

    def call_cumprod(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.call("cumprod", args, options) if node.shape else args[0]

    def call_permute(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"np.transpose({args[0][0]}, {literal(options[0][1])})", ATOM

    def call_transpose(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        dims = ", ".join(literal(v) for _, v in options)
        return f"np.swapaxes({args[0][0]}, {dims})", ATOM

    def call_clamp(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        given = {k: self.literal(v) for k, v in options}
        return f"np.clip({args[0][0]}, {given.get('min')}, {given.get('max')})", ATOM

    def call_to(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        kind = literal(options[0][1])
        return f"np.asarray({args[0][0]}).astype({kind!r})", ATOM

    def call_index(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        if not node.args[0].shape:  # a number, which Python has no index for
            args = [(f"np.asarray({args[0][0]})", ATOM), *args[1:]]
        return super().call_index(args, options, node)

    def call_index_put(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.call("index_put", args, options)

    def call_contiguous(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return args[0]  # what reads memory here reads elements in their order

    def call_bitwise_not(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        word = "logical_not" if is_truth(node.args[0]) else "invert"
        return f"np.{word}({args[0][0]})", ATOM


def _are_numbers(nodes: Iterable[Expression]) -> bool:
    return all(n.op == "number" or is_call(n, "float") for n in nodes)


class MathPrinter(NumpyPrinter):
    """Prints expressions of scalars as Python code that uses `math`."""

    texts = SCALAR
    constants = constants_of("math")
    header = ("import math",)

    def program(self, body: str) -> str:
        if uses(body, "np"):  # arrays are NumPy's
            raise NoExpression("math has no arrays")
        return super().program(body)

    def call_expand(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        raise NoExpression("Python's numbers have no shape")

    call_expand_as = call_expand

    def call(
        self, function: str, args: list[Piece], options: Iterable[tuple[str, Any]] = ()
    ) -> Piece:
        parts = [a[0] for a in args]
        if function in _MATH and not list(options):
            return f"math.{function}({', '.join(parts)})", ATOM
        inner = parts[0] if parts else ""
        if function == "abs":
            return f"abs({inner})", ATOM
        if function == "relu":
            return f"max({inner}, 0)", ATOM
        numbers = [p for p in parts if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", p)]
        if (
            function in ("maximum", "minimum") and numbers
        ):  # max(x, 0) is nan where x is, max(0, x) is not
            rest = [p for p in parts if p not in numbers]
            return f"{function[:3]}({', '.join([*rest, *numbers])})", ATOM
        if function in SCALAR and not list(options):
            return f"{self.helped(function)}({', '.join(parts)})", ATOM
        raise NoExpression(f"math has no function for {function}")

    def make_call(self, node: Expression) -> Piece:
        if node.data[0] == "where":
            condition, a, b = (self.of(x)[0] for x in node.args)
            return f"({a} if {condition} else {b})", ATOM
        return super().make_call(node)

    def call_bitwise_not(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"(not {args[0][0]})", ATOM

    call_logical_not = call_bitwise_not

    call_clamp = Printer.between


class TorchPrinter(Printer):
    """Prints expressions as code for torch; like: the variable that gives new tensors their dtype."""

    constants = constants_of("math")
    header = ("import math", "import torch", "import torch.nn.functional as F")

    def __init__(self, names: Any = None, like: str = "") -> None:
        super().__init__(names)
        self.like = like

    def own(self, roots: list[Expression]) -> list[Expression]:
        return unordered(roots)

    def program(self, body: str) -> str:
        return f"{imported(self.header, body)}{body}"

    def make_array(self, node: Expression) -> Piece:
        values = np.asarray(node.data)
        made = "torch.tensor" if values.dtype.kind in "biu" else f"{self.like}.new_tensor"
        return f"{made}({_listed(values, self.constants)})", ATOM

    def power(self, base: Expression, exponent: Any) -> Piece:
        if is_scalar_constant(base) and isinstance(exponent, Number) and exponent == HALF:
            return f"math.sqrt({self.of(base)[0]})", ATOM
        return super().power(base, exponent)

    def call(
        self, function: str, args: list[Piece], options: Iterable[tuple[str, Any]] = ()
    ) -> Piece:
        if function in ("tensor", "zeros", "ones"):
            return super().call(f"{self.like}.new_{function}", args, options)
        return super().call(self.spelled(function), args, options)

    def spelled(self, function: str) -> str:
        """The qualified name in torch: `torch.sin`, `F.silu`."""
        function = function.removeprefix("torch.")
        if function.startswith("nn.functional."):
            return f"F.{function.rpartition('.')[2]}"
        return f"F.{function}" if knows_functional(function) else f"torch.{function}"

    def make_call(self, node: Expression) -> Piece:
        function, options = node.data
        if is_scalar_constant(node):
            # torch's functions take no numbers: log(2) is math.log(2)
            return f"math.{function}({self.of(node.args[0])[0]})", ATOM
        if function == "tensor":
            return f"{self.like}.new_tensor({self.bare_number(node.args[0])})", ATOM
        args = [self.of(a) for a in node.args]
        if hasattr(self, f"call_{function}"):
            return super().make_call(node)
        made = self.tensors(args, node)
        if function == "[]":
            return self.special["[]"](self, made, options, node)
        if not _of_numbers(node):
            wanted = _wants_tensors(function)
            made = [
                m if k in wanted else a for k, (m, a) in enumerate(zip(made, args, strict=True))
            ]
        if made != args:
            return self.call(function, made, options)
        return super().make_call(node)

    def bare_number(self, item: Expression) -> str:
        """A number inside a written-out tensor."""
        if is_call(item, "[]"):
            return f"[{', '.join(map(self.bare_number, item.args))}]"
        if is_call(item, "float"):
            return super().call_float([self.of(item.args[0])], (), item)[0]
        return self.of(item)[0]

    def call_float(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"{self.like}.new_tensor({super().call_float(args, options, node)[0]})", ATOM

    def call_expand(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return super().call_expand(self.tensors(args[:1], node), options, node)

    def call_expand_as(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return super().call_expand_as([*self.tensors(args[:1], node), *args[1:]], options, node)

    def tensors(self, args: list[Piece], node: Expression) -> list[Piece]:
        """The operands of a call, with numbers made tensors where torch requires that."""
        return [
            (f"{self.like}.new_tensor({a[0]})", ATOM) if is_scalar_constant(own) else a
            for a, own in zip(args, node.args, strict=False)
        ]

    def call_where(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        """`where` with typed branches: of two bare numbers it would be integers or float32."""
        if all(map(is_scalar_constant, node.args[1:])):
            args = [args[0], (f"{self.like}.new_tensor({args[1][0]})", ATOM), args[2]]
        return self.call("where", args, options)

    def call_sum(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        """A sum; of booleans in the variables' dtype, or a quotient by it would be float32."""
        text, precedence = self.call("sum", args, options)
        if is_truth(node.args[0]):
            text = f"{text.removesuffix(')')}, dtype={self.like}.dtype)"
        return text, precedence

    def call_eye(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"torch.eye({node.shape[0]}, dtype={self.like}.dtype)", ATOM

    def call_one_hot(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        if node.args[0].op == "name":  # which may be a number of Python's
            args = [(f"torch.as_tensor({args[0][0]})", ATOM), *args[1:]]
        return f"{self.call('one_hot', args, options)[0]}.to({self.like}.dtype)", ATOM

    def call_to(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        (own,) = self.tensors(args, node)
        return f"{enclosed(own, ATOM)}.to(torch.{literal(options[0][1])})", ATOM

    def call_index_put(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        own, _, values = self.tensors(args, node)
        return super().call_index_put([own, args[1], values], options, node)

    def call_unfold(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        """Windows along a dimension: the method `Tensor.unfold`, for `F.unfold` takes images."""
        given = ", ".join(literal(v) for _, v in options)
        return f"{enclosed(args[0], ATOM)}.unfold({given})", ATOM

    def call_clamp(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.call("clamp", self.tensors(args, node), options)


def is_scalar_constant(node: Expression) -> bool:
    """Whether it is a constant such as sqrt(2) or log(5) + 1, which `math` computes for torch code."""
    return (
        node.position == -1  # constant
        and not node.shape
        and all(
            n.op in ("number", "name", "sum", "product")
            or (is_call(n, *_MATH) and len(n.args) == 1 and not n.data[1])
            for n in order([node])
        )
    )


@cache
def _wants_tensors(function: str) -> frozenset[int | str]:
    """The operands of a function, by position or name, that must be tensors and not numbers."""
    entry = _entry(function)
    if entry is None or any(primitive.numbers for primitive in entry.primitives):
        return frozenset()
    places: frozenset[int | str] = entry.tensor_args
    return places


def _of_numbers(node: Expression) -> bool:
    """Whether it is an elementwise function whose operands are all numbers."""
    elementwise = is_elementwise_function(node.data[0])
    return elementwise and bool(node.args) and all(map(is_scalar_constant, node.args))


@cache
def is_elementwise_function(word: str) -> bool:
    """Whether a function of the language computes each element of its result from one of each operand."""
    function = _entry(word)
    if function is None:
        return False
    rows = function.primitives or (function.target,)
    return all(getattr(primitive, "batching", None) == "elementwise" for primitive in rows)


@cache
def knows_functional(function: str) -> bool:
    """Whether torch has a function of the language only in `nn.functional`."""
    return _entry(f"nn.functional.{function}") is not None and function not in _BOTH


_BOTH = frozenset("relu sigmoid tanh softmax log_softmax".split())


def to_code(found: Derivatives, form: str) -> str:
    """A function of the variables that returns the value and the gradients; with math where that does."""
    kinds = {"torch": (TorchPrinter,), "numpy": (NumpyPrinter,)}
    if form == "python" and not any(map(np.ndim, found.variables.values())):
        return written_by(found, MathPrinter, NumpyPrinter)
    return written_by(found, *kinds.get(form, (NumpyPrinter,)))


def written_by(found: Derivatives, *kinds: type[Any]) -> str:
    """The program of the first of these printers that has all its functions."""
    like = next((n for n, v in found.variables.items() if np.asarray(v).dtype.kind in "fc"), "")
    for kind in kinds[:-1]:
        with suppress(NoExpression):
            return written_by(found, kind)
    names = parameters(found.variables)
    while True:
        printer = kinds[-1](like=names.get(like, ""))
        if type(printer) is NumpyPrinter:
            kept = [n for n, v in found.variables.items() if np.ndim(v)]
            kept = [n for n in kept if np.asarray(found.variables[n]).dtype.kind == "f"]
            printer.arrays = [names[n] for n in kept]
        roots = printer.own([found.whole, *found.by.values()])
        body = function_text(found, printer, roots, names)
        # Only the printed body says which functions it calls: max(x, 0) of relu(x). A variable of
        # that name would hide it, and is given another.
        hidden = {*called(body), *map(_last, getattr(printer, "helpers", ()))} & {*names.values()}
        if not hidden:
            code: str = printer.program(body)
            return code
        names = parameters(found.variables, hidden)


def parameters(variables: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """The names of variables as parameters: none that Python, the imports or `taken` have."""
    variables = list(variables)
    taken = {*keyword.kwlist, *_MODULES, *taken}
    found: dict[str, str] = {}
    for name in variables:
        known = {*taken, *found.values(), *(n for n in variables if n != name)}
        found[name] = unlike(name, known)
    return found


def called(body: str) -> set[str]:
    """The functions of Python's own that the code of a function names; `max=` is an option."""
    return {*re.findall(r"(?<![\w.])[a-z_]+\b(?! ?=[^=])", _without_title(body))} & _BUILTINS


def _last(function: str) -> str:
    return function.rpartition(".")[2]


def _without_title(text: str) -> str:
    """Code without docstrings, which quote the program."""
    return re.sub('""".*?"""', "", text)


def imported(header: Iterable[str], text: str) -> str:
    """The imports that code uses."""
    lines = [line for line in header if uses(text, line.split()[-1])]
    lines = [f"{i}  # for what NumPy lacks" if "scipy" in i else i for i in lines]
    return "\n".join([*lines, "\n\n"]) if lines else ""


def uses(text: str, module: str) -> bool:
    """Whether code uses a module, not counting the program quoted in its docstring."""
    return re.search(rf"(?<![\w.]){module}\.", _without_title(text)) is not None


def function_text(
    found: Derivatives, printer: Any, roots: list[Expression], names: Mapping[str, str]
) -> str:
    """The function itself; roots: the value, then the gradients. names: of its parameters."""
    value_only = found.kind == "value"
    roots = roots[:1] if value_only else roots
    variables = list(found.variables)
    # Its own names give way to those of its parameters, which its callers know.
    value, printer.result_type = (unlike(n, names.values()) for n in ("value", "dtype"))
    shared = shared_parts(roots, taken={*names.values(), value, printer.result_type})
    for node in order(roots):
        if node.op == "name" and node.data in names:
            printer.names[id(node)] = names[node.data]
    lines = []
    for word, part in shared:
        lines.append(f"    {word} = {printer.text(part)}")
        printer.names[id(part)] = word
        printer.pieces.clear()
    texts = [printer.names.get(id(r)) or printer.text(r) for r in roots]
    grads = texts[1] if len(texts) == 2 else f"({', '.join(texts[1:])})"
    signature = ", ".join(names[n] for n in variables)
    title = found.title(repr(found.heading))
    head = [
        f"def {'value' if value_only else 'value_and_' + found.kind.lower()}({signature}):",
        '    """' + title.replace("\\", "\\\\") + '"""',
    ]
    lines = [*getattr(printer, "preamble", list)(), *lines]
    ends = [f"    {value} = {texts[0]}", f"    return {value}, {grads}"]
    return "\n".join([*head, *lines, *([f"    return {texts[0]}"] if value_only else ends)])


def modules(form: str, code: str) -> dict[str, Any]:
    """The namespace of a printed program: its imports, and the helpers that it defines."""
    if form == "torch":
        torch = torch_namespaces.torch
        return {"math": math, "torch": torch, "F": torch.nn.functional}
    found: dict[str, Any] = {"math": math} if "import math\n" in code else {}
    if "import numpy as np\n" in code:
        found["np"] = np
    if "from scipy import special" in code:
        from scipy import special

        found["special"] = special
    for table in (
        HELPERS,
        SCALAR,
        dict(zip("erf erfc lgamma".split(), UFUNCS.values(), strict=True)),
    ):
        for word, text in table.items():
            if f"{text}\n" in code:
                name = word.rpartition(".")[2]
                found[name] = defined(text, name)
    return found


@cache
def defined(text: str, name: str) -> Any:
    """The function that the text of a helper defines; the text is a constant of this package."""
    space: dict[str, Any] = {"np": np, "math": math}
    if "special." in text:
        from scipy import special

        space["special"] = special
    exec(text, space)
    return space[name]


# What may be imported above a printed function.
_MODULES = ("np", "math", "torch", "jax", "jnp", "special", "F")
_BUILTINS = frozenset(dir(builtins))


__all__ = ["NumpyPrinter", "defined", "modules", "to_code", "uses", "written_by"]

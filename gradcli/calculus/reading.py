"""From traced calls to expressions: every row of the table as what a person would write.

A row that the language has by name becomes a call of it. Rows that exist only inside of rules
(`sigmoid_backward`, `select_backward`) become the formulas that they stand for: by the tables below,
or by tracing their kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from gradcli.calculus import simplify as alg
from gradcli.calculus.expressions import (
    Expression,
    array,
    broadcast,
    call,
    is_call,
    is_number,
    number,
    value_of,
)
from gradcli.calculus.numbers import MINUS_ONE, ONE, Number
from gradcli.calculus.simplify import full, function
from gradcli.calculus.trace import Arraylike, Call, Traced, calls
from gradcli.engine.dtypes import dtype as Dtype
from gradcli.engine.tensor import Scalar, Tensor

Handler = Callable[["Reader", Call, list[Any]], Any]


class NoExpression(NotImplementedError):
    """An operation that the language has no expression for."""


class Reader:
    """Reads traced values as expressions.

    given: the calls that the user's own program made, whose conditions are all kept.
    """

    def __init__(
        self, variables: Iterable[tuple[Traced, Expression]], given: Collection[int] = ()
    ) -> None:
        self.made: dict[int, Expression] = {id(t): e for t, e in variables}
        self.kept: list[Traced] = [t for t, _ in variables]  # so that no id is used again
        self.given = frozenset(given)

    def read(self, outputs: Sequence[Traced]) -> list[Expression]:
        """The expressions of these values."""
        for made in calls(outputs):
            if all(id(o) in self.made for o in made.outputs):
                continue
            found = self.convert(made)
            results = found if isinstance(found, list) else [found]
            for output, expression in zip(made.outputs, results, strict=True):
                self.made[id(output)] = expression
        self.kept += outputs
        return [self.operand(o) for o in outputs]

    def operand(self, value: Any) -> Any:
        """An operand as an expression; options stay what they are."""
        if isinstance(value, Traced):
            found = self.made.get(id(value))
            return constant(value.value) if found is None else found
        if isinstance(value, (Tensor, Scalar)):
            return constant(value.array)
        if isinstance(value, np.ndarray | np.generic):
            return constant(value)
        if isinstance(value, (list, tuple)):
            return [self.operand(v) for v in value]
        return value

    def convert(self, made: Call) -> Any:
        """The expression of a call; a list where there are several outputs."""
        row = made.row
        args: list[Any] = []
        for value, kind in zip(made.args, row.kinds, strict=True):
            if kind == "option":
                args.append(self.operand(value) if _is_tensor(value) else value)
            elif kind == "tensor" and isinstance(value, (bool, int, float, complex)):
                args.append(known_number(value))
            else:
                args.append(self.operand(value))
        handler = HANDLERS.get(row.name)
        if handler is not None:
            return handler(self, made, args)
        word = public_name(row)
        if word is None:
            return self.expand(made)
        if row.kind == "elementwise" or row.name in ELEMENTWISE:
            if all(k == "tensor" for k in row.kinds):
                return function(word, *args)
            tensors = [a for a, k in zip(args, row.kinds, strict=True) if k == "tensor"]
            options = chosen(row, args)
            return call(word, tensors, broadcast(t.shape for t in tensors), options)
        return self.general(word, made, args)

    def general(self, word: str, made: Call, args: list[Any], names: str | None = None) -> Any:
        """A call of a public function: operands in full shape, options that are not the defaults."""
        row = made.row
        operands: list[Expression] = []
        options: list[tuple[str, Any]] = []
        last = -1  # the last parameter that is an operand: those before it go by position
        for i, (kind, given) in enumerate(zip(row.kinds, made.args, strict=True)):
            if given is not None and (kind != "option" or _is_tensor(given)):
                last = i
        plain = row.kinds[: last + 1].count("option") == 0
        for i, (value, given, kind) in enumerate(zip(args, made.args, row.kinds, strict=True)):
            if kind == "list":
                shapes = [shape_of(g) for g in given]
                parts = [full(v, s) for v, s in zip(value, shapes, strict=True)]
                operands.append(call("[]", parts, ()))
            elif given is not None and (kind != "option" or _is_tensor(given)):
                operands.append(self.whole(value, given))
            elif i < last and not plain:
                options.append(("", value))
                continue
            else:
                continue
            if not plain:
                options.append(("@", len(operands) - 1))
        rest = chosen(row, args, names)
        if not plain:
            early = {n for n, k in zip(row.names[:last], row.kinds, strict=False) if k == "option"}
            renamed = [k for k, _ in rest]
            rest = [] if all(k == "" or k in early for k in renamed) else [
                (k, v) for k, v in rest if k and k not in early
            ]
        options += rest
        if len(made.outputs) == 1 and row.single:
            return call(word, operands, made.outputs[0].shape, options)
        whole = call(word, operands, (), options)
        return [
            call("select", [whole], o.shape, [("", 0), ("", k)])
            for k, o in enumerate(made.outputs)
        ]

    def whole(self, value: Any, given: Any) -> Expression:
        """An operand in its full shape; integers and truth values as they are."""
        own = value if isinstance(value, Expression) else self.operand(given)
        plain = given.value if isinstance(given, Traced) else getattr(given, "array", None)
        if own.op == "number" and plain is not None and np.asarray(plain).dtype.kind in "biu":
            return array(np.asarray(plain))
        if own.op == "number" and not shape_of(given):  # a tensor, as functions want one
            return alg.scale(own.data, call("ones", [], ()))
        return full(own, shape_of(given))

    def expand(self, made: Call) -> Any:
        """The formula that an internal row stands for, by tracing its kernel."""
        try:
            found = made.row.run([_arraylike(a, self) for a in made.args])
        except Exception as error:
            raise NoExpression(_no_expression(made)) from error
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        if not all(isinstance(r, Traced) for r in results):
            raise NoExpression(_no_expression(made))
        self.kept += results
        read = self.read(results)
        return read if len(made.outputs) > 1 else read[0]


def _arraylike(value: Any, reader: Reader) -> Any:
    """An operand as a kernel wants it: with the attributes of an array."""
    if isinstance(value, (Tensor, Scalar)):
        return Arraylike(value.array)
    if isinstance(value, Traced):
        made = Arraylike(value.value, value.name)
        reader.made[id(made)] = reader.operand(value)
        reader.kept.append(made)
        return made
    return value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (Traced, Tensor, Scalar, np.ndarray))


def _no_expression(made: Call) -> str:
    return f"the derivative needs {made.row.name}, which has no form as an expression"


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an operand as it was given."""
    return tuple(value.shape) if hasattr(value, "shape") else ()


@cache
def _public() -> dict[int, str]:
    from gradcli.operators import table

    table.load()
    return {id(f.target): f.name for f in table.FUNCTIONS.values()}


def public_name(row: Any) -> str | None:
    """The name by which the language calls a row."""
    from gradcli.operators import table

    found = _public().get(id(row))
    if found is None and row.name in table.FUNCTIONS:
        return row.name  # one of the rows that a function of that name picks from
    return found


def chosen(row: Any, args: list[Any], names: str | None = None) -> list[tuple[str, Any]]:
    """The options of a call that differ from their defaults, by keyword; `dim` by position.

    names: what the public function calls them, in the order of the row's options.
    """
    found: list[tuple[str, Any]] = []
    renamed = iter(names.split()) if names is not None else None
    leading = True
    for word, kind, value in zip(row.names, row.kinds, args, strict=True):
        if kind != "option":
            continue
        shown = next(renamed, "-") if renamed is not None else word
        if shown == "-" or isinstance(value, Expression) or _is_tensor(value):
            leading = False
            continue
        if value == row.defaults.get(word, DEFAULTS.get(shown, row)):
            leading = False
            continue
        if shown == "dim" and isinstance(value, (tuple, list)) and len(value) == 1:
            value = value[0]
        positional = leading and shown in ("dim", "dim0", "dim1", "diagonal", "dims", "offset")
        found.append(("" if positional else shown, value))
        leading = leading and positional
    return found


DEFAULTS: dict[str, Any] = {
    "keepdim": False,
    "dtype": None,
    "alpha": 1,
    "beta": 1,
    "value": 1,
    "descending": False,
    "accumulate": False,
}

_CONSTANTS: dict[float, Callable[[], Expression]] = {}


def constant(value: Any) -> Expression:
    """A constant array: a number where all its elements are equal."""
    array_ = np.asarray(value)
    if array_.size == 0:
        return call("zeros", [], array_.shape, [("", array_.shape)])
    first = array_.flat[0]
    if array_.ndim == 0 or array_.size == 1 or bool((array_ == first).all()):
        return known_number(first)
    return array(array_)


def known_number(value: Any) -> Expression:
    """A number, by its name if it has one: 1.1283791670955126 is 2/sqrt(pi), 0.6666666666666666 2/3."""
    if np.iscomplexobj(value) or isinstance(value, (bool, int)):
        return number(value)
    plain = float(value)
    found = _named_numbers().get(abs(plain))
    if found is not None:
        made = found()
        return alg.negate(made) if plain < 0 else made
    if len(repr(plain)) > 16 and math.isfinite(plain):
        simple = Fraction(plain).limit_denominator(1000)
        if simple and abs(float(simple) - plain) <= math.ulp(plain):  # 2/3 - 1
            return number(simple)
    return number(value)


@cache
def _named_numbers() -> dict[float, Callable[[], Expression]]:
    from gradcli.calculus.expressions import name

    pi = lambda: name("pi", (), -1)  # noqa: E731
    root_pi = lambda: alg.root(pi())  # noqa: E731
    found: dict[float, Callable[[], Expression]] = {
        math.pi: pi,
        2 * math.pi: lambda: alg.scale(Number.of(2), pi()),
        math.pi / 2: lambda: alg.scale(alg.HALF, pi()),
        1 / math.pi: lambda: alg.divide(alg.one, pi()),
        math.sqrt(math.pi): root_pi,
        2 / math.sqrt(math.pi): lambda: alg.divide(number(2), root_pi()),
        math.sqrt(math.pi) / 2: lambda: alg.scale(alg.HALF, root_pi()),
        math.sqrt(2): lambda: alg.root(number(2)),
        math.sqrt(0.5): lambda: alg.divide(alg.one, alg.root(number(2))),
    }
    for n in (2, 3, 5, 10):
        found[math.log(n)] = lambda n=n: call("log", [number(n)], ())  # type: ignore[misc]
        found[float(np.log(n))] = found[math.log(n)]
    for value in (1 / math.sqrt(2 * math.pi), math.sqrt(1 / (2 * math.pi)), 0.3989422804014327):
        found[value] = lambda: alg.divide(alg.one, alg.root(alg.scale(Number.of(2), pi())))
    return found


# -- elementwise ----------------------------------------------------------------------------------
ELEMENTWISE = frozenset(
    [
        *("maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp", "logaddexp2"),
        *("isnan", "isinf", "isfinite", "signbit", "heaviside", "xlogy", "isposinf", "isneginf"),
        *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"),
        *("logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
        *("floor_divide", "complex", "polar", "special.entr", "igamma", "igammac", "polygamma"),
        *("real", "imag", "angle", "conj"),
    ]
)


def _elementwise(word: str) -> Handler:
    def handle(reader: Reader, made: Call, args: list[Any]) -> Expression:
        return function(word, *map(_number, args))

    return handle


def _with_alpha(sign: Number, flipped: bool = False) -> Handler:
    def handle(reader: Reader, made: Call, args: list[Any]) -> Expression:
        a, b, alpha = args
        a, b = _number(a), _number(b)
        own, other = (a, b) if not flipped else (b, a)
        factor = sign * Number.of(alpha)
        if flipped:  # other - alpha * self
            return alg.combine([(own, ONE), (other, factor)])
        return alg.combine([(own, ONE), (other, factor)])

    return handle


def _formula(formula: Callable[..., Expression]) -> Handler:
    """A row that is an elementwise formula of its operands and options."""

    def handle(reader: Reader, made: Call, args: list[Any]) -> Expression:
        return formula(*args)

    return handle


def _number(value: Any) -> Expression:
    return value if isinstance(value, Expression) else known_number(value)


def compare(word: str, a: Any, b: Any) -> Expression:
    """A comparison, about the argument where the operand is a relu: relu(x) > 0 is x > 0."""
    left, right = _number(a), _number(b)
    if is_call(left, "relu") and is_number(right, 0) and word in ("gt", "le"):
        left = left.args[0]
    coefficient, rest = alg.split(left)
    if is_number(right, 0) and coefficient != ONE and coefficient.exact and rest is not alg.one:
        left = rest
        word = _MIRRORED[word] if coefficient.negative else word
    return function(word, left, right)


_MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge", "eq": "eq", "ne": "ne"}


def where(reader: Reader, made: Call, condition: Expression, a: Any, b: Any) -> Expression:
    """`where`; what a rule does only to keep a NaN out at one point is left out."""
    a, b = _number(a), _number(b)
    if id(made) not in reader.given and _single_points(condition):
        if is_number(a, 0):
            return b
        if is_number(b, 0) and is_call(condition, "ne"):
            return a
    return alg.where(condition, a, b)


def _single_points(condition: Expression) -> bool:
    """Whether the condition is an equality, or demands one: true at single points only."""
    if is_call(condition, "eq"):
        return True
    if is_call(condition, "bitwise_and", "logical_and"):
        return any(_single_points(a) for a in condition.args)
    if is_call(condition, "bitwise_or", "logical_or"):
        return all(_single_points(a) for a in condition.args)
    return False


def _where_of(reader: Reader, made: Call, args: list[Any]) -> Expression:
    return where(reader, made, args[0], args[1], args[2])


def _masked_fill(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, mask, value = args
    shape = made.outputs[0].shape
    if is_number(own, 0) and id(made) not in reader.given and is_call(mask, "eq"):
        # how a rule shares a gradient between equal elements
        return alg.multiply(_number(value), mask)
    found = where(reader, made, mask, _number(value), own)
    return found if found.shape == shape or value_of(found) is not None else found


def _clamp(low: bool, high: bool) -> Handler:
    def handle(reader: Reader, made: Call, args: list[Any]) -> Expression:
        own, *limits = args
        pairs = []
        if low and limits[0] is not None:
            pairs.append(("min", limits[0]))
        if high and limits[-1] is not None:
            pairs.append(("max", limits[-1]))
        operands = [own]
        options: list[tuple[str, Any]] = []
        for key, limit in pairs:
            if isinstance(limit, Expression) and value_of(limit) is None:
                operands.append(limit)
                options.append((key, len(operands) - 1))
            else:
                options.append((key, limit if not isinstance(limit, Expression) else limit.data))
        shape = broadcast(o.shape for o in operands)
        if len(operands) == 1:
            return call("clamp", operands, shape, options)
        if len(pairs) == 1:
            return function("maximum" if pairs[0][0] == "min" else "minimum", *operands)
        lower, upper = (_number(limit) for _, limit in pairs)
        return function("minimum", function("maximum", own, lower), upper)

    return handle


def _log_sigmoid(reader: Reader, made: Call, args: list[Any]) -> list[Expression]:
    found = call("nn.functional.logsigmoid", args, args[0].shape)
    return [found, alg.zero]


def _positive(u: Expression) -> Expression:
    return compare("gt", u, alg.zero)


def sigmoid(u: Expression) -> Expression:
    """The logistic function."""
    return function("sigmoid", u)


def _gelu_backward(g: Expression, u: Expression, approximate: str) -> Expression:
    if approximate == "tanh":
        raise NoExpression("the derivative of gelu(approximate='tanh') has no short expression")
    root_two = alg.root(number(2))
    cdf = alg.scale(alg.HALF, alg.add(alg.one, function("erf", alg.divide(u, root_two))))
    density = alg.divide(
        function("exp", alg.scale(Number.of(-0.5) * ONE, alg.multiply(u, u))),
        alg.root(alg.scale(Number.of(2), known_number(math.pi))),
    )
    return alg.multiply(g, alg.add(cdf, alg.multiply(u, density)))


def _elu_backward(
    g: Expression, alpha: Any, scale: Any, inner: Any, is_result: Any, u: Expression
) -> Expression:
    if is_result:
        raise NoExpression("the derivative of an in-place elu has no form as an expression")
    slope = alg.multiply(
        number(alpha), number(scale), number(inner), function("exp", alg.multiply(number(inner), u))
    )
    return alg.multiply(g, alg.where(_positive(u), number(scale), slope))


# -- reductions and products ----------------------------------------------------------------------
def _axes(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(d % ndim for d in given) if ndim else ()


def total(own: Expression, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Expression:
    """The sum over dimensions: constant factors come out, equal elements are counted."""
    axes = _axes(dim, len(shape))
    result = tuple(
        1 if i in axes else n for i, n in enumerate(shape) if keepdim or i not in axes
    )
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (total(own, shape, dim, keepdim), ONE)])
    chosen_ = _selected(own) if len(shape) == 1 and own.shape == shape else None
    if chosen_ is not None:
        return chosen_
    lead = len(shape) - len(own.shape)
    count = 1
    rest = []
    for i in axes:
        if i < lead or own.shape[i - lead] == 1:
            count *= shape[i]
        elif shape[i] != 1:
            rest.append(i)
    if not rest:
        if not own.shape or math.prod(own.shape) == 1 or set(axes).isdisjoint(range(lead, 99)):
            made = own
            if own.shape and not keepdim and any(i >= lead for i in axes):
                made = reshaped(own, tuple(n for i, n in enumerate(shape) if i not in axes))
            return alg.scale(Number.of(count), made)
        own, count, rest = full(own, shape), 1, list(axes)
    elif len(rest) != len(axes):
        if not keepdim or lead:
            own, count, rest = full(own, shape), 1, list(axes)
    if len(rest) == len(own.shape) and not keepdim:
        options: list[tuple[str, Any]] = []
    else:
        options = [("", rest[0] if len(rest) == 1 else tuple(rest))]
        if keepdim:
            options.append(("", True))
    return alg.scale(Number.of(count), call("sum", [own], result, options))


def _selected(own: Expression) -> Expression | None:
    """sum(x * (zeros with one element g at i)) is x[i]*g."""
    pairs: list[Any] = [(own, ONE)]
    if own.op == "product":
        pairs = list(zip(own.args, own.data[1], strict=True))
    spots = [b for b, e in pairs if e == ONE and is_call(b, "select_scatter")]
    if len(spots) != 1 or not is_call(spots[0].args[0], "zeros"):
        return None
    index = spots[0].data[1][1][1]
    rest = [
        (call("select", [b], (), [("", 0), ("", index)]) if b.shape else b, e)
        for b, e in pairs
        if b is not spots[0]
    ]
    if any(isinstance(e, Expression) and e.shape for _, e in rest):
        return None
    return alg.product([(spots[0].args[1], ONE), *rest])


def _sum(reader: Reader, made: Call, args: list[Any]) -> Expression:
    shape = shape_of(made.args[0])
    dim, keepdim = (args[1], args[2]) if made.row.name == "sum_dim" else (None, False)
    return total(args[0], shape, dim, keepdim)


def _mean(reader: Reader, made: Call, args: list[Any]) -> Expression:
    shape = shape_of(made.args[0])
    dim, keepdim = (args[1], args[2]) if made.row.name == "mean_dim" else (None, False)
    outer, own = alg.scalars_out(args[0])
    if not own.shape:
        return args[0]  # type: ignore[no-any-return]
    axes = _axes(dim, len(shape))
    options: list[tuple[str, Any]] = []
    if keepdim or len(axes) != len(shape):
        options.append(("", axes[0] if len(axes) == 1 else axes))
        if keepdim:
            options.append(("", True))
    found = call("mean", [full(own, shape)], made.outputs[0].shape, options)
    return alg.product([*outer, (found, ONE)]) if outer else found


def _moment(word: str) -> Handler:
    def handle(reader: Reader, made: Call, args: list[Any]) -> Any:
        _, dim, correction, keepdim = args
        options: list[tuple[str, Any]] = [] if dim is None else [("", dim)]
        if correction not in (None, 1):
            options.append(("correction", correction))
        if keepdim:
            options.append(("keepdim", True))
        own = full(args[0], shape_of(made.args[0]))
        if len(made.outputs) == 1:
            return call(word, [own], made.outputs[0].shape, options)
        whole = call(word, [own], (), options)
        return [
            call("select", [whole], o.shape, [("", 0), ("", k)])
            for k, o in enumerate(made.outputs)
        ]

    return handle


def _vector(own: Expression) -> Expression | None:
    """The vector that a matrix of one row or column was made from."""
    if is_call(own, "reshape", "expand") and len(own.args[0].shape) == 1:
        return own.args[0]
    if is_call(own, "ones"):
        return call("ones", [], (max(own.shape),), [("", (max(own.shape),))])
    if is_call(own, "T") and is_call(own.args[0], "reshape"):
        return _vector(own.args[0])
    return None


def matrix_product(a: Expression, b: Expression, shape: tuple[int, ...]) -> Expression:
    """`a @ b`: plain factors come out, the identity vanishes."""
    outer_a, a = alg.scalars_out(a)
    outer_b, b = alg.scalars_out(b)
    if outer_a or outer_b:
        return alg.product([*outer_a, *outer_b, (matrix_product(a, b, shape), ONE)])
    if len(a.shape) == 2 and a.shape[0] == 1 and _vector(a) is not None and len(b.shape) == 2:
        row = _vector(a)
        assert row is not None
        column = _vector(b) if b.shape[0] == 1 else None
        if column is None:
            return reshaped(matrix_product(row, b, (shape[1],)), shape)
    if len(b.shape) == 2 and b.shape[1] == 1 and _vector(b) is not None and len(a.shape) == 2:
        column = _vector(b)
        assert column is not None
        return reshaped(matrix_product(a, column, (shape[0],)), shape)
    if len(a.shape) == len(b.shape) == 2 and a.shape[1] == b.shape[0] == 1:
        left, right = _vector(a), _vector(b)
        if left is not None and right is not None:
            return call("outer", [left, right], shape)
    if len(a.shape) == 1 and is_call(b, "T"):
        return matrix_product(b.args[0], a, shape)
    if len(b.shape) == 1 and len(a.shape) == 1:
        return call("dot", [a, b], ())
    if len(shape) == 3 and shape[0] == 1:
        inner = matrix_product(reshaped(a, a.shape[1:]), reshaped(b, b.shape[1:]), shape[1:])
        return reshaped(inner, shape)
    if is_call(a, "ones") and len(a.shape) == 1 and len(b.shape) == 2:
        return total(b, b.shape, 0, False)
    if is_call(b, "ones") and len(b.shape) == 1 and len(a.shape) == 2:
        return total(a, a.shape, 1, False) if not is_call(a, "T") else total(
            a.args[0], a.args[0].shape, 0, False
        )
    if is_call(a, "eye"):
        return b
    if is_call(b, "eye"):
        return a
    return call("matmul", [a, b], shape)


def _matmul(reader: Reader, made: Call, args: list[Any]) -> Expression:
    a, b = (full(v, shape_of(g)) for v, g in zip(args, made.args, strict=True))
    return matrix_product(a, b, made.outputs[0].shape)


def _dot(reader: Reader, made: Call, args: list[Any]) -> Expression:
    shape = shape_of(made.args[0])
    outer_a, a = alg.scalars_out(args[0])
    outer_b, b = alg.scalars_out(args[1])
    if a.shape != shape or b.shape != shape:
        found = total(alg.multiply(a, b), shape, None, False)
    else:
        found = call("dot", [a, b], ())
    return alg.product([*outer_a, *outer_b, (found, ONE)])


def transposed(own: Expression) -> Expression:
    """`own.T` of a matrix: factors stay outside, twice is nothing."""
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (transposed(own), ONE)])
    if is_call(own, "T"):
        return own.args[0]
    if is_call(own, "ones", "zeros"):
        shape = own.shape[::-1]
        return call(own.data[0], [], shape, [("", shape)])
    if is_call(own, "eye"):
        return own
    if is_call(own, "outer"):
        return call("outer", own.args[::-1], own.shape[::-1])
    if _vector(own) is not None and 1 in own.shape:
        return reshaped(_vector(own) or own, own.shape[::-1])
    if is_call(own, "matmul") and all(len(a.shape) == 2 for a in own.args):
        a, b = own.args
        return matrix_product(transposed(b), transposed(a), own.shape[::-1])
    if own.op == "sum" and all(t.shape == own.shape for t in own.args) and all(
        is_call(alg.split(t)[1], "T", "matmul") for t in own.args
    ):
        coefficients, fixed = own.data
        terms = [(transposed(t), c) for t, c in zip(own.args, coefficients, strict=True)]
        return alg.combine([*terms, (alg.one, fixed)])
    return call("T", [own], own.shape[::-1])


def _transpose(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, *dims = args
    shape = shape_of(made.args[0])
    ndim = len(shape)
    if ndim < 2 or not own.shape:
        return own  # type: ignore[no-any-return]
    order = list(range(ndim))
    if dims and isinstance(dims[0], (tuple, list)):
        order = [d % ndim for d in dims[0]]
    else:
        i, k = (d % ndim for d in dims) if dims else (0, 1)
        order[i], order[k] = order[k], order[i]
    return permuted(own, shape, order)


def permuted(own: Expression, shape: tuple[int, ...], order: list[int]) -> Expression:
    """`own.permute(order)`; where only dimensions of one element move it is a reshape."""
    ndim = len(shape)
    if order == list(range(ndim)):
        return own
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (permuted(own, shape, order), ONE)])
    lead = ndim - len(own.shape)
    padded = (1,) * lead + own.shape
    after = tuple(padded[i] for i in order)
    moved = [i for i in order if padded[i] != 1]
    if moved == sorted(moved):
        return reshaped(own, after)
    if lead:
        own = reshaped(own, padded)
    if len(moved) == 2:
        flat = tuple(n for n in padded if n != 1)
        return reshaped(transposed(reshaped(own, flat)), after)
    if is_call(own, "permute"):
        first = own.data[1][0][1]
        return permuted(own.args[0], own.args[0].shape, [first[i] for i in order])
    if is_call(own, "ones", "zeros"):
        return call(own.data[0], [], after, [("", after)])
    return call("permute", [own], after, [("", tuple(order))])


# -- shapes ---------------------------------------------------------------------------------------
def _same(reader: Reader, made: Call, args: list[Any]) -> Any:
    return args[0]


def reshaped(own: Expression, shape: tuple[int, ...]) -> Expression:
    """The expression with another shape."""
    if own.shape == shape or not own.shape:
        return own
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (reshaped(own, shape), ONE)])
    if is_call(own, "reshape"):
        return reshaped(own.args[0], shape)
    if is_call(own, "ones", "zeros"):
        return call(own.data[0], [], shape, [("", shape)])
    if is_call(own, "sum") and own.data[1] and len(own.data[1]) == 1:
        # sum(x, 1).reshape(n, 1) is sum(x, 1, keepdim=True)
        axes = _axes(own.data[1][0][1], len(own.args[0].shape))
        kept = tuple(1 if i in axes else n for i, n in enumerate(own.args[0].shape))
        if kept == shape:
            options = [*own.data[1], ("", True)]
            return call("sum", own.args, shape, options)
    return call("reshape", [own], shape, [("", shape)])


def _reshape(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, shape = args[0], shape_of(made.args[0])
    if not own.shape or math.prod(own.shape) == 1:
        return own if not own.shape else reshaped(own, (1,) * len(made.outputs[0].shape))
    return reshaped(full(own, shape), made.outputs[0].shape)


def _unsqueeze(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, dim = args
    shape = shape_of(made.args[0])
    if not own.shape:
        return own  # type: ignore[no-any-return]
    at = dim % (len(shape) + 1)
    lead = len(shape) - len(own.shape)
    if at <= lead:
        return own if at < lead or lead or True else own  # type: ignore[no-any-return]
    at -= lead
    return reshaped(own, (*own.shape[:at], 1, *own.shape[at:]))


def _getitem(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, *where_ = args
    shape = shape_of(made.args[0])
    word = made.row.name
    if not own.shape:
        return own  # type: ignore[no-any-return]
    if word == "slice":
        dim, start, end, step = where_
        size = shape[dim]
        if (start or 0) == 0 and (end is None or end >= size) and step == 1:
            return own  # type: ignore[no-any-return]
    return call(word, [full(own, shape)], made.outputs[0].shape, [("", w) for w in where_])


def _zeros(shape: Any) -> Expression:
    shape = tuple(int(n) for n in shape)
    return call("zeros", [], shape, [("", shape)])


def _scattered(word: str) -> Handler:
    """The gradient of a selection: zeros with the gradient written where it was read."""

    def handle(reader: Reader, made: Call, args: list[Any]) -> Expression:
        g, sizes, *where_ = args
        if is_number(g, 0):
            return alg.zero
        outer, g = alg.scalars_out(g)
        names = _SCATTER[word]
        operand = full(g, shape_of(made.args[0]))
        options = [(n, w) for n, w in zip(names, where_, strict=True)]
        if word == "slice_scatter":
            size = sizes[where_[0]]
            options = [
                (n, w)
                for n, w in options
                if not (n == "end" and (w is None or w >= size))
                and not (n == "step" and w == 1)
                and not (n == "start" and not w)
            ]
        if word == "diagonal_scatter":
            options = [
                (n, w)
                for (n, w), d in zip(options, (0, 0, 1), strict=True)
                if w != d
            ]
        made_ = call(word, [_zeros(sizes), operand], tuple(sizes), options)
        return alg.product([*outer, (made_, ONE)]) if outer else made_

    return handle


_SCATTER = {
    "select_scatter": ("", ""),
    "slice_scatter": ("dim", "start", "end", "step"),
    "diagonal_scatter": ("offset", "dim1", "dim2"),
}


def _index(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, indices = args
    shape = shape_of(made.args[0])
    parts = [i if i is not None else call(":", [], ()) for i in indices]
    return call("index", [full(own, shape), *parts], made.outputs[0].shape)


def _index_put(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, indices, values, accumulate = args
    shape = shape_of(made.args[0])
    if any(i is None for i in indices):
        raise NoExpression("the derivative of an index with `:` in it has no form as an expression")
    tuple_ = call("()", indices, ())
    operands = [full(own, shape), tuple_, full(values, shape_of(made.args[2]))]
    options = [("", True)] if accumulate else []
    return call("index_put", operands, shape, options)


def _cast(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, wanted = args[0], made.outputs[0].value.dtype
    given = made.args[0].dtype if isinstance(made.args[0], Traced) else None
    plain = getattr(wanted, "dtype", wanted)
    if given is not None and np.dtype(given.dtype).kind == np.dtype(plain).kind:
        return own  # type: ignore[no-any-return]
    if isinstance(own, Expression) and own.op == "call" and np.dtype(plain).kind in "fc":
        if own.data[0] in ("eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or"):
            return own
    if np.dtype(plain).kind in "fc":
        return own  # type: ignore[no-any-return]
    return call("to", [own], own.shape, [("", _dtype(plain))])


def _dtype(plain: Any) -> Any:
    from gradcli.engine import dtypes

    return plain if isinstance(plain, Dtype) else dtypes.of(np.dtype(plain))


def _named(word: str, names: str | None = None) -> Handler:
    """A row that is another name's function."""
    return lambda reader, made, args: reader.general(word, made, args, names)


def _first(word: str, names: str = "") -> Handler:
    """A row of several outputs of which the public function returns the first."""

    def handle(reader: Reader, made: Call, args: list[Any]) -> list[Expression]:
        operands = [
            full(v, shape_of(g))
            for v, g, k in zip(args, made.args, made.row.kinds, strict=True)
            if k == "tensor"
        ]
        found = call(word, operands, made.outputs[0].shape, chosen(made.row, args, names))
        return [found, *(alg.zero for _ in made.outputs[1:])]

    return handle


def _softmax_backward(reader: Reader, made: Call, args: list[Any]) -> Expression:
    g, output, dim = args[:3]
    shape = made.outputs[0].shape
    weighted = alg.multiply(g, output)
    inner = total(weighted, shape, dim, True)
    return alg.multiply(output, alg.subtract(g, inner))


def _log_softmax_backward(reader: Reader, made: Call, args: list[Any]) -> Expression:
    g, output, dim = args[:3]
    inner = total(g, made.outputs[0].shape, dim, True)
    return alg.subtract(g, alg.multiply(function("exp", output), inner))


def _norm(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, order, dim, keepdim = args[:4]
    word = "norm" if order == 2 and dim is None and not keepdim else "linalg.vector_norm"
    options: list[tuple[str, Any]] = [] if order == 2 else [("", order)]
    if dim is not None:
        options.append(("dim", dim[0] if isinstance(dim, (tuple, list)) and len(dim) == 1 else dim))
    if keepdim:
        options.append(("keepdim", True))
    own = full(own, shape_of(made.args[0]))
    return call(word, [own], made.outputs[0].shape, options)


def _inverse(reader: Reader, made: Call, args: list[Any]) -> list[Expression]:
    own = full(args[0], shape_of(made.args[0]))
    outer, own = alg.scalars_out(own)
    found = inverse(own)
    inverted = [(b, MINUS_ONE if e == ONE else -e) for b, e in outer]  # type: ignore[operator]
    return [alg.product([*inverted, (found, ONE)]), alg.zero]


def _addmm(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, a, b, beta, alpha = args
    a, b = (full(v, shape_of(g)) for v, g in zip((a, b), made.args[1:3], strict=True))
    product = matrix_product(a, b, made.outputs[0].shape)
    return alg.combine([(own, Number.of(beta)), (product, Number.of(alpha))])


def _conj(reader: Reader, made: Call, args: list[Any]) -> Expression:
    value = made.args[0]
    if isinstance(value, Traced) and value.value.dtype.kind != "c":
        return args[0]  # type: ignore[no-any-return]
    return function("conj", args[0])


def _parts(word: str, names: str) -> Handler:
    """split and unbind: a list of pieces, each by its subscript."""

    def handle(reader: Reader, made: Call, args: list[Any]) -> list[Expression]:
        own = full(args[0], shape_of(made.args[0]))
        if word == "unbind":
            dim = args[1] % own.args[0].data if False else args[1]
            return [
                call("select", [own], o.shape, [("", dim), ("", k)])
                for k, o in enumerate(made.outputs)
            ]
        found, start, dim = [], 0, args[2]
        for o in made.outputs:
            end = start + o.shape[dim]
            where_ = [("", dim), ("", start), ("", end), ("", 1)]
            found.append(call("slice", [own], o.shape, where_))
            start = end
        return found

    return handle


def _multiply_add(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, a, b, value = args
    pair = alg.divide(a, b) if made.row.name == "addcdiv" else alg.multiply(a, b)
    return alg.combine([(own, ONE), (pair, Number.of(value))])


def _lerp(own: Expression, end: Expression, weight: Any) -> Expression:
    return alg.add(own, alg.multiply(_number(weight), alg.subtract(end, own)))


def _sgn(reader: Reader, made: Call, args: list[Any]) -> Expression:
    complex_ = made.outputs[0].value.dtype.kind == "c"
    return function("sgn" if complex_ else "sign", *args)


def _diag_embed(reader: Reader, made: Call, args: list[Any]) -> Any:
    own, *where_ = args
    shape = made.outputs[0].shape
    if is_number(own, 1) and where_ == [0, -2, -1] and len(shape) == 2:
        return call("eye", [], shape)
    return reader.general("diag_embed", made, args)


def _solve(reader: Reader, made: Call, args: list[Any]) -> list[Any]:
    a, b = (full(v, shape_of(g)) for v, g in zip(args[:2], made.args[:2], strict=True))
    outer, b = alg.scalars_out(b)
    if is_call(b, "eye"):
        found = transposed(inverse(a.args[0])) if is_call(a, "T") else inverse(a)
    else:
        options = [] if args[2] else [("left", False)]
        found = call("linalg.solve", [a, b], made.outputs[0].shape, options)
    found = alg.product([*outer, (found, ONE)]) if outer else found
    return [found, *(alg.zero for _ in made.outputs[1:])]


def inverse(own: Expression) -> Expression:
    """`linalg.inv(own)`."""
    return own.args[0] if is_call(own, "linalg.inv") else call("linalg.inv", [own], own.shape)


def _polygamma(reader: Reader, made: Call, args: list[Any]) -> Expression:
    operands = [a for a in args if isinstance(a, Expression)]
    (order,) = (a for a in args if not isinstance(a, Expression))
    if order == 0:
        return function("digamma", *operands)
    return call("polygamma", operands, operands[0].shape, [("", order), ("@", 0)])


def _within(u: Expression, width: Any) -> Expression:
    low, high = compare("ge", u, number(-width)), compare("le", u, number(width))
    return function("bitwise_and", low, high)


def _hardswish_backward(g: Expression, u: Expression) -> Expression:
    middle = alg.add(alg.divide(u, number(3)), number(Fraction(1, 2)))
    rising = alg.where(compare("le", u, number(3)), middle, alg.one)
    return alg.multiply(g, alg.where(compare("lt", u, number(-3)), alg.zero, rising))


def _rounded(reader: Reader, made: Call, args: list[Any]) -> Expression:
    a, b, mode = args
    if mode == "floor":
        return function("floor_divide", a, b)
    return function("trunc", alg.divide(a, b))


def _elu(reader: Reader, made: Call, args: list[Any]) -> Expression:
    own, alpha, scale, inner = args
    if inner != 1:
        raise NoExpression("the derivative of an elu with an input scale has no form as an expression")
    options = [] if alpha == 1 else [("alpha", alpha)]
    return alg.scale(Number.of(scale), call("nn.functional.elu", [own], own.shape, options))


def _index_fill(reader: Reader, made: Call, args: list[Any]) -> Any:
    own, _, index, value = args
    shape = made.outputs[0].shape
    spots = made.args[2]
    n = math.isqrt(shape[0]) if len(shape) == 1 else 0
    if n and n * n == shape[0] and is_number(own, 0) and hasattr(spots, "array"):
        if np.array_equal(spots.array, np.arange(0, n * n, n + 1)):  # the gradient of a trace
            eye = call("reshape", [call("eye", [], (n, n))], shape, [("", shape)])
            return alg.multiply(_number(value), eye)
    return reader.general("index_fill", made, args)


def _triangle(reader: Reader, made: Call, args: list[Any]) -> Expression:
    return reader.general(made.row.name, made, args, "diagonal")  # type: ignore[no-any-return]


HANDLERS: dict[str, Handler] = {
    "add": _with_alpha(ONE),
    "add_scalar": _with_alpha(ONE),
    "sub": _with_alpha(MINUS_ONE),
    "sub_scalar": _with_alpha(MINUS_ONE),
    "rsub_scalar": _with_alpha(MINUS_ONE, flipped=True),
    "rsub_tensor": _with_alpha(MINUS_ONE, flipped=True),
    "mul": _elementwise("mul"),
    "neg": _elementwise("neg"),
    "sgn": _sgn,
    "diag_embed": _diag_embed,
    "polygamma_row": _polygamma,
    "nansum_row": _named("nansum", "dim keepdim -"),
    **dict.fromkeys(["xlogy_tensors", "xlogy_of", "xlogy_by"], _elementwise("xlogy")),
    **dict.fromkeys(
        ["xlog1py_tensors", "xlog1py_of", "xlog1py_by"], _elementwise("special.xlog1py")
    ),
    "div_rounded": _rounded,
    "hardshrink_backward": _formula(lambda g, u, width: alg.where(_within(u, width), alg.zero, g)),
    "softshrink_backward": _formula(lambda g, u, width: alg.where(_within(u, width), alg.zero, g)),
    "hardsigmoid_backward": _formula(
        lambda g, u: alg.where(
            function("bitwise_and", compare("gt", u, number(-3)), compare("lt", u, number(3))),
            alg.divide(g, number(6)),
            alg.zero,
        )
    ),
    "hardswish_backward": _formula(_hardswish_backward),
    "expand_size_copy": _same,
    "permute_dims_copy": _transpose,
    "squeeze_all_copy": _reshape,
    "squeeze_dim_copy": _reshape,
    "squeeze_dims_copy": _reshape,
    "view_size_copy": _reshape,
    "unsqueeze_copy": _unsqueeze,
    "index_fill_number": _index_fill,
    "index_fill_tensor": _index_fill,
    "mul_scalar": _elementwise("mul"),
    "div_true": _elementwise("div"),
    "div_scalar": _elementwise("div"),
    "pow_number": _elementwise("pow"),
    "pow_tensors": _elementwise("pow"),
    "pow_base": _elementwise("pow"),
    "remainder_number": _elementwise("remainder"),
    "remainder_tensors": _elementwise("remainder"),
    "fmod_number": _elementwise("fmod"),
    "fmod_tensors": _elementwise("fmod"),
    "copysign_number": _elementwise("copysign"),
    "copysign_tensors": _elementwise("copysign"),
    "round_whole": _elementwise("round"),
    "floor_divide": _elementwise("floor_divide"),
    "maximum": _elementwise("maximum"),
    "addcmul": _multiply_add,
    "addcdiv": _multiply_add,
    "lerp_number": _formula(_lerp),
    "lerp_tensor": _formula(_lerp),
    **{
        word: _formula(lambda a, b, word=word: compare(word, a, b))
        for word in ("eq", "ne", "lt", "le", "gt", "ge")
    },
    "clamp_numbers": _clamp(True, True),
    "clamp_tensors": _clamp(True, True),
    "clamp_min": _clamp(True, False),
    "clamp_max": _clamp(False, True),
    "where_of": _where_of,
    "masked_fill_number": _masked_fill,
    "masked_fill_tensor": _masked_fill,
    "sigmoid_backward": _formula(
        lambda g, r: alg.multiply(g, r, alg.subtract(alg.one, r))
    ),
    "tanh_backward": _formula(
        lambda g, r: alg.multiply(g, alg.subtract(alg.one, alg.multiply(r, r)))
    ),
    "threshold_backward": _formula(
        lambda g, r, threshold: alg.where(compare("gt", r, number(threshold)), g, alg.zero)
    ),
    "softplus_backward": _formula(
        lambda g, u, beta, threshold: alg.multiply(g, sigmoid(alg.multiply(number(beta), u)))
    ),
    "hardtanh_backward": _formula(
        lambda g, u, low, high: alg.where(
            function("bitwise_and", compare("gt", u, number(low)), compare("lt", u, number(high))),
            g,
            alg.zero,
        )
    ),
    "hardtanh_row": _named("nn.functional.hardtanh"),
    "leaky_relu_backward": _formula(
        lambda g, u, slope, *rest: alg.multiply(
            g, alg.where(_positive(u), alg.one, number(slope))
        )
    ),
    "elu_backward": _formula(
        lambda g, alpha, scale, inner, u: _elu_backward(g, alpha, scale, inner, False, u)
    ),
    "elu_row": _elu,
    "gelu_backward": _formula(_gelu_backward),
    "log_sigmoid_row": _log_sigmoid,
    "log_sigmoid_backward": _formula(
        lambda g, u, buffer: alg.multiply(g, sigmoid(alg.negate(u)))
    ),
    "sum_all": _sum,
    "sum_dim": _sum,
    "mean_all": _mean,
    "mean_dim": _mean,
    "prod_all": _named("prod", "-"),
    "prod_dim": _named("prod", "dim keepdim -"),
    "cumsum_row": _named("cumsum", "dim -"),
    "cumprod_row": _named("cumprod", "dim -"),
    "var_correction": _moment("var"),
    "std_correction": _moment("std"),
    "var_mean_correction": _moment("var_mean"),
    "std_mean_correction": _moment("std_mean"),
    "vector_norm_row": _norm,
    "norm_dim": _norm,
    "logsumexp_row": _named("logsumexp", "dim keepdim"),
    "softmax_row": _named("softmax", "dim"),
    "log_softmax_row": _named("log_softmax", "dim"),
    "softmax_backward_data": _softmax_backward,
    "log_softmax_backward_data": _log_softmax_backward,
    "sort_row": _named("sort"),
    "sort_stable_row": _named("sort", "dim descending stable"),
    "topk_row": _named("topk"),
    "median_all": _named("median"),
    "median_dim": _named("median"),
    "dot": _dot,
    "mv": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "addmm": _addmm,
    "addmv": _addmm,
    "baddbmm": _addmm,
    "inv_ex": _inverse,
    "det_row": _first("linalg.det"),
    "cholesky_ex_row": _first("linalg.cholesky", "upper -"),
    "solve_ex": _solve,
    "slogdet_row": _named("linalg.slogdet"),
    "qr_row": _named("linalg.qr", "mode"),
    "eigh_row": _named("linalg.eigh", "UPLO -"),
    "eig_row": _named("linalg.eig"),
    "svd_row": _named("linalg.svd", "full_matrices -"),
    "matrix_exp_row": _named("matrix_exp"),
    "pinv_row": _named("linalg.pinv", "- - -"),
    "t": _transpose,
    "t_row": _transpose,
    "transpose": _transpose,
    "transpose_row": _transpose,
    "transpose_in_place": _transpose,
    "permute_dims": _transpose,
    "expand_size": _same,
    "clone_as": _same,
    "alias": _same,
    "detach": _same,
    "squeeze_own": _reshape,
    **dict.fromkeys(
        [
            *("view_size", "unsafe_view", "reshape_alias", "squeeze_all", "squeeze_dim"),
            *("squeeze_dims", "squeeze_all_row", "squeeze_dim_row", "squeeze_dims_row"),
            "squeeze_in_place",
        ],
        _reshape,
    ),
    "unsqueeze": _unsqueeze,
    "unsqueeze_row": _unsqueeze,
    "unsqueeze_in_place": _unsqueeze,
    "select": _getitem,
    "slice": _getitem,
    "select_backward": _scattered("select_scatter"),
    "slice_backward": _scattered("slice_scatter"),
    "diagonal_backward": _scattered("diagonal_scatter"),
    "index": _index,
    "index_put_impl": _index_put,
    "index_put": _index_put,
    "to_copy": _cast,
    "to_discrete": _cast,
    "conj_of": _conj,
    "conj_physical_of": _conj,
    "unbind": _parts("unbind", "dim"),
    "split_size": _parts("split", "split_size dim"),
    "unsafe_split": _parts("split", "split_size dim"),
    "split_by_sizes": _parts("split", "split_sizes dim"),
    "flip_dims": _named("flip", "dims"),
    "roll_by": _named("roll", "shifts dims"),
    "rot90_by": _named("rot90", "k dims"),
    "repeat_by": _named("tile", "dims"),
    "tril": _triangle,
    "triu": _triangle,
    "scatter_src": _named("scatter"),
}

__all__ = ["NoExpression", "Reader", "constant", "known_number"]

"""PyTorch's argument parser: signatures are text, one binder chooses among them and words refusals.

A signature is written as in PyTorch's native_functions.yaml:

    "tril(Tensor input, int diagonal=0, *, Tensor? out=None)"

To convert a function, give `table.function` its signatures and take the parameters' defaults and every
check of their types out of the body: it is called with all values, in the order of the signature.

    @function("one_hot(Tensor input, int num_classes=-1)", name="nn.functional.one_hot", …)
    def one_hot(input, num_classes): ...

- Several signatures of one body: it is called by keyword with the values of the one that fits. Where
  each leads to a row or function of its own, its name follows an arrow, and `table.choice` makes the
  function: `max = choice("max(Tensor input) -> whole", "max(Tensor input, Tensor other) -> maximum",
  targets=(whole, maximum))`.
- A parameter called `out` is taken care of here. `axis`, `keepdims`, `x` are taken for `dim`,
  `keepdim`, `input`.
- `python=True` for functions that PyTorch writes in Python (most of `nn.functional`): Python itself
  words wrong counts and keywords then; an arrow names the operator that words wrong types (`inplace`,
  the last parameter, makes it that with an underscore).

Types: Tensor, Tensor[], Scalar (a number), float, int, bool, str, int[] (a sequence), int[2] (that, or
one int), float[], ScalarType, Generator, Layout, Device, MemoryFormat; Any is not looked at. `?` takes
None, as does the default None.

A refusal says what PyTorch's says: python_arg_parser.cpp for one signature, invalid_arguments.cpp for
several. Texts are read, and code is made of them, on a function's first call: straight-line Python for
the usual classes of arguments, and `Parser.general` for all others.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

from gradcli.engine import dtypes
from gradcli.engine.compiled import function as compiled
from gradcli.engine.operator import Row
from gradcli.engine.tensor import Tensor

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
REQUIRED = MISSING
_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2"}
_TORCH_NAMES = {"axis": "dim", "keepdims": "keepdim"}
_SAID = {
    **{"Scalar": "Number", "Tensor[]": "tuple of Tensors", "int[]": "tuple of ints"},
    **{"float[]": "tuple of floats", "ScalarType": "torch.dtype", "Layout": "torch.layout"},
    **{"Generator": "torch.Generator", "Device": "torch.device", "Any": "object"},
    "MemoryFormat": "torch.memory_format",
}
# The functions that take Python numbers for tensors.
_TAKE_NUMBERS = frozenset(
    "add sub subtract mul multiply div divide true_divide floor_divide copy_".split()
)


# -- what a type takes ----------------------------------------------------------------------------
def is_tensor(value: Any) -> bool:
    """True for tensors, and for the arrays, recorded ones too, that rules call functions with."""
    return isinstance(value, (Tensor, np.ndarray, np.generic)) or hasattr(value, "__operator__")


def _plain(value: Any) -> bool:
    """A 0-d tensor outside every graph: it counts as a number."""
    return isinstance(value, Tensor) and not value.array.ndim and not value.requires_grad


def _is_int(value: Any) -> bool:
    if isinstance(value, (int, np.integer)):
        return not isinstance(value, bool)
    return _plain(value) and value.array.dtype.kind in "iu"


def _is_float(value: Any) -> bool:
    return isinstance(value, (float, int, np.floating, np.integer, np.bool_)) or _plain(value)


def _is_bool(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return True
    return _plain(value) and value.array.dtype.kind == "b"


def _is_list(first: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A sequence: as PyTorch, only its first item is looked at before it is unpacked."""
    return lambda value: isinstance(value, (tuple, list)) and (not value or first(value[0]))


_TAKES: dict[str, Callable[[Any], bool]] = {
    "Tensor": is_tensor,
    "Tensor[]": lambda v: isinstance(v, (tuple, list)) and all(is_tensor(t) for t in v),
    "Scalar": lambda v: isinstance(v, (complex, np.complexfloating)) or _is_float(v),
    "float": _is_float,
    "int": _is_int,
    "bool": _is_bool,
    "str": lambda v: isinstance(v, str),
    "int[]": _is_list(_is_int),
    "float[]": _is_list(_is_float),
    "ScalarType": lambda v: isinstance(v, dtypes.dtype) or v in (float, int, bool, complex),
    "Generator": lambda v: type(v).__name__ == "Generator",
    "Layout": lambda v: type(v).__name__ == "layout",
    "Device": lambda v: type(v).__name__ == "device" or isinstance(v, (str, int)),
    "MemoryFormat": lambda v: type(v).__name__ == "memory_format",
    "Any": lambda v: True,
}
_REAL = frozenset([int, float, bool])
_ARRAYS = frozenset([np.ndarray, np.float64, np.float32])  # what rules call functions with
_QUICK = {  # the usual classes, as an expression over a value
    "Tensor": "({0}.__class__ is Tensor or {0}.__class__ in arrays)",
    "Scalar": "{0}.__class__ in numbers",
    "float": "{0}.__class__ in real",
    "int": "{0}.__class__ is int",
    "bool": "{0}.__class__ is bool",
    "str": "{0}.__class__ is str",
    "ScalarType": "{0}.__class__ is dtype_class",
    "int[]": "({0}.__class__ is tuple and ints({0}))",
}


def _ints(values: Any) -> bool:
    return all(v.__class__ is int for v in values)


def type_name(value: Any) -> str:
    """What messages call the type of an argument."""
    if isinstance(value, dtypes.dtype):
        return "torch.dtype"
    return "numpy.ndarray" if type(value) is np.ndarray else type(value).__name__


# -- signatures -----------------------------------------------------------------------------------
class Parameter:
    """One parameter of a signature: `Tensor? weight=None`."""

    def __init__(self, text: str, keyword_only: bool) -> None:
        left, _, default = text.partition("=")
        self.kind, _, self.name = left.strip().rpartition(" ")
        self.keyword_only = keyword_only
        self.shown = default.strip()
        self.default = _value(self.shown)
        self.optional = self.default is not REQUIRED
        self.none = self.kind.endswith("?") or self.default is None
        self.kind = self.kind.rstrip("?")
        self.single = self.kind.endswith("]") and self.kind[-2].isdigit()  # `int[2]` takes an int
        if self.single:
            self.kind = self.kind[: self.kind.index("[")] + "[]"
        self.said = _SAID.get(self.kind, self.kind)

    def takes(self, value: Any) -> bool:
        """Whether the value is of the parameter's type."""
        if self.none and value is None:
            return True
        return _TAKES[self.kind](value) or (self.single and _TAKES[self.kind[:-2]](value))

    def quick(self, value: str) -> str:
        """The expression that is true where the value called so is of a usual class; "" for all."""
        found = [_QUICK[self.kind].format(value)] if self.kind in _QUICK else []
        if self.kind == "Any":
            return ""
        if self.single:
            found.insert(0, _QUICK[self.kind[:-2]].format(value))
        if self.none:
            found.append(f"{value} is None")
        return found[0] if len(found) == 1 else f"({' or '.join(found) or 'False'})"

    def unpack(self, function: str, value: Any) -> Any:
        """The value as the body wants it: 0-d tensors as Python's numbers, lists of ints as tuples."""
        if value is None or self.kind in ("Tensor", "Any", "str"):
            return value
        if self.kind in ("int[]", "float[]") and isinstance(value, (tuple, list)):
            item = _TAKES[self.kind[:-2]]
            for i, v in enumerate(value):
                if not item(v):
                    raise TypeError(
                        f"{function}(): argument '{self.name}' failed to unpack the object at pos "
                        f'{i + 1} with error "type must be {self.said},but got {type_name(v)}"'
                    )
            return tuple(_number(v) for v in value)
        return _number(value)

    def __str__(self) -> str:
        shown = f'"{self.default}"' if isinstance(self.default, str) else self.shown
        return f"{self.said} {self.name}" + (f" = {shown}" if shown else "")


def _value(text: str) -> Any:
    """The default that a text means."""
    if not text:
        return REQUIRED
    if text[0] in "[(":
        return tuple(_value(t.strip()) for t in text[1:-1].split(",") if t.strip())
    if text[0] in "\"'":
        return text[1:-1]
    named = {"None": None, "True": True, "False": False}
    if text in named:
        return named[text]
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _number(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.array.item()
    return value.item() if isinstance(value, np.generic) else value


class Signature:
    """One signature, read: `name(TYPE NAME=DEFAULT, *, …) -> TARGET`."""

    def __init__(self, text: str) -> None:
        left, _, self.target = (part.strip() for part in text.partition("->"))
        self.name, _, inside = left[:-1].partition("(")
        self.parameters: list[Parameter] = []
        star = False
        for part in _split(inside):
            if part == "*":
                star = True
            else:
                self.parameters.append(Parameter(part, star))
        self.has_out = any(p.name == "out" for p in self.parameters)
        self.positional = [p for p in self.parameters if not p.keyword_only]
        self.least = sum(not p.optional for p in self.positional)
        self.passed = [p for p in self.parameters if p.name != "out"]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any], first: int) -> dict[str, Any]:
        """The values by parameter; Unfit, with PyTorch's words for one signature, if they are none.

        first: 1 where the input is the object that a method was called on.
        """
        name, positional = self.name, self.positional
        most, given = len(positional) - first, len(args) - first
        spread = most == 1 and positional[-1].kind == "int[]"  # `expand(2, 3)`
        if given > most and not spread:
            least = max(self.least - first, 0)
            if least != most:
                count = f"from {least} to {most} positional arguments but {given} were given"
            else:
                s, were = ("" if most == 1 else "s"), ("was" if given == 1 else "were")
                count = f"{most} positional argument{s} but {given} {were} given"
            raise Unfit(f"{name}() takes {count}")
        values, used, at = {}, 0, 0
        for i, p in enumerate(self.parameters):
            by_name = at >= len(args) or p.keyword_only
            if not by_name:
                value = args[at]
            elif p.name in kwargs:
                value = kwargs[p.name]
            else:
                value = kwargs.get(_NUMPY_NAMES.get(p.name, p.name), MISSING)
            used += by_name and value is not MISSING
            if value is MISSING:
                if not p.optional:
                    raise Unfit(self._missing(i))
                value = p.default
            elif spread and at == first and not by_name and _TAKES["int[]"](args[at:]):
                value, at = tuple(args[at:]), len(args) - 1
            elif not p.takes(value) and not (
                p.kind == "Tensor" and name in _TAKE_NUMBERS and _TAKES["Scalar"](value)
            ):
                if p.kind == "Tensor[]" and isinstance(value, (tuple, list)):
                    raise Unfit(_no_tensors(value, i - first))
                where = "" if by_name else f" (position {at + 1 - first})"
                wanted = f"{p.said}, not {type_name(value)}" if by_name else _no_list(p, value)
                raise Unfit(f"{name}(): argument '{p.name}'{where} must be {wanted}")
            values[p.name] = value
            at += not by_name
        if used < len(kwargs):
            raise Unfit(self._unknown(kwargs, len(args)))
        return values

    def _missing(self, start: int) -> str:
        """PyTorch's words, its plural upside down included."""
        names = [f'"{p.name}"' for p in self.parameters[start:] if not p.optional]
        s = "s" if len(names) == 1 else ""
        return f"{self.name}() missing {len(names)} required positional argument{s}: {', '.join(names)}"

    def _unknown(self, kwargs: dict[str, Any], given: int) -> str:
        for key in kwargs:
            at = next(
                (
                    i
                    for i, p in enumerate(self.parameters)
                    if key == p.name or (key == _NUMPY_NAMES.get(p.name) and p.name not in kwargs)
                ),
                None,
            )
            if at is None:
                return f"{self.name}() got an unexpected keyword argument '{key}'"
            if at < given:
                return f"{self.name}() got multiple values for argument '{key}'"
        raise AssertionError(f"{self.name}(): every keyword is known")

    def plausible(self, count: int, first: int) -> bool:
        """Whether so many arguments could fit."""
        return self.least - first <= count - first <= len(self.parameters) - first

    def listed(self, first: int) -> str:
        """As the errors list it: `(Tensor input, *, torch.dtype dtype = None)`."""
        parts, star = [], False
        for p in self.parameters[first:]:
            if first and p.name == "out":
                continue
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(str(p))
        return f"({', '.join(parts)})"

    def __str__(self) -> str:
        """`name(input, dim=None, *, dtype=None)`."""
        parts, star = [], False
        for p in self.passed:
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(f"{p.name}={p.default!r}" if p.optional else p.name)
        return f"({', '.join(parts)})"


def _split(inside: str) -> list[str]:
    """The parts between commas, those inside brackets left alone."""
    parts, depth = [""], 0
    for c in inside:
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def _no_list(p: Parameter, value: Any) -> str:
    """What a value must be, and what it is instead."""
    if p.kind.endswith("[]") and isinstance(value, (tuple, list)):
        return f"{p.said}, but found element of type {type_name(value[0])} at pos 0"
    return f"{p.said}, not {type_name(value)}"


def _no_tensors(values: Any, at: int) -> str:
    k, value = next((k, v) for k, v in enumerate(values) if not is_tensor(v))
    return f"expected Tensor as element {k} in argument {at}, but got {type_name(value)}"


class Unfit(TypeError):
    """A signature does not fit a call; says why."""


# -- the words about several signatures -----------------------------------------------------------
def _described(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        items = ", ".join(type_name(v) for v in value)
        if isinstance(value, list):
            return f"list of [{items}]"
        return f"tuple of ({items}{',' * (len(value) == 1)})"
    return type_name(value)


def _why(listed: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """PyTorch's second line about a signature: only where its parts are as many as the arguments."""
    parts = listed[1:-1].split(", ")
    if len(parts) != len(args) + len(kwargs):
        return ""
    types = [p.rpartition(" ")[0] for p in parts]
    names = [p.rpartition(" ")[2] for p in parts]
    unmatched = [k for k in kwargs if k not in names[max(len(parts) - len(kwargs), 0) :]]
    before = "      didn't match because some of the "
    if unmatched:
        return f"{before}keywords were incorrect: {', '.join(unmatched)}\n"
    shown = []
    for i in range(len(parts)):
        value = args[i] if i < len(args) else kwargs[names[i]]
        text = ("" if i < len(args) else f"{names[i]}=") + _described(value)
        fits = type_name(value) == types[i] or (types[i] == "float" and type(value) is int)
        shown.append(text if fits else f"!{text}!")
    return f"{before}arguments have invalid types: ({', '.join(shown)})\n"


def refusal(
    signatures: list[Signature], args: tuple[Any, ...], kwargs: dict[str, Any], first: int = 0
) -> TypeError:
    """PyTorch's error for a call that none of several signatures fits."""
    count = len(args) + len(kwargs)
    likely = [s for s in signatures if s.plausible(count, first)]
    if len(likely) == 1:
        try:
            likely[0].bind(args, kwargs, first)
        except Unfit as error:
            return TypeError(*error.args)
    args = args[first:]
    got = [type_name(a) for a in args] + [f"{k}={type_name(v)}" for k, v in kwargs.items()]
    lines = ""
    for s in signatures:
        listed = s.listed(first)
        lines += f" * {listed}\n{_why(listed, args, kwargs)}"
    return TypeError(
        f"{signatures[0].name}() received an invalid combination of arguments - got "
        f"({', '.join(got)}), but expected one of:\n{lines}"
    )


# -- functions ------------------------------------------------------------------------------------
Target = Callable[..., Any]


class Parser:
    """The signatures of a function and what they lead to; makes the function that users call."""

    def __init__(self, texts: tuple[str, ...], targets: Any, python: bool = False) -> None:
        self._texts, self._targets, self.python = texts, targets, python
        self.name = texts[0].partition("(")[0].strip()

    @cached_property
    def signatures(self) -> list[Signature]:
        """The texts, read."""
        return [Signature(text) for text in self._texts]

    @cached_property
    def targets(self) -> list[Target]:
        """What each signature leads to, called with its values in their order."""
        if isinstance(self._targets, dict):
            found = [self._targets[s.target] for s in self.signatures]
        elif len(self.signatures) == 1:
            found = [self._targets]
        else:
            found = [_by_name(self._targets, s) for s in self.signatures]
        return [f.call if isinstance(f, Row) else f for f in found]

    def function(self, first: int = 0) -> Callable[..., Any]:
        """The public function; first=1: the method. Its code is made when it is first called."""
        space: dict[str, Any] = {"__name__": __name__, "__builtins__": builtins}
        made = FunctionType(_STUB, space, self.name)
        made.__qualname__ = self.name

        def start(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            code = self._compile(first)
            space.update(code.__globals__)
            # The stub looks at no default, so that a call of another thread meets a whole function.
            made.__defaults__, made.__kwdefaults__ = code.__defaults__, code.__kwdefaults__
            made.__code__ = code.__code__
            return made(*args, **kwargs)

        space["start"] = start
        return made

    def _compile(self, first: int) -> Any:
        numbers = _REAL | {complex}
        space = {"Tensor": Tensor, "missing": MISSING, "numbers": numbers, "real": _REAL}
        space |= {"arrays": _ARRAYS, "dtype_class": dtypes.dtype}
        space |= {f"t{k}": target for k, target in enumerate(self.targets)}
        space |= {f"{_name(p)}{k}": p.default for k, p in self._defaults()} | {"ints": _ints}
        if self.python:
            return self._as_python(space)
        return self._as_parser(space, first)

    def _defaults(self) -> list[tuple[int, Parameter]]:
        return [(k, p) for k, s in enumerate(self.signatures) for p in s.parameters if p.optional]

    def _as_python(self, space: dict[str, Any]) -> Any:
        """A function whose parameters Python itself binds; types are looked at here."""
        (signature,) = self.signatures
        names = [p.name for p in signature.parameters]
        tests = [t for p in signature.parameters if (t := p.quick(p.name))]
        values = ", ".join(names)
        space["checked"] = self._checked
        body = [f"if not ({' and '.join(tests)}): {values}, = checked({values})"] if tests else []
        parts, star = [], False
        for p in signature.parameters:
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(f"{p.name}={_name(p)}0" if p.optional else p.name)
        made = compiled(self.name, ", ".join(parts), [*body, f"return t0({values})"], space)
        made.__qualname__ = self.name
        return made

    def _checked(self, *values: Any) -> list[Any]:
        """The values of a Python function, each of the type that its operator wants."""
        signature = self.signatures[0]
        name = signature.target or self.name
        if signature.parameters[-1].name == "inplace" and values[-1]:
            name += "_"
        for i, (p, value) in enumerate(zip(signature.parameters, values, strict=True)):
            if not p.takes(value) and value is not p.default:
                raise TypeError(
                    f"{name}(): argument '{p.name}' (position {i + 1}) must be {_no_list(p, value)}"
                )
        pairs = zip(signature.parameters, values, strict=True)
        return [p.unpack(name, value) for p, value in pairs]

    def _as_parser(self, space: dict[str, Any], first: int) -> Any:
        """Straight-line code for positions; keywords by way of Python's own binding."""
        slots = [f"a{i}" for i in range(max(len(s.positional) for s in self.signatures))]
        body = [f"if more or named: return keyed(({''.join(f'{a}, ' for a in slots)}*more), named)"]
        for k, s in enumerate(self.signatures):
            if any(p.keyword_only and not p.optional for p in s.parameters):
                continue  # `keyed` takes it
            tests = [
                f"({a} is missing or {t})" if p.optional else t
                for a, p in zip(slots, s.positional, strict=False)
                if (t := p.quick(a))
            ]
            tests += [f"{a} is missing" for a in slots[len(s.positional) :]]
            place = {p.name: a for a, p in zip(slots, s.positional, strict=False)}
            values = []
            for p in s.passed:
                a, default = place.get(p.name), f"{_name(p)}{k}"
                given = a if not p.optional else f"{default} if {a} is missing else {a}"
                values.append(default if a is None else str(given))
            fits = " and ".join(tests) or "True"
            body.append(f"if {fits}: return t{k}({', '.join(values)})")
        body.append(f"return general(given(({''.join(f'{a}, ' for a in slots)})), {{}})")
        quick = [self._keyed(k, s, space) for k, s in enumerate(self.signatures)]
        targets = self.targets

        def general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return self.general(args, kwargs, first)

        def keyed(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            args, as_given = _given(args), named
            if "axis" in named or "keepdims" in named:
                renamed = {_TORCH_NAMES.get(n, n): v for n, v in named.items()}
                named = renamed if len(renamed) == len(named) else named
            for k, bind in enumerate(quick):
                try:
                    values = bind(*args, **named)
                except TypeError:
                    continue
                if values is not None:
                    return targets[k](*values)
            return self.general(args, as_given, first)

        space |= {"given": _given, "general": general, "keyed": keyed}
        spec = [f"{a}=missing" for a in slots] + ["/"] * bool(slots) + ["*more", "**named"]
        return compiled(self.name, ", ".join(spec), body, space)

    def _keyed(self, k: int, signature: Signature, space: dict[str, Any]) -> Any:
        """A function that binds keywords as Python does: the values, or None where a class is odd."""
        parts, star = [], False
        for p in signature.passed:
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(f"{p.name}={_name(p)}{k}" if p.optional else p.name)
        tests = [t for p in signature.passed if (t := p.quick(p.name))]
        values = "".join(f"{p.name}, " for p in signature.passed)
        tested = f" if {' and '.join(tests)} else None" if tests else ""
        return compiled("bind", ", ".join(parts), [f"return ({values}){tested}"], space)

    def general(self, args: tuple[Any, ...], kwargs: dict[str, Any], first: int = 0) -> Any:
        """The call in full: any arguments; TypeError in PyTorch's words."""
        for signature, target in zip(self.signatures, self.targets, strict=True):
            try:
                values = signature.bind(args, kwargs, first)
            except Unfit as error:
                if len(self.signatures) == 1:
                    raise TypeError(*error.args) from None
                continue
            out = values.pop("out", None)
            passed = [p.unpack(self.name, values[p.name]) for p in signature.passed]
            if out is None:
                return target(*passed)
            from gradcli.engine.out import into

            return into(self.name, out, target, tuple(passed), {})
        raise refusal(self.signatures, args, kwargs, first)

    @property
    def shown(self) -> str:
        """The parameters, as `gradcli ops` shows them."""
        return " or ".join(dict.fromkeys(str(s) for s in self.signatures))

    @property
    def tensor_args(self) -> frozenset[int | str]:
        """Positions and names of the parameters that want a tensor, or a number as its elements.

        Only where every signature wants one: `max(x, 0)` is of dimension 0, `clamp(x, 0, 1)` of numbers.
        """
        tensors: set[int | str] = set()
        others: set[int | str] = set()
        for s in self.signatures:
            for place, p in (*enumerate(s.positional), *((p.name, p) for p in s.parameters)):
                (tensors if p.kind == "Tensor" else others).add(place)
        return frozenset(tensors - others)


def _stub(*args: Any, **kwargs: Any) -> Any:
    return start(args, kwargs)  # type: ignore[name-defined]  # noqa: F821


_STUB = _stub.__code__


def _name(p: Parameter) -> str:
    """The variable of a parameter's default."""
    return f"default_{p.name}_"


def _given(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without the places that nothing was given for."""
    return tuple(a for a in args if a is not MISSING)


def _by_name(body: Target, signature: Signature) -> Target:
    names = [p.name for p in signature.passed]
    code = body.__code__
    if tuple(names) == code.co_varnames[: code.co_argcount][: len(names)]:
        return body  # the first parameters in their order
    return lambda *values: body(**dict(zip(names, values, strict=True)))


__all__ = ["Parser", "Signature", "refusal", "type_name"]

"""PyTorch's argument parser: signatures are text, from which arguments are bound and errors worded.

A signature is written as in PyTorch's native_functions.yaml:

    "tril(Tensor input, int diagonal=0, *, Tensor? out=None)"

The name includes its module, `linalg.inv(Tensor A)`; messages call it `linalg_inv`.

The body of a function (`table.function`) has no defaults and no checks of types: it is called with all
values, in the order of the signature.

    @function("one_hot(Tensor input, int num_classes=-1)", name="nn.functional.one_hot", …)
    def one_hot(input, num_classes): ...

- A body with several signatures is called by keyword with the values of the one that fits. If each has a
  separate target, its name follows an arrow, and `table.overloads` makes the function:
  `max = overloads("max(Tensor input) -> whole", "max(Tensor input, Tensor other) -> maximum",
  targets=(whole, maximum))`.
- Marks after the last parenthesis: `|deprecated` (accepted with a warning, not listed in errors),
  `|unlisted` (without a warning), `|unsaid` (errors do not mention it), `|python` (this form is written in
  Python, see below), `|function` and `|method` (only that form has it), `|inplace` (there is `x.NAME_()`
  too), `|numpy` (it replaces NumPy's function of this name in VJP rules). A method, which is called on its
  `input`, skips signatures without one.
- The default signature of a primitive is "NAME(Tensor input, …, *, Tensor out=None)".
- A parameter `out` is handled here. `axis`, `keepdims`, `x` are accepted for `dim`, `keepdim`, `input`.
- `python=True` is for functions that PyTorch writes in Python (most of `nn.functional`): Python words the
  errors for wrong counts and keywords. An arrow names the operator that words the errors for wrong types
  (if the last parameter is `inplace` and true, with an underscore), and its parameters, if they have
  another order or other names: `-> embedding(weight, input=indices, padding_idx)`. A function in place of
  True checks the values first, as PyTorch's function does before it calls the operator.
- `many=` passes all positional arguments as one sequence, for PyTorch's `*tensors`.

Types: Tensor, Tensor[], Scalar (a number), float, int, bool, str, int[] (a sequence), int[2] (a sequence or
an int), int[1] (the same; the body gets a sequence), float[], Scalar[], ScalarType, Generator, Layout,
Device, MemoryFormat; Any is not checked. `?` accepts None, as does the default None.

Errors are PyTorch's: those of python_arg_parser.cpp for one signature, of invalid_arguments.cpp for
several. Texts are parsed, and code is generated from them, at a function's first call: straight-line Python
for the usual classes of arguments, `Parser.general` for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Ints
from gradcli.engine.core.device import device, layout
from gradcli.engine.core.generated_calls import MISSING
from gradcli.engine.core.tensor import SUBCLASSES, Tensor
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import ARRAYS

REQUIRED = MISSING
_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2"}
_TORCH_NAMES = {"axis": "dim", "keepdims": "keepdim"}
_SAID = {
    **{"Scalar": "Number", "Tensor[]": "tuple of Tensors", "int[]": "tuple of ints"},
    **{
        "float[]": "tuple of floats",
        "Scalar[]": "tuple of Scalars",
        "ScalarType": "torch.dtype",
        "Layout": "torch.layout",
    },
    **{"Generator": "torch.Generator", "Device": "torch.device", "Any": "object"},
    **{"MemoryFormat": "torch.memory_format", "Storage": "torch.Storage"},
}
# The functions that accept Python numbers as tensors.
_TAKE_NUMBERS = frozenset(
    "add sub subtract mul multiply div divide true_divide floor_divide copy_ "
    "add_ sub_ subtract_ mul_ multiply_ div_ divide_ true_divide_ floor_divide_".split()
)


def words() -> Any:
    """The module of errors, imported at the first error."""
    from gradcli.engine.registry import argument_errors

    return argument_errors


# -- which values a type accepts ----------------------------------------------------------------------------
def is_tensor(value: Any) -> bool:
    """True for tensors, and for the arrays (of traces too) with which rules call functions."""
    return isinstance(value, (Tensor, *ARRAYS)) or hasattr(value, "__operator__")


def _plain(value: Any) -> bool:
    """True for a 0-d tensor without a graph, which is accepted as a number."""
    return isinstance(value, Tensor) and not value.array.ndim and not value.requires_grad


def _is_int(value: Any) -> bool:
    if isinstance(value, (int, np.integer)):
        return not isinstance(value, bool)
    return _plain(value) and value.array.dtype.kind in "iu"


def _is_float(value: Any) -> bool:
    return isinstance(value, (float, int, np.floating, np.integer, np.bool_)) or _plain(value)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (complex, np.complexfloating)) or _is_float(value)


def _is_bool(value: float | str | None) -> bool:
    return isinstance(value, (bool, np.bool_))


def _is_list(first: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The check of a sequence: as in PyTorch, only its first item is checked before it is unpacked."""
    return lambda value: isinstance(value, (tuple, list)) and (not value or first(value[0]))


_TAKES: dict[str, Callable[[Any], bool]] = {
    "Tensor": is_tensor,
    "Tensor[]": lambda v: isinstance(v, (tuple, list)) and all(is_tensor(t) for t in v),
    "Scalar": _is_scalar,
    "float": _is_float,
    "int": _is_int,
    "bool": _is_bool,
    "str": lambda v: isinstance(v, str),
    "int[]": _is_list(_is_int),
    "float[]": _is_list(_is_float),
    "Scalar[]": lambda v: isinstance(v, (tuple, list)) and all(map(_is_scalar, v)),
    "ScalarType": lambda v: isinstance(v, dtypes.dtype) or v in (float, int, bool, complex),
    "Generator": lambda v: type(v).__name__ == "Generator",
    "Layout": lambda v: isinstance(v, layout),
    "Device": lambda v: isinstance(v, (device, str, int)) and not isinstance(v, bool),
    # PyTorch's objects are recognised by their class names: its generators and dtypes are accepted too.
    "MemoryFormat": lambda v: type(v).__name__ == "memory_format",
    "Storage": lambda v: False,  # there is no such class here
    "Any": lambda v: True,
}
_REAL = frozenset([int, float, bool])
_HUGE = 2**63  # integers from here on are too large for PyTorch
_ARRAYS = frozenset([np.ndarray, np.float64, np.float32])  # what rules call functions with
_QUICK = {  # the usual classes, as an expression over a value
    "Tensor": "({0}.__class__ is Tensor or {0}.__class__ in arrays or {0}.__class__ in subclasses)",
    "Tensor[]": "({0}.__class__ in sequences and tensors({0}))",
    "Scalar": "{0}.__class__ in numbers",
    "float": "{0}.__class__ in real",
    "int": f"({{0}}.__class__ is int and {-_HUGE} <= {{0}} < {_HUGE})",
    "bool": "{0}.__class__ is bool",
    "str": "{0}.__class__ is str",
    "ScalarType": "{0}.__class__ is dtype_class",
    "int[]": "({0}.__class__ is tuple and ints({0}))",
    **{k: f"takes[{k!r}]({{0}})" for k in ("Device", "Generator", "Layout", "MemoryFormat")},
}


def _ints(values: Ints | Sequence[Tensor]) -> bool:
    return all(v.__class__ is int for v in values)


_TENSORS = _ARRAYS | {Tensor}


def _tensors(values: Any) -> bool:
    return _TENSORS.issuperset(map(type, values))


_CLASSES: dict[str, Any] = {
    **{"Tensor": Tensor, "numbers": _REAL | {complex}, "arrays": _ARRAYS},
    "subclasses": SUBCLASSES,
    **{"sequences": frozenset([tuple, list]), "tensors": _tensors},
    **{"dtype_class": dtypes.dtype, "real": _REAL, "ints": _ints, "takes": _TAKES},
}


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
        self.empty = self.default == ()  # PyTorch then accepts None too
        self.kind = self.kind.rstrip("?")
        self.single = self.kind.endswith("]") and self.kind[-2].isdigit()  # `int[2]` accepts an int
        self.lone = self.kind == "int[1]"  # and passes a sequence
        if self.single:
            self.kind = self.kind[: self.kind.index("[")] + "[]"
        self.said = _SAID.get(self.kind, self.kind)

    def takes(self, value: Any) -> bool:
        """Whether the value is of the parameter's type."""
        if value is None and (self.none or self.empty):
            return True
        return _TAKES[self.kind](value) or (self.single and _TAKES[self.kind[:-2]](value))

    def quick(self, value: str, numbers: bool = False) -> str:
        """The expression that tests whether variable `value` has a usual class; "" if all have."""
        found = [_QUICK[self.kind].format(value)] if self.kind in _QUICK else []
        if numbers and self.kind == "Tensor":
            found.append(_QUICK["Scalar"].format(value))
        if self.kind == "Any":
            return ""
        if self.single:
            found.insert(0, _QUICK[self.kind[:-2]].format(value))
        if self.none:
            found.append(f"{value} is None")
        return found[0] if len(found) == 1 else f"({' or '.join(found) or 'False'})"

    def unpack(self, function: str, value: Any) -> Any:
        """The value as the body gets it: 0-d tensors become Python numbers, lists of ints tuples."""
        if value is None:
            return () if self.empty else None
        if self.kind in ("Tensor", "Any", "str"):
            return value
        if self.kind in ("int[]", "float[]", "Scalar[]") and isinstance(value, (tuple, list)):
            item = _TAKES[self.kind[:-2]]
            for i, v in enumerate(value):
                if not item(v) and not (
                    i and isinstance(v, bool)
                ):  # as in PyTorch, the first may not be
                    raise TypeError(
                        f"{function}(): argument '{self.name}' failed to unpack the object at pos "
                        f'{i + 1} with error "type must be {self.said},but got {words().type_name(v)}"'
                    )
            numbers = (_number(v) for v in value)
            return tuple(map(int, numbers)) if self.kind == "int[]" else tuple(numbers)
        value = _number(value)
        if self.kind[:3] == "int" and value.__class__ is int and not -_HUGE <= value < _HUGE:
            raise ValueError("Overflow when unpacking long long")
        return (value,) if self.lone else value

    def passed(self, value: str) -> str:
        """The expression that is passed to the body for variable `value` of a usual class."""
        return f"(({value},) if {value}.__class__ is int else {value})" if self.lone else value

    def __str__(self) -> str:
        shown = f'"{self.default}"' if isinstance(self.default, str) else self.shown
        return f"{self.said} {self.name}" + (f" = {shown}" if shown else "")


def _value(text: str) -> Any:
    """The value of a default's text."""
    if not text:
        return REQUIRED
    if text[0] in "[{":
        return tuple(_value(t.strip()) for t in text[1:-1].split(",") if t.strip())
    if text[0] in "\"'":
        return text[1:-1]
    named = {"None": None, "True": True, "False": False, "at::Reduction::Mean": 1}
    if text in named:
        return named[text]
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _number(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.array.item()
    return value.item() if isinstance(value, np.generic) else value


def checked(function: str, text: str, position: int, value: Any) -> Any:
    """A value that a body passes on, checked for the type its operator wants: `int[] output_size`."""
    p = Parameter(text, False)
    if not p.takes(value):
        wanted = words().no_list(p, value)
        raise TypeError(f"{function}(): argument '{p.name}' (position {position}) must be {wanted}")
    return p.unpack(function, value)


def said(name: str) -> str:
    """A function's name in messages: `linalg_inv` for `linalg.inv`, `relu` for `nn.functional.relu`."""
    return name.removeprefix("nn.functional.").replace(".", "_")


_FORMS = ["function", "method"]


class Signature:
    """A parsed signature: `name(TYPE NAME=DEFAULT, *, …)|MARK -> TARGET`.

    first: 1 for a method's, whose first parameter is the tensor that it is called on.
    """

    def __init__(self, text: str, first: int = 0) -> None:
        left, _, self.target = (part.strip() for part in text.partition("->"))
        left, *marks = left.split("|")
        head, _, inside = left[:-1].partition("(")
        self.name = said(head)
        self.deprecated = "deprecated" in marks
        self.hidden = self.deprecated or "unlisted" in marks
        self.said = not (self.hidden or "unsaid" in marks)
        self.python = "python" in marks
        self.forms = [form for form in _FORMS if form in marks] or _FORMS
        self.parameters: list[Parameter] = []
        star = False
        for part in split_outside(inside):
            if part == "*":
                star = True
            else:
                self.parameters.append(Parameter(part, star))
        self.has_input = any(p.name == "input" for p in self.parameters)
        if first:  # a method has no `out`
            own = (p for p in self.parameters if p.name != "out")
            self.parameters = sorted(own, key=lambda p: p.name != "input")
        self.has_out = any(p.name == "out" for p in self.parameters)
        self.positional = [p for p in self.parameters if not p.keyword_only]
        self.least = sum(not p.optional for p in self.parameters)
        self.passed = [p for p in self.parameters if p.name != "out"]
        # `expand(2, 3)`: a sequence of ints as the only parameter may be passed as separate ints.
        one = self.positional[first:]
        self.spread = len(one) == 1 and one[0].kind == "int[]"

    def straight(
        self, slots: list[str], defaults: list[str], numbers: bool
    ) -> tuple[list[str], list[str]]:
        """(tests that the variables `slots` have the usual classes, what is passed on of them then).

        defaults: the variables that hold the defaults. numbers: accept Python numbers as tensors.
        """
        tests = [
            f"({a} is missing or {t})" if p.optional else t
            for a, p in zip(slots, self.positional, strict=False)
            if (t := p.quick(a, numbers) or f"{a} is not missing" * (not p.optional))
        ]
        tests += [f"{a} is missing" for a in slots[len(self.positional) :]]
        place = {p.name: a for a, p in zip(slots, self.positional, strict=False)}
        values = []
        for p, default in zip(self.passed, defaults, strict=True):
            a = place.get(p.name)
            given = default if a is None else p.passed(a)
            values.append(
                f"{default} if {a} is missing else {given}" if a and p.optional else given
            )
        return tests, values

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], first: int, numbers: bool = False
    ) -> dict[str, Any]:
        """{parameter: value}; Unfit, with PyTorch's message for one signature, if the arguments do not fit.

        first: 1 for a method. numbers: accept Python numbers as tensors.
        """
        name, spread = self.name, self.spread
        most, given = len(self.positional) - first, len(args) - first
        if given > most and not (spread and _is_int(args[first])):
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
                numbers and p.kind == "Tensor" and _TAKES["Scalar"](value)
            ):
                if p.kind == "Tensor[]" and isinstance(value, (tuple, list)):
                    odd = next(k for k, v in enumerate(value) if not is_tensor(v))
                    # Raised even if other signatures follow.
                    raise TypeError(words().no_tensors(value, i - first, odd))
                where = "" if by_name else f" (position {at + 1 - first})"
                wanted = (
                    f"{p.said}, not {words().type_name(value)}"
                    if by_name
                    else words().no_list(p, value)
                )
                raise Unfit(f"{name}(): argument '{p.name}'{where} must be {wanted}")
            values[p.name] = value
            at += not by_name
        if used < len(kwargs):
            raise Unfit(self._unknown(kwargs, len(args)))
        return values

    def _missing(self, start: int) -> str:
        """PyTorch's message, with its reversed plural ("argument" for several)."""
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
        """Whether `count` arguments could fit."""
        return self.least - first <= count - first <= len(self.parameters) - first

    def listed(self, first: int) -> str:
        """The text in errors: `(Tensor input, *, torch.dtype dtype = None)`."""
        return f"({', '.join(starred(self.parameters[first:], str))})"

    def __str__(self) -> str:
        """`name(input, dim=None, *, dtype=None)`."""
        parts = starred(self.passed, lambda p: f"{p.name}={p.default!r}" if p.optional else p.name)
        return f"({', '.join(parts)})"


def signatures(texts: Iterable[str], first: int = 0) -> list[Signature]:
    """The signatures that texts declare; first: 1 for a method's."""
    return [Signature(text, first) for text in texts]


def starred(parameters: list[Parameter], text: Callable[[Parameter], str]) -> list[str]:
    """The text of each parameter, with a star before those that are keyword-only."""
    parts = [text(p) for p in parameters]
    at = next((i for i, p in enumerate(parameters) if p.keyword_only), len(parts))
    return [*parts[:at], "*", *parts[at:]] if at < len(parts) else parts


def split_outside(text: str) -> list[str]:
    """The parts of a text between the commas that stand in no brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "[({") - (c in "])}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


class Unfit(TypeError):
    """The arguments of a call do not fit a signature; the message says why."""


# -- functions ------------------------------------------------------------------------------------
Target = Callable[..., Any]
Adapt = Callable[[Target, list[str]], Target]
Gather = Callable[[tuple[Any, ...]], Any]
Python = bool | Callable[..., None]

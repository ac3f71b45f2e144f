"""The names and attributes that programs may use: closed lists, and nothing outside them.

Names are the table's (torch's), a few of Python's own, and what other rooms or `--load` have registered.
Attributes are looked up by the type of the value. No name that begins with two underscores is reachable.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any

import gradcli.engine.system.budget as budget
from gradcli.engine.registry import torch_namespaces


def words(*lines: str) -> frozenset[str]:
    """The words of some lines of text."""
    return frozenset(" ".join(lines).split())


# Names of Python's that programs lack, and what to write instead.
LEFT_OUT = {
    **dict.fromkeys(("set", "frozenset"), "a dict's keys are a set: {x: None for x in values}"),
    **dict.fromkeys(("map", "filter"), "write a comprehension: [f(x) for x in values]"),
    **dict.fromkeys(("open", "eval", "exec"), "that belongs to Python: see --load FILE.py"),
    **dict.fromkeys(
        ("limit", "lim", "Limit"),
        "there are no limits; gradcli jacobian and gradcli taylor know sin(x)/x at 0 and its like",
    ),
    **dict.fromkeys(
        ("integrate", "integral", "Integral"),
        "there are no integrals as formulas; trapezoid(y, x) adds up numbers",
    ),
    "solve": 'a command solves equations: gradcli root "left == right" --x START',
    **dict.fromkeys(("expand", "factor"), "gradcli simplify EXPR writes a shorter form"),
}
LETTERS = frozenset("etij")  # never predefined as values, because people use them as names
NAMESPACES = frozenset(
    ("torch", "linalg", "special", "fft", "nn", "nn.functional", "nn.init", "func", "random", "autograd",
     "autograd.functional", "cuda", "backends", "backends.mps", "backends.cudnn", "accelerator", "testing")
)  # fmt: skip
SHORT = {"F": "nn.functional", "torch": ""}
MODULES = {"torch": "", "numpy": "numpy", "math": "math"}

_registered: dict[str, Any] = {}


def register(name: str, value: Any) -> None:
    """Make a value known to every program under a name (dotted: inside a namespace)."""
    _registered[name] = value


def unregister(name: str) -> None:
    """Forget a registered name."""
    _registered.pop(name, None)


class Namespace:
    """`torch`, `linalg`, `nn.functional`, ...: its attributes are the table's names."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"<module {('torch.' + self.prefix).rstrip('.')!r}>"


class Constants:
    """`numpy` and `math`: their constants only."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<module {self.name!r}>"


class ModulePath(str):
    """The dotted name in an import statement."""

    __slots__ = ()


def builtins() -> dict[str, Any]:
    """Python's own functions that programs may call. `print` and `display` belong to the machine."""
    return _BUILTINS


class Builtin:
    """A function of the language itself; it shows its public name and hides its implementation."""

    __slots__ = ("__name__", "function")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__ = name
        self.function = function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def target(self) -> Any:
        """The class that a function stands for, as `list` does in `isinstance(x, list)`."""
        return {"list": list, "tuple": tuple, "dict": dict}.get(self.__name__, self)

    def __repr__(self) -> str:
        return f"<built-in function {self.__name__}>"


class Generator:
    """A generator expression under way: `advance` gives its next item, or DONE."""

    __slots__ = ("_advance",)
    DONE = object()

    def __init__(self, advance: Callable[[], Any]) -> None:
        self._advance: Callable[[], Any] | None = advance

    def __iter__(self) -> Generator:
        return self

    # While it computes an item, asking it for another one is an error, as in Python: it would read itself.
    def __next__(self) -> Any:
        advance, self._advance = self._advance, _executing
        value = Generator.DONE
        try:
            if advance is not None:
                value = advance()
        finally:
            self._advance = None if value is Generator.DONE else advance
        if value is Generator.DONE:
            raise StopIteration
        return value

    def __repr__(self) -> str:
        return "<generator object <genexpr>>"


def _executing() -> Any:
    raise ValueError("generator already executing")


# In messages as Python names them.
Builtin.__name__ = "builtin_function_or_method"
Namespace.__name__ = Constants.__name__ = "module"
Generator.__name__ = Generator.__qualname__ = "generator"
Builtin.__module__ = Namespace.__module__ = Constants.__module__ = "builtins"
Generator.__module__ = "builtins"


def _list(values: Iterable[Any] = (), /) -> list[Any]:
    return budget.collected(values)


def _tuple(values: Iterable[Any] = (), /) -> tuple[Any, ...]:
    return values if type(values) is tuple else tuple(budget.collected(values, "a tuple"))


def _dict(values: Any = (), /, **keywords: Any) -> dict[Any, Any]:
    return dict(_entries(values), **keywords)


def _entries(values: Any) -> dict[Any, Any]:
    """What a dict is made from: another, or pairs."""
    if type(values) is dict:
        return values
    # Counted as they come: Python's dict() would fill the memory with pairs that have no end.
    found: dict[Any, Any] = {}
    for i, pair in enumerate(budget.collected(values, "a dict")):
        parts = pair if type(pair) in (tuple, list) else budget.collected(pair, "a pair")
        if len(parts) != 2:
            raise ValueError(
                f"dictionary update sequence element #{i} has length {len(parts)}; 2 is required"
            )
        found[budget.key(parts[0])] = parts[1]
    return found


def _sorted(values: Iterable[Any], /, *, key: Any = None, reverse: bool = False) -> list[Any]:
    found = budget.collected(values)
    budget.nested(found)
    return sorted(found, key=key, reverse=reverse)


class _Zip(zip):  # type: ignore[type-arg]
    """`zip`, which knows how many items it will yield."""

    def __init__(self, *values: Any, strict: bool = False) -> None:
        # `list(zip(range(10**12), …))` must be refused before it begins to fill the memory.
        self.size = min(map(budget.size_of, values), default=0)

    def __length_hint__(self) -> int:
        return min(self.size, sys.maxsize)


class _Enumerate(enumerate):  # type: ignore[type-arg]
    """`enumerate`, which knows how many items it will yield."""

    def __init__(self, iterable: Any, start: int = 0) -> None:
        self.size = budget.size_of(iterable)

    def __length_hint__(self) -> int:
        return min(self.size, sys.maxsize)


for _kind, _word in ((_Zip, "zip"), (_Enumerate, "enumerate")):
    _kind.__name__ = _kind.__qualname__ = _word
    _kind.__module__ = "builtins"

# Iterables that make their items when these are asked for.
LAZY = (range, zip, enumerate, reversed)


def check_lazy(values: Iterable[Any]) -> None:
    """Refuse, among the arguments of what makes something of all their items, those with too many."""
    for value in values:
        if isinstance(value, LAZY):
            budget.items(budget.size_of(value), f"a {type(value).__name__}")


def _is_instance(value: Any, kinds: Any) -> bool:
    budget.nested(kinds)
    return _is_any(value, kinds)


def _is_any(value: Any, kinds: Any) -> bool:
    if isinstance(kinds, tuple):
        return any(_is_any(value, kind) for kind in kinds)
    kind = getattr(kinds, "target", kinds)  # DoubleTensor and its like are entries of the table
    if not isinstance(kind, type):
        raise TypeError("isinstance() arg 2 must be a type, a tuple of types, or a union")
    return isinstance(value, kind)


# A class itself must not be had: called, it would make objects past all checks, and its bases lead to
# Python's `object`, and from there to every class of the process.
class TypeOf:
    """What `type(x)` gives: it prints and compares, and cannot be called."""

    __slots__ = ("kind",)

    def __init__(self, value: Any) -> None:
        self.kind = type(value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Builtin):
            other = other.target
        return self.kind is (other.kind if isinstance(other, TypeOf) else other)

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return class_text(self.kind)


TypeOf.__name__ = "type"
TypeOf.__module__ = "builtins"


def class_text(kind: type) -> str:
    """The text of a class; classes of the engine are printed as torch's."""
    if kind.__module__.startswith("gradcli."):
        return f"<class 'torch.{kind.__name__}'>"
    return repr(kind)


_BUILTINS: dict[str, Any] = {
    "len": len, "range": range, "enumerate": _Enumerate, "zip": _Zip, "reversed": reversed,
    "sorted": Builtin("sorted", _sorted), "list": Builtin("list", _list),
    "tuple": Builtin("tuple", _tuple), "dict": Builtin("dict", _dict), "next": next,
    "repr": Builtin("repr", lambda value, /: text_of(value)), "id": id,
    "type": TypeOf, "isinstance": Builtin("isinstance", _is_instance), "callable": callable,
    "float": float, "int": int, "bool": bool, "str": str, "complex": complex,
    **{
        error.__name__: error
        for error in (
            Exception, ArithmeticError, AssertionError, AttributeError, FloatingPointError,
            IndexError, KeyError, LookupError, NameError, NotImplementedError, OverflowError,
            RecursionError, RuntimeError, StopIteration, TypeError, ValueError, ZeroDivisionError,
        )
    },
}  # fmt: skip

_FUNCTIONS = words(
    "len range enumerate zip reversed sorted repr id type isinstance callable print display"
)

# Names of the engine that are not in the table: name -> module, imported on first use.
_MODES = (
    *("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "is_grad_enabled"),
    *("is_inference_mode_enabled",),
)
_HOMES: dict[str, str] = {
    **dict.fromkeys(_MODES, "gradcli.engine.core.modes"),
    **{
        f"autograd.{name}": "gradcli.engine.core.modes"
        for name in (*_MODES, "detect_anomaly", "set_detect_anomaly")
    },
    **dict.fromkeys(("get_default_dtype", "set_default_dtype"), "gradcli.engine.system.dtypes"),
    **{f"autograd.{name}": "gradcli.engine.core.backward_pass" for name in ("grad", "backward")},
    **dict.fromkeys(("finfo", "iinfo"), "gradcli.engine.system.number_limits"),
    **{
        "Size": "gradcli.engine.core.size",
        "device": "gradcli.engine.core.device",
        "Generator": "gradcli.engine.core.random",
        "set_printoptions": "gradcli.engine.core.printing",
    },
    "Tensor": "gradcli.engine.core.tensor",
}
# Functions of functions: the Python API's own.
_TRANSFORMS = frozenset(
    (
        "vmap",
        *(f"func.{n}" for n in ("grad", "grad_and_value", "vmap", "vjp", "jvp")),
        *(f"func.{n}" for n in ("jacrev", "jacfwd", "hessian", "linearize")),
        *(f"autograd.functional.{n}" for n in ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")),
    )
)
_OWN = frozenset((*_HOMES, *_TRANSFORMS))


def qualified(name: str) -> Any:
    """What a dotted name of torch's means; None if nothing."""
    # Two underscores lead to what Python itself is made of: classes, globals, code.
    if name.startswith("__") or ".__" in name:
        return None
    if name in _registered:
        return _registered[name]
    if name in _HOMES:
        # Imported when it is asked for: most programs use none of these, and each costs a part of the
        # start.
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name.rpartition(".")[2])
    if name in _TRANSFORMS:
        return Builtin(name.rpartition(".")[2], attrgetter(name)(torch_namespaces.torch))
    if name in NAMESPACES:
        return Namespace(name)
    from gradcli.engine.registry import table

    return table.resolve(name)


def functional(name: str) -> str | None:
    """`nn.functional.gelu` for `gelu`: functions of nn.functional's that torch has no other of; or None."""
    from gradcli.engine.registry import table

    return table.functional(name)


def is_function(name: str) -> bool:
    """Whether a name without a meaning of the program's is one of the operator table's."""
    from gradcli.engine.registry import table

    return table.knows(name) or functional(name) is not None


def meaning(name: str) -> Any:
    """What a name that is not bound means; None if nothing."""
    if name in _registered:
        return _registered[name]
    if name in _BUILTINS:
        return _BUILTINS[name]
    if name in SHORT:
        return Namespace(SHORT[name])
    found = qualified(name)
    if found is None and (whole := functional(name)) is not None:
        return qualified(whole)
    return found


def is_plain_function(name: str) -> bool:
    """Whether a name is a function's: `norm`, `len`; not `float`, which programs pass on as a value."""
    from gradcli.engine.registry.table import Function

    return name in _FUNCTIONS or isinstance(meaning(name), Function)


def is_known(name: str) -> bool:
    """Whether a name means something without being bound. Imports no operator."""
    if name in ("print", "display") or name in _registered or name in _BUILTINS:
        return True
    return name in SHORT or name in _OWN or name in NAMESPACES or is_function(name)


def is_namespace(name: str) -> bool:
    """Whether a name means a namespace, and nothing else."""
    return (name in SHORT or name in NAMESPACES) and name not in _registered


def all_names() -> list[str]:
    """Every name that means something, for suggestions and completion."""
    from gradcli.engine.registry import table

    own = {*_BUILTINS, *SHORT, *NAMESPACES, *_registered, *_OWN, "print", "display"}
    return sorted({*table.names(), *own})


def imported(path: str) -> Any:
    """What `import path` binds; ImportError for anything but torch and numpy."""
    root, _, rest = path.partition(".")
    if root == "torch":
        found = Namespace("") if not rest else qualified(rest)
        if found is not None:
            return found
    elif root in ("numpy", "math") and not rest:
        return Constants(root)
    raise ImportError(f"No module named {path!r}")


def suggestions() -> list[str]:
    """Every name that a misspelt one may mean: those of nn.functional's that work bare, too."""
    known = all_names()
    bare = (name.rpartition(".")[2] for name in known if name.startswith("nn.functional."))
    return [*known, *(name for name in bare if functional(name) is not None)]


def close(word: str, more: Iterable[str] = ()) -> list[str]:
    """Names that a misspelt or a short one may mean: `mse` is a part of `nn.functional.mse_loss`."""
    from gradcli.language.located_errors import suggest

    found = suggest(word, [*more, *suggestions()])
    parts = [name for name in all_names() if word in re.split(r"[._]", name)]
    return found or parts[: 2 * (len(parts) < 4)]


# -- attributes -----------------------------------------------------------------------------------
TENSOR_ATTRIBUTES = words(
    "shape T mT H mH real imag grad data grad_fn requires_grad is_leaf dtype device ndim layout ",
    "itemsize nbytes output_nr _version retains_grad label is_sparse is_cuda ",
    "backward item tolist numpy requires_grad_ retain_grad register_hook detach detach_ size dim numel ",
    "nelement element_size stride storage_offset is_contiguous contiguous is_floating_point is_complex ",
    "is_signed type to cpu data_ptr ndimension register_post_accumulate_grad_hook is_inference ",
    "is_conj is_neg resolve_conj resolve_neg new_tensor new_zeros new_ones new_full new_empty is_tensor ",
    "double float half int long short bool char byte apply_ share_memory_ view_as_real ",
    "cuda get_device ",
    "_base",
)
_NODE = words(
    "name next_functions variable metadata register_hook register_prehook _sequence_nr requires_grad ",
    "label",
)
_LISTS = words("append extend insert pop index count reverse remove clear copy")
_DICTS = words("items keys values get update pop setdefault copy clear")
_TUPLES = frozenset(("index", "count", "numel"))
_NUMBERS = frozenset(("real", "imag", "conjugate", "is_integer"))
_DTYPES = frozenset(("is_floating_point", "is_complex", "is_signed", "itemsize", "name"))
_INFO = words("eps max min tiny smallest_normal resolution bits dtype")
_BY_NAME = {
    "finfo": _INFO,
    "iinfo": _INFO,
    "Generator": words("manual_seed initial_seed seed get_state set_state"),
    "device": words("type index"),
}
_WRITABLE = frozenset(("grad", "data", "requires_grad", "label", "real", "imag"))
_CONSTANT_NAMES = frozenset(("pi", "e", "inf", "nan", "newaxis", "euler_gamma", "tau"))


def attribute(value: Any, name: str) -> Any:
    """`value.name` for the names on the closed lists; AttributeError for all others."""
    kind = type(value)
    if name.startswith("__"):
        raise AttributeError(f"`{name}` is not part of this language")
    if kind is Namespace:
        found = qualified(f"{value.prefix}.{name}" if value.prefix else name)
        if found is None:
            raise AttributeError(f"gradcli's module {repr(value)[8:-1]} has no attribute {name!r}")
        return found
    # What a method could do wrong depends on its class: strings and lists may grow without limit, so
    # their methods are wrapped with checks of the size before anything is made.
    if _allowed(value, kind, name):
        if kind is str:
            return _string_method(value, name)
        if kind is list:
            return _list_method(value, name)
        if kind is dict:
            return _dict_method(value, name)
        return getattr(value, name)
    if kind is ModulePath:
        return ModulePath(f"{value}.{name}")
    if kind is Constants:
        return _constant(value, name)
    shown = "Tensor" if kind.__name__ == "Parameter" else kind.__name__
    raise AttributeError(f"gradcli's {shown!r} object has no attribute {name!r}")


def _allowed(value: Any, kind: type, name: str) -> bool:
    for owner, allowed in _closed_lists():
        if isinstance(value, owner):
            if name in allowed:
                return True
            if owner.__name__ == "Tensor":
                return name in _tensor_methods()
            # What a node saved is named by its rule, so it cannot stand in a list.
            return owner.__name__ == "Node" and name.startswith(("_saved_", "_raw_saved_"))
    if isinstance(value, tuple):
        return name in _TUPLES or name in getattr(kind, "_fields", ())
    if kind.__name__ in _BY_NAME:
        return name in _BY_NAME[kind.__name__]
    if isinstance(value, type) and name == "apply":
        from gradcli.engine.core.custom_function import Function

        return issubclass(value, Function)
    return False


@cache
def _closed_lists() -> tuple[tuple[type, frozenset[str]], ...]:
    """(class, the names of its attributes that programs may read), the likeliest first."""
    from gradcli.engine.core.hooks import RemovableHandle
    from gradcli.engine.core.node import Node
    from gradcli.engine.core.tensor import Tensor
    from gradcli.engine.system.dtypes import dtype

    lists: list[tuple[type, frozenset[str]]] = [
        (Tensor, TENSOR_ATTRIBUTES),
        (Node, _NODE),
        (str, _STRINGS),
        (list, _LISTS),
        (dict, _DICTS),
        (bool, _NUMBERS),
        (int, _NUMBERS),
        (float, _NUMBERS),
        (complex, _NUMBERS),
        (dtype, _DTYPES),
        (RemovableHandle, words("remove")),
        (BaseException, words("args")),
    ]
    return tuple(lists)


@cache
def _tensor_methods() -> frozenset[str]:
    from gradcli.engine.registry import table

    return table.methods() | frozenset(table.PROPERTIES)


def attributes(value: Any) -> list[str]:
    """The names of a value's attributes that programs may read: for suggestions and completion."""
    if isinstance(value, Namespace):
        from gradcli.engine.registry import table

        known = {*table.names(), *NAMESPACES, *_registered, *_OWN}
        start = f"{value.prefix}." if value.prefix else ""
        return sorted(
            {name[len(start) :].split(".")[0] for name in known if name.startswith(start)}
        )
    candidates = _TUPLES.union(*(allowed for _, allowed in _closed_lists()))
    candidates |= _tensor_methods() | frozenset(getattr(type(value), "_fields", ()))
    kind = type(value)
    present = {name for parent in kind.__mro__ for name in vars(parent)} | _tensor_methods()
    return sorted(n for n in candidates if n in present and _allowed(value, kind, n))


def set_attribute(value: Any, name: str, new: Any) -> None:
    """`value.name = new`, for the few attributes of tensors that may be written."""
    from gradcli.engine.core.tensor import Tensor

    if not isinstance(value, Tensor) or name not in _WRITABLE:
        raise AttributeError(f"`.{name}` of {type(value).__name__!r} cannot be assigned to")
    setattr(value, name, new)


def _constant(value: Constants, name: str) -> Any:
    import math

    if name == "newaxis" and value.name == "numpy":
        return None
    if name in _CONSTANT_NAMES:
        if name == "euler_gamma":
            return 0.5772156649015329
        if hasattr(math, name):
            return getattr(math, name)
    raise AttributeError(
        f"only the constants of {value.name} are part of this language, not `{value.name}.{name}`"
    )


def text_of(value: Any, /) -> str:
    """Python's `repr`, where it is not too long to be made."""
    budget.nested(value)
    return class_text(value) if isinstance(value, type) else repr(value)


def shown(value: Any, /) -> str:
    """Python's `str`, where it is not too long to be made."""
    budget.nested(value)
    return class_text(value) if isinstance(value, type) else str(value)


# -- strings --------------------------------------------------------------------------------------
_STRINGS = words(
    "format join upper lower strip lstrip rstrip split replace startswith endswith ljust rjust center ",
    "zfill count find index title capitalize isdigit isalpha splitlines",
)
_WIDTH = r"\d{5,}|\d[\d_]{5,}"


def check_specification(text: str) -> str:
    """Refuse widths and precisions that would fill memory."""
    if text and re.search(_WIDTH, text):
        raise ValueError(f"the width in the format specification {text!r} is too large")
    return text


def _string_method(value: str, name: str) -> Builtin:
    if name == "format":
        return Builtin(name, lambda *args, **kwargs: _format(value, args, kwargs))
    method = getattr(value, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        check_lazy(args)
        texts = [a for a in args if isinstance(a, str)]
        # No method makes a text longer than each character replaced by its longest argument.
        size = len(value) * max(map(len, texts), default=1)
        if name == "join" and len(args) == 1 and not texts:
            parts = budget.collected(args[0])
            args = (parts,)
            size = len(value) * len(parts) + sum(len(p) for p in parts if isinstance(p, str))
        budget.items(max([size, *(a for a in args if isinstance(a, int))]), "a string")
        return method(*args, **kwargs)

    return Builtin(name, call)


def _list_method(values: list[Any], name: str) -> Any:
    method = getattr(values, name)
    if name in ("index", "count", "remove"):

        def look(item: Any, /, *bounds: Any) -> Any:
            if type(item) in budget.NESTED:  # compared with each, item by item
                budget.nested(values)
            return method(item, *bounds)

        return Builtin(name, look)
    if name in ("append", "insert"):

        def put(*args: Any) -> None:
            budget.items(len(values) + 1, limit=budget.MAX_GROWN)
            method(*args)

        return Builtin(name, put)
    if name != "extend":
        return method

    def extend(more: Iterable[Any], /) -> None:
        items = budget.collected(more)
        budget.items(len(values) + len(items))
        method(items)

    return Builtin(name, extend)


def _dict_method(values: dict[Any, Any], name: str) -> Any:
    method = getattr(values, name)
    if name == "update":

        def update(more: Any = (), /, **keywords: Any) -> None:
            found = _entries(more)
            budget.items(len(values) + len(found) + len(keywords), "a dict")
            method(found, **keywords)

        return Builtin(name, update)
    if name not in ("get", "pop", "setdefault"):
        return method

    def at_key(key: Any, /, *default: Any) -> Any:
        if name == "setdefault":
            budget.items(len(values) + 1, "a dict", budget.MAX_GROWN)
        return method(budget.key(key), *default)

    return Builtin(name, at_key)


def _format(template: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """str.format without attribute access: `{}`, `{0}`, `{name}`, `{:.3f}`, `{!r}`, `{:>{width}}`."""
    from _string import formatter_parser  # type: ignore[import-not-found]  # as string.Formatter

    automatic = iter(range(len(args) + 1))
    made = 0

    def field_value(field: str) -> Any:
        name = field or str(next(automatic))
        if name.isdigit() and name.isascii():
            if int(name) >= len(args):
                text = f"Replacement index {name} out of range for positional args tuple"
                raise IndexError(text)
            return args[int(name)]
        # `{0.__class__}` would reach attributes that are on no list.
        if not name.isidentifier():
            raise ValueError(f"format field {field!r}: only names and numbers can stand here")
        return kwargs[name]

    def filled(text: str, depth: int) -> str:
        nonlocal made
        out: list[str] = []
        for literal, field, specification, conversion in formatter_parser(text):
            out.append(literal)
            if field is not None:
                value = field_value(field)
                if "{" in (specification or "") and depth == 0:
                    specification = filled(specification, 1)
                out.append(formatted(value, conversion, specification or ""))
                made += len(out[-1])
                budget.items(made, "a string")
        return "".join(out)

    return filled(template, 0)


def formatted(value: Any, conversion: str | None, specification: str) -> str:
    """`{value!conversion:specification}`."""
    if conversion == "r":
        value = text_of(value)
    elif conversion == "s" or type(value) in (list, tuple):
        value = shown(value)
    elif conversion == "a":
        value = text_of(value).encode("ascii", "backslashreplace").decode()
    return format(value, check_specification(specification))

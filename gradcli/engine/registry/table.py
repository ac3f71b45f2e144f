"""The operator table: every function of the language and of the Python API.

A *primitive* is a kernel with its node and VJP rules. It is public under its name (decorator `operator`), or
other functions record it (decorator `primitive`). A *function* (decorator `function`) is Python over
primitives: it chooses one by its arguments, or composes several as PyTorch does. Python functions,
methods, in-place forms, the language's names, `gradcli ops`, completions and the sweeps of the tests come
from the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache, cached_property
from importlib import import_module
from operator import attrgetter
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import OfEngine, declaration, generated_calls, tensor
from gradcli.engine.core.declaration import Number, Value, said, sample_calls
from gradcli.engine.core.primitive import PRIMITIVES as PRIMITIVES
from gradcli.engine.core.primitive import Primitive as Primitive
from gradcli.engine.core.primitive import VjpRules as VjpRules
from gradcli.engine.core.primitive import defined
from gradcli.engine.core.primitive import primitive as primitive
from gradcli.engine.core.tensor import NUMPY, Tensor, wrap
from gradcli.engine.registry.binder import Parser
from gradcli.engine.registry.schema import Adapt, Gather, Python
from gradcli.engine.system import dtypes

if TYPE_CHECKING:
    from gradcli.engine.core.out_argument import Rule

FUNCTIONS: dict[str, Function] = {}  # of the families imported so far
PROPERTIES: dict[str, property] = {}  # attributes of tensors that are functions, as `x.T`
CONSTANTS: dict[str, Any] = {"e": np.e, "pi": np.pi, "inf": np.inf, "nan": np.nan} | dtypes.NAMES


class Function:
    """One entry of the table: a function under its public name."""

    def __init__(
        self,
        name: str,
        target: Primitive | Callable[..., Any],
        *,
        module: str = "",
        family: str = "",
        doc: str = "",
        aliases: str = "",
        forms: tuple[str, ...] = (),
        method: bool | None = None,
        inplace: bool = False,
        samples: str | Iterable[str] = (),
        primitives: tuple[Primitive, ...] = (),
        parser: Parser | None = None,
        short: bool = True,
    ) -> None:
        """module: of the body; family: if not the module's. method: default if `name` has no dot."""
        self.name, self.doc, self.short = name, doc, short
        own_family, own_module = _place(module) if module else ("", "")
        self.family, self.module = family or own_family, own_module or family
        self.aliases, self.samples = tuple(aliases.split()), sample_calls(samples, name)
        self.forms, self.parser = forms, parser
        self.method, self.inplace = "." not in name if method is None else method, inplace
        self.primitives = (target,) if isinstance(target, Primitive) else primitives
        # What callers call: for a function with signatures, the one that binds arguments.
        self.target = target if parser is None or self.primitives == (target,) else self.call

    def called(self, name: str) -> Function:
        """The entry of an alias, whose name its messages use."""
        if self.parser is None:
            return self
        other = copy(self)
        own = tuple(text for text in self.forms if text.startswith(f"{name}("))
        other.parser = self.parser.called(name, own)
        if "call" in vars(other):
            del other.call
            other.target = other.call
            other.target.__doc__ = self.doc
        return other

    @property
    def __name__(self) -> str:
        return self.name.rpartition(".")[2]

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The function, with PyTorch's arguments."""
        return self.target if self.parser is None else self.parser.function()

    @property
    def method_call(self) -> Callable[..., Any]:
        """The method; its errors do not count the tensor that it is called on."""
        return self.call if self.parser is None else self.parser.function(first=1)

    @cached_property
    def inplace_call(self) -> Callable[..., Any]:
        """The in-place form, as a method."""
        assert self.parser is not None
        made = self.parser.function(first=1, suffix="_")
        made.__doc__ = f"In-place form of `{self.name}`."
        return made

    @cached_property
    def _lenient(self) -> Callable[..., Any]:
        """As `call`, but a primitive accepts numbers beside a tensor."""
        primitive = self.target
        several = isinstance(primitive, Primitive) and len(primitive.tensors) > 1
        return self.parser.function(numbers=True) if self.parser and several else self.call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._lenient(*args, **kwargs)

    @property
    def signature(self) -> str:
        """`name(input, dim=None, keepdim=False)`."""
        if self.parser is not None:
            return f"{self.name}{self.parser.shown}"
        import inspect

        target = inspect.unwrap(self.target)
        given = [
            p.replace(annotation=inspect.Parameter.empty)
            for p in inspect.signature(target).parameters.values()
        ]
        return f"{self.name}{inspect.Signature(given)}"

    @property
    def tensor_args(self) -> frozenset[int | str]:
        """Positions and names of the parameters that want a tensor."""
        if isinstance(self.target, Primitive):
            primitive = self.target
            wanted = [i for i in primitive.tensors if primitive.kinds[i] != "list"]
            return frozenset(wanted) | {primitive.names[i] for i in wanted} | {"input"}
        if self.parser is not None:
            return self.parser.tensor_args
        return frozenset()  # the legacy constructors

    @property
    def one_tensor(self) -> bool:
        """Whether the first of two numbers has to become a tensor, as in pow(2, 3)."""
        return self.parser is not None and self.parser.one_tensor

    def __repr__(self) -> str:
        return f"<function {self.name} of gradcli>"


# In messages, as PyTorch's.
setattr(Function, "__name__", "builtin_function_or_method")
Function.__module__ = "builtins"


# -- filling the table ----------------------------------------------------------------------------
def home(module: str) -> str:
    """A module's name in the index: `movement.casting`."""
    return module.removeprefix("gradcli.")


@cache
def _place(module: str) -> tuple[str, str]:
    """(family of a module's functions: the module, or its FAMILY; the module's name)."""
    name = home(module)
    return getattr(sys.modules[module], "FAMILY", name.rpartition(".")[2]), name


def enter(entry: Function, numpy: Any = None) -> Function:
    """Add an entry to the table; numpy: the NumPy functions that it replaces in VJP rules."""
    FUNCTIONS[entry.name] = entry
    for name in entry.aliases:
        FUNCTIONS[name] = entry.called(name)
    for np_function in numpy if isinstance(numpy, tuple) else (numpy,):
        if np_function is not None:
            NUMPY[np_function] = entry
    return entry


def operator(
    facts: str = "",
    *,
    kernel: Callable[..., Any] | None = None,
    node: str | None = None,
    public: bool = True,
    **more: Any,
) -> Callable[[type], Primitive]:
    """Decorate a class of VJP rules: define a primitive and enter it under its name.

    facts, kernel, node: as for `primitive`. public: False: as `primitive`, without a function.
    more: other facts of the primitive (see `core.declaration.Facts`, and `core.primitive.defined`), and of
    its entry:
    samples: calls in the language, for tests and documentation; "(randn(3)); (randn(2,3), 1)" are calls of
    the public name. name: the public name, if it is not the class's or the signature's. numpy: the NumPy
    functions that this primitive replaces in VJP rules (a ufunc kernel is always one); as a word: that of
    its name. signature: PyTorch's, one or several, if the primitive has options (see
    `registry/schema.py`). aliases: other names; forms: their signatures, if they differ. method, inplace:
    whether `x.NAME()` and `x.NAME_()` exist. out: the dtypes that `out=` may have, where these are not all
    that the result can be cast to: `"exact"`, or another rule of `core.out_argument.check_dtype`, or a
    function of the arguments that gives one.
    """
    if not public:
        return primitive(facts, kernel=kernel, node=node, **more)
    told = said(facts) | more
    entry = {fact: told.pop(fact) for fact in _OF_ENTRY if fact in told}
    return lambda rules: register(defined(rules, kernel, node, **told), rules.__module__, **entry)


# What is said of a function's entry; the other facts are those of its primitive.
_OF_ENTRY = (
    "name",
    "numpy",
    "signature",
    "samples",
    "aliases",
    "forms",
    "method",
    "inplace",
    "out",
)


def register(
    primitive: VjpRules,
    module: str,
    *,
    name: str | None = None,
    numpy: Any = None,
    signature: str | tuple[str, ...] = (),
    out: Rule = "",
    **about: Any,
) -> Primitive:
    """Enter a primitive as a function of a module; about: its entry, as for `operator`."""
    texts = (signature,) if isinstance(signature, str) else signature
    parser = Parser(texts, primitive, name=name or primitive.name)
    parser.overlap, parser.out = _overlap((primitive,), about.get("inplace", False)), out
    called = name or parser.public or primitive.name
    entry = Function(called, primitive, module=module, doc=primitive.doc, parser=parser, **about)
    own = attrgetter(entry.name)(np) if numpy is True else numpy
    primitive.samples = enter(entry, own or primitive.numpy).samples
    return primitive


def _overlap(primitives: tuple[Primitive, ...], inplace: bool) -> str:
    """How the operands may share memory with `out`: see `core.out_argument.into`."""
    if any("apart" in r.writes for r in primitives):
        return "whole none" if inplace else "none none"
    if any(r.writes for r in primitives):
        return "any any"
    if primitives and all(r.batching == "elementwise" for r in primitives):
        return "whole whole"
    return "whole any" if inplace else "any any"


def function(
    *signatures: str,
    name: str | None = None,
    primitives: Iterable[VjpRules] | None = None,
    python: Python = False,
    adapt: Adapt | None = None,
    many: Gather | None = None,
    doc: str = "",
    **about: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a Python function over primitives.

    signatures: PyTorch's; the body is called with a value for each parameter, in order (see
    `registry/schema.py`, also for python and many). primitives: those it may record, if they are not
    those that its body names. adapt: called at
    the first call with the body and the parameters' names, returns the function to call instead. doc: for
    a body without a docstring. about: short: whether the language may omit `nn.functional.`, False if
    PyTorch has another function of the short name; overlap: how operands may share memory with `out`, if
    the primitives do not tell (see `core.out_argument.into`); aliases, method, inplace, samples, numpy and
    out as for `operator`.
    """

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        recorded = _named(body) if primitives is None else tuple(primitives)
        if writes := next((r.writes for r in recorded if r.writes), ""):
            body.writes = writes  # type: ignore[attr-defined]
        if all("|function" in text for text in signatures):
            about.setdefault("method", False)
        if "|inplace" in signatures[0]:
            about["inplace"] = True
        in_python = python or all("|python" in text for text in signatures)
        parser = Parser(signatures, body, in_python, adapt=adapt, many=many)
        own = body.__name__.rstrip("_") if parser.name[0] == "_" else parser.name
        public = name or parser.public or own
        if "|numpy" in signatures[0]:
            about["numpy"] = attrgetter(public)(np)
        text = doc or (body.__doc__ or "").strip()
        return _parsed(public, parser, body, body.__module__, recorded, doc=text, **about)

    return decorate


def bundled(body: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """For `adapt`: a body of many parameters gets one object, with the values under their names."""
    given = ", ".join(f"{n}={n}" for n in names)
    space = {"body": body, "bundle": SimpleNamespace}
    lines = [f"return body(bundle({given}))"]
    return generated_calls.generated(body.__name__, ", ".join(names), lines, space)


def _named(body: Callable[..., Any]) -> tuple[Primitive, ...]:
    """The primitives that a body names, by themselves or as attributes of a module."""
    spaces = [body.__globals__]
    names = body.__code__.co_names
    spaces += [vars(m) for n in names if isinstance(m := spaces[0].get(n), ModuleType)]
    found = (space.get(name) for name in names for space in spaces)
    return tuple(each for each in found if isinstance(each, Primitive))


def overloads(
    *signatures: str,
    targets: Iterable[Primitive | Callable[..., Any]],
    doc: str,
    module: str = "",
    primitives: Iterable[VjpRules] = (),
    name: str | None = None,
    **about: Any,
) -> Callable[..., Any]:
    """Enter a function with a separate target for each signature: `NAME(…) -> TARGET`.

    targets: the primitives, or functions over primitives, that the arrows name. primitives: those that
    these functions may record. module: whose function it is; the caller's by default.
    about: as for `function`.
    """
    module = module or sys._getframe(1).f_globals["__name__"]
    named = {t.name if isinstance(t, Primitive) else t.__name__: t for t in targets}
    recorded = (*(t for t in named.values() if isinstance(t, Primitive)), *primitives)
    parser = Parser(signatures, named)
    public = name or parser.public or parser.name
    return _parsed(public, parser, parser.general, module, recorded, doc=doc, **about)


def _parsed(
    public: str,
    parser: Parser,
    target: Callable[..., Any],
    module: str,
    primitives: tuple[Primitive, ...],
    *,
    doc: str,
    numpy: Any = None,
    overlap: str = "",
    out: Rule = "",
    **about: Any,
) -> Callable[..., Any]:
    """Enter a function whose arguments a parser binds; returns the function."""
    for each in primitives:  # in messages, they have the name of the function that records them
        if each.public_name == each.name not in FUNCTIONS:
            each.public_name = public
    parser.overlap = overlap or _overlap(primitives, about.get("inplace", False))
    parser.out = out
    entry = Function(
        public, target, module=module, primitives=primitives, parser=parser, doc=doc, **about
    )
    call = enter(entry, numpy).call
    call.__doc__, call.__module__ = doc, module
    return call


def tensor_property(
    name: str, get: Callable[[Any], Any], put: Callable[[Any, Any], None] | None = None
) -> None:
    """Enter a computed attribute of tensors, as `x.T`; put: its setter."""
    PROPERTIES[name] = property(get, put)
    setattr(Tensor, name, PROPERTIES[name])


# -- looking things up ----------------------------------------------------------------------------
# The packages whose modules enter operators here; imported when one of their names is needed.
ROOMS = ("operators",)
SYMBOLS = "operators.primitives.arithmetic"  # Python's operators, which all tensors need
SUBSCRIPTS = "operators.movement.subscripts"


@cache
def load() -> None:
    """Import all families: every module that enters operators."""
    from pathlib import Path

    package = Path(__file__).parents[2]
    for room in ROOMS:
        for file in sorted((package / room).rglob("[a-z]*.py")):
            name = ".".join(file.relative_to(package).with_suffix("").parts)
            import_module(f"gradcli.{name}")


@cache
def base() -> None:
    """Import Python's operators, which all tensors need."""
    import_module(f"gradcli.{SYMBOLS}")


Index = tuple[dict[str, str], frozenset[str], frozenset[str], frozenset[str], dict[str, str]]


@cache
def _index() -> Index:
    """The index of names, without importing a family.

    ({name: module}, methods, names with an in-place form, names that are never shortened, {name of a
    tensor attribute: module}). From registry.index (see make_index); computed if that is missing.
    """
    try:
        from gradcli.engine.registry import index
    except ImportError:
        return collect()
    attributes = getattr(index, "ATTRIBUTES", {})
    return index.MODULES, index.METHODS, index.INPLACE, index.WHOLE, attributes


def collect() -> Index:
    """As `_index`, computed from the whole table."""
    load()
    modules = {n: f.module for n, f in FUNCTIONS.items()}
    attributes = {n: home(p.fget.__module__) for n, p in PROPERTIES.items() if n not in FUNCTIONS}
    plain = {n: f for n, f in FUNCTIONS.items() if "." not in n}
    methods = frozenset(n for n, f in plain.items() if f.method)
    whole = frozenset(n for n, f in FUNCTIONS.items() if not f.short)
    inplace = frozenset(n for n in methods if plain[n].inplace)
    return modules, methods, inplace, whole, attributes


def _find(name: str) -> Function | None:
    found = FUNCTIONS.get(name)
    if found is None and name not in PROPERTIES:
        base()
        module = _index()[0].get(name) or _index()[4].get(name)
        if module is not None:
            import_module(f"gradcli.{module}")
        inplace = name.endswith("_") and name[:-1] in _index()[0]
        if name not in FUNCTIONS and name not in PROPERTIES and not inplace:
            load()  # an outdated index costs time, but no names are lost
        found = FUNCTIONS.get(name)
    return found


def resolve(name: str) -> Any:
    """The Function, constant or dtype of a PyTorch name; None if there is none."""
    if name in CONSTANTS:
        return CONSTANTS[name]
    found = _find(name)
    if found is None and name.endswith("_") and (entry := _inplace_entry(name)) is not None:
        found = Function(name, entry.inplace_call, family="inplace", method=True)
    return found


@cache
def _names_of_rows() -> dict[int, str]:
    load()
    return {id(f.target): f.name for f in FUNCTIONS.values()}


def public_name(primitive: Primitive) -> str | None:
    """The language's name for a primitive: its own if a function has it, else its function's."""
    return primitive.name if primitive.name in FUNCTIONS else _names_of_rows().get(id(primitive))


def knows(name: str) -> bool:
    """Whether `resolve` knows the name; imports no family."""
    modules, _, inplace, *_ = _index()
    return name in modules or name in CONSTANTS or (name[-1:] == "_" and name[:-1] in inplace)


def functional(name: str) -> str | None:
    """`nn.functional.gelu` for `gelu`; None if there is none, or torch has another function of that name."""
    whole = f"nn.functional.{name}"
    return None if knows(name) or not knows(whole) or whole in _index()[3] else whole


def entries() -> list[Function]:
    """Every function once, without aliases."""
    load()
    found: dict[str, Function] = {}
    for entry in FUNCTIONS.values():
        found.setdefault(entry.name, entry)
    return list(found.values())


def names() -> list[str]:
    """Every name that `resolve` knows."""
    return sorted({*_index()[0], *CONSTANTS})


def methods() -> frozenset[str]:
    """The names that can be called as `x.NAME(...)`, in-place forms included."""
    _, found, inplace, *_ = _index()
    return found | {f"{n}_" for n in inplace}


def _inplace_entry(name: str) -> Function | None:
    entry = _find(name[:-1])
    return entry if entry is not None and entry.inplace else None


def find_method(name: str) -> Any:
    """The method or property of tensors of that name; None if there is none."""
    entry = _find(name)
    if name in PROPERTIES:
        return PROPERTIES[name]
    if entry is not None and entry.method:
        return entry.method_call
    found = _inplace_entry(name) if name.endswith("_") else None
    return found.inplace_call if found is not None else None


def meaning(numpy_function: Any) -> Any:
    """The function of tensors that replaces a NumPy function; None if there is none."""
    if numpy_function not in NUMPY:
        load()
    return NUMPY.get(numpy_function)


tensor.meaning = meaning


def _outside(numpy_function: Any) -> Any:
    """The function of tensors that a program's own call of NumPy's means, with NumPy's arguments."""
    module: Any = import_module("gradcli.operators.composites.numpy_data")
    return module.meaning(numpy_function)


tensor.outside = _outside


def _batching_rule(text: str) -> Any:
    """The rule of a name, or what a function makes of the words behind its name: `last 2 2`."""
    name, *words = text.split()
    rule: Any = getattr(import_module("gradcli.engine.registry.batching_helpers"), name, None)
    return rule(*(int(w) if w.isdigit() else w for w in words)) if words else rule


setattr(declaration, "rule_of_name", _batching_rule)


class _Method(str):
    """Placeholder on Tensor for a method of the table, until its first use."""

    __slots__ = ()

    def __get__(self, x: Tensor | None, kind: type[Tensor]) -> Any:
        setattr(Tensor, self, find_method(self))
        return getattr(kind if x is None else x, self)


class _Property(_Method):
    """The same for an attribute with a setter."""

    __slots__ = ()

    def __set__(self, x: Tensor, value: Any) -> None:
        setattr(Tensor, self, find_method(self))
        setattr(x, self, value)


class _Subscript:
    """Placeholder on Tensor for `x[…]`, until its first use."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Tensor | None, kind: type[Tensor]) -> Any:
        found = getattr(import_module(f"gradcli.{SUBSCRIPTS}"), self.name.strip("_"))
        setattr(Tensor, self.name, found)
        return getattr(kind if x is None else x, self.name)


def _attach() -> None:
    """Set subscripts, and placeholders for the index's methods and properties, on Tensor."""
    for name in ("__getitem__", "__setitem__"):
        setattr(Tensor, name, _Subscript(name))
    try:
        from gradcli.engine.registry import index
    except ImportError:  # make_index has not written it yet
        return
    for stub, names in ((_Method, methods() - index.PROPERTIES), (_Property, index.PROPERTIES)):
        for name in names:
            if type(vars(Tensor).get(name)) in (type(None), OfEngine):
                setattr(Tensor, name, stub(name))


_attach()


def lift(number: float) -> Tensor:
    """A 0-d tensor of a number, in the default dtype (or its complex dtype); a bool stays bool."""
    if isinstance(number, bool):
        return wrap(np.bool_(number))
    kind = dtypes.default.complex if isinstance(number, complex) else dtypes.default.real
    return wrap(kind.type(number))


def lift_beside(number: Any, dtype: Any) -> Tensor:
    """A 0-d tensor of a number, in the dtype to which it and a tensor of this dtype promote."""
    if isinstance(number, bool):
        return lift(number)
    beside = np.dtype(getattr(dtype, "dtype", dtype))
    kinds = "biufc"
    own = np.asarray(number).dtype.kind
    if own == "c" and beside.kind == "f":
        beside = np.result_type(beside, np.complex64)
    elif kinds.index(own) > kinds.index(beside.kind):
        beside = np.dtype(np.int64) if own == "i" else lift(number).array.dtype
    return wrap(beside.type(number))


def is_analytic(primitive: Primitive) -> bool:
    """Whether a primitive is complex-differentiable: a complex step along it gives its derivative."""
    return getattr(primitive, "analytic", False)  # that of a custom Function has no such fact


_OPERANDS = (Tensor, bool, int, float, complex, np.ndarray, np.generic)


def is_operand(value: Value | Number | str) -> bool:
    """True for a value that can be an operand beside a tensor."""
    return isinstance(value, _OPERANDS) or hasattr(value, "__operator__")


def binary_method(primitive: Primitive) -> Callable[..., Any]:
    """The primitive as a Python operator's method, which returns NotImplemented for other operands."""

    def unusual(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return primitive.call_any(args, kwargs) if all(map(is_operand, args)) else NotImplemented

    return generated_calls.call(primitive, unusual)

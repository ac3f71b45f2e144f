"""What an operator declares: its kernel, its VJP rules, facts about it, and what follows from these.

Nothing here depends on tensors or nodes. `core.primitive.Primitive` is a Declaration that can be called;
nodes, generated code and batching rules are made from the Declaration alone.
"""

from __future__ import annotations

import operator as op
import warnings
from collections.abc import Callable, Iterable
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gradcli.engine.system.dtypes import Array as Array
from gradcli.engine.system.dtypes import Arrays as Arrays
from gradcli.engine.system.dtypes import DType as DType
from gradcli.engine.system.dtypes import Number as Number
from gradcli.engine.system.dtypes import Shape as Shape

if TYPE_CHECKING:
    from gradcli.engine.core.tensor import Tensor

# -- what signatures call the arguments of kernels, rules and functions ---------------------------
#     def forward(self: Array, dim: Ints | None = None) -> Array    # a kernel: of arrays and options
#     def _placed(g: Value, shape: Shape) -> Any                    # a rule: of arrays, or of tensors
#     def outer(input: Tensor, vec2: Tensor) -> Any                 # a function of the table
# An array in a plain backward pass, a tensor where the pass is recorded.
Value: TypeAlias = "Array | Tensor"
# An int for each dimension (strides, paddings), or dimensions themselves.
Ints: TypeAlias = "tuple[int, ...]"
# A kernel's operands are what it annotates so; all else are options. An option that is annotated as `int`
# takes no other number.
_TENSOR_KINDS = {"Array": "tensor", "Array | None": "optional", "Arrays": "list"}

# On NumPy scalars, Python's operators are ten times faster than the ufuncs.
_KERNELS: dict[Any, Callable[..., Any]] = {
    np.add: op.add,
    np.subtract: op.sub,
    np.multiply: op.mul,
    np.divide: op.truediv,
    np.negative: op.neg,
}
NOT_IMPLEMENTED = "NotImplemented"  # the node of an operation without a derivative


_OURS = r"gradcli\."
_allocated = False


def _settle() -> None:
    """Set the process up when a primitive is first used; importing alone changes nothing.

    NumPy's warnings about log(0) and 0/0 are silenced in our modules: PyTorch has none. glibc returns each
    freed array of 128 KiB or more to the system, so that page faults would dominate a backward pass;
    freeing one array of 31 MiB, which is never touched, raises that threshold for good (to at most 32 MiB).
    """
    global _allocated
    if not _allocated:
        _allocated = True
        np.empty(31 << 20, np.uint8)
    if not any(getattr(found[3], "pattern", "") == _OURS for found in warnings.filters):
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=_OURS)


# Attributes that are derived from the kernel and the rules at their first use.
_READ = frozenset(
    [
        *("names", "kinds", "defaults", "keyword_only", "position", "whole", "tensors"),
        *("targets", "needs", "masked", "differentiated", "flat", "saved_fields"),
        *("option_fields", "saved_results", "saved_for"),
    ]
)


class Facts:
    """What an operator may declare about itself, with what holds if it says nothing."""

    # "linear", "bilinear" or "elementwise"; "loss": elementwise, then reduced as `reduction` says.
    linearity: str | None = None
    types: str | None = None  # how operands are promoted: "common", "float"; "own": not at all
    params: str | None = None  # the tensor arguments of a ufunc kernel without rules
    outputs: Any = (
        None  # the names of the outputs, those behind a bar not differentiable; or "list"
    )
    # For NumPy's letters of dtype kinds (and e for float16) that are not taken PyTorch's message, its
    # kernel's name or (error, message); for C the name, if complex numbers are not recorded.
    refuses: Any = None
    numbers = False  # users may pass Python numbers as tensors
    plain: str | None = None  # Python's operator for the kernel, if all options have their defaults
    # By argument, its VJP rule for real dtypes: an expression that the plain pass runs instead of a call.
    real: Any = None
    view = False  # the results alias the first argument
    discrete = False  # calls with integer results are recorded
    lossy = False  # they are not, without an error
    # The rule reads the gradient once, in `array_memory.in_parts`, and may overwrite it.
    donates = False
    wide = False  # with float16, numbers and 0-d tensors of other dtypes are not rounded first
    copies = False  # calls on inference tensors are recorded
    # The batching rule: a name of `core.batching_rules.BATCHING_WAYS` or of `registry.batching_helpers`,
    # or a function of primitive, operands and level that returns the results with the batch in front.
    batching: Any = None
    axes: Any = None  # the options that are dims; default: `dim`, if the kernel has one
    sizes = ""  # the option that is a shape
    index = ""  # the subscripts of the operand, as of einsum, where they repeat
    full_rank = (
        False  # the derivative exists where the first operand has full rank, and not elsewhere
    )
    dynamic = ""  # the result's shape depends on values: "always", or "masks" if an operand is one
    # An operand that only one of several rules reads is saved only if that rule will run; False for
    # derivatives, where PyTorch saves all.
    saves_by_need = True
    # The symbolic rule, if it is not the one of its public name in `gradcli.formulas.lift.symbolic_rules`, or
    # else a call of its function with options of the same names: a formula of its parameters;
    # `WORD: OPTIONS`, another function and its names for the options (`-` for one that it lacks);
    # `WORD[0]: OPTIONS`, the first of its results; or the name of a rule there.
    symbolic = ""
    # How a power series goes through it: a function of `gradcli.transforms.jets.functions` and of those of
    # its parameters that it names (float tensors are series, others arrays); without one what is linear,
    # bilinear or elementwise is derived from the VJP rules, and kernels are taken apart.
    jet: Any = None
    # Its product with a tangent: a function of the tangent of its one differentiated parameter, then of
    # parameters and results that it names; it gives None where it does not hold. Without one the product
    # follows from the VJP rules.
    tangent: Any = None
    # A function of parameters, of `result`, and of `moving`, the names of those that depend on variables:
    # where its derivatives by rules lose digits or are masked, so that higher ones are to be taken by power
    # series. Where it gives 2, the slope itself is right.
    critical: Any = None
    # Where critical, digits are lost only if a variable moves several operands, whose slopes cancel: x/x**2.
    cancels = False
    # As critical: where it has a kink, which the slope is a choice at, so that second ones may be wrong.
    bends: Any = None
    # Which overlaps the in-place form allows: "shared", elements may share memory; "apart", no operand
    # may overlap what is written; "read", the last operand may overlap in any way. Default: an operand
    # is the written tensor or does not overlap.
    writes = ""
    own_order = False  # the kernel chooses the result's order in memory
    # Where its slope depends on the side, or is missed by its rule: a `core.switch.Point`, or `Several`.
    switch: Any = None
    doc = ""


# A word of a declaration is a fact that is true, but these, which are values of other facts.
_WORDS: dict[str, tuple[str, Any]] = {
    **{word: ("linearity", word) for word in ("linear", "bilinear", "elementwise", "loss")},
    **{word: ("types", word) for word in ("common", "float", "own")},
    **{word: ("batching", word) for word in ("along", "dynamic", "folded", "leading", "random")},
    **{"pointwise": ("batching", "elementwise"), "list": ("outputs", "list")},
    **{"function": ("method", False), "saves_all": ("saves_by_need", False)},
    **{word: ("writes", word) for word in ("apart", "shared")},
}


def said(words: str) -> dict[str, Any]:
    """The facts that words say: "linear view" is `{"linearity": "linear", "view": True}`."""
    return dict(_WORDS.get(word, (word, True)) for word in words.split())


def sample_calls(samples: str | Iterable[str], name: str) -> tuple[str, ...]:
    """Samples as calls; in a text they are parted by "; ", and the name goes before a parenthesis."""
    if not isinstance(samples, str):
        return tuple(samples)
    return tuple(name * (s[0] == "(") + s for s in samples.split("; ") if s)


def rule_of_name(name: str) -> Any:
    """The batching rule of a name; the registry, which has them, sets another."""


_DEFAULTS = {n: v for n, v in vars(Facts).items() if not n.startswith("_")}


class Declaration(Facts):
    """The facts of one operator, and what follows from the signatures of its kernel and rules."""

    def __init__(
        self,
        name: str,
        kernel: Callable[..., Any],
        node: str | None,
        rules: dict[str, Callable[..., Any]],
        **facts: Any,
    ) -> None:
        """facts: see `Facts`."""
        if unknown := facts.keys() - _DEFAULTS.keys():
            raise TypeError(f"{name} declares what is no fact: {', '.join(sorted(unknown))}")
        vars(self).update(_DEFAULTS, **facts)
        self.name = self.public_name = name  # public: the function's name in messages
        self.place = name  # its name in the module that declares it
        self.node, self._declared = node, (kernel, rules, self.params)
        self.numpy = kernel if isinstance(kernel, np.ufunc) else None
        self.kernel = _KERNELS.get(kernel, kernel)
        # PyTorch's generated code applies the rules in alphabetical order.
        self.vjps: dict[str, Any] = dict(sorted(rules.items()))
        if itself in self.vjps.values():
            self.vjps = {n: self if r is itself else r for n, r in self.vjps.items()}
        if self.axes is None:
            self.axes = "dim" if "dim" in _options_of(kernel) else ""
        if self.batching is None and (self.axes or self.sizes):
            self.batching = "along"
        elif self.batching is None and (self.linearity == "elementwise" or self.numpy is not None):
            self.batching = "elementwise"
        self.dynamic = self.dynamic or ("always" if self.batching == "dynamic" else "")
        self.rare = self.batching == "level"  # it enters or leaves a batch: no plain pass can
        if self.types is None and self.linearity in ("elementwise", "bilinear"):
            self.types = "common"
        elif self.types == "own":
            self.types = None
        first, _, rest = (self.outputs or "result").partition("|")
        self.outputs = (*first.split(), *rest.split())
        self.differentiable = len(first.split())
        self.returns_list = self.outputs == ("list",)
        self.returns_one = not self.returns_list and len(self.outputs) == 1
        self.refuses = {k: v for kinds, v in (self.refuses or {}).items() for k in kinds}
        self.real = self.real or {}
        self.samples: tuple[str, ...] = ()
        self.analytic = False  # complex-differentiable
        self.scalar: Any = None  # the primitive that a C++ scalar operand selects inside rules

    # -- read from the kernel and the rules --------------------------------------------------------
    def _read_kernel(self) -> None:
        _settle()
        kernel, rules, params = self._declared
        self.names, self.kinds, self.defaults, self.keyword_only = _parameters(
            kernel, rules, params
        )
        self.position = {n: i for i, n in enumerate(self.names)}
        notes = getattr(kernel, "__annotations__", {})
        self.whole = tuple(i for i, n in enumerate(self.names) if notes.get(n) == "int")
        self.tensors = tuple(i for i, k in enumerate(self.kinds) if k != "option")
        several = len(self.tensors) > 1 and "list" not in self.kinds and self.returns_one
        several = several and not self.own_order
        # The operands go through PyTorch's TensorIterator; for a loss, if it is not reduced.
        self.broadcasts = several and (self.batching == "elementwise" or self.linearity == "loss")

    def _read_rules(self) -> None:
        self.targets: list[tuple[int, ...]] = []  # for each rule, the positions of its arguments
        self.needs: list[tuple[str, ...]] = []
        self.masked: list[bool] = []
        for target, rule in self.vjps.items():
            needs = parameters_of(rule)[1:]
            self.targets.append(tuple(self.position[t] for t in target.split("__")))
            self.masked.append("mask" in needs and "mask" not in self.position)
            self.needs.append(tuple(n for n in needs if n != "mask" or n in self.position))
        self.differentiated = tuple(sorted({i for t in self.targets for i in t}))
        # Whether nodes keep edges, saved tensors and options in slots (see node.layout).
        self.flat = (
            len(self.differentiated) in (1, 2, 3)
            and all(self.kinds[i] != "list" for i in self.differentiated)
            and self.node != NOT_IMPLEMENTED
        )
        fields = tuple(dict.fromkeys(n for need in self.needs for n in need))
        self.saved_fields = tuple(n for n in fields if self._is_tensor_field(n))
        self.option_fields = tuple(n for n in fields if not self._is_tensor_field(n))
        self.saved_results = frozenset(
            self.outputs.index(n) for n in self.saved_fields if n in self.outputs
        )
        lists = any(self.kinds[i] == "list" for i in self.differentiated)
        # As in PyTorch, an input that only one of several rules reads is saved only if that rule will run.
        self.saved_for: dict[str, tuple[int, ...]] = {}
        if len(self.differentiated) > 1 and not lists and self.saves_by_need:
            for field in self.saved_fields:
                users = [
                    t for t, need in zip(self.targets, self.needs, strict=True) if field in need
                ]
                if field in self.position and len(users) == 1 and len(users[0]) == 1:
                    self.saved_for[field] = users[0]

    def _is_tensor_field(self, field: str) -> bool:
        i = self.position.get(field)
        return field in self.outputs if i is None else self.kinds[i] != "option"

    @cached_property
    def saves(self) -> tuple[str, ...]:
        """The fields that a node shows as `_saved_FIELD`."""
        return tuple(sorted(f for f in self.saved_fields + self.option_fields if _shown(f)))

    @property
    def is_watched(self) -> bool:
        """Whether somebody may want to know of its calls: see `core.switch.watching`."""
        return not (self.switch is None and self.critical is None and self.bends is None)

    @cached_property
    def batching_rule(self) -> Any:
        """The batching rule, where it is none of `core.batching_rules.BATCHING_WAYS`."""
        return rule_of_name(self.batching) if isinstance(self.batching, str) else self.batching

    def __getattr__(self, name: str) -> Any:
        """Read the kernel and the rules on first use: importing a table costs little."""
        if name not in _READ:
            raise AttributeError(name)
        self._read_kernel()
        self._read_rules()
        return self.__dict__[name]


def _shown(field: str) -> bool:
    return not field.endswith(("_dtype", "_args", "_geometry"))


def _parameters(
    kernel: Callable[..., Any], rules: dict[str, Any], params: str | None
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, Any], int]:
    """The kernel's parameters: (names, kinds, defaults, number of keyword-only ones)."""
    kernel = getattr(kernel, "__wrapped__", kernel)
    if not isinstance(kernel, FunctionType) or params is not None:
        named = (t for target in rules for t in target.split("__"))
        names = tuple(params.split() if params else dict.fromkeys(named))
        return names, ("tensor",) * len(names), {}, 0
    code = kernel.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    # Of a lambda, what a rule differentiates by are the tensors.
    notes = kernel.__annotations__ or {t: "Array" for rule in rules for t in rule.split("__")}
    kinds = tuple(_TENSOR_KINDS.get(str(notes.get(n)), "option") for n in names)
    positional = names[: code.co_argcount]
    given = kernel.__defaults__ or ()
    defaults = dict(zip(positional[len(positional) - len(given) :], given, strict=True))
    return names, kinds, defaults | (kernel.__kwdefaults__ or {}), code.co_kwonlyargcount


def _options_of(kernel: Any) -> tuple[str, ...]:
    """The names of a kernel's parameters; those of a ufunc are not known."""
    code = getattr(getattr(kernel, "__wrapped__", kernel), "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def parameters_of(rule: Any) -> tuple[str, ...]:
    """The names of a rule's parameters; the rule may be a primitive."""
    if isinstance(rule, Declaration):
        return rule.names
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


def itself(g: Any) -> Any:
    """Written as a rule, it stands for the primitive itself (conj's VJP rule is conj)."""
    raise NotImplementedError

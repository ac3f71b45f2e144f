"""Binding of arguments to a signature, by straight-line Python that is generated for each function."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from functools import cached_property
from keyword import iskeyword
from types import FunctionType
from typing import TYPE_CHECKING, Any

from gradcli.engine.core.generated_calls import MISSING, bound, given, straight
from gradcli.engine.core.generated_calls import generated as compiled
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.primitive import Primitive
from gradcli.engine.core.tensor import arrays
from gradcli.engine.registry.schema import (
    _CLASSES,
    _FORMS,
    _TAKE_NUMBERS,
    _TORCH_NAMES,
    Adapt,
    Gather,
    Parameter,
    Python,
    Signature,
    Target,
    Unfit,
    said,
    signatures,
    starred,
    words,
)

if TYPE_CHECKING:
    from gradcli.engine.core.out_argument import Rule


class Parser:
    """The signatures of a function with their targets; makes the functions that users call."""

    def __init__(
        self,
        texts: tuple[str, ...],
        targets: Any,
        python: Python = False,
        name: str = "",
        adapt: Adapt | None = None,
        many: Gather | None = None,
    ) -> None:
        """name: the public name, if there are no texts. adapt, many: see `table.function`."""
        self._given, self._targets, self.python = texts, targets, python
        self._adapt, self._many = adapt, many
        self.title = ""  # the name in errors, for an alias
        # How operands may share memory with `out`, and its dtypes: see `core.out_argument.into`.
        self.overlap = "any any"
        self.out: Rule = ""
        head = texts[0].partition("(")[0] if texts else name
        self.public = head if "." in head else ""  # the full name, if it is in a module of `torch`
        self.name = said(head) if self.public else head

    def called(self, name: str, texts: tuple[str, ...] = ()) -> Parser:
        """The parser of an alias, whose name its messages use; texts: its signatures, if they differ."""
        texts = texts or tuple(name + text[text.index("(") :] for text in self._given)
        other = Parser(texts, self._targets, self.python, name, self._adapt, self._many)
        other.overlap, other.out, other.title = self.overlap, self.out, self.name
        return other

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The signatures as they are written."""
        return self._given or (_of_tensors(self.name, self._targets),)

    @cached_property
    def signatures(self) -> list[Signature]:
        """The parsed signatures."""
        return signatures(self.texts)

    def function(
        self, first: int = 0, *, numbers: bool = False, suffix: str = ""
    ) -> Callable[..., Any]:
        """The public function; first=1: the method. Its code is generated at the first call.

        numbers: accept Python numbers as tensors. suffix: "_" for the in-place form.
        """
        space: dict[str, Any] = {"__name__": __name__, "__builtins__": builtins}
        made = FunctionType(_STUB, space, self.name + suffix)
        made.__qualname__ = self.name + suffix

        def start(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            targets = self._targets
            if self._adapt is not None:
                targets = self._adapt(targets, [p.name for p in self.signatures[0].parameters])
            binder = self._binder(targets, first, numbers, suffix, self.python)
            code = binder.as_python(first) if binder.python else binder.as_parser()
            if self._many is not None:
                code = binder.gathering(code, self._many)
            space.update(code.__globals__)
            # The stub has no defaults, so another thread may call it while its code is replaced.
            made.__defaults__, made.__kwdefaults__ = code.__defaults__, code.__kwdefaults__
            if binder.python:
                made.__qualname__ = code.__qualname__
            made.__code__ = code.__code__
            return made(*args, **kwargs)

        space["start"] = start
        return made

    @cached_property
    def general(self) -> Callable[..., Any]:
        """The function as called with (args, kwargs)."""
        call = self._binder(self._targets).general
        return lambda *args, **kwargs: call(args, kwargs)

    def _binder(self, targets: Any, *how: Any) -> Binder:
        """A Binder of the texts to targets; how: further arguments of `Binder`."""
        binder = Binder(self.texts, targets, *how)
        binder.overlap, binder.out = self.overlap, self.out
        binder.title = self.title or self.name
        return binder

    @property
    def shown(self) -> str:
        """The parameters as text, for `gradcli ops`."""
        signatures = [s for s in self.signatures if not s.hidden]
        if self._many is not None:
            return f"(*{str(signatures[-1])[1:]}"
        return " or ".join(dict.fromkeys(str(s) for s in signatures))

    @property
    def tensor_args(self) -> frozenset[int | str]:
        """Positions and names of the parameters that are a tensor in every signature.

        The second of `max(x, 0)` may be a dim, those of `clamp(x, 0, 1)` numbers: they do not count.
        """
        tensors: set[int | str] = set()
        others: set[int | str] = set()
        for s in self.signatures:
            places: list[tuple[int | str, Parameter]] = [*enumerate(s.positional)]
            places += [(p.name, p) for p in s.parameters]
            for place, p in () if s.hidden else places:
                (tensors if p.kind == "Tensor" else others).add(place)
        return frozenset(tensors - others)

    @cached_property
    def one_tensor(self) -> bool:
        """Whether one of the first two arguments may be a number, but not both: pow(2, x), pow(x, 2)."""
        shown = [s.positional for s in self.signatures if not s.hidden]
        pairs = [tuple(p.kind for p in positional[:2]) for positional in shown]
        return ("Scalar", "Tensor") in pairs and all("Tensor" in kinds for kinds in pairs)


class Binder:
    """The binding of arguments for one form of a function: function, method or in-place method."""

    def __init__(
        self,
        texts: tuple[str, ...],
        targets: Any,
        first: int = 0,
        numbers: bool = False,
        suffix: str = "",
        python: Python = False,
    ) -> None:
        if all("|method" in text for text in texts):
            first = 1  # PyTorch has only the method
        self.first, self.suffix = first, suffix
        self.overlap = "any any"
        self.out: Rule = ""
        read = signatures(texts, first)
        form = _FORMS[first]
        kept = [s for s in read if form in s.forms and (s.has_input or not first)]
        kept.sort(key=lambda s: s.hidden)
        self.signatures = kept
        self.name = self.title = kept[0].name + suffix
        self.numbers = numbers or self.name in _TAKE_NUMBERS
        for s in kept:
            s.name = self.name
        self.python = python or kept[0].python
        several = len(read) > 1 and not python
        self.found = [
            targets[s.target] if isinstance(targets, dict) else targets for s in kept
        ]  # primitives or functions
        self.targets = [
            _in_order(f, s, several and not isinstance(targets, dict))
            for f, s in zip(self.found, kept, strict=True)
        ]
        if suffix:
            both = zip(self.targets, self.found, strict=True)
            self.targets = [_inplace(t, f, self.name) for t, f in both]

    # -- a Python function ------------------------------------------------------------------------
    def as_python(self, first: int) -> Any:
        """A function whose parameters Python binds; types are checked here."""
        (signature,) = self.signatures
        own = {p: "self" if first and p.name == "input" else p.name for p in signature.parameters}
        tests = [t for p, name in own.items() if (t := p.quick(name))]
        values = ", ".join(own.values())
        passed = ", ".join(p.passed(name) for p, name in own.items())
        body = [
            f"if not ({' and '.join(tests)}):",
            f" if held.holds is not None and held.holds(({values},)):",
            f"  {values}, = held.into(({values},))",
            f"  return held.back(t0({passed}))",
            f" {values}, = checked({values})",
        ]
        body = body if tests else []
        parts = starred(
            signature.parameters, lambda p: f"{p.name}={_name(p)}0" if p.optional else own[p]
        )
        space = self._space() | {"checked": self._checked, "first": self.python, "held": arrays}
        if callable(self.python):
            body.insert(0, f"first({values})")
        made = compiled(self.name, ", ".join(parts), [*body, f"return t0({passed})"], space)
        made.__qualname__ = f"Tensor.{self.name}" if first else self.name
        return made

    def _checked(self, *values: Any) -> list[Any]:
        """Expressions of the values, checked for the types that the function's operator wants."""
        signature = self.signatures[0]
        name, _, order = (signature.target or self.name).rstrip(")").partition("(")
        if signature.parameters[-1].name == "inplace" and values[-1]:
            name += "_"
        given = {p.name: (p, v) for p, v in zip(signature.parameters, values, strict=True)}
        for i, part in enumerate(order.split(", ") if order else given):
            own, _, said = part.partition("=")
            p, value = given[own]
            if not p.takes(value) and value is not p.default:
                raise TypeError(
                    f"{name}(): argument '{said or own}' (position {i + 1}) must be "
                    f"{words().no_list(p, value)}"
                )
        for p, value in given.values():
            if not p.takes(value) and value is not p.default:
                raise TypeError(
                    f"{name}(): argument '{p.name}' must be {words().no_list(p, value)}"
                )
        return [p.unpack(name, value) for p, value in given.values()]

    def gathering(self, call: Target, many: Gather) -> Any:
        """A function that passes its positional arguments on as one sequence; Python binds keywords."""
        first, *others = (p.name for p in self.signatures[-1].parameters)
        spec = [f"*{first}", *(f"{name}=None" for name in others)]
        passed = [f"many({first})", *(f"{name}={name}" for name in others)]
        space = {"call": call, "many": many}
        return compiled(self.name, ", ".join(spec), [f"return call({', '.join(passed)})"], space)

    # -- a function behind PyTorch's parser -------------------------------------------------------
    def as_parser(self) -> Any:
        """A function with straight-line code for positional arguments; Python binds keywords."""
        primitive = self._primitive()
        if primitive is not None:
            lone = {i for i, p in enumerate(self.signatures[0].passed) if p.lone}
            made = bound(
                primitive, self.unusual, self._options(primitive), _CLASSES, self.numbers, lone
            )
            if made is not None:
                return made
        slots = [f"a{i}" for i in range(max(len(s.positional) for s in self.signatures))]
        spread = any(s.spread for s in self.signatures)
        all_ = f"({''.join(f'{a}, ' for a in slots)}*more)"
        body = [f"if {'' if spread else 'more or '}named: return unusual({all_}, named)"]
        space = self._space() | {"unusual": self.unusual}
        for k, s in enumerate(self.signatures):
            vague = k > 0 and any(p.kind == "Any" for p in s.passed)  # an earlier one may fit too
            named = any(p.keyword_only and not p.optional for p in s.passed)
            if not (s.hidden or vague or named):
                body += self._straight(k, s, slots, spread)
            if self._long(k):
                space[f"t{k}"] = self.found[k].call_in_order
            elif self._named(k):
                space[f"t{k}"] = self.found[k]
        body.append(f"return unusual({all_}, {{}})")
        spec = [f"{a}=missing" for a in slots] + ["/"] * bool(slots) + ["*more", "**named"]
        return compiled(self.name, ", ".join(spec), body, space)

    def _straight(self, k: int, s: Signature, slots: list[str], spread: bool) -> list[str]:
        """The lines that call a signature's target if all arguments have the usual classes."""
        defaults = [f"{_name(p)}{k}" for p in s.passed]
        tests, values = s.straight(slots, defaults, self.numbers)
        if spread:
            tests.append("not more")
        call = "t{}(({},))" if self._long(k) else "t{}({})"
        names = [f"{n}=" if self._named(k) else "" for n in _names(s)]
        values = [n + v for n, v in zip(names, values, strict=True)]
        fits = " and ".join(tests) or "True"
        lines = [f"if {fits}: return {call.format(k, ', '.join(values))}"]
        if s.spread:  # `view(2, 3)`
            a, at = slots[self.first], s.passed.index(s.positional[self.first])
            tests[self.first] = f"{a}.__class__ is int and ints(more)"
            values[at] = f"{names[at]}({a}, *more)"
            tests = [t for t in tests[: self.first + 1] if t]
            fits = " and ".join(tests)
            lines.append(f"if {fits}: return {call.format(k, ', '.join(values))}")
        return lines

    def _named(self, k: int) -> bool:
        """Whether a signature's target is called with keywords."""
        target = self.targets[k]
        by_name = target is not self.found[k] and not isinstance(self.found[k], Primitive)
        return by_name and not self.suffix and target.__name__ == "call"

    def _long(self, k: int) -> bool:
        """Whether a signature's target is a primitive without generated code for calls."""
        primitive = self.found[k]
        return (
            isinstance(primitive, Primitive)
            and self.targets[k] == primitive.call
            and not straight(primitive)
        )

    def _space(self) -> dict[str, Any]:
        space: dict[str, Any] = {"missing": MISSING, **_CLASSES}
        for k, s in enumerate(self.signatures):
            space[f"t{k}"] = self.targets[k]
            space |= {f"{_name(p)}{k}": p.default for p in s.parameters if p.optional}
        return space

    def _primitive(self) -> Primitive | None:
        """The primitive that is the target of all signatures, if its arguments have the first one's order."""
        primitive = self.found[0]
        same = (
            isinstance(primitive, Primitive)
            and all(f is primitive for f in self.found)
            and not self.suffix
        )
        same = same and not any(s.spread for s in self.signatures)
        visible = [s for s in self.signatures if not s.hidden]
        return primitive if same and len(visible) == 1 and _ordered(primitive, visible[0]) else None

    def _options(self, primitive: Primitive) -> dict[int, str]:
        """{position among the primitive's arguments: the usual classes of that option}."""
        passed = self.signatures[0].passed
        return {
            i: passed[i].quick(f"o{i}") for i in range(len(passed)) if i not in primitive.tensors
        }

    @cached_property
    def unusual(self) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        """The function for calls with keywords or arguments of unusual classes."""
        first, general = self.first, self.general
        spread = any(s.spread for s in self.signatures)

        def call(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            args = given(args)
            if arrays.holds is not None and arrays.holds((args, named)):
                return arrays.back(call(arrays.into(args), arrays.into(named)))
            if not named:
                return general(args, named)
            as_given = args, named  # for the error
            if "axis" in named or "keepdims" in named:
                renamed = {_TORCH_NAMES.get(n, n): v for n, v in named.items()}
                named = renamed if len(renamed) == len(named) else named
            if spread and len(args) > first and args[first].__class__ is int:
                args = (*args[:first], args[first:])  # `zeros(2, 3, dtype=int32)`
            for names, bind, target in self._forms:
                if not names.issuperset(named):
                    continue
                try:
                    values = bind(*args, **named)
                except TypeError:
                    continue
                if values is not None:
                    return target(*values)
            return general(*as_given)

        return call

    @cached_property
    def _forms(self) -> list[tuple[frozenset[str], Any, Target]]:
        """(names, binding function, target) of the signatures whose keywords Python can bind."""
        return [
            (frozenset(p.name for p in s.passed), self._by_keyword(k, s), self.targets[k])
            for k, s in enumerate(self.signatures)
            if not (s.hidden or any(iskeyword(p.name) or p.kind == "Any" for p in s.passed))
        ]

    def _by_keyword(self, k: int, signature: Signature) -> Any:
        """A function that lets Python bind keywords: the values, or None if a class is unusual."""
        parts = starred(
            signature.passed, lambda p: f"{p.name}={_name(p)}{k}" if p.optional else p.name
        )
        tests = [t for p in signature.passed if (t := p.quick(p.name, self.numbers))]
        values = "".join(f"{p.passed(p.name)}, " for p in signature.passed)
        tested = f" if {' and '.join(tests)} else None" if tests else ""
        return compiled("bind", ", ".join(parts), [f"return ({values}){tested}"], self._space())

    def general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The general call, for any arguments; TypeError, in PyTorch's words, if none fits."""
        first, signatures = self.first, self.signatures
        said = [s for s in signatures if s.said or s.hidden]
        unfit, known = TypeError(), True
        for signature, target in zip(signatures, self.targets, strict=True):
            try:
                values = signature.bind(args, kwargs, first, self.numbers)
            except Unfit as error:
                knows = kwargs.keys() <= {p.name for p in signature.parameters}
                # A signature that has these keywords words the error, even if it is not listed.
                if signature is said[0] or (knows and not known):
                    unfit, known = error, knows
                continue
            if signature.deprecated:
                self._warn(signature)
            out = values.pop("out", None)
            if out is not None and "pin_memory" in values:  # a factory fills in the dtype of `out`
                from gradcli.engine.core.out_argument import dtype_for

                values["dtype"] = dtype_for(out, values["dtype"])
            elif out is not None and self.out == "computed" and values.get("dtype") is None:
                values["dtype"] = getattr(out, "dtype", None)
            # As in C++, arguments are unpacked from the last to the first.
            passed = [p.unpack(self.name, values[p.name]) for p in reversed(signature.passed)]
            passed.reverse()
            if out is None:
                return target(*passed)
            from gradcli.engine.core.out_argument import into

            return into(self.title, out, target, tuple(passed), {}, self.overlap, self.out)
        if len(said) > 1:
            raise words().call_error(signatures, args, kwargs, first, self.numbers)
        if first and (len(args) > 1 or kwargs) and len(said[0].passed) == 1:
            what = "keyword arguments" if kwargs else f"arguments ({len(args) - 1} given)"
            unfit = TypeError(f"TensorBase.{self.name}() takes no {what}")
        raise TypeError(*unfit.args) from None

    def _warn(self, deprecated: Signature) -> None:
        """PyTorch's warning about a deprecated signature."""
        listed = [s.listed(self.first) for s in self.signatures if not s.hidden]
        warnings.warn(
            f"This overload of {self.name} is deprecated:\n\t{self.name}"
            f"{deprecated.listed(self.first)}\nConsider using one of the following signatures instead:"
            + "".join(f"\n\t{self.name}{each}" for each in listed),
            UserWarning,
            stacklevel=users_level(),
        )


def _of_tensors(name: str, primitive: Primitive) -> str:
    """The signature of a primitive that takes only tensors, as most do."""
    kinds = {"tensor": "Tensor {}", "optional": "Tensor? {}=None", "list": "Tensor[] {}"}
    parts = [
        kinds[kind].format("input" if n == "self" else n)
        for n, kind in zip(primitive.names, primitive.kinds, strict=True)
    ]
    return f"{name}({', '.join(parts)}{'' if primitive.view else ', *, Tensor out=None'})"


def _stub(*args: Any, **kwargs: Any) -> Any:
    return start(args, kwargs)  # type: ignore[name-defined]  # noqa: F821


_STUB = _stub.__code__


def _name(p: Parameter) -> str:
    """The variable of a parameter's default."""
    return f"default_{p.name}_"


def _names(signature: Signature) -> list[str]:
    return ["input" if p.name == "self" else p.name for p in signature.passed]


def _ordered(primitive: Primitive, signature: Signature) -> bool:
    """Whether a primitive's arguments are a signature's parameters in the same order."""
    return ["input" if n == "self" else n for n in primitive.names] == _names(signature)


def _in_order(target: Callable[..., Any], signature: Signature, by_name: bool) -> Target:
    """The target as a function of the signature's values in order."""
    names = _names(signature)
    if isinstance(target, Primitive):
        own = ["input" if n == "self" else n for n in target.names]
        if own == names:
            return target.call
        if not set(names) <= set(own):  # out_dtype
            return _of_other_devices(signature.name)
        defaults = [target.defaults.get(n) for n in target.names]
        order = [names.index(n) if n in names else None for n in own]
        return lambda *values: target.call(
            *(d if i is None else values[i] for i, d in zip(order, defaults, strict=True))
        )
    if not by_name:
        return target
    code = target.__code__
    if tuple(names) == code.co_varnames[: code.co_argcount][: len(names)]:
        return target  # the first parameters in their order
    if any(map(iskeyword, names)):
        return lambda *values: target(**dict(zip(names, values, strict=True)))
    given = ", ".join(f"{n}={n}" for n in names)
    made = compiled("call", ", ".join(names), [f"return target({given})"], {"target": target})
    return made


def _of_other_devices(name: str) -> Target:
    def refuse(*values: Any) -> Any:
        raise NotImplementedError(
            f"Could not run 'aten::{name}.dtype' with arguments from the 'CPU' backend."
        )

    return refuse


def _inplace(target: Target, found: Target, name: str) -> Target:
    from gradcli.engine.core.views import inplace

    if target is not found:
        target.public_name = found.public_name if isinstance(found, Primitive) else name  # type: ignore[attr-defined]
        target.writes = getattr(found, "writes", "")  # type: ignore[attr-defined]
    return lambda input, *values: inplace(target, input, *values)

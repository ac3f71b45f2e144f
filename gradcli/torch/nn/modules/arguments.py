"""Constructors as PyTorch's documentation has them: `@takes("in_features, out_features, bias=True")`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from gradcli.torch.nn.modules.module import Module

# What a layer is made with and does not keep under that name.
_NOT_KEPT = ("bias", "device", "dtype", "_weight", "_freeze")


def signature(text: str) -> Signature:
    """The signature that a text such as `p=0.5, *, inplace=False` describes."""
    found: list[Parameter] = []
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for node, default in _words(text):
        if node == "*":
            kind = Parameter.KEYWORD_ONLY
        else:
            found.append(Parameter(node, kind, default=default))
    return Signature(found)


def _words(text: str) -> list[tuple[str, Any]]:
    arguments = ast.parse(f"lambda {text}: 0", mode="eval").body.args  # type: ignore[attr-defined]
    plain: list[Any] = [Parameter.empty] * (len(arguments.args) - len(arguments.defaults))
    pairs = [*zip(arguments.args, [*plain, *arguments.defaults], strict=True)]
    found = [(a.arg, _value(d)) for a, d in pairs]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return (
        found + [("*", None)] * bool(arguments.kwonlyargs) + [(a.arg, _value(d)) for a, d in named]
    )


def _value(node: Any) -> Any:
    if node is Parameter.empty:
        return node
    if isinstance(node, ast.BinOp):  # 1/3
        return _value(node.left) / _value(node.right)
    return ast.literal_eval(node)


def bound(
    owner: Any, wanted: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """{argument: value} with the defaults; TypeError, as Python words it, where they do not fit."""
    try:
        found = wanted.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{type(owner).__name__}.__init__() {error}") from None
    found.apply_defaults()
    return dict(found.arguments)


def constructed(text: str, begin: Callable[[Any, dict[str, Any]], None]) -> Callable[[type], Any]:
    """Give a class a constructor with the arguments of a text; `begin` gets the object and their values."""
    wanted = signature(text)

    def decorate(cls: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            begin(self, bound(self, wanted, args, kwargs))

        cls.__init__, cls.__signature__ = __init__, wanted
        return cls

    return decorate


def takes(text: str) -> Callable[[type], Any]:
    """Give a class of modules this constructor: it keeps its arguments, and passes the others to `build`."""
    return constructed(text, _keep)


def _keep(module: Any, given: dict[str, Any]) -> None:
    Module.__init__(module)
    rest = {name: given.pop(name) for name in _NOT_KEPT if name in given}
    for name, value in given.items():
        setattr(module, name, value)
    module.build(**{name: value for name, value in rest.items() if name != "device"})

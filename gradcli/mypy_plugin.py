"""For mypy, where somebody declares operators: a class of VJP rules is the primitive made of it.

    [tool.mypy]
    plugins = ["gradcli.mypy_plugin"]

mypy takes no notice of what a class decorator returns, and would take a call of an operator for an
instance of the class: `Too many arguments for "cbrt"`. So a class that is decorated by our decorators, or by
a function that returns one of them, has whatever one asks of it. Nothing else goes unchecked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from mypy.nodes import FuncDef
from mypy.plugin import ClassDefContext, Plugin
from mypy.types import CallableType, Instance, Type, UnboundType

PRIMITIVE = "gradcli.engine.core.primitive.Primitive"
# Where our own decorators are, which need not say what they return.
DECORATORS = ("gradcli.engine.core.primitive.", "gradcli.engine.registry.", "gradcli.operators.")


def is_primitive(context: ClassDefContext) -> None:
    """Let a class be called, and be asked, for anything."""
    context.cls.info.fallback_to_any = True


class Operators(Plugin):
    """The plugin."""

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """What is done about a class that a decorator of this name makes another thing of."""
        ours = fullname.startswith(DECORATORS) or self._returns_decorator(fullname)
        return is_primitive if ours else None

    def _returns_decorator(self, fullname: str) -> bool:
        """Whether a function says that it returns `Callable[…, Primitive]`, or a `Primitive`."""
        found = self.lookup_fully_qualified(fullname)
        if found is None or not isinstance(found.node, FuncDef):
            return False
        returned: Type | None = found.node.type
        while isinstance(returned, CallableType) or _is_callable(returned):
            returned = (
                returned.ret_type if isinstance(returned, CallableType) else returned.args[-1]
            )
        if isinstance(returned, UnboundType):
            return returned.name.rpartition(".")[2] == PRIMITIVE.rpartition(".")[2]
        return isinstance(returned, Instance) and returned.type.fullname == PRIMITIVE


def _is_callable(type: Type | None) -> TypeGuard[UnboundType]:
    """Whether it is written `Callable[…, …]`, in a signature that mypy has not come to yet."""
    return (
        isinstance(type, UnboundType)
        and type.name.rpartition(".")[2] == "Callable"
        and bool(type.args)
    )


def plugin(version: str) -> type[Plugin]:
    """What mypy asks for."""
    return Operators

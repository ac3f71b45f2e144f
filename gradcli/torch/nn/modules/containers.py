"""torch.nn's containers: modules and parameters in a row, in a list, in a dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Self

from gradcli.engine.core.tensor import Tensor
from gradcli.torch.nn.modules.module import Module
from gradcli.torch.nn.parameter import Parameter


class _Holding(Module):
    """A module of items; kind: the dict that holds them."""

    _kind = "_modules"

    @property
    def _items(self) -> dict[str, Any]:
        found: dict[str, Any] = self.__dict__[self._kind]
        return found

    def __len__(self) -> int:
        return len(self._items)


class _Numbered(_Holding):
    """Items under the names 0, 1, 2 …"""

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def _place(self, index: Any) -> str:
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"index {index} is out of range")
        return str([*self._items][index])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            made = type(self).__new__(type(self))
            Module.__init__(made)
            made._fill(list(self)[index])
            return made
        return self._items[self._place(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._place(index), self._made(value))

    def __delitem__(self, index: Any) -> None:
        left = list(self)
        del left[index]
        self._fill(left)

    def _made(self, value: Any) -> Any:
        return value

    def _fill(self, values: Iterable[Any]) -> None:
        self._items.clear()
        self.extend(values)

    def append(self, value: Any) -> Self:
        """Add an item at the end."""
        name = next(str(n) for n in count(len(self)) if str(n) not in self._items)
        if self._kind == "_modules":
            self.add_module(name, value)
        else:
            setattr(self, name, self._made(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add items at the end."""
        if not isinstance(values, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> Self:
        """Add an item before a place."""
        items = list(self)
        items.insert(index, value)
        self._fill(items)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take an item away and return it."""
        value = self[index]
        del self[index]
        return value

    def __add__(self, other: Iterable[Any]) -> Self:
        made: Self = self[:]
        return made.extend(other)

    __iadd__ = extend


class Sequential(_Numbered):
    """Modules that run one after the other; given as arguments, or as an ordered dict with their names."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __repr__(self) -> str:
        if not len(self):
            return f"{self._get_name()}()"
        runs: list[list[Any]] = []  # [first, last, text] of equal neighbours
        for place, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1][1] = place
            else:
                runs.append([place, place, text])
        lines = []
        for first, last, text in runs:
            name = f"({first})" if first == last else f"({first}-{last})"
            times = "" if first == last else f"{last - first + 1} x "
            lines.append(f"{name}: {times}{text}".replace("\n", "\n  "))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ParameterList(_Numbered):
    """A list of parameters; tensors that are none become parameters."""

    _kind = "_parameters"

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def _made(self, value: Any) -> Any:
        plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
        return Parameter(value) if plain else value

    def extra_repr(self) -> str:
        return "\n".join(_described(f"({k})", p) for k, p in enumerate(self))


class _Named(_Holding):
    """Items under names of one's own."""

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        self.update(values or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __delitem__(self, key: str) -> None:
        del self._items[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if self._kind == "_modules":
            self.add_module(key, value)
        else:
            self.register_parameter(
                key, value if isinstance(value, Parameter) else Parameter(value)
            )

    def update(self, values: Any) -> None:
        """Add items from a dict, or from (name, item) pairs."""
        for key, value in values.items() if hasattr(values, "items") else values:
            self[key] = value

    def keys(self) -> Any:
        """The names."""
        return self._items.keys()

    def values(self) -> Any:
        """The items."""
        return self._items.values()

    def items(self) -> Any:
        """(name, item) pairs."""
        return self._items.items()

    def get(self, key: str, default: Any = None) -> Any:
        """The item of a name, or the default."""
        return self._items.get(key, default)

    def pop(self, key: str) -> Any:
        """Take an item away and return it."""
        return self._items.pop(key)

    def clear(self) -> None:
        """Take all items away."""
        self._items.clear()


class ModuleDict(_Named):
    """A dict of modules."""


class ParameterDict(_Named):
    """A dict of parameters."""

    _kind = "_parameters"

    def extra_repr(self) -> str:
        return "\n".join(_described(f"({name})", p) for name, p in self.items())


def _described(name: str, value: Tensor) -> str:
    kind = f"Parameter containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"
    return f"  {name}: {kind}"


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

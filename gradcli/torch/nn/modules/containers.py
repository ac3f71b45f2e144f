"""torch.nn's containers: modules and parameters in a row, in a list, in a dict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import index as index_of
from typing import Any, Self

from gradcli.engine.core.tensor import Tensor
from gradcli.torch.nn.modules.module import Module
from gradcli.torch.nn.parameter import Parameter


class _Numbered(Module):
    """Modules under the names 0, 1, 2 … What takes another's place keeps its name and its order."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _name(self, index: Any) -> str:
        """The name of the module at a place."""
        return [*self._modules][_place(index, len(self))]

    def __setitem__(self, index: int, module: Any) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: Any) -> None:
        names = [*self._modules][index] if isinstance(index, slice) else [self._name(index)]
        for name in names:
            delattr(self, name)
        left = [*self._modules.values()]
        self._modules.clear()
        self._modules.update((str(place), module) for place, module in enumerate(left))

    def append(self, module: Any) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def _shift(self, index: int, module: Any) -> None:
        """Move all from a place on by one, and put a module there."""
        for place in range(len(self), index, -1):
            self._modules[str(place)] = self._modules[str(place - 1)]
        self._modules[str(index)] = module

    def pop(self, key: Any) -> Any:
        """Take a module away, or those of a slice, and return it."""
        value = self[key]  # type: ignore[index]
        del self[key]
        return value


class Sequential(_Numbered):
    """Modules that run one after the other; given as arguments, or as an OrderedDict with their names."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for place, module in enumerate(args):
                self.add_module(str(place), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict([*self._modules.items()][index]))
        return self._modules[self._name(index)]

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before a place."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._shift(index % len(self) if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Any]) -> Self:
        """Add modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend([*_sequential(other)])

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*[*self] * self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend([*self] * (self._times(other) - 1))

    def _times(self, factor: Any) -> int:
        if not isinstance(factor, int):
            of = f"{type(self)} and {type(factor)}"
            raise TypeError(f"unsupported operand type(s) for *: {of}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")
        return factor


def _sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        only = "add operator supports only objects of Sequential class"
        raise ValueError(f"{only}, but {type(other)} is given.")
    return other


class ModuleList(_Numbered):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _name(self, index: Any) -> str:
        return str(_place(index, len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([*self._modules.values()][index])
        return self._modules[self._name(index)]

    def insert(self, index: int, module: Module) -> None:
        """Add a module before a place."""
        self._shift(index, module)

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add modules at the end."""
        for module in [*_iterable(self, "extend", modules)]:
            self.append(module)
        return self

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    __iadd__ = extend

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


class ParameterList(Module):
    """A list of parameters; tensors that are none become parameters, and all else is kept as it is."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([*self][index])
        return getattr(self, str(_place(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_place(index, len(self))), _parameter(value))

    def append(self, value: Any) -> Self:
        """Add an item at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add items at the end."""
        for value in _iterable(self, "extend", values):
            self.append(value)
        return self

    __iadd__ = extend

    def extra_repr(self) -> str:
        return "\n".join(_described(f"({k})", v, str(_dtype(v))) for k, v in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class _Mapping(Module):
    """What ModuleDict and ParameterDict have in common: items under names of one's own."""

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        if values is not None:
            self.update(values)

    def keys(self) -> Any:
        """The names."""
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        raise NotImplementedError

    def __setitem__(self, key: str, value: Any) -> None:
        raise NotImplementedError

    def __delitem__(self, key: str) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: str) -> bool:
        return key in self.keys()

    def pop(self, key: str) -> Any:
        """Take an item away and return it."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Take all items away."""
        for key in [*self.keys()]:
            del self[key]

    def update(self, values: Any) -> None:
        """Add items from a dict, or from (name, item) pairs."""
        for key, value in _pairs(self, values):
            self[key] = value


class ModuleDict(_Mapping):
    """A dict of modules."""

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()


class ParameterDict(_Mapping):
    """A dict of parameters; tensors that are none become parameters, and all else is kept as it is."""

    def __init__(self, parameters: Any = None) -> None:
        object.__setattr__(self, "_keys", {})
        super().__init__(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _text(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[_text(key)] = None
        setattr(self, key, _parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, _text(key))

    def __reversed__(self) -> Iterator[str]:
        return iter([*self._keys][::-1])

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def values(self) -> Any:
        """The items."""
        return (self[key] for key in self._keys)

    def items(self) -> Any:
        """(name, item) pairs."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The item of a name, or the default."""
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The item of a name, which is added if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Take the last (name, item) away and return it."""
        key = [*self._keys][-1]
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """Another dict of the same items."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict with one value for all names."""
        return ParameterDict((key, default) for key in keys)

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_described(f"({name})", v, _tensor_type(v)) for name, v in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


def _place(index: Any, length: int) -> int:
    """A place from the front. Raises IndexError in PyTorch's words."""
    found = index_of(index)
    if not -length <= found < length:
        raise IndexError(f"index {found} is out of range")
    return found % length


def _text(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
        )
    return key


def _parameter(value: Any) -> Any:
    plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


def _iterable(module: Module, method: str, values: Any) -> Iterable[Any]:
    if not isinstance(values, Iterable) or isinstance(values, Tensor):
        raise TypeError(
            f"{type(module).__name__}.{method} should be called with an iterable, but got "
            f"{type(values).__name__}"
        )
    return values


def _pairs(module: Module, values: Any) -> Iterable[tuple[str, Any]]:
    """(name, item) pairs of a mapping or of pairs; a ParameterDict sorts the names of a plain mapping."""
    named = isinstance(module, ParameterDict)
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{'ParametersDict' if named else 'ModuleDict'}.update should be called with an iterable "
            f"of key/value pairs, but got {type(values).__name__}"
        )
    if isinstance(values, Mapping | _Mapping):
        pairs = values.items()
        ordered = not named or isinstance(values, OrderedDict | ParameterDict)
        return pairs if ordered else sorted(pairs)
    return _of_two(f"{type(module).__name__} update sequence element #", values)


def _of_two(what: str, values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for place, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{what}{place} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:  # type: ignore[arg-type]
            raise ValueError(f"{what}{place} has length {len(pair)}; 2 is required")  # type: ignore[arg-type]
        name, value = pair
        yield name, value


def _dtype(value: Any) -> Any:
    return getattr(value, "dtype", None)


def _tensor_type(value: Any) -> str:
    return str(value.type()) if isinstance(value, Tensor) else ""


def _described(name: str, value: Any, kind: str) -> str:
    """A line of the repr; kind: how the type of the numbers is named."""
    if not isinstance(value, Tensor):
        return f"  {name}: Object of type: {type(value).__name__}"
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  {name}: {what} containing: [{kind} of size {'x'.join(map(str, value.shape))}]"


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

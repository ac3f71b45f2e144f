"""The tree of module calls of a PyTorch program, and which call made each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[int, str]  # (number of the root module, path below it)


class Calls:
    """The calls of modules, in order; a call is known by its number.

    roots: the modules that were called by no other, in order of their first call. Names of roots come
    last, when the program's variables are known: `name_roots`.
    """

    def __init__(self) -> None:
        self.roots: list[Any] = []
        self.parents: list[int] = []
        self.kinds: list[str] = []
        self.seconds: dict[
            int, list[float]
        ] = {}  # call -> in its own operations, forward and backward
        self._paths: list[Path] = []
        self._known: dict[int, Path] = {}
        self._prefixes: dict[int, str] = {}
        self._tops: dict[str, Any] = {}  # the modules that no other holds, by name
        self._stack: list[int] = []

    # -- while the program runs ------------------------------------------------------------------
    @property
    def current(self) -> int:
        """The call that is running; -1 outside of modules."""
        return self._stack[-1] if self._stack else -1

    def add_root(self, module: Any, prefix: str | None = None) -> None:
        """Make a module's parts known by their paths below it."""
        number = len(self.roots)
        self.roots.append(module)
        for path, part in module.named_modules():
            self._known.setdefault(id(part), (number, path))
        if prefix is not None:
            self._prefixes[number] = prefix

    def enter(self, module: Any) -> None:
        """A module is called."""
        if id(module) not in self._known:
            if self._stack:  # made on the way: called by its class below its caller
                number, above = self._paths[self._stack[-1]]
                here = f"{above}.{type(module).__name__}".lstrip(".")
                self._paths.append((number, here))
                self._push(module)
                return
            self.add_root(module)
        self._paths.append(self._known[id(module)])
        self._push(module)

    def _push(self, module: Any) -> None:
        self.parents.append(self.current)
        self.kinds.append(type(module).__name__)
        self._stack.append(len(self.kinds) - 1)

    def leave(self) -> None:
        """The module that was called last returns."""
        if self._stack:
            self._stack.pop()

    # -- afterwards ------------------------------------------------------------------------------
    def name_roots(self, names: Mapping[str, Any] | None = None) -> None:
        """Give roots the names of the program's variables, or their paths in a module that holds them.

        What no other module holds is a top; a single top with parameters needs no prefix.
        """
        known = {id(module): name for name, module in reversed([*(names or {}).items()])}
        every = {id(one): one for one in (*self.roots, *(names or {}).values())}
        parts = {key: dict(_paths(one)) for key, one in every.items()}
        held = {below for key, paths in parts.items() for below in paths if below != key}
        self._tops = {}
        for key, top in every.items():
            if key not in held and next(iter(top.parameters()), None) is not None:
                self._tops[known.get(key, type(top).__name__)] = top
        if len(self._tops) == 1:
            self._tops = dict(zip([""], self._tops.values(), strict=True))
        for number, module in enumerate(self.roots):
            if number in self._prefixes:
                continue
            found = known.get(id(module), type(module).__name__)
            for name, top in self._tops.items():
                below = parts[id(top)].get(id(module))
                if below is not None:
                    found = ".".join(part for part in (name, below) if part)
                    break
            self._prefixes[number] = found

    def prefix(self, number: int) -> str:
        """What the paths of a root's parts begin with."""
        return self._prefixes.get(number, "")

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """Names and parameters (and buffers) of all modules, whoever holds them."""
        yield from self.called_parameters()
        for name, top in self._tops.items():
            yield from _tensors_of(name, top)

    def called_parameters(self) -> Iterator[tuple[str, Any]]:
        """Names and parameters (and buffers) of all roots, as the paths have them."""
        for number, module in enumerate(self.roots):
            yield from _tensors_of(self.prefix(number), module)

    def path(self, call: int) -> str:
        """The path of the module that was called; of a root without a name its class."""
        number, below = self._paths[call]
        joined = ".".join(part for part in (self.prefix(number), below) if part)
        return joined or self.kinds[call]

    def holder(self, call: int) -> tuple[str, str] | None:
        """The class and path of the list (or the like) that holds what was called; None: its caller."""
        number, below = self._paths[call]
        above = below.rpartition(".")[0]
        caller = self.parents[call]
        if not above or (caller >= 0 and self._paths[caller] == (number, above)):
            return None
        try:
            kind = type(self.roots[number].get_submodule(above)).__name__
        except AttributeError:  # made on the way
            return None
        return kind, ".".join(part for part in (self.prefix(number), above) if part)

    def parameters_of(self, call: int) -> list[Any]:
        """The parameters of the module that was called, with those of its parts."""
        number, below = self._paths[call]
        try:
            found = self.roots[number].get_submodule(below).parameters()
        except AttributeError:  # made on the way
            return []
        return [p for p in found if type(p).__name__ != "UninitializedParameter"]

    def took(self, call: int, direction: int, seconds: float) -> None:
        """An operation of a call has run; direction: 0 forward, 1 backward."""
        self.seconds.setdefault(call, [0.0, 0.0])[direction] += seconds

    def totals(self) -> dict[str, list[float]]:
        """The seconds of modules and of what they call, forward and backward, by path."""
        found: dict[str, list[float]] = {}
        for call, own in self.seconds.items():
            for path in dict.fromkeys(map(self.path, self.above(call))):
                total = found.setdefault(path, [0.0, 0.0])
                total[:] = map(sum, zip(total, own, strict=True))
        return found

    def above(self, call: int) -> list[int]:
        """The calls that a call happened in, from the outermost, and itself."""
        found = []
        while call >= 0:
            found.append(call)
            call = self.parents[call]
        return found[::-1]

    def __len__(self) -> int:
        return len(self.kinds)


def _paths(module: Any) -> Iterator[tuple[int, str]]:
    """The parts of a module by id, with their paths."""
    for path, part in module.named_modules():
        yield id(part), path


def _tensors_of(prefix: str, module: Any) -> Iterator[tuple[str, Any]]:
    before = f"{prefix}." if prefix else ""
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        yield f"{before}{name}", tensor

"""The tree of module calls of a PyTorch program, and which call made each node."""

from __future__ import annotations

from collections.abc import Iterator
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
    def name_roots(self, names: dict[int, str]) -> None:
        """Give roots the names of variables (by id); a single one with parameters needs no prefix."""
        trained = [m for m in self.roots if next(iter(m.parameters()), None) is not None]
        for number, module in enumerate(self.roots):
            if number not in self._prefixes:
                alone = len(trained) == 1 and module is trained[0]
                name = names.get(id(module), type(module).__name__)
                self._prefixes[number] = "" if alone else name

    def prefix(self, number: int) -> str:
        """What the paths of a root's parts begin with."""
        return self._prefixes.get(number, "")

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """Names and parameters (and buffers) of all roots, as the paths have them."""
        for number, module in enumerate(self.roots):
            before = f"{self.prefix(number)}." if self.prefix(number) else ""
            for name, tensor in module.named_parameters():
                yield f"{before}{name}", tensor
            for name, tensor in module.named_buffers():
                yield f"{before}{name}", tensor

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

"""The libraries whose arrays somebody's function may take: gradcli, PyTorch, JAX, NumPy, Python's numbers.

A library that is not loaded is never imported: no value and no function can be of it.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.engine.core.custom_function import Function
from gradcli.engine.core.tensor import Tensor, wrap

Flat = Callable[[Sequence[Any]], list[Any]]  # of a library's arrays, the floating results


class Library:
    """One library: how its arrays are made and read, and how it differentiates.

    name: how errors call it. module: what is loaded where it is. roots: the packages whose functions take
    its arrays.
    """

    name = ""
    module = ""
    roots: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """Whether the program has imported it."""
        return self.module in sys.modules

    def owns(self, value: Any) -> bool:
        """Whether the value is an array of this library."""
        return False

    def make(self, array: Any) -> Any:
        """The library's array of these numbers."""
        return array

    def read(self, value: Any) -> Any:
        """The numbers of an array of the library, as NumPy's."""
        return np.asarray(value)

    def around(self) -> AbstractContextManager[Any]:
        """What a call needs around it: double precision, and the same random numbers each time."""
        return nullcontext()

    def gradient(self, flat: Flat, count: int) -> Flat | None:
        """The function of `count` arguments and of the results' cotangents that gives the gradients."""
        return None


class _Gradcli(Library):
    name, module, roots = "gradcli", "gradcli", ("gradcli",)

    def owns(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def make(self, array: Any) -> Any:
        return wrap(np.array(array)[()])

    def read(self, value: Any) -> Any:
        return np.asarray(value.array)


class _Torch(Library):
    name, module, roots = "PyTorch", "torch", ("torch",)

    @property
    def loaded(self) -> bool:
        """Whether PyTorch is imported, and not gradcli in its place."""
        return getattr(sys.modules.get("torch"), "__name__", "") == "torch"

    @property
    def _torch(self) -> Any:
        return sys.modules["torch"]

    def owns(self, value: Any) -> bool:
        return self.loaded and isinstance(value, self._torch.Tensor)

    def make(self, array: Any) -> Any:
        made = self._torch.tensor(np.asarray(array))
        able = made.is_floating_point() or made.is_complex()
        return made.requires_grad_() if able else made

    def read(self, value: Any) -> Any:
        dense = value.detach().cpu().to_dense().resolve_conj().resolve_neg()
        narrow = dense.is_floating_point() and dense.element_size() < 4  # NumPy lacks bfloat16
        return (dense.double() if narrow else dense).numpy()

    @contextmanager
    def around(self) -> Iterator[None]:
        torch, default = self._torch, self._torch.get_default_dtype()
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(torch.Generator().manual_seed(2026).get_state())
            torch.set_default_dtype(torch.float64)
            try:
                yield
            finally:
                torch.set_default_dtype(default)

    def gradient(self, flat: Flat, count: int) -> Flat:
        grad = self._torch.autograd.grad

        def pulled(values: Sequence[Any]) -> list[Any]:
            leaves = [v if v.requires_grad else v.requires_grad_() for v in values[:count]]
            pairs = [
                (made, cotangent)
                for made, cotangent in zip(flat(leaves), values[count:], strict=True)
                if made.requires_grad
            ]
            found: Sequence[Any] = [None] * count
            if pairs:
                outputs, starts = zip(*pairs, strict=True)
                how = {"create_graph": True, "allow_unused": True}
                found = grad(outputs, leaves, starts, **how)
            zeros = self._torch.zeros_like
            return [zeros(v) if g is None else g for v, g in zip(leaves, found, strict=True)]

        return pulled


class _Jax(Library):
    name, module, roots = "JAX", "jax", ("jax", "jaxlib", "optax", "flax", "equinox")

    @property
    def _jax(self) -> Any:
        return sys.modules["jax"]

    def owns(self, value: Any) -> bool:
        return self.loaded and isinstance(value, self._jax.Array)

    def make(self, array: Any) -> Any:
        return self._jax.numpy.asarray(array)

    def read(self, value: Any) -> Any:
        array = np.asarray(value)
        return array if array.dtype.kind in "biufc" else array.astype(np.float64)  # bfloat16

    def around(self) -> AbstractContextManager[Any]:
        jax = self._jax
        new = hasattr(jax, "enable_x64")  # since 0.8
        double = jax.enable_x64 if new else jax.experimental.enable_x64
        found: AbstractContextManager[Any] = double(True)
        return found

    def gradient(self, flat: Flat, count: int) -> Flat:
        conj = self._jax.numpy.conj  # a gradient of complex numbers is the conjugate of PyTorch's

        def pulled(values: Sequence[Any]) -> list[Any]:
            _, pull = self._jax.vjp(lambda *leaves: flat(leaves), *values[:count])
            return [conj(g) for g in pull([conj(c) for c in values[count:]])]

        return pulled


class _Numpy(Library):
    name, module = "NumPy", "numpy"

    def owns(self, value: Any) -> bool:
        return isinstance(value, (np.ndarray, np.generic))

    @contextmanager
    def around(self) -> Iterator[None]:
        state = np.random.get_state()
        np.random.seed(2026)
        try:
            yield
        finally:
            np.random.set_state(state)


class _Numbers(_Numpy):
    """Arrays of no dimensions as Python's numbers."""

    name = "Python"

    def owns(self, value: Any) -> bool:
        return isinstance(value, (int, float, complex))

    def make(self, array: Any) -> Any:
        return np.asarray(array).item() if np.ndim(array) == 0 else array


GRADCLI, TORCH, JAX, NUMPY, NUMBERS = _Gradcli(), _Torch(), _Jax(), _Numpy(), _Numbers()
DIFFERENTIATING: tuple[Library, ...] = (GRADCLI, TORCH, JAX)
EVERY = (*DIFFERENTIATING, NUMPY, NUMBERS)


def library_of(value: Any) -> Library | None:
    """The library that the value is an array, or a number, of; NumPy where it can be read as its array."""
    found = next((library for library in EVERY if library.owns(value)), None)
    if found is None and (
        isinstance(value, (Decimal, Fraction)) or hasattr(type(value), "__array__")
    ):
        return NUMPY
    return found


def mentioned(function: Any) -> list[Library]:
    """The libraries whose names the code of a function, and of those of its own that it calls, has."""
    roots: set[str] = set()
    seen: set[int] = set()
    waiting = deque([function])
    while waiting and len(seen) < 500:
        item = waiting.popleft()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, types.ModuleType):
            roots.add(item.__name__.partition(".")[0])
            continue
        kinds = item.__mro__ if isinstance(item, type) else type(item).__mro__
        own = {
            module.partition(".")[0]
            for one in (*kinds, item)
            if isinstance(module := getattr(one, "__module__", None), str)  # or a slot of that name
        }
        known = {root for library in DIFFERENTIATING for root in library.roots} & own
        if known:
            roots |= known
            continue
        waiting.append(getattr(item, "__wrapped__", None))
        if isinstance(item, types.FunctionType):
            names = _names(item.__code__)
            roots |= names - item.__globals__.keys()  # imported within
            waiting += [item.__globals__[n] for n in names if n in item.__globals__]
            waiting += [c.cell_contents for c in item.__closure__ or () if _is_full(c)]
            waiting += item.__defaults__ or ()
        elif isinstance(item, types.MethodType):
            waiting += [item.__func__, item.__self__]
        elif isinstance(item, functools.partial):
            waiting += [item.func, *item.args, *item.keywords.values()]
        elif isinstance(item, (list, tuple)):
            waiting += item[:20]
        elif isinstance(item, dict):
            waiting += list(item.values())[:20]
        elif item is not None and own - {"builtins", "numpy"}:
            classes = [k for k in kinds if k.__module__ != "builtins"]
            waiting += [part for k in classes for part in vars(k).values() if callable(part)]
            waiting += getattr(item, "__dict__", {}).values()
    return [library for library in DIFFERENTIATING if roots & set(library.roots)]


def _names(code: types.CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # the name is not bound yet
        return False


class FlatFunction:
    """A function of a list of a library's arrays, with the gradient that the library gives it."""

    def __init__(self, library: Library, function: Flat, count: int) -> None:
        self.library, self.function, self.count = library, function, count

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        library = self.library
        with library.around():
            return [library.read(v) for v in self.function([library.make(a) for a in arrays])]

    def gradient(self, results: int) -> FlatFunction:
        """The gradients, as a function of the arguments and of the results' cotangents."""
        found = self.library.gradient(self.function, self.count)
        if found is None:
            raise TypeError(f"{self.library.name} differentiates no functions")
        return FlatFunction(self.library, found, self.count + results)

    def apply(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The function of gradcli's tensors, differentiable as often as the library's is."""
        found: tuple[Tensor, ...] = _Foreign.apply(self, *tensors)
        return found


class _Foreign(Function):
    """A function of another library as an operation of gradcli's graph."""

    @staticmethod
    def forward(ctx: Any, flat: FlatFunction, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.flat = flat
        ctx.save_for_backward(*tensors)
        return tuple(wrap(np.array(a)[()]) for a in flat([t.array for t in tensors]))

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Any, ...]:
        pulled = ctx.flat.gradient(len(cotangents))
        return (None, *pulled.apply(*ctx.saved_tensors, *cotangents))


class GivenGradient(Function):
    """A number with gradients that somebody says: (of arrays, the number), the gradients, the point."""

    @staticmethod
    def forward(ctx: Any, value: Callable[..., float], slopes: Any, *tensors: Tensor) -> Tensor:
        ctx.slopes = slopes
        return wrap(np.asarray(value(*[t.array for t in tensors]))[()])

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Any, ...]:
        return (None, None, *[wrap(np.asarray(s * cotangent.array)) for s in ctx.slopes])

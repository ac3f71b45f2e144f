"""A function of anybody's, its variables and its gradients: what tests of gradients are about.

A variable is an array, a number, or holds several: a mapping or a sequence of arrays, or a module with its
parameters. Each array is a leaf, named by its place: `params.W`, `model.weight`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradcli.engine.core import modes, pytrees
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.engine.system.given_arrays import array_of
from gradcli.operators.composites.followed_arrays import arguments, unfollowed
from gradcli.transforms import numpy_meaning
from gradcli.transforms.array_libraries import (
    DIFFERENTIATING,
    GRADCLI,
    JAX,
    NUMBERS,
    NUMPY,
    TORCH,
    FlatFunction,
    GivenGradient,
    Library,
    library_of,
    mentioned,
)

__tracebackhide__ = True

Tensors = Callable[..., Any]  # a function of gradcli's tensors, by the names of leaves


class NoLibrary(TypeError):
    """A function that takes the arrays of no library there is."""


def double(value: Any) -> Any:
    """The numbers in double precision; integers stay integers only where an array says so."""
    library = library_of(value)
    given = value if library in (None, NUMPY) else library.read(value)
    array = np.array(given if (known := array_of(given)) is None else known)
    if array.dtype.kind == "f" or not hasattr(value, "dtype"):
        return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return array.astype(np.complex128) if array.dtype.kind == "c" else array


def is_leaf(value: Any) -> bool:
    """Whether a value is an array, a number, or a list of numbers: one variable to differentiate by."""
    if isinstance(value, (list, tuple)):
        return not hasattr(value, "_fields") and all(
            is_leaf(v) and not getattr(v, "ndim", 0) for v in value
        )
    return not isinstance(value, bool) and library_of(value) is not None


def is_module(value: Any) -> bool:
    """Whether a value is a module of PyTorch's kind, which has parameters."""
    return hasattr(value, "named_parameters") and hasattr(value, "named_buffers")


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of each array of a value."""
    if is_leaf(value):
        yield name, value
    elif is_module(value):
        for own, parameter in value.named_parameters():
            if parameter.requires_grad:
                yield f"{name}.{own}".lstrip("."), parameter
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(f"{name}.{key}", item)
    elif (found := pytrees.items_of(value)) is not None:  # a list, or an object with fields
        for key, item in zip(_keys(value, *found), found[1], strict=True):
            yield from leaves(f"{name}.{key}", item)


def rebuilt(name: str, value: Any, found: Mapping[str, Any]) -> Any:
    """The value with other arrays in it, which are found by name."""
    if is_leaf(value) or is_module(value):
        return found.get(name, value)
    if isinstance(value, Mapping):
        made = {k: rebuilt(f"{name}.{k}", v, found) for k, v in value.items()}
        return made if type(value) is dict else type(value)(made)  # type: ignore[call-arg]
    if (parts := pytrees.items_of(value)) is not None:
        keys = _keys(value, *parts)
        items = [rebuilt(f"{name}.{k}", v, found) for k, v in zip(keys, parts[1], strict=True)]
        return pytrees.made(type(value), parts[0], items)
    return value


def _keys(value: Any, context: Any, items: Sequence[Any]) -> Sequence[Any]:
    """What the items of a list, or of an object with fields, are called."""
    names: Sequence[Any] | None = getattr(value, "_fields", context)
    return range(len(items)) if names is None else names


def signature_of(function: Any) -> inspect.Signature:
    """The parameters of a function; of a module, those of its forward.

    Raises TypeError or ValueError for a builtin.
    """
    return inspect.signature(function.forward if is_module(function) else function)


def bound(function: Any, given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call: by the function's own names, or by position where it has none of them.

    Raises TypeError where it has some of the names: the others are misspelt.
    """
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):  # of a builtin
        return tuple(given.values()), {}
    try:
        found = signature.bind(**given)
    except TypeError:
        known = [
            n
            for n, p in signature.parameters.items()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        wrong = [n for n in given if n not in known]
        if wrong and len(wrong) < len(given):
            raise TypeError(
                f"the function has no parameter {wrong[0]!r} (its parameters: {', '.join(known)})"
            ) from None
        return tuple(given.values()), {}
    return found.args, found.kwargs


def one_of(
    function: str | Callable[..., Any], variables: dict[str, Any], **words: Any
) -> tuple[Any, dict[str, Any]]:
    """(an option that has two names, the variables); a variable of the function's may have such a name.

    words: its value by both names. Raises TypeError where both are given.
    """
    given = {n: v for n, v in words.items() if v is not None}
    own = {n for n in given if has_variable(function, n)}
    variables = {**variables, **{n: given.pop(n) for n in own}}
    if len(given) > 1:
        raise TypeError(f"{' and '.join(given)} are two names of one option: pass one of them")
    return next(iter(given.values()), None), variables


def by_position(
    function: str | Callable[..., Any], values: Sequence[Any], variables: dict[str, Any]
) -> dict[str, Any]:
    """All values by name, those that were given by position first. Raises TypeError where they have none."""
    if not values:
        return variables
    if isinstance(function, str):
        from gradcli.language.parser import parse
        from gradcli.language.scope_checks import free_names

        names = list(free_names(parse(function)))
    else:
        try:
            names = list(signature_of(function).parameters)
        except (TypeError, ValueError):  # of a builtin
            names = [f"x{k}" for k in range(len(values))]
    if len(values) > len(names):
        raise TypeError(
            f"the function has {len(names)} parameters ({', '.join(names)}), and {len(values)} values were "
            "given by position"
        )
    found = dict(zip(names, values, strict=False))
    if twice := [n for n in found if n in variables]:
        raise TypeError(f"two values for {twice[0]!r}: by position and by name")
    return {**found, **variables}


def has_variable(function: str | Callable[..., Any], name: str) -> bool:
    """Whether an expression, or a function's signature, has a variable of this name."""
    if isinstance(function, str):
        from gradcli.language.parser import parse
        from gradcli.language.scope_checks import free_names

        return name in free_names(parse(function))
    try:
        return name in signature_of(function).parameters
    except (TypeError, ValueError):  # of a builtin
        return False


class Subject:
    """A function with the values of its variables.

    arrays: by leaf, in double precision. tops: the names of variables. source: the text of a function in
    gradcli's language, or None. own: the libraries that it is differentiated by; none where it takes
    NumPy's arrays, or numbers, alone. guessed: whether it is NumPy's, and `own` only runs it as well.
    """

    def __init__(
        self,
        function: str | Callable[..., Any],
        variables: Mapping[str, Any],
        wrt: Any,
        own_gradient: bool,
    ) -> None:
        self.source = function if isinstance(function, str) else None
        self.function = _of_source(function) if isinstance(function, str) else function
        self.variables = {n: _own(v) for n, v in variables.items()}
        self.modules = {n: v for n, v in self.variables.items() if is_module(v)}
        if is_module(self.function):
            self.function = self.modules[""] = _own(self.function)
        if self.source is None:
            every = [leaf for n, v in self.variables.items() for leaf in leaves(n, v)]
            if "" in self.modules:
                every += leaves("", self.modules[""])
        else:
            every = [(n, v) for n, v in self.variables.items() if not callable(v) or is_leaf(v)]
        self.arrays = {n: double(v) for n, v in every}
        self.tops = [*self.variables, *([""] if "" in self.modules else [])]
        self.names = self._chosen(wrt)
        self.numbers = {  # these are no variables of the function, and stay what they are
            n for n, v in every if n not in self.names and isinstance(v, (int, float, complex))
        }
        self.guessed = self.of_arrays = False
        self.own, self.reads = self._libraries(own_gradient)
        if self.reads is NUMPY and not self.own and self._runs_on_tensors():
            self.own, self.guessed = [GRADCLI], True

    def _chosen(self, wrt: Any) -> list[str]:
        if wrt is None:
            found = [n for n, a in self.arrays.items() if a.dtype.kind in "fc"]
        else:
            asked = [n.strip() for n in wrt.split(",")] if isinstance(wrt, str) else list(wrt)
            found = []
            for n in asked:
                under = [m for m in self.arrays if m == n or m.startswith(f"{n}.")]
                if not under:
                    raise TypeError(f"no value for the variable {n!r}")
                found += under
        if not found:
            whole = [n for n, a in self.arrays.items() if a.dtype.kind in "iu"]
            remedy = f": {whole[0]} has integers, pass {whole[0]}.astype(float)" if whole else ""
            raise TypeError(f"no variables to differentiate with respect to{remedy}")
        return found

    # -- which library --------------------------------------------------------------------------------
    def _libraries(self, own_gradient: bool) -> tuple[list[Library], Library]:
        """(those that differentiate the function, the one that its values are computed in)."""
        if self.source is not None:
            return [GRADCLI], GRADCLI
        values = [v for n, v in self.variables.items() for _, v in leaves(n, v)]
        values += [v for n, m in self.modules.items() for _, v in leaves(n, m)]
        typed = {lib for v in values for lib in DIFFERENTIATING if lib.owns(v)}
        if len(typed) > 1:
            kinds = " and of ".join(lib.name for lib in DIFFERENTIATING if lib in typed)
            raise TypeError(f"the variables are of {kinds}: which of them is the function's?")
        if typed:
            (library,) = typed
            self._try(library)
            return [library], library
        evident = mentioned(self.function)
        self.of_arrays = GRADCLI not in evident
        loaded = [library for library in DIFFERENTIATING if library.loaded]
        plain: list[Library] = [NUMPY, NUMBERS]
        if evident:
            order, first = [*evident, *plain, *loaded], len(evident)
        else:
            order, first = ([*loaded, *plain] if own_gradient else [*plain, *loaded]), 1
        tried: dict[Library, Exception] = {}
        able: list[Library] = []
        for k, library in enumerate(order):
            if k >= first and able:
                break
            try:
                if library not in tried and library not in able:
                    self._try(library)
                    able.append(library)
            except Exception as error:  # a function may refuse what is not its own in any way
                tried[library] = error
        if not able:
            raise next(tried[lib] for lib in (*evident, NUMPY) if lib in tried)
        if able[0] is GRADCLI:
            self._refuse_other()
        return [lib for lib in able if lib in DIFFERENTIATING], able[0]

    def _refuse_other(self) -> None:
        """Raise ValueError where the function, which was given arrays, means something else of tensors."""
        with modes.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.call(GRADCLI, {n: GRADCLI.make(self.arrays[n]) for n in self.names})
        title = getattr(self.function, "__name__", "the function")
        names = list(self.arrays)

        def of_arrays(*arrays: Any) -> Any:
            return self.call(NUMPY, dict(zip(names, arrays, strict=True)))

        given = [self.arrays[n][()] for n in names]
        with suppress(numpy_meaning.Unsteady):  # which is said of it later
            numpy_meaning.refuse_other(of_arrays, given, {}, found, title)

    def _runs_on_tensors(self) -> bool:
        """Whether NumPy's function gives the same value of tensors, and nothing leaves their graph.

        NumPy's `x.std()` divides by n, a tensor's by n - 1; and `math.exp(x[0])` is a number, of which
        the graph knows nothing.
        """
        left: list[Any] = []
        modes.local.left = left
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self._try(GRADCLI)
                start = [self.arrays[n] for n in self.names]
                one, two = (self.total(library)(*start) for library in (NUMPY, GRADCLI))
        except Exception:  # a function may refuse what is not its own in any way
            return False
        finally:
            modes.local.left = None
        return not left and bool(np.isclose(one, two, 1e-12, 0, equal_nan=True))

    def _try(self, library: Library) -> None:
        """Run the function once. Raises NoLibrary where its value is none of the library's."""
        start = {n: self.arrays[n] for n in self.names}
        if library is GRADCLI:
            with modes.enable_grad():
                tensors = {n: library.make(a) for n, a in start.items()}
                for tensor in tensors.values():
                    tensor.requires_grad_()
                values = outputs(self.call(library, tensors))
        else:
            with library.around():
                tensors = {n: library.make(a) for n, a in start.items()}
                values = outputs(self.call(library, tensors))
        if library in DIFFERENTIATING:
            strange = [v for v in values if not library.owns(v)]
        else:
            strange = [
                v
                for v in values
                if not isinstance(v, (np.ndarray, np.generic, int, float, complex))
            ]
        if strange or not values:
            what = type(strange[0]).__name__ if strange else "nothing"
            raise NoLibrary(f"the value is a {what}, not a tensor or an array of {library.name}")

    # -- calling it -----------------------------------------------------------------------------------
    def call(self, library: Library, found: Mapping[str, Any]) -> Any:
        """The function's value with these arrays of the library for its leaves."""
        for n, a in self.arrays.items():
            if n not in found and n not in self.numbers:
                found = {**found, n: library.make(a)}
        given = {n: rebuilt(n, v, found) for n, v in self.variables.items()}
        args, kwargs = bound(self.function, given)
        with dtypes.as_default(dtypes.float64):
            if self.of_arrays and library is GRADCLI:
                args, kwargs = arguments((args, kwargs))
            if not self.modules:
                return unfollowed(self.function(*args, **kwargs))
            whole = functools.partial(self.function, *args, **kwargs)
            return _with_parameters(library, self.modules, found, whole)

    def element(self, index: tuple[int, ...]) -> Subject:
        """The same, of one element of the function's value alone."""
        found = copy.copy(self)
        function = self.function

        @functools.wraps(function)
        def picked(*args: Any, **kwargs: Any) -> Any:
            value = function(*args, **kwargs)
            if isinstance(value, (list, tuple)):
                return value[index[0]] if len(value) > 1 or len(index) == 1 else value[0][index]
            return value[index]

        found.function = picked
        return found

    def tensors(self, library: Library) -> Tensors:
        """The function of gradcli's tensors by the names of leaves, differentiated by the library."""
        if library is GRADCLI:
            # Where nothing is recorded, NumPy's own functions answer, in arrays.
            return lambda **tensors: _as_tensors(self.call(library, tensors))
        flat = FlatFunction(library, self._flat(library), len(self.names))

        def function(**tensors: Tensor) -> tuple[Tensor, ...]:
            return flat.apply(*[tensors[n] for n in self.names])

        return function

    def _flat(self, library: Library) -> Callable[[Sequence[Any]], list[Any]]:
        def flat(values: Sequence[Any]) -> list[Any]:
            made = self.call(library, dict(zip(self.names, values, strict=True)))
            return [v for v in outputs(made) if _is_floating(library, v)]

        return flat

    def total(self, library: Library) -> Callable[..., float]:
        """The sum of the function's values, as a function of the arrays of its leaves by position."""
        if library is GRADCLI:

            def value(*arrays: Any) -> Any:
                with modes.no_grad():
                    given = zip(self.names, map(library.make, arrays), strict=True)
                    made = outputs(self.call(library, dict(given)))
                    # Where nothing is recorded, NumPy's own functions answer, in arrays.
                    return sum(getattr(v, "array", v).sum() for v in made)

            return value
        flat = FlatFunction(library, self._flat(library), len(self.names))
        return lambda *arrays: sum(np.asarray(a).sum() for a in flat(arrays))

    def with_gradient(self, slopes: Mapping[str, Any]) -> Tensors:
        """The function of tensors whose gradient is what `slopes` says."""
        value = self.total(self.reads)
        names = [n for n in self.names if n in slopes]
        fixed = {n: self.arrays[n] for n in self.names if n not in slopes}

        def function(**tensors: Tensor) -> Any:
            def at(*arrays: Any) -> float:
                found = fixed | dict(zip(names, arrays, strict=True))
                return value(*[found[n] for n in self.names])

            return GivenGradient.apply(at, [slopes[n] for n in names], *[tensors[n] for n in names])

        return function

    def steady(self) -> None:
        """ValueError where the function has other values each time it is called."""
        value = self.total(self.reads)
        arrays = [self.arrays[n] for n in self.names]
        one, two = value(*arrays), value(*arrays)
        if one != two and not (np.isnan(one) and np.isnan(two)):
            raise ValueError(
                f"the function has another value at the same point each time ({one:.6g}, {two:.6g}): "
                "give its random numbers a seed"
            )

    # -- what is expected -----------------------------------------------------------------------------
    def expected(self, said: Any) -> dict[str, Any]:
        """The gradients that somebody says, by leaf: of a formula, a function, arrays, a mapping of them."""
        if callable(said) and not is_leaf(said):
            said = self._asked(said)
        tops = [n for n in self.tops if any(self._is_under(m, n) for m in self.names)]
        if isinstance(said, Mapping) and all(self._knows(str(n)) for n in said):
            parts = {str(n): v for n, v in said.items()}
        elif len(tops) == 1:
            parts = {tops[0]: said}
        elif isinstance(said, tuple) and len(said) == len(tops):
            parts = dict(zip(tops, said, strict=True))
        else:
            first = tops[0]
            raise TypeError(
                f"expected is of which variable? ({', '.join(self.names)}): say expected={{{first!r}: …}}, "
                f"or wrt={first!r}"
            )
        found: dict[str, Any] = {}
        for name, value in parts.items():
            if callable(value) and not is_leaf(value):
                value = self._asked(value)
            if isinstance(value, str):
                found[name] = self._formula(value)
                continue
            for leaf, array in leaves(name, value):
                array = double(array)
                conjugate = JAX.owns(value) and np.iscomplexobj(array)
                found[leaf] = np.conj(array) if conjugate else array
        for name in found:
            if name not in self.arrays:
                raise TypeError(f"no value for the variable {name!r}")
        return found

    def _is_under(self, leaf: str, top: str) -> bool:
        if top == "":
            return not any(self._is_under(leaf, n) for n in self.variables)
        return leaf == top or leaf.startswith(f"{top}.")

    def _knows(self, name: str) -> bool:
        return any(leaf == name or leaf.startswith(f"{name}.") for leaf in self.arrays)

    def _formula(self, source: str) -> Any:
        from gradcli.language import parse, run

        given = {n: GRADCLI.make(a) for n, a in self.arrays.items()}
        with dtypes.as_default(dtypes.float64):
            found = run(parse(source), given).value
        return np.asarray(found.array if isinstance(found, Tensor) else found)

    def _asked(self, function: Any) -> Any:
        """The value of a function of the same variables, which may take the arrays of any library."""
        asked = copy.copy(self)
        asked.function, asked.source = function, None
        asked.modules = {n: m for n, m in self.modules.items() if n}
        order = [self.reads, *mentioned(function), NUMPY, NUMBERS, TORCH, JAX, GRADCLI]
        failed: Exception | None = None
        for library in dict.fromkeys(order):
            if not library.loaded:
                continue
            try:
                with library.around():
                    found = asked.call(
                        library, {n: library.make(self.arrays[n]) for n in self.names}
                    )
                    if JAX.loaded:
                        with JAX.around():
                            return found
                    return found
            except Exception as error:  # as in _libraries
                failed = failed or error
        assert failed is not None
        raise failed


def outputs(value: Any) -> list[Any]:
    """The arrays and numbers of a value."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        return [v for item in value for v in outputs(item)]
    return [value]


def _is_floating(library: Library, value: Any) -> bool:
    if library is TORCH:
        return bool(library.owns(value) and (value.is_floating_point() or value.is_complex()))
    return np.dtype(getattr(value, "dtype", type(value))).kind not in "biu" or not hasattr(
        value, "dtype"
    )


def _as_tensors(value: Any) -> Any:
    leaves, spec = pytrees.flatten(value)
    made = [wrap(np.asarray(v)) if isinstance(v, (np.ndarray, np.generic)) else v for v in leaves]
    return pytrees.unflatten(made, spec)


def _of_source(source: str) -> Callable[..., Any]:
    from gradcli.language import parse, run

    program = parse(source)
    return lambda **values: run(program, values).value


def _own(value: Any) -> Any:
    """A module's copy in double precision, in which nothing of the caller's changes; else the value."""
    return copy.deepcopy(value).double() if is_module(value) else value


def _with_parameters(
    library: Library, modules: Mapping[str, Any], found: Mapping[str, Any], function: Any
) -> Any:
    """The value of a function of no arguments, while the modules have the parameters that are found.

    Their buffers are copies: what a call writes there is gone with it.
    """
    system = sys.modules[library.module]
    held = system.nn.Module()
    tensors: dict[str, Any] = {}
    for k, (name, module) in enumerate(modules.items()):
        held.add_module(f"m{k}", module)
        tensors |= {f"m{k}.{n}": b.clone() for n, b in module.named_buffers()}
        for n, _ in module.named_parameters():
            if (leaf := f"{name}.{n}".lstrip(".")) in found:
                tensors[f"m{k}.{n}"] = found[leaf]
    held.forward = function
    return system.func.functional_call(held, tensors, ())

"""`gradcli.compile`: a program as a function of arrays, traced once for each set of shapes."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.columns.compiler import executor, nested_arguments, program_listing, whole_programs
from gradcli.columns.compiler.gradients import Gradients
from gradcli.columns.compiler.nested_arguments import Parameters
from gradcli.columns.compiler.straight_line_code import program
from gradcli.engine.core import modes, pytrees
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.core.tensor import arrays as held
from gradcli.engine.registry import table
from gradcli.engine.system import c_compiler, direct_calls, dtypes
from gradcli.engine.system.array_memory import ARRAYS, Numberless
from gradcli.engine.system.given_arrays import array_of
from gradcli.language.error_remedies import habit
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.transforms import numpy_meaning
from gradcli.transforms.array_arguments import explain, with_numpys_meaning
from gradcli.transforms.batched_passes import Sparse
from gradcli.transforms.tracing.numpy_program import Operation, live
from gradcli.transforms.tracing.numpy_tracer import NumpyTracer, Untraceable, trace_numpy

if TYPE_CHECKING:
    from gradcli.engine.system.direct_calls import DirectCalls
    from gradcli.language.program import Program

_FORMS = 64  # of a function's arguments, for which it is compiled, at most
_WHOLE = 8  # programs of a function that are one C function at most: each is for certain shapes
# What others call methods that are called differently here.
_ELSEWHERE = {
    "gradient": "f.grad(x) is the gradient, f.value_and_grad(x) has the value too",
    "grad_and_value": "f.value_and_grad(x) has both",
    "backward": "f.value_and_grad(x) has the value and the gradients",
}
_SPOKEN = frozenset(["print", "display"])


class CompiledProgram:
    """Computes a value and its gradients for inputs of certain shapes and dtypes.

    `run` takes the arrays of the inputs and returns (value, *gradients of `names`); a gradient is None
    if the value does not depend on that input. whole: make native code of small arrays one C function for
    these very shapes, `direct`; where that is not possible, `unfit` says why.
    """

    __slots__ = ("direct", "executor", "names", "run", "trace", "unfit")

    def __init__(
        self,
        trace: NumpyTracer,
        *,
        threads: int | None = None,
        smallest: int | None = None,
        sparing: bool = False,
        native: bool = False,
        whole: bool = False,
    ) -> None:
        self.trace = trace
        self.names = list(trace.gradients)
        outputs = trace.outputs
        inputs = list(trace.inputs.values())
        self.executor: executor.Executor | None = None
        self.unfit = ""
        self.direct = self._as_one(outputs, inputs) if native and whole else None
        if smallest is None:
            smallest = executor.SMALLEST_IN_C if native else executor.SMALLEST
        run: Callable[..., Any] | None = None if self.direct is None else self.direct.checked()
        if run is None and any(o.size >= smallest for o in live(outputs)):
            with contextlib.suppress(executor.Scattered):
                run = self.executor = executor.make(
                    *(outputs, inputs),
                    threads=threads,
                    smallest=smallest,
                    sparing=sparing,
                    native=native,
                    choosy=True,
                )
        # For small arrays the calls cost more than the numbers: one line after the other, without blocks or
        # threads.
        if run is None:
            run = _owned(program(outputs, inputs), outputs)
        missing = [g is None for g in trace.gradients.values()]
        self.run = _with_gaps(run, missing) if any(missing) else run

    def _as_one(
        self, outputs: Sequence[Operation], inputs: Sequence[Operation]
    ) -> DirectCalls | None:
        """The program as one C function, where it can be one."""
        try:
            return whole_programs.compiled(outputs, inputs)
        except whole_programs.NoForm as reason:
            self.unfit = str(reason)
        except c_compiler.NoCompiler as error:
            executor.warn_of(error)
        return None

    def lines(self) -> list[str]:
        """The compiled program as text."""
        found = self.trace
        if self.executor is None:
            lines = program_listing.straight_text(found.outputs, self.direct is not None)
            return [*lines, f"not as C: {self.unfit}"] if self.unfit else lines
        roles = {o.index: "value" for o in (found.value, *found.more)}
        for name, g in found.gradients.items():
            if g is not None and g.function is not None:
                roles[g.index] = f"{name}.grad"
        lines = program_listing.executor_text(self.executor, roles)
        return lines + [f"not as C: {', '.join(self.not_as_c())}"] * bool(self.not_as_c())

    def not_as_c(self) -> list[str]:
        """The calls of a program that is to run as C which have no C form, and why."""
        return [] if self.executor is None else self.executor.foreign()


def _owned(run: Callable[..., Any], outputs: Sequence[Operation]) -> Callable[..., Any]:
    """Copies of outputs that would be inputs, constants or views of them."""
    shared = [
        k
        for k, o in enumerate(outputs)
        if o.shape
        and (
            o.function is None
            or o.kind == "view"
            or any(o is other for other in outputs[:k])
            or o.function is np.broadcast_to
        )
    ]
    if not shared:
        return run

    # Who writes into a result must not change his own input, or the next call's constant.
    def copied(*arrays: Any) -> tuple[Any, ...]:
        values = list(run(*arrays))
        for k in shared:
            values[k] = np.array(values[k])
        return tuple(values)

    return copied


def _with_gaps(run: Callable[..., Any], missing: list[bool]) -> Callable[..., Any]:
    def padded(*arrays: Any) -> tuple[Any, ...]:
        values = iter(run(*arrays))
        return (next(values), *[None if gap else next(values) for gap in missing])

    return padded


class CompiledFunction:
    """A function of arrays: `f(x=...)` is the value, `f.value_and_grad(x=...)` the gradients too.

    It is compiled once for each set of shapes and dtypes. A program that cannot be traced (it branches on
    values, or draws random numbers) runs on the tape at every call; `print(f)` says so.
    """

    takes_arrays = True  # a transform of it calls it with tensors

    def __init__(
        self,
        function: Callable[..., Any],
        names: Sequence[str],
        title: str,
        *,
        wrt: Iterable[str] | None = None,
        threads: int | None = None,
        memory: str | None = None,
        native: bool = False,
        whole: bool = True,
        parameters: Parameters | None = None,
    ) -> None:
        if memory not in (None, "low"):
            raise ValueError(f"memory must be None or 'low', got {memory!r}")
        table.base()  # operators of tensors are primitives of the table
        self.function, self.names, self.title = function, tuple(names), title
        self.made: tuple[Any, dict[str, Any]] = (function, {})  # what `compile` was given
        self.given = function  # which `function` is, or has NumPy's meaning of (`_meant`)
        self.program: Program | None = None  # what `title` is the text of
        self.parameters = parameters  # of a function of Python's
        self.is_python = parameters is not None
        self._twin: CompiledFunction | None = None  # for tensors, where this one is of arrays
        self._settled: set[Any] = set()  # what a function of tensors answered (`_meant`)
        self._alike: set[Any] = set()  # signatures for which arrays and tensors were compared
        every = self.names if parameters is None else parameters.required
        self.chosen = list(every) if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
        # The part of a nested argument is named by its place: params.w.
        self.wrt = frozenset(n.partition(".")[0] if parameters else n for n in self.chosen)
        unknown = self.wrt - set(self.names)
        if unknown:
            raise ValueError(f"wrt: {title} has no variable {min(unknown)!r}")
        self.threads, self.memory, self.native = threads, memory, native
        self.whole = _WHOLE if whole else 0  # how many more programs may be one C function each
        # The chain of a call. A C function takes arrays of the kinds that it was made for, and hands
        # everything else to the next one: an earlier C function, or `_called`, which looks the plan up in
        # Python. Each shape costs a comparison in C, so `whole` limits their number; later shapes get
        # plans for all sizes.
        self._direct: Callable[..., Any] | None = None  # what a call goes to first
        self._quick: dict[bool, Any] = {}  # calls of plans that are there
        self.plans: dict[Any, CompiledProgram | Untraceable] = {}
        self._indices: set[Any] = (
            set()
        )  # signatures whose integers the program cannot take as floats
        self.matrices: dict[Any, Any] = {}  # of sparse derivatives
        self._derived: dict[Any, CompiledFunction] = {}  # of whole matrices of derivatives
        self.forms: dict[Any, _Form] = {}  # of arguments that are not all arrays
        self.__name__ = title
        # Said, for `inspect` takes what has a `__get__` for a builtin.
        own = None if parameters is None else parameters.signature
        self.__signature__ = nested_arguments.signature_of(self.names) if own is None else own

    def __call__(self, *args: Any, **arrays: Any) -> Any:
        """The value: arrays (tensors, if any argument is one), nested as the function's result is.

        A Python float is a double, or of the default dtype beside arrays of single precision.
        """
        direct = self._direct
        return self._called(*args, **arrays) if direct is None else direct(*args, **arrays)

    def _followed(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The value, as a tensor of the graph that its arguments belong to: it is not compiled."""
        self._arrays(args, named)  # `named` has all of them then
        return self.given(
            **{n: v if isinstance(v, Tensor) else wrap(as_array(v)) for n, v in named.items()}
        )

    def _not_direct(self, *args: Any, **arrays: Any) -> Any:
        call = self._quick.get(False)
        return self._called(*args, **arrays) if call is None else call(*args, **arrays)

    def _called(self, *args: Any, **arrays: Any) -> Any:
        if held.holds is not None and held.holds((args, arrays)):  # within a function of arrays
            if self.parameters is not None:
                with contextlib.suppress(Exception):  # one of tensors may refuse arrays in any way
                    return self.parameters.function(*args, **arrays)
            return held.back(self._called(*held.into(args), **held.into(arrays)))
        if (nested := self._nested(args, arrays)) is not None:
            return nested[0].function(*nested[1])
        if any(_is_followed(v) for v in (*args, *arrays.values())):
            return self._followed(args, arrays)
        given, tensors = self._arrays(args, arrays)
        if tensors and self.of_arrays:
            return self._of_tensors()(**arrays)

        def value() -> Any:
            found = self._run(given, False, tensors)[0]
            if not tensors:
                self._compare(given, found)
            return found

        return _result(value() if tensors else self._meant("value", given, value), tensors)

    def value_and_grad(self, *args: Any, **arrays: Any) -> tuple[Any, dict[str, Any]]:
        """(the value, the gradients by name); the value must have one element.

        Gradients are of the variables in `wrt`, as arrays (tensors, if any argument is one), nested as the
        variable is; None where the value does not depend on the variable. Where there is one variable,
        NumPy and SciPy take them for its gradient. Integers are floats, as in `gradcli.grad`; tensors
        of them, and what the program can only take as integers (indices), have no gradient. What is
        wrong with a program is a LanguageError with the place in it.
        """
        call = self._quick.get(True)
        return self._all_gradients(*args, **arrays) if call is None else call(*args, **arrays)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        own = self.parameters
        if instance is not None and own is not None and own.names[:1] == ["self"]:
            raise TypeError(
                f"{self.title} is a method, and what `self` holds may change: compile a function of what it "
                f"reads, or gradcli.compile(self.{self.title}), for which what self holds is constant"
            )
        return self

    def grad(self, *args: Any, **arrays: Any) -> Any:
        """The gradient alone: of one variable an array, of several a dict by name.

        What SciPy's methods call: `minimize(f, x0, jac=f.grad)`. It is 0 where the value does not depend
        on the variable.
        """
        _, found = self.value_and_grad(*args, **arrays)
        if any(slope is None for slope in found.values()):
            given = {**dict(zip(self.names, args, strict=False)), **arrays}
            found |= {n: _zeros(given[n]) for n, slope in found.items() if slope is None}
        return next(iter(found.values())) if len(found) == 1 else found

    if not TYPE_CHECKING:  # a checker finds a misspelt name by itself

        def __getattr__(self, name: str) -> Any:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if other := _ELSEWHERE.get(name):
                message += f"; {other}"
            raise AttributeError(message)

    def _all_gradients(self, *args: Any, **arrays: Any) -> tuple[Any, dict[str, Any]]:
        if held.holds is not None and held.holds((args, arrays)):
            value, slopes = self._all_gradients(*held.into(args), **held.into(arrays))
            return held.back(value), held.back(slopes)
        if (nested := self._nested(args, arrays)) is not None:
            return nested[0].value_and_grad(nested[1])
        given, tensors = self._arrays(args, arrays)
        if not tensors:
            found: tuple[Any, dict[str, Any]]
            found = self._meant("slope", given, lambda: self._of_array_points(given, arrays))
            return found
        if self.of_arrays:
            return self._of_tensors().value_and_grad(**arrays)
        given, (value, *grads) = self._of_floats(given, arrays, True)
        return wrap(value), Gradients(
            (n, None if g is None else wrap(g))
            for n, g in zip(self._differentiated(given), grads, strict=True)
        )

    def _of_array_points(
        self, given: list[Any], values: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        given, (value, *grads) = self._of_floats(given, values, False)
        self._compare(given, value)
        return value, Gradients(zip(self._differentiated(given), grads, strict=True))

    # -- what is meant -------------------------------------------------------------------------------
    @property
    def of_arrays(self) -> bool:
        """Whether the function is run with NumPy's meaning of all that it does."""
        return self.function is not self.given

    def _meant(self, asked: str, given: list[Any], run: Callable[[], Any]) -> Any:
        """What a call at arrays gives. asked: whatever it asks for, the value or a derivative.

        A function is one of tensors, which PyTorch's programs are, and much of NumPy's. Where it is
        refused, or gives something else of tensors than of arrays, it is one of arrays, as `gradcli.grad`
        has it.
        """
        key = asked, self._signature(given, False)
        if self.of_arrays or not self.is_python or key in self._settled:
            return run()
        refusal: Exception | None = None
        if not numpy_meaning.has_other_methods(self.made[0]):
            try:
                found = run()
                self._settled.add(key)
                return found
            except (MemoryError, numpy_meaning.Unsteady):
                raise
            except Exception as error:  # a function may refuse tensors in any way
                refusal = error
        self._begin_anew(with_numpys_meaning(self.given))
        try:
            return run()
        except Exception as error:  # as above
            self._begin_anew(self.given)
            if self._takes_arrays(given):
                explain(error)
                raise
        if refusal is None:
            return run()
        raise refusal

    def _begin_anew(self, function: Callable[..., Any]) -> None:
        """Forget what was compiled: another function is meant."""
        self.function = function
        self._alike.clear()
        self._settled.clear()
        for known in (self.plans, self._quick, self._derived, self.matrices):
            known.clear()
        self._direct = None
        for name in ("value_and_grad", "sparse_hessian", "sparse_jacobian"):
            self.__dict__.pop(name, None)

    def _takes_arrays(self, given: list[Any]) -> bool:
        """Whether the function is one of NumPy's arrays."""
        with numpy_meaning.kept_random(self.given), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.given(**{n: np.array(a)[()] for n, a in zip(self.names, given, strict=True)})
            except Exception:  # as in `_meant`
                return False
        return True

    def _of_tensors(self) -> CompiledFunction:
        """The function at tensors, which mean what they mean."""
        if self._twin is None:
            how: dict[str, Any] = {"threads": self.threads, "memory": self.memory}
            self._twin = CompiledFunction(
                self.given, self.names, self.title, wrt=self.wrt, native=self.native, **how
            )
            self._twin.is_python = True
        return self._twin

    def _of_floats(
        self, given: list[Any], values: dict[str, Any], tensors: bool
    ) -> tuple[list[Any], tuple[Any, ...]]:
        """(the arrays, the value and the gradients) with integers as floats, as `gradcli.grad` has them.

        Integers that the program takes for nothing else, such as indices, stay what they are; so do
        tensors. values: what was given, by name. Raises LanguageError where nothing is left to
        differentiate by.
        """
        whole = [
            k
            for k, (n, a) in enumerate(zip(self.names, given, strict=True))
            if n in self.wrt and a.dtype.kind in "iu" and not isinstance(values[n], Tensor)
        ]
        key = self._signature(given, True) if whole else None
        if whole and key not in self._indices:
            kinds = {a.dtype.char for a in given}
            # A function of Python's is one of NumPy's numbers, an expression one of the language's.
            double = kinds & {"d", "D"} or (self.is_python and "f" not in kinds)
            real = np.dtype(np.float64 if double else dtypes.default.real)
            number = real if "f" in kinds else np.dtype(np.float64)  # as a float of Python's
            floats = [
                a.astype(real if a.shape else number) if k in whole else a
                for k, a in enumerate(given)
            ]
            try:
                return floats, self._run(floats, True, tensors)
            except (LanguageError, *OPERATION_ERRORS):
                if not self._differentiated(given):
                    raise
                found = self._run(given, True, tensors)  # whose error is the one to see
                self._indices.add(key)
                return given, found
        if self.wrt and given and not self._differentiated(given):
            name, array = next(
                (n, a) for n, a in zip(self.names, given, strict=True) if n in self.wrt
            )
            remedy = "double()" if isinstance(values[name], Tensor) else "astype(float)"
            raise LanguageError(
                "nothing to differentiate with respect to",
                kind="type",
                hint=f"{name} has dtype {array.dtype.name}: pass {name}.{remedy}",
            )
        return given, self._run(given, True, tensors)

    def jacobian(self, *args: Any, **arrays: Any) -> Any:
        """The derivative of each element of the value by each of a variable, as an array.

        Of one variable in `wrt` an array, the value's dimensions before the variable's; of several a dict by
        name. What `scipy.optimize.least_squares(f, x0, jac=f.jacobian)` takes.
        """
        return self._matrices("jacobian", args, arrays)

    def hessian(self, *args: Any, **arrays: Any) -> Any:
        """The second derivatives of a scalar, as an array; of several variables a dict of dicts."""
        return self._matrices("hessian", args, arrays)

    def hvp(self, x: Any, v: Any, *args: Any, **arrays: Any) -> Any:
        """The product of the second derivatives of a scalar and a direction v of x, without the matrix.

        By the one variable in `wrt`, which is the first: `scipy.optimize.minimize(…, hessp=f.hvp)`.
        """
        if (nested := self._nested((x, *args), arrays)) is not None:
            return nested[0].function.hvp(nested[1][0], v, *nested[1][1:])
        given, tensors = self._arrays((x, *args), arrays)
        first = self.names[0]
        if self._differentiated(given) != [first]:
            raise ValueError(f"hvp is by one variable, the first: compile(…, wrt={first!r})")
        direction = np.asarray(v.array if isinstance(v, Tensor) else v, given[0].dtype)
        if direction.shape != given[0].shape:
            raise ValueError(
                f"{first} has shape {given[0].shape}, the direction {direction.shape}: they are alike"
            )
        if tensors and self.of_arrays:
            return self._of_tensors().hvp(arrays.pop(first), v, **arrays)

        def product() -> Any:
            if not tensors:
                self._compare_before(given)
            if "hvp" not in self._derived:
                self._derived["hvp"] = self._product()
            with self._watched(tensors):
                return self._derived["hvp"](*given, direction[()])

        return _result(product() if tensors else self._meant("product", given, product), tensors)

    def _product(self) -> CompiledFunction:
        from gradcli.transforms.grad import grad
        from gradcli.transforms.jvp import jvp

        first, last = self.names[0], "the direction"

        def function(**variables: Any) -> Any:
            along = variables.pop(last)

            def of(point: Any) -> Any:
                return self.function(**{**variables, first: point})

            return jvp(grad(of), (variables[first],), (along,))[1]

        names = [*self.names, last]
        title = f"hvp of {self.title}"
        return CompiledFunction(function, names, title, threads=self.threads, native=self.native)

    def _matrices(self, kind: str, args: tuple[Any, ...], arrays: dict[str, Any]) -> Any:
        if (nested := self._nested(args, arrays)) is not None:
            return nested[0].function._matrices(kind, tuple(nested[1]), {})
        given, tensors = self._arrays(args, arrays)
        real = np.float64 if any(a.dtype.char in "dD" for a in given) else dtypes.default.real
        given = [
            a.astype(real if a.shape else np.float64)
            if n in self.wrt and a.dtype.kind in "iu"
            else a
            for n, a in zip(self.names, given, strict=True)
        ]
        if tensors and self.of_arrays:
            return self._of_tensors()._matrices(kind, (), arrays)
        wanted = tuple(self._differentiated(given))

        def matrices() -> Any:
            if not tensors:
                self._compare_before(given)
            if (kind, wanted) not in self._derived:
                self._derived[kind, wanted] = self._derivative(kind, wanted)
            with self._watched(tensors):
                return self._derived[kind, wanted](*given)

        found = matrices() if tensors else self._meant(kind, given, matrices)
        return _result(_mapped(lambda v: v if np.ndim(v) else v[()], found), tensors)

    def _derivative(self, kind: str, wanted: tuple[str, ...]) -> CompiledFunction:
        """The function of the matrices of derivatives, which is traced and compiled as any other."""
        from gradcli.transforms.hessian import hessian
        from gradcli.transforms.jacobian import jacrev

        transform: Callable[..., Any] = hessian if kind == "hessian" else jacrev
        places = tuple(range(len(wanted)))

        def function(**variables: Any) -> Any:
            def of(*points: Any) -> Any:
                return self.function(**{**variables, **dict(zip(wanted, points, strict=True))})

            found = transform(of, argnums=places)(*[variables[n] for n in wanted])
            if kind == "hessian":
                found = [dict(zip(wanted, row, strict=True)) for row in found]
                return (
                    found[0][wanted[0]]
                    if len(wanted) == 1
                    else dict(zip(wanted, found, strict=True))
                )
            return found[0] if len(wanted) == 1 else dict(zip(wanted, found, strict=True))

        title = f"{kind} of {self.title}"
        return CompiledFunction(
            function, self.names, title, threads=self.threads, native=self.native
        )

    def sparse_hessian(self, *args: Any, **arrays: Any) -> Any:
        """The second derivatives without the zeros: a `Sparse` with `shape`, `indices` and `values`.

        Of a scalar by the one variable in `wrt`. The pattern, which may hold elements that happen to be 0,
        is found once for each set of shapes, and as many directions as it has colours are pushed. Raises
        RuntimeError where the program cannot be traced.
        """
        return self._sparse(args, arrays, True)

    def sparse_jacobian(self, *args: Any, **arrays: Any) -> Any:
        """As `sparse_hessian`, the derivatives of each element of the value."""
        return self._sparse(args, arrays, False)

    def _sparse(self, args: tuple[Any, ...], arrays: dict[str, Any], second: bool) -> Any:
        if (nested := self._nested(args, arrays)) is not None:
            return nested[0].function._sparse(tuple(nested[1]), {}, second)
        given, tensors = self._arrays(args, arrays)
        if tensors and self.of_arrays:
            return self._of_tensors()._sparse((), arrays, second)
        # The pattern is found by running the program on places without numbers, which have no strides.
        given = [np.ascontiguousarray(a) if a.shape else a for a in given]
        key = (second, *self._signature(given, False))

        def matrix() -> Any:
            found = self.matrices.get(key)
            if found is None:
                if not tensors:
                    self._compare_before(given)
                found = self.matrices[key] = self._matrix(given, second)
                if (direct := found.direct) is not None:
                    more = Sparse, found.shape, found.indices
                    name = "sparse_hessian" if second else "sparse_jacobian"
                    self._first(name, direct, direct_calls.MADE, more)
            return found(*given)

        return matrix() if tensors else self._meant("sparse", given, matrix)

    def _matrix(self, given: list[Any], second: bool) -> Any:
        from gradcli.columns.compiler.sparse_matrices import SparseProgram

        names = self._differentiated(given)
        if len(names) != 1:
            raise ValueError(f"wrt: a sparse matrix is by one variable, not by {', '.join(names)}")
        variables = dict(zip(self.names, given, strict=True))
        how: dict[str, Any] = {"threads": self.threads, **self._how()}
        try:
            return SparseProgram(
                *(self.function, variables, names[0], second),
                lambda trace: CompiledProgram(trace, **how),
            )
        except Untraceable as reason:
            raise RuntimeError(f"the program cannot be traced: {reason}") from reason

    def plan(self, *args: Any, gradients: bool = True, **arrays: Any) -> str:
        """The compiled program for arrays of these shapes, as text."""
        if (nested := self._nested(args, arrays)) is not None:
            text: str = nested[0].function.plan(*nested[1], gradients=gradients)
            return text
        given, tensors = self._arrays(args, arrays)
        if not tensors:
            self._meant("slope", given, lambda: self._compare_before(given))
        self._plan(given, gradients)
        return self._text(self._signature(given, gradients))

    def __reduce__(self) -> tuple[Any, ...]:
        """Its function, by name, and the options: it is compiled again where it arrives."""
        function = self.made[0]
        module, name = (getattr(function, n, None) for n in ("__module__", "__qualname__"))
        if callable(function) and module in sys.modules and name and "<" not in name:
            with contextlib.suppress(AttributeError):
                if _named(module, name) is self:  # as a decorator leaves it
                    return _named, (module, name)
        return _made, self.made

    def __repr__(self) -> str:
        order = ", ".join(self.names)
        lines = [*map(self._text, self.plans), *(repr(f.function) for f in self.forms.values())]
        return (
            "\n".join(lines)
            or f"{self.title}  (no plan before a call; arguments by position: {order})"
        )

    def _text(self, key: Any) -> str:
        plan = self.plans[key]
        if isinstance(plan, Untraceable):
            lines = program_listing.reason_text(plan)
            if said := self._may_be_static([c for _, c, _ in key[2:]]):
                lines.append(f"({said})")
            return program_listing.described({}, lines, self.title)
        title = f"{self.title}{' and gradients' if key[0] else ''}"
        return program_listing.described(plan.trace.inputs, plan.lines(), title)

    def _may_be_static(self, dtypes: Iterable[str]) -> str:
        """What to do about whole numbers that say a shape, an axis or a count; '' where there are none."""
        if not self.is_python:
            return ""
        whole = [n for n, c in zip(self.names, dtypes, strict=True) if c in "lqi"]
        names = list(dict.fromkeys(n.partition(".")[0] for n in whole))
        if not names:
            return ""
        return f"a shape, an axis or a number of steps is a constant: compile(…, static={names!r})"

    # -- arguments that are not all arrays
    # -------------------------------------------------------------------------
    def _nested(
        self, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[_Form, list[Any]] | None:
        """(the form of a call, its arrays); None where each argument is an array."""
        own = self.parameters
        if own is None:
            return None
        values = dict(zip(self.names, args, strict=False)) | named
        if (
            len(args) + len(named) == len(values) == len(self.names)
            and not (own.gathers or own.static)
            and all(map(nested_arguments.is_plain, values.values()))
        ):
            return None
        if not (own.gathers or own.defaults or own.static) and len(values) != len(self.names):
            return None  # whose words are those of `_arrays`
        leaves, key = own.form(own.bound(args, named))
        found = self.forms.get(key)
        if found is None:
            found = self._form(leaves, key)
        return found, list(leaves.values())

    def _form(self, leaves: dict[str, Any], key: tuple[Any, ...]) -> _Form:
        """The function for arguments of a form, made anew."""
        own = self.parameters
        assert own is not None
        if len(self.forms) == _FORMS:
            self._warn_of_forms(key)
        if len(self.forms) >= _FORMS:
            del self.forms[next(iter(self.forms))]
        constants = nested_arguments.constants_text(self.names, key)
        function = CompiledFunction(
            own.of_leaves(key),
            list(leaves),
            f"{self.title} ({constants})" if constants else self.title,
            wrt=[n for n in leaves if any(n == c or n.startswith(f"{c}.") for c in self.chosen)],
            threads=self.threads,
            memory=self.memory,
            native=self.native,
        )
        function.is_python = True
        forms = dict(zip(self.names, key, strict=True))
        made = self.forms[key] = _Form(function, [(c, *_place(forms, c)) for c in self.chosen])
        return made

    def _warn_of_forms(self, key: tuple[Any, ...]) -> None:
        """Warn that a constant has another value at each call, once."""
        last = next(reversed(self.forms))
        pairs = zip(self.names, key, last, strict=True)
        names = ", ".join(n for n, a, b in pairs if a != b)
        warnings.warn(
            f"{self.title} was compiled for {_FORMS} values of its constants: {names} has another one at "
            "each call. A function is compiled for each object (define it once, outside of the loop); a "
            "number that changes is better an argument",
            stacklevel=users_level(),
        )

    # -- the way to a compiled program
    # -------------------------------------------------------------------------
    def _arrays(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], bool]:
        names = self.names
        if args:
            if len(args) > len(names):
                raise TypeError(
                    f"{self.title} takes {len(names)} arrays but {len(args)} were given"
                )
            for name, value in zip(names, args, strict=False):
                if name in named:
                    raise TypeError(f"{self.title} got two values for {name!r}")
                named[name] = value
        # Written out instead of `inspect.signature(...).bind`, which takes longer than a small program.
        if len(named) != len(names) or any(n not in named for n in names):
            missing = [n for n in names if n not in named]
            if missing:
                raise TypeError(f"{self.title} needs a value for {', '.join(missing)}")
            extra = next(n for n in named if n not in names)
            raise TypeError(f"{self.title} has no variable {extra!r}")
        given: list[Any] = []
        tensors = False
        for name in names:
            value = named[name]
            if value.__class__ is Tensor:
                tensors = True
                value = value.array
            elif value.__class__ is float:
                value = _number(value, named)
            elif isinstance(value, (list, tuple)) and self.is_python:
                value = _numbers(value, named)
            elif isinstance(value, (np.generic, Numberless)):
                pass
            elif (array := array_of(value)) is not None:
                value = array
            else:
                value = as_array(value)
            # A scalar of NumPy's computes faster than an array without dimensions.
            given.append(value if value.shape else value[()])
        return given, tensors

    def _signature(self, given: list[Any], gradients: bool) -> Any:
        return (
            gradients,
            dtypes.default.real,
            *[
                # Strides count: the order of summation, and so the last digit, follows the memory.
                (a.shape, a.dtype.char, not a.shape or a.flags.c_contiguous or a.strides)
                for a in given
            ],
        )

    def _plan(self, given: list[Any], gradients: bool) -> CompiledProgram | Untraceable:
        key = self._signature(given, gradients)
        found = self.plans.get(key)
        if found is None:
            found = self.plans[key] = self._made(given, gradients)
        elif gradients not in self._quick:
            self._quicken(gradients)
        return found

    def _quicken(self, gradients: bool) -> None:
        """Let calls from the second one on find their plan without this class."""
        from gradcli.columns.compiler.quick_calls import quick_call

        other = self._all_gradients if gradients else self._called
        tensors = not self.of_arrays
        call = quick_call(self.names, self.plans, CompiledProgram, other, gradients, tensors)
        self._quick[gradients] = call
        if not gradients:
            self._direct = self._direct or call

    def _made(self, given: list[Any], gradients: bool) -> CompiledProgram | Untraceable:
        variables = dict(zip(self.names, given, strict=True))
        wrt = frozenset(self._differentiated(given)) if gradients else frozenset()
        try:
            # A trace of zeros would take one branch for all inputs: values are hidden from the program
            # while it is traced, and one that asks for them is Untraceable and kept as such, so that it
            # is not tried again.
            found = trace_numpy(
                self.function, variables, wrt=wrt, backward=gradients, nested=not gradients
            )
        except Untraceable as reason:
            return reason
        sparing = self.memory == "low"
        made = CompiledProgram(found, threads=self.threads, sparing=sparing, **self._how())
        if made.direct is not None and gradients:
            there = [g is not None or None for g in found.gradients.values()]
            # A dictionary of the plain kind is made faster.
            more = (tuple(found.gradients), *there, Gradients if len(there) == 1 else None)
            self._first("value_and_grad", made.direct, direct_calls.WITH_GRADIENTS, more)
        # A result that is nested has to be put together in Python, so C cannot return it alone.
        elif made.direct is not None and found.spec is None:
            self.whole -= 1
            other = self._direct or self._not_direct
            self._direct = made.direct.function(direct_calls.ALONE, other, self.names)
        return made

    def _how(self) -> dict[str, bool]:
        """How native code is made now."""
        return {"native": self.native, "whole": self.whole > 0}

    def _first(self, method: str, direct: DirectCalls, form: int, more: Sequence[Any]) -> None:
        """Let calls of a method go to C first, which passes on what is not of the kinds that it takes."""
        self.whole -= 1
        other = getattr(self, method)
        # A subclass with a method of its own wants every call.
        if getattr(type(self), method) is getattr(CompiledFunction, method):
            self.__dict__[method] = direct.function(form, other, self.names, more)

    def _differentiated(self, given: list[Any]) -> list[str]:
        return [
            n
            for n, a in zip(self.names, given, strict=True)
            if n in self.wrt and a.dtype.kind in "fc"
        ]

    def _run(self, given: list[Any], gradients: bool, tensors: bool) -> tuple[Any, ...]:
        # Errors that only numbers show (a singular matrix, an index out of bounds) come without a place
        # from compiled code. The tape runs the program again and fails with PyTorch's words at the right
        # place.
        plan = self._plan(given, gradients)
        if type(plan) is not CompiledProgram:
            return self._tape(given, gradients, tensors)
        try:
            values: tuple[Any, ...] = plan.run(*given)
        except OPERATION_ERRORS:  # the tape's words, and where in the program they belong
            return self._tape(given, gradients, tensors)
        spec = plan.trace.spec
        return values if spec is None else (pytrees.unflatten(values, spec),)

    def _compare(self, given: list[Any], value: Any) -> None:
        """Raise ValueError where a function means something else on NumPy's arrays than on tensors.

        `x.std()` divides by n of an array and by n - 1 of a tensor. Both are looked at once for each set of
        small arrays, where the function takes NumPy's at all.
        """
        key = self._signature(given, False)
        if not self.is_python or key in self._alike:
            return
        self._alike.add(key)
        if sum([a.size for a in given]) > numpy_meaning.MOST:
            return
        values = dict(zip(self.names, given, strict=True))
        try:
            numpy_meaning.refuse_other(self.given, (), values, value, self.title)
        except ValueError:
            self._begin_anew(self.function)  # no plan may answer in its place
            raise

    def _watched(self, tensors: bool) -> Any:
        """A context in which no number leaves the graph: of a program in gradcli's language none can."""
        if not self.is_python:
            return contextlib.nullcontext()
        return modes.no_number_may_leave(of_arrays=not tensors)

    def _compare_before(self, given: list[Any]) -> None:
        """As `_compare`, of a function whose value nobody asked for."""
        if self.is_python and self._signature(given, False) not in self._alike:
            names = self._differentiated(given)
            points = {
                n: wrap(np.array(a)[()], n in names) for n, a in zip(self.names, given, strict=True)
            }
            with self._watched(False):
                value = self.function(**points)
            self._compare(given, _mapped(lambda v: v.array if isinstance(v, Tensor) else v, value))

    def _tape(self, given: list[Any], gradients: bool, tensors: bool) -> tuple[Any, ...]:
        names = self._differentiated(given) if gradients else []
        # A function of Python's may write into what it is given.
        copied = [np.array(a)[()] if self.is_python and a.shape else a for a in given]
        variables = {n: wrap(a, n in names) for n, a in zip(self.names, copied, strict=True)}
        # A program in gradcli's language has no functions that make numbers but those it asks for.
        watched = gradients and self.is_python
        try:
            with self._watched(tensors) if gradients else contextlib.nullcontext():
                result = self.function(**variables)
        except (*OPERATION_ERRORS, AttributeError) as error:
            said = habit(error) or self._may_be_static(a.dtype.char for a in given)
            if self.is_python and said:
                error.add_note(f"hint: {said}")
            raise
        if watched and type(result) in (int, float):  # a branch that depends on nothing: max(x, 0)
            return (np.float64(result), *[None] * len(names))
        if not gradients:
            return (_mapped(lambda v: v.array if isinstance(v, Tensor) else v, result),)
        try:
            if not isinstance(result, Tensor):
                from gradcli.engine.core.errors import NoTensorError

                raise NoTensorError(f"a {type(result).__name__}")
            if result.requires_grad:
                result.backward()
        except OPERATION_ERRORS as error:
            if self.program is None:
                raise
            raise _placed(error, self.program) from error
        grads = [variables[n]._grad for n in names]
        return (result.array, *[None if g is None else g.array for g in grads])


class _Form(NamedTuple):
    """A function for arguments of one form.

    function: of the leaves. parts: of what is differentiated by, (name, form, leaves before it).
    """

    function: CompiledFunction
    parts: list[tuple[str, Any, int]]

    def value_and_grad(self, leaves: list[Any]) -> tuple[Any, dict[str, Any]]:
        """(the value, the gradients by variable, nested as it is); None for what has no gradient."""
        value, found = self.function.value_and_grad(*leaves)
        every = [
            _zeros(v) if n in found and found[n] is None else found.get(n)
            for n, v in zip(self.function.names, leaves, strict=True)
        ]
        gradients = Gradients()
        for name, form, before in self.parts:
            part = every[before : before + nested_arguments.count(form)]
            if any(g is not None for g in part):
                gradients[name] = nested_arguments.filled(form, iter(part))
        return value, gradients


def _place(forms: dict[str, Any], path: str) -> tuple[Any, int]:
    """(the form of what a path names, how many leaves come before it)."""
    top = path.partition(".")[0]
    names = list(forms)
    before = sum(nested_arguments.count(forms[n]) for n in names[: names.index(top)])
    try:
        form, more = nested_arguments.part_of(forms[top], top, path)
    except KeyError:
        raise ValueError(f"wrt: there is no {path!r} in the argument {top!r}") from None
    return form, before + more


def _zeros(point: Any) -> Any:
    """The gradient by a variable on which nothing depends."""
    array = point.array if isinstance(point, Tensor) else np.asarray(point)
    zeros = np.zeros(array.shape, array.dtype if array.dtype.kind in "fc" else np.float64)[()]
    return wrap(zeros) if isinstance(point, Tensor) else zeros


def _placed(error: Exception, program: Program) -> Exception:
    """An error of the engine about a program's value, located at the program's last expression."""
    from gradcli.engine.core import errors
    from gradcli.language.located_errors import error_at

    several = isinstance(error, (errors.NotScalarError, errors.NotRealError))
    hint = "reduce the value, as in sum(…) or mean(…)" if several else None
    return error_at(error, source=program.source, span=program.value_span, hint=hint)


def _is_followed(value: Any) -> bool:
    """Whether an argument is a tensor that others follow: recorded, traced, batched, or with a tangent."""
    if not isinstance(value, Tensor):
        return False
    recorded = value.node is not None and modes.is_grad_enabled()
    if recorded or value._tangents_at_work():
        return True
    return isinstance(value.array, Numberless) or not isinstance(value.array, ARRAYS)


def _number(value: float, beside: dict[str, Any]) -> Any:
    """A Python float as an array: a double, but beside arrays of single precision of the default dtype."""
    for other in beside.values():
        array = other.array if other.__class__ is Tensor else other
        if getattr(array, "dtype", None) == np.float32:
            return as_array(value)
    return np.float64(value)


def _numbers(value: Any, beside: dict[str, Any]) -> Any:
    """A list of numbers as an array: doubles, but of the default dtype beside single precision."""
    found = np.asarray(value)
    double = _number(0.0, beside).dtype.char == "d"
    return found if double or found.dtype.char not in "dD" else as_array(value)


def as_array(value: Any) -> Any:
    """A value as an array; Python numbers get the default dtype."""
    if isinstance(value, Tensor):
        return value.array
    made = np.asarray(value)
    if made.dtype.kind in "fc":  # Python numbers take the default dtype, as in `tensor(...)`
        default = dtypes.default
        made = made.astype(default.complex if made.dtype.kind == "c" else default.real)
    return made


def _result(value: Any, tensors: bool) -> Any:
    if not tensors:
        return value
    return _mapped(lambda v: wrap(v) if isinstance(v, (np.ndarray, np.generic)) else v, value)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to the leaves of nested tuples, lists and dicts."""
    leaves, spec = pytrees.flatten(value)
    return pytrees.unflatten(map(function, leaves), spec)


def compile(
    program: str | Callable[..., Any],
    *,
    wrt: Iterable[str] | None = None,
    static: str | Iterable[str] = (),
    threads: int | None = None,
    memory: str | None = None,
    native: bool = False,
    kind: type[CompiledFunction] = CompiledFunction,
) -> Any:
    """Compile a program, or a Python function of tensors, once for each set of shapes and dtypes.

    `f(x=..., w=...)` gives the value, `f.value_and_grad(...)` (value, gradients by name), and `print(f)`
    shows the compiled programs made so far. Small arrays run as straight-line NumPy; large ones block by
    block, forward and backward in one sweep, on up to `threads` threads (default: the cores), with the
    same bits as the tape. The memory of large results that the caller drops is used again. A Python
    function must be pure: it runs once, when it is traced.

    Arguments of a Python function may be dicts, lists, tuples and dataclasses of arrays, nested as they
    like; gradients are nested as the arguments are. Strings, bools, None and functions are constants: it is
    compiled for each of their values.

    wrt: the variables to differentiate by (default: all, of a function those without a default); a part of a
    nested one is named by its place, `params.w`. static: further parameters that are constants, such as a
    number of steps. memory: "low" recomputes intermediates instead
    of keeping them for the gradient. native: run as C, compiled once by the machine's compiler (`CC`, else
    cc) with its vector functions, which are up to 4 units in the last place off. A program of numbers and
    small arrays is one C function for these shapes (of the first 8), larger arrays go through loops for
    all sizes; what has no C form (`print(f)` says so), and everything where there is no compiler (a
    warning says so), runs as without. Raises ValueError for any other `memory`.
    """
    wrt = wrt if wrt is None or isinstance(wrt, str) else list(wrt)
    static = static if isinstance(static, str) else list(static)
    how: dict[str, Any] = {"wrt": wrt, "threads": threads, "memory": memory, "native": native}
    made = program, {**how, "static": static, "kind": kind}
    if callable(program):
        title = getattr(program, "__name__", "function")
        own = Parameters(program, title, [static] if isinstance(static, str) else list(static))
        given = _by_position(program, own.names) if own.in_order else program
        compiled = kind(given, own.names, title, parameters=own, **how)
        compiled.made = made
        return compiled
    from gradcli import language
    from gradcli.language.option_values import widest

    parsed = language.parse(program)

    def function(**variables: Any) -> Any:
        # A traced program would print once, and then never again.
        if not _SPOKEN.isdisjoint(parsed.words) and any(
            type(v.array) not in (np.ndarray,) and not isinstance(v.array, np.generic)
            for v in variables.values()
        ):
            raise Untraceable("the program prints")
        with dtypes.as_default(widest(variables.values())):
            return language.run(parsed, variables).value

    names = parsed.free_variables()
    found = kind(function, names, program, **how)
    found.program, found.made = parsed, made
    return found


def _made(program: Any, how: dict[str, Any]) -> Any:
    """A compiled function, made anew in another process."""
    return compile(program, **how)


def _named(module: str, name: str) -> Any:
    """What a module calls by a name."""
    return attrgetter(name)(import_module(module))


def _by_position(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """A function of variables by name that passes them by position, as `func.grad(f)` wants them."""
    return lambda **variables: function(*[variables[name] for name in names])


__all__ = ["CompiledFunction", "CompiledProgram", "compile"]

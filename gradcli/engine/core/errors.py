"""The errors of the engine that have a name: whoever handles one asks for its class, never for its words.

Each has PyTorch's message, verbatim, and is of the class that PyTorch raises, so that a user's own
`except RuntimeError` catches it. Its fields are the facts that a remedy needs. This module is imported
where an error is raised or handled, so that it costs nothing where all goes well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from gradcli.engine.system import GradcliError

Shape = Sequence[int]
# What to do about an error, for who writes a program of tensors; the package attaches it.
remedy_of: Callable[[EngineError], str | None] | None = None


class EngineError(GradcliError):
    """What all errors here have in common.

    A class shows itself under the name of the class that PyTorch raises, as in `RuntimeError: grad can
    be …`; `kind` is the name that it has here. Its note, which a traceback prints below it, is what to do.
    """

    kind = "EngineError"
    _noted: list[str] | None = None

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        if self._noted is None:
            said = None if remedy_of is None else remedy_of(self)
            self._noted = [] if said is None else [f"hint: {said}"]
        return self._noted

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = cls.__name__
        shown = next((c for c in cls.__mro__ if c.__module__ == "builtins"), cls)
        if shown is not Exception:
            cls.__name__ = cls.__qualname__ = shown.__name__
            cls.__module__ = "builtins"

    def __new__(cls, *given: Any, **named: Any) -> Self:
        made = super().__new__(cls, *given)
        made._given = given, named
        return made

    _given: tuple[tuple[Any, ...], dict[str, Any]]

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.kind, *self._given)


def _made(kind: str, given: tuple[Any, ...], named: dict[str, Any]) -> EngineError:
    """An error of a kind, made anew in another process."""
    found: EngineError = globals()[kind](*given, **named)
    return found


# -- the backward pass ----------------------------------------------------------------------------
class NotScalarError(EngineError, RuntimeError):
    """A backward pass was to start from a value of several elements, without a seed.

    shape: the value's.
    """

    def __init__(self, shape: Shape = ()) -> None:
        super().__init__("grad can be implicitly created only for scalar outputs")
        self.shape = tuple(shape)


class NotRealError(EngineError, RuntimeError):
    """A backward pass was to start from a complex or integer number, without a seed.

    dtype: the value's, as PyTorch names it; None where it is not known.
    """

    def __init__(self, dtype: object = None) -> None:
        but = "" if dtype is None else f" but got {dtype}"
        super().__init__(f"grad can be implicitly created only for real scalar outputs{but}")
        self.dtype = None if dtype is None else str(dtype)


class NoGradientError(EngineError, RuntimeError):
    """A backward pass was to start from a tensor without a graph. index: which of several tensors."""

    def __init__(self, index: int = 0) -> None:
        super().__init__(
            f"element {index} of tensors does not require grad and does not have a grad_fn"
        )
        self.index = index


class SeedShapeError(EngineError, RuntimeError):
    """A seed has another shape than the value. index: of the value; shape: the value's; given: the seed's."""

    def __init__(self, index: int, given: Shape, shape: Shape) -> None:
        super().__init__(
            f"Mismatch in shape: grad_output[{index}] has a shape of {given} and output[{index}] "
            f"has a shape of {shape}."
        )
        self.index, self.given, self.shape = index, tuple(given), tuple(shape)


class NoTensorError(EngineError, TypeError):
    """A value that should be differentiated is no tensor. what: it is, with its article."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the value is {what}, not a tensor: there is no gradient")
        self.what = what


# Why no backward pass can start from a value, whatever numbers the variables have.
NO_BACKWARD = (NotScalarError, NotRealError, NoGradientError, NoTensorError)


class GraphFreedError(EngineError, RuntimeError):
    """What a node had saved was freed by an earlier backward pass."""


class NoRuleError(EngineError, NotImplementedError):
    """A node has no derivative by one of its inputs. name: as in `igamma: input`."""

    def __init__(self, name: str = "") -> None:
        super().__init__(f"the derivative for '{name}' is not implemented.")
        self.name = name


class StaleTensorError(EngineError, RuntimeError):
    """A saved tensor was written in place since. version, expected: how often it was, and had been."""

    def __init__(
        self, message: str, shape: Shape = (), version: int = 0, expected: int = 0
    ) -> None:
        super().__init__(message)
        self.shape, self.version, self.expected = tuple(shape), version, expected


class LeafWriteError(EngineError, RuntimeError):
    """A leaf that requires grad was to be written in place."""


class ArgumentWriteError(LeafWriteError):
    """A function of NumPy's arrays that is differentiated wrote into its argument."""


class NotDifferentiableDtypeError(EngineError, RuntimeError):
    """An integer or boolean tensor was to require grad."""


class TransformInputError(EngineError, ValueError):
    """A transform was given something to differentiate by, or to map over, that is no tensor."""


class TransformVectorError(EngineError, RuntimeError):
    """Forward mode was given a point or a direction that is no tensor."""


class NoNumpyError(EngineError, RuntimeError):
    """A tensor that requires grad was to become an array of NumPy's, which forgets the graph.

    function: the one of NumPy's that wanted it, as it is called there: `linalg.norm`.
    """

    def __init__(self, function: str = "") -> None:
        self.function = function
        super().__init__(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )


class NegativeStepError(EngineError, ValueError):
    """A slice with a negative step, which NumPy's arrays have and tensors have not."""

    def __init__(self) -> None:
        super().__init__("step must be greater than zero")


class LeftGraphError(EngineError, RuntimeError):
    """A tensor that is differentiated became a number of Python's, and the gradient would lack a term.

    place: file and line. line: what stands there. how: "float", "item" or "tolist". PyTorch warns only.
    """

    def __init__(self, place: str, line: str, how: str = "float") -> None:
        self.place, self.line, self.how = place, line, how
        said = f": {line}" if line else ""
        super().__init__(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior: "
            f"the gradient would lack what the number does ({place}{said})"
        )


class ReturnedTypeError(EngineError, RuntimeError):
    """A function to be differentiated returned something that is no tensor."""


class LayerInputError(EngineError, TypeError):
    """A layer was called with an array of NumPy's."""


class NotScalarResultError(EngineError, RuntimeError):
    """A function of which a gradient is asked returned a tensor with dimensions."""

    def __init__(self, call: str, ndim: int) -> None:
        self.ndim = ndim
        super().__init__(
            f"{call}: Expected f(*args) to return a scalar Tensor, got tensor with {ndim} dims. Maybe you "
            "wanted to use the vjp or jacrev APIs instead?"
        )


# -- shapes ---------------------------------------------------------------------------------------
class BroadcastError(EngineError, RuntimeError):
    """Two shapes do not broadcast. sizes: the two that differ; dimension: where, in the longer shape."""

    def __init__(self, sizes: tuple[int, int], dimension: int) -> None:
        super().__init__(
            f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({sizes[1]}) at "
            f"non-singleton dimension {dimension}"
        )
        self.sizes, self.dimension = sizes, dimension


class ProductShapesError(EngineError, RuntimeError):
    """Two matrices, or a matrix and a vector, have no product."""


class VectorsExpectedError(EngineError, RuntimeError):
    """A product of vectors was given something else. ndims: of the operands."""

    def __init__(self, ndims: tuple[int, int]) -> None:
        super().__init__(f"1D tensors expected, but got {ndims[0]}D and {ndims[1]}D tensors")
        self.ndims = ndims


class VectorLengthsError(EngineError, RuntimeError):
    """Two vectors of a product differ in length. sizes: of the two."""

    def __init__(self, sizes: tuple[int, int]) -> None:
        a, b = sizes
        super().__init__(
            f"inconsistent tensor size, expected tensor [{a}] and src [{b}] to have the "
            f"same number of elements, but got {a} and {b} elements respectively"
        )
        self.sizes = sizes


class DimensionRangeError(EngineError, IndexError):
    """There is no such dimension. dim: which; ndim: how many there are, at least one."""

    def __init__(self, dim: int, ndim: int) -> None:
        super().__init__(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
        )
        self.dim, self.ndim = dim, ndim


# -- values ---------------------------------------------------------------------------------------
class AmbiguousTruthError(EngineError, RuntimeError):
    """A tensor of several elements, or of none, was asked whether it is true. size: how many it has."""

    def __init__(self, size: int) -> None:
        few = "no values" if size == 0 else "more than one value"
        super().__init__(f"Boolean value of Tensor with {few} is ambiguous")
        self.size = size


class BatchedBranchError(EngineError, RuntimeError):
    """An entry of a batch was asked whether it is true: `if x > 0` inside of `vmap`."""


class IntegersExpectedError(EngineError):
    """An index or a class is of floats. position: of the argument, from 0; None: not known."""

    position: int | None = None


class IntegerIndexError(IntegersExpectedError, IndexError):
    """A subscript is a tensor of floats."""


class IntegerOperandError(IntegersExpectedError, RuntimeError):
    """An operator's index or class is a tensor of floats."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


def named(error: BaseException | None) -> EngineError | None:
    """The named error behind an error: itself, or what it was raised from; None if there is none."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, EngineError):
            return error
        seen.add(id(error))
        error = error.__cause__
    return None

"""What to do about an error of the engine: one table, by the error's class and by who meets it.

A reader of four kinds may meet an error: who wrote a program that calls `backward` itself, who typed a
command that runs the backward pass, who calls `gradcli.grad(…)` from Python, and who writes Python with
tensors. A text may name fields of the error: `{shape}`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from gradcli.engine.core import errors

Reader = Literal["program", "command", "python", "tensors"]

_SIZES = (
    "sizes are compared from the last dimension on, and must be equal or 1; "
    "`unsqueeze`, `reshape` and `T` change a shape"
)
_LOGIC = "use `.all()` or `.any()`; combine masks with `&`, `|`, `~` instead of `and`, `or`, `not`"
_COLUMNS = "the left side needs as many columns as the right side has rows; `x.T` transposes"


class Remedy(NamedTuple):
    """What each of them is told; None: nothing. tensors: where it is not what a program is told."""

    program: str | None
    command: str | None = None
    python: str | None = None
    tensors: str | None = None


def _same(text: str) -> Remedy:
    return Remedy(text, text, text)


_NUMBERS = (
    "`grad`, `vjp` and `jacrev` differentiate by tensors, not by Python's numbers: "
    "`tensor(3.0)` for `3`"
)
_NO_TENSOR = Remedy(
    *(_NUMBERS, _NUMBERS, _NUMBERS),
    tensors="make a tensor of it: torch.tensor(x), or torch.from_numpy(x) of a NumPy array; "
    'gradcli.grad("x**2", x=3) takes an expression, and numbers and arrays as they are',
)

REMEDIES: dict[type[Exception], Remedy] = {
    errors.NotScalarError: Remedy(
        "give backward a gradient of the same shape, or reduce first: `.sum().backward()`",
        "the value has shape {shape}: reduce it, as in sum(…) or mean(…), or say with --seed how much "
        "each element counts (--seed ones)",
        "reduce the value, as in sum(…) or mean(…), or pass seed= (ones of its shape)",
    ),
    errors.NotRealError: Remedy(
        None,
        "take a real number of it, as in (…).real, or say --seed 1",
        "take a real number of it, as in (…).real, or pass seed=1",
    ),
    errors.NoGradientError: Remedy(
        "no variable that this was computed from requires grad",
        None,  # what is said depends on the options (see `commands/request_evaluation.py`)
        "no variable reaches the value: detached, or unused?",
    ),
    errors.SeedShapeError: Remedy(
        None,
        "--seed must have the value's shape, {shape}; `--seed ones` always fits",
        "seed= must have the value's shape",
    ),
    errors.GraphFreedError: Remedy(
        "keep the graph with `backward(retain_graph=True)`, or compute the result anew",
        "the expression has freed the graph; write backward(retain_graph=True) in it",
    ),
    errors.StaleTensorError: _same("write `x = x*2` instead of `x *= 2`, or work on `x.clone()`"),
    errors.LeafWriteError: _same("put it under `with no_grad():`"),
    errors.NotDifferentiableDtypeError: _same("give it a `dtype`, such as `float64`"),
    errors.TransformInputError: _NO_TENSOR,
    errors.TransformVectorError: _NO_TENSOR,
    errors.NoNumpyError: Remedy(
        None,
        tensors="NumPy's functions leave the graph: call the tensor's own in a function that is "
        "differentiated, torch.dot for np.dot",
    ),
    errors.ReturnedTypeError: Remedy(
        None,
        tensors="return the tensor itself: .item() and float() leave the graph",
    ),
    errors.LayerInputError: Remedy(
        None,
        tensors="torch.from_numpy(x) is the array as a tensor; .float() makes it single precision",
    ),
    errors.BroadcastError: _same(_SIZES),
    errors.ProductShapesError: _same(_COLUMNS),
    errors.VectorsExpectedError: _same("for matrices use `@`; for all elements `(a*b).sum()`"),
    errors.VectorLengthsError: _same("give both vectors the same length"),
    errors.AmbiguousTruthError: _same(_LOGIC),
    errors.BatchedBranchError: _same(
        "all entries take one way: write `where(condition, a, b)` instead of a branch (that tracker is "
        "PyTorch's, not gradcli's)"
    ),
}


# NumPy's functions that have a counterpart of another name, or of other options.
_COUNTERPARTS = {
    "dot": "`a @ b`, or torch.dot(a, b) of two vectors",
    "var": "torch.var(x, correction=ddof); NumPy's ddof is 0 where none is given",
    "std": "torch.std(x, correction=ddof); NumPy's ddof is 0 where none is given",
    "inner": "`a @ b` of two vectors",
    "tensordot": "torch.einsum",
    "convolve": "torch.nn.functional.conv1d",
    "trapezoid": "torch.trapezoid",
    "interp": "torch.searchsorted, and a line between two neighbours",
}


def _outside(function: str) -> str:
    """What to write in place of a function of NumPy's."""
    from gradcli.engine.registry import table

    other = _COUNTERPARTS.get(function)
    if other is None:
        table.load()
        other = f"torch.{function}" if function in table.FUNCTIONS else "functions of torch"
    return f"np.{function} leaves the graph: write {other}"


def remedy(error: BaseException | None, reader: Reader) -> str | None:
    """The remedy for the engine's error behind an error; None if the table has none."""
    found = errors.named(error)
    # An error that refines another has the other's remedy, unless the table has one of its own.
    row = next((REMEDIES[c] for c in type(found).__mro__ if c in REMEDIES), None)
    text: str | None = None if row is None else getattr(row, reader)
    if reader == "tensors" and row is not None and text is None:
        text = row.program
    if isinstance(found, errors.NoNumpyError) and found.function:
        return _outside(found.function)
    return text if text is None else text.format(**vars(found))

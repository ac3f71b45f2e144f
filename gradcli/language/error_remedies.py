"""What to do about an error of the engine: one table, by the error's class and by who meets it.

A reader of four kinds may meet an error: who wrote a program that calls `backward` itself, who typed a
command that runs the backward pass, who calls `gradcli.grad(…)` from Python, and who writes Python with
tensors. A text may name fields of the error: `{shape}`.
"""

from __future__ import annotations

import re
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
    errors.ArgumentWriteError: _same("write into a copy of the argument: `x = x.copy()`"),
    errors.LeafWriteError: _same("put it under `with no_grad():`"),
    errors.NotDifferentiableDtypeError: _same("give it a `dtype`, such as `float64`"),
    errors.TransformInputError: _NO_TENSOR,
    errors.TransformVectorError: _NO_TENSOR,
    errors.NoNumpyError: Remedy(
        None,
        tensors="np.array([…]) of tensors, and functions of other libraries, leave the graph: write "
        "np.stack([…]), x itself for np.asarray(x), and torch.logsumexp for scipy.special.logsumexp",
    ),
    errors.NegativeStepError: _same(
        "`flip(x, (0,))` turns a tensor round, as x[::-1] does an array"
    ),
    errors.NotScalarResultError: Remedy(
        None,
        tensors="sum the values up, or take all their slopes by gradcli.jacobian(f), and those of a function "
        "of numbers at each element by gradcli.vmap(gradcli.grad(f))",
    ),
    errors.LeftGraphError: Remedy(
        None,
        tensors="NumPy's and torch's functions work on tensors, Python's math, float() and .item() make "
        "numbers; x.detach() is a constant on purpose",
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

    if function.startswith("scipy."):
        name = function.rpartition(".")[2]
        other = _OF_SCIPY.get(name)
        return f"{function} leaves the graph: " + (
            f"write {other}" if other else "it has no slope here"
        )
    other = _COUNTERPARTS.get(function)
    if other is None:
        table.load()
        other = f"torch.{function}" if function in table.FUNCTIONS else "functions of torch"
    return f"np.{function} leaves the graph: write {other}"


_OF_MATH = re.compile(r"\bmath\.(\w+)\(")
# Python's math has names of its own.
_IN_NUMPY = {"fabs": "abs", "pow": "power", "fsum": "sum", "dist": "linalg.norm", "gamma": ""}
_IN_NUMPY |= {
    "erf": "",
    "erfc": "",
    "lgamma": "",
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
}
_IN_NUMPY |= {"atan2": "arctan2", "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh"}
_WRITTEN = re.compile(r"(?:^|[:;])\s*(\w+)\[[^=]*\]\s*[-+*/]?=[^=]")
# Without `np.` in front: `scipy.linalg.expm(`, `expm(`.
_OF_SCIPY_CALL = re.compile(r"(?<!np\.linalg\.)(?<!np\.fft\.)(?<!np\.)\b([a-zA-Z]\w+)\(")
_OF_LIST = re.compile(r"\b(np\.\w+)\(\[")
_OF_DTYPE = re.compile(r"\b(np\.as\w*array|np\.array)\(")


def _in_place_of(line: str) -> str:
    """What to write in place of a line that makes a number of a tensor; '' if it is not known."""
    if found := _OF_MATH.search(line):
        name = found[1]
        other = _IN_NUMPY.get(name, name)
        there = f"np.{other}" if other else f"torch.special.{_SPECIAL.get(name, name)}"
        return f"math.{name} makes a number without a gradient: write {there}"
    if (found := _OF_SCIPY_CALL.search(line)) and found[1] in _OF_SCIPY:
        return f"{found[1]} of SciPy takes numbers alone: write {_OF_SCIPY[found[1]]}"
    if found := _WRITTEN.search(line):
        return (
            f"an array of NumPy's takes the number alone: make {found[1]} by np.zeros_like(x), or put the "
            "elements together by np.stack([…])"
        )
    if found := _OF_DTYPE.search(line):
        return f"leave out the dtype, {found[1]}(x), or write x.astype(float)"
    if found := _OF_LIST.search(line):
        return f"{found[1]} of a list takes the numbers alone: write {found[1]}(np.stack([…]))"
    if "float(" in line or "int(" in line:
        return "leave out float(), or write float(x.detach()) where a constant is meant"
    return ""


# SciPy's functions, which take numbers alone, and what takes what is differentiated.
_OF_SCIPY = {
    **{n: f"np.linalg.{n}(…)" for n in "solve inv det cholesky eigh svd qr pinv lstsq".split()},
    **dict.fromkeys(
        ["solve_triangular", "cho_factor", "cho_solve", "lu_factor", "lu_solve"],
        "np.linalg.solve(A, b)",
    ),
    "expm": "gradcli.linalg.matrix_exp(A)",
    "logsumexp": "gradcli.logsumexp(x, 0)",
    "softmax": "gradcli.softmax(x, 0)",
    "log_softmax": "gradcli.log_softmax(x, 0)",
    "polygamma": "gradcli.special.polygamma(n, x)",
    "pdf": "the formula of the density; np.exp(-x**2/2)/np.sqrt(2*np.pi) is the normal one's",
    "logpdf": "the formula of the density; -x**2/2 - np.log(2*np.pi)/2 is the normal one's",
    "logpmf": "the formula; k*np.log(x) - x - scipy.special.gammaln(k + 1) is that of Poisson",
    "cdf": "the formula; scipy.special.ndtr(x) is the normal one's",
    **{n: f"np.fft.{n}(x)" for n in "fft ifft rfft irfft fft2 fftn".split()},
    "fftconvolve": "np.convolve(a, b)",
    "cdist": "gradcli.cdist(a, b)",
    "interp1d": "np.interp(x, xp, fp)",
    "CubicSpline": "np.interp(x, xp, fp), which joins points by lines",
    "quad": "a sum over t, w = np.polynomial.legendre.leggauss(50), whose interval is from -1 to 1",
    **dict.fromkeys(["solve_ivp", "odeint"], "steps of the differential equation as a loop"),
    **dict.fromkeys(
        ["brentq", "fsolve", "root", "root_scalar", "newton"],
        "steps of Newton's as a loop",
    ),
}


def of_library(error: BaseException) -> str | None:
    """What to write in place of a call of SciPy's, or of an array of objects, that an error came from."""
    within: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame
        if code.f_globals.get("__name__", "").startswith("scipy."):
            within.append(code.f_code.co_name)
        elif within and not code.f_globals.get("__name__", "").startswith("numpy."):
            within.clear()  # a function of the user's that SciPy calls
        trace = trace.tb_next
    if "__matmul__" in within or "__rmatmul__" in within:
        return "a sparse matrix of SciPy takes numbers alone: write A.toarray() @ x"
    if known := next((n for n in within if n in _OF_SCIPY), None):
        return f"{known} of SciPy takes numbers alone: write {_OF_SCIPY[known]}"
    if within:
        name = "this" if within[0].startswith("_") else within[0]
        return f"{name} of SciPy takes numbers alone, and what is differentiated is none"
    if isinstance(error, TypeError) and "loop of ufunc does not support" in f"{error}":
        return "np.array([…]) of these holds objects: write np.stack([…])"  # NumPy's words
    return None


# What is an attribute of NumPy's arrays, and not of tensors.
_OF_ARRAYS = {
    "astype": "x.to(torch.float64)",
    "copy": "x.clone()",
    "fill": "torch.full_like(x, value)",
    "tobytes": "x.detach().numpy().tobytes()",
    "itemset": "np.where(mask, value, x)",
    "searchsorted": "torch.searchsorted(x, values)",
    "trace": "np.trace(x)",
    "ptp": "np.ptp(x)",
}


def habit(error: Exception) -> str | None:
    """The remedy for what NumPy's arrays can do and tensors cannot; None if it is not that."""
    if isinstance(error, AttributeError) and type(error.obj).__name__ == "Tensor":
        other = _OF_ARRAYS.get(error.name or "")
        return other and f"tensors have no .{error.name}: write {other}"
    if isinstance(error, TypeError) and "'Tensor' and 'method'" in f"{error}":  # Python's words
        return "x.size is a method of tensors: write np.size(x), len(x) or x.numel()"
    return None


_SPECIAL = {"lgamma": "gammaln", "gamma": "gammaln"}


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
    if isinstance(found, errors.LeftGraphError):
        if found.how != "float":
            return (
                f"leave out .{found.how}(), print the array itself, or write x.detach().{found.how}() where "
                "a constant is meant"
            )
        if said := _in_place_of(found.line):
            return said
    return text if text is None else text.format(**vars(found))

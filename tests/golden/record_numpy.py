"""Record what NumPy's functions answer to torch's tensors: `python record_numpy.py` where torch is.

The calls are every public function and ufunc of NumPy's, with whichever arguments of ARGUMENTS it takes as
arrays, each array then a tensor; the methods of ufuncs and of generators of random numbers; and the first of
a function's calls with a tensor that requires grad.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).with_name("numpy.json")
MANY = 8  # calls of a function
MODULES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
# t, u: vectors; m: a positive matrix; s: a number; i, j: integers; b: truths; c: complex; a: an array
# beside a tensor; x: a vector that requires grad.
NUMBERS: dict[str, tuple[Any, str]] = {
    "t": ([3.0, 1.0, 2.0], "float32"),
    "u": ([0.5, 0.25, 0.75], "float32"),
    "m": ([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]], "float64"),
    "s": (2.0, "float32"),
    "i": ([2, 0, 1], "int64"),
    "j": ([1, 3, 2], "int64"),
    "b": ([True, False, True], "bool"),
    "c": ([1 + 2j, 3 - 1j], "complex64"),
    "x": ([3.0, 1.0, 2.0], "float32"),
}
ARGUMENTS = (
    *("t", "m", "i", "b", "c", "s", "t, axis=0", "m, axis=1", "m, axis=(0, 1)", "t, keepdims=True"),
    *(
        "t, u",
        "m, t",
        "t, 2",
        "2, t",
        "i, j",
        "m, m",
        "t, a",
        "a, t",
        "s, t",
        "b, b",
        "t, i",
        "i, 2",
    ),
    *(
        "t, 2, axis=0",
        "m, 0, 1",
        "m, (1, 0)",
        "t, (3, 1)",
        "t, 0.5",
        "t, 0, 1",
        "t, a, a",
        "b, t, u",
    ),
    *(
        "[t, u]",
        "[m, m], axis=1",
        "(t, t)",
        "m, i, 1",
        "t, 0, s",
        "t, i, u",
        "t, bins=2",
        "m, 1, u",
    ),
    *("t, u, t", "t, [b, b], [t, u]", "a, i, t", "a.copy(), t", "'i,i', t, t", "t, out=a.copy()"),
    *(
        "t, t, [[0, 1], [0, 1]]",
        "i, (3, 3)",
        "(i, i), (3, 3)",
        "t, 1, 2",
        "lambda v: v, t",
        "t, [0, 1]",
    ),
    *("lambda v: v.sum(), 0, m", "[m, t]", "t, u, 1", "i, t", "t, dtype='f8'", "t, 'f8'"),
)
# Not about numbers; or what a release of NumPy says, or an address; files; what waits for keys.
_LEFT = frozenset(
    "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile memmap show_config info test "
    "get_include array2string array_repr array_str may_share_memory shares_memory printoptions empty "
    "set_printoptions get_printoptions seterr geterr errstate seterrcall geterrcall setbufsize getbufsize "
    "empty_like in1d trapz nditer ndenumerate from_dlpack frombuffer show_runtime format_parser "
    "typename size ndim".split()
)
_MORE = (
    *(f"np.{f}.{how}" for f in ("add", "multiply", "maximum", "logical_or") for how in (
        "reduce(t)", "reduce(m, axis=1)", "reduce(m, axis=None)", "reduce(m, 0, keepdims=True)",
        "accumulate(t)", "outer(t, u)", "outer(t, a)", "reduceat(t, [0, 1])", "reduce(t, out=a.sum())",
    )),
    *("np.add(t, 1, out=a.copy())", "np.add(t, 1, out=t)", "np.add(a, 1, out=t)", "np.add.at(t, 0, 1)"),
    *("np.add(t, u, where=[True, False, True], out=a.copy())", "np.add(t, 1, dtype='f8')"),
    *(f"np.random.default_rng(0).{c}" for c in (
        "permutation(t)", "choice(t)", "choice(i, 2)", "choice(3, 2, p=u/u.sum())", "normal(t, u)",
        "poisson(t)", "binomial(j, u)", "multivariate_normal(t, m)", "dirichlet(t)", "permuted(t)",
        "multinomial(5, u.double()/u.double().sum())", "uniform(u, t)", "exponential(t)",
    )),
    *(f"np.random.RandomState(0).{c}" for c in ("permutation(t)", "choice(t)", "normal(t, u)")),
    *("np.array(t)", "np.asarray(t, dtype='f8')", "np.array([t, u])", "np.array([s, s])"),
    "np.array(m, 'f4')",
    *("np.asarray(t).dtype", "a[i]", "a[b]", "a[s.long()]", "a.dot(t)", "np.float64(2)*t", "np.float32(2)*s"),
    *("np.float64(2) < t", "t*np.float64(2)", "a.tolist() == t.tolist()", "np.ma.masked_array(t, b)"),
    *("np.poly1d(t)(2)", "np.polynomial.Polynomial(t)(2)", "np.polynomial.polynomial.polyval(2., t)"),
    *("np.vectorize(lambda v: v + 1)(t)", "np.add(x, 1, out=a)", "np.add.reduce(x)", "np.array([x, x])"),
    *("np.asarray(x)", "a[x.long()]", "np.asarray(x.detach())"),
)  # fmt: skip


def spaces(make: Callable[[Any, str], Any]) -> dict[str, Any]:
    """The names of the calls; `make` makes a tensor of numbers."""
    made = {name: make(*given) for name, given in NUMBERS.items()}
    return made | {"np": np, "a": np.array([1.0, 2.0, 3.0])}


def tensors_of(torch: Any) -> dict[str, Any]:
    """The names of the calls for an implementation of torch's."""
    space = spaces(lambda numbers, kind: torch.tensor(numbers, dtype=getattr(torch, kind)))
    space["x"].requires_grad_()
    return space


def calls() -> Iterator[str]:
    """The calls that NumPy takes arrays in."""
    seen: set[int] = set()
    for where, module in MODULES.items():
        for name in sorted(vars(module)):
            function = getattr(module, name)
            if name[0] == "_" or name in _LEFT or isinstance(function, type):
                continue
            if callable(function) and id(function) not in seen:
                seen.add(id(function))
                yield from _of(f"{where}.{name}")
    yield from _MORE


def _of(name: str) -> Iterator[str]:
    taken: list[str] = []
    for arguments in ARGUMENTS:
        call = f"{name}({arguments})"
        if not answer(call, spaces(lambda n, kind: np.array(n, kind))).startswith("!"):
            taken.append(arguments)
    recorded = next((arguments for arguments in taken if "t" in arguments.split(", ")), None)
    for arguments in taken[:MANY]:
        yield f"{name}({arguments})"
    if recorded is not None:
        yield f"{name}({', '.join('x' if p == 't' else p for p in recorded.split(', '))})"


def answer(call: str, space: dict[str, Any]) -> str:
    """What a call gives, by its type, dtype, shape and numbers; after a `!` the error that ends it."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return shown(eval(call, dict(space)))
        except Exception as error:
            return f"! {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def shown(value: Any) -> str:
    """A result in words that do not depend on who made it, or on the last digits."""
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    kind = type(value).__name__
    if kind == "Tensor":
        value = value.detach().numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        numbers = " ".join(map(_digits, np.asarray(value).ravel().tolist()))
        return f"{kind} {value.dtype} {list(value.shape)} {numbers}"
    return f"{kind} {value!r}" if isinstance(value, (bool, int, float, str)) else kind


def _digits(number: Any) -> str:
    if isinstance(number, complex):
        return f"{_digits(number.real)}|{_digits(number.imag)}"
    if not isinstance(number, float):
        return str(number)
    return f"{0.0 if abs(number) < 1e-6 else number:.4g}"


def main() -> None:
    import torch

    found = {call: answer(call, tensors_of(torch)) for call in calls()}
    RECORDED.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    refused = sum(said.startswith("!") for said in found.values())
    print(f"{len(found)} calls, of which torch's tensors are refused in {refused}")


if __name__ == "__main__":
    main()

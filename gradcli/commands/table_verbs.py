"""`map`, `plot` and `jvp` as functions: see `verbs`, whose errors and variables they share."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import numpy as np

from gradcli.commands.verbs import Names, Values, VerbRequest, _warn, by_name, verb
from gradcli.engine.core.tensor import wrap
from gradcli.language import as_tensor
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.language.rewritten_sources import are_relations

__tracebackhide__ = True


@verb
def map(
    source: str,
    table: Any,
    values: Values = None,
    /,
    *,
    wrt: Names = None,
    bad_rows: str = "stop",
    order: int = 1,
    second: str | Iterable[str] = (),
    where: Any = None,
    columns: Mapping[str, Any] | None = None,
    keep_columns: str | Iterable[str] = "none",
    head: int | None = None,
    time_origin: str | None = None,
    as_: str | Iterable[str] | Mapping[str, str] = (),
    **shared: Any,
) -> dict[str, Any]:
    """The value of an expression and its gradients for every row: `map("a*x**2", {"x": [1, 2]}, a=3)`.

    table: columns by name, as a dict, a frame of pandas or polars or a table of Arrow's, or a file's path.
    The variables that are no columns are `values` and keywords, the same in all rows. Returns float64 arrays
    by name: "value" ("value_0" and so on where there are several), and "x.grad" of each column in `wrt` (all;
    `()`: none). Of a tuple, `price, d1`, each item has its gradients: "price", "price.x.grad".

    The rest is as on the command line. bad_rows: "stop" raises LanguageError for a row that is refused, with
    its number; "nan" gives nan there, "skip" leaves it out. order: adds "x.grad2" and so on; second: "x,y"
    adds "value.x.y". where: the rows that are computed, as a condition of columns ("T > 0") or truth values.
    columns: those that variables are, {"x": "x1"} a number, {"x": ["x1", "x2"]} a vector. keep_columns: those
    of the table in the result, "all" or names. head: computes the first rows only. as_: other names, and
    columns that are made of others, {"delta": "S.grad", "theta": "-T.grad/365"}. Dates are days since the
    first row, or since time_origin. For tables larger than memory see `gradcli.compile(source).map`.
    """
    from gradcli.commands.row_verbs import mapped

    if bad_rows not in ("stop", "nan", "skip"):
        raise ValueError(f'bad_rows must be "stop", "nan" or "skip", not {bad_rows!r}')
    called = shared.pop("as", as_)
    return mapped(
        source,
        table,
        by_name(source, values, shared),
        wrt,
        bad_rows=bad_rows,
        order=order,
        second=[second] if isinstance(second, str) else list(second),
        where=where,
        columns=columns,
        keep_columns=keep_columns,
        head=head,
        time_origin=time_origin,
        called=called,
        map=True,
    )


class Drawing:
    """A picture: as text where it is printed, as SVG in a notebook, in a file by `save`."""

    def __init__(self, words: list[str], names: Mapping[str, Any]) -> None:
        self._words, self._names = words, names
        with redirect_stdout(io.StringIO()) as printed:
            self._run(["--color", "never"])
        self._text = printed.getvalue().rstrip("\n")

    def _run(self, words: list[str]) -> None:
        from gradcli.commands.click_commands import run_in_session

        run_in_session("plot", [*self._words, *words], self._names)

    def __repr__(self) -> str:
        return self._text

    def save(self, path: str | os.PathLike[str], *, theme: str = "light") -> None:
        """Write it to FILE.svg, .png or .pdf. Raises LanguageError, where matplotlib is missing, too."""
        with redirect_stderr(io.StringIO()):  # its notes were said
            self._run(["-o", os.fspath(path), "--theme", theme])

    def _repr_svg_(self) -> str | None:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "picture.svg")
            try:
                self.save(path)
            except LanguageError:
                return None
            with open(path, encoding="utf-8") as stream:
                return stream.read()


@verb
def plot(
    source: str,
    values: Values = None,
    /,
    *,
    order: int = 1,
    at: Any = None,
    surface: bool = False,
    **variables: Any,
) -> Drawing:
    """A function and its derivatives as curves, or as contours: `plot("x*sin(x)", x=(-10, 10))`.

    A variable whose value is a tuple of two numbers runs from one to the other; of two such there are
    contours, or a `surface`, and of an equation, `x**2 + y**2 == 1`, its curve. order: the highest derivative
    drawn. at: where to draw the tangent. `print(plot(…))` draws with characters, a notebook shows SVG,
    `.save("curve.svg")` writes a file.
    Raises LanguageError.
    """
    given = by_name(source, values, variables)
    call = VerbRequest(source, None, {n: v for n, v in given.items() if not _is_range(v)})
    words = [source, "--order", str(order)]
    for name, value in given.items():
        if name not in call.tensors and name not in call.loaded and name not in call.open:
            raise LanguageError(f"{name} is not a variable of {source!r}", kind="name")
        if _is_range(value):
            words += [f"--{name}={value[0]!r}:{value[1]!r}"]
    running = {n: (-10, 10) for n in call.open if n not in given}
    if any(are_relations(source)):  # the command finds the ranges of an equation, and says them
        call.open, running = [], {}
        if not any(_is_range(value) for value in given.values()):
            words += [] if at is None else [f"--at={at}"]
            return Drawing(words, {**call.loaded, **call.tensors})
    for name, (low, high) in running.items():
        warnings.warn(
            f"{name} goes from {low} to {high}; another range: {name}=(FROM, TO)", stacklevel=3
        )
        words += [f"--{name}={low}:{high}"]
    running |= {n: v for n, v in given.items() if _is_range(v)}
    if not running or len(running) > 2:
        raise LanguageError(
            f"{len(running)} variables have a range: draw over one or two",
            kind="usage",
            hint="a range is a tuple, x=(-10, 10), and a value a number, x=1",
        )
    for name, (low, high) in running.items():
        if not low < high:
            raise LanguageError(f"{name}: the range from {low} to {high} is empty", kind="value")
    words += [] if at is None else [f"--at={at}"]
    words += ["--surface"] if surface else []
    return Drawing(words, {**call.loaded, **call.tensors})


def _is_range(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


@verb
def jvp(
    source: str, values: Values = None, /, *, vector: Any = None, **variables: Any
) -> tuple[Any, Any]:
    """(the value of an expression, its derivative along a direction): `jvp("x**2", x=[1, 2], vector=[1, 0])`.

    vector: of the shape of the one variable, or a dict by name; a variable that is not in it stays. Raises
    LanguageError.
    """
    from gradcli.transforms import removable

    call = VerbRequest(source, values, variables)
    call.leaves()
    along = vector if isinstance(vector, Mapping) else dict.fromkeys(call.wanted, vector)
    if vector is None or (not isinstance(vector, Mapping) and len(along) != 1):
        raise LanguageError(
            f"along which direction of {', '.join(call.wanted)}?",
            kind="usage",
            hint="pass vector={NAME: VALUE, …}",
        )
    vectors = {}
    for name, direction in along.items():
        if name not in call.wanted:
            raise LanguageError(f"{name} is not a variable of {source!r}", kind="name")
        of = call.tensors[name].detach()
        made = as_tensor(direction, of.dtype).detach()
        if made.shape != of.shape:
            raise LanguageError(
                f"vector: {name} has shape {tuple(of.shape)}, the direction {tuple(made.shape)}",
                kind="value",
            )
        vectors[name] = made
    tensors = {n: t.detach() for n, t in call.tensors.items()}
    try:
        (value, found), remarks = removable.jvp(call.program, tensors, vectors, call.loaded)
    except OPERATION_ERRORS as error:
        raise call.error_for(error) from error
    _warn(remarks)
    arrays = [getattr(part, "array", part) for part in (value, found)]
    return wrap(np.asarray(arrays[0])[()]), wrap(np.asarray(arrays[1])[()])


__all__ = ["Drawing", "jvp", "map", "plot"]

"""Results as arrays: one number a line, a table, or a file. What does not fit is refused, in words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from gradcli.commands import output
from gradcli.commands.command_errors import usage, without_name
from gradcli.commands.plots import FORMATS, MISSING, ending
from gradcli.language.located_errors import kind_of

BLOCK = 1 << 16  # numbers that are text at a time
TABLES = ("csv", "parquet", "feather")
ENDINGS = {".npy": "npy", ".npz": "npz"} | {f".{form}": form for form in (*TABLES, *FORMATS)}
Result = tuple[str | None, Any]


def form_of(path: str) -> str:
    """The form that the ending of -o FILE asks for."""
    form = ENDINGS.get(os.path.splitext(path.lower())[1])
    if not path:
        raise without_name()
    if form is None:
        raise usage(
            f"-o: the ending of {path} names no format",
            hint="use .npy (one array), .npz (arrays by name), .csv, .parquet, .feather, and of "
            "matrices .svg, .png and .pdf",
        )
    return form


def picture_form(path: str, option: str) -> str:
    """The format that a picture's ending asks for. Raises LanguageError without matplotlib, too."""
    from importlib.util import find_spec

    form = ending(path)
    if form is None:
        known = ", ".join(f".{form}" for form in FORMATS)
        for_latex = path.lower().endswith((".tex", ".tikz", ".pgf"))
        raise usage(
            f"{option}: the ending of {path} names no format of pictures",
            hint=f"there are {known}" + "; LaTeX takes .pdf, by \\includegraphics" * for_latex,
        )
    if find_spec("matplotlib") is None:
        raise usage(MISSING, kind="import")
    return form


def write_arrays(results: list[Result], style: output.Style) -> None:
    """Write results in the style's form: lines, csv, npy, npz; to its file, whole or not at all."""
    option = f"-o {style.path}" if style.path is not None else f"--{style.form}"
    found = _named(results, option)
    if style.form in ("lines", "npy") and len(found) != 1:
        names = ", ".join(found)
        what = "--lines writes" if style.form == "lines" else "a .npy file holds"
        raise usage(
            f"{what} one array, and there are {len(found)}: {names}",
            hint="choose one with --wrt, or write them all with --csv or -o FILE.npz",
        )
    if style.form in FORMATS:
        draw_matrices(found, style)
        return
    columns = _columns(found, option) if style.form in TABLES else []
    if style.path is None:
        stream = output.standard_output()
        stream.flush()
        _write(stream.buffer, found, columns, style)
        return
    with output.Replacement(style.path) as stream:
        _write(stream, found, columns, style)


def _write(
    stream: BinaryIO, found: dict[str, Any], columns: list[tuple[str, Any]], style: output.Style
) -> None:
    if style.form in TABLES:
        _write_table(stream, columns, style)
    elif style.form == "lines":
        for text in lines(next(iter(found.values())), style.precision):
            stream.write(text.encode())
        stream.flush()
    else:
        import numpy as np

        from gradcli.tables.writing import save

        if style.form == "npy":
            save(stream, next(iter(found.values())))
        elif any(map(output.is_sparse, found.values())):
            np.savez(stream, allow_pickle=False, **_as_scipy_reads(found))
        else:
            np.savez(stream, allow_pickle=False, **found)


def _named(results: list[Result], option: str) -> dict[str, Any]:
    """The arrays of the results; those without a name are `value`, or `value_i` if they are several."""
    if not results:
        raise usage(f"{option}: there is no value to write", kind="value")
    found = {}
    for k, (name, value) in enumerate(results):
        word = name or ("value" if len(results) == 1 else f"value_{k}")
        if output.is_sparse(value):  # whose picture has its places
            found[word] = value
            continue
        array = output.as_array(value)
        if array is not None and array.dtype.kind == "O":
            array = _integer(array)
        if array is None or array.dtype.kind not in "biufc":
            raise usage(
                f"{option}: {word} is {kind_of(value)}, not an array of numbers", kind="value"
            )
        found[word] = array
    return found


def _as_scipy_reads(found: dict[str, Any]) -> dict[str, Any]:
    """The members of a file that `scipy.sparse.load_npz` reads, of one matrix with two dimensions."""
    import numpy as np

    (name, matrix), *others = found.items()
    if others:
        words = (
            f"a sparse .npz file holds one matrix, and there are {len(found)}: {', '.join(found)}"
        )
        raise usage(words, hint="choose one with --wrt, or write them with --json")
    if len(matrix.shape) != 2:
        words = f"a sparse .npz file holds a matrix, and {name} has {len(matrix.shape)} dimensions"
        raise usage(
            words, hint="--json prints the indices of its elements, and so does -o FILE.csv"
        )
    row, col = matrix.indices.T
    kept = {"row": row, "col": col, "data": matrix.values, "shape": np.array(matrix.shape)}
    return {**kept, "format": np.array(b"coo")}


def _places(found: dict[str, Any], option: str) -> list[tuple[str, Any]]:
    """The columns of a table of the elements of a sparse matrix: i, j, …, value."""
    (_, matrix), *others = found.items()
    if others:
        words = f"{option} is one table, and there are {len(found)} matrices: {', '.join(found)}"
        raise usage(words, hint="choose one with --wrt, or write them with --json")
    letters = "ijklmnop"
    places = [(letters[k], column) for k, column in enumerate(matrix.indices.T)]
    return [*places, ("value", matrix.values)]


def _integer(array: Any) -> Any:
    """An integer of Python's as NumPy's; None if it is too large."""
    import numpy as np

    return np.asarray(array, np.int64) if abs(array.item()) < 2**63 else None


def lines(array: Any, precision: int | None) -> Iterator[str]:
    """The numbers in order, each on a line of its own, in pieces of text."""
    flat = array.ravel()
    for start in range(0, flat.size, BLOCK):
        yield output.joined(flat[start : start + BLOCK], "\n", precision) + "\n"


def _columns(found: dict[str, Any], option: str) -> list[tuple[str, Any]]:
    """The columns of a table: a vector is one, a matrix has `name[j]`, a number is a vector of one."""
    if any(map(output.is_sparse, found.values())):
        return _places(found, option)
    columns: list[tuple[str, Any]] = []
    for name, array in found.items():
        if array.ndim > 2:
            raise usage(
                f"{option} is a table, and {name} has {array.ndim} dimensions",
                hint="write it with -o FILE.npy or FILE.npz",
            )
        if array.ndim < 2:
            columns.append((name, array.reshape(-1)))
        else:
            columns += [(f"{name}[{j}]", array[:, j]) for j in range(array.shape[1])]
    lengths = {name: len(column) for name, column in columns}
    if len(set(lengths.values())) > 1:
        rows = {name: len(a.reshape(-1)) if a.ndim < 2 else len(a) for name, a in found.items()}
        shown = ", ".join(f"{name} {count}" for name, count in rows.items())
        raise usage(
            f"{option} is one table, and the results have different numbers of rows: {shown}",
            hint="choose one with --wrt, or write them with -o FILE.npz",
        )
    return columns


def _write_table(stream: BinaryIO, columns: list[tuple[str, Any]], style: output.Style) -> None:
    from gradcli.language.option_values import table_error
    from gradcli.tables import TableError
    from gradcli.tables.writing import sink

    numerals = lambda array: output.numerals(array, style.precision)  # noqa: E731
    try:
        table = sink(style.form, stream, numerals, style.precision is None)
    except TableError as error:
        raise table_error(error) from None
    count = len(columns[0][1]) if columns else 0
    step = max(BLOCK // max(len(columns), 1), 1)
    for start in range(0, max(count, 1), step):
        table.write([(name, column[start : start + step]) for name, column in columns])
    table.close()


def draw_matrices(found: Mapping[str, Any], style: output.Style) -> None:
    """Write matrices as a picture: heat maps, or of sparse ones their places."""
    for name, array in found.items():
        if len(array.shape) != 2:
            raise usage(
                f"-o {style.path}: {name} has shape {tuple(array.shape)}, but a picture needs a matrix"
            )
    picture_form(str(style.path), "-o")
    from gradcli.commands.plots.figures import matrices

    output.write_file(str(style.path), matrices(found, style.form))

"""Results as text, plain lines and JSON.

Text is for people: one line a result, the shortest digits that round-trip in the dtype, no `.0`. Plain
is for the shell: what it prints is itself a value of the language. JSON is for programs: every number
round-trips in the tensor's dtype, non-finite ones are strings, complex ones are pairs.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any

import gradcli.engine.system.budget as budget
from gradcli.commands.terminal import echo, fitted, how_seen, painted, width
from gradcli.engine.system.interrupts import begin, held, unfinished
from gradcli.engine.system.visible import visible

SUMMARY_THRESHOLD = 1000  # elements; a larger array is summarised on a terminal
_BLOCK = 4096  # lines of a drawing that are written at a time
SUMMARY_EDGE = 3  # what is shown at either end of a dimension
ELLIPSIS = "…"
STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class Style:
    """How results are to be written.

    form: text, plain or json; of arrays also lines, csv, npy and npz, which `arrays` writes. path: the
    file to write, if not standard output. precision: significant digits at most. summarise: whether
    somebody looks at a terminal. names: whether plain values have them. typeset: latex or siunitx, if
    numbers are written so. (Not a dataclass: making one takes a millisecond of every start.)
    """

    __slots__ = ("arrays", "colour", "form", "names", "path", "precision", "summarise", "typeset")

    def __init__(
        self,
        form: str = "text",
        precision: int | None = None,
        summarise: bool = False,
        colour: bool = False,
        path: str | None = None,
        names: bool = True,
    ) -> None:
        self.form, self.precision, self.path, self.names = form, precision, path, names
        self.summarise, self.colour = summarise, colour
        self.arrays: Callable[[list[Any], Style], None] | None = None
        self.typeset: str | None = None

    def as_text(self) -> Style:
        """The style of what is printed beside a file of arrays."""
        form = self.form if self.form in ("text", "plain") else "text"
        return Style(form, self.precision, self.summarise, self.colour)

    @classmethod
    def of(
        cls,
        form: str,
        precision: int | None,
        colour: str,
        **facts: Any,
    ) -> Style:
        """The style for standard output as it is now."""
        return cls(form, precision, *how_seen(sys.stdout, colour), **facts)


# -- numbers --------------------------------------------------------------------------------------
def as_array(value: Any) -> Any:
    """The numpy array (or scalar) of a tensor, array or number; None for anything else."""
    array = getattr(value, "array", value)
    if hasattr(array, "dtype") and hasattr(array, "ndim"):
        return array
    if isinstance(value, bool | int | float | complex):
        import numpy as np

        # An integer of any size stays what it is.
        return np.asarray(value, dtype=object if type(value) is int else None)
    return None


def is_sparse(value: Any) -> bool:
    """Whether a value is a matrix without its zeros, which has `indices` as some named tuples do."""
    return hasattr(value, "indices") and not isinstance(value, tuple)


def parts(array: Any, precision: int | None = None) -> list[Any]:
    """The elements in order, as Python numbers whose repr has no more digits than the dtype needs."""
    kind = array.dtype.kind
    if kind == "c":
        real, imaginary = parts(array.real, precision), parts(array.imag, precision)
        return list(map(complex, real, imaginary))
    found: list[Any] = array.ravel().tolist()
    if kind != "f":
        return found
    if array.dtype.itemsize < 8:
        # numpy prints a narrow float with the shortest digits; read as a double they stay the same.
        found = list(map(float, array.ravel().astype(str).tolist()))
    if precision is not None:
        pattern = f"%.{precision}g"
        found = [float(pattern % number) for number in found]
    return found


def numerals(array: Any, precision: int | None = None) -> list[str]:
    """The elements in order as text: the shortest digits that round-trip in the dtype."""
    return _numerals(parts(array, precision), array.dtype.kind)


def _numerals(numbers: list[Any], kind: str) -> list[str]:
    if kind == "f":
        return [text[:-2] if text[-2:] == ".0" else text for text in map(repr, numbers)]
    if kind == "c":
        return list(map(_complex_numeral, numbers))
    return list(map(repr, numbers))


def joined(array: Any, separator: str, precision: int | None = None) -> str:
    """The elements of an array in order, with a separator between them."""
    kind = array.dtype.kind
    numbers = parts(array, precision)
    if kind == "c":
        return separator.join(map(_complex_numeral, numbers))
    return _spelt(numbers, kind)[1:-1].replace(", ", separator)


def _spelt(numbers: Any, kind: str) -> str:
    """Nested lists of numbers in brackets: Python's own way of writing them, without `.0`.

    A number's last digits are `.0` if it is whole and in no other case, so one pass over the text does
    what one over the numbers would, in a third of the time.
    """
    text = repr(numbers)
    return text.replace(".0, ", ", ").replace(".0]", "]") if kind == "f" else text


def _complex_numeral(number: complex) -> str:
    real, imaginary = _numerals([number.real, number.imag], "f")
    sign = "" if imaginary[0] == "-" else "+"
    return f"{real}{sign}{imaginary}j"


def _nested(items: list[str], shape: tuple[int, ...], separator: str) -> str:
    """Items joined into brackets, innermost dimension first."""
    for axis in range(len(shape) - 1, -1, -1):
        size = shape[axis]
        starts = [i * size for i in range(_product(shape[:axis]))]
        items = [f"[{separator.join(items[i : i + size])}]" for i in starts]
    return items[0]


def _product(sizes: Iterable[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _summary(array: Any, precision: int | None) -> str:
    """The edges of every dimension, with an ellipsis between them."""
    import numpy as np

    edges = [
        np.r_[0:SUMMARY_EDGE, size - SUMMARY_EDGE : size]
        if size > 2 * SUMMARY_EDGE
        else np.arange(size)
        for size in array.shape
    ]
    corner = array[np.ix_(*edges)]
    items = _numerals(parts(corner, precision), array.dtype.kind)
    for size, shown in zip(reversed(array.shape), reversed(corner.shape), strict=True):
        rows = [items[i : i + shown] for i in range(0, len(items), shown)]
        if size > shown:
            rows = [[*row[:SUMMARY_EDGE], ELLIPSIS, *row[SUMMARY_EDGE:]] for row in rows]
        items = [f"[{', '.join(row)}]" for row in rows]
    return items[0]


# -- text -----------------------------------------------------------------------------------------
def to_text(value: Any, style: Style) -> str:
    """The value for a person to read, on one line."""
    array = as_array(value)
    if array is None:
        return _sequence_text(value, style) if _holds(value) else _other_text(value)
    if style.summarise and array.size > SUMMARY_THRESHOLD:
        return _summary(array, style.precision)
    numbers, kind = parts(array, style.precision), array.dtype.kind
    if not array.ndim:
        return _numerals(numbers, kind)[0]
    if kind == "c":
        return _nested(_numerals(numbers, kind), array.shape, ", ")
    return _spelt(_shaped(numbers, array.shape), kind)


def _holds(value: Any) -> bool:
    """Whether a value is written item by item."""
    return isinstance(value, tuple | list | dict) and type(value).__name__ != "Size"


class Written(str):
    """Text between the items of a sequence, as against an item that is a text."""

    __slots__ = ()


def _sequence_text(value: Any, style: Style) -> str:
    """Lists, tuples and dicts within each other as Python writes them, however deep they are."""
    budget.nested(value)
    pieces: list[str] = []
    around: dict[int, None] = {}
    rest: list[Any] = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, Written):
            pieces.append(item)
            if item[-1] in "])}":
                around.popitem()
        elif _holds(item) and id(item) in around:
            pieces.append("{...}" if isinstance(item, dict) else "[...]")
        elif _holds(item):
            around[id(item)] = None
            start, end = (
                "[]" if isinstance(item, list) else "{}" if isinstance(item, dict) else "()"
            )
            pieces.append(start)
            rest.append(Written(f",{end}" if start == "(" and len(item) == 1 else end))
            keys = list(item) if isinstance(item, dict) else range(len(item))
            for index in range(len(item) - 1, -1, -1):
                rest.append(item[keys[index]])
                if isinstance(item, dict):
                    rest += (Written(": "), keys[index])
                if index:
                    rest.append(Written(", "))
        else:  # a text among others is quoted, as in Python
            pieces.append(repr(item) if isinstance(item, str) else to_text(item, style))
    return "".join(pieces)


def _other_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    from gradcli.language.names import text_of

    return text_of(value)


def _check_written(value: Any) -> None:
    """Refuse a list that holds itself, which could be written for ever."""
    budget.nested(value)
    if budget.is_cyclic(value):
        from gradcli.language.located_errors import LanguageError

        raise LanguageError("a list that holds itself has no end", kind="value", usage=False)


# -- plain ----------------------------------------------------------------------------------------
def to_plain(value: Any, precision: int | None = None) -> str:
    """The value as the language reads it after `--x`."""
    _check_written(value)
    return _plain(value, precision)


def _plain(value: Any, precision: int | None, inside: bool = False) -> str:
    """The same. inside: of a list, where a tensor needs its brackets."""
    array = as_array(value)
    if array is None:
        if isinstance(value, tuple | list):
            items = [repr(v) if isinstance(v, str) else _plain(v, precision, True) for v in value]
            return f"[{', '.join(items)}]"
        return _other_text(value)
    numbers, kind, shape = parts(array, precision), array.dtype.kind, array.shape
    if 0 in shape:
        kept = f", dtype={array.dtype.name}" if kind in "bc" else ""
        sizes = ", ".join(map(str, shape))
        return f"zeros({sizes}{kept})" if kept or shape != (0,) else "[]"
    if kind == "c":
        items = list(map(_readable_complex, numbers))
        text = _nested(items, shape, ",") if shape else f"[{items[0]}]"
    else:
        text = _spelt(_shaped(numbers, shape) if shape else numbers, kind).replace(", ", ",")
    if kind == "f" and "-0" in text:
        # `-0` would be minus the integer 0, which has no sign.
        text = text.replace("-0,", "-0.0,").replace("-0]", "-0.0]")
    if not shape:
        return text[1:-1]
    if inside:
        return text
    if len(shape) == 1:
        return text[1:-1] if shape[0] > 1 else f"{text[1:-1]},"
    if len(shape) == 2 and min(shape) > 1:
        return text[2:-2].replace("],[", ";")
    return text


def _readable_complex(number: complex) -> str:
    """`1+2j`; a part that arithmetic would not give back (inf, nan, -0) is named as a part."""
    from math import copysign, isfinite

    exact = isfinite(number.imag) and isfinite(number.real)
    signs = (copysign(1.0, part) < 0 and part == 0 for part in (number.real, number.imag))
    if exact and not any(signs):
        return _complex_numeral(number)
    real, imaginary = (
        "-0.0" if text == "-0" else text for text in _numerals([number.real, number.imag], "f")
    )
    return f"complex({real}, {imaginary})"


# -- JSON -----------------------------------------------------------------------------------------
def to_json(value: Any, precision: int | None = None) -> Any:
    """The value as what `json.dumps` takes: nested lists of numbers for a tensor."""
    _check_written(value)
    return _json(value, precision)


def _json(value: Any, precision: int | None) -> Any:
    array = as_array(value)
    if array is None:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, Mapping):
            return {str(key): _json(item, precision) for key, item in value.items()}
        if isinstance(value, tuple | list):
            return [_json(item, precision) for item in value]
        return repr(value)
    items = parts(array, precision)
    kind = array.dtype.kind
    if kind == "c":
        items = [[_number(z.real), _number(z.imag)] for z in items]
    elif kind == "f" and not is_finite(array):
        items = list(map(_number, items))
    return _shaped(items, array.shape)


def is_finite(array: Any) -> bool:
    """Whether every element is a number."""
    import numpy as np

    return bool(np.isfinite(array).all())


def _number(number: float) -> float | str:
    """The number; as a string if JSON has no numeral for it."""
    return number if number - number == 0 else repr(number)


def _shaped(items: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return items[0]
    for axis in range(len(shape) - 1, 0, -1):
        size = shape[axis]
        rows = _product(shape[:axis])
        items = [items[i * size : (i + 1) * size] for i in range(rows)]
    return items


def described(
    value: Any, precision: int | None = None, name: str = "value", like: Any = None
) -> dict[str, Any]:
    """{NAME, "shape", "dtype"} of a tensor or number; shape and dtype are null for other values.

    like: what has the shape and the dtype of a value that is not there.
    """
    if value is None and like is not None:
        return {name: None, "shape": list(like.shape), "dtype": like.dtype.name}
    array = as_array(value)
    tensor = hasattr(value, "requires_grad")
    return {
        name: to_json(value, precision),
        "shape": None if array is None else list(array.shape),
        "dtype": value.dtype.name if tensor else None,
    }


# -- writing --------------------------------------------------------------------------------------
def write_results(
    results: Iterable[tuple[str | None, Any]],
    style: Style,
    remarks: Mapping[str | None, str] | None = None,
) -> None:
    """One line a result: `name = value`, `name<TAB>value` with --plain, the bare value without a name.

    remarks: what stands behind a result, by its name, in text.
    """
    if style.arrays is not None:
        style.arrays(list(results), style)
        return
    lines = []
    for name, value in results:
        if style.form == "plain":
            text = to_plain(value, style.precision)
            lines.append(visible(f"{name}\t{text}" if name and style.names else text))
        elif style.summarise and (array := as_array(value)) is not None and array.ndim:
            from functools import partial

            from gradcli.commands import array_text

            spell = partial(numerals, precision=style.precision or array_text.DIGITS)
            lines += array_text.lines_of(name, array, spell, width(sys.stdout), style.colour)
        else:
            lines.append(labelled(name, to_text(value, style), style))
        if remarks and name in remarks and style.form != "plain":
            lines[-1] += visible(remarks[name])
    if lines:
        write("\n".join(lines), styled=True)


def labelled(name: str | None, text: str, style: Style) -> str:
    """`name = text` through the gate, the name in colour; the text alone where there is no name."""
    if name is None:
        return visible(text)
    if not style.colour:
        return visible(f"{name} = {text}")
    return f"{painted(visible(name), 'cyan')} = {visible(text)}"


def object_text(found: Mapping[str, Any]) -> str:
    """The object that --json prints, on one line: what was found, and the notes that were made."""
    import json

    made = {**found, "notes": _notes()}
    if read := _read():
        made["read"] = read
    try:
        return json.dumps(made, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):  # NumPy's scalars, and numbers for which JSON has no numeral
        return json.dumps(_in_json(made), ensure_ascii=False, allow_nan=False)


def _in_json(value: Any) -> Any:
    """An object in what JSON has: NumPy's scalars as numbers, nan and inf as strings."""
    if isinstance(value, Mapping):
        return {key: _in_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_json(item) for item in value]
    if not isinstance(value, str | bytes) and hasattr(value, "tolist"):
        value = value.tolist()
    return _number(value) if isinstance(value, float) else value


def write_json(found: Mapping[str, Any]) -> None:
    """One object on one line, with the notes."""
    write(object_text(found))


def write(text: str, *, styled: bool = False) -> None:
    """Text and a newline to standard output, through the gate.

    styled: the text has passed it before it was coloured.
    """
    echo(text if styled else visible(text), standard_output())


def write_prose(text: str) -> None:
    """Sentences to standard output; those wider than the terminal are broken between words."""
    stream = standard_output()
    echo(fitted(visible(text), stream), stream)


def standard_output() -> Any:
    """The stream. Raises LanguageError where the caller has closed it."""
    if sys.stdout is None:
        from gradcli.language.located_errors import LanguageError

        raise LanguageError("standard output is closed", kind="file", usage=False)
    return sys.stdout


def note(text: str, kind: str = "note") -> None:
    """A remark, on standard error and among the `notes` of the object that --json prints; once a command.

    Lost on standard error where the caller closed that, for click would use the other.
    """
    if (told := _TOLD.get()) is not None:
        told(text)
        return
    notes, said = _notes(), text if kind == "note" else f"{kind}: {text}"
    if said in notes:
        return
    notes.append(said)
    if sys.stderr is not None:
        echo(fitted(visible(f"gradcli: {kind}: {text}"), sys.stderr), sys.stderr)


_TOLD: ContextVar[Callable[[str], object] | None] = ContextVar("told", default=None)


@contextmanager
def notes_to(told: Callable[[str], object]) -> Iterator[None]:
    """Inside, remarks go to a function, as to warnings where Python asks what a command does."""
    before = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(before)


def _notes() -> list[str]:
    """The notes of the command that runs, in order."""
    import click

    context = click.get_current_context(silent=True)
    found: list[str] = [] if context is None else context.meta.setdefault("gradcli.notes", [])
    return found


def keep_tables(reading: Any) -> None:
    """Let --json say, as `read`, what is found in the tables of the command that runs."""
    import click

    if (context := click.get_current_context(silent=True)) is not None:
        context.meta["gradcli.tables"] = reading


def _read() -> dict[str, Any]:
    import click

    context = click.get_current_context(silent=True)
    reading = None if context is None else context.meta.get("gradcli.tables")
    return {} if reading is None else reading.found


def write_drawing(drawing: Any, style: Style) -> None:
    """Write a drawing: as wide as the terminal, or in plain lines where nobody looks."""
    if style.form == "plain" or not (style.summarise or style.colour):
        write(drawing.plain())
        return
    from gradcli.commands.terminal import width

    stream = standard_output()
    coloured = style.colour and os.environ.get("TERM", "").lower() != "unknown"
    lines = drawing.fitted(
        # Without a terminal (--color always in a pipe) nothing is cut.
        width(stream) if style.summarise else 1_000_000,
        ascii=not (stream.encoding or "utf-8").lower().startswith("utf"),
        coloured=coloured,
    )
    painted_lines = _painted(lines) if coloured else map(_bare, lines)
    while block := "".join(islice(painted_lines, _BLOCK)):
        stream.write(block)
    stream.flush()


def _bare(line: Any) -> str:
    """A line of (text, role) without its colours, through the gate."""
    return visible("".join([text for text, _ in line])) + "\n"


def _painted(lines: Iterable[Any]) -> Iterator[str]:
    """Lines of (text, role) in colour, each text through the gate."""
    from gradcli.graphs.styles import ANSI

    codes, gate = ANSI.get, visible
    for line in lines:
        pieces = []
        for text, role in line:
            code = codes(role)
            text = gate(text)
            pieces.append(f"{code}{text}\x1b[0m" if code and text else text)
        pieces.append("\n")
        yield "".join(pieces)


def write_file(path: str, text: str | bytes, *, tell: bool = True) -> None:
    """Write a file whole or not at all; `-` is standard output. Text passes the gate.

    tell: whether a terminal is told.
    """
    if isinstance(text, str):
        text = visible(text)
    if path in STANDARD_OUTPUT:
        if isinstance(text, bytes):
            import click

            click.echo(text, nl=False)
        else:
            write(text.removesuffix("\n"))
        return
    with held(), Replacement(path, tell=tell) as stream:
        stream.write(text.encode("utf-8") if isinstance(text, str) else text)


def tell_written(path: str) -> None:
    """Say on a terminal that a file is written: there nothing else shows that the command has done it."""
    from gradcli.commands.terminal import is_terminal

    if sys.stderr is not None and is_terminal(sys.stderr):
        echo(fitted(visible(f"gradcli: wrote {path}"), sys.stderr), sys.stderr)


def unwritable(path: str, error: Exception, *, usage: bool = True) -> Exception:
    """The error about a file that cannot be written. usage: False once writing has begun (exit code 1)."""
    from gradcli.language.located_errors import LanguageError

    words = getattr(error, "strerror", None) or error
    return LanguageError(f"cannot write {path}: {words}", kind="file", usage=usage)


class _Raw(io.FileIO):
    """A file whose errors say which it is, whoever writes to it."""

    def __init__(self, file: int | str, path: str) -> None:
        super().__init__(file, "wb")
        self.path = path

    def write(self, data: Any) -> int:
        """As a file does, but an error names the file."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise unwritable(self.path, error, usage=False) from None


class Replacement:
    """A file that is written in place of another, and takes its name once it is complete.

    tell: whether a terminal is told when it is.
    """

    def __init__(self, path: str, *, tell: bool = True) -> None:
        from gradcli.commands.command_errors import without_name

        self.tells = tell

        if not path:
            raise without_name()
        import tempfile

        try:
            self.name, self.path = path, os.path.realpath(os.path.expanduser(path))
            self.temporary: str | None = None
            if os.path.exists(self.path) and not os.path.isfile(self.path):  # a device or a pipe
                self.stream: Any = io.BufferedWriter(_Raw(self.path, path))
                return
            with held():
                handle, self.temporary = tempfile.mkstemp(
                    dir=os.path.dirname(self.path), prefix=".gradcli-"
                )
                begin(self.temporary)
            self.stream = io.BufferedWriter(_Raw(handle, path))
        except (OSError, ValueError) as error:  # ValueError: a name with a null in it
            raise unwritable(path, error) from None

    def __enter__(self) -> Any:
        return self.stream

    def __exit__(self, kind: Any, *rest: object) -> None:
        self.close(keep=kind is None)

    def close(self, *, keep: bool) -> None:
        """Give the file its name, or remove it."""
        try:
            self.stream.close()
        except Exception:  # what was still to be written
            if keep:
                self.close(keep=False)
                raise
        if self.temporary is None:
            return
        try:
            with held():
                if keep:
                    os.chmod(self.temporary, _mode(self.path))
                    os.replace(self.temporary, self.path)
                else:
                    os.unlink(self.temporary)
                unfinished.discard(self.temporary)
                self.temporary = None
            if keep and self.tells:
                tell_written(self.name)
        except OSError as error:
            if keep:
                self.close(keep=False)
            raise unwritable(self.name, error) from None


class Folder:
    """A folder of files that takes its name once it is complete. One that holds something stays as it is."""

    def __init__(self, path: str) -> None:
        import tempfile

        self.name, self.path = path, os.path.realpath(os.path.expanduser(path))
        try:
            if os.path.lexists(self.path) and (
                not os.path.isdir(self.path) or os.listdir(self.path)
            ):
                raise self._taken()
            with held():
                self.temporary = tempfile.mkdtemp(
                    dir=os.path.dirname(self.path), prefix=".gradcli-"
                )
                begin(self.temporary)
        except OSError as error:
            raise unwritable(path, error) from None

    def __enter__(self) -> str:
        return self.temporary

    def __exit__(self, kind: Any, error: Any, trace: object) -> None:
        import shutil

        with held():
            try:
                if kind is None:
                    mask = os.umask(0)
                    os.umask(mask)
                    os.chmod(self.temporary, 0o777 & ~mask)
                    os.replace(self.temporary, self.path)
            except OSError:  # somebody else was faster
                raise self._taken() from None
            finally:
                shutil.rmtree(self.temporary, ignore_errors=True)
                unfinished.discard(self.temporary)
        if isinstance(error, OSError) and error.filename in (None, self.temporary):
            raise unwritable(self.name, error, usage=False) from None

    def _taken(self) -> Exception:
        from gradcli.commands.command_errors import usage

        return usage(
            f"cannot write the folder {self.name}: there is something of that name",
            hint="remove it, or choose another name",
            kind="file",
        )


def _mode(path: str) -> int:
    """The permissions of the file that is replaced, or those of a new one."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask

"""Values of options such as `--x`: numbers, arrays, ranges, files, standard input, or any expression.

Bare numbers and what files hold take the default floating dtype, integers included, because only
floating and complex tensors can require gradients; an explicit constructor says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

from gradcli.language.located_errors import LanguageError, Span
from gradcli.language.operations import as_tensor as as_tensor
from gradcli.language.operations import rectangular, tensor_of

if TYPE_CHECKING:
    from gradcli.engine.core.tensor import Tensor
    from gradcli.language.program import Program
    from gradcli.tables import Reader

_PLAIN = "0123456789+-.eE, \t\r\ninfa"  # what lists of numbers are made of, inf and nan included
_LONG = 2000  # characters from which NumPy's reader is worth its import
_SHOWN = 40  # characters of a value that an error shows


def read_value(
    text: str,
    *,
    stdin: TextIO | None = None,
    dtype: Any = None,
    files: Reader | None = None,
) -> Tensor:
    """The tensor that a value's text means.

    `stdin` is read where the text is `-`. `dtype` takes the place of the default dtype. `files` keeps what
    was read, for several values of one file. Raises LanguageError, with the place in the text or in the
    file.
    """
    bare = text.strip()
    if not bare:
        raise _error(
            "a value is missing here", text, (0, max(len(text), 1)), "write a number, or 1,2,3"
        )
    reference = file_reference(bare)
    if reference is not None:
        if files is None:
            from gradcli.tables import Reader

            files = Reader(stdin)
        return _from_file(reference, text, dtype, files)
    return _from_expression(text, dtype)


def file_reference(text: str) -> str | None:
    """`FILE:COLUMNS` where a value's text names a file (`@…`) or standard input (`-`, `-:x`)."""
    bare = text.strip()
    if bare[:1] == "@":
        return bare[1:]
    return bare if bare == "-" or bare[:2] == "-:" else None


# -- numbers and expressions ----------------------------------------------------------------------
def _refuse_dates(text: str) -> None:
    """Refuse `2024-12-31`, which is 1981 to the language. Text in quotes is no value anyway."""
    if (match := re.search(_DATE, text)) is not None:
        spaced = match[0].replace("-0", "-").replace("-", " - ")
        raise _error(
            f"{match[0]} looks like a date, and a value is a number",
            text,
            match.span(),
            "give a number of days or years; a difference has blanks: "
            f"{spaced}; columns of dates are days: @FILE:COLUMN",
        )


_DATE = r"(?<![\w.'\"-])(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?![\w.'\"-])"


def _from_expression(text: str, dtype: Any) -> Tensor:
    if text.count("-") > 1 and len(text) <= _LONG:
        _refuse_dates(text)
    # Three readers, the fastest that can: NumPy or float() for a list of plain numbers, json for a long
    # matrix, and the language for everything else. A value of a million numbers must not go through the
    # parser, and what the fast ones take they must read alike: float() takes 012, which the language
    # refuses.
    numbers = _plain_numbers(text)
    if numbers is None and len(text) > _LONG:
        numbers = _plain_table(text.strip())
    if numbers is not None:
        return tensor_of(numbers, dtype)
    cuts = _cuts(text)
    rows = _split(text, cuts, ";")
    if len(rows) > 1:
        return _matrix(text, rows, dtype)
    parts = _split(text, cuts, ":")
    if len(parts) > 1:
        return _range(text, parts, dtype)
    value = _evaluate(text, 0, len(text), dtype)
    try:
        return as_tensor(value, dtype, where=(text, (0, len(text))))
    except LanguageError as error:
        if error.hint is None:
            from gradcli.language.value_remedies import remedy

            error.hint = remedy(value)
        raise


def _plain_numbers(text: str) -> Any:
    """A number or a list of them, if the text is nothing else; None where it must be parsed."""
    if text.strip(_PLAIN):
        return None
    if len(text) > _LONG:
        from gradcli.tables.column_reading import numpy_numbers

        return numpy_numbers(text)
    parts = text.split(",")
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    try:
        values = list(map(float, parts))
    except ValueError:
        return None
    if not all(map(_is_literal, parts)):
        return None
    return values if "," in text else values[0]


def _plain_table(text: str) -> Any:
    """A long matrix or bracketed list of nothing but numbers; None where it must be parsed."""
    from gradcli.tables.column_reading import numpy_numbers

    if text[0] == "[" and not text.strip(_PLAIN + "[]"):
        inside = text[1:-1]
        if "[" not in inside and "]" not in inside and text[-1] == "]":
            return numpy_numbers(inside)
        import json

        try:
            return rectangular(json.loads(text), None)
        except (ValueError, RecursionError, LanguageError):
            return None
    if ";" not in text or text.strip(_PLAIN + ";"):
        return None
    rows = text.removesuffix(";").split(";")
    columns = rows[0].count(",") + 1
    if any(row.count(",") != columns - 1 for row in rows):
        return None
    found = numpy_numbers(",".join(rows))
    return None if found is None else found.reshape(len(rows), columns)


def _is_literal(text: str) -> bool:
    """False for what float() takes and Python's syntax does not: 012."""
    digits = text.strip(" \t\r\n+-")
    return digits[:1] != "0" or not digits.isdigit() or not digits.strip("0")


def _cuts(text: str) -> list[tuple[int, str]]:
    """Where `;`, `:` and `,` stand outside brackets and strings."""
    # `;` and `:` cut a value only outside of brackets and strings: in `x[1:3]` and `{"a:b"}` they do not.
    # The language's own tokens tell, so that strings are strings here, too.
    if not any(mark in text for mark in ";:"):
        return []
    from gradcli.language.parser import compiled, tables
    from gradcli.language.tokens import BLANKS

    found = []
    depth = 0
    for match in compiled(tables().full).finditer(text):
        token = match[0].lstrip(BLANKS)
        if token in ("(", "[", "{"):
            depth += 1
        elif token in (")", "]", "}"):
            depth -= 1
        elif depth == 0 and token in (";", ":", "lambda"):
            # The `:` of a lambda looks like that of a range; so such a value is not cut.
            if token == "lambda":
                return []
            found.append((match.end() - 1, token))
    return found


def _split(text: str, cuts: list[tuple[int, str]], mark: str) -> list[Span]:
    edges = [-1, *(position for position, token in cuts if token == mark), len(text)]
    return [(a + 1, b) for a, b in pairwise(edges)]


def _evaluate(text: str, start: int, end: int, dtype: Any) -> Any:
    """The value of a piece of the text, with errors placed in the whole of it."""
    from gradcli.engine.system import dtypes
    from gradcli.language.interpreter import Machine
    from gradcli.language.parser import parse

    # Blanks instead of what stands before keep all positions right.
    source = text[start:end]
    lead = len(source) - len(source.lstrip())
    source = source.strip()
    if not source:
        raise _error("a value is missing here", text, (start, start + 1))
    try:
        program = parse(source)
        if not _is_expression(program):
            error = LanguageError("a value is one expression", source=source, span=(0, len(source)))
            if "\n" in source:
                error.hint = "`;` separates the rows of a matrix: 1,2;3,4"
            raise error
        free = program.free_variables()
        if free:
            raise _variable_error(program, free[0])
        machine = Machine()
        with dtypes.as_default(dtype):
            return machine.run(program)
    except LanguageError as error:
        shift = start + lead
        if error.source == source and error.span is not None:
            error.span = (error.span[0] + shift, error.span[1] + shift)
            error.source = text
        error.usage = True
        from gradcli.engine.system.spread import unit_hint

        error.hint = unit_hint(text) or error.hint
        raise


def _is_expression(program: Any) -> bool:
    """True for a program of one statement that is an expression."""
    return bool(program.ends_in_expression and program.rows[-3] == 1)


def _file_hint(text: str) -> str | None:
    """What a bare file name was meant to be: `--x meas.csv`."""
    if not re.fullmatch(r"[\w./~-]+\.[A-Za-z]\w*", text):
        return None
    return f"write @ before a file: @{text}, or one column of it, @{text}:COLUMN"


def _variable_error(program: Any, name: str) -> LanguageError:
    from gradcli.language.located_errors import did_you_mean, suggest
    from gradcli.language.names import all_names
    from gradcli.language.value_remedies import OTHERS

    where = next(
        program.span(row)
        for row, (kind, meaning, _, _) in enumerate(program.walk())
        if kind == "name" and meaning == name
    )
    close = [OTHERS[name]] if name in OTHERS else []
    close = close or (suggest(name, all_names()) if len(name) > 1 else [])
    return LanguageError(
        f"name {name!r} is not defined",
        kind="name",
        source=program.source,
        span=where,
        hint=_file_hint(program.source) or did_you_mean(close) or "a value may use no variables",
    )


def _matrix(text: str, rows: list[Span], dtype: Any) -> Tensor:
    if not text[rows[-1][0] : rows[-1][1]].strip():
        rows = rows[:-1]
    values: list[list[Any]] = []
    for start, end in rows:
        found = _plain_numbers(text[start:end])
        if found is None:
            found = _evaluate(text, start, end, dtype)
        if hasattr(found, "tolist"):
            found = found.tolist()
        items = list(found) if isinstance(found, (list, tuple)) else [found]
        if values and len(items) != len(values[0]):
            first = len(text[start:end]) - len(text[start:end].lstrip())
            raise _error(
                f"row {len(values) + 1} has {_count(len(items))}, and row 1 has {len(values[0])}",
                text,
                (start + first, max(start + first + 1, start + len(text[start:end].rstrip()))),
                "give every row of a matrix the same length",
                kind="shape",
            )
        values.append(items)
    return as_tensor(values, dtype, where=(text, (0, len(text))))


def _count(number: int) -> str:
    return f"{number} value{'s' * (number != 1)}"


def _range(text: str, parts: list[Span], dtype: Any) -> Tensor:
    if len(parts) > 3:
        raise _error(
            "a range is START:STOP or START:STOP:STEP",
            text,
            (parts[3][0] - 1, parts[3][0]),
        )
    numbers = []
    for start, end in parts:
        if not text[start:end].strip():
            raise _error(
                "a range is START:STOP or START:STOP:STEP",
                text,
                (max(start - 1, 0), max(start, 1)),
                "write all its numbers, as in 0:4 or 0:1:0.25",
            )
        value = _evaluate(text, start, end, dtype)
        value = value.item() if hasattr(value, "item") and value.ndim == 0 else value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _error("a range is between numbers", text, (start, end))
        numbers.append(float(value))
    import numpy as np

    from gradcli.engine.system.budget import MAX_RANGE, spelt

    step = numbers[2] if len(numbers) == 3 else 1.0
    if step == 0 or not all(np.isfinite(numbers)):
        raise _error("this range never ends", text, (0, len(text)), "give a step that is not 0")
    count = max(0.0, np.ceil((numbers[1] - numbers[0]) / step))
    if count > MAX_RANGE:
        words = f"this range has {spelt(int(count))} values (at most {MAX_RANGE})"
        raise _error(words, text, (0, len(text)), "take a larger step")
    # NumPy's arange takes the difference of its first two numbers for the step, and multiplies its error;
    # here 10:11:0.1 has the step 0.1 throughout.
    return tensor_of(numbers[0] + step * np.arange(int(count)), dtype)


# -- files and standard input ---------------------------------------------------------------------
def _from_file(reference: str, text: str, dtype: Any, files: Reader) -> Tensor:
    """What `@FILE:COLUMNS` means; the errors of the file's with the line, or with the reference."""
    from gradcli.tables import Expression, Json, TableError

    span = (len(text) - len(text.lstrip()), max(len(text.rstrip()), 1))
    try:
        found = files.value(reference)
    except TableError as error:
        raise table_error(error, text, span) from None
    except OSError as error:
        path = error.filename if error.filename is not None else reference
        raise _error(f"{path}: {error.strerror or error}", text, span) from None
    if isinstance(found, Expression):
        return _from_expression(found, dtype)
    name = "standard input" if reference == "-" else reference
    if isinstance(found, Json):
        return _from_json(found.value, name, dtype)
    if found.dtype.kind not in "biufc":
        raise _error(f"{name}: holds {found.dtype}, not numbers", text, span)
    return tensor_of(found, dtype)


def table_error(error: Any, text: str = "", span: Span | None = None) -> LanguageError:
    """An error about a table, at its line of the file or else at the text that asked for the table."""
    hint = error.hint
    if error.wrong is not None and error.known:
        from gradcli.language.located_errors import did_you_mean, suggest
        from gradcli.tables.table_errors import listed

        found = hint or f"there are: {listed(error.known)}"
        close = did_you_mean(suggest(error.wrong, error.known))
        hint = f"{close} ({found})" if close else found
    if error.line is not None:
        text, span = error.line, error.span or (0, max(len(error.line), 1))
    return LanguageError(error.message, kind="value", source=text, span=span, hint=hint)


_SPECIAL = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def _from_json(found: Any, name: str, dtype: Any) -> Tensor:
    if isinstance(found, dict):
        if "value" not in found:
            raise LanguageError(
                f"{name}: say which key holds the numbers",
                hint=f"`{name}:KEY`, with KEY one of {', '.join(found)}",
            )
        found = found["value"]
    found = _json_numbers(found, name)
    try:
        return as_tensor(found, dtype)
    except LanguageError as error:
        error.message = f"{name}: {error.message}"
        raise


def _json_numbers(found: Any, name: str) -> Any:
    """The lists of a JSON text with "nan" and "inf" as numbers."""
    # By a list of lists that wait, and not by recursion: a file may nest deeper than Python's stack.
    holder = [found]
    waiting: list[list[Any]] = [holder]
    while waiting:
        items = waiting.pop()
        for i, item in enumerate(items):
            if isinstance(item, list):
                waiting.append(item)
            elif isinstance(item, str) and item in _SPECIAL:
                items[i] = _SPECIAL[item]
            elif isinstance(item, bool) or not isinstance(item, (int, float)):
                shown = {type(None): "null", dict: "an object"}.get(type(item)) or repr(item)
                if isinstance(item, bool):
                    continue
                raise LanguageError(f"{name}: {shown} is not a number")
    return holder[0]


def _error(
    message: str, source: str, span: Span, hint: str | None = None, kind: str = "value"
) -> LanguageError:
    return LanguageError(message, kind=kind, source=source, span=span, hint=hint)


# -- the Python API -------------------------------------------------------------------------------
_SINGLE = ("float32", "float16", "complex64")


def widest(values: Iterable[Any]) -> Any:
    """The dtype of numbers beside these values, as on the command line: double.

    None, which is the default one, where an array or a tensor is single, and none is double.
    """
    from gradcli.engine.system import dtypes

    words = [_kind_of(value) for value in values]
    wide = any(word in ("float64", "complex128") for word in words)
    return None if not wide and any(word in _SINGLE for word in words) else dtypes.float64


def _kind_of(value: Any) -> str:
    """The name of a value's dtype, in whichever order its bytes are; "" where it has none."""
    kind = getattr(value, "dtype", "")
    return str(getattr(kind, "name", kind)).rpartition(".")[2]


def as_given(value: Any, wide: Any) -> Tensor:
    """A value of Python's as a tensor; wide: what `widest` says of all values."""
    from gradcli.engine.system import dtypes

    single = hasattr(value, "__array__") and _kind_of(value) == "float32"
    with dtypes.as_default(wide):
        return as_tensor(value, dtypes.float32 if single else None)


def evaluate(source: str, values: Mapping[str, Any] | None = None, /, **variables: Any) -> Tensor:
    """The value of an expression or program as a tensor.

    Variables may be tensors, numbers, lists or NumPy arrays: `evaluate("2*dot(x, x)", x=[1.0, 2.0])`; a
    mapping of them may follow the source. It computes in double precision, unless arrays or tensors are
    single and none is double. Raises LanguageError, for a name that is no variable of the program, too.
    """
    from gradcli.engine.core.tensor import Tensor
    from gradcli.engine.system import dtypes
    from gradcli.language.interpreter import Machine
    from gradcli.language.parser import parse

    program = parse(source)
    variables = given_by_name(program, values, variables)
    if program.rows[-3] > 1:  # several statements
        from gradcli.language.unused_statements import warn

        warn(program)
    wide = widest(variables.values())
    bound = {
        name: value if isinstance(value, Tensor) or callable(value) else as_given(value, wide)
        for name, value in variables.items()
    }
    machine = Machine(bound)
    try:
        with dtypes.as_default(wide):
            value = machine.run(program)
    except LanguageError as error:
        raise in_python(error, "evaluate") from error.__cause__
    if value is None:
        raise LanguageError(
            "this program has no value",
            kind="type",
            source=source,
            span=(0, len(source)) if source.strip() else None,
            hint="end it with an expression",
        )
    with dtypes.as_default(wide):
        return as_tensor(value, where=(source, (0, len(source))))


def given_by_name(program: Program, values: Any, variables: Mapping[str, Any]) -> dict[str, Any]:
    """All values that a call from Python gives, each of which must be a variable of the program.

    Raises TypeError for values that have no names, and LanguageError for a name that is no variable.
    """
    from gradcli.language.scope_checks import free_names

    names = list(free_names(program))
    if values is not None and not isinstance(values, Mapping):
        raise unnamed(names, values)
    found = {**(values or {}), **variables}
    for name in found:
        if name not in names:
            raise no_variable(name, [n for n in names if n in found], program.source)
    return found


def unnamed(names: Sequence[str], values: Any) -> TypeError:
    """The error for a value without a name; a long one is not shown."""
    name, text = [*names, "x"][0], repr(values)
    shown = text if len(text) <= _SHOWN and "\n" not in text else "…"
    more = f", or wrt={shown}" if isinstance(values, str) else ""
    return TypeError(f"values are given by name: {name}={shown}{more}")


def no_variable(name: str, known: Sequence[str], source: str) -> LanguageError:
    """The error for a value whose name is no variable of the program."""
    from gradcli.language.located_errors import did_you_mean, suggest

    return LanguageError(
        f"{name} is not a variable of {source!r} (variables: {', '.join(known) or 'none'})",
        kind="name",
        hint="the format is called form"
        if name in ("format", "fmt")
        else did_you_mean(suggest(name, known)),
    )


def in_python(error: LanguageError, verb: str) -> LanguageError:
    """The error with a remedy for who calls `verb` from Python, where there are no options."""
    hint = error.hint or ""
    if hint.startswith("give it a value: --"):
        error.hint = f"give it a value: {verb}(source, NAME=VALUE)"
    elif hint.startswith("raise --max-steps, or "):
        error.hint = hint.removeprefix("raise --max-steps, or ")
    for name in ("message", "hint"):
        text = getattr(error, name)
        if text and (found := re.search(_LOADED, text)):
            setattr(
                error, name, f"{text[: found.start()]}pass it as a variable: {verb}(source, f=f)"
            )
    return error


_LOADED = r"(for a Python file |put them in a file and )?(use|give it with) --load FILE\.py$"

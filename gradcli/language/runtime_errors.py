"""Errors of a running program: PyTorch's words, the place, the operands' shapes, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import gradcli.engine.system.budget as budget
from gradcli.engine.core import errors
from gradcli.language import error_remedies, tree_kinds
from gradcli.language import names as known
from gradcli.language.located_errors import (
    CallSite,
    LanguageError,
    StepLimit,
    UnknownName,
    did_you_mean,
    suggest,
)
from gradcli.language.program import Program

_K = tree_kinds.KIND
_CALLS = (_K["call"], _K["call_keywords"])
_SHAPES = re.compile(
    r"shape|size|dimension|broadcast|1D tensors expected|mat1 and mat2|must match|inconsistent tensor"
    r"|must be a matrix|vector \+ matrix",
    re.IGNORECASE,
)
# What Python itself says, which has no class of ours: a pattern of its message, and what to do.
_PYTHON_SAYS: tuple[tuple[str, str], ...] = (
    (
        r"unsupported operand type\(s\) for [-+*/]+: ('str' and 'Tensor'|'Tensor' and 'str')",
        "a text is compared, as in name == 'A'; a column of dates is days since the DATE of --time-origin",
    ),
    (
        r"can only concatenate list|unsupported operand type\(s\) for .*'list'",
        "a list is no vector: write `tensor([1., 2.])` of numbers, `stack([x, y])` of expressions",
    ),
    (
        r"unsupported operand type\(s\) for .*'function'|bad operand type for unary .*'function'",
        "a function is no number: func.grad takes a function and gives one, func.grad(f)(x); the derivative "
        "by a variable is NAME.grad, which grad and map print",
    ),
    (
        r"^only integer tensors of a single element",
        "where data says how many: k = arange(1, 61); sum(where(k <= n, TERM, 0)), with no n above 60",
    ),
    (
        r"'module' object is not callable",
        "that is a module, and its functions are called, as in fft.fft(y) or linalg.inv(A): "
        "`gradcli ops WORD` finds them",
    ),
    (r"division by zero|modulo by zero", "a tensor gives inf or nan instead: write `tensor(0.)`"),
    (
        r"maximum recursion depth exceeded",
        "add a case in which the function does not call itself, or write a loop",
    ),
    (
        r"^No module named 'gradcli'",
        "programs have PyTorch's functions without it: leave the import out, or run the file with python",
    ),
    (
        r"^No module named",
        "only torch and numpy can be imported; for a Python file use --load FILE.py",
    ),
    (
        r"^only the constants of (math|numpy)",
        "write functions without a module: exp(x), not math.exp(x), tensor([1, 2]), not np.array([1, 2])",
    ),
    (
        r"(result out of range|math range error)$|int too (big|large) to convert",
        "a tensor gives inf instead: write `tensor(1e200)`",
    ),
    (r"Index put requires|item assignment", "only tensors, lists and dicts can be written to"),
    (
        r"is an integer of more than",
        "write a decimal point for a float, as in `9.0**9`",
    ),
)


def explained(
    program: Program,
    row: int,
    error: Exception,
    operands: tuple[Any, Any],
    visible: Mapping[str, Any],
) -> LanguageError:
    """The LanguageError for an exception that a row raised."""
    # What is said of an error, from the special to the general: a function's name used as a value
    # (`norm*2`), a name that is not known, a loop that does not end, a missing attribute or key, and then
    # the table of remedies by the error's class (`error_remedies`). Where the text looks like another
    # language, the hint is its translation.
    message = _message(program, row, error, operands[1])
    kind, usage = _kind(error, message), False
    hint: str | None = None
    span = program.span(row) if row >= 0 else None
    notes: tuple[str, ...] = ()
    if (place := _function_in_place(program, row, error, visible)) is not None:
        name = program.words[program.rows[4 * place + 1]]
        message, hint, span = f"{name} is a function", f"give --{name} VALUE", program.span(place)
        hint = _translation(program, visible) or hint
        if re.fullmatch(r"[\w/]+\.(csv|tsv|txt|dat|json|npy|npz|parquet)", program.source):
            hint = f"a file is read by @: write @{program.source}"
        return LanguageError(message, kind="name", source=program.source, span=span, hint=hint)
    if isinstance(error, UnknownName):
        usage = "local variable" not in message and "free variable" not in message
        called = span is not None and program.source[span[1] : span[1] + 1] == "("
        hint = _unknown_hint(error.word, visible, called)
    elif isinstance(error, StepLimit):
        kind = "steps"
        hint = "raise --max-steps, or look for a loop that does not end"
    elif isinstance(error, AttributeError):
        left_out = (text for pattern, text in _LEFT_OUT if re.search(pattern, message))
        hint = next(left_out, None) or _attribute_hint(program, row, operands[0])
    elif isinstance(error, KeyError) and type(operands[0]) is dict:
        hint = _keys_hint(operands[0], error.args[0])
    else:
        said = (text for pattern, text in _PYTHON_SAYS if re.search(pattern, message))
        hint = error_remedies.remedy(error, "program") or next(said, None)
    if isinstance(error, NameError | AttributeError | TypeError | IndexError) and program.source:
        if isinstance(error, AttributeError):  # no tensor has a `cdf`: `norm.cdf(x)` is a function
            visible = {n: v for n, v in visible.items() if n not in ("norm", "stats")}
        hint = _translation(program, visible, bool(_PAIRS.search(message))) or hint
    if isinstance(error, errors.DimensionRangeError):
        hint = _extremum_hint(program, row) or hint
    if isinstance(error, errors.IntegersExpectedError):
        hint = _integers_hint(program, row, operands, error.position) or hint
    if kind in ("shape", "index") or (kind == "type" and "Tensor" in message):
        notes = _shapes(program, row, operands)
    if kind == "type" and hint is None:
        hint = _signature_hint(program, row, visible)
    return LanguageError(
        message, kind=kind, source=program.source, span=span, hint=hint, usage=usage, notes=notes
    )


# How Python and the engine call the pairs that `max(x, 0)` gives.
_PAIRS = re.compile(r"torch\.return_types|'(?:max|min)'")
# How Python and the engine call a function that they are given for a value.
_IS_FUNCTION = re.compile(r"builtin_function_or_method|'(?:type|function)'|\bnot type\b")


def _function_in_place(
    program: Program, row: int, error: Exception, visible: Mapping[str, Any]
) -> int | None:
    """Where the row has the name of a function in place of a value: `norm*2`."""
    if row < 0 or not _IS_FUNCTION.search(str(error)):
        return None
    inside = range(program.subtree(row), row)
    called = {program.children(i)[0] for i in (*inside, row) if program.kinds[i] in _CALLS}
    for place in inside:
        word = (
            program.words[program.rows[4 * place + 1]]
            if program.kinds[place] == tree_kinds.NAME
            else ""
        )
        if word and place not in called and word not in visible and known.is_plain_function(word):
            return place
    return None


def _keys_hint(values: dict[Any, Any], key: object) -> str:
    """What a dict has, for a key that it lacks."""
    if isinstance(key, str) and (near := suggest(key, [k for k in values if isinstance(k, str)])):
        return did_you_mean(near) or ""
    if not values:
        return "it is empty"
    some = ", ".join(repr(k) for k in list(values)[:8] if isinstance(k, (str, int, float)))
    return f"its keys are {some}" + ", …" * (len(values) > 8)


def called_from(
    error: LanguageError, program: Program, row: int, callee: object = None
) -> LanguageError:
    """The error of a function that was called, or that the engine called back, with the row that did so."""
    spec = getattr(callee, "spec", None)
    name = "a function called back" if spec is None else spec.name
    error.calls = (CallSite(name, program.span(row), program.source), *error.calls)
    return error


# What Python says of arguments that do not fit a function.
_BINDING = re.compile(
    r"^[\w.<>]+\(\) (?=takes |got an unexpected|got multiple|got some|missing \d)"
)


def _message(program: Program, row: int, error: Exception, callee: object) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"there is no key {error.args[0]!r}"
    if isinstance(error, RecursionError):
        return "maximum recursion depth exceeded"
    if isinstance(error, MemoryError):
        return budget.out_of_memory(error)
    if (
        isinstance(error, OverflowError) and len(error.args) == 2
    ):  # C's number of the error, and words
        return str(error.args[1])
    text = str(error)
    name = (_callee(program, row) or "").rpartition(".")[2]
    if name and isinstance(error, TypeError) and not hasattr(callee, "spec"):
        text = _BINDING.sub(f"{name}() ", text)  # the Python function has a name of its own
    return text if text else type(error).__name__


_KINDS: tuple[tuple[type[Exception], str], ...] = (
    *((NameError, "name"), (AttributeError, "attribute"), (TypeError, "type")),
    *((IndexError, "index"), (AssertionError, "assertion"), (OverflowError, "overflow")),
    (MemoryError, "memory"),
)


def _kind(error: Exception, message: str) -> str:
    if isinstance(error, (RuntimeError, ValueError)) and _SHAPES.search(message):
        return "shape"
    return next((kind for class_, kind in _KINDS if isinstance(error, class_)), "runtime")


def _extremum_hint(program: Program, row: int) -> str | None:
    """What `max(a, 2)` is meant to be: as in PyTorch, a number beside a tensor is a dimension there.

    `max(1, 2)` is no exception, as a number in place of a tensor is one: nothing is Python's `max`.
    """
    name = (_callee(program, row) or "").rpartition(".")[2]
    if name not in ("max", "min") or len(program.children(row)) != 3:
        return None
    a, b = (_text(program, place) for place in program.children(row)[1:])
    which = "larger" if name == "max" else "smaller"
    return f"`{b}` is a dimension here; the {which} of two is `{name}imum({a}, {b})`"


def _integers_hint(
    program: Program, row: int, operands: tuple[Any, Any], position: int | None
) -> str | None:
    """How the argument that should be of integers is given as such: the last that is whole.

    position: which argument it is, if the error says so.
    """
    places, values = program.children(row), list(operands)
    if program.rows[4 * row] in _CALLS:
        places, values = places[1:], list(operands[0]) if isinstance(operands[0], list) else []
    elif isinstance(operands[1], tuple):  # indices of several dimensions
        places, values = program.children(places[1]), list(operands[1])
    pairs = list(zip(places, values, strict=False))
    # From the last argument on, since indices and sizes stand behind the tensor that they are for.
    for place, value in reversed(pairs if position is None else pairs[position : position + 1]):
        if not hasattr(value, "array") or value.array.dtype.kind != "f" or value.array.size > 20:
            continue
        if (value.array % 1).any():
            continue
        text, whole = _text(program, place), value.array.astype("int64").tolist()
        written = f"tensor({whole})".replace(" ", "")
        given = program.rows[4 * place] == tree_kinds.NAME
        return f"integers: --{text} '{written}'" if given else f"integers: ({text}).long()"
    return None


def no_tensor(program: Program, value: Any, purpose: str) -> LanguageError:
    """The error where a value is no tensor, so that there is no `purpose`: no gradient, no graph."""
    span = program.value_span
    if value is None and span is None:
        what, hint = "the program has no value", "end it with an expression"
    elif value is None:
        what = "the value is None, not a tensor"
        hint = "end with the expression that is meant: what comes last is the value"
    else:
        noun = type(value).__name__
        what = f"the value is {'an' if noun[0] in 'aeiou' else 'a'} {noun}, not a tensor"
        nothing = "nothing in it depends on a variable"
        hint = "a number keeps no graph" if program.free_variables() else nothing
        hint += "; gradcli eval prints the value"
        if callable(value):
            hint = "call it, as in f(x)"
        if isinstance(value, tuple | list):
            hint = "choose one of its items: (…)[0]"
            fields = getattr(value, "_fields", None) or getattr(value, "fields", None)
            if fields:
                what = f"the value is a tuple of {' and '.join(fields)}, not a tensor"
            else:
                hint += (
                    ", or make one tensor of them: stack(…); gradcli jacobian has a row for each"
                )
                if "==" in program.source:
                    hint += "; one equation is differentiated by gradcli diff EQUATION --of NAME"
            bound = dict.fromkeys(program.free_variables())
            hint = _translation(program, bound, True) or hint
    message = f"{what}: there is no {purpose}"
    return LanguageError(
        message, kind="type", source=program.source, span=span, hint=hint, usage=False
    )


def _translation(
    program: Program, visible: Mapping[str, Any], elementwise: bool = False
) -> str | None:
    """What the program is in this language, if its functions have the names they have elsewhere."""
    from gradcli.language import translations
    from gradcli.language.parser import parses

    modules = (known.Constants, known.ModulePath)  # `np.array(…)` calls no method of a value
    bound = {n: callable(value) for n, value in visible.items() if not isinstance(value, modules)}
    start, _ = program.span(
        len(program) - 1
    )  # of a session the source has all texts up to this one
    return translations.hint(program.source[start:], parses, bound, elementwise=elementwise)


def _unknown_hint(word: str, visible: Mapping[str, Any], called: bool) -> str | None:
    if word in known.LEFT_OUT:
        return known.LEFT_OUT[word]
    if close := known.close(word, visible):
        return did_you_mean(close)
    return "`gradcli ops` lists the functions" if called else f"give it a value: --{word} VALUE"


# What PyTorch has and gradcli leaves out, and what stands for it here.
_LEFT_OUT = (
    (
        r"module 'torch\.nn' has no attribute '[A-Z]",
        "programs have no modules: write the function of nn.functional, as in linear(x, w, b); "
        "in Python, gradcli.nn has them; gradcli graph --torch FILE.py runs it with PyTorch",
    ),
    (
        r"module 'torch' has no attribute 'optim'",
        "programs have no optimisers: with no_grad(): w -= 0.1*w.grad; in Python, gradcli.optim has them",
    ),
    (r"attribute '(?:mps|xpu)'", "gradcli computes on the CPU"),
    (
        r"attribute '(?:jit|compile|onnx|export)'",
        "not in programs: gradcli.compile does it in Python",
    ),
    (
        r"attribute '(?:load|save)'",
        "programs cannot use files: gradcli.save and gradcli.load do in Python",
    ),
    (r"attribute '(?:hub|distributed)'", "gradcli does not have it; gradcli ops lists what it has"),
)


def _attribute_hint(program: Program, row: int, value: Any) -> str | None:
    kind = program.rows[4 * row]
    if kind not in (_K["attribute"], _K["target_attribute"]):
        return None
    word = program.words[program.rows[4 * row + 1]]
    return did_you_mean(suggest(word, known.attributes(value)))


def _signature_hint(program: Program, row: int, visible: Mapping[str, Any]) -> str | None:
    name = _callee(program, row)
    if name is None or name.rpartition(".")[0] in visible or name in visible:
        return None
    from gradcli.engine.registry.table import Function

    found = known.qualified(name.removeprefix("torch."))
    if found is None:
        found = known.qualified(name.rpartition(".")[2])
    if name.rpartition(".")[2] == "gradient":
        return "a distance goes by name, coordinates in a tuple: gradient(y, spacing=0.5), (y, spacing=(x,))"
    if not isinstance(found, Function):
        return None
    signature = f"its signature is `{found.signature}`"
    if name == "diff":
        return "SymPy's diff(f, x) is func.grad(lambda x: f)(x), or d/dx f with --math; here " + (
            signature.replace("its", "the")
        )
    if re.match(r"\w+\(input, dim[,)]", found.signature) and len(program.children(row)) == 2:
        # `softmax(z)`: the dimension is all that is missing
        text = _text(program, row).rstrip()
        return f"of a vector it is {text[:-1]}, 0); {signature}"
    return signature


def _callee(program: Program, row: int) -> str | None:
    """The dotted name of the function that a row calls."""
    if program.rows[4 * row] not in _CALLS:
        return None
    callee = program.children(row)[0]
    start, end = program.span(callee)
    text = program.source[start:end].replace(" ", "")
    return text if re.fullmatch(r"[\w.]+", text) else text.rpartition(".")[2]


def _shapes(program: Program, row: int, operands: tuple[Any, Any]) -> tuple[str, ...]:
    """`x` has shape (3,): one line for each operand that is a tensor, at most six."""
    kind = program.rows[4 * row]
    children = program.children(row)
    values: list[Any]
    if kind in _CALLS:
        values = list(operands[0]) if isinstance(operands[0], list) else []
        callee, *children = children
        holder = getattr(operands[1], "__self__", None)
        if holder is not None and hasattr(holder, "array"):
            children.insert(0, program.children(callee)[0] if program.children(callee) else callee)
            values.insert(0, holder)
    else:
        values = list(operands)
    lines: list[str] = []
    for child, value in zip(children, values, strict=False):
        value = getattr(value, "value", value) if type(value).__name__ == "Keyword" else value
        items, places = [value], [child]
        if isinstance(value, (list, tuple)):
            items, places = list(value), program.children(child)
            if len(places) != len(items):
                places = [child] * len(items)
        lines += [
            f"`{_text(program, place)}` has shape {_shape(item)}"
            for place, item in zip(places[:4], items[:4], strict=True)
            if hasattr(item, "array")
        ]
    return tuple(dict.fromkeys(lines))[:6]


def _shape(tensor: Any) -> str:
    return str(tuple(tensor.array.shape))


def _text(program: Program, row: int) -> str:
    start, end = program.span(row)
    text = " ".join(program.source[start:end].split())
    return text if len(text) <= 30 else f"{text[:14]}…{text[-14:]}"

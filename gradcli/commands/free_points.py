"""Commands whose variables need no values: shapes come from --shape, or from what the program can run on."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.request import Request
from gradcli.commands.shape_option import shapes_of
from gradcli.language import parse
from gradcli.language.located_errors import LanguageError
from gradcli.language.parser import parses
from gradcli.language.program import Program

if TYPE_CHECKING:
    from gradcli.engine.system.process import AnyContext


class Point:
    """The variables of a program: those with values, and those that only have a shape.

    arrays: a value for each, made up where none was given. given: the names with values of their own.
    guessed: the shapes, but for scalars, of which nobody gave a size in numbers. letters: the user's, by
    the sizes that stand for them. sizes: the names that are sizes of others.
    """

    sizes: Collection[str] = ()

    def __init__(
        self,
        arrays: dict[str, Any],
        tensors: dict[str, Any],
        guessed: dict[str, tuple[int, ...]],
        letters: Mapping[int, str] | None = None,
    ) -> None:
        self.arrays, self.tensors, self.guessed = arrays, tensors, guessed
        self.letters = letters or {}
        self.given = list(tensors)

    @property
    def is_given(self) -> bool:
        """Whether all values are the user's own."""
        return not set(self.arrays) - set(self.given)


def point(
    ctx: AnyContext,
    request: Request,
    *suits: Callable[[Mapping[str, Any]], bool],
) -> Point:
    """The values of the command line, and made-up ones for the variables that have none.

    suits: see `infer`.
    """
    import numpy as np

    from gradcli.commands.request_evaluation import files_of, read_variable, set_up
    from gradcli.formulas.derive.shape_inference import fixed_sizes

    set_up(ctx, request)
    tensors = {}
    files = files_of(request)
    for name in request.names:
        value = read_variable(request, name, files)
        tensors[name] = value.detach() if value.requires_grad else value
    open_names = [n for n in request.open_variables if n not in tensors]
    declared = shapes_of(request.shapes, open_names, tensors)
    along = request.reading.along if request.reading else {}
    made = made_up_point(request, tensors, declared, open_names, along, *suits)
    arrays = made.arrays
    letters = {
        size: letter
        for name, sizes in declared.items()
        if "*" not in sizes
        for size, letter in zip(np.shape(arrays[name]), sizes, strict=True)
        if isinstance(letter, str)
    }
    for size in fixed_sizes(request.program, arrays, made.guessed, request.loaded):
        letters[size] = str(size)
    made.letters = letters
    return with_sizes(request, made)


def with_sizes(request: Any, where: Point) -> Point:
    """The point with the variables that are sizes of others, as m is in `\\frac1m \\sum_{i=1}^m x_i`."""
    where.sizes = [name for name in request.sizes if name in where.arrays]
    where.arrays = sized(request, where.arrays)
    for name in where.sizes:
        if len(name) == 1 and " " not in request.sizes[name]:
            where.letters = {**where.letters, int(where.arrays[name]): name}
    return where


def sized(request: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays with the variables that are sizes of others; as they are where these have no size."""
    import numpy as np

    from gradcli.engine.core.tensor import wrap
    from gradcli.language import run
    from gradcli.language.located_errors import OPERATION_ERRORS
    from gradcli.language.math_values import variables_of

    # Some are sizes of what the program computes.
    before = "; ".join(re.split(r"[;\n]", request.program.source)[:-1])
    for name, size in request.sizes.items():
        if name not in arrays:
            continue
        text = size if variables_of(size) <= arrays.keys() else f"{before}; {size}"
        with np.errstate(all="ignore"), suppress(LanguageError, *OPERATION_ERRORS):
            values = {n: wrap(a) for n, a in arrays.items()}
            count = run(parse(text), {**request.loaded, **values}).value
            arrays = {**arrays, name: np.asarray(float(count), arrays[name].dtype)[()]}
    return arrays


def made_up_point(
    request: Any,
    tensors: Mapping[str, Any],
    declared: dict[str, Any],
    open_names: Sequence[str],
    along: Mapping[str, str] = MappingProxyType({}),
    *suits: Callable[[Mapping[str, Any]], bool],
) -> Point:
    """The given values, and made-up ones for the variables that have none.

    request: whose program it is, and what else that may read. declared: the shapes that are said. along: the
    direction of each variable; it has the shape of the variable. suits: see `infer`.
    """
    from gradcli.formulas.derive.shape_inference import made_up

    _check_no_call_in_brackets(request.program, [n for n in open_names if n not in declared])
    for name in {"e", "E"}.intersection(open_names):
        if re.search(rf"(?<![\w.]){name}\s*\*\*", request.program.source):
            output.note(f"{name} is a variable here; a power of Euler's number is exp(…)")
    for x, way in along.items():
        if way in open_names and way not in declared:
            if x in declared:
                declared[way] = declared[x]
            elif x in tensors:
                declared[way] = tuple(tensors[x].shape)
    given = {n: t.array for n, t in tensors.items()}
    program, names = request.program, request.loaded
    arrays, guessed = made_up(program, given, declared, open_names, names, *suits)
    return Point(arrays, dict(tensors), {n: s for n, s in guessed.items() if s})


def _check_no_call_in_brackets(program: Program, open_names: Sequence[str]) -> None:
    """Refuse `Sin[x]`, an element of a matrix that nobody knows, where Mathematica calls a function."""
    if not any(name[0].isupper() and f"{name}[" in program.source for name in open_names):
        return
    from gradcli.language.computer_algebra import bracket_calls
    from gradcli.language.translations import hint

    called = [name for name in bracket_calls(program.source) if name in open_names]
    if called and (written := hint(program.source, parses)):
        start = program.source.index(f"{called[0]}[")
        raise LanguageError(
            f"`{called[0]}[…]` is an element of a matrix here, and no matrix is called {called[0]}",
            kind="name",
            source=program.source,
            span=(start, start + len(called[0])),
            hint=f"{written}; of a matrix say --shape {called[0]}=m,n",
        )


def wanted_names(request: Request, point: Point) -> list[str]:
    """The variables to differentiate by: --wrt, or all of a floating dtype but --no-grad."""
    from gradcli.commands.request_evaluation import cannot_require_grad

    able = [n for n, a in point.arrays.items() if a.dtype.kind in "fc"]
    for name in request.wrt or ():
        if name not in able:
            raise cannot_require_grad(request, name, point.tensors[name])
    every = request.wrt if request.wrt is not None else list(point.arrays)
    every = [n for n in every if n not in point.sizes]
    wanted = [n for n in every if n not in request.no_grad]
    if found := [n for n in wanted if n in able]:
        return found
    if wanted:
        raise cannot_require_grad(request, wanted[0], point.tensors[wanted[0]])
    raise usage(
        "nothing to differentiate with respect to",
        hint=_no_variables(request.program) if not point.arrays else "see --wrt, --no-grad",
    )


def _no_variables(program: Program) -> str:
    """What to do where an expression has none: of `lambda x: x**2` the body is differentiated."""
    from gradcli.language.translations import hint

    return hint(program.source, parses) or "the expression has no variables"


def note_guesses(point: Point) -> None:
    """Say which shapes were worked out, for nobody gave them."""
    if not point.guessed:
        return
    letters = _letters(point)
    made = {n: a for n, a in point.arrays.items() if n not in (*point.given, *point.sizes)}
    said = ", ".join(
        f"{n} ∈ {_space(a.shape, letters) if a.dtype.kind in 'fc' else 'Z'}"
        for n, a in made.items()
    )
    first = next(n for n in made if n in point.guessed)
    output.note(f"shapes: {said}; give others with --shape {first}=… or --{first} VALUE")


LETTERS = "nmkpqrstuv"  # for sizes, in this order
_RAISED = str.maketrans(
    "0123456789nmkpqrstuvabcdefghijlowxyzABDEGHIJKLMNOPRTUVW",
    "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿᵐᵏᵖᑫʳˢᵗᵘᵛᵃᵇᶜᵈᵉᶠᵍʰⁱʲˡᵒʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂ",
)


def _letters(point: Point) -> dict[int, str]:
    """A letter for each size that nobody gave: the user's own, else n for that of the first vector, or of
    a matrix's columns."""
    free = iter([k for k in LETTERS if k not in point.letters.values()])
    fixed = {k for n, a in point.arrays.items() if n not in point.guessed for k in a.shape}
    shapes = sorted(point.guessed.values(), key=len)
    sizes = [k for s in shapes for k in reversed(s) if k not in fixed]
    return {k: point.letters.get(k) or next(free, str(k)) for k in dict.fromkeys(sizes)}


def _space(shape: tuple[int, ...], letters: Mapping[int, str]) -> str:
    """`R`, `Rⁿ`, `Rᵐˣⁿ`."""
    return "R" + "ˣ".join(letters.get(k, str(k)).translate(_RAISED) for k in shape)

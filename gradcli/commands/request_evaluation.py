"""From a request to a value: variables read, told to require grad or not, and the program run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.language.located_errors import OPERATION_ERRORS, error_at

if TYPE_CHECKING:
    from gradcli.commands.cut_variables import Cut
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext
    from gradcli.language import Machine
    from gradcli.language.located_errors import LanguageError
    from gradcli.tables import Reader

NO_GRAD_DTYPES = "Only Tensors of floating point and complex dtype can require gradients"
LONGEST_INTEGER = 400_000  # digits; the language's integers end at 2**20 bits


class Evaluation:
    """A program's value, and the tensors that it was made from.

    names: every name that the program bound, and the variables. integers: the variables that would have
    to require grad, if their dtype could.
    """

    def __init__(
        self,
        request: Request,
        variables: dict[str, Any],
        value: Any,
        names: dict[str, Any],
        integers: list[str],
    ) -> None:
        self.request, self.variables, self.value = request, variables, value
        self.names, self.integers = names, integers
        self.drawn: Any = (
            None  # the random numbers to come when the program began; None: from the seed
        )

    @property
    def leaves(self) -> dict[str, Any]:
        """The leaves that require grad: variables first, then those that the program made."""
        found = {n: t for n, t in self.variables.items() if _is_tracked_leaf(t)}
        seen = {id(tensor) for tensor in found.values()}
        for name, tensor in self.names.items():
            if id(tensor) not in seen and name not in found and _is_tracked_leaf(tensor):
                found[name] = tensor
                seen.add(id(tensor))
        return found

    def arrays(self) -> dict[str, Any] | None:
        """The variables as they were when the program began; None if it wrote into them."""
        if any(t.version_number() for t in self.variables.values()):
            return None
        return {n: t.array for n, t in self.variables.items()}

    def rewind(self) -> None:
        """Let the random numbers come again that came while the program ran."""
        if (random := sys.modules.get("gradcli.engine.core.random")) is not None:
            before = random.initial_seed() if self.drawn is None else self.drawn
            random.rewind(before)

    @property
    def is_wrong(self) -> bool:
        """Whether a gradient of a leaf is not finite."""
        from gradcli.commands.output import is_finite

        grads = [t.grad for t in self.leaves.values()]
        return any(g is not None and not is_finite(g.array) for g in grads)

    @property
    def span(self) -> tuple[int, int] | None:
        """Where the source has the expression whose value it is."""
        return self.request.program.value_span

    def error_for(self, error: Exception, hint: str | None = None) -> LanguageError:
        """An error of the engine's about the value."""
        return error_at(error, source=self.request.source, span=self.span, hint=hint)

    def tensor(self, purpose: str) -> Any:
        """The value, if it is a tensor; else the error that says why there is no `purpose`."""
        if hasattr(self.value, "requires_grad"):
            return self.value
        from gradcli.language.runtime_errors import no_tensor

        found = no_tensor(self.request.program, self.value, purpose)
        number = isinstance(self.value, int | float | complex)
        if number and self.leaves and (cut := self.cut()) is not None:
            found.span, found.hint = cut.span, cut.hint
        raise found

    def cut(self) -> Cut | None:
        """The piece of the program that cuts the variables off from its value."""
        from gradcli.commands.cut_variables import find_cut

        names = {**self.request.loaded, **self.variables, **self.names}
        return find_cut(self.request.program, names)


class Look:
    """Looks, while a program runs, whether any call lies on a switch: only then is there more to do.

    met: one does. compiled: the calls ran on arrays without numbers, so it is not known.
    """

    __slots__ = ("compiled", "met")

    def __init__(self) -> None:
        self.met = self.compiled = False

    def __enter__(self) -> Look:
        from gradcli.engine.core.switch import watching

        watching.append(self.see)
        return self

    def __exit__(self, *error: object) -> None:
        from gradcli.engine.core.switch import watching

        watching.remove(self.see)

    def again(self, evaluation: Evaluation) -> None:
        """Look at the numbers of a run that was compiled: the program runs once more, without a tape."""
        from gradcli import language
        from gradcli.engine.core import modes
        from gradcli.engine.core.tensor import wrap

        arrays, request = evaluation.arrays(), evaluation.request
        if arrays is None:
            return
        evaluation.rewind()
        given = {**request.loaded, **{n: wrap(a) for n, a in arrays.items()}}
        with self, modes.no_grad():
            language.run(request.program, given, write=lambda text: None)

    def see(self, primitive: Any, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """One call of an operator that has a switch."""
        if self.met or primitive.switch is None:
            return
        import numpy as np

        from gradcli.engine.core.switch import JUMP, KINK, MISSED, Call

        first = results[0]
        if not isinstance(first, (np.ndarray, np.generic)):
            self.compiled = True
        elif first.dtype.kind == "f":
            call = Call(primitive, operands, results)
            self.met = any(
                p.kind in (KINK, JUMP, MISSED) and p.count(call) > 0 for p in primitive.switch
            )


def evaluate(ctx: AnyContext, request: Request) -> Evaluation:
    """Run the program on the values of the command line."""
    variables, integers = read_variables(ctx, request)
    return run(request, variables, integers)


def read_variables(ctx: AnyContext, request: Request) -> tuple[dict[str, Any], list[str]]:
    """The variables of the command line, and which of them cannot require grad but should."""
    set_up(ctx, request)
    files = files_of(request)
    variables = {name: read_variable(request, name, files) for name in request.names}
    return variables, [n for n, t in variables.items() if not require_grad(request, n, t)]


def machine(ctx: AnyContext, request: Request, *, max_steps: int | None = None) -> Machine:
    """A machine that knows the values of the command line, to run programs on."""
    from gradcli.language import Machine

    variables, _ = read_variables(ctx, request)
    return Machine({**request.loaded, **variables}, max_steps=max_steps)


def apart(request: Request) -> AbstractContextManager[Any]:
    """Where programs run: an object on standard output is alone there, what they print goes elsewhere."""
    return redirect_stdout(sys.stderr) if request.style.form == "json" else nullcontext()


def drawn() -> Any:
    """What random numbers come next, if any have been asked for."""
    random = sys.modules.get("gradcli.engine.core.random")
    return None if random is None else random.snapshot()


def run(request: Request, variables: dict[str, Any], integers: Iterable[str] = ()) -> Evaluation:
    """Run the program on these variables."""
    from gradcli import language

    before = drawn()
    with apart(request):
        result = language.run(request.program, {**request.loaded, **variables})
    found = Evaluation(request, variables, result.value, result.names, list(integers))
    found.drawn = before
    return found


def set_up(ctx: AnyContext, request: Request) -> None:
    """Set the default dtype (until the context closes) and the generator's seed, once."""
    prepare(ctx, request.dtype, request.manual_seed)


def prepare(ctx: AnyContext, dtype: str, manual_seed: int | None) -> None:
    """The same before there is a request, for files that are loaded."""
    if ctx.meta.setdefault("gradcli.prepared", False):
        return
    ctx.meta["gradcli.prepared"] = True
    from gradcli.engine.core.modes import told

    told.set(output.note)
    ctx.call_on_close(lambda: told.set(None))
    import warnings

    import numpy as np

    sys.set_int_max_str_digits(LONGEST_INTEGER)

    from gradcli.engine.system import dtypes

    # inf and nan are results like others, as in PyTorch; what is worth a warning is one line of ours.
    ctx.with_resource(np.errstate(all="ignore"))
    ctx.with_resource(warnings.catch_warnings())
    warnings.showwarning = _once()
    # A leak is none in a process that ends.
    warnings.filterwarnings("ignore", r"Using backward\(\) with create_graph=True")
    before = dtypes.get_default_dtype()
    ctx.call_on_close(lambda: dtypes.set_default_dtype(before))
    dtypes.set_default_dtype(getattr(dtypes, dtype))
    if manual_seed is not None:
        from gradcli.engine.registry.table import resolve

        try:
            resolve("manual_seed")(manual_seed)
        except OPERATION_ERRORS as error:
            raise usage(f"--manual-seed: {error}") from error


def _once() -> Callable[..., None]:
    """What shows a warning, and not again: a command may run a program several times."""
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        from gradcli.commands import output

        text = " ".join(str(message).split())
        if text not in said:
            said.add(text)
            output.note(text, "warning")

    return show


def read_value(text: str, option: str, dtype: Any = None, files: Reader | None = None) -> Any:
    """The value of an option; what is wrong with it says which option's it is."""
    from gradcli import language
    from gradcli.language.located_errors import LanguageError

    try:
        return language.read_value(text, stdin=sys.stdin, dtype=dtype, files=files)
    except LanguageError as error:
        error.message = f"{option}: {error.message}"
        raise


def files_of(request: Request) -> Reader | None:
    """What reads the files that the command line names; None where it names none."""
    from gradcli.language.option_values import file_reference

    references = [file_reference(text) for text in request.texts.values()]
    if request.files is not None or not any(references):
        return request.files
    from gradcli.commands.output import note
    from gradcli.tables import Reader, TableError

    try:
        asked = [r for r in references if r]
        request.files = Reader(sys.stdin, request.missing, asked, note, request.tables)
    except TableError:  # said again, better, where that option is read
        request.files = Reader(sys.stdin, request.missing, tell=note, reading=request.tables)
    return request.files


def read_variable(request: Request, name: str, files: Reader | None) -> Any:
    """The tensor that the command line gives a variable, without a graph of its own."""
    if name in request.tensors:
        return request.tensors[name].detach().clone()
    value = read_value(request.texts[name], request.options[name].rstrip("="), files=files)
    if value.grad_fn is not None:
        value = value.detach()  # `tensor([1.], requires_grad=True)*2`: the option's value is a leaf
    return value


def require_grad(request: Request, name: str, tensor: Any) -> bool:
    """Make the variable require grad, or not; False where its dtype cannot."""
    wanted = name not in request.no_grad and (request.wrt is None or name in request.wrt)
    able = tensor.is_floating_point() or tensor.is_complex()
    if wanted and not able:
        if request.wrt is not None:
            raise cannot_require_grad(request, name, tensor)
        return False
    if tensor.requires_grad != wanted:
        tensor.requires_grad_(wanted)
    return True


def cannot_require_grad(request: Request, name: str, tensor: Any) -> LanguageError:
    """The error for a variable of an integer or bool dtype."""
    text = request.texts[name]
    return error_at(
        RuntimeError(NO_GRAD_DTYPES),
        source=text,
        span=(0, len(text)),
        hint=f"{name} has dtype {tensor.dtype.name}; write it as plain numbers (1,2) or with a "
        f"floating dtype= to differentiate with respect to it",
    )


def _is_tracked_leaf(value: Any) -> bool:
    return getattr(value, "requires_grad", False) is True and value.is_leaf

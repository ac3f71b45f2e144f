"""From a request to a value and back: variables read and told to require grad or not, the program run, and
backward passes over it, with the errors that PyTorch's users know, and remedies.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError, error_at

if TYPE_CHECKING:
    from gradcli.commands.cut_variables import Cut
    from gradcli.commands.kink_notes import Kinks, Others
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext
    from gradcli.language import Machine
    from gradcli.tables import Reader
    from gradcli.transforms.removable import Remarks

NO_GRAD_DTYPES = "Only Tensors of floating point and complex dtype can require gradients"
LONGEST_INTEGER = 400_000  # digits; the language's integers end at 2**20 bits


class Evaluation:
    """A program's value, and the tensors that it was made from.

    request: the command line's or the verb's, which have the program, `loaded` and `error_for`. names: every
    name that the program bound, and the variables. integers: the variables that would have to require grad,
    if their dtype could. plan: what --plan prints. differentiated: whether the gradients are there already,
    for the program was compiled.
    """

    def __init__(
        self,
        request: Any,
        variables: dict[str, Any],
        value: Any,
        names: dict[str, Any],
        integers: list[str],
    ) -> None:
        self.request, self.variables, self.value = request, variables, value
        self.names, self.integers = names, integers
        # The random numbers to come when the program began; None: from the seed.
        self.drawn: Any = None
        self.plan: list[str] | None = None
        self.differentiated = False

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

    def tensors(self) -> dict[str, Any]:
        """The variables without their graph, for the program to run again."""
        return {n: t.detach() for n, t in self.variables.items()}

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
        return bool(not_finite({n: t.grad for n, t in self.leaves.items()}))

    def error_for(self, error: Exception, hint: str | None = None) -> LanguageError:
        """An error of the engine's about the value."""
        found: LanguageError = self.request.error_for(error, hint)
        return found

    def tensor(self, purpose: str) -> Any:
        """The value, if it is a tensor; else the error that says why there is no `purpose`."""
        from gradcli.engine.core.tensor import Tensor

        if isinstance(self.value, Tensor):
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
    """Notes, while a program runs, whether a call lies on a switch, as relu at 0 or floor at 1.

    Most runs meet none, and then nothing more need be computed for the notes on kinks. met: one lies there.
    compiled: the calls ran on arrays without numbers, so it is not known. switched: the operators called
    that have a switch anywhere.
    """

    __slots__ = ("compiled", "met", "switched")

    def __init__(self) -> None:
        self.met = self.compiled = False
        self.switched: set[Any] = set()

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

    def see(
        self, primitive: Any, operands: Sequence[Any], results: Sequence[Any], given: Sequence[Any]
    ) -> None:
        """One call of an operator that has a switch."""
        if primitive.switch is not None:
            self.switched.add(primitive)
        if self.met or primitive.switch is None:
            return
        import numpy as np

        from gradcli.engine.core.switch import JUMP, KINK, MISSED, WatchedCall

        first = results[0]
        if not isinstance(first, (np.ndarray, np.generic)):
            self.compiled = True
        elif first.dtype.kind == "f":
            call = WatchedCall(primitive, operands, results)
            self.met = any(
                p.kind in (KINK, JUMP, MISSED) and p.count(call) > 0 for p in primitive.switch
            )


def _bends(primitive: Any) -> bool:
    """Whether an operator has a kink or a jump anywhere."""
    from gradcli.engine.core.switch import JUMP, KINK

    return any(point.kind in (KINK, JUMP) for point in primitive.switch)


def note_of_random_kinks(evaluation: Evaluation, look: Look) -> None:
    """Say that second derivatives of draws, such as gamma of `relu(S - K)`, are none of their mean."""
    before, after = evaluation.drawn, drawn()
    if (
        not any(map(_bends, look.switched))
        or after is None
        or after[1] == (0 if before is None else before[1])
    ):
        return
    output.note(
        "kinks have no second derivative, and random draws miss them: this is not that of the mean; "
        "differences of the first derivative, with one --manual-seed, are near it"
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
    """Inside, programs run: with --json they print to standard error, since the output is one JSON object."""
    return redirect_stdout(sys.stderr) if request.style.form == "json" else nullcontext()


def drawn() -> Any:
    """What random numbers come next, if any have been asked for."""
    random = sys.modules.get("gradcli.engine.core.random")
    return None if random is None else random.snapshot()


def run(request: Request, variables: dict[str, Any], integers: Iterable[str] = ()) -> Evaluation:
    """Run the program on these variables."""
    from gradcli.language.interpreter import run as run_program

    before = drawn()
    with apart(request):
        result = run_program(request.program, {**request.loaded, **variables})
    found = Evaluation(request, variables, result.value, result.names, list(integers))
    found.drawn = before
    return found


def set_up(ctx: AnyContext, request: Request) -> None:
    """Set the default dtype (until the context closes) and the generator's seed, once."""
    prepare(ctx, request.dtype, request.manual_seed)


def prepare(ctx: AnyContext, dtype: str, manual_seed: int | None) -> None:
    """As `set_up`, before there is a request: files are loaded before the expression is read."""
    if ctx.meta.setdefault("gradcli.prepared", False):
        return
    ctx.meta["gradcli.prepared"] = True
    ctx.with_resource(_prepared(dtype))
    if manual_seed is not None:
        from gradcli.engine.registry.table import resolve

        try:
            resolve("manual_seed")(manual_seed)
        except OPERATION_ERRORS as error:
            raise usage(f"--manual-seed: {error}") from error


@contextmanager
def _prepared(dtype: str) -> Iterator[None]:
    """Inside, a command runs: with its default dtype, warnings as notes, and none of NumPy's."""
    import warnings

    import numpy as np

    from gradcli.engine.core.modes import told
    from gradcli.engine.system import dtypes

    sys.set_int_max_str_digits(LONGEST_INTEGER)
    told.set(output.note)
    # inf and nan are results like others, as in PyTorch; what is worth a warning is one line of ours.
    with (
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
        dtypes.as_default(getattr(dtypes, dtype)),
    ):
        warnings.showwarning = _once()
        # It warns of a leak of memory, which does no harm in a process that is about to end.
        warnings.filterwarnings("ignore", r"Using backward\(\) with create_graph=True")
        try:
            yield
        finally:
            told.set(None)


def _once() -> Callable[..., None]:
    """Shows each warning once: a command may run its program several times."""
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
    from gradcli.language.option_values import read_value as read

    try:
        return read(text, stdin=sys.stdin, dtype=dtype, files=files)
    except LanguageError as error:
        from gradcli.engine.system.spread import with_option

        error.message = f"{option}: {error.message}"
        error.hint = with_option(error.hint, option)
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


def held_data(request: Request, names: Iterable[str]) -> list[str]:
    """Those of the names that a search holds because a file has their values: a file has data, and a
    number is a start. None are held with --wrt, and where a file has the values of all. Says which.
    """
    from gradcli.commands.output import note
    from gradcli.language.option_values import file_reference

    free = [n for n in names if n not in request.no_grad]
    held = [n for n in free if file_reference(request.texts.get(n, "")) is not None]
    if request.wrt is not None or not held or len(held) == len(free):
        return []
    is_, it = ("is", "it") if len(held) == 1 else ("are", "them")
    note(
        f"{', '.join(held)} {is_} read from a file, and held; --wrt {','.join(free)} varies {it} too"
    )
    return held


def read_variable(request: Request, name: str, files: Reader | None) -> Any:
    """The tensor that the command line gives a variable, without a graph of its own."""
    if name in request.tensors:
        return request.tensors[name].detach().clone()
    value = read_value(request.texts[name], request.options[name].rstrip("="), files=files)
    _note_end(name, request.texts[name])
    if value.node is not None:
        value = value.detach()  # `tensor([1.], requires_grad=True)*2`: the option's value is a leaf
    return value


def _note_end(name: str, text: str) -> None:
    """Say of `1:20` that 20 is not in it: who counts from 1 expects it. `0:20` has 20 numbers."""
    found = re.fullmatch(r"\s*(-?\d{1,9}):(-?\d{1,9})\s*", text)
    if found is None or not (start := int(found[1])) or start >= (stop := int(found[2])):
        return
    output.note(
        f"--{name} {text.strip()} ends at {stop - 1}, as ranges do; {start}:{stop + 1} has {stop}, too"
    )


def require_grad(request: Request, name: str, tensor: Any) -> bool:
    """Make the variable require grad, or not; False where its dtype cannot."""
    wanted = name not in request.no_grad and (request.wrt is None or name in request.wrt)
    if wanted and tensor.array.dtype.kind not in "fc":
        if request.wrt is not None:
            raise cannot_require_grad(request, name, tensor)
        return False
    if wanted or tensor.requires_grad:
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
    from gradcli.engine.core.tensor import Tensor

    return isinstance(value, Tensor) and value.node is not None and value.is_leaf


# -- backward passes --------------------------------------------------------------------------------
def cotangent_of(evaluation: Evaluation, text: str | None) -> Any:
    """The cotangent of --seed; None for the implicit one."""
    if text is None:
        return None
    if text.strip() == "ones":
        from gradcli.engine.registry.table import resolve

        return resolve("ones_like")(evaluation.tensor("gradient").detach())
    return _read_seed(evaluation.tensor("gradient"), text)


def cotangent_array(value: Any, text: str) -> Any:
    """The cotangent as an array for the value of a trace; `ones` takes no memory."""
    import numpy as np

    if text.strip() == "ones":
        return np.broadcast_to(value.array.dtype.type(1), value.array.shape)
    return _read_seed(value, text).array


def _read_seed(value: Any, text: str) -> Any:
    able = value.is_floating_point() or value.is_complex()
    return read_value(text, "--seed", value.dtype if able else None).detach()


def backward(
    evaluation: Evaluation,
    seed: Any,
    *,
    passes: int = 1,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> None:
    """Backpropagate `passes` times from the value, which is a tensor."""
    for number in range(1, passes + 1):
        try:
            evaluation.value.backward(
                seed, retain_graph=retain_graph or None, create_graph=create_graph
            )
        except OPERATION_ERRORS as error:
            raise explained(evaluation, error, number) from error


def explained(evaluation: Evaluation, error: Exception, number: int = 1) -> LanguageError:
    """The error with the place and the remedy. number: of the backward pass that failed, from 1."""
    from gradcli.engine.core import errors
    from gradcli.language.error_remedies import remedy

    if isinstance(error, LanguageError):
        return error
    if isinstance(error, errors.NoGradientError):
        if evaluation.integers:
            name = evaluation.integers[0]
            return cannot_require_grad(evaluation.request, name, evaluation.variables[name])
        found = evaluation.error_for(error, _nothing_requires_grad(evaluation))
        if evaluation.leaves and (cut := evaluation.cut()) is not None:
            found.span, found.hint = cut.span, cut.hint
        return found
    hint = remedy(error, "command")
    if isinstance(error, errors.NoRuleError):
        hint = _has_a_rule(evaluation, error.name)
    if isinstance(error, errors.GraphFreedError) and number > 1:
        hint = f"pass {number} found the graph freed; add --retain-graph to keep it between passes"
    return evaluation.error_for(error, hint)


def _has_a_rule(evaluation: Evaluation, name: str) -> str | None:
    """The variables by which the value has a derivative, where a function has none by its first argument."""
    function, _, argument = name.partition(": ")
    if not argument:
        return None
    alike = ("IgammaBackward0", "IgammacBackward0")  # a value may have both
    root = getattr(evaluation.value, "grad_fn", None)
    cut = {
        id(leaf)
        for node in _nodes(root)
        if node.name() in alike
        for leaf in _leaves(node.next_functions[0][0])
    }
    left = [n for n, leaf in evaluation.leaves.items() if id(leaf) not in cut]
    if not cut or not left:
        return None
    options = " ".join(f"--wrt {n}" for n in left)
    return f"{function} has a derivative by its second argument alone: {options}"


def _nodes(root: Any) -> list[Any]:
    """The nodes of a graph from its root on, each once."""
    found: dict[int, Any] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        if node is not None and id(node) not in found:
            found[id(node)] = node
            todo += [after for after, _ in node.next_functions]
    return [*found.values()]


def _leaves(root: Any) -> list[Any]:
    return [node.variable for node in _nodes(root) if hasattr(node, "variable")]


def _nothing_requires_grad(evaluation: Evaluation) -> str:
    request = evaluation.request
    if not request.names:
        return "the expression has no variables to differentiate with respect to"
    if not evaluation.leaves:
        return f"no variable ({', '.join(request.names)}) requires grad: see --no-grad and --wrt"
    names = ", ".join(evaluation.leaves)
    return f"no variable that requires grad ({names}) reaches the value: detached, or unused?"


def not_finite(gradients: Mapping[str, Any]) -> list[str]:
    """The names of the gradients that are not finite."""
    import numpy as np

    return [n for n, g in gradients.items() if g is not None and not np.isfinite(g.array).all()]


def note_not_finite(wrong: Sequence[str], remedy: str = "") -> None:
    """Say once, besides the results, which gradients are not finite; remedy: what finds out why."""
    shown = ", ".join(wrong[:3]) + (", …" if len(wrong) > 3 else "")
    what = "gradient is" if len(wrong) == 1 else "gradients are"
    output.note(f"the {what} not finite ({shown}){remedy}")


def note_value(value: Any) -> None:
    """Say that a value is not finite, whose gradient is: that of `log(x)` at -1 is -1 by its rule."""
    import numpy as np

    wrong = np.asarray(value.array)[~np.isfinite(value.array)]
    output.note(f"the value is not finite ({wrong.flat[0]}), where its gradient is")


def retained(
    evaluation: Evaluation, leaves: Collection[str], names: list[str], every: bool
) -> dict[str, Any]:
    """Make the named intermediates keep their gradients; `every` means all that can."""
    if every:
        names = [n for n, t in evaluation.names.items() if getattr(t, "grad_fn", None) is not None]
    found: dict[str, Any] = {}
    for name in names:
        if name in leaves:
            continue
        tensor: Any = evaluation.names.get(name, evaluation.variables.get(name))
        if not hasattr(tensor, "retain_grad"):
            raise usage(f"--retain: {name} is not a tensor when the expression ends", kind="name")
        try:
            tensor.retain_grad()
        except OPERATION_ERRORS as error:
            raise evaluation.error_for(error, f"{name} does not depend on a variable") from error
        found[name] = tensor
    return found


MOST_NODES = 2000  # that are looked at, of a graph


def may_lose(value: Any) -> bool:
    """Whether an operator with critical points made a tensor, among the first nodes of its graph.

    Its rules may lose digits of slopes there: 1 - tanh(x)**2 is 0 from x = 19 on, the slope not to x = 370;
    the gradient of det is 0 by rule where the matrix is singular, its cofactors are not.
    """
    first = getattr(value, "grad_fn", None)
    stack, seen = [first] if first is not None else [], set[int]()
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        primitive = getattr(type(node), "_primitive", None)
        if getattr(primitive, "critical", None) is not None:
            return True
        stack += [n for n, _ in node.next_functions if n is not None]
    return False


def tails(
    evaluation: Evaluation, grads: Mapping[str, Any], seed: Any
) -> tuple[dict[str, Any], Remarks | None]:
    """Gradients with the digits that results have lost: the slope of tanh at 20, where it is 1.

    Only those that are others than the tape's, and what is to be said of them.
    """
    if not grads or not may_lose(evaluation.value):
        return {}, None
    import numpy as np

    from gradcli.engine.core.tensor import wrap
    from gradcli.transforms import removable

    request, given = evaluation.request, None if seed is None else seed.array
    arrays = {n: g.array for n, g in grads.items()}
    found, remarks = removable.slopes(
        request.program, evaluation.tensors(), arrays, given, request.loaded
    )
    return {n: wrap(np.asarray(a)[()]) for n, a in found.items()}, remarks


def nth(
    evaluation: Evaluation, leaves: Mapping[str, Any], order: int, seed: Any, watch: Any
) -> Any:
    """The gradient's gradient, and so on; what is to be said of them.

    From the second time on the gradient is summed up first, so elementwise functions give their
    elementwise derivatives.
    """
    from gradcli.transforms import removable

    request, value = evaluation.request, evaluation.value
    try:
        return removable.nth_gradients(
            *(request.program, evaluation.tensors(), value, leaves, order, seed, request.loaded),
            watch.critical or watch.bent,
        )
    except OPERATION_ERRORS as error:
        raise request.error_for(error) from error


def again(evaluation: Evaluation, start: Any, derivative: Any, by: Any, *how: Any) -> Any:
    """The derivative of a program that has run, and runs once more from the same start."""
    request = evaluation.request
    start.again()
    try:
        return derivative(request.program, evaluation.tensors(), by, request.loaded, *how)
    except OPERATION_ERRORS as error:
        raise request.error_for(error) from error


def check_scalar(evaluation: Evaluation, matrix: str) -> None:
    """Refuse the Hessian of what is not a scalar; matrix: what has the derivative of that."""
    value = evaluation.value
    if value.numel() != 1:
        shape = tuple(value.shape)
        hint = f"the value has shape {shape}: take its sum(), or see {matrix}"
        raise evaluation.request.error_for(RuntimeError("the Hessian is that of a scalar"), hint)


def tell(remarks: Remarks) -> None:
    """The remarks on results, each as a note."""
    for line in remarks.lines():
        output.note(line)


# -- points without a derivative ----------------------------------------------------------------
def kinks_of(
    evaluation: Evaluation,
    look: Look,
    seed: Any = None,
    *,
    wrong: Collection[str] | None = None,
    like: Others | None = None,
    hooked: bool = False,
    order: int = 1,
    rows: bool = False,
) -> Kinks | None:
    """What there is to say of points without a derivative; None for nothing, at no cost.

    seed: the cotangent of --seed. wrong: the leaves whose gradients are not finite, if that is known.
    like: asks what other systems have. hooked: whether gradients are what a hook made of them. order, rows:
    of higher derivatives, of a Jacobian.
    """
    if look.compiled and not (hooked or look.met):
        look.again(evaluation)
    if hooked or not (like or look.met or (evaluation.is_wrong if wrong is None else wrong)):
        return None
    from gradcli.commands.kink_notes import Kinks

    found = Kinks(evaluation, look, seed, order, rows)
    found.tell()
    if like:
        found.ask(like)
    return found

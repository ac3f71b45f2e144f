"""`--torch FILE.py[:NAME]`: a program of PyTorch's is run as Python runs it, and its graph inspected.

PyTorch is that of the environment that gradcli runs in; where there is none, gradcli stands in its place.
What the program prints goes to standard error: standard output has the graph.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradcli.commands.command_errors import DEBUG_VARIABLE, usage
from gradcli.commands.output import note
from gradcli.engine.registry import torch_namespaces
from gradcli.engine.system import interrupts
from gradcli.graphs.of_torch.early_end import Stopped
from gradcli.graphs.of_torch.own_nodes import OwnProgramProbe
from gradcli.graphs.of_torch.torch_tensors import is_torch_tensor, node_of
from gradcli.language.located_errors import LanguageError, did_you_mean, suggest

if TYPE_CHECKING:
    from gradcli.graphs.inspection import Graph
    from gradcli.graphs.of_torch.torch_anomaly import Found
    from gradcli.graphs.of_torch.torch_watch import Watch


class Ran:
    """A program that has run: its names, and what watching it has brought."""

    def __init__(self, path: str, names: dict[str, Any], watch: Watch, error: str | None) -> None:
        self.path, self.names, self.watch, self.error = path, names, watch, error
        self.returned: list[Any] | None = None  # by a module that was called alone
        self.inputs: dict[str, Any] = {}  # of that module
        self.code = 0  # what the program itself would have ended with

    def title(self, wanted: str | None) -> str:
        """The file's name, with what was asked for."""
        return os.path.basename(self.path) + (f":{wanted}" if wanted else "")

    def graph(self, wanted: str | None) -> Graph:
        """The graph of NAME, or of NAME,NAME; else of what `backward()` was called on last, or `loss`."""
        from gradcli.graphs.inspection import torch_graph

        found = self._tensors(wanted)
        roots = self.watch.roots
        names = roots | {n: v for n, v in self.names.items() if not n.startswith("__")}
        # a function's `loss` beside the program's own
        names |= {n: t for n, t in roots.items() if any(t is one for one in found)}
        names = names if self.returned is None else self.inputs
        last, end = self.watch.last, self.watch.end
        partial = last is not None and not any(t is last for t in found)
        if (former := self.watch.last_finite(found)) is not None:
            found, names = [former.root], names | dict.fromkeys(former.names, former.root)
        graph = torch_graph(tuple(found), names=names, calls=self.watch.calls)
        if isinstance(graph.probe, OwnProgramProbe):
            graph.probe.recorded = self.watch.recorded
        graph.facts, graph.error = self.watch.facts, self.error
        graph.finite_step = None if former is None else former.step
        alone = self.returned is not None or (end is not None and end.at is not None)
        graph.facts.partial = alone or partial
        graph.facts.nonfinite = self._not_finite()
        if not found and not graph.diagnosis().findings:
            if self.error is not None:
                raise self._failed("it made a tensor with a graph")
            raise LanguageError(
                f"{self.path} made no tensor with a graph",
                kind="runtime",
                hint="name the tensor: --torch FILE.py:NAME; a function's own is found if it runs "
                "backward",
                usage=False,
            )
        return graph

    def _failed(self, what: str) -> LanguageError:
        """The error of who asks for what a program that failed has not come to."""
        return LanguageError(
            f"{self.path} failed before {what}",
            kind="runtime",
            hint="what ended it is above",
            usage=False,
        )

    def anomaly(self) -> LanguageError | None:
        """The first NaN, or the infinity that the loss came to, at its line and with its cause."""
        watch = self.watch
        watch.calls.name_roots()
        found = self._not_finite()
        if found is None:
            return None
        notes = [f"{name} = {text}" for name, text in found.inputs.items()]
        if found.module >= 0:
            kind = watch.calls.kinds[found.module]
            notes.insert(0, f"in {watch.calls.path(found.module)} ({kind})")
        code = "" if found.place is None else found.place.code
        if found.place is not None:
            notes.insert(0, f"{found.place.file}:{found.place.line}")
        return LanguageError(
            found.message,
            kind="anomaly",
            source=code,
            span=_span(code, found.piece),
            hint=found.remedy,
            notes=tuple(notes),
            usage=False,
        )

    def _not_finite(self) -> Found | None:
        """The first NaN, or the infinity that the loss came to."""
        watch = self.watch
        if watch.first is not None or watch.first_inf is None:
            return watch.first
        last: Any = watch.last if watch.last is not None else self.names.get("loss")
        ends = is_torch_tensor(last) and not bool(last.detach().isfinite().all())
        return watch.first_inf if ends else None

    def _tensors(self, wanted: str | None) -> list[Any]:
        if self.returned is not None:
            return self.returned
        end = self.watch.end
        if end is not None and end.at is not None:
            if end.tensor is None:
                file, line = end.at
                raise LanguageError(
                    f"--at: {file}:{line} made no tensor with a graph",
                    kind="runtime",
                    hint="name the line of an operation on what requires grad, as the graph names it",
                    usage=False,
                )
            return [end.tensor]
        if wanted:
            return [self._named(name.strip()) for name in wanted.split(",")]
        if self.watch.last is not None:
            return [self.watch.last]
        if _requires_grad(self.names.get("loss")):
            return [self.names["loss"]]
        made = [value for value in self.names.values() if _has_graph(value)]
        return made[-1:]

    def _named(self, name: str) -> Any:
        value: Any = self.names.get(name)
        if not _requires_grad(value) and name in self.watch.roots:
            # `loss` of a function that ran backward, where another of that name has no graph
            value = self.watch.roots[name]
        if value is None and name not in self.names:
            if self.error is not None:
                raise self._failed(f"it made {name!r}")
            known = [n for n, v in {**self.watch.roots, **self.names}.items() if _has_graph(v)]
            hint = did_you_mean(suggest(name, known))
            hint = hint or f"tensors with a graph: {', '.join(known) or 'none'}"
            raise usage(f"--torch: {self.path} has no {name!r}", kind="name", hint=hint)
        if not is_torch_tensor(value):
            raise usage(f"--torch: {name} is a {type(value).__name__}, not a tensor", kind="name")
        if not _requires_grad(value):
            from gradcli.engine.core.errors import NoGradientError

            raise LanguageError(
                str(NoGradientError()),
                kind="runtime",
                hint=f"{name} depends on nothing that requires grad: made under no_grad, or detached?",
                usage=False,
            )
        return value


def _span(code: str, piece: str) -> tuple[int, int] | None:
    """What of a line is marked: the call, where it is known and stands there once."""
    if piece and code.count(piece) == 1:
        return code.index(piece), code.index(piece) + len(piece)
    return (0, len(code)) if code else None


def _requires_grad(value: Any) -> bool:
    return is_torch_tensor(value) and value.requires_grad


def _has_graph(value: Any) -> bool:
    return is_torch_tensor(value) and node_of(value) is not None


def run_torch(
    target: str,
    arguments: list[str],
    at_end: Callable[[Callable[[], None]], Any],
    shapes: list[str] | None = None,
    dtypes: list[str] | None = None,
    **watched: Any,
) -> tuple[Ran, str | None]:
    """Run FILE.py[:NAME], watched; the program and NAME.

    at_end: is given what ends gradcli's standing in PyTorch's place, if it does. shapes, dtypes: of the
    inputs of NAME, if that is a module: it is called then. watched: what is learnt on the way, see `Watch`.
    """
    path, wanted = split_target(target)
    full, source = read_program(path)
    # Compiled code makes no nodes to show, and PyTorch reads this variable when it is imported.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    names = (wanted or "").replace(" ", "").split(",") if wanted else ()
    watch = _watch(at_end, _is_own(source), wanted=names, **watched)
    with as_main(full, arguments) as module:
        returned, inputs = None, dict[str, Any]()
        error_text, code = run_program(source, full, path, module, watch)
        if error_text is None:
            returned, inputs = _called(module, wanted, shapes, dtypes, watch)
    if watch.failure is not None:
        _tell_failure(watch)
    ran = Ran(path, dict(module.__dict__), watch, error_text)
    ran.returned, ran.inputs, ran.code = returned, inputs, code
    return ran, wanted


def _is_own(source: bytes) -> bool:
    """Whether a program imports gradcli, and not PyTorch."""
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # which running it will say
        return False
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            roots.add((node.module or "").partition(".")[0])
    return "gradcli" in roots and "torch" not in roots


def _watch(at_end: Callable[[Callable[[], None]], Any], own: bool, **watched: Any) -> Watch:
    """What watches the program: PyTorch, or gradcli in its place. own: whether it is one of gradcli's."""
    from gradcli.commands import own_program

    if not own and own_program.has_torch():
        from gradcli.graphs.of_torch import torch_versions
        from gradcli.graphs.of_torch.torch_watch import Watch

        if (remark := torch_versions.remark()) is not None:
            note(remark)
        return Watch(program=True, **watched)
    if watched["timed"]:
        raise usage(
            "--time measures PyTorch's operations; the program is gradcli's"
            if own
            else "--time measures PyTorch's operations; it is not installed",
            hint=None if own else "pip install torch",
        )
    from gradcli.graphs.of_torch.own_watch import OwnWatch

    if not own:
        note("PyTorch is not installed: the program runs on gradcli in its place")
    at_end(own_program.stand_in())
    return OwnWatch(program=True, **watched)


def _called(
    module: ModuleType,
    wanted: str | None,
    shapes: list[str] | None,
    dtypes: list[str] | None,
    watch: Watch,
) -> tuple[list[Any] | None, dict[str, Any]]:
    """What a module of the file gives, where NAME is one, and its inputs; None where it is not."""
    from gradcli.commands import torch_module

    value = module.__dict__.get(wanted or "")
    if not torch_module.is_module(value):
        if shapes:
            hint = "name a module: --torch FILE.py:Net"
            raise usage("--shape is for a module that is called alone", hint=hint)
        return None, {}
    given = torch_module.read_pairs(shapes or [], "--shape")
    kinds = torch_module.read_pairs(dtypes or [], "--dtype")
    with watch:
        found, inputs = torch_module.call_module(str(wanted), value, given, kinds)
    return torch_module.tensors_with_graphs(found), inputs


def _tell_failure(watch: Watch) -> None:
    """Say that watching has failed, which is a fault of ours and not of the program."""
    import traceback

    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(watch.failure)
    note(f"{watch.failed_words()} ({DEBUG_VARIABLE}=1 shows the traceback)")


def split_target(target: str) -> tuple[str, str | None]:
    path, colon, name = target.rpartition(":")
    # in C:\net.py the colon is the drive's: no NAME follows
    if colon and all(part.strip().isidentifier() for part in name.split(",")):
        return path, name
    return target, None


def read_program(path: str, option: str = "--torch: ") -> tuple[str, bytes]:
    """The whole path of a program, and its text. Raises LanguageError where it cannot be read.

    option: what the error begins with.
    """
    full = os.path.abspath(os.path.expanduser(path))
    try:
        with open(full, "rb") as stream:
            return full, stream.read()
    except OSError as error:
        raise usage(f"{option}cannot read {path}: {error.strerror}", kind="file") from None


@contextmanager
def as_main(full: str, arguments: list[str], called: str | None = None) -> Iterator[ModuleType]:
    """Inside, a new module is Python's `__main__`, with these arguments; it prints to standard error.

    called: how the program is called where it runs for itself; it prints to standard output then.
    """
    module = ModuleType("__main__")
    module.__dict__.update(__file__=called or full, __builtins__=__builtins__)
    before, argv = sys.modules["__main__"], sys.argv
    sys.modules["__main__"], sys.argv = module, [called or full, *arguments]
    sys.path.insert(0, os.path.dirname(full))
    try:
        with redirect_stdout(sys.stderr) if called is None else nullcontext():
            yield module
    finally:
        sys.modules["__main__"], sys.argv = before, argv


def run_program(
    source: bytes, full: str, path: str, module: ModuleType, watch: Any
) -> tuple[str | None, int]:
    """Run the program inside of the watch: the words of the error that ended it, and its exit code."""
    try:
        code = compile(source, full, "exec", dont_inherit=True)
        import gc

        gc.collect()
        gc.freeze()  # what is loaded lives to the end: the collector need not look at it again
        interrupts.as_python()  # Ctrl-C ends the program, and what there is is shown
        with watch:
            exec(code, module.__dict__)
    except Stopped:
        pass
    except KeyboardInterrupt:
        if getattr(watch, "last", None) is None:
            raise
        count = f"{watch.steps:,} backward {'pass' if watch.steps == 1 else 'passes'}"
        note(f"interrupted after {count}: this is what there is")
    except SystemExit as error:
        if error.code not in (None, 0):
            number = error.code if isinstance(error.code, int) else 1
            if number is not error.code:
                print(error.code, file=sys.stderr)  # as Python does
            return f"{path} ended with exit code {number}", number
    except Exception as error:  # the user's program may end in any way
        _print_traceback(error)
        if (lacking := _lacking(error)) is not None:
            name = lacking.removeprefix("no torch.")
            instead = torch_namespaces.ABSENT.get(name, "the program needs PyTorch")
            note(f"gradcli, in PyTorch's place, has {lacking}; {instead}")
        return _words(error, full, path), 1
    return None, 0


def _lacking(error: Exception) -> str | None:
    """What of PyTorch's the program asked for that gradcli, which stands in its place, has not."""
    if getattr(sys.modules.get("torch"), "__name__", "") != "gradcli":
        return None
    if isinstance(error, ImportError):
        said = re.match(
            r"cannot import name '(\w+)'", str(error)
        )  # before Python 3.12, which tells it
        module, name = str(error.name), said[1] if said else None
        if not module.startswith(("torch.", "gradcli")):
            return None
        if name is None and not isinstance(error, ModuleNotFoundError):
            return f"not all that is imported from {_of_torch(module)}"
        return "no " + ".".join([_of_torch(module), *([name] if name else [])])
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        module = error.obj.__name__
        if module.partition(".")[0] == "gradcli":
            return f"no {_of_torch(module)}.{error.name}"
    return None


def _of_torch(module: str) -> str:
    """PyTorch's name of a module of ours."""
    return "torch" + module.removeprefix("gradcli").removeprefix(".torch").removeprefix("torch")


def _print_traceback(error: Exception) -> None:
    """The traceback as Python prints it, without the lines of ours and of what watches."""
    import traceback

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    told = traceback.TracebackException.from_exception(error)
    one: traceback.TracebackException | None = told
    while one is not None:
        kept = [f for f in one.stack if not f.filename.startswith((ours, "<gradcli"))]
        one.stack = traceback.StackSummary.from_list(kept)
        one = one.__cause__ or one.__context__
    print("".join(told.format()), end="", file=sys.stderr)


def _words(error: Exception, full: str, path: str) -> str:
    import traceback

    line = error.lineno if isinstance(error, SyntaxError) else None
    for entry in traceback.extract_tb(error.__traceback__):
        if os.path.realpath(entry.filename) == os.path.realpath(full):
            line = entry.lineno
    at = f"{path}:{line}" if line else path
    return f"{at}: {type(error).__name__}: {error}"

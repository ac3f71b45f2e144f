"""`--load FILE.py`: a Python file's functions and classes as names of the language, and what Python says
when something goes wrong in one.

The file is imported as Python imports a script: its folder is searched for what it imports, and nothing
stands in for a module that is not there, but gradcli for PyTorch. Names that it imported from elsewhere are
not taken over, so that `from math import exp` in it leaves the language's `exp` alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from types import ModuleType
from typing import Any

import click

from gradcli.commands.command_errors import retold, usage
from gradcli.language.located_errors import LanguageError

_FRAMES_SHOWN = 6
_INSTEAD = "gradcli has its names"
_loaded: dict[str, str] = {}  # full path -> the path as it was given


class _Loader(SourceFileLoader):
    """Leaves no compiled file beside the user's."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Does nothing."""


def load_files(ctx: click.Context, paths: Iterable[str]) -> dict[str, Any]:
    """Run Python files; the names that they define.

    What can be called is known to every program from now on, until the context closes.
    """
    from gradcli.engine.system.interrupts import as_python
    from gradcli.language import names

    as_python()
    paths = list(paths)
    if not _has_torch() or any(map(_has_operations, paths)):
        from gradcli.commands.own_program import stand_in

        ctx.call_on_close(stand_in())  # until then: functions may import it as they run
    found: dict[str, Any] = {}
    for path in paths:
        found.update(load_file(path))
    for name, value in found.items():
        if callable(value):
            names.register(name, value)
            ctx.call_on_close(lambda name=name: names.unregister(name))
    return found


def _has_torch() -> bool:
    """Whether `import torch` would find something; it is not imported for that."""
    if "torch" in sys.modules:
        return sys.modules["torch"] is not None
    return find_spec("torch") is not None


def _has_operations(path: str) -> bool:
    """Whether a file imports PyTorch and has a class of `autograd.Function`, for our tensors."""
    import ast

    try:
        with open(os.path.expanduser(path), "rb") as stream:
            nodes = list(ast.walk(ast.parse(stream.read())))
    except (OSError, SyntaxError, ValueError):  # which loading it will say
        return False
    bases = [base for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases]
    imported = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    is_torchs = any(name.partition(".")[0] == "torch" for name in imported)
    return is_torchs and any(ast.unparse(b).rpartition(".")[2] == "Function" for b in bases)


def load_file(path: str) -> dict[str, Any]:
    """Run one Python file; the names that it defines."""
    full = os.path.abspath(os.path.expanduser(path))
    try:
        with open(full, "rb"):
            pass
    except OSError as error:
        raise usage(f"--load: cannot read {path}: {error.strerror}", kind="file") from None
    module = _module(full)
    _loaded[full] = path
    folder = os.path.dirname(full)
    sys.path.insert(0, folder)
    sys.modules[module.__name__] = module
    spec = module.__spec__
    assert spec is not None and spec.loader is not None
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's module may end in any way
        del sys.modules[module.__name__]
        raise _refused(path, full, error) from error
    finally:
        # At the end of the search, for imports inside functions: the library's own come first.
        sys.path.remove(folder)
        sys.path.append(folder)
    found = _defined(module)
    _check_library(path, found)
    return found


def _check_library(path: str, found: dict[str, Any]) -> None:
    """Refuse operations that were written for the real PyTorch, where it is installed."""
    torch = sys.modules.get("torch")
    if getattr(torch, "__name__", "") == "gradcli":  # in its place
        return
    foreign = getattr(getattr(torch, "autograd", None), "Function", None)
    for name, value in found.items():
        if foreign is not None and isinstance(value, type) and issubclass(value, foreign):
            raise LanguageError(
                f"--load {path}: {name} is an operation of PyTorch's own",
                kind="load",
                hint=f"{_INSTEAD}: `import gradcli as torch`",
                usage=False,
            )


def _module(full: str) -> ModuleType:
    """An empty module for a file, under a name that nothing else can have."""
    stem = os.path.splitext(os.path.basename(full))[0]
    name = f"<{stem}>"
    while name in sys.modules:
        name = f"<{name}>"
    spec = spec_from_loader(name, _Loader(name, full))
    assert isinstance(spec, ModuleSpec)
    return module_from_spec(spec)


def _defined(module: ModuleType) -> dict[str, Any]:
    names = vars(module)
    if "__all__" in names:
        return {name: getattr(module, name) for name in names["__all__"]}
    return {
        name: value
        for name, value in names.items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        # what is another module's has its own name
        and (
            getattr(value, "__name__", None) != name
            or getattr(value, "__module__", None) == module.__name__
        )
    }


# -- errors ---------------------------------------------------------------------------------------
def _refused(path: str, full: str, error: Exception) -> LanguageError:
    import traceback

    *lines, words = traceback.format_exception_only(error)
    notes = tuple(
        line.removeprefix("  ").rstrip().replace(full, path)
        for piece in lines
        for line in piece.splitlines()
    )
    return LanguageError(
        f"--load {path}: {words.strip()}",
        kind="load",
        notes=python_lines(error) + notes,
        usage=False,
    )


def python_lines(error: BaseException | None) -> tuple[str, ...]:
    """The lines of a traceback that lie in loaded files, innermost last, as Python writes them."""
    if error is None or not _loaded:
        return ()
    import traceback

    lines: list[str] = []
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in _loaded]
    for frame in frames[-_FRAMES_SHOWN:]:
        lines.append(f'File "{_loaded[frame.filename]}", line {frame.lineno}, in {frame.name}')
        if frame.line:
            lines.append(f"  {frame.line}")
    return tuple(lines)


def as_pythons(error: Exception) -> Exception:
    """An error that began in a loaded file, told as Python tells it; any other as it is."""
    cause = error.__cause__ if isinstance(error, LanguageError) else error
    lines = python_lines(cause)
    if not lines or (isinstance(error, LanguageError) and error.kind == "load"):
        return error
    words = f"{type(cause).__name__}: {cause}".removesuffix(": ")
    if not isinstance(error, LanguageError):
        return LanguageError(words, kind="runtime", notes=lines, usage=False)
    error.message, error.notes, error.usage = words, (*error.notes, *lines), False
    return error


retold.append(as_pythons)

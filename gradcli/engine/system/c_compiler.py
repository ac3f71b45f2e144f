"""Generated C, compiled by the machine's compiler and loaded into this process.

The object lies in a private temporary folder (mode 0700) that is gone once it is loaded. `CC` names the
compiler (default: cc). Nothing stays on disk unless `GRADCLI_CACHE` names a folder, which must belong to
the user alone.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import TYPE_CHECKING, Any

from gradcli.engine.system import locks

if TYPE_CHECKING:
    from pathlib import Path

# The modules that only a compilation needs are imported by the functions: a large table's blocks of NumPy
# come through here as well.

# glibc declares its vector functions where __FAST_MATH__ is defined; no option that changes a value is on.
_FLAGS = "-std=gnu99 -march=native -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv"
_FLAGS += " -D__FAST_MATH__ -shared -fPIC -w"
_FLAGS += "".join(f" -fno-builtin-{name}" for name in ("sin", "cos", "sinf", "cosf"))
# Libraries of vector functions, tried in turn: gcc finds glibc's in its header, clang has to be told.
# gcc's first level with vectors makes code as fast as the third in half the time.
_GCC = "-O1 -ftree-vectorize -fvect-cost-model=dynamic -lmvec"
_CLANG, _APPLE = "-O3 -fveclib=libmvec -lmvec", "-O3 -fveclib=Darwin_libsystem_m"
_SECONDS = 120  # after which a compiler is given up
_lock = locks.lock()
_loaded: dict[str, Any] = {}
_vectors: list[str] = []  # what this machine's compiler took


class NoCompiler(RuntimeError):
    """There is no C compiler, or it refuses: the words say which and why."""


def command() -> list[str]:
    """The compiler's command. Raises NoCompiler if there is none."""
    import shlex
    import shutil

    words = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(words[0]) is None:
        raise NoCompiler(f"no C compiler: {words[0]!r} is not found (CC names another)")
    return words


def load(source: str) -> Any:
    """The library that a C source makes, compiled once a process. Raises NoCompiler."""
    with _lock:
        found = _loaded.get(source)
        if found is None:
            found = _loaded[source] = _kept(source)
        return found


def _kept(source: str) -> Any:
    import hashlib
    import tempfile
    from pathlib import Path

    cache = os.environ.get("GRADCLI_CACHE")
    if not cache:
        with tempfile.TemporaryDirectory(prefix="gradcli-") as folder:
            return ctypes.CDLL(str(_compile(source, Path(folder))))
    home = Path(cache).expanduser()
    words = *command(), _version(), _FLAGS, _processor(), source
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()[:40]
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = home.stat()
        if (hasattr(os, "getuid") and about.st_uid != os.getuid()) or about.st_mode & 0o022:
            raise NoCompiler(f"GRADCLI_CACHE: others may write into {cache!r}")
        kept = home / f"{name}.so"
        if not kept.exists():
            with tempfile.TemporaryDirectory(prefix="gradcli-", dir=home) as folder:
                _compile(source, Path(folder)).replace(kept)
        return ctypes.CDLL(str(kept))
    except OSError as error:
        raise NoCompiler(f"GRADCLI_CACHE: {error}") from None


def _compile(source: str, folder: Path) -> Path:
    import subprocess

    text, made = folder / "program.c", folder / "program.so"
    text.write_text(source)
    words, said = command(), ""
    ways = [_APPLE] if sys.platform == "darwin" else [_CLANG] if "clang" in words[0] else [_GCC]
    for vectors in _vectors or [*ways, "-O3", "-O3 -DNO_BUILTINS"]:
        line = [*words, *_FLAGS.split(), str(text), "-o", str(made), *vectors.split(), "-lm"]
        try:
            done = subprocess.run(line, capture_output=True, timeout=_SECONDS, cwd=folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoCompiler(f"no C compiler: {error}") from None
        if done.returncode == 0:
            _vectors[:] = [vectors]
            return made
        lines = done.stderr.decode(errors="replace").splitlines()
        said = said or next((line for line in lines if "error" in line), "without words")
    raise NoCompiler(f"{words[0]} refuses: {said}")


@functools.cache
def _version() -> str:
    import subprocess

    line = [*command(), "--version"]
    return subprocess.run(line, capture_output=True, timeout=_SECONDS).stdout.decode("latin-1")


@functools.cache
def _processor() -> str:
    """What -march=native depends on."""
    from pathlib import Path

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        import platform

        return platform.processor()
    return "".join(sorted({x for x in lines if x.startswith(("model name", "flags", "Features"))}))

"""Every command line of the language's that once went wrong: what it must answer, in what limits.

Each runs in a process of its own that may take 4 GB of addresses and 5 seconds.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.commands.terminal import environment

MEMORY, SECONDS = 4_000_000 * 1024, 5


def limited() -> None:
    """What `ulimit -v 4000000` sets."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def bounded(*argv: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of gradcli within the limits."""
    done = subprocess.run(
        [sys.executable, "-m", "gradcli", *argv],
        env=environment(OPENBLAS_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        preexec_fn=limited,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


# (command line, exit code, what standard output holds, what standard error holds)
NAMES = [
    (["diff", "r*F*sin(theta)"], 0, "F.grad = r*sin(theta)", ""),
    (["diff", "nn*special"], 0, "nn.grad = special", ""),
    (["diff", "torch*x"], 0, "torch.grad = x", ""),
    (["diff", "F.relu(x)"], 0, "where(x > 0, 1, 0)", ""),
    (["eval", "F*2"], 2, "", "no value for F"),
    (["eval", "F*2", "--F", "3"], 0, "6", ""),
    (["grad", "F*2", "--F", "3"], 0, "F.grad = 2", ""),
    (["jacobian", "F*2", "--F", "3"], 0, "2", ""),
    (["check", "fft*2", "--fft", "3"], 0, "ok: fft", ""),
    (["graph", "linalg*2", "--linalg", "3"], 0, "AccumulateGrad linalg", ""),
    (["eval", "t*x", "--x", "2"], 2, "", "no value for t"),
    (["eval", "(lambda a, b=2: a*b)(5)"], 0, "10", ""),
    (["eval", "(lambda a, b=c: a*b)(5)", "--c", "3"], 0, "15", ""),
    (["eval", "(lambda a: (lambda b: a*b*c)(2))(5)", "--c", "3"], 0, "30", ""),
    (["eval", "f = lambda a: a*later; later = 3; f(2)"], 0, "6", ""),
    (["eval", "def f(a):\n def g(b):\n  return a*b*later\n return g\nlater = 2\nf(3)(4)"], 0, "24", ""),
    (["eval", "def f():\n import math\n return math.pi\nf()"], 0, "3.14159", ""),
    (["diff", "(lambda t: t**2)(x)"], 0, "2*x", ""),
    (["eval", "outer(x, [1,2])", "--x", "3,4"], 0, "[[3, 6], [4, 8]]", ""),
    (["eval", "maximum(x.long(), 1).dtype", "--x", "3,4"], 0, "torch.int64", ""),
]  # fmt: skip
TEXTS = [
    (["eval", "1" + " " * 100_000], 0, "1", ""),
    (["eval", "1 +" + " " * 100_000], 2, "", "a value is missing after `+`"),
    (["eval", "sin(" + " " * 100_000], 2, "", "`(` is never closed"),
    (["eval", " " * 100_000 + "1"], 0, "1", ""),
    (["eval", "1" + "_1" * 60_000], 2, "", "an integer of 60001 digits is too long"),
    (["eval", "0x" + "f" * 120_000], 0, "", ""),
    (["eval", "'\\" * 60_000], 2, "", "this string is never closed"),
    (["eval", "x" + "\\\n" * 60_000], 2, "", "a backslash may only end a line"),
    (["eval", "  \\\n  1"], 2, "", "unexpected indentation"),
    (["eval", "f'{x " + "if x else x " * 9_000 + "'"], 2, "", "error"),
]


@pytest.mark.parametrize(
    ("argv", "code", "shown", "said"),
    [*NAMES, *TEXTS],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_what_once_went_wrong(argv: list[str], code: int, shown: str, said: str) -> None:
    found, out, err = bounded(*argv)
    assert (found, shown in out, said in err) == (code, True, True), f"{found}\n{out}\n{err}"
    assert bool(err) == bool(said), err

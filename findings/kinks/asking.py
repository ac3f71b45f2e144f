"""Questions about derivatives at kinks, put to a library: each in a process of its own."""

import os
import signal
import sys
import warnings

warnings.simplefilter("ignore")
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


class NoSuch(Exception):
    """The system does not have the function."""


def show(value):
    """A number, or nested lists of them, in one spelling for all systems."""
    if value is None or isinstance(value, str):
        return value or "None"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(show, value)) + "]"
    text = f"{float(value):.{DIGITS}g}"
    return "0" if text == "-0" else text


def run(questions, digits=10):
    """Print `Qn<TAB>value` for all questions, or for those named as arguments: each in its own process."""
    global DIGITS
    DIGITS = digits
    for name, answer in questions.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        sys.stdout.flush()
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                text = show(answer())
            except NoSuch as e:
                text = "no such function" + (f" ({e})" if str(e) else "")
            except BaseException as e:
                words = (str(e).strip().splitlines() or [""])[0]
                text = f"raises {type(e).__name__}: {words[:110]}".rstrip(": ")
            os.write(1, f"{name}\t{text}\n".encode())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            sign = os.WTERMSIG(status)
            text = "over 60 s" if sign == signal.SIGALRM else f"crash ({signal.Signals(sign).name})"
            print(f"{name}\t{text}")


def missing(why=""):
    def answer():
        raise NoSuch(why)

    return answer


def composed(words, answer):
    """For what the system has no function, written with those it has."""
    return lambda: show(answer()) + f" (as {words})"


INF = float("inf")

"""What `diff` prints of every sample of the operator table with something special for each of its operands.

The operand of a call is a number, a condition, integers, zeros, a constant, a scaled or a broadcast
variable, or a view of one; another of the operands; or it has no elements, or one. Each such program is
differentiated in every way that prints a text (`pairs.PAIRS`), and every text must be what the tape gives.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

import gradcli
from tests.fuzz import once_round, pairs, sweep
from tests.fuzz.pairs import Case

TEXTS = [name for name in pairs.PAIRS if name.startswith("--") or name == "text"]
TWICE = [name for name in TEXTS if "order" in name or name == "--jacobian"]
ONCE = [name for name in TEXTS if name not in TWICE]
# What stands for an operand {x} of the shape {shape}, {k} numbers that are {numbers}; s is a number.
CONSTANTS = (
    *("2", "0.5", "-1", "0", "True", "tensor(2)", "tensor(0.5)", "pi", "sqrt(2)"),
    *("({x} > 0.4)", "({x} - {x})", "{x}.detach()", "ones({shape})", "zeros({shape})"),
    *(
        "tensor({numbers})",
        "tensor({integers})",
        "arange({k}).reshape({shape})",
        "(ones(2)*0.4)[0]",
    ),
)
VARIABLES = (
    *("(s*{x})", "(-{x})", "(2*{x})", "({x} + 0*s)", "s", "s.expand({shape})", "s.reshape(1)"),
    *("{x}.reshape(-1)[0]", "{x}[0]", "{x}[..., :1]", "{x}[:1]", "{x}[..., 0]", "{x}[None][0]"),
    *("stack([{x}, {x}*s])[-1]", "cat([{x}, {x}])[:{n}]", "stack([{x}, {x}], -1)[..., 0]"),
    *("{x}.reshape(-1).reshape({shape})", "{x}[:, None]", "{x}[None]", "diag({x})", "{x}.T"),
    *("{x}.expand(2, *{x}.shape)", "sum({x}, 0, keepdim=True)", "sum({x})", "{x}.flip(0)"),
    *("where({x} > 0.4, {x}, s)", "eye({n})*s", "{x}.clone().fill_(s)", "diag(diagonal({x}))"),
)
# Not smooth where all elements are equal; of memory outside of a view PyTorch's slope is none.
NOT_EQUAL = re.compile(r"\b(std|std_mean|qr|as_strided\w*)\(")
# The result with a variable, if its operands have none.
RESULTS = ("({})*s", "sum(({})**2)*s", "({} + 0*s)", "(s*{})[-1]", "sum({}*w)*s")


@cache
def calls() -> dict[str, tuple[str, dict[str, Any]]]:
    """(program, values of its variables) of the samples and of the functions element by element."""
    few = set(sweep.texts())
    found = {}
    for text in pairs.sample_texts():
        if text in few and (made := pairs._sample(text)) is not None:
            source = re.sub(r"^(x0)(\.\w+_\()", r"(\1*1)\2", made[0])  # no leaf is written to
            reals, many = made[2:]
            found[text] = (f"({source})[{reals[0][0]}]" if many else source, made[1])
    numbers = np.random.default_rng(5)
    for name, count in pairs.pointwise():
        words = [f"x{k}" for k in range(count)]
        values = {w: np.round(numbers.uniform(0.2, 0.9, (2, 3)), 2) for w in words}
        found[name] = f"{name}({', '.join(words)})", values
    return found


def programs(source: str, values: dict[str, Any]) -> Iterator[Case]:
    """The call with something special for each of its operands in turn."""
    number = len(source)
    for changed, given in special(source, values):
        number += 1
        if NOT_EQUAL.search(source) and re.search(r"expand|fill_|\[|\.T", changed):
            continue
        made = with_result(changed, given, RESULTS[number % len(RESULTS)], number)
        if made is not None:
            yield made


def with_result(source: str, values: dict[str, Any], result: str, number: int) -> Case | None:
    """The program with its value in a result; None where there is no program, or a large one."""
    try:
        value = Case(source, values).run(Case(source, values).tensors())
        shape, many = tuple(value.shape), value.numel()
        part = ".abs()" if value.is_complex() else ""
    except Exception:  # no program
        return None
    w = np.round(np.random.default_rng(number).uniform(-1, 1, shape), 2)
    text = result.format(f"({source}){part}")
    return Case(text, values | {"w": w}) if many < 300 else None


def special(source: str, values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(program, values of its variables)."""
    values = values | {"s": np.asarray(0.7)}
    for name, value in values.items():
        if value.dtype.kind == "f" and name != "s":
            for put in instead(name, values):
                yield pairs.replaced(source, name, put), values
    for sizes in sweep.sized({n: v for n, v in values.items() if n != "s"}):
        yield source, values | sizes


def instead(name: str, values: dict[str, Any]) -> list[str]:
    """What may stand for an operand."""
    value = values[name]
    words = {
        **{"x": name, "shape": value.shape, "k": value.size, "n": (*value.shape, 1)[0]},
        **{
            "numbers": np.round(value, 2).tolist(),
            "integers": np.round(3 * value).astype(int).tolist(),
        },
    }
    others = [n for n in values if n.startswith("x") and n < name]
    return [
        put.format(**words)
        for put in [*CONSTANTS, *VARIABLES, *others]
        if "tensor({" not in put or value.size < 30
    ]


@contextmanager
def doubles() -> Iterator[None]:
    """Inside, numbers are float64, as the variables' values are."""
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        gradcli.set_default_dtype(before)


def failures(name: str, seed: int = 0) -> Iterator[str]:
    """What is wrong with the texts of a call, each kind of failure once; two ways for each program."""
    found: set[str] = set()
    with doubles():
        for number, case in enumerate(programs(*calls()[name]), seed):
            ways = TWICE[number % len(TWICE)], ONCE[number % len(ONCE)]
            for pair, said in pairs.failures(case, *ways).items():
                if (key := f"{pair}: {pairs.kind(said)}") not in found:
                    found.add(key)
                    yield from pairs.told(case, pair, said, found)


def run(seed: int, seconds: float) -> Iterator[str]:
    """What is wrong with the texts of the calls, which come in the order of the seed; once round them."""
    with doubles():
        names = list(calls())
    for name in once_round(names, seed, seconds):
        yield from failures(name, seed)

"""Wrong calls of every function, method and in-place form, and what torch's parser of arguments says of them.

A function's own sample with an argument missing, one too many, of a wrong type at each position, under
an unknown name, or given twice. `python record_calls.py` records torch's words in calls.json: for each of
`Called.calls`, in their order, the numbers of the lines of what it says; null where torch refuses a value
and no argument.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("calls.json")
ACCEPTED = ""
_WRONG = ("'a'", "None", "1.5", "['a']", "torch.ones(2)")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
# What changes the state of the process, or is no parser's: types and functions written in C by hand.
_LEFT = frozenset(
    "manual_seed initial_seed seed get_rng_state set_rng_state is_tensor from_numpy".split()
)
# The functions whose table has no sample.
_PLAIN = {
    "empty_strided": "empty_strided((2,), (1,))",
    "range": "range(0, 2)",
    **{f"new_{n}": f"new_{n}(ones(2), (2,))" for n in ("zeros", "ones", "empty")},
    "new_full": "new_full(ones(2), (2,), 1)",
    "new_tensor": "new_tensor(ones(2), [1])",
    "uniform_": "uniform_(ones(2), 0., 1.)",
    "random_": "random_(ones(2), 0, 5)",
    "bernoulli_": "bernoulli_(ones(2), 0.5)",
    "geometric_": "geometric_(ones(2), 0.5)",
    **{n: f"{n}(ones(2), 1.)" for n in ("normal_", "exponential_", "cauchy_", "log_normal_")},
}


@dataclass(frozen=True)
class Called:
    """A function under its path, with the arguments of a sample: `torch.sum`, [`torch.ones(2)`]."""

    path: str  # of a method: `.sum`
    args: tuple[str, ...]
    kwargs: tuple[tuple[str, str], ...]
    names: tuple[str, ...]  # of the parameters

    def _text(self, args: tuple[str, ...], kwargs: tuple[tuple[str, str], ...] = ()) -> str:
        path = self.path
        if path.startswith("."):
            path, args = f"({args[0]}){path}", args[1:]
        return f"{path}({', '.join([*args, *(f'{k}={v}' for k, v in kwargs)])})"

    @property
    def name(self) -> str:
        """What messages call it, and lines have as `@`."""
        return self.path.rpartition(".")[2]

    def calls(self) -> list[str]:
        """The sample itself, and the wrong calls that are made of it."""
        return list(dict.fromkeys(self._calls()))

    def _calls(self) -> Iterator[str]:
        first = int(self.path.startswith("."))
        args, kwargs, names = self.args, self.kwargs, self.names
        yield self._text(args, kwargs)
        for count in range(first, len(args)):
            yield self._text(args[:count])
        yield self._text((*args, "'a'"), kwargs)
        yield self._text((*args, *("1",) * (len(names) + 1 - len(args))), kwargs)
        for i in range(first, len(args)):
            for value in _WRONG:
                yield self._text((*args[:i], value, *args[i + 1 :]), kwargs)
        for i, name in enumerate(names[first:], first):
            if i < len(args):
                yield self._text(args, (*kwargs, (name, args[i])))  # by position and by name
                yield self._text(args[:i], tuple(zip(names[i:], args[i:], strict=False)))
            others = tuple(k for k in kwargs if k[0] != name)
            for value in _WRONG[:3]:
                yield self._text(args[: max(i, first)], (*others, (name, value)))
        yield self._text(args, (*kwargs, ("foo", "1")))


class _Prefix(ast.NodeTransformer):
    """The language's names as attributes of torch."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in ("inf", "nan"):
            return node
        return ast.Attribute(ast.Name("torch", ast.Load()), node.id, ast.Load())


def callables() -> list[Called]:
    """Every function of the table: itself, as a method, in place."""
    from gradcli.engine.registry import table

    return [made for entry in table.entries() if entry.name not in _LEFT for made in _forms(entry)]


def _forms(entry: Any) -> Iterator[Called]:
    sample = next(iter(entry.samples), _PLAIN.get(entry.name))
    body = ast.parse(sample, mode="eval").body if sample else None
    if not isinstance(body, ast.Call) or any(isinstance(a, ast.Starred) for a in body.args):
        return
    arguments = [*body.args, *(k.value for k in body.keywords)]
    if isinstance(body.func, ast.Attribute) and not isinstance(
        body.func.value, (ast.Name, ast.Attribute)
    ):
        arguments.insert(0, body.func.value)
    texts = [ast.unparse(ast.fix_missing_locations(_Prefix().visit(a))) for a in arguments]
    count = len(texts) - len(body.keywords)
    args = tuple(texts[:count])
    kwargs = tuple(zip([k.arg or "" for k in body.keywords], texts[count:], strict=True))
    inside = entry.signature.partition("(")[2]
    found = dict.fromkeys(re.findall(r"(\w+)(?=[,=)])", inside))
    names = tuple(n for n in found if not re.fullmatch(r"\d+|None|True|False|inf", n))
    yield Called(f"torch.{entry.name}", args, kwargs, names)
    if entry.method and "." not in entry.name and args:
        yield Called(f".{entry.name}", args, kwargs, names)
        if entry.inplace:
            yield Called(f".{entry.name}_", args, kwargs, names)


def answer(call: str, torch: Any) -> str | None:
    """A TypeError's words; ACCEPTED where nothing is raised, None where it is another error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, {"torch": torch, "inf": inf, "nan": nan})
    except TypeError as error:
        return _ADDRESS.sub("0x…", str(error)).rstrip()
    except Exception:  # what values are refused with is asked elsewhere
        return None
    return ACCEPTED


def recorded() -> list[tuple[Called, list[str | None]]]:
    """The functions, and what torch says of each of their calls."""
    data = json.loads(RECORDED.read_text(encoding="utf-8"))
    lines = data["lines"]

    def said(numbers: Any, called: Called) -> str | None:
        if numbers is None:
            return None
        found = [lines[n] for n in ([numbers] if isinstance(numbers, int) else numbers)]
        return "\n".join(found).replace("@(", f"{called.name}(")

    functions = []
    for path, args, kwargs, names, answers in data["functions"]:
        called = Called(path, tuple(args), tuple(map(tuple, kwargs)), tuple(names))
        functions.append((called, [said(numbers, called) for numbers in answers]))
    return functions

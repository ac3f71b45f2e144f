"""Record what torch answers to the programs in answers.txt: `python record_answers.py` where torch is.

A row is a program on one line: statements with semicolons between them, and an expression last, whose
value is the answer as it prints. Lines with a hash are titles.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from math import inf, nan
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("answers.txt")
RECORDED = PROGRAMS.with_suffix(".json")
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")
_SINCE_NUMPY_2_5 = " (or dtypes registered by third-party packages)"


def programs() -> list[str]:
    """The programs, one a line."""
    lines = PROGRAMS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def answer(program: str, torch: Any) -> str:
    """The printed value of the program's last expression, or the error that ended it."""
    tree = ast.parse(program)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr), program
    space = {"torch": torch, "inf": inf, "nan": nan}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(tree, "<program>", "exec"), space)
            found = eval(compile(ast.Expression(last.value), "<program>", "eval"), space)
        except Exception as error:  # how a program ends is its answer
            return f"{type(error).__name__}: {error}".replace(_SINCE_NUMPY_2_5, "")
        return _ADDRESS.sub("", repr(found))


if __name__ == "__main__":
    import torch

    found = {program: answer(program, torch) for program in programs()}
    RECORDED.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")

"""Parsing a long expression: gradcli, lark over the same grammar, Python's `ast`, SymPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PIECE = "x0*3.5 + sin(y)*2 - (a+b)/c1**2 + exp(-x*0.125)*w1 - 2.5e-3/b + "
# What is slow, or breaks at depth, parses less: time is counted by the byte.
LIMITS = {"1 MB": 1_000_000, "lark": 100_000, "sympy": 2_000}


def long_text(size: int) -> str:
    """About `size` bytes of one expression."""
    return PIECE * (size // len(PIECE)) + "1"


def make(peer: str, size: int) -> tuple[Callable[[], Any], int]:
    """(the call, the bytes it parses)."""
    text = long_text(min(size, LIMITS.get(peer, size)))
    parse: Callable[[str], Any]
    if peer in ("gradcli", "1 MB"):
        from gradcli.language import parse
    elif peer == "ast":
        import ast

        text = (long_text(15 * len(PIECE)) + "\n") * (size // (15 * len(PIECE)))
        parse = ast.parse
    elif peer == "lark":
        from tests.language.lark_oracle import _parser

        lark = _parser()

        def parse(text: str) -> Any:
            lark.options.postlex.source = text
            return lark.parse(text)
    else:
        from sympy.parsing.sympy_parser import parse_expr as parse
    parse(PIECE + "1")
    return lambda: parse(text), len(text)

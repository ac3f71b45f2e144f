"""How operations refuse what they are given: by PyTorch's kinds of errors, and by NumPy's."""

from __future__ import annotations

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError)

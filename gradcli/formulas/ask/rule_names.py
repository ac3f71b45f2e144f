"""The rules of differentiation, as lessons call them."""

from __future__ import annotations

SUM = "sum rule"
PRODUCT = "product rule"
QUOTIENT = "quotient rule"
POWER = "power rule"
CHAIN = "chain rule"
CONSTANT = "constant factor"
RECIPROCAL = "reciprocal rule"
EXPONENTIAL = "exponential rule"
LOGARITHMIC = "logarithmic differentiation"
BRANCHES = "branch by branch"
LINEAR = "linearity"
# Operators that choose one of their operands, by the name of the primitive.
CHOICES = {"where": BRANCHES, "maximum": BRANCHES, "minimum": BRANCHES}

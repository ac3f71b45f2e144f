"""The derivative of a program as an expression, for any size."""

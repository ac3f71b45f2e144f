"""Formulas as text: LaTeX, Python, NumPy, JAX, C."""

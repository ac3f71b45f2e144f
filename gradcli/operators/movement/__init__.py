"""Operators that move elements and compute none: views, indexing, joining, casts, new tensors."""

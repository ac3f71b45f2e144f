"""Sample calls of functions that reduce dimensions, for documentation and tests."""

from __future__ import annotations

REDUCED = ("{0}(randn(2,3))", "{0}(randn(()))", "{0}(randn(1))")
DIMS = (
    *("{0}(randn(2,3), 1)", "{0}(randn(2,3), dim=-1, keepdim=True)", "{0}(randn(()), 0)"),
    *("{0}(randn(2,3,2), 1)",),
)
TUPLES = ("{0}(randn(2,3,2), (0, -1))", "{0}(randn(2,3), dim=(0, 1), keepdim=True)")
ALONG = (
    *("{0}(randn(2,3), 1)", "{0}(randn(2,3), dim=0)", "{0}(randn(()), 0)", "{0}(randn(2,3,2), 1)"),
    *("{0}(randn(0), 0)",),
)


def named(name: str, *samples: str | tuple[str, ...]) -> tuple[str, ...]:
    """The samples (or tuples of them), of the function of that name."""
    found: list[str] = []
    for sample in samples:
        found += (sample,) if isinstance(sample, str) else sample
    return tuple([s.format(name) for s in found])

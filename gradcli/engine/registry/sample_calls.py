"""Sample arguments of functions along dimensions, for documentation and tests."""

from __future__ import annotations

REDUCED = "(randn(2,3)); (randn(())); (randn(1))"
DIMS = "(randn(2,3), 1); (randn(2,3), dim=-1, keepdim=True); (randn(()), 0); (randn(2,3,2), 1)"
TUPLES = "(randn(2,3,2), (0, -1)); (randn(2,3), dim=(0, 1), keepdim=True)"
ALONG = "(randn(2,3), 1); (randn(2,3), dim=0); (randn(()), 0); (randn(2,3,2), 1); (randn(0), 0)"

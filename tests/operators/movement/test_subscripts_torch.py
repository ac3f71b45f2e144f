"""`x[key]` and `x[key] = value` on plain memory, which take one step, beside PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli

KEYS = [
    *(0, -1, 3, (0, 1), (0, 0, 0), (1, 2, 3, 0), (), None, (None, 0), (True,), (..., 0)),
    *(slice(None), slice(1, 3), slice(3, 1), slice(-2, None), slice(None, None, 2), slice(-9, 2)),
    *(lambda m: m.tensor(1), lambda m: (m.tensor(0), m.tensor(-1)), lambda m: m.tensor([1, 0])),
    *(slice(None, None, 0), slice(None, None, -1)),
    *((0, slice(None)), (slice(1, 2), None, 0), (slice(None), 1, slice(0, 2)), (slice(None), 7)),
]
VALUES = {
    **{str(v): lambda m, a, k, v=v: v for v in (1.5, -3, True, 1e39, 10**20, float("nan"))},
    "a row": lambda m, a, k: m.arange(4).to(a.dtype),
    "itself": lambda m, a, k: a[k],
    "reversed": lambda m, a, k: a.flip(0)[k],
    "another dtype": lambda m, a, k: m.tensor(2.5, dtype=m.float64),
    "one": lambda m, a, k: m.ones(1, 1, 1).to(a.dtype),
}


def outcome(m: Any, kind: str, key: Any, value: Any) -> Any:
    """What a write gives, as text, with the versions of the tensor and of a view."""
    a = m.arange(24).reshape(2, 3, 4).to(getattr(m, kind))
    view = a.view(-1)
    key = key(m) if callable(key) else key
    try:
        part = a[key]
        read = [tuple(part.shape), part.tolist(), part._base is a]
        read += [part.stride()] if part.numel() else []
        a[key] = value(m, a, key)
    except (IndexError, RuntimeError, ValueError) as error:
        return type(error).__name__, str(error).replace("CPUFloatType", "torch.FloatTensor")
    return str((read, a.tolist(), a._version, view._version))


@pytest.mark.needs("torch")
@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_parts_are_read_and_written_as_by_torch(kind: str) -> None:
    import torch

    for key in KEYS:
        for name, value in VALUES.items():
            ours, theirs = (outcome(m, kind, key, value) for m in (gradcli, torch))
            if not ("expand(" in ours[1] and "expand(" in theirs[1]):  # another name of the type
                assert ours == theirs, (key, name)


def test_a_part_shares_memory_and_a_write_counts() -> None:
    a = gradcli.zeros(2, 3)
    row = a[1]
    a[1, 1:] = 2
    row[0] = gradcli.tensor(5.0)
    assert a.tolist() == [[0, 0, 0], [5, 2, 2]]
    assert row._base is a
    assert a._version == row._version == 2

"""`out=`: which dtypes a function writes into, as PyTorch says of the table's sample calls."""

from __future__ import annotations

import json

import pytest
from out_dtypes import KINDS, RECORDED, answers

import gradcli

_DTYPES = "PyTorch has no kernel for some dtypes; here they are computed"
_WORDS = "refused as in PyTorch, in other words"
# Where gradcli says otherwise, and why.
DIFFER = {
    **dict.fromkeys(("nansum", "nanmean", "var", "std", "randperm", "cumsum", "cumprod"), _DTYPES),
    **dict.fromkeys(("fft.fftfreq", "fft.rfftfreq"), _DTYPES),
    **dict.fromkeys(("fft.ifft", "fft.ihfft"), "complex numbers are cast to wider ones"),
    "bernoulli": "draws are cast as other results are: floats to no integers",
    **dict.fromkeys(("heaviside", "diag", "mvlgamma", "linalg.matrix_power"), _WORDS),
    **dict.fromkeys((f"{name}_window" for name in "bartlett blackman hamming".split()), _WORDS),
    **dict.fromkeys(("hann_window", "kaiser_window"), _WORDS),
}


def rows() -> list[tuple[str, str, list[list[str | None]]]]:
    """(function, arguments, what torch says of each kind in place of each result)."""
    record = json.loads(RECORDED.read_text(encoding="utf-8"))
    texts = record["said"]
    return [
        (name, arguments, [[None if n is None else texts[n] for n in kind] for kind in numbers])
        for name, arguments, numbers in record["rows"]
    ]


def differs(name: str, arguments: str, said: list[list[str | None]]) -> list[str]:
    """Where gradcli says otherwise."""
    ours = answers(gradcli, name, arguments)
    assert ours is not None, f"{name}{arguments}"
    return [
        f"{name}{arguments}, out: {kind}: {theirs} here {own}"
        for kind, theirs, own in zip(KINDS, said, ours, strict=True)
        if theirs != own
    ]


def test_some_functions_take_fewer_dtypes_than_they_could_cast_to() -> None:
    asked = {"median", "kthvalue", "mode", "cummax", "searchsorted", "all", "matmul", "sum", "gcd"}
    for name, arguments, said in rows():
        if name in asked:
            asked.remove(name)
            assert not differs(name, arguments, said)
    assert not asked


@pytest.mark.long
def test_every_function_takes_the_dtypes_that_torch_takes() -> None:
    found: dict[str, list[str]] = {}
    for name, arguments, said in rows():
        if other := differs(name, arguments, said):
            found.setdefault(name, []).extend(other)
    assert found.keys() == DIFFER.keys(), {n: t for n, t in found.items() if n not in DIFFER}

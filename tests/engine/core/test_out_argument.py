"""`out=`: which dtypes a function writes into, as PyTorch says of the table's sample calls."""

from __future__ import annotations

import json

import pytest
from out_dtypes import KINDS, RECORDED, answers

import gradcli


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
    found = [line for name, arguments, said in rows() for line in differs(name, arguments, said)]
    assert not found

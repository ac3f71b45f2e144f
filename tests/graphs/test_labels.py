"""Names that have to be shortened."""

from __future__ import annotations

from gradcli.graphs.labels import ending
from tests.sweep import sweep


@sweep(("width", "shown"), [
        (30, "encoder.layers.2.norm.weight"),
        (28, "encoder.layers.2.norm.weight"),
        (16, "…s.2.norm.weight"),
        (8, "….weight"),
        (1, "…t"),
    ], parts=1)  # fmt: skip
def test_the_end_of_a_dotted_name_stays(width: int, shown: str) -> None:
    assert ending("encoder.layers.2.norm.weight", width) == shown

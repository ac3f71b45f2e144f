"""The index of the table is made ahead of time: it must be as fresh as the table."""

from pathlib import Path

from gradcli.engine.registry import index, make_index


def test_fresh() -> None:
    stored = Path(str(index.__file__)).read_text()
    assert stored == make_index.text(), "run: python -m gradcli.engine.registry.make_index"

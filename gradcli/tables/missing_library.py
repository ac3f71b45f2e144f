"""The library that the extra `table` installs."""

from __future__ import annotations

from typing import Any

from gradcli.tables.table_errors import TableError

EXTRA = 'pip install "gradcli[table]"'


def pyarrow(what: str) -> Any:
    """The library; TableError where it is not installed."""
    try:
        import pyarrow as found
    except ImportError:
        raise TableError(f"{what}: this needs pyarrow", hint=EXTRA) from None
    return found

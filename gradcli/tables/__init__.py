"""Tables: files of rows and columns, whoever wrote them, as named columns of numbers.

`source.py` opens and unpacks, and tells what a file is; `delimited.py` cuts text into cells;
`numpy_files.py`, `json_records.py` and `arrow.py` read the other formats; `named_columns.py` chooses
columns by name and sees to cells that are empty; `column_reading.py` puts it together as `FILE:COLUMNS`.
This room stands on NumPy alone.
"""

from gradcli.tables.column_reading import Expression, Json, Reader
from gradcli.tables.named_columns import POLICIES, Table
from gradcli.tables.table_errors import TableError

__all__ = ["POLICIES", "Expression", "Json", "Reader", "Table", "TableError"]

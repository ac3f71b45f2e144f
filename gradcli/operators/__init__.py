"""The table of operators, by family; `table` is the way in."""

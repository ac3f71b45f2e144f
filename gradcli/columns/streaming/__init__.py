"""Programs over the rows of a table: mapped over them, or run in passes over a table of any size.

`mapped_program` runs an expression of one row for many; `running_sums` partitions a program of whole
columns into passes over parts of a table.
"""

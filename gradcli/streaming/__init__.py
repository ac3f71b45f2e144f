"""Programs over the rows of a table: mapped over them, or run in passes over a table of any size.

mapped.py runs an expression of one row for many; sums.py cuts a program of whole columns into passes over
parts of a table.
"""

"""Programs compiled once: run again on new values, or over large arrays block by block.

`compiled_function.py` is where callers enter. Nothing is imported here: a command that maps three rows needs
none of it.
"""

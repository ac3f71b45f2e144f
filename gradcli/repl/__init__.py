"""The interactive session: a machine whose names and graphs stay alive between lines.

session.py runs texts, completion.py says what may stand at the cursor, editor.py reads lines from a
terminal or a pipe. What prints and draws is given by the caller.
"""

"""What the machine gives and what the process may take: memory, threads, formats, limits, signals."""


class GradcliError(Exception):
    """The base of what gradcli raises: a `LanguageError`, `TableError`, `EngineError` or a failed assertion.

    Errors of the engine are also of the class that PyTorch raises, `RuntimeError` for most. A wrong argument
    of a function is Python's `TypeError` or `ValueError`, and none of these.
    """


# A traceback shows the name that a program catches.
GradcliError.__module__ = "gradcli"

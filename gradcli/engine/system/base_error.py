"""The class that all errors of gradcli's own share, so that a caller can catch them by one name."""


class GradcliError(Exception):
    """What gradcli refuses: a `LanguageError`, `TableError`, `EngineError` or a failed assertion.

    Errors of the engine are also of the class that PyTorch raises, `RuntimeError` for most. A wrong argument
    of a function is Python's `TypeError` or `ValueError`, and none of these.
    """


# A traceback shows the name that a program catches.
GradcliError.__module__ = "gradcli"

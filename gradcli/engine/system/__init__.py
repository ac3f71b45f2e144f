"""What the machine gives and what the process may take: memory, threads, formats, limits, signals."""


class GradcliError(Exception):
    """The base of what gradcli raises: a `LanguageError`, `TableError`, `EngineError` or a failed assertion.

    Errors of the engine are also of the class that PyTorch raises, `RuntimeError` for most. A wrong argument
    of a function is Python's `TypeError` or `ValueError`, and none of these.
    """

    def _render_traceback_(self) -> list[str]:
        """The traceback that IPython shows: the user's own frames, and not gradcli's."""
        import traceback
        from types import TracebackType

        def own(frame: TracebackType | None) -> list[traceback.FrameSummary]:
            found: list[traceback.FrameSummary] = []
            while frame is not None:
                module = frame.tb_frame.f_globals.get("__name__", "").partition(".")[0]
                if module not in ("gradcli", "IPython"):
                    found += traceback.extract_tb(frame, 1)
                frame = frame.tb_next
            return found

        lines = "".join(traceback.format_list(own(self.__traceback__))).splitlines()
        said = "".join(traceback.format_exception_only(self)).splitlines()
        return [*lines, *said]


# A traceback shows the name that a program catches.
GradcliError.__module__ = "gradcli"

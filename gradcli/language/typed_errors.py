"""An error about a rewritten text as one about what was typed, with a hint about that."""

from __future__ import annotations

from gradcli.language.located_errors import LanguageError
from gradcli.language.typed_text import placed


def as_typed(error: LanguageError, text: str) -> LanguageError:
    """The error about a rewritten text as one about what was typed; others as they are."""
    if placed(error, text):
        error.hint = _hint(error.hint, error.source or "")
    return error


def _hint(hint: str | None, typed: str) -> str | None:
    """A hint that writes the whole text otherwise, for what was typed; None where it says nothing of that."""
    if hint is None or not hint.startswith("here it is written "):
        return hint
    from gradcli.language import translations
    from gradcli.language.parser import parses

    return translations.hint(typed, parses)

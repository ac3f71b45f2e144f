"""Text that remembers where each of its characters was typed, through slices and joins.

What a command rewrites, `stack([x, V]); inv(x)` of `inv(x)` and `--along V`, is no text of the user's: an
error's span is put back into what was typed.
"""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

from gradcli.language.located_errors import CallSite, LanguageError, Span


class Typed(NamedTuple):
    """One text that the user typed. name: the option it stood behind; empty for the program."""

    name: str
    text: str


class TypedText(str):
    """A text made of typed ones. origins: of each character what it was typed in, and the place there;
    None for what nobody typed.
    """

    origins: tuple[tuple[Typed, int] | None, ...]

    @classmethod
    def whole(cls, text: str, name: str = "") -> TypedText:
        """A text as it was typed; what is one already stays."""
        if isinstance(text, TypedText):
            return text
        typed = Typed(name, text)
        return cls._of(text, tuple((typed, k) for k in range(len(text))))

    @classmethod
    def _of(cls, text: str, origins: tuple[tuple[Typed, int] | None, ...]) -> TypedText:
        made = cls(text)
        made.origins = origins
        return made

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        """A slice keeps its origins."""
        part = str.__getitem__(self, key)
        return TypedText._of(part, self.origins[key]) if isinstance(key, slice) else part


def joined(*parts: str) -> str:
    """The parts one after the other, which keep where they were typed."""
    if not any(isinstance(part, TypedText) for part in parts):
        return "".join(parts)
    origins = tuple(
        origin
        for part in parts
        for origin in (part.origins if isinstance(part, TypedText) else (None,) * len(part))
    )
    return TypedText._of("".join(parts), origins)


def placed(error: LanguageError, text: str) -> bool:
    """Make of an error about a rewritten text one about what was typed; whether its text is another now."""
    if not isinstance(text, TypedText) or _as_it_was(text):
        return False
    error.calls = tuple(
        CallSite(call.name, found[1], found[0].text)
        if call.source == text and (found := _place(text, call.span)) is not None
        else call
        for call in error.calls
    )
    if error.source != text:
        return False
    found = None if error.span is None else _place(text, error.span)
    if found is None:
        typed = next((o[0] for o in text.origins if o is not None and not o[0].name), None)
        error.source, error.span = "" if typed is None else typed.text, None
        return True
    (name, error.source), error.span = found
    if name:
        error.message = f"{name}: {error.message}"
    return True


def _as_it_was(text: TypedText) -> bool:
    """Whether nothing was rewritten: all of the program as it was typed, and nothing else."""
    first = text.origins[0] if text.origins else None
    return first is not None and not first[0].name and first[0].text == text


def _place(text: TypedText, span: Span) -> tuple[Typed, Span] | None:
    """What a span was typed in, the program before the options, and its span there."""
    # A span of a rewritten text may cover pieces of several texts, and words that nobody typed. What is
    # shown is the part of it that was typed in one of them, the program before an option, from the first
    # to the last character.
    start, end = span
    origins = [o for o in text.origins[start : max(end, start + 1)] if o is not None]
    if not origins:
        return None
    typed = min((o[0] for o in origins), key=lambda t: bool(t.name))
    places = [place for where, place in origins if where == typed]
    return typed, (min(places), max(places) + 1)

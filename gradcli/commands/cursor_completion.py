"""What may stand at the cursor: names, attributes, keyword arguments, commands, files."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from gradcli.commands.session import COLON_COMMANDS, WORDS
from gradcli.language import names as known

_CHAIN = re.compile(r"([^\W\d]\w*(?:\.\w+)*|[)\]])\.(\w*)$")
_WORD = re.compile(r"(?<![\w.])([^\W\d]\w*)?$")
_CALLEE = re.compile(r"([^\W\d][\w.]*)\s*$")
_STRINGS = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"")
_WITH_FILE = (":load", ":save")
KEYWORDS = tuple(
    "and as assert break continue def elif else except False for from if import in is lambda None "
    "not or pass return True try while with".split()
)


class Candidate(NamedTuple):
    """A text that may be inserted, and what is said about it."""

    text: str
    meta: str = ""


def complete(before: str, names: Mapping[str, Any]) -> tuple[int, list[Candidate]]:
    """Where the text to be replaced begins, and what may replace it.

    before: the line up to the cursor. names: the session's.
    """
    if before.startswith((":", "%")):
        return _command(before)
    if match := re.match(r"\s*help\s+([\w.]*)$", before):
        found = [Candidate(name, signature(known.meaning(name))) for name in known.all_names()]
        return match.start(1), _starting(found, match[1])
    code = _STRINGS.sub(lambda text: "_" * len(text[0]), before)
    if "'" in code or '"' in code or "#" in code:  # inside a string or a comment
        return len(before), []
    if match := _CHAIN.search(code):
        return match.start(2), _starting(_attributes(match[1], names), match[2])
    match = _WORD.search(code)
    if match is None:
        return len(before), []
    word = match[1] or ""
    start = len(before) - len(word)
    if word and not before[:start].strip():
        verbs = [Candidate(f"{verb} ", said) for verb, said in WORDS.items()]
        return start, _starting([*verbs, *_own(names), *_others(names, word)], word)
    found = [*_keyword_arguments(code[:start], names), *_own(names)]
    return start, _starting([*found, *_others(names, word)] if word else found, word)


def hint(before: str, names: Mapping[str, Any]) -> str:
    """The signature of the function whose arguments the cursor is in; empty if there is none."""
    function = _function_around(_STRINGS.sub(lambda text: "_" * len(text[0]), before), names)
    return signature(function) if function is not None else ""


def signature(value: Any) -> str:
    """How a function is called; empty for anything else."""
    from gradcli.engine.registry.table import Function

    if isinstance(value, Function):
        return value.signature
    spec = getattr(value, "spec", None)
    if spec is not None and hasattr(spec, "code"):
        return f"{spec.name}({', '.join(spec.code.parameters)})"
    return ""


def _starting(found: list[Candidate], word: str) -> list[Candidate]:
    """The candidates that begin with a word; private names only if it says so."""
    return [
        candidate
        for candidate in found
        if candidate.text.startswith(word)
        and (word.startswith("_") or not candidate.text.startswith("_"))
    ]


def _command(before: str) -> tuple[int, list[Candidate]]:
    word, space, path = before.partition(" ")
    if not space:
        found = [
            Candidate(before[0] + name[1:] + " " * (name in _WITH_FILE), doc)
            for name, doc in COLON_COMMANDS.items()
        ]
        return 0, _starting(found, word)
    if f":{word[1:]}" not in _WITH_FILE:
        return len(before), []
    full = os.path.expanduser(path)
    tail = len(os.path.basename(path))  # only the last part is new
    found = [
        Candidate(os.path.basename(name) + "/" * os.path.isdir(name))
        for name in sorted(glob.glob(glob.escape(full) + "*"))
    ]
    return len(before) - tail, found


def _own(names: Mapping[str, Any]) -> list[Candidate]:
    return [
        Candidate(_called(name, value), signature(value) or type(value).__name__)
        for name, value in names.items()
    ]


def _others(names: Mapping[str, Any], word: str) -> list[Candidate]:
    table = [
        _table_name(name)
        for name in known.all_names()
        if name.startswith(word) and name not in names and "." not in name
    ]
    return [*table, *map(Candidate, KEYWORDS)]


def _table_name(name: str) -> Candidate:
    if name in known.NAMESPACES or name in known.SHORT:
        return Candidate(f"{name}.")
    value = known.meaning(name)
    return Candidate(_called(name, value), signature(value))


def _called(name: str, value: Any) -> str:
    return f"{name}(" if callable(value) and not isinstance(value, type) else name


def _attributes(base: str, names: Mapping[str, Any]) -> list[Candidate]:
    """The attributes of what a chain of names stands for; of a tensor behind a bracket."""
    if base in (")", "]"):
        value: Any = known.meaning("tensor")(0.0)
    else:
        first, *rest = base.split(".")
        value = names.get(first, known.meaning(first))
        try:
            for word in rest:
                value = known.attribute(value, word)
        except (AttributeError, RuntimeError):
            return []
    if value is None:
        return []
    return [_attribute(value, name) for name in known.attributes(value)]


def _attribute(value: Any, name: str) -> Candidate:
    if isinstance(value, known.Namespace):
        found = known.qualified(f"{value.prefix}.{name}" if value.prefix else name)
    else:
        # The class's, for an attribute's value may be costly, or refused.
        found = getattr(type(value), name, None)
        if hasattr(value, "requires_grad"):
            from gradcli.engine.registry.table import resolve

            entry = resolve(name)
            text = signature(entry) if callable(found) else ""
            return Candidate(_called(name, found), re.sub(r"\(input(, )?", "(", text))
    return Candidate(_called(name, found), signature(found))


def _function_around(code: str, names: Mapping[str, Any]) -> Any:
    """The function in whose brackets a text ends."""
    depth = 0
    for i in range(len(code) - 1, -1, -1):
        if code[i] in ")]":
            depth += 1
        elif code[i] in "([":
            depth -= 1
            if depth < 0:
                match = _CALLEE.search(code[:i]) if code[i] == "(" else None
                return _meaning(match[1], names) if match else None
    return None


def _meaning(chain: str, names: Mapping[str, Any]) -> Any:
    first, *rest = chain.split(".")
    value = names.get(first, known.meaning(first))
    for word in rest:
        if hasattr(value, "requires_grad"):
            from gradcli.engine.registry.table import resolve

            return resolve(word)
        try:
            value = known.attribute(value, word)
        except AttributeError:
            return None
    return value


def _keyword_arguments(code: str, names: Mapping[str, Any]) -> list[Candidate]:
    """`dim=` and the like, where a call's argument begins."""
    if not re.search(r"[(,]\s*$", code):
        return []
    ways = signature(_function_around(code, names)).split(" or (")
    words: dict[str, None] = {}
    for way in sorted(ways, key=len, reverse=True):  # the one with the most arguments first
        inner = (
            way.partition("(")[2].rpartition(")")[0] if way is ways[0] else way.rpartition(")")[0]
        )
        plain = re.sub(r"=\([^)]*\)|=\[[^]]*\]", "=0", inner)
        words |= dict.fromkeys(re.findall(r"(?:^|, )([^\W\d]\w*)", plain)[1:])
    return [Candidate(f"{word}=") for word in words]

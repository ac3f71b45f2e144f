"""A report of checks as JUnit's XML, which CI servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from gradcli.language.located_errors import LanguageError

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Case = tuple[str, int, str, str]  # the name, the exit code, standard output and standard error


def text(suite: str, cases: Sequence[Case]) -> str:
    """The report: a failure is what was computed and is wrong (code 1), an error what could not be."""
    failures = sum(code == 1 for _, code, _, _ in cases)
    errors = sum(code > 1 for _, code, _, _ in cases)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites {counts}>"]
    lines.append(f"  <testsuite name={_quoted(suite)} {counts}>")
    for name, code, out, err in cases:
        lines.append(f"    <testcase classname={_quoted(suite)} name={_quoted(name)}>")
        if code:
            kind = "failure" if code == 1 else "error"
            said = err.strip() or out.strip()
            first = said.partition("\n")[0].removeprefix("gradcli: ").removeprefix("error: ")
            lines.append(f"      <{kind} message={_quoted(first)}>{_escaped(said)}</{kind}>")
        if out:
            lines.append(f"      <system-out>{_escaped(out.rstrip())}</system-out>")
        lines.append("    </testcase>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def write(path: str, suite: str, cases: Sequence[Case]) -> None:
    """Write the report to a file. Raises LanguageError where that is not possible."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text(suite, cases))
    except OSError as error:
        raise LanguageError(f"cannot write {path}: {error.strerror}", kind="file") from None


def _quoted(said: str) -> str:
    return quoteattr(_NO_XML.sub("?", said))


def _escaped(said: str) -> str:
    return escape(_NO_XML.sub("?", said))


__all__ = ["text", "write"]

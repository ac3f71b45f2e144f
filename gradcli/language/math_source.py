r"""What pages put around formulas, and what says how they look: `$…$`, `\boxed{…}`, `\begin{aligned}`.

The text keeps its length, so that carets stand where something was typed: what is left out becomes blanks.
"""

from __future__ import annotations

import re

# Environments whose `&` and `\\` are of their cells; in all others they only say where lines break.
_CELLS = re.compile(r"(?:small|[pbBvV])?matrix\*?|[dr]?cases\*?|array")
_AROUND = (
    r"(?:equation|align|aligned|alignat|alignedat|gather|gathered|multline|multlined|displaymath|math"
    r"|split|eqnarray|flalign)\*?"
)
_WRAPPERS = re.compile(
    r"\\\[|\\\]|\\\(|\\\)"
    rf"|\\(?:begin|end)\{{{_AROUND}\}}(?:\{{\d+\}})?"
    r"|\\(?:label|tag\*?)\{[^{}]*\}"
    r"|\\(?:boxed|fbox|ensuremath|mathop|mathstrut|strut|nonumber|notag)(?![A-Za-z])"
    r"|\\(?:hspace|vspace|phantom|vphantom|hphantom)\*?\{[^{}]*\}"
    r"|\\(?:text)?color\{[^{}]*\}"
    r"|\\(?:rm|bf|it|sf|tt|cal|large|small|Large)(?![A-Za-z])"
)
_BRACES = re.compile(r"\\(?:under|over)(?:brace|bracket)(?=\s*\{)")
_LINES = re.compile(r"\\(begin|end)\{([A-Za-z]+\*?)\}|(?<!\\)&|\\\\(\[[^\][]*\])?|\\cr(?![A-Za-z])")
# `i \\ne j` of two lines below a sum, `i, j` and `i \\ne j`.
_STACKED = re.compile(
    r"\\substack\{(?:[a-z][,\s]*)+(?:=\s*1\s*)?\\\\([^{}\\=]*\\?[a-z<>]+[^{}\\]*)\}"
)
# A line that begins so goes on with the one before.
_GOES_ON = re.compile(
    r"(?:\s|&|\\q?quad|\\[,;! ])*(?:[-+*/)\]}·×]|\\(?:cdot|times|right)(?![A-Za-z]))"
)


def formula(source: str) -> str:
    """The formula of a text, of the same length."""
    text = re.sub(r"^\s*```\w*|```\s*$", _blanks, source)
    text = re.sub(r"^(\s*)`([^`]+)`", lambda m: f"{m[1]} {m[2]} ", text)
    text = re.sub(r"^(\s*)(\$+)([^$]+)(\$+)(\s*[.,;]?\s*)$", _without_dollars, text)
    if "\\" in text:
        text = re.sub(_STACKED, lambda m: m[1].rjust(len(m[0]) - 1) + " ", text)
        text = _without_braces(_in_one_line(text))
        text = _WRAPPERS.sub(_blanks, text)
    # sum_(i=1)^n of AsciiMath
    text = re.sub(r"(?<=(?:sum|rod)_)\(([^()]*)\)", r"{\1}", text)
    text = text.replace(":=", " =").rstrip()
    if text.endswith((".", ",")):
        return re.sub(r"(?:\\right\s*\.|[,.])$", _blanks, text).rstrip()
    return text


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _without_dollars(match: re.Match[str]) -> str:
    before, opened, inside, closed, _ = match.groups()
    return f"{before}{' ' * len(opened)}{inside}{' ' * len(closed)}"


def _in_one_line(text: str) -> str:
    r"""The text with `;` for the ends of lines that are outside of matrices and cases; without their `&`."""
    cells = 0
    parts: list[str] = []
    end = 0
    aligned = re.search(rf"\\begin\{{{_AROUND}\}}", text) is not None
    for match in _LINES.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match[1]:
            cells += (1 if match[1] == "begin" else -1) * bool(_CELLS.fullmatch(match[2]))
            parts.append(match[0])
        elif cells or not aligned:  # a height, as in \\[4pt], says nothing
            height = len(match[3] or "")
            parts.append(match[0][: len(match[0]) - height] + " " * height)
        elif match[0] == "&" or _GOES_ON.match(text, end):
            parts.append(" " * len(match[0]))
        else:
            parts.append(";".rjust(len(match[0])))
    return "".join([*parts, text[end:]])


def _without_braces(text: str) -> str:
    r"""The text without `\underbrace` and what stands below it: the braces around `{x^2}` stay."""
    while (match := _BRACES.search(text)) is not None:
        end = _closing(text, text.index("{", match.end()))
        below = re.match(r"\s*[_^]\s*\{", text[end:])
        last = end
        if below is not None:
            last = _closing(text, end + below.end() - 1)
        start, blank = match.span()
        text = f"{text[:start]}{' ' * (blank - start)}{text[blank:end]}{' ' * (last - end)}{text[last:]}"
    return text


def _closing(text: str, opened: int) -> int:
    """Where the brace ends that opens there; the end of the text where it does not."""
    depth = 0
    for i in range(opened, len(text)):
        if text[i - 1 : i] == "\\" and text[i] in "{}":
            continue
        depth += (text[i] == "{") - (text[i] == "}")
        if not depth:
            return i + 1
    return len(text)

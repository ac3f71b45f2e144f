"""A session: texts go in one after the other, and all run on one machine.

The spans of graph nodes count in the text of the whole session, so that a graph that was built over
several lines knows the piece of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from gradcli.commands import VERBS
from gradcli.language import tree_kinds
from gradcli.language.display import is_displayed, pretty
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program

if TYPE_CHECKING:
    from gradcli.language.math_values import Known

WORDS = {"graph": "the backward graph", **VERBS}  # that begin a line
PROMPT, MORE = ">>> ", "... "
_COMPOUND = frozenset(
    tree_kinds.KIND[name]
    for name in "if if_else while for with try function function_annotated".split()
)
_FUNCTIONS = frozenset(tree_kinds.KIND[name] for name in ("function", "function_annotated"))
_CLAUSE = re.compile(r"(else|elif|except|finally)\b")
_HELP = re.compile(r"help(?:\s+([\w.]+))?|([\w.]+)\s*\?{1,2}|\?{1,2}\s*([\w.]+)")
_GRAPH = re.compile(r"graph\s+(?!(?:if|in|is|and|or|not)\b)([\w(].*?)((?:\s+--?\w.*)?)")
_COLON = re.compile(r"[:%](\w*)\s*(.*)")
# A verb, and what no operator and no assignment begins with; in brackets it is a function's call.
_VERB = re.compile(
    rf"({'|'.join(VERBS)})\s+(?!(?:if|in|is|and|or|not)\b)([\w\"'(\[\\√∑∏∫∂∇-].*?)((?:\s+--?[A-Za-z].*)?)"
)
_CALL_OF_DIFF = re.compile(r"\bdiff\s*\(")
_OF_A_DRAWING = frozenset("saved grads edges only depth forward wide legend".split())
_NEEDS = {
    "save": ("a file", "FILE"),
    "load": ("a file", "FILE"),
    "timeit": ("an expression", "EXPR"),
}
_UNITS = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
_LEAVE = re.compile(r"(exit|quit)(\s*\(\s*\))?")
_WORDS = {"?": "help", "clear": "clear", "vars": "names"}
COLON_COMMANDS = {
    ":save": "write the lines that ran to a file",
    ":load": "run a file",
    ":names": "list the names of the session; vars is the same",
    ":reset": "forget them",
    ":clear": "clear the screen",
    ":timeit": "how long an expression takes",
    ":math": "read lines as mathematics, 2x^2 and x'Ax; again to stop",
    ":quit": "leave",
    ":help": "this help",
}


class Frontend(Protocol):
    """What a session needs of the program around it."""

    def write(self, text: str) -> None:
        """A result."""

    def note(self, text: str, always: bool = False) -> None:
        """A remark, which is not part of the results; always: also where nobody types."""

    def report(self, error: LanguageError) -> None:
        """An error."""

    def explain(self, name: str) -> None:
        """What `help NAME` says of a function; LanguageError if there is none."""

    def command(self, verb: str, text: str, options: str, names: Mapping[str, Any]) -> None:
        """Run a command of gradcli on an expression of the session's names; LanguageError if refused."""

    def clear(self) -> None:
        """Clear the screen."""

    def shell(self, command: str) -> bool:
        """Run a command of the shell; False where nobody types, and a program has none."""

    def draw(self, graph: Any, options: Mapping[str, Any]) -> None:
        """A graph."""

    def read_file(self, path: str) -> str:
        """A file's text."""

    def write_file(self, path: str, text: str) -> None:
        """Write a file whole or not at all."""


class Leave(Exception):
    """Raised by a line that ends the session."""


class Session:
    """Names that stay, the text so far, and the lines of an input that is not complete yet."""

    def __init__(
        self,
        frontend: Frontend,
        names: Mapping[str, Any] | None = None,
        *,
        max_steps: int | None = None,
    ) -> None:
        self.frontend = frontend
        self.initial = dict(names or {})
        self.max_steps = max_steps
        self.pending: list[str] = []
        self.failed: LanguageError | None = None  # the last error, for the exit code
        self._error: LanguageError | None = None  # what is wrong with the pending text
        self._function: list[str] = []  # the function that the last blank line ended
        self.math = False  # whether lines are read as mathematics
        self._told = False  # what diff(x) means, and diff x
        self.reset()

    def reset(self) -> None:
        """Forget every name and text."""
        from gradcli.language import Machine

        self.machine = Machine(self.initial)
        self.text = ""  # everything that was run, for spans to count in
        self.kept: list[
            str
        ] = []  # what ran without an error, for :save and for `session_variables`

    # -- lines -------------------------------------------------------------------------------
    def feed(self, line: str, *, ahead: str | None = None) -> bool:
        """Take one line; returns whether the input needs more lines.

        `ahead` is the next line where it is known already, as in a text that was pasted: a blank line
        then ends a block only if the block does not go on behind it.
        """
        if self._function and line[:1] in (" ", "\t") and line.strip():
            # A blank line ended the function, but it goes on: defining it anew does no harm.
            self.pending, self._function = [*self._function, ""], []
            self.kept.pop()
        if line.strip():
            self._function = []
        if self.math and not self.pending:
            line = self._mathematics(line)
        if not self.pending and self._command(line):
            return False
        ends = line.strip() and not _goes_on(line)
        if self.pending and ends and self._parsed() is not None:
            self.finish()
            return self.feed(line, ahead=ahead)
        if not line.strip():
            if not self.pending:
                return False
            if self._parsed() is not None and not (ahead is not None and _goes_on(ahead)):
                self._finish_block()
                return False
        self.pending.append(line)
        program = self._parsed()
        wrong = self._error is not None and not self._error.incomplete
        if wrong or (program is not None and not _is_block(program)):
            self.finish()
        return bool(self.pending)

    def paste(self, text: str) -> bool:
        """Take several lines at once; returns whether the input needs more lines."""
        lines = text.split("\n")
        more = False
        for number, line in enumerate(lines):
            rest = lines[number + 1 :] if not line.strip() else ()
            more = self.feed(line, ahead=next((found for found in rest if found.strip()), None))
        return more

    def needs_more(self, text: str) -> bool:
        """Whether a text is not complete, or ends in a block that no blank line has ended."""
        from gradcli.language import parse

        try:
            return _is_block(parse(text)) and bool(text.rpartition("\n")[2].strip())
        except LanguageError as error:
            return error.incomplete

    def finish(self) -> None:
        """Run what is pending, complete or not."""
        text = "\n".join(self.pending)
        self.pending = []
        if text.strip():
            self.run(text)

    def _finish_block(self) -> None:
        """Run the block that a blank line has ended."""
        lines, count = self.pending, len(self.kept)
        program = self._parsed()
        self.finish()
        if program is not None and program.kinds[-2] in _FUNCTIONS and len(self.kept) > count:
            self._function = lines

    def cancel(self) -> None:
        """Forget what is pending."""
        self.pending = []

    def refuse(self, message: str) -> None:
        """Report what could not even be read, and forget what is pending."""
        self.cancel()
        self.report(LanguageError(message, kind="value"))

    def _parsed(self) -> Program | None:
        from gradcli.language import parse

        self._error = None
        try:
            return parse("\n".join(self.pending))
        except LanguageError as error:
            self._error = error
            return None

    def _mathematics(self, line: str) -> str:
        """The line as the language writes it, which is said where it differs."""
        from gradcli.language.mathematics import read_mathematics
        from gradcli.language.parser import parses

        verb = _VERB.fullmatch(line.strip())
        text = verb[2] if verb else line
        bound = {name: callable(value) for name, value in self.machine.names.items()}
        if line[:1] in (":", " ", "\t"):
            return line
        try:
            by = _differentiated_by(verb[3]) if verb and verb[1] == "diff" else None
            read = read_mathematics(text, parses, bound, known=self._known, by=by)
            if read is not None and by and by not in read.differentiated:
                read = read_mathematics(text, parses, bound, known=self._known)
        except LanguageError as error:
            if self.needs_more(line):
                return line
            self.report(error)
            return ""
        if read is None:
            return line
        self.frontend.note(f"note: read as {read}")
        options = ""
        if read.differentiated:
            options = f" --wrt {read.differentiated[0]}" * (not by)
            options += f" --order {len(read.differentiated)}" * (len(read.differentiated) > 1)
        if read.operator:
            options += f" --operator {read.operator}"
        return f"{verb[1]} {read.written}{verb[3]}{options}" if verb else read.written

    def _known(self, name: str) -> Known | None:
        """The shape of a value of the session's."""
        from gradcli.language.math_values import Known

        value = self.machine.names.get(name)
        if isinstance(value, (int, float)):
            return Known((), int(value) if float(value).is_integer() else None)
        if (shape := getattr(value, "shape", None)) is None:
            return None
        return Known(tuple(shape))

    # -- running -----------------------------------------------------------------------------
    def run(self, text: str, *, keep: bool = True) -> None:
        """Run a text, display its value as a notebook does, report its error."""
        try:
            program, value = self.value_of(text)
        except LanguageError as error:
            self.report(error)
            return
        if keep:
            self.kept.append(text)
        if program.rows[-3] > 1:  # several statements
            from gradcli.commands.unused_notes import about_unused

            if (said := about_unused(program, "run", self.machine.names)) is not None:
                self.frontend.note(f"note: {said}", True)
        if not self._told and _CALL_OF_DIFF.search(text) and "diff" not in self.machine.names:
            self._told = True
            self.frontend.note(
                "note: diff(x) is torch.diff, the differences of neighbours; the derivative is "
                "`diff EXPR`, without brackets"
            )
        if value is not None and is_displayed(program):
            self.machine.names["_"] = value
            try:
                shown = pretty(value)
            except LanguageError as error:
                self.report(error)
            else:
                self.frontend.write(shown)

    def value_of(self, text: str) -> tuple[Program, Any]:
        """Run a text; the program and its value."""
        from gradcli.language import parse

        program = parse(text)
        offset = len(self.text)
        self.text += text + "\n"
        rows = program.rows
        for column in (2, 3):
            for i in range(column, len(rows), 4):
                rows[i] += offset
        program.source = self.text
        self.machine.steps = self.machine.max_steps = self.max_steps
        try:
            return program, self.machine.run(program)
        except LanguageError as error:
            if error.span is not None and error.span[0] >= offset and not error.calls:
                # a place in the last input's text rather than in the session's
                start, end = error.span
                error.source, error.span = text, (start - offset, end - offset)
            raise

    def report(self, error: LanguageError) -> None:
        """Show an error, and remember that there was one."""
        if error.kind == "name" and (error.hint or "").startswith("give "):
            error.hint = "assign it first"
        self.failed = error
        self.frontend.report(error)

    # -- commands ----------------------------------------------------------------------------
    def _command(self, line: str) -> bool:
        """Do what the line says if it is no text of the language but a command of the session."""
        stripped = line.strip()
        try:
            if _LEAVE.fullmatch(stripped) and stripped[:4] not in self.machine.names:
                raise Leave
            if match := _COLON.fullmatch(stripped):
                self._colon(match[1], match[2])
            elif stripped in _WORDS and stripped not in self.machine.names:
                self._colon(_WORDS[stripped], "")
            elif stripped[:1] == "!" and self.frontend.shell(stripped[1:]):
                pass
            elif (match := _HELP.fullmatch(stripped)) and "help" not in self.machine.names:
                self.help(match[1] or match[2] or match[3])
            elif match := _GRAPH.fullmatch(stripped):
                self.graph(match[1], match[2].split())
            elif (match := _VERB.fullmatch(stripped)) and self._is_verb(match[1], match[2]):
                self._verb(*match.groups())
            else:
                return False
        except LanguageError as error:
            self.report(error)
        return True

    def _verb(self, verb: str, text: str, options: str) -> None:
        """Run a command of gradcli on an expression of the session's."""
        names: Mapping[str, Any] = self.machine.names
        if verb != "ops":
            from gradcli.commands.session_variables import asked

            text, names, note = asked(text, options, self.kept, names)
            if note:
                self.frontend.note(note)
        self.frontend.command(verb, text, options, names)

    def _is_verb(self, verb: str, text: str) -> bool:
        """Whether the line is a command, and not `diff (x)` or `grad - x` with a grad of the session's."""
        if text[0] not in "([-":
            return True
        from gradcli.language.names import meaning

        return verb not in self.machine.names and meaning(verb) is None

    def _colon(self, word: str, argument: str) -> None:
        if word in ("q", "quit", "exit"):
            raise Leave
        if word == "help" or not word:
            self.help(argument or None)
        elif word == "names":
            names = self.machine.names.items()
            if listed := [described(n, v) for n, v in names if not n.startswith("_")]:
                self.frontend.write("\n".join(listed))
        elif word == "reset":
            self.reset()
        elif word == "math":
            self.math = not self.math
            how = "as mathematics" if self.math else "as programs"
            self.frontend.note(f"note: lines are read {how}")
        elif word == "clear":
            self.frontend.clear()
        elif word in _NEEDS and not argument:
            what = _NEEDS[word]
            raise LanguageError(f":{word} needs {what[0]}", kind="usage", hint=f":{word} {what[1]}")
        elif word == "timeit":
            self._time(argument)
        elif word == "save":
            text = "".join(f"{piece}\n" for piece in self.kept)
            self.frontend.write_file(argument, text)
            lines = text.count("\n")
            self.frontend.note(f"{lines} line{'s' * (lines != 1)} in {argument}")
        elif word == "load":
            self.run(self.frontend.read_file(argument).rstrip("\n"))
        else:
            from gradcli.language.located_errors import did_you_mean, suggest

            raise LanguageError(
                f"no command :{word}",
                kind="usage",
                hint=did_you_mean(suggest(f":{word}", COLON_COMMANDS)) or ":help lists them",
            )

    def _time(self, text: str) -> None:
        """How long a text takes to run: the fastest of several runs, for the others were disturbed."""
        from timeit import Timer

        from gradcli.language import parse

        program = parse(text)

        def once() -> None:
            self.machine.steps = self.machine.max_steps = self.max_steps
            self.machine.run(program)

        timer = Timer(once)
        number, _ = timer.autorange()
        best = min(timer.repeat(5, number)) / number
        unit, size = next(u for u in _UNITS if best < 1000 * u[1] or u[0] == "s")
        self.frontend.write(f"{best / size:.3g} {unit} (the best of 5 times {number:,} runs)")

    def help(self, name: str | None) -> None:
        """What the session can do, or what a name means."""
        from gradcli.language.names import meaning

        if name is None:
            rows = {
                "help NAME": "what a function does; NAME? and ?NAME are the same",
                "graph EXPR": "the backward graph; --saved, --grads, --edges, --depth N",
                **{f"{verb} {'NAME' if verb == 'ops' else 'EXPR'}": said
                   for verb, said in VERBS.items()},
                "_": "the last value",
                "?, clear": "this help; clear the screen",
                **{f"{k} {_NEEDS[k[1:]][1]}" if k[1:] in _NEEDS else k: v
                   for k, v in COLON_COMMANDS.items()},
                "!COMMAND": "run a command of the shell, in a terminal",
            }  # fmt: skip
            self.frontend.write(
                "Everything else is run: expressions, assignments, def, for, if, …\n"
                + "\n".join(f"  {key:<15}{text}" for key, text in rows.items())
            )
        elif name.partition(".")[0] in self.machine.names:
            self._describe(name)
        elif name in WORDS:
            what = "NAME" if name == "ops" else "EXPR [OPTIONS]"
            self.frontend.write(f"{name} {what}: {WORDS[name]}; gradcli {name} --help has options")
            if meaning(name) is not None:  # `diff` is a function too
                self.frontend.explain(name)
        else:
            self.frontend.explain(name)

    def _describe(self, name: str) -> None:
        """What a name of the session stands for; a method of it as the function that it is."""
        from gradcli.language import names as known

        first, *rest = name.split(".")
        value: Any = self.machine.names[first]
        for word in rest:
            owner = value
            try:
                value = known.attribute(owner, word)
            except AttributeError as error:
                hint = f"{name.rpartition('.')[0]} has: {', '.join(known.attributes(owner)[:8])}, …"
                raise LanguageError(str(error), kind="attribute", hint=hint) from None
            if hasattr(owner, "requires_grad") and callable(value):
                self._explain_method(word, value)
                return
        self.frontend.write(described(name, value))

    def _explain_method(self, word: str, method: Any) -> None:
        try:
            self.frontend.explain(word)
        except LanguageError:
            doc = (method.__doc__ or "").strip().partition("\n")[0]
            self.frontend.write(f"x.{word}(…)\n  {doc}" if doc else f"x.{word}(…)")

    def graph(self, text: str, options: list[str]) -> None:
        """Draw the backward graph of an expression's value."""
        from gradcli.graphs import inspect

        chosen = _graph_options(options)
        _, value = self.value_of(text)
        if not hasattr(value, "grad_fn"):
            raise LanguageError(
                f"there is no graph: `{text}` is not a tensor but of type {type(value).__name__}",
                kind="type",
                usage=False,
            )
        if not value.requires_grad:
            raise LanguageError(
                f"there is no graph: `{text}` does not require grad",
                kind="runtime",
                hint="make a leaf with `requires_grad=True` or `x.requires_grad_()`",
                usage=False,
            )
        names = {n: v for n, v in self.machine.names.items() if hasattr(v, "grad_fn") and n != "_"}
        found = inspect(value, source=self.text, names=names)
        if chosen.pop("grads", False):
            try:
                found.backpropagate()
            except RuntimeError as error:
                raise LanguageError(str(error), kind="runtime", usage=False) from error
        self.frontend.draw(found, chosen)


def _goes_on(line: str) -> bool:
    """Whether a line continues a block: it is indented, or begins with `else` and the like."""
    return line[:1] in (" ", "\t") or bool(_CLAUSE.match(line))


def _is_block(program: Program) -> bool:
    """Whether the last statement may have more lines."""
    return len(program) > 1 and program.kinds[-2] in _COMPOUND


def described(name: str, value: Any) -> str:
    """A name and what it stands for, on one line."""
    if not hasattr(value, "requires_grad") or not hasattr(value, "shape"):
        text = " ".join(repr(value).split())
        return f"{name} = {text if len(text) <= 60 else text[:59] + '…'}"
    facts = [f"Tensor {tuple(value.shape)}", value.dtype.name]
    if value.grad_fn is not None:
        facts.append(f"grad_fn {value.grad_fn.name()}")
    elif value.requires_grad:
        facts.append("leaf, requires grad")
        facts.append("no grad yet" if value.grad is None else "has grad")
    return f"{name}: {', '.join(facts)}"


def _graph_options(words: list[str]) -> dict[str, Any]:
    """Those options of `gradcli graph` that say what is drawn of a graph that is there."""
    from gradcli.commands.graph import command

    known = {f"--{o.name}": o for o in command.own_options() if o.name in _OF_A_DRAWING}
    chosen: dict[str, Any] = {}
    rest = words[::-1]
    while rest:
        word = rest.pop()
        option = known.get(f"--{word.lstrip('-')}")
        if option is None or not (option.is_flag or rest):
            listed = ", ".join(f"{name} {o.metavar or ''}".rstrip() for name, o in known.items())
            problem = f"no option {word}" if option is None else f"{word} needs a value"
            raise LanguageError(f"graph: {problem}", kind="usage", hint=f"there are {listed}")
        value: Any = True if option.is_flag else rest.pop()
        if option.least is not None:
            if not value.isdigit():
                raise LanguageError(f"graph: {word} {value}: it is a whole number", kind="usage")
            value = int(value)
        chosen[option.name] = value
    return chosen


def _differentiated_by(options: str) -> str | None:
    """The variable of a diff in a session, "" where none is said; None where d/dx cannot say it."""
    if re.search(r"--(?:order|of|operator|along)\b", options):
        return None
    found = re.findall(r"--wrt[\s=]+(\w+)", options)
    return found[0] if len(found) == 1 else None if found else ""

"""Options that grow out of the expression: `--x VALUE` for every variable x of EXPR.

argv is put in order by spelling alone (`argv.split`), then click parses it with one real option a variable,
so that errors, `--help` and completion are click's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

import gradcli.engine.system.spread as spread
from gradcli.commands import completers
from gradcli.commands.argv import Split, split
from gradcli.commands.command_errors import quoted, usage
from gradcli.commands.declarations import READING, Argument, Command, Option
from gradcli.commands.foreign_options import of_formats, of_pytorch, refuse_words
from gradcli.commands.help import HelpfulCommand
from gradcli.commands.output import Style, note
from gradcli.commands.request import (
    Request,
    SessionNames,
    chosen_form,
    is_called,
    is_known,
    name_list,
    normal,
    read_text,
    variables,
    where_read,
)
from gradcli.commands.shape_option import shapes_of
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.commands.known_shapes import KnownShapes
    from gradcli.language.mathematics import Mathematics
    from gradcli.language.program import Program
    from gradcli.language.rewritten_sources import FormulaReading

Declared = Mapping[str, Option]
_CONSTANTS = frozenset(("pi", "inf", "nan"))
_LN = re.compile(r"(?<![A-Za-z])ln(?![A-Za-z])")
_LOG = re.compile(r"(?<![A-Za-z])log(?![A-Za-z_\d])")
_DASHED = re.compile(r"--[^\W\d][\w-]*(=.*)?", re.S)

# Examples of options whose value alone is not enough.
_AS_IN = {"--descend": ", as in --descend 0.1 --at x=2, where it starts"}

ABOUT_VARIABLES = (
    "Every variable of EXPR is an option that takes its value: --x~3, --x~1,2,3, --x~'1,2;3,4', "
    "--x~0:4, --x~'ones(3)', --x~@data.csv, --x~- (standard input). Statements are separated by `;`."
)

# Commands that read `y = …` otherwise: as an equation, a curve, a column.
_WITHOUT_VALUE = ("root", "fit", "plot")
# What other tools call options of ours, where the command has such an option.
MEANT = {
    "--show-steps": ("--trace", "write --trace for a row of each step"),
    "--name": ("--as", "write --as NAME=COLUMN, as in --as result=value"),
    "--keep": ("--keep-columns", "write --keep-columns NAMES, or --keep-columns none"),
    "--cross": ("--second", "write --second x,y for the second derivative by x and y"),
    "--error": ("--sigma", "write --sigma COLUMN or --sigma VALUE"),
    **dict.fromkeys(
        ("--corr", "--correlations", "--corrcoef"),
        (
            "--correlation",
            "write --correlation x,y=VALUE; without a value fit, root and minimize print that of results",
        ),
    ),
    **dict.fromkeys(
        ("--cov", "--covar", "--covariances"),
        ("--covariance", "write --covariance x,y=VALUE, or --correlation x,y=VALUE"),
    ),
    **dict.fromkeys(
        ("--poisson", "--counts", "--counting", "--cash"),
        (
            "--sigma",
            "write --sigma poisson, the square root of the counts; "
            "gradcli fit has --likelihood poisson",
        ),
    ),
    **dict.fromkeys(
        ("--absolute-sigma", "--scale-covar", "--scale-errors"),
        (
            "--relative-sigma",
            "--sigma is absolute; write --relative-sigma to scale the errors by chi2/dof",
        ),
    ),
    **dict.fromkeys(
        ("--weights", "--weight", "--yerr", "--errors"),
        ("--sigma", "write --sigma COLUMN; of weights w it is --sigma '1/sqrt(w)'"),
    ),
    **dict.fromkeys(
        ("--standard-errors", "--std-errors", "--stderr", "--se", "--hesse"),
        ("--errors", "write --errors"),
    ),
    **dict.fromkeys(
        ("--prior", "--priors", "--penalty", "--constrain"),
        ("--likelihood", "write --NAME VALUE±ERROR for what is known of a parameter"),
    ),
    **dict.fromkeys(
        ("--loss", "--outliers"), ("--robust", "write --robust LOSS: soft_l1, huber or arctan")
    ),
    **dict.fromkeys(
        ("--digits", "--decimals", "--significant-digits"),
        ("--precision", "write --precision N"),
    ),
    **dict.fromkeys(
        ("--constraint", "--constraints", "--subject-to", "--st"),
        ("--subject", "write --subject RELATION, as in --subject 'x + y == 1'"),
    ),
    "--seed": ("--manual-seed", "write --manual-seed N"),
    "--degree": ("--order", "write --order N"),
    "--repeat": ("--passes", "write --passes N --retain-graph"),
    **dict.fromkeys(
        ("--lr", "--learning-rate", "--step-size"),
        ("--rate", "write --rate R, beside --method gradient-descent"),
    ),
    **dict.fromkeys(
        ("--tangent", "--tangent-at", "--tangent-line"),
        ("--at", "write --at VALUE, which draws the tangent there"),
    ),
    "--answer": ("--against", "write --against FORMULA"),
    "--steps": ("--show-steps", "write --show-steps"),
    "--optimizer": ("--method", "write --method NAME; gradcli minimize --help-all has the names"),
    **{f"--{form}": ("--format", f"write --format {form}") for form in ("tsv", "jsonl", "latex")},
}
# The same where it has none, or what is a command here.
ELSEWHERE = {
    **dict.fromkeys(
        ("--maximize", "--maximise", "--max"),
        'a maximum is the minimum of the negative: gradcli minimize "-(EXPR)"',
    ),
    **dict.fromkeys(
        ("--digits", "--decimals"), "gradcli eval, grad and fit round by --precision N"
    ),
    "--method": "Newton's steps to a root: gradcli root EQUATION --trace; gradcli minimize and plot "
    "have --method",
    "--check": "the command `gradcli check EXPR` compares with numerical gradients",
    "--second": "a mixed derivative: gradcli diff EXPR --wrt x,y --order 2 as a formula, "
    "gradcli hessian EXPR --wrt x,y in numbers; in a table gradcli map EXPR FILE --second x,y",
    **dict.fromkeys(
        ("--taylor", "--series"),
        "polynomials beside the function: gradcli taylor EXPR --order 1,3,5 --plot",
    ),
    "--unit": "gradcli eval and fit write a unit behind a result; --units N is the line of a table's units",
    "--degree": "gradcli taylor EXPR --order N is the polynomial of that degree",
    "--order": "higher derivatives: gradcli diff EXPR --order N, or gradcli hessian EXPR",
    "--value": "gradcli eval EXPR prints the value, gradcli grad EXPR --value both",
    "--repeat": "gradcli grad EXPR --passes N --retain-graph goes backward N times",
    "--tangent": "gradcli jvp EXPR --vector VALUE is the derivative along it; gradcli plot EXPR --at VALUE "
    "draws the tangent",
    "--starts": "gradcli root EXPR --x FROM:TO --all finds every root in an interval; gradcli fit EQUATION "
    "FILE --starts N tries N starts",
    **dict.fromkeys(
        ("--greeks", "--delta", "--vega", "--theta", "--rho"),
        "the first derivatives are NAME.grad: --wrt NAMES chooses; gradcli map EXPR FILE --second S,S adds a "
        "second one",
    ),
    "--gamma": "a second derivative: gradcli grad EXPR --wrt S --order 2; in a table gradcli map EXPR FILE "
    "--second S,S",
    **dict.fromkeys(
        ("--group-by", "--groupby", "--group", "--aggregate", "--agg", "--sum", "--total"),
        "a sum of rows: gradcli map EXPR FILE --no-grad all --where \"COLUMN == 'A'\" --keep-columns none | "
        "gradcli eval 'sum(x)' --x @-:value; in Python pandas groups what gradcli.map gives",
    ),
    "--where": "rows of a table: gradcli map EXPR FILE --no-grad all --where CONDITION --keep-columns none | "
    "gradcli eval 'sum(x)' --x @-:value",
    "--sort": "rows keep the order of the table: gradcli map EXPR FILE | sort -t, -g -k N",
    "--data": "a table follows the expression: gradcli fit EXPR FILE, gradcli map EXPR FILE",
    "--of": 'an equation says it: gradcli fit "COLUMN == EXPR" FILE, gradcli diff "EQUATION" --of NAME',
    **dict.fromkeys(
        ("--lr", "--learning-rate", "--step-size", "--rate"),
        "gradient descent: gradcli minimize EXPR --method gradient-descent --rate R prints it, gradcli plot "
        "EXPR --descend R draws it",
    ),
    **dict.fromkeys(
        ("--explain", "--steps"),
        "each step: gradcli grad EXPR --trace; of Newton's method: gradcli root EQUATION --trace; "
        "pictures of each: gradcli graph EXPR --frames FOLDER",
    ),
    "--derivative": "gradcli plot EXPR draws the derivative as well; gradcli diff EXPR prints it",
}


class ExpressionCommand(HelpfulCommand):
    """A command whose options include one for each variable of its expression or program."""

    def __init__(self, declaration: Command, **attributes: Any) -> None:
        attributes["options_metavar"] = "[OPTIONS] [--VARIABLE VALUE]..."
        super().__init__(declaration, **attributes)
        self.operand, self.declared = str(declaration.operand), declaration.declared()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The declared parameters, then the variables' options once they are known."""
        return [*super().get_params(ctx), *ctx.meta.get("gradcli.variables", ())]

    def _wants_value(self, found: Split) -> bool:
        """Whether the command has no use for `y = …` but the value of y."""
        return (
            self.operand == "EXPR" and self.name not in _WITHOUT_VALUE and "of" not in found.given
        )

    def may_stay_open(self, program: Program, name: str) -> bool:
        """Whether the command can do without a value of this variable.

        In a program a name without a value is an error where it is read, as in Python. A name that an
        expression only calls is no variable, but an unknown function.
        """
        from gradcli.language.scope_checks import is_only_called

        if self.operand == "FILE":
            return True
        return self.declaration.open_variables and not is_only_called(program, name)

    def _read_against(self, typed: str, read: str, found: Split) -> None:
        """--against as mathematics, in the variables and functions of the program: typed, and as read."""
        from gradcli.commands.left_sides import with_definitions

        own = [*_names_of(read), *found.squares]
        options = found.options
        for place, option in enumerate(options):
            if option.startswith("--against="):
                formula = with_definitions(option.removeprefix("--against="), typed)
                formula = _mathematics(formula, found, self.declaration, own, True)
                options[place] = f"--against={formula}"
        found.options = options  # what the formula says of shapes is not of the program

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What it does, and how it comes by its options."""
        super().format_help_text(ctx, formatter)
        if self.operand != "EXPR":
            return
        with formatter.indentation():
            formatter.write_paragraph()
            formatter.write_text(ABOUT_VARIABLES)
        # An option and its value stay on one line.
        formatter.buffer[-2:] = [text.replace("~", " ") for text in formatter.buffer[-2:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The expression's variables in a section of their own, then options as usual."""
        held = ctx.meta.pop("gradcli.variables", ())
        records = [option.get_help_record(ctx) for option in held]
        if records:
            with formatter.section(f"Variables of {self.operand}"):
                formatter.write_dl([record for record in records if record is not None])
        super().format_options(ctx, formatter)
        ctx.meta["gradcli.variables"] = held

    def invoke(self, ctx: click.Context) -> Any:
        """As click does; of a file of formulas, or a sheet of answers, each is answered by itself."""
        if "gradcli.sheet" in ctx.meta:
            from gradcli.commands.answer_sheets import check

            ctx.exit(check(self, ctx, ctx.meta["gradcli.sheet"]))
        if "gradcli.formulas" not in ctx.meta:
            return super().invoke(ctx)
        from gradcli.commands.formula_lists import answer

        ctx.exit(answer(self, ctx, *ctx.meta["gradcli.formulas"]))

    def read(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put argv in order, find the variables, and let click parse."""
        from gradcli.language.names import is_namespace
        from gradcli.language.scope_checks import may_be_variable

        declared = self.declared
        found = split(args, declared)
        ctx.meta["gradcli.json"] = "json" in found.given
        if found.given.get("color") in ("always", "never"):
            ctx.meta["gradcli.color"] = found.given["color"]
        # Help and completion make do with what can be understood, and import nothing heavy.
        names_of_help = (*ctx.help_option_names, "--help-all")
        helps = {declared[name].name for name in names_of_help if name in declared}
        lenient = ctx.resilient_parsing or not helps.isdisjoint(found.given)
        if found.missing in declared and not lenient:
            raise usage(
                f"{found.missing} needs a value",
                hint=f"write {found.missing} {declared[found.missing].metavar or 'VALUE'}"
                + _AS_IN.get(found.missing, ""),
            )
        if found.twice is not None and not lenient:
            head, first, second = found.twice
            raise usage(
                f"{head} is given twice: {first} and {second}",
                hint=f"leave out one of them; for both, run the command once with {head} {first} "
                f"and once with {head} {second}",
            )
        text = typed = _source(found, lenient, self.declaration)
        if text and not lenient and "\n" in text.strip() and ctx.obj is None:
            from gradcli.commands.unused_notes import BY_LINE

            if self.name in BY_LINE:
                from gradcli.commands.formula_lists import lines_of

                lines = lines_of(text, found)
                if lines:
                    ctx.meta["gradcli.formulas"] = lines, found
                    return []
        against = found.given.get("against") or ""
        if text and self.name == "check" and "@" in (text[0], against[:1]) and not lenient:
            from gradcli.commands.answer_sheets import sheet_of

            if (sheet := sheet_of(text, found)) is not None:
                ctx.meta["gradcli.sheet"] = sheet
                return []
        if text and not lenient:
            _check_file(text, found, self.declaration, declared)
            refuse_words(found.bindings, text, declared)
        if text and found.given.get("decimal") == "," and not lenient:
            text = _with_decimal_points(text, found)
        if text and "against" in found.given and not lenient:
            text = _take_left_side(text, found)
        if text and "math" in found.given and not lenient:
            read = _mathematics(text, found, self.declaration)
            _facts_as_read(read, found)
            if "against" in found.given:
                self._read_against(text, read, found)
            text = read
        if text and "=" in text and "wrt" in found.given and not lenient and ctx.obj is None:
            text = _with_given_values(text, found)
        hides = self.name == "check" or (self.name == "diff" and "math" in found.given)
        if text and hides and not lenient:
            text = _from_hidden(text, found)
        if text and "=" in text and self.name in ("root", "fit") and not lenient:
            text = as_equation(text, ends=self.name == "fit")
        named = ""
        if typed and "=" in typed and self.name == "plot":
            from gradcli.commands.left_sides import definition

            named = definition(typed)[0]
        if text and named and "math" not in found.given and not lenient:
            text = f"{named} = {definition(text)[1]}"  # of `V(x) = x**2`
        said = text
        if text and not lenient:
            if found.point is not None or any(name == "at" for name, _ in found.bindings):
                _take_point(text, found, declared)
            if "=" in text and self._wants_value(found):
                text = _with_value(text)
        reading = None
        try:
            if text and text.strip() and self.declaration.puts_in and not lenient:
                reading = _formula(found, text, self.declaration.puts_in)
                ctx.meta["gradcli.typed"] = reading.source  # for errors: see `command_errors.show`
                text = reading.source
            program, names = variables(text, lenient)
        except LanguageError as error:
            _refuse_headings(text or "", found, self.declaration)
            _also_mathematics(error, text or "", declared)
            _also_columns(error, declared, found, self.declaration)
            _also_dates(error, declared)
            raise
        if reading is not None:
            names = [name for name in names if name not in reading.functions]
        of_relations = _read_by_relations(found, program)
        names += [*of_relations]
        ctx.meta["gradcli.program"] = program
        if program is not None and program.rows[-3] > 1 and not lenient and ctx.obj is None:
            from gradcli.commands.unused_notes import note_unused

            whole = variables(said, lenient=True)[0]
            if whole is not None:
                note_unused(whole, str(self.name), "file" in found.given)
        if found.missing is not None and not lenient and found.missing[2:] in names:
            raise usage(f"{found.missing} needs a value", hint=f"write {found.missing} VALUE")
        bound = found.bound() | (ctx.obj.tensors.keys() if ctx.obj is not None else set())
        known_by = _looks_known if lenient else is_known
        opens = self.declaration.open_variables and not lenient
        shown = [
            name
            for name in names
            if name in bound
            or name in of_relations
            or not known_by(program, name)
            # `seed*2`: the name of an option and of a function, and not called; in `torch.exp(x)`
            # the name of `graph --torch` is the namespace
            or (f"--{name}" in declared and not is_called(program, name) and not is_namespace(name))
            or (opens and program is not None and may_be_variable(program, name))
        ]
        ctx.meta["gradcli.variables"] = _options_for(shown, declared)
        if lenient:
            # What is bound to no variable is left out: click would refuse it.
            known = [
                f"--{n}={v}" for n, v in found.bindings if n in shown and f"--{n}" not in declared
            ]
            return super().read(ctx, [*found.options, *known, "--", *found.positionals])
        if program is not None and "load" not in found.given and ctx.obj is None:
            try:
                _check_names(program, shown, bound, declared)
            except LanguageError:
                _refuse_headings(program.source, found, self.declaration)
                raise
        if program is not None:
            _check_bare(found, program, shown, declared, self.declaration)
        _check_spelling(found, {f"--{name}" for name in shown} | set(declared))
        if program is not None:
            _check_arguments(found, names, program.source, self.declaration)
        _check_positionals(found, declared, self.declaration)
        if program is None:
            raise usage("no expression", hint=f"see {ctx.command_path} --help")
        if self.operand == "EXPR" and not program.source.strip():
            raise usage("the expression is empty", hint=f"see {ctx.command_path} --help")
        for name, _ in found.bindings:
            if name not in names:
                known = [*(f"--{n}" for n in shown if n not in bound), *declared]
                raise _no_variable(
                    *(shown, known, f"--{name}", self.operand, declared, said or ""),
                    *(self.declaration, found),
                )
        from_file = "file" in found.given and self.operand == "EXPR"
        positionals = [*[""] * from_file, *found.positionals]
        out = super().read(ctx, [*found.options, "--", *positionals])
        ctx.params["request"] = _request(self, ctx, found, program, names, shown, of_relations)
        ctx.params["request"].ln = "math" in found.given and _has_ln(typed or "")
        ctx.params["request"].math = "math" in found.given
        ctx.params["request"].named = named or found.called
        ctx.params["request"].sizes = _sizes(found, ctx.params["request"])
        _note_options(found, ctx.params["request"].open_variables, declared)
        if reading is not None:
            _take_reading(ctx.params["request"], reading)
        return out


# -- the expression and its variables -------------------------------------------------------------
def _read_by_relations(found: Split, program: Program | None) -> dict[str, Program]:
    """The variables that --subject alone reads, and where: those that the program has not and makes not."""
    from gradcli.language.scope_checks import read_besides

    texts = [o.removeprefix("--subject=") for o in found.options if o.startswith("--subject=")]
    if program is None or not texts:
        return {}
    made = [variables(text, lenient=True)[0] for text in texts]  # what is no relation is told later
    return read_besides(program, [relation for relation in made if relation is not None])


def _source(found: Split, lenient: bool, declaration: Command) -> str | None:
    """The text of EXPR, which a file (-f FILE) or standard input (`-`) may hold, or of the FILE."""
    path = found.given.get("file")
    if path is None:
        if not found.positionals:
            if declaration.operand == "EXPR" or lenient:
                return None
            raise usage("no program", hint="write gradcli run FILE, or - for standard input")
        path = found.positionals[0]
        if declaration.table_alone is not None and not lenient and _is_table_alone(path, found):
            found.positionals.insert(0, declaration.table_alone)
            return declaration.table_alone
        if declaration.operand == "EXPR" and path != "-":
            second = (
                found.positionals[1] if declaration.operands > 1 < len(found.positionals) else path
            )
            if os.path.isfile(path) and not os.path.exists(second) and not lenient:
                command = f"gradcli {declaration.name} {quoted(second)} {quoted(path)}"
                raise usage("the table comes after the expression", hint=f"write {command}")
            return path
    elif len(found.positionals) >= declaration.operands and not lenient:
        if any(_DASHED.fullmatch(p) or _SHORT.fullmatch(p) for p in found.positionals):  # misspelt
            _check_positionals(found, declaration.declared(), declaration)
        raise usage(
            f"the expression is given twice: in {path} and as {found.positionals[0]!r}",
            hint="leave out one of them",
        )
    if not lenient:
        return read_text(path)
    try:  # a file that cannot be read has no variables to complete, or to help with
        return None if path == "-" else read_text(path)
    except LanguageError:
        return None


def _is_table_alone(word: str, found: Split) -> bool:
    """Whether the first word is a table, with no expression before it."""
    named = re.fullmatch(r"(?:.*/)?([^/]*)\.(\w+)", word)
    return (
        named is not None
        and named[2] != "py"
        and named[1] not in found.bound()
        and os.path.isfile(word)
        and all(map(_is_table, found.positionals))
    )


def _check_file(text: str, found: Split, command: Command, declared: Declared) -> None:
    """Refuse the name of a file as the expression: `net.py` would be the attribute py of a variable net."""
    named = re.fullmatch(r"(?:[\w./-]*/)?([^\W\d][\w-]*)\.(\w+)", text)
    if command.operand != "EXPR" or "file" in found.given or named is None:
        return
    if not os.path.isfile(text) or named[1] in found.bound():
        return
    word = quoted(text)
    if named[2] == "py":
        hint = f"to run a program, write: gradcli run {word}"
        if "--torch" in declared:
            hint = f"for the graph of a program, write: gradcli {command.name} --torch {word}"
    elif len(found.positionals) > 1 and os.path.isfile(found.positionals[1]):
        table = quoted(found.positionals[1])
        hint = f"a program in a file stands behind -f: gradcli {command.name} -f {word} {table}"
    elif command.operands > 1:
        what = "EQUATION" if command.name == "fit" else "EXPR"
        hint = f"the table comes after the expression: gradcli {command.name} {what} {word}"
    else:
        hint = f"a column of a table is a variable's value: --x @{word}:COLUMN"
        if command.name == "check":
            hint = f"columns of formulas: gradcli check @{word}:COLUMN --against @{word}:COLUMN"
    raise usage(f"{text} is a file, not an expression", hint=hint, kind="file")


def _with_decimal_points(text: str, found: Split) -> str:
    """A formula typed with --decimal , and with it the values and the formula of --against: 0.5 for 0,5."""

    def changed(typed: str) -> str:
        return re.sub(r"(?<=\d),(?=\d)", ".", typed)

    found.bindings = [(n, v if "@" in v else changed(v)) for n, v in found.bindings]
    against = "--against="
    found.options = [changed(o) if o.startswith(against) else o for o in found.options]
    return changed(text)


def _take_left_side(text: str, found: Split) -> str:
    """What a left side in --against says, `dy/dx = …`, as options; the program, which ends in y."""
    from gradcli.commands.left_sides import given_names, take_left_side
    from gradcli.language.scope_checks import assigned_names

    against = next((o for o in found.options if o.startswith("--against=")), None)
    if against is None or "=" not in against.removeprefix("--against="):
        return text
    if "math" in found.given:
        typed = given_names(text)
        names = {*re.findall(r"[^\W\d_]", text)} - {*typed}
    else:
        program = variables(text, lenient=True)[0]
        if program is None:
            return text  # which is told later, better
        names, typed = {*program.free_variables()}, {n: n for n in assigned_names(program)}
    place = found.options.index(against)
    formula, of = take_left_side(against.removeprefix("--against="), found, text, names, [*typed])
    found.options[place] = f"--against={formula}"
    if of:
        note(f"the value is that of {of}, of which --against is the derivative")
    return f"{text.rstrip().rstrip(';')}; {typed[of]}" if of else text


def as_equation(text: str, ends: bool = False) -> str:
    """A text of equations, with `==` where a single `=` stands between two expressions, which is said.

    ends: the last statement is an equation, so that `U = a*t` is one there.
    """
    from gradcli.commands.typed_equations import with_double_signs

    read = with_double_signs(text)
    last = re.fullmatch(r"((?:.*[;\n])?\s*[^\W\d]\w*\s*)=(?![=])([^=<>;\n]+)", text, re.S)
    if ends and read == text and last is not None:
        read = f"{last[1]}=={last[2]}"
    if read == text or variables(read, lenient=True)[0] is None:
        return text
    note(f"read as {read.strip()}; an equation has ==")
    return read


def _with_value(text: str) -> str:
    """A program that ends in `y = …`, followed by `y`, which is said; others as they are."""
    from gradcli.language import tree_kinds

    program = variables(text, lenient=True)[0]
    if program is None or len(program) < 4:
        return text
    last = len(program) - 2
    targets = program.children(last)
    if tree_kinds.KINDS[program.kinds[last]] != "assign" or len(targets) != 2:
        return text
    if tree_kinds.KINDS[program.kinds[targets[0]]] != "target":
        return text
    name = program.source[slice(*program.span(targets[0]))]
    if program.rows[-3] > 1:
        note(f"the value is that of {name}, which is assigned last")
    end = program.span(last)[1]
    return f"{text[:end]}{chr(10) if chr(10) in text else '; '}{name}"


_LITERAL = re.compile(
    r"(?:torch\.)?tensor\((?P<inner>[-+\d.eE,\s\[\]]+)\)|[-+\d.eE,\s\[\]]*\d[\s\].]*"
)


def _with_given_values(text: str, found: Split) -> str:
    """The text without `W = [[1, 2], [3, 4]]` where --wrt names W, which then is a variable of that value."""
    wrt = [o.removeprefix("--wrt=") for o in found.options if o.startswith("--wrt=")]
    for name in (name for one in wrt for name in re.split(r"[,\s]+", one) if name):
        given = re.findall(rf"(?:^|[;\n])[ \t]*{re.escape(name)}[ \t]*=(?!=)[ \t]*([^;\n]*)", text)
        if len(given) != 1 or _LITERAL.fullmatch(given[0].strip()) is None:
            continue
        said = rf"((?:^|[;\n])[ \t]*){re.escape(name)}[ \t]*=(?!=)[^;\n]*;?"
        rest = re.sub(said, r"\1", text).strip().rstrip(";")
        if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", rest) is None:
            continue
        text = rest
        if name not in found.bound():
            found.bindings.append((name, given[0].strip()))
            note(f"{name} is a variable, of the value that the program gives it")
        else:
            note(f"{name} is a variable: {name} = {given[0].strip()} is left out")
    return text


def _from_hidden(text: str, found: Split) -> str:
    """The text without `z = W@x + b` where --wrt asks for the derivative by z, which then is a variable.

    What only z was made of goes as well. As it is where such a name has a value.
    """
    from gradcli.language.scope_checks import assigned_names

    wrt = [o.removeprefix("--wrt=") for o in found.options if o.startswith("--wrt=")]
    names = [name for one in wrt for name in re.split(r"[,\s]+", one) if name]
    program = variables(text, lenient=True)[0]
    blocks = re.search(r"\n[ \t]|^\s*(?:def|for|while|with|if|import|from)\b|[\"'].*;", text, re.M)
    if program is None or blocks is not None:
        return text
    free, given = set(program.free_variables()), set(assigned_names(program))
    hidden = [name for name in names if name in given - free]
    pieces = [piece.strip() for piece in re.split(r"[;\n]", text)]
    targets = [m[1] if (m := re.match(r"(\w+)\s*=(?!=)", p)) else "" for p in pieces]
    if not hidden or any(targets.count(name) != 1 for name in hidden):
        return text
    left_out = [pieces[targets.index(name)] for name in hidden]
    kept = [(t, p) for t, p in zip(targets, pieces, strict=True) if p and t not in hidden]
    for k in reversed(range(len(kept) - 1)):
        later = " ".join(piece for _, piece in kept[k + 1 :])
        if kept[k][0] and not re.search(rf"(?<![\w.]){kept[k][0]}\b", later):
            del kept[k]
    cut = "; ".join(piece for _, piece in kept)
    words = set(re.findall(r"[^\W\d]\w*", cut))
    note(f"{', '.join(hidden)} is taken for a variable: {'; '.join(left_out)} is left out")
    if unused := sorted(found.bound() - words):
        note(f"{', '.join(unused)} is not used: what is left does not depend on it")
    found.bindings = [binding for binding in found.bindings if binding[0] in words]
    gone = {*program.free_variables()} - words
    found.options = [option for one in found.options for option in _without_names(one, gone)]
    return cut


def _without_names(option: str, names: Container[str]) -> Iterator[str]:
    """An option without the shapes and values that it gives these names."""
    head, _, rest = option.partition("=")
    parts = re.split(r",(?=\s*\w+\s*=)", rest) if head == "--shape" else [rest]
    if head not in ("--shape", "--let") or parts == [""]:
        yield option
        return
    yield from (f"{head}={part}" for part in parts if part.partition("=")[0].strip() not in names)


def _names_of(text: str) -> list[str]:
    """The names that a program reads as variables, or assigns."""
    from gradcli.language.scope_checks import assigned_names

    program = variables(text, lenient=True)[0]
    return [] if program is None else [*program.free_variables(), *assigned_names(program)]


def _named(found: Split) -> set[str]:
    """The names that options call variables, without a value: --wrt x, --shape A=2,3, --of y."""
    said = {found.given["of"]} if "of" in found.given else set()
    for option in found.options:
        if option.startswith("--wrt="):
            said.update(re.split(r"[,\s]+", option.removeprefix("--wrt=")))
    return {name for name in said if name.isidentifier()}


def _mathematics(
    text: str, found: Split, command: Command, own: Iterable[str] = (), against: bool = False
) -> str:
    """The text as the language writes it, which is said where it differs; columns of a table are names.

    own: names that are variables, whatever the text says. against: whether it is the formula of a gradient.
    What the text says of derivatives and of whole numbers becomes part of `found`.
    """
    from gradcli.commands.known_shapes import KnownShapes
    from gradcli.language.mathematics import read_mathematics
    from gradcli.language.parser import parses

    if command.name == "minimize":
        text = _without_argmin(text, found)
    _names_as_read(text, found)
    bound = dict.fromkeys(found.bound(), False)
    columns = {name for _, names in _headings(found, command) for name in names}
    bound |= dict.fromkeys(columns, False)
    equation = "of" in found.given or command.name == "fit"
    # `--x -3:3` is an interval there, and x a number of it.
    runs = command.name == "plot" or (command.name == "root" and "all" in found.given)
    numbers = columns | (set(bound) if runs else set())
    known = KnownShapes(found.bindings, found.options, numbers, found.ranks)
    named = {*_named(found), *known.shapes, *own}
    wrt = {o.removeprefix("--wrt=") for o in found.options if o.startswith("--wrt=")}
    derives = command.name == "diff" and not {"of", "operator", "along"} & found.given.keys()
    once = len(wrt) < 2 and "order" not in found.given
    by = (next(iter(wrt), "") if once else "") if derives else None
    moving = [found.given["euler_lagrange"]] if "euler_lagrange" in found.given else []
    # Where an equation can be asked for, `x^2 = 2` is one, and no formula that is called x^2.
    labels = command.name not in ("root", "plot", "fit", "simplify")
    gradient = _indices_of(next(iter(wrt)), found, known) if against and len(wrt) == 1 else ()
    wants_number = command.name in ("diff", "check", "grad", "minimize")
    one = "place" if command.name == "check" else "unit"
    if not wants_number or {"jacobian", "along"} & found.given.keys():
        one = ""
    # What the program has no variable for is written as the size that it is.
    sizes = {n: size for n, size in found.sizes.items() if n not in own} if against else {}
    read = read_mathematics(
        text, parses, bound, equation, known, by, named, moving, labels, gradient, one, found.ones,
        sizes, not against and _speaks_of_matrices(found),
    )  # fmt: skip
    by_squares = read.differentiated if read is not None else ()
    by_squares = tuple(_as_variable(name, text, found) for name in by_squares)
    inside = read is not None and not wrt <= {*by_squares}
    if read is not None and read.differentiated and (inside or "order" in found.given):
        read = read_mathematics(text, parses, bound, equation, known, named=named, labels=labels)
    if read is None:
        return text
    if against:
        read = _with_rows(read, found, {*own, *bound})
    remarks = [remark for remark in read.remarks if remark not in found.said]
    note("; ".join([f"read as {read.written}", *remarks]))
    found.said.update(read.remarks)
    found.rows |= read.rows
    found.called = found.called or read.called
    found.ones |= read.ones
    found.sizes = {**read.sizes, **found.sizes}
    found.ranks = {**read.ranks, **found.ranks}  # for --against, in the same names
    found.letters = {**read.letters, **found.letters}
    words = re.findall(r"(?<![\w.])[^\W\d]\w*", read.written)
    _by_whole_arrays(found, words)
    if not against:
        _by_header(read, text, found, command)
    if read.differentiated:
        found.options += [f"--wrt={by_squares[0]}"] * (not wrt)
        if (order := len(read.differentiated)) > 1:
            found.options.append(f"--order={order}")
    if read.operator:
        found.options.append(f"--operator={read.operator}")
    if command.name in (
        "diff",
        "check",
    ):  # whose variables have a shape only by what is done with them
        given = known.shapes.keys() | found.bound()
        found.options += [
            f"--shape={name}={','.join(shape)}"
            for name, shape in read.shapes.items()
            if name not in given
        ]
    # A whole number that is a limit of a sum stands in the text as itself.
    found.bindings = [
        (name, value) for name, value in found.bindings
        if name in words or not re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", text)
    ]  # fmt: skip
    return _with_squares(read.written, text, found)


def _with_rows(read: Mathematics, found: Split, own: Container[str]) -> Mathematics:
    """A formula with x for the X of `X^T (X w - y)`, where the program has the vectors x_i: its rows."""
    for rows in sorted(found.rows):
        whole = rows[:1].upper() + rows[1:]
        word = rf"(?<![\w.]){re.escape(whole)}(?!\w)"
        if whole in own or not re.search(word, read.written):
            continue
        remark = f"{whole} is the matrix {rows} of the rows {rows}_i"
        written = re.sub(word, rows, read.written)
        read = read._replace(written=written, remarks=(*read.remarks, remark))
    return read


def _as_variable(name: str, text: str, found: Split) -> str:
    """A name by which is differentiated: a letter for `sigma^2`, which stands for that from now on."""
    from gradcli.language.squared_variables import letter_for

    if not name.endswith("^2"):
        return name
    root = name.removesuffix("^2")
    if root not in found.squares:
        used = {*re.findall(r"(?<![A-Za-z\\])[A-Za-z]\d?(?![A-Za-z])", text), *found.bound()}
        found.squares[root] = letter_for(used)
    return found.squares[root]


def _with_squares(written: str, typed: str, found: Split) -> str:
    r"""The text with v for sigma**2, where the derivative is by that. Raises LanguageError where sigma stands
    there in another way."""
    from gradcli.language.squared_variables import NoSquare, remedy, with_letter

    for root, letter in found.squares.items():
        if not re.search(rf"(?<![\w.]){re.escape(root)}(?!\w)", written):
            continue
        try:
            put = with_letter(written, root, letter)
        except NoSquare as error:
            message = f"a derivative by {root}^2 is not read: {error}"
            raise LanguageError(message, source=typed, hint=remedy(root)) from None
        said = f"{letter} is {root}**2, by which is differentiated"
        said += f", and {root} is sqrt({letter}), which is positive" * put.rooted
        note(f"{said}: {put.text}")
        written = put.text
        found.bindings = [_squared(root, letter, *binding) for binding in found.bindings]
        found.options = [
            re.sub(rf"^--shape={root}=", f"--shape={letter}=", o) for o in found.options
        ]
        found.sizes = {n: with_letter(size, root, letter).text for n, size in found.sizes.items()}
        if root in found.ranks:
            found.ranks[letter] = found.ranks[root]
    return written


def _squared(root: str, letter: str, name: str, value: str) -> tuple[str, str]:
    """The value of v for that of sigma."""
    if name != root:
        return name, value
    try:
        return letter, repr(float(value) ** 2)
    except ValueError:
        raise usage(
            f"--{root} is no number, and the derivative is by {root}^2",
            hint=f"write v for {root}^2 everywhere, and give --v",
        ) from None


# What says that a formula is of matrices: a transpose, bold letters, W_{ij}.
_OF_MATRICES = re.compile(
    r"\^\s*\{?\s*(?:T|\\(?:top|intercal|mathsf\{T\}))(?![A-Za-z])|ᵀ|\\(?:mathbf|boldsymbol|bm|odot|lVert|Vert)\b"
)


def _speaks_of_matrices(found: Split) -> bool:
    """Whether the formula in --against, or the variable of it, says that capitals are matrices."""
    against = next((o for o in found.options if o.startswith("--against=")), "")
    wrt = [o.removeprefix("--wrt=") for o in found.options if o.startswith("--wrt=")]
    return _OF_MATRICES.search(against) is not None or any(
        re.fullmatch(r"[A-Z]_[a-z]{2}", name) for name in wrt
    )


# The commands whose variables a header `J(w) = …` says.
_WITH_HEADERS = frozenset("diff check minimize grad hessian jacobian".split())


def _by_header(read: Mathematics, text: str, found: Split, command: Command) -> None:
    r"""--wrt w where the text is of `J(w) = …`, and nothing else says by what it is differentiated."""
    alone = command.name == "check" and "against" not in found.given  # of all gradients
    if alone or command.name not in _WITH_HEADERS or not read.header:
        return
    said = {"of", "operator", "along", "euler_lagrange"} & found.given.keys()
    if said or any(option.startswith("--wrt=") for option in found.options):
        return
    header = [_as_variable(name, text, found) for name in read.header]
    names = ", ".join(header)
    found.options.append(f"--wrt={','.join(header)}")
    verb = f"{names} {'is' if len(header) == 1 else 'are'} varied"
    verb = verb if command.name == "minimize" else f"differentiated by {names}"
    if {*_names_of(read.written)} - {*header, *found.squares, *found.sizes}:
        note(f"{verb}, of which the text is a function")


def _sizes(found: Split, request: Request) -> dict[str, str]:
    """The variables without a value that are the sizes of others; none by which is differentiated."""
    wrt = request.wrt or ()
    names = [name for name in request.open_variables if name not in wrt]
    return {name: found.sizes[name] for name in names if name in found.sizes}


def _facts_as_read(text: str, found: Split) -> None:
    r"""The relations of --subject and --assume as mathematics: `\|w\|^2 = 1`, `\Sigma symmetric`."""
    from gradcli.commands.known_shapes import KnownShapes
    from gradcli.language.mathematics import in_letters_of, name_as_read, read_mathematics
    from gradcli.language.parser import parses

    known = KnownShapes(found.bindings, found.options, (), found.ranks)
    bound = dict.fromkeys(found.bound(), False)
    for k, option in enumerate(found.options):
        head, _, fact = option.partition("=")
        if head not in ("--subject", "--assume"):
            continue
        word = re.fullmatch(r"(\S+)\s+([a-z ]+)", fact.strip())
        if word:
            name = in_letters_of(text, name_as_read(word[1]) or word[1])
            found.options[k] = f"{head}={name} {word[2]}"
        elif (read := read_mathematics(fact, parses, bound, True, known)) is not None:
            note(f"{head} is read as {read.written}")
            found.options[k] = f"{head}={read.written}"


def _by_whole_arrays(found: Split, names: Container[str]) -> None:
    """--wrt W of `--wrt W_ij` where W has elements W_{ij}: all of them make one gradient.

    names: those of the text.
    """
    for k, option in enumerate(found.options):
        stem, _, index = option.removeprefix("--wrt=").rpartition("_")
        known = found.letters.get(stem)
        if known is None and re.fullmatch("[a-z]{1,3}", index) and stem in names:
            rank = found.ranks.get(stem, len(index))
            known = ("",) * rank if f"{stem}_{index}" not in names else None
        if not option.startswith("--wrt=") or known is None or len(index) != len(known):
            continue
        found.options[k] = f"--wrt={stem}"
        found.letters[stem] = tuple(index)
        found.given["wrt"] = stem


def _indices_of(name: str, found: Split, known: KnownShapes) -> tuple[str, ...]:
    """The indices of a variable in the text that is differentiated, "" for each that is not known."""
    value = known(name)
    return found.letters.get(name, ("",) * len(value.shape) if value is not None else ())


# What stands before the function that is minimised: `\\hat w = \\arg\\min_w`, `\\min_{w, b}`, `argmin_w`.
_ARGMIN = re.compile(
    r"\s*(?:[^=()]*=\s*)?(?:\\underset\{(?P<under>[^{}]*)\}\s*\{)?"
    r"\\?(?:operatorname\*?\{|mathrm\{)?(?:arg\s*(?:\\[,;!]?)*\s*)?(?P<sense>min|max)\}*"
    r"(?:imize)?\s*(?:_(?:\{(?P<several>(?:[^{}]|\{[^{}]*\})*)\}|(?P<one>\\?[^\W\d_]\w*)))?\}?(?![\w(])\s*(?P<rest>.+)",
    re.S,
)


def _without_argmin(text: str, found: Split) -> str:
    """The function that a text of `\\arg\\min_w` minimises; the names below it are those that vary."""
    said = _ARGMIN.fullmatch(text)
    names = said and (said["under"] or said["several"] or said["one"])
    if said is None or not names:
        return text
    if not any(option.startswith("--wrt=") for option in found.options):
        varied = re.split(r"\s*(?:,|\\in\b|∈)\s*", names)
        found.options += [f"--wrt={name}" for name in varied if not re.search("mathbb|ℝ", name)]
    if said["sense"] == "max":
        note("the largest value is looked for: value is that of the negative")
        return f"-({said['rest']})"
    return said["rest"]


def _names_as_read(text: str, found: Split) -> None:
    r"""The names of options as the text's are read: `--wrt '\theta'` is --wrt theta, `W^{[1]}` is W_1.

    lambda, a word of the language, is lam where the text has `\lambda`; `--sigma` is of a σ, too.
    """
    from gradcli.commands.left_sides import with_braces
    from gradcli.language.mathematics import in_letters_of, name_as_read
    from gradcli.language.squared_variables import SQUARED

    def renamed(name: str) -> str:
        read = in_letters_of(text, name_as_read(name) or name)
        typed = re.search(rf"(?<![\w\\]){re.escape(read)}\b", text)
        if typed if read != "lambda" else re.search(r"(?<![\w\\])lambda(?:\s[\w,\s]*:|_)", text):
            return read
        if "lambda" not in text:
            return read
        return re.sub(r"^lambda(?=_|$)", "lam", read)

    def varied(name: str) -> str:
        square = SQUARED.fullmatch(name)
        return (
            renamed(name)
            if square is None
            else _as_variable(f"{renamed(square[1])}^2", text, found)
        )

    def option(typed: str) -> str:
        head, _, rest = typed.partition("=")
        if head == "--wrt":
            names = re.split(r"[,\s]+(?![^{]*\})", with_braces(rest))
            return f"{head}={','.join(map(varied, names))}"
        if head in ("--let", "--shape"):
            name, equals, value = rest.partition("=")
            return f"{head}={renamed(name)}{equals}{value}"
        return typed

    found.bindings = [(renamed(name), value) for name, value in found.bindings]
    found.options = [option(typed) for typed in found.options]
    for key in found.given.keys() & {"of", "euler_lagrange"}:
        found.given[key] = renamed(found.given[key])


# What mathematics has and programs have not: LaTeX, a raised sign, the bars of a norm.
_OF_MATHEMATICS = re.compile(r"\\[A-Za-z]|\^|\|\||[⁰¹²³⁴⁵⁶⁷⁸⁹ᵀ∑∏∂∇‖·]")


def _also_mathematics(error: LanguageError, text: str, declared: Mapping[str, Any]) -> None:
    """Add to an error about `x^2`, `2x` or LaTeX that --math reads it, where that is so."""
    if "--math" not in declared or error.span is None or error.kind != "syntax":
        return
    rewritten = (error.hint or "").startswith("here it is written")
    if not rewritten and not _OF_MATHEMATICS.search(text):
        return
    from gradcli.language import foreign_names
    from gradcli.language.mathematics import read_mathematics
    from gradcli.language.parser import parses
    from gradcli.language.tokens import shortened

    with suppress(LanguageError):
        read = read_mathematics(text, parses, {}, False)
        if read is not None and rewritten:
            if foreign_names.with_distributions(text) != text:
                return  # which --math refuses, too
            error.hint = f"{error.hint}; --math reads it as it is"
        elif read is not None:
            error.hint = f"add --math, which reads it as {shortened(read.written)}"


_NO_NAMES = frozenset(
    "yield class lambda async await global nonlocal raise del from as import pass try with".split()
)


def _headings(found: Split, command: Command) -> list[tuple[str, list[str]]]:
    """The tables of a command line, and the names of their columns; what cannot be read is left out."""
    from gradcli.tables.record_batches import Stream
    from gradcli.tables.table_errors import TableError

    tables = found.positionals["file" not in found.given :] if command.operands > 1 else []
    made = []
    for table in dict.fromkeys(tables):
        with suppress(TableError, OSError):  # which the command reports
            if table != "-":
                stream = Stream(table.removeprefix("@"), reading=_reading_of(found))
                stream.close()
                made.append((stream.name, list(stream.names)))
    return made


def _refuse_headings(text: str, found: Split, command: Command) -> None:
    """Raise LanguageError where a text that has an error has a column's heading with its unit."""
    for table, names in _headings(found, command):
        from gradcli.commands.heading_words import heading_error

        if (error := heading_error(text, table, names, found.bound())) is not None:
            raise error from None


def _also_columns(
    error: LanguageError, declared: Mapping[str, Any], found: Split, command: Command
) -> None:
    """Add to an error about a keyword of Python how a variable, or a column, of that name is called."""
    word = error.source[slice(*error.span)] if error.span is not None else ""
    if word not in _NO_NAMES:
        return
    short = word[:1] if word != "lambda" else "lam"
    take = f"--columns {short}={word}" if "--columns" in declared else f"--{short} @FILE:{word}"
    column = f"a column called {word} is read as another variable: write {short}, and {take}"
    headings = _headings(found, command)
    if headings and not any(word in names for _, names in headings):
        column = f"call the variable otherwise: {short}"
    elif word in found.bound():
        column = f"call the variable otherwise, and give --{short} VALUE"
    begins = error.span is not None and not error.source[: error.span[0]].strip()
    error.hint = f"{error.hint}; {column}" if error.hint and begins else column


def _also_dates(error: LanguageError, declared: Mapping[str, Any]) -> None:
    """Say of `2025-06-30 - date`, whose 06 is no number, how days are counted from a date."""
    start = error.span[0] if error.span is not None else -1
    for date in re.finditer(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)", error.source):
        if date.start() <= start < date.end() and "--time-origin" in declared:
            error.hint = f"a date is no number: --time-origin {date[0]} counts columns of dates from that day"


def _how_read(params: dict[str, Any]) -> dict[str, Any]:
    """The options of tables that are given."""
    found = {o.name: params.pop(o.name, None) for o in READING}
    return {name: value for name, value in found.items() if value not in (None, (), False)}


def _note_unread(how: Mapping[str, Any], texts: Iterable[str], declaration: Command) -> None:
    """Say that options of tables do nothing, where no table is read; --decimal is of formulas, too."""
    tables = any(isinstance(o, Argument) and o.name != "expression" for o in declaration.options)
    said = [o.names[0] for o in READING if o.name in how and o.name != "decimal"]
    if not said or tables or any("@" in text or text.strip() == "-" for text in texts):
        return
    why = "; results have no units" if "units" in how else ""
    does = "does" if len(said) == 1 else "do"
    note(f"no table is read, so that {', '.join(said)} {does} nothing{why}")


def _reading_of(found: Split) -> Any:
    """How a table is read whose names are wanted before click has read the options; it says nothing."""
    from gradcli.commands.table_reading import reading_of

    many = {o.name for o in READING if o.many}
    given = {n: [t] if n in many else t for n, t in found.given.items()}
    return reading_of({o.name: given[o.name] for o in READING if o.name in given}, None)


def _formula(found: Split, text: str, which: str) -> FormulaReading:
    """The text as a formula; what is put in for variables, and parts of them, is taken out of `found`."""
    from gradcli.language.rewritten_sources import read

    values = dict(o[6:].split("=", 1) for o in found.options if re.match("--let=.*=", o))
    values |= dict(found.bindings if which == "all" else ())
    wrt = [o.removeprefix("--wrt=") for o in found.options if o.startswith("--wrt=")]
    how = {"of": "of", "along": "along", "euler_lagrange": "motion"}
    given = {word: found.given.get(option) for option, word in how.items()}
    reading = read(text, values, wrt, **given, in_order=which == "let")
    found.bindings = [b for b in found.bindings if b[0] not in reading.put_in]
    left_out = ("--wrt=", *(f"--let={name}=" for name in reading.put_in))
    found.options = [o for o in found.options if not o.startswith(left_out)]
    found.options += [f"--wrt={name}" for name in reading.wrt]
    return reading


def _take_reading(request: Request, reading: FormulaReading) -> None:
    """How the text was read, and the functions in it that nobody knows."""
    request.reading = reading
    if functions := [name for name in reading.functions if name not in request.loaded]:
        from gradcli.formulas.algebra.unknown_functions import unknowns
        from gradcli.language import names
        from gradcli.language.parser import parses
        from gradcli.language.translations import operator_hint

        typed = reading.typed
        word = typed.partition("(")[0].strip()
        if word in functions and (hint := operator_hint(typed, parses)):
            raise usage(f"no function is called `{word}`", hint=hint)
        for name in functions:
            for module in ("special", "linalg", "nn.functional"):
                if names.is_known(f"{module}.{name}"):
                    hint = f"here it is written {module}.{name}"
                    raise usage(f"no function is called `{name}`", hint=hint)
        request.loaded |= unknowns(functions)
        kind = "an unknown function" if len(functions) == 1 else "unknown functions"
        note(f"{', '.join(functions)}: read as {kind} of numbers{_of_distributions(functions)}")


def _of_distributions(functions: Iterable[str]) -> str:
    """What is known by a name that nobody defined: Φ, N, cdf."""
    from gradcli.language.foreign_names import DISTRIBUTIONS

    known = [
        f"{DISTRIBUTIONS[n][0]} is {DISTRIBUTIONS[n][1]}" for n in functions if n in DISTRIBUTIONS
    ]
    return "".join(f"; {words}" for words in dict.fromkeys(known))


def _looks_known(program: Program | None, name: str) -> bool:
    """As `is_known`, without the operator table, which would import numpy: what is called is a function."""
    from gradcli.language.names import builtins, is_namespace
    from gradcli.language.scope_checks import is_bare

    if name in _CONSTANTS or name in builtins():
        return True
    if is_namespace(name):
        return program is None or not is_bare(program, name)
    return is_called(program, name)


def _options_for(names: list[str], declared: Declared) -> list[click.Option]:
    return [
        click.Option(
            [f"--{name}", f"variable_{name}"],
            metavar="VALUE",
            help=f"Value of {name}.",
            expose_value=False,
            shell_complete=completers.value,
        )
        for name in names
        if f"--{name}" not in declared
    ]


# -- what may be wrong ----------------------------------------------------------------------------
def _has_ln(typed: str) -> bool:
    """Whether a text of mathematics calls the natural logarithm ln: where it has no other word for it."""
    return _LN.search(typed) is not None or _LOG.search(typed) is None


def _note_options(found: Split, variables: Iterable[str], declared: Declared) -> None:
    """Say which options are given that are called like a variable without a value."""
    for name in variables:
        head = f"--{name.replace('_', '-')}"
        option = declared.get(head)
        if option is not None and option.name in found.given:
            if "--columns" in declared:
                note(
                    f"{head} is an option here; {name} in the expression is the column of that name, or "
                    f"what --let {name}=VALUE gives"
                )
                continue
            note(f"{head} is an option here; the variable {name} is given by --let {name}=VALUE")


def _check_spelling(found: Split, options: set[str]) -> None:
    """Refuse an option whose value is another option."""
    for option, value in found.taken:
        head = value.partition("=")[0]
        if head in options and head.startswith("--"):
            raise usage(
                f"{option} needs a value, but {head} follows it",
                hint=f"if {value} is meant as the value, write {option}={value}",
            )


def _check_bare(
    found: Split, program: Program, shown: list[str], declared: Declared, command: Command
) -> None:
    """Refuse an option that is not declared and has no value: a variable's, or an unknown one."""
    for name, following in found.bare:
        written = f"--{name}"
        if name in shown:
            raise usage(
                f"{written} needs a value, but {following} follows it",
                hint=f"if {following} is meant as the value, write {written}={following}",
            )
        bound = found.bound()
        known = [*(f"--{n}" for n in shown if n not in bound), *declared]
        raise _no_variable(
            *(shown, known, written, "EXPR", declared, program.source), *(command, found)
        )


def _take_point(text: str, found: Split, declared: Declared) -> None:
    """Give the number of `--at 2` to the variable of a text that has one; else refuse it."""
    program, names = variables(text, lenient=True)
    if program is None:
        return  # which is told later, better
    if found.point is None and "--at" not in declared and "at" not in names:
        found.point = next((v for n, v in found.bindings if n == "at"), None)
        found.bindings = [b for b in found.bindings if b[0] != "at"]
    if found.point is None:
        return
    said = re.split(r"[,\s]+", found.given.get("wrt", ""))
    bound = found.bound()
    free = [n for n in program.free_variables() if n not in bound]
    one = [n for n in free if n in said] if len(free) > 1 else free
    if len(one) == 1:
        found.bindings.append((one[0], found.point))
        return
    names = free or program.free_variables()
    if not free:
        known = ", ".join(names) or "none"
        raise usage(f"--at {found.point}: every variable has a value (variables: {known})")
    point = ",".join(f"{n}={found.point if not k else '…'}" for k, n in enumerate(free))
    raise usage(
        f"--at {found.point}: of which variable? (there are: {', '.join(free)})",
        hint=f"write --at {point}",
    )


def _check_arguments(found: Split, names: list[str], source: str, command: Command) -> None:
    """Refuse arguments of PyTorch's functions, before the words behind them are looked at."""
    extra = found.positionals[command.operands - ("file" in found.given) :]
    dashed = [(p[2:].partition("=")[0], p.partition("=")[2]) for p in extra if _DASHED.fullmatch(p)]
    for name, value in (*found.bindings, *dashed):
        if name in names:
            continue
        left = [word for word in extra if not word.startswith("--")]
        if hint := of_pytorch(name, value, left, command.declared()):
            raise usage(f"no such option --{name}", hint=hint)


_SHORT = re.compile(r"-[^\W\d]")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.I)


def _check_positionals(found: Split, declared: Declared, declaration: Command) -> None:
    """Refuse words that are left over; those that look like options are most likely misspelt."""
    allowed = declaration.operands - ("file" in found.given)
    more = found.positionals[allowed:]
    no_table = any(_DASHED.fullmatch(p) and not _is_table(p) for p in found.positionals[1:])
    no_table = no_table or _is_option_first(found.positionals)
    if not no_table and (not more or (declaration.takes_more and all(map(_is_table, more)))):
        return
    from gradcli.language.located_errors import did_you_mean, suggest

    for word in found.positionals:
        head = word.partition("=")[0]
        if _DASHED.fullmatch(word):
            option, meant = MEANT.get(_dashed(head), ("", ""))
            hint = meant if option in declared else ELSEWHERE.get(_dashed(head))
            if head not in declared:
                hint = hint or _of_another(head) or did_you_mean(suggest(head, declared))
            own = head in declared
            if own or (
                hint is None and head[2:] in variables(found.positionals[0], lenient=True)[1]
            ):
                value = quoted(word.partition("=")[2]) if "=" in word else "VALUE"
                text = quoted(found.positionals[0])
                hint = (
                    f"options stand before --: gradcli {declaration.name} {head} {value} -- {text}"
                )
            if hint is None and "-" in head[2:]:
                hint = "a variable's name has no dashes in it: write _ for -"
            raise usage(f"no such option {head}", hint=hint)
        if word[:2] in declared and word[:2] != "--" and len(word) > 2:
            raise usage(
                f"unexpected argument {word!r}",
                hint=f"write a space after a short option: {word[:2]} {word[2:].lstrip('=')}",
            )
    extra = next((p for p in found.positionals if _SHORT.fullmatch(p)), found.positionals[allowed])
    if extra == "-o":
        raise usage("no such option -o", hint="> FILE writes what is printed")
    if re.fullmatch(r"-[^\W\d]\w*", extra):
        raise usage(f"unexpected argument {extra!r}", hint=f"a variable takes two dashes: -{extra}")
    if match := re.fullmatch(r"([^\W\d]\w*)=(.+)", extra, re.S):
        hint = f"a variable gets its value by an option: --{match[1]} {quoted(match[2])}"
        raise usage(f"unexpected argument {extra!r}", hint=hint)
    hint = "quote the expression, so that the shell passes it as one word"
    if whole := _in_pieces(found, allowed):
        hint = f"the numbers of a value are one word, which PowerShell takes in quotes: {whole}"
    elif os.path.isfile(extra) or (extra[:1] == "@" and os.path.isfile(extra[1:])):
        hint = _columns_hint(found, extra.removeprefix("@"))
    elif "--against" in declared and variables(extra, lenient=True)[0]:
        hint = f"to compare with your own formula for the derivative, write --against '{extra}'"
    if "--wrt" in declared and extra in variables(found.positionals[0], lenient=True)[1]:
        hint = (
            f"to differentiate by {extra}, write --wrt {extra}; to give it a value, --{extra} VALUE"
        )
    if "--over" in declared and not any(map(os.path.exists, found.positionals)):
        curves = ", ".join(found.positionals)
        hint = f'several curves are one expression: gradcli plot "{curves}"'
    if allowed > 1 and os.path.exists(extra):
        hint = (
            "several files are one table by a pattern in quotes, as in 'data/*.csv', or by a folder"
        )
    if (flag := found.behind.get(extra)) is not None:
        name = flag.lstrip("-")
        hint = f"{flag} takes no value: leave {extra} out"
        if name in variables(found.positionals[0], lenient=True)[1]:
            hint = f"{flag} is an option here; the variable is set with --let {name}={extra}"
    raise usage(f"unexpected argument {extra!r}", hint=hint)


def _is_option_first(words: list[str]) -> bool:
    """Whether the first word is a misspelt option, and the expression stands where a table would."""
    return len(words) > 1 and bool(_DASHED.fullmatch(words[0])) and not _is_table(words[1])


def _columns_hint(found: Split, path: str) -> str:
    """How the columns of a file become the values of an expression's variables."""
    from gradcli.tables import TableError

    text = read_text(found.given["file"]) if "file" in found.given else found.positionals[0]
    program, names = variables(text, lenient=True)
    free = [n for n in names if not is_known(program, n) and n not in found.bound()]
    known: list[str] = []
    with suppress(TableError, OSError):
        from gradcli.tables.record_batches import Stream

        known = Stream(path).names
    taken = [n for n in free if n in known]
    if taken:
        options = " ".join(f"--{n} @{path}:{n}" for n in taken)
        return f"columns of a table are variables' values: {options}"
    return f"a column of a table is a variable's value: --{(free or ['x'])[0]} @{path}:COLUMN"


def _is_table(word: str) -> bool:
    """Whether a word may be one more table: a file, a pattern, standard input."""
    word = word.removeprefix("@")
    return word == "-" or os.path.exists(os.path.expanduser(word)) or any(s in word for s in "*?")


def _in_pieces(found: Split, allowed: int) -> str | None:
    """The option of a variable whose value came as several words: `1 2`, `1, 2`, `[1, 2]`.

    PowerShell, too, passes 0,1,2,3 as four words: a comma makes an array.
    """
    if not found.bindings:
        return None
    name, first = found.bindings[-1]
    more = [
        word for word in found.positionals if re.fullmatch(r"[\[\],]*[-+.\d][-+.\deE,\]]*", word)
    ]
    if len(more) != len(found.positionals) - allowed:
        return None
    words = [first, *more]
    joined = "".join(f",{word}" for word in words).strip(",")
    numbers = [part for part in re.split(r"[\s,\[\]]+", joined) if part]
    if not all(_NUMBER.fullmatch(part) for part in numbers) or joined.count("[") > 1:
        return None
    return f"--{name} '{','.join(numbers)}'"


def _check_names(program: Program, shown: list[str], bound: set[str], declared: Declared) -> None:
    """Refuse functions and constants of other languages, as `ln` or `e`, before any option is looked at."""
    missing = [name for name in shown if name not in bound and f"--{name}" not in declared]
    if not missing:
        return
    from gradcli.language import foreign_names

    wrong = [n for n in missing if is_called(program, n) or n in foreign_names.CONSTANTS]
    # `np.exp(x)`; a column may be called cp
    wrong += [n for n in foreign_names.PREFIXED.intersection(missing) if _is_prefix(program, n)]
    if wrong:
        raise unbound(program, wrong[0], declared, bound)


def _dashed(option: str) -> str:
    """`--group_by` as options are written: `--group-by`."""
    return option.replace("_", "-")


def _is_prefix(program: Program, name: str) -> bool:
    """Whether something is asked of the name: `np.exp`, and not `cp*x`."""
    return re.search(rf"(?<![\w.]){re.escape(name)}\s*\.", program.source) is not None


def _of_another(option: str) -> str | None:
    """That other commands have an option of this name, or of the name that an abbreviation means."""
    from gradcli.commands import COMMANDS
    from gradcli.commands.declarations import declaration

    found = [
        name
        for name in COMMANDS
        if any(option in known.names for known in declaration(name).options)
    ]
    if option[:2] != "--" or not found:
        return None
    json = "; JSON is --json" if option == "--format" else ""
    return f"{option} is an option of gradcli {', '.join(found)}{json}"


def _no_variable(
    names: list[str],
    known: list[str],
    written: str,
    operand: str,
    declared: Declared = MappingProxyType({}),
    source: str = "",
    command: Command | None = None,
    found: Split | None = None,
) -> Exception:
    from gradcli.language.located_errors import did_you_mean, suggest

    variables = ", ".join(names) if names else "none"
    what = "is neither an option nor a variable" if written[:2] == "--" else "is not a variable"
    of = "expression" if operand == "EXPR" else "program"
    option, meant = MEANT.get(_dashed(written), ("", ""))
    choices = declared[option].choices if option in declared else None
    if choices is None or (option == "--format" and written[2:] not in choices):
        meant = ""
    if written == "--sigma" and command is not None and command.propagates:
        value = dict(found.bindings).get("sigma", "") if found is not None else ""
        meant = f"write --uncertainty {quoted(value if '=' in value else 'NAME=VALUE')}"
    if option == "--precision" and found is not None:
        number = dict(found.bindings).get(written[2:].replace("-", "_"), "")
        meant = re.sub(r"\bN$", number, meant) if number.isdigit() else meant
    if command is not None and found is not None and not meant:
        meant = _of_others(written[2:], found, source, names, command)
    return usage(
        f"{written} {what} of the {of} (variables: {variables})",
        hint=meant
        or ELSEWHERE.get(_dashed(written), "").replace("-(EXPR)", f"-({source or 'EXPR'})")
        or _of_another(written)
        or did_you_mean(suggest(written, known)),
        kind="name",
    )


def _of_others(name: str, found: Split, source: str, names: Iterable[str], command: Command) -> str:
    """What an argument of PyTorch's, or a format of another command, is called here; empty for others."""
    values = dict(found.bindings)
    extra = found.positionals[command.operands - ("file" in found.given) :]
    said = of_pytorch(name, values.get(name, ""), extra, command.declared())
    typed = "-f FILE" if "file" in found.given else source
    return said or of_formats(name, command, typed, {n: v for n, v in values.items() if n in names})


def _request(
    command: ExpressionCommand,
    ctx: click.Context,
    found: Split,
    program: Program,
    names: list[str],
    shown: list[str],
    of_relations: Mapping[str, Program],
) -> Request:
    params, operand, declaration = ctx.params, command.operand, command.declaration
    texts, options = _texts(found, params.pop("let"), names, shown, operand)
    _check_standard_input(found, texts, options, operand)
    uncertainties = _uncertainties(texts, options, declaration.propagates or declaration.priors)
    covariances: dict[tuple[str, str], Any] = {}
    if (path := params.pop("params", None)) is not None:
        from gradcli.commands.uncertainty import take_from_fit

        free = [n for n in names if n not in texts]
        covariances = take_from_fit(path, read_text(path), free, texts, options, uncertainties)
        shown = [n for n in names if n in shown or n in texts]
    alone = name_list(params["wrt"], "--wrt", None) if declaration.open_variables else None
    alone = alone if alone and not shown else []  # a constant differentiated by what is not in it
    if "against" in found.given and not (shown or alone or texts):
        alone = [*_names_of(found.given["against"])][:1] or ["x"]
        params["wrt"] = alone
    assigned: Iterable[str] = ()
    if params["wrt"] and "retain" in params:
        from gradcli.language.scope_checks import assigned_names

        assigned = assigned_names(program)
    wrt = name_list(params.pop("wrt"), "--wrt", shown or alone, assigned=assigned)
    session = ctx.obj if ctx.obj is not None else SessionNames({})
    tensors = {n: t for n, t in session.tensors.items() if n in shown and n not in texts}
    texts |= {n: _text_in_session(n, tensor) for n, tensor in tensors.items()}
    options |= dict.fromkeys(tensors, "")
    loaded = {**session.others, **_loaded(ctx, params.pop("load"))}
    shown = [name for name in shown if name in texts or name not in loaded]
    if wrt is None and any(t.requires_grad for t in tensors.values()):
        wrt = [n for n in shown if n not in tensors or tensors[n].requires_grad]
    shapes = params.pop("shape", ())
    if declaration.draws:
        _draw(shapes, shown, texts, options)
        shapes = ()
    open_variables = [name for name in shown if name not in texts]
    for name in open_variables:
        if not command.may_stay_open(program, name):
            raise unbound(of_relations.get(name, program), name, command.declared, set(texts))
    style = _style(params)
    how_read = _how_read(params)
    _note_unread(how_read, texts.values(), declaration)
    for name in ("expression", "math", "file"):
        params.pop(name, None)
    return Request(
        program,
        texts,
        options=options,
        wrt=wrt,
        no_grad=name_list(params.pop("no_grad"), "--no-grad", shown, every=True) or [],
        dtype=params.pop("dtype"),
        manual_seed=params.pop("manual_seed"),
        loaded=loaded,
        style=style,
        missing=params.pop("missing"),
        how_read=how_read,
        native=bool(params.pop("native", False)),
        open_variables=[*open_variables, *alone],
        shapes=shapes,
        uncertainties=uncertainties,
        covariances=covariances,
        tensors=tensors,
    )


def _text_in_session(name: str, tensor: Any) -> str:
    """The value of a tensor of a session as one would write it: `taylor` reads the point's text."""
    if tensor.shape or not tensor.is_floating_point():
        return f"{name} of this session"
    return repr(tensor.item()).removesuffix(".0")


def _texts(
    found: Split, lets: Iterable[str], names: list[str], shown: list[str], operand: str
) -> tuple[dict[str, str], dict[str, str]]:
    """The text of each value that the command line gives, and the option that gives it."""
    texts, options = found.texts()
    for item in lets:
        name, equals, text = item.partition("=")
        name = normal(name.strip())
        if not equals or not name.isidentifier():
            raise usage(f"--let wants NAME=VALUE, not {item!r}", hint="as in --let seed=3")
        if name not in names:
            raise _no_variable(shown, shown, name, operand)
        if name in texts:
            raise usage(f"variable {name} is bound twice", hint="leave out one of its values")
        texts[name], options[name] = text, f"--let {name}="
    return texts, options


def _loaded(ctx: click.Context, paths: Iterable[str]) -> dict[str, Any]:
    if not paths:
        return {}
    from gradcli.commands.load import load_files
    from gradcli.commands.request_evaluation import prepare

    prepare(ctx, ctx.params["dtype"], ctx.params["manual_seed"])
    return load_files(ctx, paths)


def _draw(
    shapes: Iterable[str], names: list[str], texts: dict[str, str], options: dict[str, str]
) -> None:
    """Let the variables of --shape be drawn from the normal distribution."""
    free = [n for n in names if n not in texts]
    for name, sizes in shapes_of(shapes, free, texts, numbers=True).items():
        texts[name] = f"randn({', '.join(map(str, sizes)) or '()'})"
        options[name] = f"--shape {name}="
        note(f"{name} is {texts[name]}; --manual-seed N draws other numbers")


def _uncertainties(
    texts: dict[str, str], options: dict[str, str], propagates: bool
) -> dict[str, str]:
    """Take the uncertainties out of the values that have one; their texts by name."""
    found = {}
    for name, text in texts.items():
        if not (spread.is_marked(text) or spread.is_asymmetric(text)):
            continue
        from gradcli.language.uncertain_values import split_uncertainty

        try:
            pair = split_uncertainty(text)
        except LanguageError as error:
            error.message = f"{options[name].rstrip('=')}: {error.message}"
            error.hint = spread.with_option(error.hint, options[name])
            raise
        if pair is None:
            if spread.is_asymmetric(text):
                note(f"{options[name]} {text} is a sum; an uncertainty is written VALUE±ERROR")
            continue
        if not propagates:
            raise usage(
                f"{options[name].rstrip('=')}: {text} has an uncertainty",
                hint="gradcli eval, grad, map, root and minimize propagate it",
            )
        texts[name], found[name] = pair
        if "%" in text:
            errors = ", ".join(f"{float(e):.6g}" for e in pair[1].split(",") if e)
            note(
                f"{options[name].rstrip('=')} {text}: the percentage is one of the value: ±{errors}"
            )
    return found


def _check_standard_input(
    found: Split, texts: dict[str, str], options: dict[str, str], operand: str
) -> None:
    readers = [options[name].rstrip("=") for name, text in texts.items() if text.strip() == "-"]
    if columns := [n for n, text in texts.items() if text.strip().startswith(("-:", "@-:"))]:
        readers.append(options[columns[0]].rstrip("="))  # of one table, read once for all of them
    if found.given.get("file") == "-":
        readers.insert(0, "-f")
    elif found.positionals[:1] == ["-"] and "file" not in found.given:
        readers.insert(0, operand)
    if found.positionals[1:] == ["-"] or ("file" in found.given and found.positionals == ["-"]):
        readers.append("TABLE")
    if found.given.get("seed", "").strip() == "-":
        readers.append("--seed")
    if len(readers) > 1:
        raise usage(
            f"only one of {' and '.join(readers)} can be read from standard input",
            hint="put the others into files and write @FILE",
        )


def unbound(
    program: Program, name: str, declared: Declared, bound: set[str], value: str = "VALUE"
) -> Exception:
    """The error for a variable without a value; what is called is a function that nobody knows.

    value: what the command wants for one, as FROM:TO.
    """
    from gradcli.language import foreign_names, translations
    from gradcli.language.names import is_plain_function
    from gradcli.language.parser import parses

    span = where_read(program, name)
    translated = translations.hint(program.source, parses, dict.fromkeys(bound, False))

    def error(message: str, hint: str) -> Exception:
        return usage(message, hint=hint, source=program.source, span=span, kind="name")

    if name in foreign_names.PREFIXED and (word := foreign_names.unknown_of(name, program.source)):
        # `np.interp(t, T, r)`: without the prefix it is no function either
        from gradcli.language.located_errors import did_you_mean
        from gradcli.language.names import close

        hint = foreign_names.distribution_hint(word, program.source) or did_you_mean(close(word))
        return error(f"no function is called `{word}`", hint or "gradcli ops lists the functions")
    if f"--{name}" in declared and name not in foreign_names.PREFIXED:
        message = f"no value for {name}, which has the name of an option"
        return error(message, f"set it with --let {name}={value}")
    if is_called(program, name):
        from gradcli.language.located_errors import did_you_mean
        from gradcli.language.names import LEFT_OUT, close

        distribution = foreign_names.distribution_hint(name, program.source)
        hint = LEFT_OUT.get(name) or distribution or translated or _INSIDE.get(name)
        hint = hint or did_you_mean(close(name)) or "gradcli ops lists the functions"
        return error(f"no function is called `{name}`", hint)
    if is_plain_function(name):
        return error(f"{name} is a function", translated or f"give --{name} VALUE")
    meant = _WRITTEN_OTHERWISE.get(name)
    hint = f"add --{name} {value}" + (f"; {meant}" if meant else "")
    meant = foreign_names.distribution_hint(name, program.source)
    return error(f"no value for {name}", meant or translated or hint)


# What is a command, and inside of an expression a function of functions.
_INSIDE = dict.fromkeys(
    ("grad", "gradient_of", "derivative"),
    "a gradient inside of an expression is func.grad(lambda x: x**2)(x)",
)
# Constants of mathematics whose names are variables here, and how they are written.
_WRITTEN_OTHERWISE = dict.fromkeys("ij", "the imaginary unit is 1j") | {
    "e": "Euler's number is torch.e",
    **dict.fromkeys(("deg", "degree", "degrees"), "30 degrees are deg2rad(30)"),
}


# -- how results are written ------------------------------------------------------------------------
def _style(params: dict[str, Any]) -> Style:
    """How the results are to be written; out of a command's parameters."""
    path, colour = params.pop("array_path", None), params.pop("color")
    precision = params.pop("precision", None)
    # Every parameter is taken out, whether it was given or not.
    asked = {form: params.pop(form, False) for form in ("json", "plain", "lines", "csv")}
    if bare := params.pop("bare", False):
        asked["plain"] = True
    form = chosen_form(**asked)
    typeset = params.pop("typeset", None)
    if typeset is not None and (path is not None or form != "text"):
        other = "-o" if path is not None else f"--{form}"
        raise usage(
            f"--format {typeset} and {other} cannot be used together", hint="leave out one of them"
        )
    if path is None and form not in ("lines", "csv"):
        style = Style.of(form, precision, colour, names=not bare)
        style.typeset = typeset
        return style
    from gradcli.commands.array_output import form_of, write_arrays

    if params.get("trace"):  # a table of texts, with its own formats
        from gradcli.commands.step_output import steps_form

        form = steps_form(form, path)
        return Style.of(form, precision, colour, path=path)
    if path is not None:
        chosen, form = form, form_of(path)
        if chosen not in ("text", form):
            hint = "the file's ending says the format"
            raise usage(f"--{chosen} cannot be used with -o {path}", hint=hint)
        if precision is not None and form != "csv":
            hint = "the file holds the numbers themselves"
            raise usage(f"--precision cannot be used with -o {path}", hint=hint)
    style = Style.of(form, precision, colour, path=path)
    style.arrays = write_arrays
    return style

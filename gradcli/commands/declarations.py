"""What a command takes, declared once: click's options, its help, and the names that plain command lines
know all follow from it (see `click_commands` and `argv`). Nothing here imports click.

A command is a function of the context, of what the command line asks for, and of its own options:

    @declare(
        "jvp",
        *EXPRESSION,
        Option("--vector [NAME=]VALUE", "The direction.", many=True),
        Option("--value", "Print the value too."),
        examples=['gradcli jvp "sin(x)" --x 0,1 --vector 1,0'],
    )
    def command(ctx: AnyContext, request: Request, options: Options) -> None:
        "Print the derivative of EXPR along a direction."
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gradcli.commands import MODULES

if TYPE_CHECKING:
    from typing import TypeAlias

    Run: TypeAlias = Callable[..., None]

# Sections of help; `Request` has what they say.
INPUTS, TEXTS, OUTPUTS = "Variables and input", "How a table of text is read", "Output"
# What a shell offers for a value, by what help calls it.
_COMPLETED = {
    "FILE": "files",
    "FIT": "files",
    "TABLE": "files",
    "NAMES": "variables",
    "NAME=VALUE": "bindings",
}
_WRITTEN = re.compile(r"((?:-[\w-]+(?:, |/)?)+)(?: (.+))?")


class Options(SimpleNamespace):
    """The values of a command's own options, by name."""


class Option:
    """One option of the command line.

    written: as help has it, names and then what stands for the value: `--seed, --gradient VALUE`; a flag
    has no value, `[FILE]` may be left out and is `-` then, and `--by-rows/--whole` is one with its
    opposite. name: what the function calls it, if not by its first name. choices: the values there are.
    least, most: of a whole number; with type=str a letter may stand for it. type: of another number.
    many: whether it may be given several times. complete: which of `completers` says what a shell
    offers. variable: of the environment, in its place.
    binds: a flag that may be followed by values of variables, `x=2,y=3`.
    """

    required = False

    def __init__(
        self,
        written: str,
        help: str = "",
        *,
        name: str | None = None,
        choices: Sequence[str] = (),
        least: int | None = None,
        most: int | None = None,
        type: type | None = None,
        default: Any = None,
        many: bool = False,
        complete: str | None = None,
        variable: str | None = None,
        binds: bool = False,
        section: str = "Options",
    ) -> None:
        names, self.metavar = self.split(written)
        self.names = names
        long = [word for word in names if word[:2] == "--"] or names
        self.name = name or long[0].partition("/")[0].lstrip("-").replace("-", "_").lower()
        self.is_flag = not (self.metavar or choices)
        self.help, self.choices, self.least, self.most, self.type = help, choices, least, most, type
        self.many, self.section = many, section
        self.binds = binds
        self.complete = complete or _COMPLETED.get((self.metavar or "").partition(".")[0])
        self.variable = variable
        if default is None:
            default = () if many else False if self.is_flag and "/" not in written else None
        self.default = default
        # Its value, a "[FILE]", is `-` then; that of "[NAME=]VALUE" may not be left out.
        self.may_be_bare = re.fullmatch(r"\[[^][]*\]", self.metavar or "") is not None

    def split(self, written: str) -> tuple[list[str], str | None]:
        """The names, and what stands for the value."""
        found = _WRITTEN.fullmatch(written)
        assert found is not None, written
        return found[1].split(", "), found[2]


class Argument(Option):
    """A word of the command line that is no option. written: what help calls it."""

    def __init__(self, written: str, *, required: bool = False, **facts: Any) -> None:
        super().__init__(written, **facts)
        self.required = required

    def split(self, written: str) -> tuple[list[str], str | None]:
        """No dashes."""
        return [written.strip("[].")], written


HELPS = (Option("-h, --help", name="show_help"), Option("--help-all"))
DECLARED: dict[str, Command] = {}


class Command:
    """A command: what runs it, and what it takes.

    operand: the word whose variables are options, EXPR or the FILE of a program; None if there is none.
    operands: how many words it takes. open_variables: whether variables need no values. propagates:
    whether values may have an uncertainty; priors: whether parameters may, as a measurement of them.
    puts_in: the command reads its text as a formula, in which expressions are put in for variables, given
    by any option ("all") or by --let alone.
    table_alone: the EXPR that a table without one has.
    arguments: looks at the words of the command line first, and gives those that are to be read; of the
    click command, its context and the words.
    """

    def __init__(
        self, name: str, run: Run, options: Sequence[Option], examples: Sequence[str]
    ) -> None:
        self.name, self.run, self.options = name, run, options
        self.examples, self.help = examples, run.__doc__ or ""
        self.operand = "EXPR" if EXPRESSION[0] in options else None
        self.operands = 1
        self.open_variables = self.propagates = self.priors = False
        self.puts_in: str | None = None
        self.table_alone: str | None = None
        self.arguments: Callable[..., list[str]] | None = None

    @property
    def takes_more(self) -> bool:
        """Whether any number of words may follow."""
        return any(isinstance(option, Argument) and option.many for option in self.options)

    @property
    def draws(self) -> bool:
        """Whether --shape fills a variable with random numbers."""
        return DRAWN[-1] in self.options

    def own_options(self) -> list[Option]:
        """Those that its function is given, beside the request."""
        return [option for option in self.options if option.section == "Options"]

    def defaults(self) -> Options:
        """The values of its own options where the command line gives none."""
        return Options(**{option.name: option.default for option in self.own_options()})

    def declared(self) -> dict[str, Option]:
        """Its options and those of help, by each of their names."""
        options = [o for o in self.options if not isinstance(o, Argument)]
        return {w: o for o in (*options, *HELPS) for name in o.names for w in name.split("/")}


def declaration(name: str) -> Command:
    """The command of that name; its module is imported now."""
    if name not in DECLARED:
        import_module(f"gradcli.commands.{MODULES.get(name, name)}")
    return DECLARED[name]


def declare(
    name: str, *options: Option, examples: Sequence[str], **facts: Any
) -> Callable[[Run], Command]:
    """Declare a command; facts: those of `Command` that are not as usual."""

    def declared(run: Run) -> Command:
        made = Command(name, run, options, examples)
        vars(made).update(facts)
        DECLARED[name] = made
        return made

    return declared


# -- options that several commands have ---------------------------------------------------------------
def _input(written: str, help: str, **facts: Any) -> Option:
    return Option(written, help, section=INPUTS, **facts)


def _output(written: str, help: str, **facts: Any) -> Option:
    return Option(written, help, section=OUTPUTS, **facts)


DTYPE = _input(
    "--dtype DTYPE",
    "Type of numbers: float16, float32 or float64; also $GRADCLI_DTYPE.",
    choices=("float16", "float32", "float64"),
    default="float64",
    variable="GRADCLI_DTYPE",
)


def _text(written: str, help: str, **facts: Any) -> Option:
    return Option(written, help, section=TEXTS, **facts)


# Where a file's text has two readings these decide; their names are those of `tables.reading_options.How`.
READING = (
    _text("--skip-lines N", "Skip the first N lines of a table.", least=0),
    _text("--skip-footer N", "Skip its last N lines.", least=0),
    _text("--header N|none", "The line with the names of the columns."),
    _text("--no-header", "The table has no line of names."),
    _text("--units N|none", "The line with the units."),
    _text("--names t,U,I", "Names of all columns.", name="column_names"),
    _text("--comment CHARS", "Characters that start a comment."),
    _text("--separator CHAR", "Cell separator: a character, tab, blank or fixed."),
    _text("--decimal CHAR", "Decimal separator: a point or a comma.", choices=(".", ",")),
    _text("--thousands CHAR", "Thousands separator."),
    _text("--encoding NAME", "Text encoding of a table, as in latin-1."),
    _text("--missing-markers OL,-999", "Cells that mean a missing number.", many=True),
    _text("--block N", "Read the N-th data set; two blank lines separate them.", least=1),
    _text(
        "--date-order dmy|mdy|ymd",
        "Order of day, month and year in 01/02/2026.",
        choices=("dmy", "mdy", "ymd"),
    ),
    _text(
        "--time-unit UNIT",
        "Unit of times: s (default), ms, us, ns, min, h, d.",
        choices=("ns", "us", "ms", "s", "min", "h", "d"),
    ),
    _text("--time-origin TIME", "Where times start: first (row), epoch, or a time; none."),
)
MANUAL_SEED = _input("--manual-seed N", "Seed of the random numbers (randn, rand, …).", type=int)
LOAD = _input("--load FILE.py", "Load functions from your Python file.", many=True)
MAX_STEPS = Option("--max-steps N", "Stop after N loop turns and calls.", least=1)
_WHEN = ("auto", "always", "never")
COLOUR = _output(
    "--color WHEN", "Colours: auto (on a terminal), always or never.", choices=_WHEN, default="auto"
)
VARIABLES = (
    _input("--let NAME=VALUE", "Set a variable whose name is also an option's name.", many=True),
    _input("--wrt NAMES", "Differentiate by these variables only.", many=True),
    _input(
        "--no-grad NAMES|all",
        "Hold these variables constant.",
        many=True,
        complete="variables_or_all",
    ),
    DTYPE,
    _input(
        "--missing error|nan|skip",
        "An empty cell of a table: an error (default), nan, or skip its row.",
        choices=("error", "nan", "skip"),
        default="error",
    ),
    *READING,
    MANUAL_SEED,
    LOAD,
)
STYLE = (
    _output("--json", "Print one JSON object."),
    _output("--plain", "Print names and values in the form that options read."),
    _output(
        "--precision N",
        "Print N significant digits at most; with ±, of its error.",
        least=1,
        most=17,
    ),
    COLOUR,
)


TYPESET = _output(
    "--format latex|siunitx",
    "Print the numbers for LaTeX, or for its package siunitx.",
    name="typeset",
    choices=("latex", "siunitx"),
)


UNIT = Option(
    "--unit [NAME=]UNIT",
    r"Write a unit behind a result: m/s^2, or for siunitx \metre\per\second\squared.",
    many=True,
)


def reworded(options: Sequence[Option], written: str, help: str) -> tuple[Option, ...]:
    """Options of which one is said in other words, since a command does something else with it."""
    return tuple(
        Option(written, help, section=o.section, many=o.many)
        if written.split()[0] in o.names
        else o
        for o in options
    )


# EXPR, and the options of all commands that take one.
EXPRESSION = (
    Argument("EXPR", name="expression", section=INPUTS),
    *VARIABLES,
    _input(
        "--math",
        "Read EXPR as mathematics, and show how it is read: x^2, 2x, ln x, x'Ax, LaTeX.",
    ),
    _input("-f FILE", "Read EXPR from a file (- for stdin).", name="file"),
    *STYLE,
    _output("--bare", "Print as --plain does, without names."),
)
_SHAPE = "--shape x=3,4"
DRAWN = (
    *EXPRESSION,
    _input(_SHAPE, "Fill a variable of this shape with random numbers.", many=True),
)
OPEN = (
    *EXPRESSION,
    _input(
        _SHAPE, "Shape of a variable without a value, in numbers or in letters: A=m,n.", many=True
    ),
)
# Of commands whose results are arrays.
ARRAYS = (
    *DRAWN,
    _output("--lines", "Print one number a line."),
    _output("--csv", "Print a table with a header."),
    _output(
        "-o FILE",
        "Write the result to FILE.npy, .npz, .csv, .parquet or .feather.",
        name="array_path",
    ),
)
SEED = "--seed, --gradient VALUE"
VALUE = Option("--value", "Print the value too.")
ANOMALY = Option("--detect-anomaly", "Stop at the first NaN or infinity; say what made it.")
LIKE = Option(
    "--like SYSTEM|all",
    "Use another system's rules where there is no derivative: jax, torch-2.14, ….",
    complete="systems",
)
NATIVE = _input(
    "--native",
    "Compute large arrays in C, with this machine's compiler ($CC, else cc).",
)
BY_ROWS = Option(
    "--by-rows/--whole",
    "Read a table piece by piece (the default where it would take half of the free memory), or at once.",
)
CLUSTER = (
    Option("--workers N", "Split a table among N processes.", least=1),
    Option("--cluster ADDRESS", "Compute on a Dask cluster; ADDRESS as tcp://host:8786."),
)
LARGE = (
    Option("--plan/--no-plan", "Show in which blocks large arrays are computed, or use no blocks."),
    *(NATIVE, BY_ROWS, *CLUSTER),
)
DRAWS = Option("--monte-carlo N", "Take the uncertainty from N draws of the inputs.", least=2)
_COVARIANCE, _CORRELATION = "--covariance x,y=VALUE", "--correlation x,y=VALUE"
UNCERTAINTY = (
    Option(
        "--uncertainty x=VALUE", "Standard uncertainty of an input, as in --x 3±0.1.", many=True
    ),
    Option(_COVARIANCE, "Covariance of two inputs, or the matrix of several.", many=True),
    Option(_CORRELATION, "Correlation of two inputs, or the matrix of several.", many=True),
    Option("--budget", "Print each input's share of the uncertainty."),
    _input(
        "--params FIT.json", "Take values and uncertainties from a fit: the output of fit --json."
    ),
)
# Of commands that find several numbers: without a value they ask for the matrix of what is found.
RELATED = (
    Option(
        "--covariance [x,y=VALUE]",
        "Covariance of two inputs, or the matrix of several; alone: print that of the results.",
        many=True,
    ),
    Option(
        "--correlation [x,y=VALUE]",
        "Correlation of two inputs, or the matrix of several; alone: print that of the results.",
        many=True,
    ),
)
UNCERTAINTY_OF_SEVERAL = tuple(
    next((r for r in RELATED if r.name == o.name), o) for o in UNCERTAINTY
)

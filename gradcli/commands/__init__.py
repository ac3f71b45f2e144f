"""The names of all commands. Each is declared in a module of its own name, imported on first use."""

# In the order of the help: what `gradcli --help` says of each, and what `help` in a session says ("" for a
# command that a session has not).
_TOLD: dict[str, tuple[str, str]] = {
    "eval": ("Print the value of EXPR.", "the value"),
    "grad": ("Print the gradient of EXPR with respect to its variables.", "the gradient"),
    "graph": ("Show the graph that backpropagation walks.", ""),  # a session has its own
    "diff": ("Print the derivative of EXPR as an expression.", "the derivative as an expression"),
    "simplify": ("Print an equal but shorter expression.", "the expression, shorter"),
    "taylor": ("Print the Taylor polynomial of EXPR at a point.", "its Taylor polynomial"),
    "run": ("Run a program from a file.", ""),
    "repl": ("Start a session that keeps variables and graphs.", ""),
    "batch": ("Run the command lines in a file.", ""),
    "jacobian": ("Print the Jacobian: all first derivatives of a vector.", "the Jacobian"),
    "hessian": (
        "Print the Hessian: all second derivatives of a number.",
        "the matrix of second derivatives",
    ),
    "jvp": ("Print the derivative of EXPR along a direction.", "the derivative along --vector"),
    "map": ("Print EXPR and its gradients for every row of a table.", ""),
    "minimize": ("Find a minimum of EXPR.", "a minimum, from the values of its variables"),
    "root": ("Solve equations numerically.", "where it is 0, or an equation holds"),
    "fit": ("Fit the parameters of an equation to the rows of a table.", ""),
    "plot": (
        "Draw EXPR and its derivative, contours, data.",
        "a drawing of it, and of its derivative",
    ),
    "check": (
        "Check gradients, or a derivative of yours.",
        "the gradients against numerical ones",
    ),
    "ops": ("List or search the functions; show one.", "what a function does, or which there are"),
    "help": ("Show the help of a command, or explain a term.", ""),
    "completion": ("Print the completion script of a shell.", ""),
}
COMMANDS = {name: text for name, (text, _) in _TOLD.items()}
VERBS = {name: text for name, (_, text) in _TOLD.items() if text}
# Commands that share a module.
MODULES = {"jacobian": "matrix", "hessian": "matrix", "jvp": "matrix"}
# Those of which a line may be so plain that click need not read it (see `argv`).
SHORT = frozenset("eval grad graph diff simplify taylor jacobian hessian jvp minimize root".split())
COMPLETION_VARIABLE = "_GRADCLI_COMPLETE"

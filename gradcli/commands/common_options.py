"""The options of each command that the short help shows: those that README and the docs use most.

At most ten a command; `tests/commands/test_command_help.py` counts them in the docs. `--help-all` has all.
"""

from __future__ import annotations

# What is computed | what goes in and comes out.
_COMMON = {
    "eval": "--detect-anomaly --uncertainty --budget --correlation "
    "| --math --precision --plain --json --csv -o",
    "grad": "--wrt --value --retain --seed --order --trace --detect-anomaly --like | --json --plain",
    "graph": "--torch --saved --grads --values --diagnose --norms --detect-anomaly --wide | -o --json",
    "diff": "--wrt --order --jacobian --assume --uncertainty --of --show-steps | --math --shape --format",
    "simplify": "--assume | --math --let --shape --format --json",
    "taylor": "--order --wrt | --math --format --json",
    "run": "--wrt --no-grad --dtype --manual-seed --max-steps | --load --by-rows --workers",
    "repl": "--max-steps --load --manual-seed | --dtype --color",
    "jacobian": "--wrt --detect-anomaly | --shape --dtype --precision --csv -o --json --plain",
    "hessian": "--wrt --detect-anomaly | --shape --dtype --precision --csv -o --json --plain",
    "jvp": "--vector --value --wrt --detect-anomaly | --shape --precision --csv -o --json --plain",
    "map": "--columns --wrt --where --head --missing --second | --keep-columns --as --precision -o",
    "minimize": "--bounds --subject --wrt --method --rate | --plot --precision --plain --json",
    "root": "--wrt --all --where --bad-rows | --precision --plain --json -o",
    "fit": "--sigma --bounds --fix --columns --budget --correlation | --plot -o --precision --json",
    "plot": "--order --at --surface --descend | --width --height --theme -o --csv",
    "check": "--against --wrt --second-order --order --assume | --math --shape --dtype --json",
}
# Where the first clause of an option's help does not say enough.
_SHORTER = {
    "--against": "Compare your formula for the gradient with the exact one.",
    "--assume": "A fact about a variable: 'B symmetric', 'x > 0'.",
    "--budget": "Print the share of each source of uncertainty.",
    "--correlation": "Print the correlations; x,y=0.5: those of data.",
    "--format": "text, latex, python, numpy, torch, jax, c or json.",
    "--grads": "Show the gradient that reaches each node.",
    "--like": "The gradient by another system's rules: jax, torch-2.14, ….",
    "--method": "BFGS, …; gradient-descent, adam, newton step by step.",
    "--rate": "The learning rate of gradient descent and its like.",
    "--norms": "List sizes of gradients; mark where they vanish.",
    "--operator": "grad, div, curl or laplacian of a field.",
    "--torch": "Show the graph of a PyTorch program.",
    "--where": "Compute only rows for which EXPR is true.",
}


def common(command: str) -> list[list[str]]:
    """The names of the options that the short help of a command shows: two groups of them."""
    return [group.split() for group in _COMMON.get(command, "|").split("|")]


def shorter(name: str, text: str, room: int) -> str:
    """What the short help says of an option."""
    return clause(_SHORTER.get(name, text), room)


def clause(text: str, room: int) -> str:
    """As much of a text as a line has room for: up to a sign that ends a clause.

    The whole text where there is no such sign; it takes more lines then.
    """
    text = text.removesuffix(".")
    if len(text) < room:
        return f"{text}."
    for sign in ("; ", ": ", ", ", " ("):
        head = text[:room].rpartition(sign)[0]
        if len(head) >= 12:
            return f"{head}."
    return f"{text}."

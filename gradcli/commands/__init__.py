"""The commands, which `declare` of `declarations` declares; their modules are imported on first use."""

# In the order in which the help lists them, with what it says of each.
COMMANDS = {
    "eval": "Print the value of EXPR.",
    "grad": "Print the gradient of EXPR with respect to its variables.",
    "graph": "Show the backward graph of EXPR.",
    "diff": "Print the derivative of EXPR as an expression.",
    "simplify": "Print EXPR in a shorter form.",
    "taylor": "Print the Taylor polynomial of EXPR at a point.",
    "run": "Run a program from a file.",
    "repl": "Start a session: the graph stays alive between lines.",
    "jacobian": "Print the Jacobian of EXPR.",
    "hessian": "Print the Hessian of EXPR.",
    "jvp": "Print the derivative of EXPR along a direction.",
    "map": "Print EXPR and its gradients for every row of a table.",
    "fit": "Fit the parameters of an equation to the rows of a table.",
    "plot": "Draw EXPR and its derivative.",
    "check": "Check the gradients of EXPR against numerical ones.",
    "ops": "List every function, or show one.",
    "help": "Show the help of a command.",
    "completion": "Print the completion script for bash, zsh or fish.",
}
# The modules of those that have none of their own name.
MODULES = {"jacobian": "matrix", "hessian": "matrix", "jvp": "matrix"}
COMPLETION_VARIABLE = "_GRADCLI_COMPLETE"

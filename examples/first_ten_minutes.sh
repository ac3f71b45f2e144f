#!/usr/bin/env bash
# A newcomer's first ten minutes: every command is shown, run, and what it prints left as it is.
# What goes wrong here goes wrong on purpose: the screen says what, where, and what to do instead.
cd "$(dirname "$0")" || exit 1

say() { printf '\n# %s\n' "$*"; }
try() {
    printf '$ %s\n' "$1"
    bash -c "$1" 2>&1
    code=$?
    [ "$code" = 0 ] || printf '(exit code %s)\n' "$code"
}

say "What is this?"
try 'gradcli --version'
try 'gradcli --help'

say "A gradient. Every variable of the expression is an option."
try 'gradcli grad "2*dot(x,x)" --x 0,1,2,3'
try 'gradcli eval "2*dot(x,x)" --x 0,1,2,3'

say "What if I forget a value, or mistype a name, or an operator?"
try 'gradcli grad "a*x" --x 3'
try 'gradcli grad "sofmax(x)" --x 1,2'
try 'gradcli grad "x^2" --x 3'
try 'gradcli grad "2*(x + 1" --x 3'
try 'gradcli grda "x" --x 3'

say "A vector has no single gradient: the message says what to do, so do it."
try 'gradcli grad "x + a" --x 3 --a 4,2'
try 'gradcli grad "x + a" --x 3 --a 4,2 --seed ones'
try 'gradcli grad "sum(x + a)" --x 3 --a 4,2'

say "Shapes that do not fit."
try 'gradcli eval "A @ x" --A "1,2;3,4" --x 1,2,3'

say "Intermediate results, and the graph that was walked."
try 'gradcli grad "y = a*x; y + b" --x 3 --a 4 --b 5 --retain y --value'
try 'gradcli graph "y = a*x; y + b" --x 3 --a 4 --b 5 --saved --grads'

say "The derivative as a formula, and a check against numerical differences."
try 'gradcli diff "exp(-x**2)" --x 1'
try 'gradcli check "exp(-x**2)" --x 0.3,1'

say "What does tanh do? (gradcli ops lists every function.)"
try 'gradcli ops tanh'

say "A program, as in a notebook; with PyTorch's float32 if that is wanted."
try 'cat programs/second_derivative.py'
try 'gradcli run programs/second_derivative.py'

say "A session: the graph stays alive between lines."
try 'printf "%s\n" "x = arange(4.0, requires_grad=True)" "y = 2*dot(x, x)" "y" "y.backward()" "x.grad" "y.backward()" | gradcli repl'

say "Values come from files and pipes and go back into them."
try 'printf "1,2\n3,4\n" | gradcli eval "A.T" --A - --plain'
try 'gradcli eval "linspace(0,1,5)" --plain | gradcli grad "sum(x**2)" --x -'

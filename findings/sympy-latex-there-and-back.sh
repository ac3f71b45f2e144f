#!/usr/bin/env bash
# SymPy: what sympy.latex prints is another function when sympy.parse_latex reads it back, and no error says so.
#
# Guess: log(x)**2 and asin(x) go through LaTeX and come back, or the reader refuses what it does not know.
# Seen with sympy 1.14.0 and antlr4 4.11.1: log(x)**2 is printed \log{\left(x \right)}^{2} and read as log(x**2): at x = 3
# 2.197 in place of 1.207. sin(x)**2 is printed \sin^{2}{…}, which is read well, so that trying one function proves
# nothing of the other. asin(x) is printed \operatorname{asin}{…} and read as a product of seven letters, of a variable
# `operatorname` among them; a factor x before a bracket, x (y + 1), is read as x applied to y + 1. exp(x) comes back with a
# variable e, which no `subs` of x makes a number.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "sympy==${SYMPY:-1.14.0}" antlr4-python3-runtime==4.11.1
cat > "$work/ask.py" <<'PY'
import sympy as sp
from sympy.parsing.latex import parse_latex

x, y = sp.symbols("x y")
for printed in (sp.sin(x) ** 2, sp.log(x) ** 2, sp.asin(x), x * (y + 1), sp.exp(x)):
    text = sp.latex(printed)
    read = parse_latex(text)
    same = sp.simplify(read - printed) == 0
    free = sorted(map(str, read.free_symbols - printed.free_symbols))
    print(f"{printed} | {text} | {'the same' if same else read} | new variables: {free}")
print("log(x)**2 at 3:", round(float((sp.log(x) ** 2).subs(x, 3)), 3), end=", ")
print("read back:", round(float(parse_latex(sp.latex(sp.log(x) ** 2)).subs(x, 3).evalf()), 3))
PY
"$work/venv/bin/python" "$work/ask.py" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
sin(x)**2 | \sin^{2}{\left(x \right)} | the same | new variables: []
log(x)**2 | \log{\left(x \right)}^{2} | log(x**2, E) | new variables: []
asin(x) | \operatorname{asin}{\left(x \right)} | operatorname*(x*(a*(s*(i*n)))) | new variables: ['a', 'i', 'n', 'operatorname', 's']
x*(y + 1) | x \left(y + 1\right) | x(y + 1) | new variables: []
exp(x) | e^{x} | e**x | new variables: ['e']
log(x)**2 at 3: 1.207, read back: 2.197
SEEN
echo "as it was seen"

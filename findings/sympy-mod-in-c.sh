#!/usr/bin/env bash
# SymPy: Mod(a, 2*pi) printed as C is negative for negative angles; printed as JavaScript it is not.
#
# Guess: SymPy's Mod has the sign of the divisor, as Python's %, and a printer of code keeps its value. C's fmod has the sign
# of the first operand, so that the C text must correct it, as it does for integers.
# Seen with sympy 1.14.0: ccode and cxxcode of Mod of integers are ((n % m) + m) % m, but of real numbers a bare fmod(a, b):
# an angle of -1 wrapped into one turn is 5.283 in SymPy, NumPy, JavaScript, Julia and Rust, and -1 in C. The autowrapped
# C of an oscillator's phase jumps where its Python does not.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "sympy==${SYMPY:-1.14.0}" numpy==2.4.6
cat > "$work/ask.py" <<'PY'
import subprocess
import sys

import sympy as sp

folder = sys.argv[1]
a = sp.Symbol("a", real=True)
n, m = sp.symbols("n m", integer=True)
turn = sp.Mod(a, 2 * sp.pi)
print("C:", sp.ccode(sp.Mod(a, 2)), "| of integers:", sp.ccode(sp.Mod(n, m)))
print("JavaScript:", sp.jscode(sp.Mod(a, 2)))
print("Julia:", sp.julia_code(sp.Mod(a, 2)))
program = f"""
#include <math.h>
#include <stdio.h>
int main(void) {{ double a = -1.0; printf("%.3f", {sp.ccode(turn)}); return 0; }}
"""
with open(f"{folder}/turn.c", "w") as file:
    file.write(program)
subprocess.run(["cc", f"{folder}/turn.c", "-o", f"{folder}/turn", "-lm"], check=True)
in_c = subprocess.run([f"{folder}/turn"], capture_output=True, text=True, check=True).stdout
print(f"-1 in one turn: SymPy {float(turn.subs(a, -1)):.3f}", end=", ")
print(f"NumPy {sp.lambdify(a, turn, 'numpy')(-1.0):.3f}, C {in_c}")
PY
"$work/venv/bin/python" "$work/ask.py" "$work" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
C: fmod(a, 2) | of integers: ((n % m) + m) % m
JavaScript: ((a % 2) + 2) % 2
Julia: (a - 2 * floor(a / 2))
-1 in one turn: SymPy 5.283, NumPy 5.283, C -1.000
SEEN
echo "as it was seen"

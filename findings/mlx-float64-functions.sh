#!/usr/bin/env bash
# MLX: exp, sin and cos of float64 numbers are right to seven digits only, though the result is float64.
#
# Guess: exp(1) in float64 is 2.718281828459045, as everywhere; whoever asks for float64 wants its digits.
# Seen with mlx 0.32.4 on the CPU: 2.7182817459 (an error of 8e-8, that of single precision), with dtype float64. sin,
# cos and sigmoid are alike, log, tan, tanh and products have all digits. So sin(x)**2 + cos(x)**2 misses 1 by 1e-8, and
# cos(pi/2) is -4.4e-8 in place of 6e-17: whoever checks a gradient by differences in float64 finds it wrong.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "mlx[cpu]==${MLX:-0.32.4}"
cat > "$work/ask.py" <<'PY'
import math

import mlx.core as mx

mx.set_default_device(mx.cpu)
POINT = 0.7
SIGMOID = 1 / (1 + math.exp(-POINT))
CASES = {
    "exp": math.exp(POINT),
    "sin": math.sin(POINT),
    "cos": math.cos(POINT),
    "sigmoid": SIGMOID,
    "log": math.log(POINT),
    "tan": math.tan(POINT),
    "tanh": math.tanh(POINT),
    "sqrt": math.sqrt(POINT),
}
x = mx.array([POINT], dtype=mx.float64)
for name, right in CASES.items():
    found = getattr(mx, name)(x)
    error = abs(found.item() / right - 1)
    digits = "all digits" if error < 1e-15 else "7 digits" if 1e-9 < error < 1e-6 else f"{error:.1e}"
    print(f"{name}: {found.dtype}, {digits}")
quarter = mx.array([math.pi / 2], dtype=mx.float64)
print(f"cos(pi/2) = {mx.cos(quarter).item():.1e}")
PY
"$work/venv/bin/python" "$work/ask.py" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
exp: mlx.core.float64, 7 digits
sin: mlx.core.float64, 7 digits
cos: mlx.core.float64, 7 digits
sigmoid: mlx.core.float64, 7 digits
log: mlx.core.float64, all digits
tan: mlx.core.float64, all digits
tanh: mlx.core.float64, all digits
sqrt: mlx.core.float64, all digits
cos(pi/2) = -4.4e-08
SEEN
echo "as it was seen"

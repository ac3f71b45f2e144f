#!/usr/bin/env bash
# uncertainties: 4.0±0.1 modulo 2.0±0.1 has an uncertainty of three million; of 4.3 it has 0.22.
#
# Guess: a % b is a - floor(a/b)*b, so its slopes are 1 and -floor(a/b), and the result is off by about 0.2. Where a is a
# whole multiple of b, the result jumps; then 0.2 all the same, or nan, as this library gives where it knows no derivative.
# Seen with uncertainties 3.2.3: 4 % 2 is 0 ± 3355443.05. The slope by the divisor is a difference with a step of
# 1.5e-8, taken across the jump: 33554430.5. A whole number of turns, of periods or of bins is just where one takes a modulus.
# The other number, 4.3 % 2, is 0.3 ± 0.2236, as it should be.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "uncertainties==${UNCERTAINTIES:-3.2.3}"
cat > "$work/ask.py" <<'PY'
from uncertainties import ufloat

period = ufloat(2.0, 0.1)
for time in (4.0, 4.3, 6.0):
    rest = ufloat(time, 0.1) % period
    slope = rest.derivatives[period]
    print(f"{time} % 2: {rest.n:.6g} ± {rest.s:.6g}, slope by the divisor {slope:.9g}")
exact = ufloat(4.0, 0.1) % 2.0
print(f"4.0 % 2 without an uncertainty of 2: {exact.n:.6g} ± {exact.s:.6g}")
PY
"$work/venv/bin/python" "$work/ask.py" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
4.0 % 2: 0 ± 3.35544e+06, slope by the divisor 33554430.5
4.3 % 2: 0.3 ± 0.223607, slope by the divisor -2
6.0 % 2: 0 ± 3.35544e+06, slope by the divisor 33554429.5
4.0 % 2 without an uncertainty of 2: 0 ± 0.1
SEEN
echo "as it was seen"

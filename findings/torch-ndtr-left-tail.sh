#!/usr/bin/env bash
# PyTorch: special.ndtr is 0 in double precision from -8.3 downwards, where SciPy's has all digits.
#
# Expected: torch.special, whose names and functions are SciPy's, has the normal distribution function to a few units in the last
# place, as its log_ndtr, erfc and ndtri have theirs.
# Seen with torch 2.13.0 (CPU): ndtr(x) is (1 + erf(x/sqrt(2)))*0.5, so that at -8 one digit is right, and at -9 and -10 it
# is 0. `0.5*erfc(-x/sqrt(2))` and `exp(log_ndtr(x))` are right beside it, to 13 digits. ndtri(ndtr(-9.0)) is -inf.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "torch==${TORCH:-2.13.0}" numpy==2.4.6 scipy==1.17.1
cat > "$work/ask.py" <<'PY'
import scipy.special
import torch

for x in (-5.0, -8.0, -9.0, -10.0):
    t = torch.tensor(x, dtype=torch.float64)
    every = (
        torch.special.ndtr(t),
        0.5 * torch.special.erfc(-t / 2**0.5),
        torch.special.log_ndtr(t).exp(),
        scipy.special.ndtr(x),
    )
    print(x, *(f"{float(v):.3e}" for v in every))
print(float(torch.special.ndtri(torch.special.ndtr(torch.tensor(-9.0, dtype=torch.float64)))))
PY
"$work/venv/bin/python" "$work/ask.py" > "$work/seen"
cat "$work/seen"
diff "$work/seen" - <<'SEEN'
-5.0 2.867e-07 2.867e-07 2.867e-07 2.867e-07
-8.0 6.106e-16 6.221e-16 6.221e-16 6.221e-16
-9.0 0.000e+00 1.129e-19 1.129e-19 1.129e-19
-10.0 0.000e+00 7.620e-24 7.620e-24 7.620e-24
-inf
SEEN

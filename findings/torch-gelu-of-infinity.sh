#!/usr/bin/env bash
# PyTorch: gelu of infinity is infinity for a tensor of one element, and NaN for a tensor of two.
#
# Expected: gelu(inf) is inf, and gelu(3e38) is 3e38, in a tensor of any size, as silu's and the tanh form's are.
# Seen with torch 2.13.0 (CPU; the same in 2.9.1 and 2.14.1): a float32 tensor of two or more elements goes to oneDNN, whose
# product overflows before it is halved: 3e38 becomes inf, and inf becomes NaN. A tensor of one element, float64, and oneDNN
# switched off (torch.backends.mkldnn.flags) have inf and 3e38. So a hunt for NaN ends at gelu, where nothing is wrong but a value
# that grew too large before it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "torch==${TORCH:-2.13.0}" numpy==2.4.6
cat > "$work/ask.py" <<'PY'
import math
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
print("torch", torch.__version__.partition("+")[0])


def shown(count: int, dtype: torch.dtype, **how: str) -> list[str]:
    return [f"{F.gelu(torch.full((count,), v, dtype=dtype), **how)[-1]:.3g}" for v in (math.inf, 3e38)]


print("one element", *shown(1, torch.float32))
print("two elements", *shown(2, torch.float32))
print("two, float64", *shown(2, torch.float64))
print("two, by tanh", *shown(2, torch.float32, approximate="tanh"))
with torch.backends.mkldnn.flags(enabled=False):
    print("two, without oneDNN", *shown(2, torch.float32))
PY
"$work/venv/bin/python" "$work/ask.py" > "$work/seen"
cat "$work/seen"
tail -n +2 "$work/seen" | diff - <(cat <<'SEEN'
one element inf 3e+38
two elements nan inf
two, float64 inf 3e+38
two, by tanh inf 3e+38
two, without oneDNN inf 3e+38
SEEN
)

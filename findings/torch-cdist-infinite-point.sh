#!/usr/bin/env bash
# PyTorch: the distance to a point at infinity is infinity beside 24 other points, and NaN beside 25.
#
# Expected: cdist is a function of two points: a row of the result does not depend on how many rows there are, and (inf, 0) is
# infinitely far from (0, 0).
# Seen with torch 2.13.0 (CPU): with 25 rows or fewer the differences are taken, and the distance is inf; from 26 rows on it is worked out
# as the root of |a|² - 2ab + |b|², which is inf - inf = NaN for every pair with that point whose other coordinate has the
# sign that makes it so, and stays inf for others. compute_mode says so of speed, the documentation not of infinities.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "torch==${TORCH:-2.13.0}" numpy==2.4.6
cat > "$work/ask.py" <<'PY'
import torch

torch.set_num_threads(1)
print("torch", torch.__version__.partition("+")[0])
for rows in (25, 26):
    points = torch.ones(rows, 2, dtype=torch.float64)
    points[0, 0] = torch.inf
    far = torch.cdist(points, torch.ones(1, 2, dtype=torch.float64))
    near = torch.cdist(points, -torch.ones(1, 2, dtype=torch.float64))
    print(rows, "rows: from (1, 1)", far[0].item(), "from (-1, -1)", near[0].item())
PY
"$work/venv/bin/python" "$work/ask.py" > "$work/seen"
cat "$work/seen"
tail -n +2 "$work/seen" | diff - <(cat <<'SEEN'
25 rows: from (1, 1) inf from (-1, -1) inf
26 rows: from (1, 1) nan from (-1, -1) inf
SEEN
)

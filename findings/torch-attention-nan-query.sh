#!/usr/bin/env bash
# PyTorch: attention of a query that is NaN is 0 where there are few keys, and NaN where there are many.
#
# Expected: softmax of scores that are NaN is NaN, so that the output for that query is NaN, whatever the number of keys is.
# Seen with torch 2.13.0 (CPU, x86): with 3 keys the output is 0 and the log of the sums, which is saved for the gradient, is 0 as well;
# with 64 keys both are NaN. The fused kernel looks for the largest score by `max(largest, score)`, which passes NaN over
# in what is left beside whole vectors of scores; a largest score of minus infinity then counts as "everything is masked out", whose
# output is 0. An infinite query and 3 keys give 0, too. With a mask of zeros, and by the same formula in three dimensions (which
# is not fused), all are NaN. So a network that has diverged looks sound behind its first attention, if its sentences are short.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "torch==${TORCH:-2.13.0}" numpy==2.4.6
cat > "$work/ask.py" <<'PY'
import torch
from torch.nn.functional import scaled_dot_product_attention as attention

torch.set_num_threads(1)
print("torch", torch.__version__.partition("+")[0])


def shown(value: float, keys: int, how: str = "fused") -> str:
    torch.manual_seed(0)
    query, key, value_ = (torch.randn(1, 1, n, 4) for n in (1, keys, keys))
    query[0, 0, 0, 0] = value
    mask = torch.zeros(1, keys) if how == "mask" else None
    if how == "composed":
        query, key, value_ = (x[0] for x in (query, key, value_))
    out = attention(query, key, value_, mask).flatten()
    return "NaN" if out.isnan().all() else "0" if (out == 0).all() else "something else"


for keys in (3, 64):
    for how in ("fused", "mask", "composed"):
        print(keys, "keys,", how + ":", "NaN gives", shown(torch.nan, keys, how))
print("3 keys, fused: infinity gives", shown(torch.inf, 3))
PY
"$work/venv/bin/python" "$work/ask.py" > "$work/seen"
cat "$work/seen"
tail -n +2 "$work/seen" | diff - <(cat <<'SEEN'
3 keys, fused: NaN gives 0
3 keys, mask: NaN gives NaN
3 keys, composed: NaN gives NaN
64 keys, fused: NaN gives NaN
64 keys, mask: NaN gives NaN
64 keys, composed: NaN gives NaN
3 keys, fused: infinity gives 0
SEEN
)

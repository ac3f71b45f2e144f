#!/usr/bin/env bash
# PyTorch: the gradient of hardtanh at NaN is 0 or 1, by the element's place in the tensor.
#
# Expected: x.grad has one value for all elements of a tensor of NaN, whichever it is (relu has 1, clamp 0).
# Seen with torch 2.13.0 (CPU), a tensor of 1001 elements, one thread: the gradients of hardtanh, relu6, hardshrink and softshrink
# are 0 for the elements that vector instructions take, and 1 for the rest at the end, which is taken one by one; those of
# elu and hardswish are NaN and 1. The tests for the two sides of a kink are written the other way round in the two
# loops (`x <= a or x >= b` and `x > a and x < b`), and NaN fails each. How many elements are at the end depends on the
# processor; that there are both values does not, where there are vector instructions at all.
# relu, leaky_relu, threshold, hardsigmoid and clamp have one value.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "torch==${TORCH:-2.13.0}" numpy==2.4.6
cat > "$work/ask.py" <<'PY'
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
print("torch", torch.__version__.partition("+")[0])
functions = {
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "elu": F.elu,
    "hardswish": F.hardswish,
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "hardsigmoid": F.hardsigmoid,
    "clamp": lambda x: x.clamp(-1, 1),
}
for name, function in functions.items():
    x = torch.full((1001,), float("nan"), requires_grad=True)
    function(x).sum().backward()
    print(name, *sorted({f"{v:.2f}" for v in x.grad.tolist()}))
PY
"$work/venv/bin/python" "$work/ask.py" > "$work/seen"
cat "$work/seen"
tail -n +2 "$work/seen" | diff - <(cat <<'SEEN'
hardtanh 0.00 1.00
relu6 0.00 1.00
hardshrink 0.00 1.00
softshrink 0.00 1.00
elu 1.00 nan
hardswish 1.00 nan
relu 1.00
leaky_relu 0.01
threshold 1.00
hardsigmoid 0.00
clamp 0.00
SEEN
)

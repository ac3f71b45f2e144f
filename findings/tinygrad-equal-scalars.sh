#!/usr/bin/env bash
# tinygrad: the gradients of two parameters are added to each other when the two happen to have the same value.
#
# Guess: d(2*w + 5*b) by w is 2 and by b is 5, wherever w and b are.
# Seen with tinygrad 0.14.0: at w = 3, b = 4 the gradients are 2 and 5. At w = 3, b = 3 both are 7. A scalar
# `Tensor(3.0, dtype=dtypes.float32)` is a constant of the graph, and equal constants are one node, so that w and b are one
# variable. A factor that is written in the program is that node too: x*3.0 has slope 6 at x = 3, and 3 elsewhere.
# Tensors of one element, `Tensor([3.0])`, are buffers and are not concerned.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "tinygrad==${TINYGRAD:-0.14.0}"
cat > "$work/ask.py" <<'PY'
from tinygrad import Tensor, dtypes


def scalar(value):
    return Tensor(value, dtype=dtypes.float32)


def slopes(function, *leaves):
    value = function(*leaves)
    value = value if value.shape == () else value.sum()
    return [grad.tolist() for grad in value.gradient(*leaves)]


def line(w, b):
    return 2 * w + 5 * b


print("w = 3, b = 4:", slopes(line, scalar(3.0), scalar(4.0)))
print("w = 3, b = 3:", slopes(line, scalar(3.0), scalar(3.0)))
print("w = [3], b = [3]:", slopes(line, Tensor([3.0]), Tensor([3.0])))
print("x * t(3), x = 2:", slopes(lambda x: x * scalar(3.0), scalar(2.0)))
print("x * t(3), x = 3:", slopes(lambda x: x * scalar(3.0), scalar(3.0)))
PY
DEV=PYTHON "$work/venv/bin/python" "$work/ask.py" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
w = 3, b = 4: [2.0, 5.0]
w = 3, b = 3: [7.0, 7.0]
w = [3], b = [3]: [[2.0], [5.0]]
x * t(3), x = 2: [3.0]
x * t(3), x = 3: [6.0]
SEEN
echo "as it was seen"

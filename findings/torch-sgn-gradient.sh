#!/usr/bin/env bash
# PyTorch: after the backward pass of torch.sgn of real numbers, `x.grad` is a tensor that nothing can write.
#
# Expected: x.grad is tensor([0., 0.]), as after torch.sign, and the next backward pass adds to it.
# Seen with torch 2.13.0 and 2.14.1 (CPU): x.grad prints as tensor([0., 0.]), but it is one of the "ZeroTensors" of
# forward mode, which have no memory: `.numpy()` and `.tolist()` raise, a second backward pass raises
# "ZeroTensors are immutable", and so does `optimizer.zero_grad(set_to_none=False)`. torch.sign is not concerned.
# The rule of sgn for real numbers returns such a tensor, and the first gradient of a leaf is taken as it comes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "torch==${TORCH:-2.13.0}" numpy==2.4.6
cat > "$work/ask.py" <<'PY'
import torch


def refusal(call):
    try:
        call()
    except RuntimeError as error:
        return str(error).strip().partition(".")[0]
    return "no error"


def gradient_of(function):
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    function(x).sum().backward()
    return x


x = gradient_of(torch.sgn)
optimizer = torch.optim.SGD([x], lr=0.1)
print("torch", torch.__version__.partition("+")[0])
print("grad:", x.grad)
print("numpy:", refusal(lambda: x.grad.numpy()))
print("tolist:", refusal(lambda: x.grad.tolist()))
print("second pass:", refusal(lambda: (2 * x).sum().backward()))
print("zero_grad:", refusal(lambda: optimizer.zero_grad(set_to_none=False)))
y = gradient_of(torch.sign)
(2 * y).sum().backward()
print("sign:", y.grad)
PY
"$work/venv/bin/python" "$work/ask.py" | tee "$work/seen.txt"
diff <(tail -n +2 "$work/seen.txt") - <<'SEEN'
grad: tensor([0., 0.])
numpy: Cannot convert a ZeroTensor to numpy
tolist: tolist() shouldn't be called on a tensor with unallocated storage
second pass: ZeroTensors are immutable
zero_grad: ZeroTensors are immutable
sign: tensor([2., 2.])
SEEN
echo "as it was seen"

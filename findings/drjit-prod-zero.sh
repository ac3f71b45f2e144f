#!/usr/bin/env bash
# Dr.Jit: the gradient of prod is zero everywhere as soon as one factor is zero.
#
# Guess: a product is a polynomial: the gradient of prod([2, 0, 3]) is [0, 6, 0]. A rule that divides the product by each
# factor would say nan in the middle, as autograd does, which one notices.
# Seen with drjit 1.5.0: [0, 0, 0], without a word, by backward and by forward mode. x*y*z of the same numbers has
# the gradient [0, 6, 0], and prod next to zero, at [2, 1e-300, 3], has the 6 too. Descent that meets a zero factor stays there.
# (Its LLVM backend is asked, which needs a libLLVM.so on the machine: Debian's libllvm14 or newer.)
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "drjit==${DRJIT:-1.5.0}"
cat > "$work/ask.py" <<'PY'
import drjit as dr
from drjit.llvm.ad import Float64


def numbers(array):
    return [float(one) for one in array]


def backward(factors):
    x = Float64(factors)
    dr.enable_grad(x)
    dr.backward(dr.prod(x))
    return numbers(dr.grad(x))


def along_the_middle(factors):
    x = Float64(factors)
    dr.enable_grad(x)
    dr.set_grad(x, Float64(0, 1, 0))
    return numbers(dr.forward_to(dr.prod(x)))


def written_out(factors):
    leaves = [Float64([one]) for one in factors]
    for leaf in leaves:
        dr.enable_grad(leaf)
    dr.backward(leaves[0] * leaves[1] * leaves[2])
    return [numbers(dr.grad(leaf))[0] for leaf in leaves]


print("prod([2, 0, 3]), backward:", backward([2, 0, 3]))
print("prod([2, 0, 3]), forward by the middle:", along_the_middle([2, 0, 3]))
print("2*0*3:", written_out([2, 0, 3]))
print("prod([2, 1e-300, 3]), middle:", round(backward([2, 1e-300, 3])[1], 9))
PY
"$work/venv/bin/python" "$work/ask.py" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
prod([2, 0, 3]), backward: [0.0, 0.0, 0.0]
prod([2, 0, 3]), forward by the middle: [0.0]
2*0*3: [0.0, 6.0, 0.0]
prod([2, 1e-300, 3]), middle: 6.0
SEEN
echo "as it was seen"

#!/usr/bin/env bash
# PyTorch: whether the border of a padded convolution is NaN depends on how many images are in the batch.
#
# Expected: an image has the same result alone and beside others. With an infinite weight either 0·inf = NaN counts where the kernel
# lies on the padding, in every batch, or it counts in none.
# Seen with torch 2.13.0 (CPU, x86): a float32 image alone goes to im2col and a product of matrices, which multiplies the padded zeros:
# 7 of 16 elements are NaN. Two equal images go to oneDNN, which leaves the padding out: these 7 are finite, and no element is NaN.
# float64, and oneDNN switched off, have 7 NaN for each image. So the same weights and image have other elements NaN when it is
# evaluated alone than in the batch, and a hunt for the first NaN ends at another layer.
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


def shown(images: int, dtype: torch.dtype) -> str:
    x = torch.ones(images, 1, 4, 4, dtype=dtype)
    w = torch.ones(1, 1, 3, 3, dtype=dtype)
    w[0, 0, 0, 0] = torch.inf
    y = F.conv2d(x, w, padding=1)[0]
    return f"{int(y.isnan().sum())} NaN, {int(y.isinf().sum())} infinite, corner {y[0, 0, 0]:.0f}"


print("one image:", shown(1, torch.float32))
print("two images:", shown(2, torch.float32))
print("two, float64:", shown(2, torch.float64))
with torch.backends.mkldnn.flags(enabled=False):
    print("two, without oneDNN:", shown(2, torch.float32))
PY
"$work/venv/bin/python" "$work/ask.py" > "$work/seen"
cat "$work/seen"
tail -n +2 "$work/seen" | diff - <(cat <<'SEEN'
one image: 7 NaN, 9 infinite, corner nan
two images: 0 NaN, 9 infinite, corner 4
two, float64: 7 NaN, 9 infinite, corner nan
two, without oneDNN: 7 NaN, 9 infinite, corner nan
SEEN
)

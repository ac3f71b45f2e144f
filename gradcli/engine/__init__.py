"""The engine: tensors, the backward graph that operations record, and the pass over it."""

import warnings

import numpy as np

# PyTorch is silent about log(0) and 0/0; NumPy's warnings about them would name our lines.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradcli\.(engine|operators)")

# glibc hands each freed array of 128 KiB or more back to the system, and then a tape's time is page
# faults. Freeing a large one raises that threshold once for all (its most is 32 MiB); nothing is touched.
np.empty(31 << 20, np.uint8)

"""The engine: tensors, the backward graph that operations record, and the pass over it."""

import warnings

# PyTorch is silent about log(0) and 0/0; NumPy's warnings about them would name our lines.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradcli\.(engine|operators)")

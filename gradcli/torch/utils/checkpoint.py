"""torch.utils.checkpoint: forget what a forward call saved, and run it again for the backward pass.

Two ways, as in PyTorch. The reentrant one is a custom `Function` whose backward runs the call again
and a pass over its graph. The other one packs every saved tensor into an empty `_Slot`; the first
slot that a pass unpacks runs the call again, which fills them all for that pass.
"""

from __future__ import annotations

from gradcli.engine.core.checkpointing import (
    CheckpointError,
    CheckpointFunction,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

# -- with a pass inside the pass ------------------------------------------------------------------


# -- without --------------------------------------------------------------------------------------


__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "GraphExecGroup",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

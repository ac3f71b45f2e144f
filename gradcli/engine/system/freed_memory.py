"""Memory that is freed and asked for again, block after block."""

_KEPT = 16 << 20  # bytes


def keep_freed_blocks() -> None:
    """Have blocks of up to 16 MiB, once they are freed, kept for the next ones instead of given back.

    glibc maps a block of more than 128 KiB afresh, so that the kernel clears its pages each time, until a
    larger one has been freed (mallopt(3), M_MMAP_THRESHOLD: the threshold is dynamic). One that nobody
    touches does it. Other allocators do not mind.
    """
    import numpy as np

    np.empty(_KEPT, np.uint8)


__all__ = ["keep_freed_blocks"]

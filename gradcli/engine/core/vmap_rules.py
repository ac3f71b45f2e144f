"""A custom Function in a batch: by its own `vmap`, or on the batched arrays as they are.

PyTorch takes a Function through the open transforms from the innermost out. A derivative records it; a
`vmap` hands it to its `vmap` rule, which sees the entries as one more dimension and runs outside of the
batch. On one tape that is: where a derivative was opened inside of the batch, the operation is recorded in
the batch, with its own `backward`, and the rule is how it runs. Where none was, what the rule does is
what is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gradcli.engine.core import batch_levels, modes
from gradcli.engine.core.batched_arrays import BatchLevel, batch_of
from gradcli.engine.core.tensor import Tensor

NO_CONTEXT = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it "
    "must override the setup_context staticmethod. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
_NO_RULE = (
    "You tried to vmap over {}, but it does not have vmap support. Please override and implement the "
    "vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
_TWO_RULES = (
    "You tried to vmap over {}, but it has both generate_vmap_rule=True and an overridden vmap "
    "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to "
    "avoid ambiguity. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
_TWO_RETURNS = (
    "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
    "compatible with the output. Got {}"
)
_OTHER_STRUCTURE = (
    "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. "
    "Expected out_dims={} to be compatible with the structure of `output`. out_dims has structure {} "
    "but output has structure {}. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told of the batch."""

    batch_size: int
    randomness: str


def mapped_by_itself(function: Any, base: Any, args: tuple[Any, ...]) -> BatchLevel | None:
    """The innermost open batch that arguments differ in, where the Function has a rule of its own for it.

    base: the rule of a Function without one. RuntimeError for a Function that may not be in a batch.
    """
    own = function.vmap is not base
    if own and function.generate_vmap_rule:
        raise RuntimeError(_TWO_RULES.format(function.__name__))
    if not own and not function.generate_vmap_rule:
        raise RuntimeError(_NO_RULE.format(function.__name__))
    found = batch_of(args) if own else ()
    return max(found, key=lambda level: level.number, default=None)


def by_rule(function: Any, args: tuple[Any, ...], level: BatchLevel) -> Any:
    """The operation on a batch as the Function's `vmap` has it: outside of that batch."""
    dims = tuple(0 if level in batch_of(a) else None for a in args)
    whole = [
        a if d is None else batch_levels.remove_batch_dim(a, 0, level)
        for a, d in zip(args, dims, strict=True)
    ]
    outside = tuple(each for each in modes.current().levels if each is not level)
    with modes.changed(levels=outside):
        found = function.vmap(VmapInfo(level.size, level.randomness), dims, *whole)
    if not isinstance(found, tuple):
        raise RuntimeError(_TWO_RETURNS.format(f"a {type(found)} instead"))
    if len(found) != 2:
        raise RuntimeError(_TWO_RETURNS.format(f"{len(found)} returns instead"))
    made, places = found
    if not isinstance(made, tuple):
        if isinstance(places, tuple):
            raise RuntimeError(_OTHER_STRUCTURE.format(places, _structure(places), "*"))
        return _in_batch(made, places, level)
    if not isinstance(places, tuple):
        places = (places,) * len(made)
    if len(places) != len(made):
        shown = _structure(places), _structure(made)
        raise RuntimeError(_OTHER_STRUCTURE.format(places, *shown))
    return tuple(_in_batch(o, d, level) for o, d in zip(made, places, strict=True))


@contextmanager
def reopened(wanted: frozenset[BatchLevel]) -> Iterator[None]:
    """Inside, batches are open as they were when the operation ran: what `backward` calls is in them too."""
    open_now = modes.current().levels
    missing = sorted(wanted.difference(open_now), key=lambda level: level.number)
    outer = modes.transforms.set(modes.transforms.get() + len(missing))
    before = modes.change(levels=(*open_now, *missing))
    try:
        yield
    finally:
        modes.restore(before)
        modes.transforms.reset(outer)


def _in_batch(output: Any, dim: int | None, level: BatchLevel) -> Any:
    if dim is None or not isinstance(output, Tensor):
        return output
    return batch_levels.add_batch_dim(output, dim % output.ndim, level)


def _structure(items: tuple[Any, ...]) -> str:
    """A flat tuple's structure, as PyTorch shows it."""
    return f"TreeSpec(tuple, None, [{(',' + chr(10) + '  ').join('*' * len(items))}])"

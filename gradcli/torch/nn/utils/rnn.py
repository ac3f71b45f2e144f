"""torch.nn.utils.rnn: sequences of unequal length, padded or packed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve


class PackedSequence(NamedTuple):
    """The elements of several sequences step by step, the longest sequence first.

    data: (elements, …). batch_sizes: how many sequences there are at each step. sorted_indices: which of the
    caller's sequences each is, or None; unsorted_indices: the other way round.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    @property
    def is_cuda(self) -> bool:
        """False: there is the CPU alone."""
        return False

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with data of another dtype."""
        return self._replace(data=self.data.to(*args, **kwargs))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences that are padded to one length: (steps, batch, …), or (batch, steps, …).

    lengths: of each. enforce_sorted: whether they come longest first; else they are sorted. Raises
    RuntimeError in PyTorch's words.
    """
    tensor, order = resolve("tensor"), None
    given = [int(n) for n in lengths]
    if not enforce_sorted:
        sorted_ = tensor(given).sort(descending=True)
        order, given = sorted_.indices, sorted_.values.tolist()
        input = input.index_select(0 if batch_first else 1, order)
    steps = input.transpose(0, 1) if batch_first else input
    if len(given) != steps.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(given)} "
            f"(batch_size={steps.shape[1]})"
        )
    if given and min(given) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that "
            "is <= 0"
        )
    if any(a < b for a, b in itertools.pairwise(given)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
            "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
            "requirement if you do not need ONNX exportability."
        )
    sizes = [sum(n > t for n in given) for t in range(given[0])]
    data = resolve("cat")([steps[t, :size] for t, size in enumerate(sizes)])
    return PackedSequence(data, tensor(sizes), order, inverse(order))


def inverse(order: Tensor | None) -> Any:
    """The indices that undo an order."""
    return None if order is None else order.argsort()


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """(the sequences padded to one length, the lengths): the inverse of `pack_padded_sequence`."""
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(sizes)}"
        )
    data, rest = sequence.data, sequence.data.shape[1:]
    steps = [
        resolve("cat")([part, part.new_full((sizes[0] - size, *rest), padding_value)])
        for part, size in zip(data.split(sizes), sizes, strict=True)
    ]
    empty = data.new_full((sizes[0], *rest), padding_value)
    steps += [empty] * ((total_length or len(sizes)) - len(sizes))
    made = resolve("stack")(steps)
    lengths = resolve("tensor")([sum(k < size for size in sizes) for k in range(sizes[0])])
    if sequence.unsorted_indices is not None:
        made = made.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return made.transpose(0, 1) if batch_first else made, lengths


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors of unequal length."""
    lengths = [len(s) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of their own lengths."""
    each = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [one[: int(n)] for one, n in zip(each, lengths, strict=True)]


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0
) -> Any:
    """Tensors of unequal length as one, padded at their ends."""
    longest = max(len(s) for s in sequences)
    rest = sequences[0].shape[1:]
    made = sequences[0].new_full((len(sequences), longest, *rest), padding_value)
    for k, sequence in enumerate(sequences):
        made[k, : len(sequence)] = sequence
    return made if batch_first else made.transpose(0, 1)

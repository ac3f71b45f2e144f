"""torch.utils.data: data sets, the order in which they are read, and batches of them, in this process."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.random import Generator
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve

__path__: list[str] = []  # so that `from torch.utils.data.dataset import Dataset` looks for more


class Dataset:
    """Samples by their number: a subclass has `__getitem__` and, as a rule, `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])

    def __class_getitem__(cls, item: Any) -> type[Dataset]:
        return cls


class IterableDataset(Dataset):
    """Samples one after the other: a subclass has `__iter__`."""


class TensorDataset(Dataset):
    """Rows of tensors of equal length."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(t) != len(tensors[0]) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class ConcatDataset(Dataset):
    """One data set after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __getitem__(self, index: int) -> Any:
        index += len(self) if index < 0 else 0
        for dataset in self.datasets:
            if index < len(dataset):
                return dataset[index]
            index -= len(dataset)
        raise IndexError("index out of range")

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class StackDataset(Dataset):
    """Samples of several data sets side by side, as a tuple or, of named ones, a dict."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "Supported either tuple-like or dict-like input, got both"
                if args
                else "At least one dataset should be passed"
            )
        self.datasets: Any = args or kwargs
        sizes = {len(each) for each in args or kwargs.values()}
        if len(sizes) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = sizes.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)

    def __len__(self) -> int:
        return self._length


class ChainDataset(IterableDataset):
    """The samples of one stream after those of another."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class Subset(Dataset):
    """The samples of these numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[k] for k in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset]:
    """Parts of these lengths, or shares that sum to 1, of a data set in a random order."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = [math.floor(len(dataset) * share) for share in lengths]
        for k in range(len(dataset) - sum(sizes)):
            sizes[k % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = resolve("randperm")(sum(sizes), generator=generator).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


# -- orders -----------------------------------------------------------------------------------------
def _seed(generator: Generator | None = None) -> int:
    empty = resolve("empty")((), dtype=resolve("int64"))
    return int(empty.random_(generator=generator))


class Sampler:
    """Numbers of samples in an order."""

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.data_source)


class SequentialSampler(Sampler):
    """From the first to the last."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))


class RandomSampler(Sampler):
    """In a random order, or with replacement."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(data_source)
        self.replacement, self.generator = replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self) -> Iterator[int]:
        count, generator = len(self.data_source), self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(_seed())
        if self.replacement:
            for start in range(0, self.num_samples, 32):
                size = min(32, self.num_samples - start)
                draw = resolve("randint")(count, (size,), generator=generator)
                yield from draw.tolist()
            return
        for start in range(0, self.num_samples, count):
            order = resolve("randperm")(count, generator=generator).tolist()
            yield from order[: self.num_samples - start]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given numbers in a random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        order = resolve("randperm")(len(self.indices), generator=self.generator)
        return iter([self.indices[k] for k in order.tolist()])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Numbers that are drawn by weights."""

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        self.weights = resolve("as_tensor")(weights, dtype=resolve("float64"))
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        draw = resolve("multinomial")(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from draw.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size numbers; drop_last leaves out a shorter last one."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


def get_worker_info() -> None:
    """None: batches are made in the program's own process."""


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples as one batch: tensors stacked, numbers as tensors, tuples and dicts item by item."""
    first = batch[0]
    if isinstance(first, Tensor):
        return resolve("stack")(list(batch), 0)
    if isinstance(first, np.ndarray | np.generic):
        return resolve("stack")([resolve("as_tensor")(np.asarray(b)) for b in batch], 0)
    if isinstance(first, float):
        return resolve("tensor")(batch, dtype=resolve("float64"))
    if isinstance(first, int):
        return resolve("tensor")(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple | list):
        made = [default_collate(items) for items in zip(*batch, strict=True)]
        return type(first)(*made) if hasattr(first, "_fields") else made
    if isinstance(first, str | bytes):
        return batch
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{type(first)}"
    )


class DataLoader:
    """Batches of a data set. Everything is read in this process, whatever num_workers says."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.generator = num_workers, generator
        self._streams = isinstance(dataset, IterableDataset)
        if sampler is None and not self._streams:
            random = RandomSampler(dataset, generator=generator)
            sampler = random if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and not self._streams:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        alone = batch_size is None and batch_sampler is None
        self.collate_fn = collate_fn or ((lambda sample: sample) if alone else default_collate)

    def __iter__(self) -> Iterator[Any]:
        _seed(self.generator)  # PyTorch draws a seed for its workers here
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        if self._streams:
            samples = iter(self.dataset)
            while batch := list(itertools.islice(samples, self.batch_size or 1)):
                if self.batch_size is None:
                    yield self.collate_fn(batch[0])
                elif len(batch) == self.batch_size or not self.drop_last:
                    yield self.collate_fn(batch)
        elif self.batch_sampler is not None:
            for numbers in self.batch_sampler:
                yield self.collate_fn([self.dataset[k] for k in numbers])
        else:
            for number in self.sampler:
                yield self.collate_fn(self.dataset[number])

    def __len__(self) -> int:
        if self._streams:
            count = len(self.dataset)
            size = self.batch_size or 1
            return count // size if self.drop_last else -(-count // size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)

"""Random tensors: PyTorch's numbers, from `gradcli.engine.random`.

Rows that fill in place exist for their nodes: what they overwrite gets a gradient of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine import dtypes, random
from gradcli.engine.random import Generator
from gradcli.engine.tensor import Tensor
from gradcli.engine.views import inplace
from gradcli.operators.arguments import (
    OPTIONS,
    OUT,
    finish,
    integer,
    invalid,
    kind_of,
    listed,
    number,
    shape_of,
    size_error,
    sizes,
    tensor_argument,
)
from gradcli.operators.helpers import zeros_like
from gradcli.operators.layout import axes_of, laid_out
from gradcli.operators.table import Array, function, operator

Kind = np.dtype[Any]

_GENERATOR = "torch.Generator generator = None"
_SIZED = (
    f"tuple of ints size, *, torch.Generator generator, {OUT}, {OPTIONS}",
    f"tuple of ints size, *, {OUT}, {OPTIONS}",
)


def _checked(name: str, generator: Any) -> Generator | None:
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(
            f"{name}(): argument 'generator' must be torch.Generator, not "
            f"{type(generator).__name__}"
        )
    return generator


# -- state ----------------------------------------------------------------------------------------
@function(method=False)
def manual_seed(seed: Any) -> Generator:
    """Start the default generator's sequence of this seed."""
    return random.manual_seed(seed)


@function(method=False)
def initial_seed() -> int:
    """The seed of the default generator."""
    return random.initial_seed()


@function(method=False)
def seed() -> int:
    """Seed the default generator from the operating system and return the seed."""
    return random.seed()


@function(method=False)
def get_rng_state() -> Tensor:
    """The default generator's state, a byte tensor."""
    return random.get_rng_state()


@function(method=False)
def set_rng_state(new_state: Any) -> None:
    """Set the default generator's state."""
    random.set_rng_state(new_state)


# -- by size --------------------------------------------------------------------------------------
def _sized(
    name: str,
    draw: Callable[..., Array],
    size: tuple[Any, ...],
    generator: Any,
    dtype: Any,
    options: tuple[Any, ...],
    named: dict[str, Any],
) -> Tensor:
    if (not size and "size" not in named) or (size and "size" in named):
        raise invalid(name, size, named, *_SIZED)
    if generator is not None and not isinstance(generator, Generator):
        raise invalid(name, size, {**named, "generator": generator}, *_SIZED)
    shape = sizes(name, size, named)
    array = draw(shape, kind_of(name, dtype, dtypes.default.real), generator)
    return finish(name, array, *options)


@function(method=False, samples=("rand(2, 3)",))
@listed()
def rand(
    *size: Any,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Numbers uniform in [0, 1); the size is given as ints or as one sequence."""
    options = (requires_grad, device, layout, pin_memory)
    return _sized("rand", random.rand, size, generator, dtype, options, named)


@function(method=False, samples=("randn(2, 3)",))
@listed()
def randn(
    *size: Any,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Standard normal numbers; the size is given as ints or as one sequence."""
    options = (requires_grad, device, layout, pin_memory)
    return _sized("randn", random.randn, size, generator, dtype, options, named)


@function(method=False, samples=("randint(0, 10, (3,))",))
@listed("low", "high", "size")
def randint(
    *args: Any,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Integers uniform in [low, high): `randint([low,] high, size)`."""
    short = ("high", "size")
    names = short if len(args) + len(named) <= 2 and "low" not in named else ("low", *short)
    given = dict(zip(names, args, strict=False))
    fits = len(args) <= len(names) and not given.keys() & named.keys()
    given |= named
    if not fits or given.keys() != {*names}:
        forms = [
            f"{'int low, ' if low else ''}int high, tuple of ints size, *, {more}{OUT}, {OPTIONS}"
            for low in (False, True)
            for more in ("torch.Generator generator, ", "")
        ]
        raise invalid("randint", args, named, *forms)
    bounds = [integer("randint", given[n], n, i + 1) for i, n in enumerate(names[:-1])]
    size = given["size"]
    if not isinstance(size, (tuple, list)):
        raise size_error("randint", len(names), size)
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    kind = kind_of("randint", dtype, np.dtype(np.int64))
    source = _checked("randint", generator)
    array = random.randint(shape_of("randint", size), kind, low, high, source)
    return finish("randint", array, requires_grad, device, layout, pin_memory)


@function(method=False, samples=("randperm(5)",))
def randperm(
    n: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The integers below n in random order."""
    count = integer("randperm", n, "n", 1)
    kind = kind_of("randperm", dtype, np.dtype(np.int64))
    array = random.randperm(count, kind, _checked("randperm", generator))
    return finish("randperm", array, requires_grad, device, layout, pin_memory)


# -- like another tensor --------------------------------------------------------------------------
def _drawn_like(array: Array, kind: Kind, draw: Callable[..., Array], *args: Any) -> Array:
    """Draw values in the order of the memory of an array."""
    axes = axes_of(array)
    return laid_out(draw((array.size,), kind, *args), axes, array.shape)


def _normal_like(
    array: Array, kind: Kind, mean: float, std: float, generator: Generator | None
) -> Array:
    axes = axes_of(array)
    values = random.normal((array.size,), kind, mean, std, generator, contiguous=axes is None)
    return laid_out(values, axes, array.shape)


@function(method=False, samples=("rand_like(randn(2, 3))",))
def rand_like(
    input: Array,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Numbers uniform in [0, 1) in the shape and dtype of `input`."""
    source = tensor_argument("rand_like", input).array
    kind = kind_of("rand_like", dtype, source.dtype)
    draw = _checked("rand_like", generator)
    array = _drawn_like(source, kind, random.rand, draw)
    return finish("rand_like", array, requires_grad, device, layout, pin_memory)


@function(method=False, samples=("randn_like(randn(2, 3))",))
def randn_like(
    input: Array,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Standard normal numbers in the shape and dtype of `input`."""
    source = tensor_argument("randn_like", input).array
    kind = kind_of("randn_like", dtype, source.dtype)
    array = _normal_like(source, kind, 0.0, 1.0, _checked("randn_like", generator))
    return finish("randn_like", array, requires_grad, device, layout, pin_memory)


@function(method=False, samples=("randint_like(randn(2, 3), 0, 10)",))
def randint_like(
    input: Array,
    low: Any = None,
    high: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Integers uniform in [low, high) in the shape and dtype of `input`; one bound is `high`."""
    source = tensor_argument("randint_like", input).array
    bounds = [b for b in (low, high) if b is not None]
    ints = [integer("randint_like", b, "high", 2) for b in bounds]
    if not ints:
        raise TypeError('randint_like() missing 1 required positional arguments: "high"')
    first, last = ints if len(ints) == 2 else (0, ints[0])
    kind = kind_of("randint_like", dtype, source.dtype)
    draw = _checked("randint_like", generator)
    array = _drawn_like(source, kind, random.randint, first, last, draw)
    return finish("randint_like", array, requires_grad, device, layout, pin_memory)


# -- with parameters that are tensors -------------------------------------------------------------
def _standard(mean: Array, std: Array, kind: Kind, generator: Generator | None) -> Array:
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std))
    if not bool(np.all(np.asarray(std) >= 0)):
        raise RuntimeError(
            "normal expects all elements of std >= 0.0"
            if np.ndim(std)
            else f"normal expects std >= 0.0, but found std {float(std):g}"
        )
    values = random.normal(shape, kind, 0.0, 1.0, generator)
    return values * np.asarray(std).astype(kind) + np.asarray(mean).astype(kind)


def _normal_mean(mean: Array, *, std: Any = 1.0, generator: Any = None) -> Array:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    return random.normal(np.shape(mean), mean.dtype, 0.0, std, generator) + mean


def _normal_std(std: Array, *, mean: Any = 0.0, generator: Any = None) -> Array:
    return _standard(mean, std, std.dtype, generator)


def _normal_both(mean: Array, std: Array, *, generator: Any = None) -> Array:
    return _standard(mean, std, mean.dtype, generator)


def _bernoulli(input: Array, *, generator: Any = None) -> Array:
    if input.dtype.kind != "f":
        word = dtypes.SCALAR_NAMES[dtypes.of(input.dtype).name]
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_p_\" not implemented for '{word}'")
    return random.bernoulli(np.shape(input), input.dtype, np.asarray(input), generator)


@operator(_normal_mean, "NormalBackward1", public=False, batch="random")
class normal_mean:
    mean = lambda g, mean_sym_sizes: zeros_like(g)


@operator(_normal_std, "NormalBackward2", public=False, batch="random")
class normal_std:
    std = lambda g, std_sym_sizes: zeros_like(g)


@operator(_normal_both, "NormalBackward3", public=False, batch="random")
class normal_both:
    mean = lambda g, mean_sym_sizes: zeros_like(g)
    std = lambda g, std_sym_sizes: zeros_like(g)


@operator(_bernoulli, "BernoulliBackward0", public=False, batch="random")
class bernoulli_row:
    input = zeros_like


OF_TENSORS: tuple[Any, ...] = (normal_mean, normal_std, normal_both)
OF_CHANCES: tuple[Any, ...] = (bernoulli_row,)


@function(method=False, samples=("normal(0., 1., (3,))",), rows=OF_TENSORS)
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Normal numbers: of one mean and deviation and a size, or of tensors of them."""
    source = _checked("normal", generator)
    tensors = isinstance(mean, Tensor), isinstance(std, Tensor)
    if size is None and any(tensors):
        if all(tensors):
            return OF_TENSORS[2](mean, std, generator=source)
        if tensors[0]:
            value = number("normal", std, "std", 2)
            return OF_TENSORS[0](mean, std=value, generator=source)
        value = number("normal", mean, "mean", 1)
        return OF_TENSORS[1](std, mean=value, generator=source)
    if size is None or any(tensors) or not isinstance(size, (tuple, list)):
        named = {} if size is None else {"size": size}
        raise invalid(
            "normal",
            (mean, std),
            named,
            f"Tensor mean, Tensor std, *, {_GENERATOR}, {OUT}",
            f"Tensor mean, float std = 1, *, {_GENERATOR}, {OUT}",
            f"float mean, Tensor std, *, {_GENERATOR}, {OUT}",
            f"float mean, float std, tuple of ints size, *, {_GENERATOR}, {OUT}, {OPTIONS}",
        )
    center, width = number("normal", mean, "mean", 1), number("normal", std, "std", 2)
    kind = kind_of("normal", dtype, dtypes.default.real)
    array = random.normal(shape_of("normal", size), kind, center, width, source)
    return finish("normal", array, requires_grad, device, layout, pin_memory)


@function(samples=("bernoulli(rand(2, 3))",), rows=OF_CHANCES)
def bernoulli(input: Array, p: Any = None, *, generator: Any = None) -> Any:
    """Ones with the probabilities in `input` (or all with probability `p`), zeros otherwise."""
    source = _checked("bernoulli", generator)
    given = tensor_argument("bernoulli", input)
    if p is None:
        return OF_CHANCES[0](given, generator=source)
    kind = given.array.dtype
    array = _drawn_like(given.array, kind, random.bernoulli, number("bernoulli", p, "p", 2), source)
    return finish("bernoulli", array)


# -- in place -------------------------------------------------------------------------------------
def _overwritten(self: Array, *, values: Any) -> Array:
    return values


def _overwritten_by(self: Array, p: Array, *, values: Any) -> Array:
    return values


def _overwriting(name: str, node: str) -> Any:
    """A row that forgets what was there."""
    body = type(name, (), {"self": zeros_like, "__module__": __name__})
    return operator(_overwritten, node, public=False)(body)


@operator(_overwritten_by, "BernoulliBackward1", public=False)
class bernoulli_tensor:
    self = zeros_like
    p = zeros_like


UNIFORM = _overwriting("uniform", "UniformBackward0")
NORMAL = _overwriting("normal", "NormalBackward0")
RANDOM = _overwriting("random_full", "RandomBackward0")
RANDOM_TO = _overwriting("random_to", "RandomBackward1")
RANDOM_FROM = _overwriting("random_from", "RandomBackward2")
BERNOULLI: tuple[Any, ...] = (_overwriting("bernoulli", "BernoulliBackward2"), bernoulli_tensor)
EXPONENTIAL = _overwriting("exponential", "ExponentialBackward0")
CAUCHY = _overwriting("cauchy", "CauchyBackward0")
GEOMETRIC = _overwriting("geometric", "GeometricBackward0")
LOG_NORMAL = _overwriting("log_normal", "LogNormalBackward0")


def _fill(row: Any, input: Any, draw: Callable[..., Array], *args: Any) -> Tensor:
    array = tensor_argument(f"{draw.__name__}_", input, "self").array
    return inplace(row, input, values=_drawn_like(array, array.dtype, draw, *args))


@function(name="uniform_", rows=(UNIFORM,))
def uniform_(input: Array, from_: Any = 0.0, to: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with numbers uniform in [from, to)."""
    return _fill(UNIFORM, input, random.uniform, from_, to, generator)


@function(name="normal_", rows=(NORMAL,))
def normal_(input: Array, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with normal numbers."""
    array = tensor_argument("normal_", input, "self").array
    values = _normal_like(array, array.dtype, mean, std, generator)
    return inplace(NORMAL, input, values=values)


@function(name="random_", rows=(RANDOM, RANDOM_TO, RANDOM_FROM))
def random_(input: Array, from_: Any = None, to: Any = None, *, generator: Any = None) -> Tensor:
    """Fill with integers: over the dtype's range, below one bound, or in [from, to)."""
    if from_ is None and to is None:
        return _fill(RANDOM, input, random.random, generator)
    if to is None:
        return _fill(RANDOM_TO, input, random.randint, 0, from_, generator)
    return _fill(RANDOM_FROM, input, random.randint, from_ or 0, to, generator)


@function(name="bernoulli_", rows=BERNOULLI)
def bernoulli_(input: Array, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fill with ones with probability `p` (a number, or a tensor of them), zeros otherwise."""
    if not isinstance(p, Tensor):
        return _fill(BERNOULLI[0], input, random.bernoulli, p, generator)
    array = tensor_argument("bernoulli_", input, "self").array
    chances = np.broadcast_to(np.asarray(p.array), array.shape)
    values = random.bernoulli(array.shape, array.dtype, chances, generator)
    return inplace(BERNOULLI[1], input, p, values=values)


@function(name="exponential_", rows=(EXPONENTIAL,))
def exponential_(input: Array, lambd: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with exponentially distributed numbers of the rate `lambd`."""
    return _fill(EXPONENTIAL, input, random.exponential, lambd, generator)


@function(name="cauchy_", rows=(CAUCHY,))
def cauchy_(input: Array, median: Any = 0.0, sigma: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with numbers of Cauchy's distribution."""
    return _fill(CAUCHY, input, random.cauchy, median, sigma, generator)


@function(name="geometric_", rows=(GEOMETRIC,))
def geometric_(input: Array, p: Any, *, generator: Any = None) -> Tensor:
    """Fill with the number of trials of probability `p` that the first success takes."""
    return _fill(GEOMETRIC, input, random.geometric, p, generator)


@function(name="log_normal_", rows=(LOG_NORMAL,))
def log_normal_(input: Array, mean: Any = 1.0, std: Any = 2.0, *, generator: Any = None) -> Tensor:
    """Fill with numbers whose logarithms are normal."""
    return _fill(LOG_NORMAL, input, random.log_normal, mean, std, generator)

"""Random tensors: PyTorch's numbers, from `gradcli.engine.core.random`.

Primitives that fill in place exist for their nodes: what they overwrite gets a gradient of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.engine.core import random
from gradcli.engine.core.declaration import Array, DType, Number, Shape
from gradcli.engine.core.random import Generator
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.views import inplace
from gradcli.engine.registry.factory_arguments import OPTIONS, finish, kind_of, makes, nonnegative
from gradcli.engine.registry.rule_helpers import refuse_if, zeros_like
from gradcli.engine.registry.table import function, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.movement.strides import axes_of, from_memory

_SOURCE = "Generator? generator=None"


def _drawn(text: str) -> tuple[str, str]:
    """The signatures of what draws numbers: of the default generator, and of one that is given."""
    given = text.replace("*, ", "*, Generator? generator, ")
    return f"{given}, {OPTIONS})", f"{text}, {OPTIONS})"


# -- state ----------------------------------------------------------------------------------------
@function("manual_seed(Any seed)|python|function", aliases="random.manual_seed")
def manual_seed(seed: int) -> Generator:
    """Start the default generator's sequence of this seed."""
    return random.manual_seed(seed)


@function("initial_seed()|python|function", aliases="random.initial_seed")
def initial_seed() -> int:
    """The seed of the default generator."""
    return random.initial_seed()


@function("seed()|python|function", aliases="random.seed")
def seed() -> int:
    """Seed the default generator from the operating system and return the seed."""
    return random.seed()


@function("get_rng_state()|python|function", aliases="random.get_rng_state")
def get_rng_state() -> Tensor:
    """The default generator's state, a byte tensor."""
    return random.get_rng_state()


@function("set_rng_state(Any new_state)|python|function", aliases="random.set_rng_state")
def set_rng_state(new_state: Tensor) -> None:
    """Set the default generator's state."""
    random.set_rng_state(new_state)


@function("fork_rng(Any devices=None, Any enabled=True)|python|function", name="random.fork_rng")
@contextmanager
def fork_rng(devices: Any, enabled: bool) -> Iterator[None]:
    """A context after which the default generator goes on from where it was before."""
    before = random.get_rng_state()
    try:
        yield
    finally:
        if enabled:
            random.set_rng_state(before)


# -- by size --------------------------------------------------------------------------------------
@makes(*_drawn("rand(int[] size, *, Tensor out=None"), samples="(2, 3)")
def rand(*, size: Shape, kind: DType | None, generator: Generator | None = None) -> Array:
    """Numbers uniform in [0, 1); the size is given as ints or as one sequence."""
    kind = kind or dtypes.default.real
    return random.uniform(nonnegative("rand", size), kind, generator=generator)


@makes(*_drawn("randn(int[] size, *, Tensor out=None"), samples="(2, 3)")
def randn(*, size: Shape, kind: DType | None, generator: Generator | None = None) -> Array:
    """Standard normal numbers; the size is given as ints or as one sequence."""
    kind = kind or dtypes.default.real
    return random.normal(nonnegative("randn", size), kind, generator=generator)


@makes(
    *_drawn("randint(int high, int[] size, *, Tensor out=None"),
    *_drawn("randint(int low, int high, int[] size, *, Tensor out=None"),
    samples="(0, 10, (3,))",
)
def randint(
    *, high: int, size: Shape, kind: DType | None, low: int = 0, generator: Generator | None = None
) -> Array:
    """Integers uniform in [low, high): `randint([low,] high, size)`."""
    kind = kind or np.dtype(np.int64)
    return random.randint(nonnegative("randint", size), kind, low, high, generator)


@makes(*_drawn("randperm(int n, *, Tensor out=None"), samples="(5)")
def randperm(*, n: int, kind: DType | None, generator: Generator | None = None) -> Array:
    """The integers below n in random order."""
    if kind is not None and kind.kind in "bc":
        raise dtypes.not_implemented("randperm", kind)
    return random.randperm(n, kind or np.dtype(np.int64), generator)


# -- like another tensor --------------------------------------------------------------------------
def _drawn_like(array: Array, kind: DType, draw: Callable[..., Array], *args: Any) -> Array:
    """Draw values in the order of the memory of an array."""
    axes = axes_of(array)
    return from_memory(draw((array.size,), kind, *args), axes, array.shape)


def _normal_like(
    array: Array, kind: DType, mean: float, std: float, generator: Generator | None
) -> Array:
    axes = axes_of(array)
    values = random.normal((array.size,), kind, mean, std, generator, contiguous=axes is None)
    return from_memory(values, axes, array.shape)


_LIKE = "*, MemoryFormat? memory_format=None"


@makes(*_drawn(f"rand_like(Tensor input, {_LIKE}"), samples="(randn(2, 3))")
def rand_like(
    *, input: Tensor, memory_format: Any, kind: DType | None, generator: Generator | None = None
) -> Array:
    """Numbers uniform in [0, 1) in the shape and dtype of `input`."""
    return _drawn_like(input.array, kind or input.array.dtype, random.uniform, 0.0, 1.0, generator)


@makes(*_drawn(f"randn_like(Tensor input, {_LIKE}"), samples="(randn(2, 3))")
def randn_like(
    *, input: Tensor, memory_format: Any, kind: DType | None, generator: Generator | None = None
) -> Array:
    """Standard normal numbers in the shape and dtype of `input`."""
    return _normal_like(input.array, kind or input.array.dtype, 0.0, 1.0, generator)


@makes(
    *_drawn(f"randint_like(Tensor input, int low, int high, {_LIKE}"),
    *_drawn(f"randint_like(Tensor input, Tensor high, {_LIKE}"),
    *_drawn(f"randint_like(Tensor input, int high, {_LIKE}"),
    samples="(randn(2, 3), 0, 10)",
)
def randint_like(
    *,
    input: Tensor,
    high: int,
    memory_format: Any,
    kind: DType | None,
    low: int = 0,
    generator: Generator | None = None,
) -> Array:
    """Integers uniform in [low, high) in the shape and dtype of `input`; one bound is `high`."""
    source, high = input.array, int(high)
    return _drawn_like(source, kind or source.dtype, random.randint, low, high, generator)


# -- with parameters that are tensors -------------------------------------------------------------
def _standard(mean: Array | Number, std: Array, kind: DType, generator: Generator | None) -> Array:
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std))
    if not bool(np.all(np.asarray(std) >= 0)):
        raise RuntimeError(
            "normal expects all elements of std >= 0.0"
            if np.ndim(std)
            else f"normal expects std >= 0.0, but found std {float(std):g}"
        )
    values = random.normal(shape, kind, 0.0, 1.0, generator)
    return values * np.asarray(std).astype(kind) + np.asarray(mean).astype(kind)


@primitive("random", node="NormalBackward1")
class normal_mean:
    def forward(mean: Array, *, std: float = 1.0, generator: Any = None) -> Array:
        refuse_if(not std >= 0, "normal expects std >= 0.0, but found std {:g}", std)
        return random.normal(np.shape(mean), mean.dtype, 0.0, std, generator) + mean

    mean = lambda g, mean_sym_sizes: zeros_like(g)


@primitive("random", node="NormalBackward2")
class normal_std:
    def forward(std: Array, *, mean: float = 0.0, generator: Any = None) -> Array:
        return _standard(mean, std, std.dtype, generator)

    std = lambda g, std_sym_sizes: zeros_like(g)


@primitive("random", node="NormalBackward3")
class normal_both:
    def forward(mean: Array, std: Array, *, generator: Any = None) -> Array:
        return _standard(mean, std, mean.dtype, generator)

    mean = lambda g, mean_sym_sizes: zeros_like(g)
    std = lambda g, std_sym_sizes: zeros_like(g)


@primitive("random", node="BernoulliBackward0")
class bernoulli_p:
    def forward(input: Array, *, generator: Any = None) -> Array:
        if input.dtype.kind != "f":
            raise dtypes.not_implemented("bernoulli_tensor_cpu_p_", input)
        return random.bernoulli(np.shape(input), input.dtype, np.asarray(input), generator)

    input = zeros_like


@primitive("random", node="PoissonBackward0")
class poisson_row:
    def forward(input: Array, *, generator: Any = None) -> Array:
        if input.dtype.kind != "f":
            raise dtypes.not_implemented("poisson_cpu", input)
        return random.poisson(np.asarray(input), generator)

    input = zeros_like


@primitive("random")
class multinomial_row:
    def forward(
        input: Array, *, num_samples: Any, replacement: bool = False, generator: Any = None
    ) -> Array:
        if input.dtype.kind != "f":
            word = scalar_name(input)
            raise RuntimeError(
                f"multinomial only supports floating-point dtypes for input, got: {word}"
            )
        refuse_if(not 1 <= input.ndim <= 2, "prob_dist must be 1 or 2 dim")
        refuse_if(num_samples <= 0, "cannot sample n_sample <= 0 samples")
        if not replacement and num_samples > input.shape[-1]:
            raise RuntimeError(
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
            )
        return random.multinomial(np.asarray(input), num_samples, replacement, generator)


@function(
    f"normal(Tensor mean, Tensor std, *, {_SOURCE}, Tensor out=None)|function",
    f"normal(Tensor mean, float std=1, *, {_SOURCE}, Tensor out=None)|function",
    f"normal(float mean, Tensor std, *, {_SOURCE}, Tensor out=None)|function",
    f"normal(float mean, float std, int[] size, *, {_SOURCE}, Tensor out=None, {OPTIONS})|function",
    samples="(0., 1., (3,))",
    overlap="whole whole",
)
def normal(
    *, mean: Any, std: Any, generator: Generator | None, size: Shape | None = None, **options: Any
) -> Any:
    """Normal numbers: of one mean and deviation and a size, or of tensors of them."""
    if size is not None:
        kind = kind_of("normal", options.pop("dtype"), dtypes.default.real)
        array = random.normal(nonnegative("normal", size), kind, mean, std, generator)
        return finish("normal", array, **options)
    if not isinstance(mean, Tensor):
        return normal_std(std, mean=mean, generator=generator)
    if not isinstance(std, Tensor):
        return normal_mean(mean, std=std, generator=generator)
    return normal_both(mean, std, generator=generator)


@function(
    f"bernoulli(Tensor input, *, {_SOURCE}, Tensor out=None)",
    f"bernoulli(Tensor input, float p, *, {_SOURCE})",
    samples="(rand(2, 3))",
    overlap="whole whole",
    out="into efd?bBhilq: kernel bernoulli_tensor_cpu_self_",
)
def bernoulli(*, input: Tensor, generator: Generator | None, p: float | None = None) -> Any:
    """Ones with the probabilities in `input` (or all with probability `p`), zeros otherwise."""
    if p is None:
        return bernoulli_p(input, generator=generator)
    own = input.array
    return finish("bernoulli", _drawn_like(own, own.dtype, random.bernoulli, p, generator))


@function(
    "poisson(Tensor input, Generator? generator=None)|function",
    samples="(rand(2, 3)*5)",
)
def poisson(input: Tensor, generator: Generator | None) -> Any:
    """Numbers of Poisson's distribution with the rates in `input`."""
    return poisson_row(input, generator=generator)


@function(
    f"multinomial(Tensor input, int num_samples, bool replacement=False, *, {_SOURCE}, Tensor out=None)",
    samples="(rand(2, 3), 2)",
    out="exact: multinomial expects Long tensor out, got: {1}",
)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool, generator: Generator | None
) -> Any:
    """Indices drawn with the chances in the rows of `input`, which need not sum to one."""
    return multinomial_row(
        input, num_samples=num_samples, replacement=replacement, generator=generator
    )


# -- in place -------------------------------------------------------------------------------------
def _overwritten(self: Array, *, values: Any) -> Array:
    return values


def _overwriting(name: str, node: str) -> Any:
    """A primitive that forgets what was there."""
    body = type(name, (), {"self": zeros_like, "__module__": __name__})
    return primitive(kernel=_overwritten, node=node)(body)


@primitive(node="BernoulliBackward1")
class bernoulli_tensor:
    def forward(self: Array, p: Array, *, values: Any) -> Array:
        return values

    self = zeros_like
    p = zeros_like


NORMAL = _overwriting("normal", "NormalBackward0")
RANDOM = _overwriting("random_full", "RandomBackward0")
RANDOM_TO = _overwriting("random_to", "RandomBackward1")
RANDOM_FROM = _overwriting("random_from", "RandomBackward2")
BERNOULLI = _overwriting("bernoulli", "BernoulliBackward2")


def _fill(primitive: Any, input: Tensor, draw: Callable[..., Array], *args: Any) -> Tensor:
    array = input.array
    return inplace(primitive, input, values=_drawn_like(array, array.dtype, draw, *args))


def _filling(name: str, options: str, draw: Callable[..., Array], doc: str) -> None:
    """`NAME_`, which fills a tensor with numbers of a distribution of these options."""
    made = _overwriting(name, f"{name.title().replace('_', '')}Backward0")

    def fill(input: Tensor, *parameters: Any) -> Tensor:
        return _fill(made, input, draw, *parameters)

    fill.__doc__, fill.__module__ = f"Fill with {doc}.", __name__
    signature = f"{name}_(Tensor input, {options}, *, {_SOURCE})|method"
    function(signature, name=f"{name}_", primitives=(made,))(fill)


_filling("uniform", "float from=0, float to=1", random.uniform, "numbers uniform in [from, to)")
_filling(
    "exponential",
    "float lambd=1",
    random.exponential,
    "exponentially distributed numbers of the rate `lambd`",
)
_filling(
    "cauchy", "float median=0, float sigma=1", random.cauchy, "numbers of Cauchy's distribution"
)
_filling(
    "geometric",
    "float p",
    random.geometric,
    "the number of trials of probability `p` that the first success takes",
)
_filling(
    "log_normal",
    "float mean=1, float std=2",
    random.log_normal,
    "numbers whose logarithms are normal",
)


@function(f"normal_(Tensor input, float mean=0, float std=1, *, {_SOURCE})|method", name="normal_")
def normal_(input: Tensor, mean: float, std: float, generator: Generator | None) -> Tensor:
    """Fill with normal numbers."""
    array = input.array
    values = _normal_like(array, array.dtype, mean, std, generator)
    return inplace(NORMAL, input, values=values)


@function(
    f"random_(Tensor input, *, {_SOURCE})|method",
    f"random_(Tensor input, int from, int? to, *, {_SOURCE})|method",
    f"random_(Tensor input, int to, *, {_SOURCE})|method",
    name="random_",
)
def random_(*, input: Tensor, generator: Generator | None, **bounds: int | None) -> Tensor:
    """Fill with integers: over the dtype's range, below one bound, or in [from, to)."""
    low, high = bounds.get("from"), bounds.get("to")
    if "from" in bounds and high is not None:
        return _fill(RANDOM_FROM, input, random.randint, low, high, generator)
    if high is None:
        return _fill(RANDOM, input, random.random, generator)
    return _fill(RANDOM_TO, input, random.randint, 0, high, generator)


@function(
    f"bernoulli_(Tensor input, Tensor p, *, {_SOURCE})|method",
    f"bernoulli_(Tensor input, float p=0.5, *, {_SOURCE})|method",
    name="bernoulli_",
)
def bernoulli_(input: Tensor, p: Tensor | Number, generator: Generator | None) -> Tensor:
    """Fill with ones with probability `p` (a number, or a tensor of them), zeros otherwise."""
    if not isinstance(p, Tensor):
        return _fill(BERNOULLI, input, random.bernoulli, p, generator)
    array = input.array
    chances = np.broadcast_to(np.asarray(p.array), array.shape)
    values = random.bernoulli(array.shape, array.dtype, chances, generator)
    return inplace(bernoulli_tensor, input, p, values=values)

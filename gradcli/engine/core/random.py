"""PyTorch's CPU random numbers, bit for bit, as NumPy arrays.

The source is the 32-bit Mersenne Twister, seeded with the low half of the seed. To equal PyTorch, each
value takes the same number of draws, uses the same bits of them, and is computed by the same arithmetic:
where PyTorch's build fuses a product and a sum into one rounding (FMA), this file does too.
"""

from __future__ import annotations

import functools
import math
import operator
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.batched_arrays import drawing
from gradcli.engine.core.device import device as Device
from gradcli.engine.core.device import used
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes, locks
from gradcli.engine.system.dtypes import scalar_name
from gradcli.engine.system.fma import fma32, fma64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Shape = Sequence[int]

_STATE_WORDS = 624
# From this length on a normal sample is filled in blocks of 16; below, a pair of values at a time.
_FILL = 16
# Samplers that take an unknown number of uniform values draw this many ahead.
_AHEAD = 256
# Work on this many values at a time, so that temporaries stay in the cache.
_BLOCK = 1 << 15
# Integer ranges from here on take two draws a value.
_WIDE = 1 << 28
_DIGITS = {"f2": 11, "f4": 24, "f8": 53}
_STATE: Any = np.dtype(
    {
        "names": [
            *("seed", "left", "seeded", "next", "words"),
            *("normal", "has_normal", "float_normal", "has_float_normal"),
        ],
        "formats": ["u8", "i4", "i4", "u8", ("u8", _STATE_WORDS), "f8", "i4", "f4", "u1"],
        "offsets": [0, 8, 12, 16, 24, 24 + 8 * 624 + 8, 24 + 8 * 624 + 24, 5048, 5052],
        "itemsize": 5056,
    }
)


class _Drawn(threading.local):
    """How often this thread has asked the default generator for numbers, or set it."""

    count = 0


_drawn = _Drawn()


# All generators. A forked child releases their locks: threads that held them exist only in the parent.
_GENERATORS: weakref.WeakSet[Generator] = weakref.WeakSet()


def _in_child() -> None:
    for generator in list(_GENERATORS):
        locks.release(generator.lock)
        source: Any = generator._source
        if source is not None:
            locks.release(source._bit_generator.lock)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)


def _tell() -> None:
    """Tell the recorder, if a program is traced, that random numbers are drawn."""
    if modes.unusual and (recorder := modes.current().recorder) is not None:
        recorder.draw()


class Generator:
    """A random number generator with a separate state (`torch.Generator`, on the CPU)."""

    def __init__(self, device: object = "cpu") -> None:
        self._device = used(device)
        self.lock = threading.RLock()
        self._source: np.random.RandomState | None = None
        self._seed = 67280421310721
        # The unused second value of the last pair of normal values.
        self._normal: float | None = None
        _GENERATORS.add(self)

    @property
    def device(self) -> Device:
        """The device, which is the CPU."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Restart with a seed: any integer of 64 bits, signed or unsigned."""
        number = operator.index(seed)
        if not -(2**63) <= number < 2**64:
            raise ValueError("Overflow when unpacking long long")
        _drawn.count += self is default_generator
        with self.lock:
            self._seed, self._source, self._normal = number % 2**64, None, None
        return self

    def initial_seed(self) -> int:
        """The seed that was set last."""
        return self._seed

    def seed(self) -> int:
        """Seed from the operating system's entropy and return the seed."""
        seed = int.from_bytes(os.urandom(8), "little") >> 1
        self.manual_seed(seed)
        return seed

    def get_state(self) -> Tensor:
        """The state as a byte tensor, in PyTorch's layout."""
        with self.lock:
            twister: Any = self._twister().get_state()
            words, position = twister[1:3]
            state = np.zeros((), _STATE)
            state["seed"], state["seeded"], state["words"] = self._seed, 1, words
            state["left"] = _STATE_WORDS + 1 - position
            # PyTorch's index of the next word is 0 until the first draw.
            state["next"] = position % _STATE_WORDS if self._fresh else position
            if self._normal is not None:
                state["normal"], state["has_normal"] = self._normal, 1
        return wrap(np.frombuffer(state.tobytes(), np.uint8).copy())

    def set_state(self, state: Any) -> Generator:
        """Restore a state that `get_state` returned."""
        if not isinstance(state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        data = state.memory()
        if data.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not data.flags.c_contiguous:
            raise RuntimeError("RNG state must be contiguous")
        if data.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} but found the input RNG "
                f"state size to be {data.size}"
            )
        fields = np.frombuffer(data.tobytes(), _STATE)[0]
        left, index = int(fields["left"]), int(fields["next"])
        # The count of words left and the position of the next word have to agree. (PyTorch accepts
        # states in which they do not, and reads past the end.)
        fresh = left == 1 and index == 0
        if not (fields["seeded"] and 0 < left <= _STATE_WORDS and (fresh or left + index == 625)):
            raise RuntimeError("Invalid mt19937 state")
        words = fields["words"].astype(np.uint32)
        position = _STATE_WORDS + 1 - left
        _drawn.count += self is default_generator
        with self.lock:
            self._seed = int(fields["seed"])
            source = np.random.RandomState(0)
            source.set_state(("MT19937", words, position, 0, 0.0))
            self._start(source)
            self._fresh = fresh
            self._normal = float(fields["normal"]) if fields["has_normal"] else None
        return self

    def clone_state(self) -> Generator:
        """A new generator in the same state."""
        return Generator().set_state(self.get_state())

    def __reduce__(self) -> Any:
        return _restored, (self.get_state().array.tobytes(),)

    _fresh = True
    _raw: Any = None

    def _twister(self) -> np.random.RandomState:
        if self._source is None:
            self._start(np.random.RandomState(self._seed & 0xFFFFFFFF))
            self._fresh = True
        assert self._source is not None
        return self._source

    def _start(self, source: np.random.RandomState) -> None:
        self._source = source
        self._raw = source._bit_generator.random_raw

    def words(self, count: int) -> NDArray[Any]:
        """The next `count` 32-bit draws, as numbers of 32 bits or more."""
        with self.lock:
            source = self._twister()
            if count:
                self._fresh = False
                _tell()
            if count < 1000:
                # Both branches give the same draws; this one is faster for a few.
                return self._raw(count)
            return source.randint(0, 1 << 32, count, np.uint32)

    def double_words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` 64-bit draws, each made of two words, the high one first."""
        words = self.words(2 * count).astype(np.uint64, copy=False)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    def integers(self, count: int, wide: bool) -> NDArray[np.uint64]:
        """The next `count` draws, of 64 bits (wide) or 32."""
        if wide:
            return self.double_words(count)
        return self.words(count).astype(np.uint64, copy=False)

    def floats(self, count: int) -> NDArray[np.float32]:
        """The next `count` uniform values in [0, 1), one word each."""
        result = (self.words(count) & 0xFFFFFF).astype(np.float32)
        result *= np.float32(2.0**-24)
        return result

    def doubles(self, count: int) -> NDArray[np.float64]:
        """The next `count` uniform values in [0, 1), two words each."""
        result = (self.double_words(count) & np.uint64((1 << 53) - 1)).astype(np.float64)
        result *= 2.0**-53
        return result

    def normal_pairs(self, count: int) -> list[float]:
        """The next `count` standard normal values, computed in pairs; an unused second value is kept."""
        values: list[float] = []
        if count and self._normal is not None:
            _tell()
            values.append(self._normal)
            self._normal = None
        missing = count - len(values)
        uniforms = self.doubles(2 * ((missing + 1) // 2)).tolist()
        for first, second in zip(uniforms[0::2], uniforms[1::2], strict=True):
            radius = math.sqrt(-2.0 * math.log1p(-second))
            angle = 2.0 * math.pi * first
            values += (radius * math.cos(angle), radius * math.sin(angle))
        if missing % 2:
            self._normal = values.pop()
        return values


def _restored(state: bytes) -> Generator:
    """Unpickle a generator."""
    return Generator().set_state(wrap(np.frombuffer(state, np.uint8).copy()))


@contextmanager
def _one_by_one(source: Generator) -> Iterator[Callable[[], float]]:
    """A function that returns uniform values in [0, 1) one at a time; values drawn ahead are put back."""
    before: Any = None
    ahead: list[float] = []
    at = 0

    def value() -> float:
        nonlocal before, ahead, at
        if at == len(ahead):
            before = source._twister().get_state()
            ahead, at = source.doubles(_AHEAD).tolist(), 0
        at += 1
        return ahead[at - 1]

    with source.lock:
        try:
            yield value
        finally:
            if at < len(ahead):
                source._twister().set_state(before)
                source.words(2 * at)


default_generator = Generator()


def _drawing_of(generator: Generator | None) -> Generator:
    """The generator that draws: this, or the default one."""
    if generator is None or generator is default_generator:
        _drawn.count += 1
        return default_generator
    return generator


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it."""
    return default_generator.manual_seed(int(seed))


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def seed() -> int:
    """Seed the default generator from the operating system and return the seed."""
    return default_generator.seed()


def get_rng_state() -> Tensor:
    """The default generator's state, a byte tensor."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Set the default generator's state."""
    default_generator.set_state(state)


def snapshot() -> Any:
    """The default generator's state, for `rewind`. Before the first draw numpy.random is not imported."""
    generator = default_generator
    state = generator._seed if generator._source is None else generator.get_state()
    return state, _drawn.count


def rewind(state: Any) -> bool:
    """Restore a `snapshot`, or a seed; returns whether the state had changed since.

    Where this thread drew no number, nothing is restored: other threads may have drawn.
    """
    state, count = state if isinstance(state, tuple) else (state, 0)
    if _drawn.count == count:
        return False
    if isinstance(state, int):
        drawn = default_generator._source is not None or default_generator._seed != state
        default_generator.manual_seed(state)
    else:
        drawn = not np.array_equal(default_generator.get_state().array, state.array)
        default_generator.set_state(state)
    _drawn.count = count
    return drawn


# -- uniform --------------------------------------------------------------------------------------
@drawing
def uniform(
    shape: Shape,
    dtype: np.dtype[Any],
    low: float = 0.0,
    high: float = 1.0,
    generator: Generator | None = None,
) -> Array:
    """Values uniform in [low, high)."""
    if dtype.kind == "c":
        return _as_complex(uniform, shape, dtype, low, high, generator)
    _check_kind(dtype, '"check_uniform_bounds" not implemented for')
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    source = _drawing_of(generator)
    count = math.prod(shape)
    standard = low == 0 and high == 1
    values: Array = source.doubles(count) if dtype.itemsize == 8 else source.floats(count)
    if not standard:
        start, stop = values.dtype.type(low), values.dtype.type(high)
        fma = fma64 if dtype.itemsize == 8 else fma32
        values = fma(values, stop - start, start)
    result = values.astype(dtype, copy=False)
    if not standard or dtype.itemsize == 2:
        # Rounding may give the excluded end of the range; such values become its start.
        result[result == dtype.type(high)] = low
    return result.reshape(shape)


@drawing
def bernoulli(
    shape: Shape, dtype: np.dtype[Any], p: Any, generator: Generator | None = None
) -> Array:
    """Ones with probability `p`, a number or an array of that shape, zeros otherwise.

    For an array `p`, its dtype decides how many bits of a draw are used, as in PyTorch.
    """
    source = _drawing_of(generator)
    count = math.prod(shape)
    draw: Callable[[int], Array] = source.doubles
    if isinstance(p, np.ndarray):
        if not bool(((p >= 0) & (p <= 1)).all()):
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
        draw = draw if p.dtype.itemsize == 8 else source.floats
    elif not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return np.asarray(draw(count).reshape(shape) < p).astype(dtype)


@drawing
def dropout_mask(
    shape: Shape, dtype: np.dtype[Any], p: float, generator: Generator | None = None
) -> Array:
    """The mask of `dropout`: zero with probability `p`, else `1 / (1 - p)`."""
    if p in (0, 1):
        return np.full(shape, 1 - p, dtype)
    kept = bernoulli(shape, dtype, 1 - p, generator)
    kept /= dtype.type(1 - p)
    return kept


# -- normal ---------------------------------------------------------------------------------------
@drawing
def normal(
    shape: Shape,
    dtype: np.dtype[Any],
    mean: float = 0.0,
    std: float = 1.0,
    generator: Generator | None = None,
    *,
    contiguous: bool = True,
) -> Array:
    """Normal values.

    contiguous: False if PyTorch would fill a tensor that is not contiguous; it then computes the values
    in pairs, whatever their number.
    """
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if dtype.kind == "c":
        return _as_complex(normal, shape, dtype, mean, std / math.sqrt(2.0), generator)
    _check_kind(dtype, '"normal_kernel_cpu" not implemented for')
    source = _drawing_of(generator)
    count = math.prod(shape)
    with source.lock:
        if count < _FILL or not contiguous:
            values = fma64(np.array(source.normal_pairs(count)), float(std), float(mean))
        elif dtype.itemsize == 8:
            values = _fill(source.doubles, count, count, _normal64, float(mean), float(std))
        else:
            # For float16, PyTorch draws only whole blocks first.
            drawn = count if dtype.itemsize == 4 else count - count % 16
            mean, std = float(np.float32(mean)), float(np.float32(std))
            values = _fill(source.floats, drawn, count, _normal32, mean, std)
    return _cast(values, dtype).reshape(shape)


def _fill(
    draw: Callable[[int], Array],
    drawn: int,
    count: int,
    transform: Callable[[Array, Array, float, float], tuple[Array, Array]],
    mean: float,
    std: float,
) -> Array:
    """Transform uniform values to normal ones in blocks of 16; the last 16 are redrawn for a remainder."""
    whole = count - count % 16
    values = np.zeros(whole + 16 * (whole != count))
    values[:drawn] = draw(drawn)
    if whole != count:
        values[whole:] = draw(16)
    for start in range(0, len(values), _BLOCK):
        rows = values[start : start + _BLOCK].reshape(-1, 2, 8)
        rows[:, 0], rows[:, 1] = transform(1 - rows[:, 0], rows[:, 1].copy(), mean, std)
    if whole != count:
        values[count - 16 : count] = values[whole:].copy()
    return values[:count]


def _normal64(first: Array, second: Array, mean: float, std: float) -> tuple[Array, Array]:
    # NumPy's own float64 logarithm may differ from the C library's in the last bit.
    logs = np.fromiter(map(math.log, first.ravel().tolist()), np.float64, first.size)
    radius = np.sqrt(-2.0 * logs).reshape(first.shape)
    angle = 2.0 * math.pi * second
    return fma64(radius * np.cos(angle), std, mean), fma64(radius * np.sin(angle), std, mean)


def _float32(*numbers: float) -> list[Array]:
    """Numbers of single precision, as arrays of double precision: the fastest operands of NumPy."""
    return [np.array(float(np.float32(number))) for number in numbers]


_LOG = _float32(
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
_SIN = _float32(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = _float32(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN_COS = [np.stack(pair).reshape(2, 1, 1) for pair in zip(_SIN, _COS, strict=True)]
# pi / 4 in three parts, the first two with few enough digits for exact products.
_QUARTER = _float32(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
_ROOT, _LOG2, _LOG2_REST, _TURN, _OCTANTS = _float32(
    0.707106781186547524, 0.693359375, -2.12194440e-4, 2 * math.pi, 1.27323954473516
)


def _normal32(first: Array, second: Array, mean: float, std: float) -> tuple[Array, Array]:
    """The Box-Muller transform, with the single-precision polynomials of Cephes.

    Numbers of single precision are held as float64. There a product of two is exact, so that `_round` of a
    product and a sum is the fused operation of PyTorch's kernel, and `_round` of one operation or root
    equals that of single precision.
    """
    radius = _round(np.sqrt(-2 * _log32(first)))
    sin, cos = _round(_round(radius * _sincos32(_round(_TURN * second))) * std + mean)
    return cos, sin


def _round(x: Array) -> Array:
    return x.astype(np.float32).astype(np.float64)


def _log32(x: Array) -> Array:
    x, exponent = np.frexp(x)
    small = x < _ROOT
    exponent = exponent - small
    x += x * small
    x -= 1.0
    square = _round(x * x)
    y = _round(_horner(x, _LOG) * x)
    y = _round(y * square + _round(exponent * _LOG2_REST))
    y = _round(square * -0.5 + y)
    return _round(exponent * _LOG2 + _round(x + y))


def _sincos32(x: Array) -> Array:
    """The sines and the cosines, one behind the other."""
    quadrant = (_round(x * _OCTANTS).astype(np.int32) + 1) >> 1
    octant = quadrant * 2.0
    for part in _QUARTER:
        x = _round(octant * part + x)
    square = _round(x * x)
    both = _round(_horner(square, _SIN_COS) * square)
    both[0] = _round(both[0] * x + x)
    both[1] = _round(_round(both[1] * square - square * 0.5) + 1.0)
    both = np.where(quadrant & 1, both[::-1], both)
    both[0] *= 1.0 - (quadrant & 2)
    both[1] *= 1.0 - (quadrant + 1 & 2)
    return both


def _horner(x: Array, coefficients: Sequence[Array]) -> Array:
    y = coefficients[0]
    for c in coefficients[1:]:
        y = y * x
        y += c
        y = _round(y)
    return y


# -- integers -------------------------------------------------------------------------------------
@drawing
def randint(
    shape: Shape,
    dtype: np.dtype[Any],
    low: int,
    high: int,
    generator: Generator | None = None,
) -> Array:
    """Integers uniform in [low, high), in any real dtype."""
    low, high = int(low), int(high)
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.kind == "f":
        start, stop = _representable_from(low, dtype), _representable_to(high, dtype)
        if start >= stop:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                f"but got from={start} >= to={stop}"
            )
    else:
        start, stop = low, high
    _check_bound("from", low, dtype)
    _check_bound("to - 1", high - 1, dtype)
    span, count = stop - start, math.prod(shape)
    draws = _drawing_of(generator).integers(count, span >= _WIDE)
    draws %= np.uint64(span)
    if start:
        draws += np.uint64(start % 2**64)
    return draws.view(np.int64).astype(dtype, copy=False).reshape(shape)


@drawing
def random(shape: Shape, dtype: np.dtype[Any], generator: Generator | None = None) -> Array:
    """Integers from 0 to the dtype's largest, as `random_()` draws them."""
    if dtype.kind == "f":
        span = (1 << _DIGITS[dtype.str[1:]]) + 1
    elif dtype.kind == "b":
        span = 2
    elif dtype.kind in "iu":
        span = int(np.iinfo(dtype).max) + 1
    else:
        raise dtypes.not_implemented("random_kernel_cpu", dtype)
    draws = _drawing_of(generator).integers(math.prod(shape), dtype.itemsize == 8)
    return (draws % np.uint64(span)).astype(dtype).reshape(shape)


def randperm(n: int, dtype: np.dtype[Any], generator: Generator | None = None) -> Array:
    """A random permutation of the integers below `n`."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype.kind == "f" and n > (limit := (1 << _DIGITS[dtype.str[1:]]) + 1):
        raise RuntimeError(f"n cannot be greater than {limit} for {scalar_name(dtype)} type.")
    if dtype.kind in "iu" and n > np.iinfo(dtype).max:
        name = f"{dtype.name}_t"
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    order = list(range(n))
    draws = _drawing_of(generator).integers(max(n - 1, 0), n >= (1 << 32) // 20)
    steps = (draws % np.arange(n, 1, -1, dtype=np.uint64)).tolist()
    for i, step in enumerate(steps):
        order[i], order[i + step] = order[i + step], order[i]
    return np.array(order, dtype)


# -- other distributions --------------------------------------------------------------------------
@drawing
def exponential(
    shape: Shape, dtype: np.dtype[Any], rate: float = 1.0, generator: Generator | None = None
) -> Array:
    """Values of the exponential distribution with this rate."""
    _check_continuous("Exponential", dtype)
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    scale = -1.0 / rate
    return _mapped(shape, dtype, lambda u: scale * math.log1p(-u), generator)


@drawing
def cauchy(
    shape: Shape,
    dtype: np.dtype[Any],
    median: float = 0.0,
    sigma: float = 1.0,
    generator: Generator | None = None,
) -> Array:
    """Values of the Cauchy distribution."""
    _check_continuous("Cauchy", dtype)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    tangents = _mapped(
        shape, np.dtype(np.float64), lambda u: math.tan(math.pi * (u - 0.5)), generator
    )
    return _cast(fma64(tangents, float(sigma), float(median)), dtype)


@drawing
def geometric(
    shape: Shape, dtype: np.dtype[Any], p: float, generator: Generator | None = None
) -> Array:
    """Values of the geometric distribution: trials of probability `p` up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    scale = math.log1p(-p)
    return _mapped(shape, dtype, lambda u: math.ceil(math.log(u) / scale) if u else 0, generator)


@drawing
def log_normal(
    shape: Shape,
    dtype: np.dtype[Any],
    mean: float = 1.0,
    std: float = 2.0,
    generator: Generator | None = None,
) -> Array:
    """Values whose logarithms are normal."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    source, count = _drawing_of(generator), math.prod(shape)
    with source.lock:
        logs = fma64(np.array(source.normal_pairs(count)), float(std), float(mean))
    values = np.fromiter(map(_exp, logs.tolist()), np.float64, count)
    return _cast(values, dtype).reshape(shape)


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.7 else float(np.exp(x))


def _mapped(
    shape: Shape,
    dtype: np.dtype[Any],
    transform: Callable[[float], float],
    generator: Generator | None,
) -> Array:
    uniforms = _drawing_of(generator).doubles(math.prod(shape))
    values = np.fromiter(map(transform, uniforms.tolist()), np.float64, uniforms.size)
    return _cast(values, dtype).reshape(shape)


def poisson(rates: Array, generator: Generator | None = None) -> Array:
    """Values of Poisson distributions, one for each rate."""
    if not (rates >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    with _one_by_one(_drawing_of(generator)) as uniform:
        values = [_poisson(rate, uniform) for rate in rates.ravel().tolist()]
    return _cast(np.array(values, np.float64), rates.dtype).reshape(rates.shape)


def _poisson(rate: float, uniform: Callable[[], float]) -> float:
    if rate == 0:
        return 0
    if rate >= 10:
        return _poisson_of_many(rate, uniform)
    least, product, count = math.exp(-rate), uniform(), 0
    while product > least:
        product *= uniform()
        count += 1
    return count


def _poisson_of_many(rate: float, uniform: Callable[[], float]) -> float:
    """Poisson by Hörmann's transformed rejection (1993), with PyTorch's constants."""
    root, log = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    scale = 1.1239 + 1.1328 / (b - 3.4)
    ratio = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform() - 0.5, uniform()
        beside = 0.5 - abs(u)
        if not beside:
            continue
        k = (2 * a / beside + b) * u + rate + 0.43
        k = math.floor(k) if math.isfinite(k) else rate
        if beside >= 0.07 and v <= ratio:
            return k
        if k < 0 or (beside < 0.013 and v > beside):
            continue
        left = _log(v) + math.log(scale) - math.log(a / (beside * beside) + b)
        if left <= -rate + k * log - math.lgamma(k + 1):
            return k


def _log(x: float) -> float:
    return math.log(x) if x else -math.inf


def multinomial(
    chances: Array, count: int, replacement: bool, generator: Generator | None = None
) -> Array:
    """Draw `count` indices from each row of `chances` (1-d or 2-d), which are weights."""
    if replacement and count > 1:
        return _with_replacement(chances, count, _drawing_of(generator))
    least, most = (chances.min(), chances.max()) if chances.size else (0, 0)
    if not (most < math.inf and least >= 0):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (chances.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    with np.errstate(divide="ignore", invalid="ignore"):
        races = chances / exponential(chances.shape, chances.dtype, 1.0, generator)
    if count == 1:
        return np.asarray(races.argmax(-1, keepdims=True))
    return np.argsort(-races, -1, kind="stable")[..., :count]


def _with_replacement(chances: Array, count: int, source: Generator) -> Array:
    rows = chances.reshape(-1, chances.shape[-1])
    found = np.empty((len(rows), count), np.int64)
    with source.lock:
        for primitive, out in zip(rows, found, strict=True):
            if not (primitive >= 0).all():
                _refuse("encountering probability entry < 0")
            if not np.isfinite(primitive).all():
                _refuse("encountering probability entry = infinity or NaN")
            sums = np.cumsum(
                primitive, dtype=primitive.dtype if primitive.dtype.itemsize > 2 else np.float32
            )
            if not sums[-1] > 0:
                _refuse("sum of probabilities <= 0")
            bounds = (sums / sums[-1]).astype(primitive.dtype).astype(np.float64)
            bounds[-1] = 1
            out[:] = np.searchsorted(bounds, source.doubles(count))
    return found.reshape(*chances.shape[:-1], count)


def _refuse(why: str) -> NoReturn:
    raise RuntimeError(f"invalid multinomial distribution ({why})")


# -- helpers --------------------------------------------------------------------------------------
def _cast(values: Array, dtype: np.dtype[Any]) -> Array:
    if values.dtype == dtype:
        return values
    # PyTorch rounds double to float, then to half.
    if dtype.itemsize == 2 and values.dtype.itemsize == 8:
        values = values.astype(np.float32)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def _as_complex(
    sample: Callable[..., Array], shape: Shape, dtype: np.dtype[Any], *args: Any
) -> Array:
    """A real sample read as complex numbers: real and imaginary parts alternate."""
    part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    return sample((*shape, 2), part, *args).view(dtype).reshape(shape)


def _check_kind(dtype: np.dtype[Any], words: str) -> None:
    if dtype.kind != "f":
        raise NotImplementedError(f"{words} '{scalar_name(dtype)}'")


def _check_continuous(distribution: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind != "f":
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {scalar_name(dtype)}"
        )


_C_NAMES = {
    **{"float16": "c10::Half", "float32": "float", "float64": "double", "bool": "bool"},
    **{"uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int"},
    "int64": "long",
}


def _check_bound(what: str, value: int, dtype: np.dtype[Any]) -> None:
    if dtype.kind == "c":
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    name, lowest, highest = _bounds(dtype)
    if not lowest <= value <= highest:
        raise RuntimeError(f"{what} is out of bounds for {name}")
    if dtype.kind == "f":
        digits = _DIGITS[dtype.str[1:]]
        if not -(1 << digits) <= value <= 1 << digits:
            warnings.warn(
                f"{what} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                f"{name} can support discrete uniform distribution only within this range. This "
                "warning will become an error in version 1.7 release, please fix the code in "
                "advance",
                UserWarning,
                stacklevel=users_level(),
            )


@functools.cache
def _bounds(dtype: np.dtype[Any]) -> tuple[str, float, float]:
    """(the name in C, the least and the largest number)."""
    if dtype.kind == "b":
        return _C_NAMES[dtype.name], 0, 1
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    kind = float if dtype.kind == "f" else int
    return _C_NAMES[dtype.name], kind(limits.min), kind(limits.max)


def _representable_from(low: int, dtype: np.dtype[Any]) -> int:
    """`low`, raised to the first value that the floating dtype does not round together with `low + 1`."""
    after = _rounded(low + 1, dtype)
    if after < low:
        low = after + (1 << (abs(low + 1).bit_length() - _DIGITS[dtype.str[1:]]))
    return low


def _representable_to(high: int, dtype: np.dtype[Any]) -> int:
    before = _rounded(high - 1, dtype)
    if before >= high:
        high = before - (1 << (abs(high - 1).bit_length() - _DIGITS[dtype.str[1:]]))
    return high


def _rounded(value: int, dtype: np.dtype[Any]) -> int:
    with np.errstate(over="ignore"):
        number = float(dtype.type(value))
    return value if math.isinf(number) else int(number)

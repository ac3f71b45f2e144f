"""The binder of signatures: what it takes, what it passes on, and PyTorch's words for the rest.

The refusals were recorded from PyTorch 2.13.0 (`torch.sum(…)`, `x.sum(…)`): each names the call.
"""

from __future__ import annotations

from typing import Any

import pytest

from gradcli import tensor
from gradcli.engine.registry.binder import Parser
from gradcli.engine.registry.schema import Signature
from tests.sweep import sweep

X = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def passed(*values: Any) -> tuple[Any, ...]:
    return values


def make(*texts: str, python: bool = False) -> tuple[Any, Any]:
    """(function, method) of signatures, which return their targets' names and values."""
    if len(texts) == 1:
        parser = Parser(texts, passed, python)
    else:
        names = [t.partition("-> ")[2] for t in texts]
        parser = Parser(texts, {n: (lambda *v, n=n: (n, *v)) for n in names})
    return parser.function(), parser.function(first=1)


SUM = make(
    "sum(Tensor input, *, ScalarType? dtype=None) -> all",
    "sum(Tensor input, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, "
    "Tensor? out=None) -> dim",
)
MAX = make(
    "max(Tensor input, *, Tensor? out=None) -> all",
    "max(Tensor input, Tensor other, *, Tensor? out=None) -> other",
    "max(Tensor input, int dim, bool keepdim=False, *, Tensor[]? out=None) -> dim",
)
TRIL = make("tril(Tensor input, int diagonal=0, *, Tensor? out=None)")
GELU = make("gelu(Tensor input, *, str approximate='none')")
POOL = make(
    "avg_pool2d(Tensor input, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
    "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)"
)
ELU = make("elu(Tensor input, Scalar alpha=1.0, Any inplace=False)", python=True)

TAKEN: list[tuple[str, Any, Any]] = [
    ("sum(X)", lambda: SUM[0](X), ("all", X, None)),
    ("sum(X, 1)", lambda: SUM[0](X, 1), ("dim", X, (1,), False, None)),
    ("sum(X, None)", lambda: SUM[0](X, None), ("dim", X, None, False, None)),
    ("sum(X, (0, 1), True)", lambda: SUM[0](X, (0, 1), True), ("dim", X, (0, 1), True, None)),
    ("sum(X, [0, 1])", lambda: SUM[0](X, [0, 1]), ("dim", X, (0, 1), False, None)),
    ("sum(X, dim=0)", lambda: SUM[0](X, dim=0), ("dim", X, (0,), False, None)),
    ("sum(X, axis=0)", lambda: SUM[0](X, axis=0), ("dim", X, (0,), False, None)),
    ("sum(input=X)", lambda: SUM[0](input=X), ("all", X, None)),
    ("X.sum(0, keepdims=True)", lambda: SUM[1](X, 0, keepdims=True), ("dim", X, (0,), True, None)),
    ("tril(X)", lambda: TRIL[0](X), (X, 0)),
    ("tril(X, tensor(1))", lambda: TRIL[0](X, tensor(1)), (X, 1)),
    ("avg_pool2d(X, 2)", lambda: POOL[0](X, 2), (X, 2, (), 0, False, True, None)),
    ("elu(X, tensor(0.5))", lambda: ELU[0](X, tensor(0.5)), (X, 0.5, False)),
    ("elu(X, inplace=True)", lambda: ELU[0](X, inplace=True), (X, 1.0, True)),
]

_SUMS = (
    " * (Tensor input, *, torch.dtype dtype = None)\n"
    " * (Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, "
    "Tensor out = None)\n"
)
_MAXES = [
    " * (Tensor input, *, Tensor out = None)\n",
    " * (Tensor input, Tensor other, *, Tensor out = None)\n"
    " * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)\n",
]
_INVALID = "() received an invalid combination of arguments - got "
_UNFIT = "      didn't match because some of the "

REFUSED: list[tuple[str, Any, str]] = [
    (
        "sum('a')",
        lambda: SUM[0]("a"),
        "sum(): argument 'input' (position 1) must be Tensor, not str",
    ),
    (
        "sum(X, 'a')",
        lambda: SUM[0](X, "a"),
        f"sum{_INVALID}(Tensor, str), but expected one of:\n{_SUMS}",
    ),
    (
        "sum(X, 1, 2, 3)",
        lambda: SUM[0](X, 1, 2, 3),
        "sum() takes from 2 to 3 positional arguments but 4 were given",
    ),
    (
        "sum(X, foo=1, bar=2)",
        lambda: SUM[0](X, foo=1, bar=2),
        'sum() missing 1 required positional arguments: "dim"',
    ),
    ("sum()", lambda: SUM[0](), f"sum{_INVALID}(), but expected one of:\n{_SUMS}"),
    (
        "X.sum('a')",
        lambda: SUM[1](X, "a"),
        f"sum{_INVALID}(str), but expected one of:\n * (*, torch.dtype dtype = None)\n"
        " * (tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)\n",
    ),
    (
        "max(X, 'a')",
        lambda: MAX[0](X, "a"),
        f"max{_INVALID}(Tensor, str), but expected one of:\n{_MAXES[0]}{_MAXES[1]}",
    ),
    (
        "max(X, 1.5, True)",
        lambda: MAX[0](X, 1.5, True),
        f"max{_INVALID}(Tensor, float, bool), but expected one of:\n{_MAXES[0]}{_UNFIT}"
        f"arguments have invalid types: (Tensor, !float!, !bool!)\n{_MAXES[1]}",
    ),
    (
        "max(X, 1, keepdim=3)",
        lambda: MAX[0](X, 1, keepdim=3),
        f"max{_INVALID}(Tensor, int, keepdim=int), but expected one of:\n{_MAXES[0]}{_UNFIT}"
        f"keywords were incorrect: keepdim\n{_MAXES[1]}",
    ),
    (
        "max(X, (1, 2), True)",
        lambda: MAX[0](X, (1, 2), True),
        f"max{_INVALID}(Tensor, tuple, bool), but expected one of:\n{_MAXES[0]}{_UNFIT}"
        f"arguments have invalid types: (Tensor, !tuple of (int, int)!, !bool!)\n{_MAXES[1]}",
    ),
    (
        "tril(X, 'a')",
        lambda: TRIL[0](X, "a"),
        "tril(): argument 'diagonal' (position 2) must be int, not str",
    ),
    (
        "X.tril('a')",
        lambda: TRIL[1](X, "a"),
        "tril(): argument 'diagonal' (position 1) must be int, not str",
    ),
    (
        "tril(X, diagonal='a')",
        lambda: TRIL[0](X, diagonal="a"),
        "tril(): argument 'diagonal' must be int, not str",
    ),
    ("tril()", lambda: TRIL[0](), 'tril() missing 1 required positional arguments: "input"'),
    (
        "tril(X, 1, 2)",
        lambda: TRIL[0](X, 1, 2),
        "tril() takes from 1 to 2 positional arguments but 3 were given",
    ),
    (
        "tril(X, input=X)",
        lambda: TRIL[0](X, input=X),
        "tril() got multiple values for argument 'input'",
    ),
    ("tril(X, k=1)", lambda: TRIL[0](X, k=1), "tril() got an unexpected keyword argument 'k'"),
    (
        "gelu(X, 'tanh')",
        lambda: GELU[0](X, "tanh"),
        "gelu() takes 1 positional argument but 2 were given",
    ),
    (
        "gelu(X, approximate=1)",
        lambda: GELU[0](X, approximate=1),
        "gelu(): argument 'approximate' must be str, not int",
    ),
    (
        "avg_pool2d(X, (1.5, 1))",
        lambda: POOL[0](X, (1.5, 1)),
        "avg_pool2d(): argument 'kernel_size' (position 2) must be tuple of ints, but found element "
        "of type float at pos 0",
    ),
    (
        "avg_pool2d(X, (1, 'a'))",
        lambda: POOL[0](X, (1, "a")),
        "avg_pool2d(): argument 'kernel_size' failed to unpack the object at pos 2 with error "
        '"type must be tuple of ints,but got str"',
    ),
    (
        "avg_pool2d(X, 1, stride=(1.5, 1))",
        lambda: POOL[0](X, 1, stride=(1.5, 1)),
        "avg_pool2d(): argument 'stride' must be tuple of ints, not tuple",
    ),
    (
        "elu(X, alpha='a')",
        lambda: ELU[0](X, alpha="a"),
        "elu(): argument 'alpha' (position 2) must be Number, not str",
    ),
    ("elu()", lambda: ELU[0](), "elu() missing 1 required positional argument: 'input'"),
    (
        "elu(X, 1, True, 3)",
        lambda: ELU[0](X, 1, True, 3),
        "elu() takes from 1 to 3 positional arguments but 4 were given",
    ),
]


@sweep(("text", "call", "expected"), TAKEN, parts=1)
def test_values_come_in_the_order_of_the_signature(text: str, call: Any, expected: Any) -> None:
    for _ in range(2):  # the first call makes the function's code
        found = call()
        assert len(found) == len(expected)
        for got, wanted in zip(found, expected, strict=True):
            assert got is wanted or (type(got) is type(wanted) and got == wanted)


@sweep(("text", "call", "expected"), REFUSED, parts=1)
def test_refusals_are_pytorchs(text: str, call: Any, expected: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == expected


def test_a_signature_shows_its_parameters() -> None:
    shown = str(Signature("tril(Tensor input, int diagonal=0, *, Tensor? out=None)"))
    assert shown == "(input, diagonal=0)"


def test_out_is_written_into() -> None:
    out = tensor([[0.0] * 3] * 2)
    add = Parser(("f(Tensor input, *, Tensor? out=None)",), lambda x: x + 1).function()
    assert add(X, out=out) is out
    assert out.tolist() == (X + 1).tolist()


def lone(given: tuple[Any, ...]) -> Any:
    return given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda grid: grid(X, X), ((X, X), None)),
        (lambda grid: grid([X, X]), ([X, X], None)),
        (lambda grid: grid(X, indexing="ij"), ((X,), "ij")),
    ],
)
def test_many_arguments_go_on_as_one(call: Any, expected: Any) -> None:
    text = "meshgrid(Tensor[] tensors, str? indexing=None)"
    grid = Parser((text,), passed, many=lone).function()
    tensors, indexing = call(grid)
    assert list(map(id, tensors)) == list(map(id, expected[0])) and indexing == expected[1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda grid: grid(X, "a"), "expected Tensor as element 1 in argument 0, but got str"),
        (lambda grid: grid(X, indexing=1), "meshgrid(): argument 'indexing' must be str, not int"),
        (lambda grid: grid(X, foo=1), "meshgrid() got an unexpected keyword argument 'foo'"),
    ],
)
def test_many_arguments_are_refused_as_one(call: Any, words: str) -> None:
    text = "meshgrid(Tensor[] tensors, str? indexing=None)"
    grid = Parser((text,), passed, many=lone).function()
    with pytest.raises(TypeError) as caught:
        call(grid)
    assert str(caught.value) == words


def test_a_name_with_its_module_is_said_as_pytorch_says_it() -> None:
    found = [Parser((f"{name}(Tensor input)",), passed).name for name in ("linalg.inv", "tril")]
    assert [*found, Parser(("nn.functional.relu(Tensor input)",), passed).name] == [
        *("linalg_inv", "tril"),
        "relu",
    ]

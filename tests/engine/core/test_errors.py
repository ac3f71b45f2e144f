"""Errors of the engine: PyTorch's words and class to see, a class of ours with fields to handle."""

from __future__ import annotations

import pickle
import re
import traceback
from typing import Any

import numpy as np
import pytest

import gradcli as torch
from gradcli.engine.core import errors, modes
from gradcli.language.error_remedies import REMEDIES, remedy
from tests.test_architecture import modules, name_of, text

X = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def again() -> None:
    y = (X * X).sum()
    y.backward()
    y.backward()


def stale() -> None:
    y = X.exp()
    z = y * y
    y += 1
    z.sum().backward()


# What is done, the class of the error, what Python shows it as, and its fields.
ROWS: list[tuple[Any, type[errors.EngineError], type[Exception], dict[str, Any]]] = [
    (lambda: (X * 2).backward(), errors.NotScalarError, RuntimeError, {"shape": (3,)}),
    (
        lambda: (X * 2j).sum().backward(),
        errors.NotRealError,
        RuntimeError,
        {"dtype": "torch.complex64"},
    ),
    (lambda: torch.ones(1).backward(), errors.NoGradientError, RuntimeError, {"index": 0}),
    (
        lambda: (X * 2).backward(torch.ones(2)),
        errors.SeedShapeError,
        RuntimeError,
        {"index": 0, "given": (2,), "shape": (3,)},
    ),
    (again, errors.GraphFreedError, RuntimeError, {}),
    (stale, errors.StaleTensorError, RuntimeError, {"shape": (3,), "version": 1, "expected": 0}),
    (lambda: X.add_(1), errors.LeafWriteError, RuntimeError, {}),
    (
        lambda: torch.func.grad(lambda x: x.fill(1))(np.ones(2)),
        errors.ArgumentWriteError,
        RuntimeError,
        {},
    ),
    (
        lambda: torch.tensor([1], requires_grad=True),
        errors.NotDifferentiableDtypeError,
        RuntimeError,
        {},
    ),
    (
        lambda: torch.func.grad(lambda x: x)("2"),
        errors.TransformInputError,
        ValueError,
        {},
    ),
    (
        lambda: X + torch.ones(2),
        errors.BroadcastError,
        RuntimeError,
        {"sizes": (3, 2), "dimension": 0},
    ),
    (
        lambda: torch.ones(2, 3) @ torch.ones(2, 3),
        errors.ProductShapesError,
        RuntimeError,
        {},
    ),
    (
        lambda: torch.dot(torch.ones(2, 2), X),
        errors.VectorsExpectedError,
        RuntimeError,
        {"ndims": (2, 1)},
    ),
    (
        lambda: torch.dot(torch.ones(2), X),
        errors.VectorLengthsError,
        RuntimeError,
        {"sizes": (2, 3)},
    ),
    (lambda: X.sum(3), errors.DimensionRangeError, IndexError, {"dim": 3, "ndim": 1}),
    (lambda: bool(X > 1), errors.AmbiguousTruthError, RuntimeError, {"size": 3}),
    (
        lambda: torch.vmap(lambda x: x if x > 1 else -x)(X),
        errors.BatchedBranchError,
        RuntimeError,
        {},
    ),
    (
        lambda: torch.func.jvp(lambda x: x, ("2",), (torch.ones(2),)),
        errors.TransformVectorError,
        RuntimeError,
        {},
    ),
    (lambda: np.unwrap(X), errors.NoNumpyError, RuntimeError, {"function": "unwrap"}),
    (
        lambda: torch.func.grad(lambda x: x)(torch.ones(2)),
        errors.NotScalarResultError,
        RuntimeError,
        {"ndim": 1},
    ),
    (lambda: X[::-1], errors.NegativeStepError, ValueError, {}),
    (lambda: _left(X[0]), errors.LeftGraphError, RuntimeError, {"line": "return float(x)"}),
    (
        lambda: torch.func.grad(lambda x: x.item())(torch.ones(())),
        errors.ReturnedTypeError,
        RuntimeError,
        {},
    ),
    (lambda: torch.nn.Linear(2, 1)(np.ones(2)), errors.LayerInputError, TypeError, {}),
    (lambda: X[torch.ones(2)], errors.IntegerIndexError, IndexError, {}),
    (
        lambda: torch.nn.functional.embedding(torch.ones(2), torch.ones(2, 2)),
        errors.IntegerOperandError,
        RuntimeError,
        {"position": 0},
    ),
]


def _left(x: Any) -> float:
    with modes.no_number_may_leave():
        return float(x)


@pytest.mark.parametrize(
    ("run", "kind", "shown", "fields"), ROWS, ids=[row[1].kind for row in ROWS]
)
def test_a_class_with_fields(
    run: Any, kind: type[errors.EngineError], shown: type[Exception], fields: dict[str, Any]
) -> None:
    with pytest.raises(shown) as raised:
        run()
    error = raised.value
    assert type(error) is kind
    assert repr(error).startswith(f"{shown.__name__}(")
    assert {name: getattr(error, name) for name in fields} == fields
    there = pickle.loads(pickle.dumps(error))  # as from a worker
    assert (type(there), str(there), vars(there)) == (kind, str(error), vars(error))


def test_every_remedy_can_be_written() -> None:
    raised = {type(error): error for error in map(_error_of, ROWS)}
    for kind in REMEDIES:
        for reader in ("program", "command", "python", "tensors"):
            assert "{" not in (remedy(raised[kind], reader) or "")  # type: ignore[arg-type]


def test_a_traceback_ends_with_what_to_do() -> None:
    """The remedy is the error's note; its own words stay PyTorch's, and others may add notes."""
    with pytest.raises(torch.GradcliError) as raised:
        torch.func.grad(lambda x: x.sum())("3")
    error = raised.value
    assert isinstance(error, ValueError) and str(error).endswith("got <class 'str'>")
    error.add_note("of somebody's")
    first, second = error.__notes__
    assert first.startswith("hint: make a tensor of it: torch.tensor(x)")
    assert second == "of somebody's"
    assert "".join(traceback.format_exception(error)).splitlines()[-2:] == [first, second]


def _error_of(row: tuple[Any, ...]) -> errors.EngineError:
    with pytest.raises(Exception) as raised:
        row[0]()
    assert isinstance(raised.value, errors.EngineError)
    return raised.value


def test_the_error_behind_an_error() -> None:
    engine, outer = errors.NoGradientError(), ValueError("outer")
    outer.__cause__ = engine
    assert errors.named(outer) is engine and errors.named(ValueError()) is None
    assert errors.named(None) is None


# Errors of other programs, which have words alone: PyTorch's own, NumPy's, Python's, Arrow's.
OTHERS = {
    "gradcli.commands.graph": "of a program of PyTorch's",
    "gradcli.graphs.diagnosis": "of a program of PyTorch's",
    "gradcli.graphs.of_torch.torch_nodes": "of a node of PyTorch's",
    "gradcli.engine.core.promotion": "NumPy's",
    "gradcli.operators.primitives.arithmetic": "NumPy's",
    "gradcli.language.runtime_errors": "Python's",
}
READS_WORDS = re.compile(
    r"(?:words|message|str\((?:error|e)\))\.(?:startswith|endswith)\([(\"']"
    r"|[\"'] (?:not )?in (?:words|message|str\((?:error|e)\))(?!\[)"
    r"|re\.\w+\([^\n]*, (?:words|str\((?:error|e)\)|message)\)"
)


def test_no_error_of_ours_is_known_by_its_words() -> None:
    reading = {name_of(path) for path in modules() if READS_WORDS.search(text(path))}
    assert reading <= OTHERS.keys()


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda x: np.unwrap(x), "np.unwrap leaves the graph: write functions of torch"),
        (
            lambda x: np.linalg.eigvals(x),
            "np.linalg.eigvals leaves the graph: write torch.linalg.eig",
        ),
        (lambda x: np.interp(x, [1, 2], [3, 4], period=9), "np.interp leaves the graph"),
        (lambda x: np.array([x[0], x[1]]), r"write np.stack\(\[…\]\)"),
    ],
)
def test_a_function_that_leaves_the_graph_is_named(call: Any, remedy: str) -> None:
    with pytest.raises(RuntimeError, match=r"^Can't call numpy\(\) on Tensor") as caught:
        call(torch.ones(3, requires_grad=True))
    assert re.search(remedy, "".join(caught.value.__notes__))

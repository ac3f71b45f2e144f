"""Functions of NumPy's, and libraries over it, take gradcli's tensors as they take torch's.

A tensor that is numbers and no more is an array to them. What is recorded, or carries a tangent, means the
function of the same name, which is recorded too, or is refused in torch's words.
"""

from __future__ import annotations

import importlib
import json
import re
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.torch import func
from tests.golden import by_version
from tests.golden.record_numpy import NUMBERS, RECORDED, answer, spaces, tensors_of
from tests.sweep import sweep

SAID: dict[str, str] = json.loads(RECORDED.read_text(encoding="utf-8"))
REFUSAL = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
# Of functions that are gradcli's own, of other shapes or dtypes than they take.
OWN = (
    "At least one of 'min' or 'max'",
    "must have at least 2 dimensions",
    "to have the same dtype",
)
TRUTHS = {"True": "1", "False": "0", "uint8": "bool"}  # torch's tensors of truths become bytes


def alike(said: str) -> str:
    """An answer in which truths are truths."""
    for ours, theirs in TRUTHS.items():
        said = said.replace(ours, theirs)
    return said


def untyped(said: str) -> str:
    """The numbers, whatever holds them."""
    return alike(re.sub(r"\w+ (bool|u?int\d+|float\d+|complex\d+) ", "", said))


def answered(call: str) -> bool:
    """Whether this release of NumPy answers the call for arrays, and as the one that was recorded."""
    if call.startswith("np.fix(") and np.lib.NumpyVersion(np.__version__) < "2.4.0":
        return False  # it made an array of every argument; since then it is `trunc`
    said = answer(call, spaces(lambda numbers, kind: np.array(numbers, kind)))
    return untyped(said) == untyped(SAID[call])


def plain() -> list[str]:
    """The calls that torch's tensors answer."""
    return [call for call, said in SAID.items() if not said.startswith("!")]


def recorded() -> list[str]:
    """The calls that are refused where a tensor requires grad."""
    return [call for call, said in SAID.items() if REFUSAL in said and exists(call)]


def exists(call: str) -> bool:
    """Whether this release of NumPy has the call's functions: `row_stack` went with 2.5."""
    names = re.findall(r"\bnp\.([\w.]+)", call)
    try:
        return all(attrgetter(name)(np) is not Ellipsis for name in names)
    except AttributeError:
        return False


@sweep("call", plain, often=1)
def test_a_tensor_is_an_array_as_torchs(call: str) -> None:
    said = answer(call, tensors_of(gradcli))
    assert alike(said) == alike(SAID[call]) or not answered(call), f"{said}\n{SAID[call]}"


@sweep("call", recorded)
def test_a_recorded_tensor_is_a_tensor_or_refused(call: str) -> None:
    space = tensors_of(gradcli)
    said = answer(call, space)
    if said.startswith("!"):
        own = (
            "torch.clamp" in said or "ril: input" in said or "riu: input" in said or "dtype" in said
        )
        assert REFUSAL in said or own, said
    else:
        assert untyped(said) == untyped(answer(call, space | {"x": space["x"].detach()}))


@pytest.mark.long
@pytest.mark.needs("torch")
def test_torch_still_says_so() -> None:
    torch = importlib.import_module("torch")
    said = {call: answer(call, tensors_of(torch)) for call in SAID}
    changed = [call for call in SAID if said[call] != SAID[call] and answered(call)]
    by_version.settle("numpy.json", changed)


X = gradcli.tensor([3.0, 1.0, 2.0])
NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"


def test_what_is_recorded_stays_so() -> None:
    x = X.clone().requires_grad_()
    y = np.sum(np.exp(np.concatenate([np.multiply(x, x), np.float64(2) * x])) / 7)
    (slope,) = gradcli.autograd.grad(y, x, create_graph=True)
    expected = (2 * X * (X * X).exp() + 2 * (2 * X).exp()) / 7
    assert gradcli.allclose(slope, expected, rtol=1e-5)
    (again,) = gradcli.autograd.grad(slope.sum(), x)
    assert gradcli.allclose(again[1], (6 * X[1].exp() + 4 * (2 * X[1]).exp()) / 7, rtol=1e-5)
    with gradcli.no_grad():
        assert type(np.concatenate([x, x])) is np.ndarray


@pytest.mark.parametrize(
    ("transform", "refusal"),
    [
        (lambda f: func.jvp(f, (X,), (X,)), NO_STORAGE),
        (lambda f: func.vmap(f)(X[:, None]), NO_STORAGE),
        (lambda f: func.grad(lambda x: f(x).sum())(X), REFUSAL),
        (lambda f: func.jacrev(f)(X), REFUSAL),
    ],
)
def test_transforms_keep_or_refuse(transform: Any, refusal: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(refusal)):
        transform(lambda x: gradcli.from_numpy(np.unwrap(x)))
    found, own = transform(np.sin), transform(gradcli.sin)
    assert str(found) == str(own)


def test_a_numpy_array_is_written_from_a_tensor() -> None:
    a = np.ones(3)
    assert np.add(X, 1, out=a) is a and a.tolist() == [4, 2, 3]
    a += X
    np.copyto(a, X, where=[True, False, False])
    assert a.tolist() == [3, 3, 5]
    with pytest.raises(RuntimeError, match=re.escape(REFUSAL)):
        np.add(X.clone().requires_grad_(), 1, out=a)


@pytest.mark.long
@pytest.mark.needs("matplotlib")
@pytest.mark.filterwarnings("ignore:Converting a tensor")
def test_matplotlib_draws_tensors() -> None:
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("agg")
    plt = importlib.import_module("matplotlib.pyplot")
    x, m = X.double(), gradcli.arange(12.0).reshape(3, 4)
    for draw in (plt.plot, plt.bar, plt.scatter, plt.hist2d, plt.step, plt.stem, plt.fill_between):
        draw(x, x)
    plt.quiver(x, x, x, x)
    plt.errorbar(x, x, yerr=x)
    counts, edges, _ = plt.hist(x, bins=2)
    assert counts.tolist() == [1, 2] and edges.tolist() == [1, 2, 3]
    for draw in (plt.imshow, plt.contour, plt.contourf, plt.pcolormesh, plt.boxplot):
        draw(m)
    with pytest.raises(RuntimeError, match=re.escape(REFUSAL)):
        plt.plot(x.requires_grad_())
    plt.close("all")


@pytest.mark.long
@pytest.mark.needs("pandas")
def test_pandas_and_scipy_take_tensors() -> None:
    pandas = importlib.import_module("pandas")
    optimize, stats = (importlib.import_module(f"scipy.{name}") for name in ("optimize", "stats"))
    x = X.double()
    assert pandas.Series(x).sort_values().tolist() == [1, 2, 3]
    assert pandas.DataFrame({"a": x, "b": x}).sum().tolist() == [6, 6]
    assert stats.norm.cdf(x - x).tolist() == [0.5, 0.5, 0.5]
    assert stats.pearsonr(x, -x).statistic == pytest.approx(-1)

    def loss(v: Any) -> Any:
        v = gradcli.as_tensor(v).requires_grad_()
        value = ((v - x) ** 2).sum()
        value.backward()
        return value.detach(), v.grad

    found = optimize.minimize(loss, gradcli.zeros(3), jac=True)
    assert found.x == pytest.approx(x.numpy())


def test_the_table_is_of_every_kind() -> None:
    assert len(SAID) > 2000
    assert set(NUMBERS) <= set(re.findall(r"\b[a-z]\b", " ".join(SAID)))

r"""The LaTeX of every kind of formula is read by `--math` as what it was printed for.

What differs between the two is only names: `θ_1` is printed as `\theta_{1}`, which is read as theta_1.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from tests.commands.running import run
from tests.readers.cases import FORMULAS
from tests.sweep import sweep

# Shapes that the formulas' own options leave open.
SHAPES = {"matrix product": "A=2,3 x=3 b=2", "quadratic form": "A=3,3", "softmax": "x=3"}
GREEK = {"θ_1": "theta_1", "α": "alpha", "β": "beta", "ω_n": "omega_n"}


def options(values: dict[str, Any]) -> list[str]:
    return [w for name, v in values.items() for w in (f"--{name}", json.dumps(v.tolist()))]


def read(latex: str, values: dict[str, Any]) -> Any:
    """What `eval --math` gives, of the variables that the text has."""
    found = run("eval", latex, "--math", "--json", *options(values))
    if missing := re.search(r"nor a variable of the expression \(variables: (.*?)\)", found.stderr):
        kept = {name: v for name, v in values.items() if name in missing[1].split(", ")}
        found = run("eval", latex, "--math", "--json", *options(kept))
    assert found.exit_code == 0, (latex, found.stderr)
    return json.loads(found.stdout)["value"]


@pytest.mark.long
@sweep("kind", FORMULAS, parts=2)
def test_every_kind_is_read_back(kind: str) -> None:
    source, *more = FORMULAS[kind]
    names = json.loads(run("diff", source, *more, "--json").stdout)["shapes"]
    printed = run("diff", source, *more, "--format", "latex", "--plain").stdout.splitlines()
    given = [*more[1::2], *SHAPES.get(kind, "").split()]
    shapes = {n: tuple(map(int, s.split(","))) for n, _, s in (one.partition("=") for one in given)}
    random = np.random.default_rng(0)
    values = {n: random.uniform(0.3, 1.7, shapes.get(n, ())) for n in names}
    expected = json.loads(run("grad", source, "--json", *options(values)).stdout)["wrt"]
    renamed = {GREEK.get(name, name): v for name, v in values.items()}
    for name, latex in (one.split("\t") if "\t" in one else (*names, one) for one in printed):
        found = np.array(read(latex, renamed), float)
        np.testing.assert_allclose(found, expected[name]["grad"], rtol=1e-6, err_msg=latex)


@pytest.mark.parametrize(
    ("latex", "read"),
    [
        (r"e^{\circ A}", "exp(A)"),
        (r"A^{\circ 2}", "A**2"),
        (r"\left[{x}_{i} {A}_{ij}\right]_{ij}", "x[:, None]*A"),
        (r"\left[{A}_{ij} {x}_{i}\right]_{ji}", "(A*x[:, None]).T"),
        (r"\Phi\left(s\right)", "special.ndtr(s)"),
        (r"x - e_{1}", "x - eye(2)[1]"),
    ],
)
def test_notations_that_are_printed(latex: str, read: str) -> None:
    shapes = {"A": "1,2;3,4", "x": "5,6", "s": "7"}
    given = [w for n, v in shapes.items() if n in read.replace("exp", "") for w in (f"--{n}", v)]
    found = run("eval", latex, "--math", *given)
    assert found.exit_code == 0 and f"read as {read}" in found.stderr, found.stderr

"""Roots and minima have the uncertainties that their inputs give them."""

import json
import math

import pytest
from click.testing import CliRunner

from gradcli.cli import main


def run(*argv):
    found = CliRunner().invoke(main, argv)
    return found.exit_code, found.stdout, found.stderr


# command, what is solved, options, the uncertainties by name, how they are found
SOLVED = [
    ("root", "x**2 == a", "--x 1 --a 2±0.1", {"x": 0.1 / 2 / 2**0.5}, None),
    ("root", "x + y == a; x*y == b", "--x 0 --y 5 --a 3±0.1 --b 2±0.1",
     {"x": 0.1 * 2**0.5, "y": 0.1 * 5**0.5}, None),
    ("root", "x + y == a; x*y == b", "--x 0 --y 5 --a 3±0.1 --b 2±0.1 --covariance a,b=0.005",
     {"x": 0.1, "y": 0.03**0.5}, None),
    ("root", "A@v == b", "--A 2,0;0,4 --b 1±0.1,2±0.2 --v 0,0 --wrt v", {"v[0]": 0.05, "v[1]": 0.05}, None),
    ("root", "x**2 == a", "--x 1 --a 0±0.1", {"x": 0.1104}, "100000 draws"),
    ("minimize", "(x-a)**2 + b", "--x 0 --a 2±0.1 --b 1±0.3", {"x": 0.1, "value": 0.3}, None),
    ("minimize", "x**4 - a*x", "--x 1 --a 4±0.4", {"x": 0.4 / 12, "value": 0.4}, None),
    ("minimize", "(x-a)**2", "--x 1 --a -1±0.1 --bounds x=0:", {"x": 0, "value": 0.2}, None),
    ("minimize", "(x-a)**2", "--x 1 --a 0±0.1 --bounds x=0:",
     {"x": 0.1 * (0.5 - 0.5 / math.pi) ** 0.5, "value": 0.0111803}, "100000 draws"),
    ("minimize", "x**2 + y**2 + 0*a", "--x 1 --y 2 --a 2±0.1 --wrt x,y --subject x+y==a",
     {"x": 0.05, "y": 0.05, "value": 0.2}, None),
    ("minimize", "x**2 + y**2 + 0*a", "--x 1 --y 2 --a 2±0.1 --wrt x,y --subject x+y>=a",
     {"x": 0.05, "y": 0.05, "value": 0.2}, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "source", "given", "errors", "by"),
    [
        pytest.param(*row, marks=[pytest.mark.long] * (k not in (0, 5)))
        for k, row in enumerate(SOLVED)
    ],
)
def test_what_is_found_moves_with_its_inputs(command, source, given, errors, by):
    code, out, err = run(command, source, *given.split(), "--json", "--budget")
    assert code == 0, err
    found = json.loads(out)
    spread, shares = found["uncertainties"], found["budgets"]
    if command == "root":
        (spread,), (shares,) = spread, shares
    assert spread == {
        n: pytest.approx(e, rel=1e-7 if by is None else 0.01, abs=1e-8) for n, e in errors.items()
    }
    assert (f"is by {by}" in err) if by else ("is by" not in err)
    for name, parts in shares.items():
        whole = sum(part["share"] for part in parts.values())
        assert whole == pytest.approx(1 if spread[name] > 1e-9 else 0, abs=1e-6), name


def test_it_is_said_that_an_input_stays():
    _, out, err = run("root", "x**2 == a", "--x", "1", "--a", "2±0.1")
    assert out.startswith("x = 1.414 ± 0.035\n")
    assert err == "gradcli: note: a is held at its value: its uncertainty goes into the result\n"
    assert run("root", "x**2 == a", "--x", "1", "--a", "2±0.1", "--wrt", "x")[2] == ""
    code, _, err = run("root", "x**2 == a", "--x", "1", "--a", "2±0.1", "--wrt", "a")
    assert (code, err.splitlines()[0]) == (
        2,
        "gradcli: error: --wrt: a is sought and has an uncertainty",
    )
    plain = run("root", "x**2 == a", "--x", "1", "--a", "2±0.1", "--wrt", "x", "--plain")[1]
    assert plain.startswith("x\t1.4142135623730951±0.0353553390593")


@pytest.mark.long
@pytest.mark.parametrize(("command", "source", "given", "errors", "by"), SOLVED)
def test_draws_tell_the_same(command, source, given, errors, by):
    code, out, err = run(command, source, *given.split(), "--json", "--monte-carlo", "40000")
    assert code == 0, err
    found = json.loads(out)["uncertainties"]
    found = found[0] if command == "root" else found
    rel = 0.15 if ";" in source else 0.03  # the first order's own error
    assert found == {n: pytest.approx(e, rel=rel, abs=5e-3) for n, e in errors.items()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "source", "given", "names"),
    [
        ("root", "cos(x) == a*x", "--x 1", "a"),
        ("root", "exp(x) + y == a; y*x == b", "--x 1 --y 1", "ab"),
        ("minimize", "(x-a)**4 + (x-b)**2*exp(x)", "--x 1", "ab"),
        ("minimize", "sum((v - a)**2) + b*v[0]*v[1]", "--v 1,0", "ab"),
    ],
)
def test_small_steps_tell_the_same(command, source, given, names):
    """Beside finite differences of points that are found anew."""
    centre = {"a": 2.5, "b": 0.4}

    def point(values):
        moved = [w for n in names for w in (f"--{n}", repr(values[n]))]
        only = ",".join(w[2:] for w in given.split() if w.startswith("--"))
        out = run(command, source, *given.split(), *moved, "--wrt", only, "--json")[1]
        found = json.loads(out)
        at = found["roots"][0] if command == "root" else found["point"]
        flat = [v for value in at.values() for v in (value if isinstance(value, list) else [value])]
        return flat + ([] if command == "root" else [found["value"]])

    slopes = []
    for n in names:
        up, down = (point({**centre, n: centre[n] + s * 1e-4}) for s in (1, -1))
        slopes.append([(p - q) / 2e-4 for p, q in zip(up, down, strict=True)])
    expected = [1e-3 * sum(s**2 for s in column) ** 0.5 for column in zip(*slopes, strict=True)]
    inputs = [w for n in names for w in (f"--{n}", f"{centre[n]}±0.001")]
    out = run(command, source, *given.split(), *inputs, "--json")[1]
    found = json.loads(out)["uncertainties"]
    found = found[0] if command == "root" else found
    assert list(found.values()) == pytest.approx(expected, rel=1e-4)

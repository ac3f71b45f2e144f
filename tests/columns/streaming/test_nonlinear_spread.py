"""map has the uncertainties that eval has, also where the gradient does not tell them."""

import json

import pytest
from click.testing import CliRunner

import gradcli
from gradcli.cli import main


def run(*argv):
    found = CliRunner().invoke(main, argv)
    assert found.exit_code == 0, found.stderr
    return found.stdout, found.stderr


@pytest.mark.parametrize(
    ("source", "others", "said"),
    [
        ("x**2", [], "second order"),
        ("x*y", ["--y", "0±0.2"], "second order"),
        ("x*y + x**2 - y**2", ["--y", "0.1±0.2"], "second order"),
        ("sin(x) + y", ["--y", "0.1±0.2"], None),
        ("abs(x)", [], "100000 draws"),
        ("cosh(3*x)", [], "second order"),
        ("x**2*exp(0*x)", [], "second order"),
        ("3*x + 1", [], None),
        *(
            pytest.param(*row, marks=pytest.mark.long)
            for row in [
                ("x*y", ["--y", "0±0.2", "--covariance", "x,y=0.004"], "second order"),
                ("x*y", ["--y", "0±0.2", "--budget"], "second order"),
                ("abs(x) + y**2", ["--y", "0±0.2", "--covariance", "x,y=0.004"], "draws of normal"),
                ("sqrt(x + 1) + sqrt(x)", [], "(in 2 rows some have no value)"),
            ]
        ),
    ],
)
def test_a_row_has_the_uncertainty_of_eval(tmp_path, source, others, said):
    cells = ["0±0.1", "0.01±0.1", "2±0.1", "-1±0.05"]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["x", *cells]) + "\n")
    lines, notes = run("map", source, str(table), *others, "--no-grad", "all", "--format", "jsonl")
    rows = [json.loads(line) for line in lines.splitlines()]
    for cell, row in zip(cells, rows, strict=True):
        alone = json.loads(run("eval", source, f"--x={cell}", *others, "--json")[0])
        drawn = alone.get("uncertainty_by", "").endswith("draws")
        if alone["value"] == "nan":
            continue
        assert row["value.uncertainty"] == pytest.approx(
            alone["uncertainty"], rel=0.01 if drawn else 1e-9
        )
        for name, part in alone.get("budget", {}).items():
            assert row[f"{name}.share"] == pytest.approx(part["share"])
    assert (said or "") in notes and bool(said) == ("whose uncertainty is by" in notes)


def test_what_draws_random_numbers_keeps_them(tmp_path):
    """The moves for the second order leave the rows' own numbers as they are."""
    (tmp_path / "t.csv").write_text("x\n0\n1\n2\n")
    given = ["map", "x + rand(())", str(tmp_path / "t.csv"), "--no-grad", "all"]
    gradcli.manual_seed(1)
    plain = run(*given)
    gradcli.manual_seed(1)
    spread = run(*given, "--uncertainty", "x=0.1")
    values = [line.split(",")[1] for line in spread[0].splitlines()]
    assert values == [line.split(",")[1] for line in plain[0].splitlines()]
    assert [line.split(",")[2] for line in spread[0].splitlines()[1:]] == ["0.1"] * 3

"""Tables of an analyst: roots that the data do not tell, dates, columns of text, frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradcli
from tests.commands.running import outcome

CALL = "d=(log(S/K)+v**2*T/2)/(v*sqrt(T)); d2=d-v*sqrt(T); S*special.ndtr(d)-K*special.ndtr(d2)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- roots that the data do not tell --------------------------------------------------------------
@pytest.mark.parametrize("start", ["0.2", "0.45", "0.001:3"])
@pytest.mark.parametrize("sides", ["{} == price", "{} - price"])
def test_a_volatility_that_the_price_does_not_tell_is_nan(start: str, sides: str) -> None:
    # deep in the money: the price is S - K for every small volatility, in the first row to all digits
    Path("deep.csv").write_text("S,K,T,price\n117.68,72,0.01,45.68\n100,101,0.5,7.5\n")
    line = [sides.format(CALL), "deep.csv", "--v", start, "--wrt", "v", "--keep-columns", "none"]
    code, out, err = outcome("root", *line, "--precision", "4")
    assert (code, out.split()) == (0, ["v", "nan", "0.2823"])
    assert "1 bad row nan; the first: deep.csv, line 2" in err


def test_a_volatility_of_few_digits_is_said_to_be_one() -> None:
    price = gradcli.evaluate(CALL, S=117.68, K=72.0, T=0.01, v=0.77).item()
    Path("deep.csv").write_text(f"S,K,T,price\n117.68,72,0.01,{price!r}\n")
    line = [f"{CALL} == price", "deep.csv", "--v", "0.2", "--wrt", "v", "--keep-columns", "none"]
    _, out, err = outcome("root", *line)
    assert float(out.split()[1]) == pytest.approx(0.77, rel=1e-3)
    assert err == "gradcli: note: 1 row has a root of which rounding leaves fewer than 6 digits\n"


def test_a_root_of_python_that_is_not_the_only_one_has_not_converged() -> None:
    given = {"S": 117.68, "K": 72.0, "T": 0.01, "price": 117.68 - 72}
    for sides in ("{} == price", "{} - price"):
        with pytest.warns(UserWarning, match="not the only one"):
            assert not gradcli.root(sides.format(CALL), given, v=0.2, wrt="v").converged
    assert gradcli.root(f"{CALL} - price", given | {"price": 50}, v=0.2, wrt="v").converged
    with pytest.warns(UserWarning, match="not the only one"):
        assert not gradcli.root("relu(x) == y", x=-np.ones(20), y=np.zeros(20), wrt="x")
    assert gradcli.root("(x - 1)**2", x=3).converged and gradcli.root("cos(x) == 1", x=0.1)

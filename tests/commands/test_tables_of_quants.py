"""Tables of an analyst: roots that the data do not tell, dates, columns of text, frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


# -- frames and dates -----------------------------------------------------------------------------
DAYS = ["2025-01-03", "2025-01-10", "2025-02-01"]
KINDS = ["pandas", "texts", "zoned", "polars", "polars texts", "arrow", "dict"]


def _frame(kind: str) -> Any:
    columns = {"day": DAYS, "k": [80, 90, 100], "type": ["call", "put", "call"]}
    if kind == "dict":
        return columns | {"day": np.array(DAYS, "M8[D]")}
    if kind.startswith("polars"):
        pl = pytest.importorskip("polars")
        found = pl.DataFrame(columns)
        return found if "texts" in kind else found.with_columns(pl.col("day").str.to_date())
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(columns)
    if kind != "texts":
        frame["day"] = pd.to_datetime(frame["day"], utc=kind == "zoned")
    return frame if kind != "arrow" else pytest.importorskip("pyarrow").Table.from_pandas(frame)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_dates_of_frames_are_days_as_those_of_a_csv(kind: str) -> None:
    with pytest.warns(UserWarning, match="day is days since 2025-01-03; time_origin=DATE"):
        found = gradcli.map("day*k", _frame(kind))
    assert found["value"].tolist() == [0, 630, 2900] and found["k.grad"].tolist() == [0, 7, 29]
    with pytest.warns(UserWarning, match="day is days since 2025-01-01"):
        found = gradcli.map("day", _frame(kind), time_origin="2025-01-01")
    assert found["value"].tolist() == [2, 9, 31]


def test_times_and_text_of_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    times = pd.DataFrame({"t": pd.to_datetime(["2025-01-01 12:00", "2025-01-01 12:01", None])})
    with pytest.warns(UserWarning, match="t is seconds since 2025-01-01T12:00"):
        assert np.allclose(gradcli.map("t", times)["value"], [0, 60, np.nan], equal_nan=True)
    taken = pd.DataFrame({"d": pd.to_timedelta(["1s", "2min"])})
    assert gradcli.map("d", taken)["value"].tolist() == [1, 120]
    with pytest.raises(gradcli.LanguageError, match="column type: holds text, not numbers"):
        gradcli.map("type*k", _frame("pandas"))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict"])
def test_what_the_commands_have_python_has(kind: str) -> None:
    frame = _frame(kind)
    found = gradcli.map(
        "a*k**3", frame, a=2.0, order=2, second="k,a", where="type == 'call'", keep_columns="type"
    )
    assert found["type"].tolist() == ["call", "call"]
    assert found["k.grad2"].tolist() == [960, 1200] and found["value.k.a"].tolist() == [
        19200,
        30000,
    ]
    assert gradcli.map("k", frame, head=2)["value"].tolist() == [80, 90]
    wide = gradcli.map("dot(v, v)", frame, columns={"v": ["k", "k"]}, wrt="v")["v.grad"]
    assert wide.tolist() == [[160, 160], [180, 180], [200, 200]]
    if kind == "dict":
        return
    assert np.allclose(gradcli.root("x**2 == k", frame, x=1.0)["x"], np.sqrt([80, 90, 100]))
    there = gradcli.root("x**2 == k*a", frame, x=(0, 50), a=2, wrt="x", keep_columns="k", head=1)
    assert there["k"].tolist() == [80] and np.allclose(there["x"], np.sqrt(160))
    with pytest.warns(UserWarning, match="3 bad rows nan; the first: the table, row 1: no root"):
        assert np.isnan(gradcli.root("x**2 == -k", frame, x=1.0)["x"]).all()


@pytest.mark.parametrize("unit", ["days", "texts", "times"])
def test_dates_are_days_in_every_file(unit: str) -> None:
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    texts = [d + " 06:00" for d in DAYS] if unit == "times" else DAYS
    frame = pd.DataFrame({"day": texts if unit == "texts" else pd.to_datetime(texts)})
    frame.to_parquet("f.parquet")
    frame.to_csv("f.csv", index=False)
    line = ["--no-grad", "all", "--keep-columns", "none"]
    found = [outcome("map", "day", file, *line) for file in ("f.parquet", "f.csv")]
    assert found[0][:2] == found[1][:2]
    assert found[0][1].split()[2] == ("7" if unit != "times" else str(7 * 86400))


# -- columns of text in an expression -------------------------------------------------------------
OPTIONS = "type,K,day\ncall,3,2025-01-01\nput,4,2025-03-01\n"
OF_TEXT = [
    ("map", "where(type=='call', K, -K)", [], "3,1 -4,-1"),
    ("map", "(1 if type == 'call' else -1)*K", [], "3,1 -4,-1"),
    ("map", 'K*(type in ["call", "c"]) + where("put" != type, 1.0, 2.0)', [], "4,1 2,0"),
    ("map", "where(day < '2025-02-01', K, 0*K)", [], "3,1 0,0"),
    ("map", "K", ["--as", "put=type=='put'", "--no-grad", "all"], "3,False 4,True"),
    ("root", "x - 2*K == where(type=='call', K, -K)", ["--x", "1"], "9 4"),
]


@pytest.mark.parametrize(("verb", "source", "options", "rows"), OF_TEXT, ids=lambda v: str(v)[:30])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_text_is_compared_in_an_expression(
    verb: str, source: str, options: list[str], rows: str, ending: str
) -> None:
    Path("o.csv").write_text(OPTIONS)
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas").read_csv("o.csv").to_parquet("o.parquet")
    code, out, err = outcome(verb, source, f"o.{ending}", "--keep-columns", "none", *options)
    assert (code, out.split()[1:]) == (0, rows.split()), err


def test_other_uses_of_a_text_say_how_it_is_compared() -> None:
    Path("o.csv").write_text(OPTIONS)
    code, _, err = outcome("map", "type*K", "o.csv")
    assert code == 1 and "hint: a column of text is compared, as in `type == 'call'`" in err
    found = gradcli.map("where(type == 'put', k, 0*k)", _frame("dict"))
    assert found["value"].tolist() == [0, 90, 0]


def test_columns_and_what_is_kept_in_one_word() -> None:
    Path("o.csv").write_text(OPTIONS)
    line = ["map", "a*b", "o.csv", "--columns", "a=K,b=K", "--no-grad", "all"]
    assert outcome(*line, "--keep-columns", "none")[1] == "value\n9\n16\n"
    line = ["root", "x == 2*K", "o.csv", "--x", "1", "--keep-columns"]
    assert outcome(*line, "type,x")[1] == "type,x\ncall,6\nput,8\n"
    assert outcome(*line, "x")[1] == "x\n6\n8\n"

"""`--where`: which rows count, by numbers, texts and dates; a name is the column before all else."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.columns.streaming.conditions import Condition
from gradcli.language.located_errors import LanguageError
from gradcli.tables import TableError
from gradcli.tables.record_batches import Stream
from tests.commands.running import outcome

BOOK = """id,spot,rate,T,type,tdate,eu,max,trade date,clock
1,100,0.03,0.5,call,2025-01-02,31.12.2025,2,2025-01-02,09:30
2,101,0.03,1,put,2025-02-03,1.2.2025,2,2025-02-03,12:00
3,102,,0.05,call,2024-12-31,,3,2024-12-31,17:30
4,103,0.03,2,put,2025-03-31,13.3.2025,3,,09:00
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.csv").write_text(BOOK)
    return tmp_path


def taken(text: str, missing: str = "error", **how: object) -> tuple[list[int], int]:
    """(the ids of the rows that a condition takes, how many it leaves out for what is missing)."""
    (table,) = Stream("book.csv")
    condition = Condition(
        text, "book.csv", table.names, lambda n: n if n in table.names else None, **how
    )
    found, left_out = condition.chosen(table, missing)
    for error in found.bad.values():
        raise error
    return found.numbers(0).numbers.astype(int).tolist(), left_out


TAKEN = {
    # a name of the language's that a column has is the column
    "type != 'put' and T > 0.1": [1],
    "type=='call' and T>0.1": [1],
    "max == 2 and T > 0.1": [1, 2],
    "maximum(T, 1) > 1 and max < 3.5": [4],
    "id == 2": [2],
    "'put' == type": [2, 4],
    "(type == 'call') & (T > 0.1) | (id == 4)": [1, 4],
    "~(type == 'call')": [2, 4],
    "not (type == 'call' or T > 1)": [2],
    "0.1 < T <= 1": [1, 2],
    "type in ('put', 'call') and id > 3": [4],
    "type not in ['put']": [1, 3],
    "T": [1, 2, 3, 4],
    "2 if T > 1 else 0": [4],
    # dates as they are written, in any order of a column
    "tdate >= '2025-01-01'": [1, 2, 4],
    "'2025-01-01' <= tdate < '2025-03-01'": [1, 2],
    "tdate == '3 Feb 2025'": [2],
    "tdate != '2025-02-03'": [1, 3, 4],
    "eu > '2025-03-01' and id != 3": [1, 4],
    "clock >= '12:00'": [2, 3],
    "`trade date` > '2025-01-15' and id < 4": [2],
    "`max` == 3": [3, 4],
    # an empty cell counts where the answer depends on it
    "type == 'put' and rate > 0.01": [2, 4],
    "rate > 0.01 and type == 'put'": [2, 4],
    "rate > 0.01 or type == 'call'": [1, 2, 3, 4],
    "not (rate < 0.01 and type == 'put')": [1, 2, 3, 4],
}


@pytest.mark.parametrize("text", TAKEN)
def test_the_rows_that_a_condition_takes(text: str) -> None:
    assert taken(text) == (TAKEN[text], 0)


REFUSED = {
    "rate > 0.01": "line 4, column rate: a number is missing here",
    "`trade date` > '2025-01-01'": "line 5, column trade date: a date is missing here",
    "tdate >= 2024-12-31": "2024-12-31 is a difference of numbers, not a date",
    "tdate >= 2025-01-01": "`01` is not a number",
    "tdate > '12:00'": "`2025-01-02` is not comparable with '12:00'",
    "type < '2025-01-01'": "column type: holds no dates",
    "type < 'put'": "a text is compared with a column by == or !=",
    "id == '1'": "column id: holds numbers, not text",
    "sin == 2": "sin is a function, and no column of book.csv",
    "type == call": "call is not a column of book.csv",
    "T > 0.1 & id < 3": "`&` binds stronger than a comparison",
    "`trade` > 1": "'trade' is not a column of book.csv",
    "type == 'put' or 'call'": "a text is compared with a column by == or !=",
    "2 > 1": "the condition uses no column",
    "type = 'call'": "`=` gives a name a value, and a condition compares",
    "stack([T, id]) > 1": "the condition of a row is true or false",
}


@pytest.mark.parametrize("text", REFUSED)
def test_conditions_that_are_refused(text: str) -> None:
    with pytest.raises((LanguageError, TableError), match=None) as caught:
        taken(text)
    assert REFUSED[text] in str(caught.value)


REMEDIES = {
    "type == call": "type == 'call'",
    "tdate >= 2025-01-01": "'2025-01-01'",
    "tdate >= 2024-12-31": "'2024-12-31'",
    "T > 0.1 & id < 3": "T > 0.1 and id < 3",
    "id == '1'": "id == 1",
    "type = 'call'": "write type == 'call'",
}


@pytest.mark.parametrize("text", REMEDIES)
def test_the_remedy_is_said(text: str) -> None:
    with pytest.raises((LanguageError, TableError)) as caught:
        taken(text)
    assert REMEDIES[text] in str(caught.value.hint)


def test_workers_get_the_condition() -> None:
    (table,) = Stream("book.csv")
    condition = Condition(
        "`trade date` < '2025-02-01' and T > 0.1",
        "book.csv",
        table.names,
        lambda n: n if n in table.names else None,
    )
    copied = pickle.loads(pickle.dumps(condition))
    assert copied.chosen(table, "skip")[0].cells(0) == ["1"]


def test_what_is_missing() -> None:
    assert taken("rate > 0.01", "skip") == ([1, 2, 4], 1)
    assert taken("rate > 0.01", "nan") == ([1, 2, 4], 0)
    assert taken("not (rate > 0.01)", "nan") == ([3], 0)
    assert taken("not (rate > 0.01)", "skip") == ([], 1)


def test_names_that_are_bound_and_given() -> None:
    assert taken("s > 101", bound={"s": ["spot"]})[0] == [3, 4]
    both = {"bound": {"v": ["spot", "T"]}, "vectors": frozenset({"v"})}
    assert taken("v[0] > 101 and v[1] > 1", **both)[0] == [4]
    assert taken("T > least", given={"least": 0.7})[0] == [2, 4]


def test_map_reads_only_the_rows_that_count() -> None:
    line = ["map", "rate*T", "book.csv", "--no-grad", "all", "--keep-columns", "id"]
    code, out, err = outcome(*line, "--where", "type == 'put'")
    assert (code, out, err) == (0, "id,value\n2,0.03\n4,0.06\n", "")
    code, out, err = outcome(*line, "--where", "id > 1", "--missing", "skip")
    assert code == 0 and err == "gradcli: note: 1 row left out for a number that is missing\n"
    code, out, err = outcome(*line, "--where", "tau > 1", "--columns", "T=T", "--columns", "tau=T")
    assert code == 2 and "--columns: 'tau' is not an open variable" in err
    line = ["map", "r*tau", "book.csv", "--columns", "r=rate", "--columns", "tau=T", *line[3:]]
    assert outcome(*line, "--where", "tau > 0.7")[1] == "id,value\n2,0.03\n4,0.06\n"


def test_grad_and_fit_say_what_they_leave_out() -> None:
    words = "1 row left out for a number that is missing"
    line = ["grad", "sum(r)", "--r", "@book.csv:rate", "--missing", "skip"]
    assert outcome(*line)[2] == f"gradcli: note: {words}\n"
    code, out, _ = outcome(*line, "--json")
    assert code == 0 and words in out
    line = ["fit", "T == a*rate", "book.csv", "--missing", "skip"]
    assert words in outcome(*line)[2] and words in outcome(*line, "--by-rows")[2]
    fitted = outcome("fit", "T == a*rate", "book.csv", "--where", "type == 'put'")
    assert fitted[0] == 0 and "--where takes 2 of 4 rows" in fitted[2] and words not in fitted[2]
    assert outcome("fit", "T == a*rate", "book.csv", "--where", "id != 3", "--by-rows")[0] == 0


def test_python_reads_conditions_as_the_shell_does() -> None:
    table = {"x": np.arange(5.0), "kind": ["a", "b", "a", "a", "b"], "y": 2 * np.arange(5.0)}
    table["day"] = np.arange("2025-01-01", "2025-01-06", dtype="datetime64[D]")
    for where, count in {
        "kind == 'a'": 3,
        "x > 1 and kind == 'b'": 1,
        "day >= '2025-01-03'": 3,
        "x <= 1 or kind in ['a']": 4,
    }.items():
        assert gradcli.fit("y == a*x", table, where=where).dof == count - 1
    for where in ("x == '1'", "kind < 'b'", "max == 1"):
        with pytest.raises(LanguageError):
            gradcli.fit("y == a*x", table, where=where)


FUNCTIONS = ["max == 2", "type != 'put'", "f = relu; f == 1.5", "tensor(1.) == max"]


@pytest.mark.parametrize("text", FUNCTIONS)
def test_a_function_is_compared_with_nothing_but_a_function(text: str) -> None:
    code, _, err = outcome("eval", text)
    assert code == 1 and "is a function, and is compared with a" in err
    assert outcome("eval", "f = relu; f == relu and f != None")[1] == "True\n"

"""What a notebook shows: formulas, tables and pictures, and the magics of `%load_ext gradcli`."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from types import ModuleType

import pytest

import gradcli as torch

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.mark.parametrize(
    "made, latex",
    [
        (lambda: torch.diff("sin(x)/2"), r"$\displaystyle \frac{\cos\left(x\right)}{2}$"),
        (lambda: torch.simplify("x + x"), r"$\displaystyle 2 x$"),
        (lambda: torch.taylor("exp(x)", x=0, order=1), r"$\displaystyle 1 + x$"),
        (lambda: torch.diff("x**2*y", operator="laplacian"), r"$\displaystyle 2 y$"),
    ],
)
def test_a_derivative_is_a_str_and_a_formula(made, latex):
    text = made()
    assert text._repr_latex_() == latex
    assert isinstance(text, str) and json.dumps(text) == f'"{text}"'
    assert type(pickle.loads(pickle.dumps(text))) is str and copy.deepcopy(text) == text


def test_several_results_are_a_dict_and_a_table():
    found = torch.diff("x*y")
    assert found == {"x": "y", "y": "x"} and repr(found) == "{'x': 'y', 'y': 'x'}"
    assert r"<th>x</th><td style='text-align:left'>$\displaystyle y$</td>" in found._repr_html_()
    html = torch.hessian("x*y*y", x=1.0, y=2.0)._repr_html_()
    assert html.count("<table>") == 3 and "<code>tensor(4., dtype=torch.float64)</code>" in html


def cells(html):
    return [re.findall("<td[^>]*>([^<]*)", row) for row in html.split("<tr>")[1:]]


def test_a_tensor_is_a_table():
    x = torch.tensor([[1.5, -2.0], [10.0, float("nan")]], requires_grad=True)
    html = (2 * x)._repr_html_()
    assert cells(html) == [[" 3.", "-4."], ["20.", "nan"]]
    assert "(2, 2), float32, grad_fn=&lt;MulBackward0&gt;" in html
    assert cells(torch.arange(3)._repr_html_()) == [["0", "1", "2"]]
    assert torch.tensor(1.0)._repr_html_() is None
    assert "(0, 3), float32" in torch.zeros(0, 3)._repr_html_()


def test_a_large_tensor_is_shortened():
    html = torch.arange(20 * 10 * 10).reshape(20, 10, 10)._repr_html_()
    assert re.findall(r"<div>(\[.*?\]|…)</div>", html) == [
        *(f"[{i}, :, :]" for i in range(3)),
        "…",
        *(f"[{i}, :, :]" for i in range(17, 20)),
    ]
    first, *_, last = cells(html)
    assert [text.strip() for text in first] == ["0", "1", "2", "…", "7", "8", "9"]
    assert last[-1] == "1999"


def test_a_graph_is_its_picture():
    assert torch.graph("a*b", a=1, b=2)._repr_svg_().startswith("<svg")


@pytest.fixture(scope="module")
def shell():
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    made = InteractiveShell(
        config=Config({"HistoryManager": {"enabled": False}}),
        user_module=ModuleType("cells"),  # else it takes the place of __main__
        colors="nocolor",
    )
    made.display_formatter.active_types = ["text/plain", "text/html", "text/latex", "image/svg+xml"]
    torch.load_ipython_extension(made)
    return made


@pytest.fixture
def say(shell, monkeypatch, capsys):
    """Run a cell: what it printed, and the forms of its value."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def run(text):
        capsys.readouterr()
        result = shell.run_cell(text)
        printed = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
        forms = {} if result.result is None else shell.display_formatter.format(result.result)[0]
        return re.sub(r"Out\[\d+\]:.*", "", printed, flags=re.S), forms

    return run


@pytest.mark.long
@pytest.mark.needs("IPython")
@pytest.mark.needs("matplotlib")
def test_the_example(say, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # which pytest-xdist sets, and a notebook has not
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed, forms = say("".join(cell["source"]))
        streams, data = [], {}
        for output in cell["outputs"]:
            streams += output.get("text", [])
            data |= output.get("data", {})
        assert printed == re.sub(r"\x1b\[\d+m", "", "".join(streams))
        assert forms.keys() == data.keys(), cell["source"]
        for form in forms.keys() - {"image/svg+xml"}:
            assert forms[form] == "".join(data[form])


@pytest.mark.needs("IPython")
@pytest.mark.parametrize(
    "cell, printed",
    [
        ("p = 3\n%grad p**2", "p.grad = 6\n"),
        ("%grad p**2 --p 5", "p.grad = 10\n"),
        ("p = 0.1\n%eval 3*p", "0.30000000000000004\n"),  # float64, as on a command line
        ("import numpy as np\np = np.arange(3.0)\n%grad 'sum(p*p)'", "p.grad = [0, 2, 4]\n"),
        ("p = [1, 2]\n%jacobian 2*p", "p.jacobian = [[2, 0], [0, 2]]\n"),
        ("%diff sin(q) --json", '{"expression": "sin(q)"'),
        ("def f(x):\n    return x*x\np = 3.0\n%grad f(p)", "p.grad = 6\n"),
        ("from math import sin\np = 0.0\n%grad sin(p)", "p.grad = 1\n"),
        ("%grad 1 +* 2", "error: a value is missing"),
        ("%grad 'x", "error: No closing quotation\n"),
        ("%%gradcli\n1/0", "error: division by zero\n    1/0\n"),
        ("%%gradcli\nfor i in range(2):\n    print(i)", "0\n1\n"),
    ],
)
def test_magics(say, cell, printed):
    assert say(cell)[0].startswith(printed)


@pytest.mark.needs("IPython")
def test_a_program_and_the_notebook_share_names(say, shell):
    shell.user_ns["n"] = 2
    _, forms = say("%%gradcli\nw = ones(2, requires_grad=True)\nloss = n*sum(w)\nloss")
    assert forms["text/plain"] == "tensor(4., grad_fn=<MulBackward0>)"
    _, forms = say("%graph loss")
    assert "AccumulateGrad w" in forms["text/plain"]
    assert forms["image/svg+xml"].startswith("<svg")
    _, forms = say("%graph n*n --theme dark")  # of which there is no text
    assert forms["image/svg+xml"].startswith("<svg")
    shell.user_ns["loss"].backward()
    assert shell.user_ns["w"].grad.tolist() == [2, 2]

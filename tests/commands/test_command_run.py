"""`gradcli run`: programs, what they print, and what is said when they go wrong."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from tests.sweep import sweep


def run(source, *options):
    result = CliRunner().invoke(
        main, ["run", "-", *options], prog_name="gradcli", input=source.encode()
    )
    return result.exit_code, re.sub("0x[0-9a-f]+", "0x…", result.stdout), result.stderr


SHOWN = [
    ("3", "3\n"),
    ("None", ""),
    ("x = 2\nx", "2\n"),
    ("x = 2\nx;", ""),
    ("x = 2\n(x);  # not shown", ""),
    ("'a' + 'b'", "'ab'\n"),
    ("print('a', 1.5, sep='-')", "a-1.5\n"),
    ("display('a')\ndisplay(arange(2.))", "'a'\ntensor([0., 1.])\n"),
    ("arange(4.0)", "tensor([0., 1., 2., 3.])\n"),
    ("(1,)", "(1,)\n"),
    ("[ones(1), 'x']", "[tensor([1.]), 'x']\n"),
    ("(ones(1, 2), zeros(2, 2))",
     "(tensor([[1., 1.]]),\n tensor([[0., 0.],\n         [0., 0.]]))\n"),
    ("list(range(30))", "[" + ",\n ".join(map(str, range(30))) + "]\n"),
    ("(2*ones(2, requires_grad=True)).grad_fn.next_functions",
     "((<AccumulateGrad at 0x…>, 0), (None, 0))\n"),
    ("print((2*ones(2, requires_grad=True)).grad_fn)", "<MulBackward0 object at 0x…>\n"),
    ("max(arange(3.0), dim=0)",
     "torch.return_types.max(\nvalues=tensor(2.),\nindices=tensor(2))\n"),
    ("ones(2, 3).shape", "torch.Size([2, 3])\n"),
    ("", ""),
]  # fmt: skip


@sweep(("source", "shown"), SHOWN, parts=1)
def test_the_last_expression_is_displayed_as_a_notebook_does(source, shown):
    assert run(source, "--dtype", "float32") == (0, shown, "")


UNUSED = [
    ("x = 2\nx**2\nx + 1", "`x**2` has no effect, and its value is not used"),
    ("2; y = 3", "`2` has no effect"),
    ("x = 1\nx == 2\n-x\nprint(x)", "2 statements have no effect"),
    ("'text'\nx = 2\nx.add_(1) if 0 else x\ny = x", ""),
    ("s = [1]\ndef f(t):\n    print(t)\nf(1)\n...\nx = 3\ny = 4", ""),
]  # fmt: skip


@sweep(("source", "note"), UNUSED, parts=1)
def test_a_statement_without_effect_has_a_note(source, note):
    """As in every command, in a session and (as a warning) in Python; assignments are results here."""
    code, _, err = run(source)
    assert code == 0
    assert (note in err) if note else err == ""


def test_default_dtype():
    assert run("ones(1)*0.1")[1] == "tensor([0.1000])\n"
    assert run("ones(1).dtype")[1] == "torch.float64\n"
    assert run("ones(1).dtype", "--dtype", "float32")[1] == "torch.float32\n"


def test_manual_seed():
    first, second = (run("randn(2)", "--manual-seed", "3") for _ in range(2))
    assert first == second
    assert first != run("randn(2)", "--manual-seed", "4")


def test_variables_of_the_program_are_options():
    source = "y = sum(k*x)\ny.backward()\nprint(x.grad)\nprint(k.grad)"
    assert run(source, "--x", "1,2", "--k", "3", "--no-grad", "k") == (
        0,
        "tensor([3., 3.])\nNone\n",
        "",
    )


def test_help_lists_the_variables_of_the_program(tmp_path):
    path = tmp_path / "fit.py"
    path.write_text("sum(a*b)\n")
    result = CliRunner().invoke(main, ["run", str(path), "--help"], prog_name="gradcli")
    assert re.search(r"Variables of FILE:\n +--a VALUE .*\n +--b VALUE", result.stdout)


def test_a_name_without_a_value_is_an_error_where_it_is_read():
    code, out, err = run("print('before')\ny = 2*x")
    assert (code, out) == (2, "before\n")
    assert "name 'x' is not defined" in err
    assert "    y = 2*x\n          ^\n" in err
    assert "--x VALUE" in err


def test_errors_show_the_calls_that_led_there():
    source = "def inner(v):\n    return v + ones(3)\n\ndef outer(v):\n    return inner(v)\n\n"
    code, out, err = run(source + "outer(ones(2))")
    assert (code, out) == (1, "")
    assert err == (
        "gradcli: error: The size of tensor a (2) must match the size of tensor b (3) at "
        "non-singleton dimension 0\n"
        "  `v` has shape (2,)\n"
        "  `ones(3)` has shape (3,)\n"
        "  in outer, called at line 7:\n"
        "    outer(ones(2))\n"
        "    ^^^^^^^^^^^^^^\n"
        "  in inner, called at line 5:\n"
        "        return inner(v)\n"
        "               ^^^^^^^^\n"
        "  line 2:\n"
        "        return v + ones(3)\n"
        "               ^^^^^^^^^^^\n"
        "hint: sizes are compared from the last dimension on, and must be equal or 1; "
        "`unsqueeze`, `reshape` and `T` change a shape\n"
    )


def test_max_steps():
    code, _, err = run("while True:\n    pass", "--max-steps", "50")
    assert code == 1
    assert "more than 50 steps" in err


def test_what_was_printed_comes_before_the_error():
    code, out, err = run("x = ones(2, requires_grad=True)\nprint('one')\nx.backward()")
    assert (code, out) == (1, "one\n")
    assert "grad can be implicitly created only for scalar outputs" in err


def test_standard_input_once():
    code, _, err = run("x", "--x", "-")
    assert code == 2
    assert "only one of FILE and --x" in err


CONTROL = """\
def f(a):
    b = a * 2
    while b.norm() < 1000:
        b = b * 2
    if b.sum() > 0:
        return b
    return 100 * b

f(x)
"""


@pytest.mark.parametrize("x, grad", [("-0.19425", "819200"), ("400", "4"), ("0.25", "4096")])
def test_grad_of_a_program_follows_the_path_taken(x, grad, tmp_path):
    path = tmp_path / "f.py"
    path.write_text(CONTROL)
    result = CliRunner().invoke(main, ["grad", "-f", str(path), "--x", x], prog_name="gradcli")
    assert result.stdout == f"x.grad = {grad}\n"


def test_graph_of_a_program_is_that_of_the_path_taken(tmp_path):
    path = tmp_path / "f.py"
    path.write_text(CONTROL)
    argv = ["graph", "-f", str(path), "--x", "400"]
    tree = CliRunner().invoke(main, argv, prog_name="gradcli").stdout
    assert tree.count("MulBackward0") == 2
    assert "100 * b" not in tree
    assert "b * 2" in tree and "a * 2" in tree

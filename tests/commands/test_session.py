"""A session: what runs when, what stays, and where its errors and graphs point."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.commands.session import Leave, Session
from gradcli.language.located_errors import LanguageError


class Recorder:
    """A front end that writes everything down."""

    def __init__(self):
        self.lines, self.errors, self.graphs, self.files = [], [], [], {}

    def write(self, text):
        self.lines.append(re.sub("0x[0-9a-f]+", "0x…", text))

    def note(self, text, always=False):
        self.lines.append(f"({text})")

    def report(self, error):
        self.errors.append(error)

    def explain(self, name):
        if name == "nothing":
            raise LanguageError("no function is called `nothing`")
        self.lines.append(f"<{name}>")

    def command(self, verb, text, options, names):
        self.lines.append(f"<{verb}|{text}|{options.strip()}>")

    def clear(self):
        self.lines.append("<clear>")

    def shell(self, command):
        self.lines.append(f"<!{command}>")
        return True

    def draw(self, graph, options):
        self.graphs.append((graph, options))

    def read_file(self, path):
        return self.files[path]

    def write_file(self, path, text):
        self.files[path] = text


@pytest.fixture(autouse=True)
def float64():
    from gradcli.engine.system import dtypes

    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.float64)
    yield
    dtypes.set_default_dtype(before)


@pytest.fixture
def console():
    return Recorder()


@pytest.fixture
def session(console):
    return Session(console)


def type_in(session, text):
    return [session.feed(line) for line in text.split("\n")][-1]


def test_the_graph_stays_alive_between_lines(session, console):
    type_in(
        session, "x = arange(4.0, requires_grad=True)\ny = 2*dot(x, x)\ny\ny.backward()\nx.grad"
    )
    assert console.lines == [
        "tensor(28., grad_fn=<MulBackward0>)",
        "tensor([ 0.,  4.,  8., 12.])",
    ]


def test_a_second_backward_says_what_pytorch_says(session, console):
    type_in(session, "x = ones(2, requires_grad=True)\ny = sum(x*x)\ny.backward()\ny.backward()")
    (error,) = console.errors
    assert error.message.startswith("Trying to backward through the graph a second time")
    assert (error.source, error.span) == ("y.backward()", (0, 12))
    assert session.failed is error and not error.usage


def test_the_last_value_is_called_underscore(session, console):
    type_in(session, "3*4\n_ + 1")
    assert console.lines == ["12", "13"]


@pytest.mark.parametrize("first", ["f(", "def f(x):", "x = [1,", "'''abc", "if True:"])
def test_an_input_may_need_more_lines(session, first):
    assert session.feed(first)


def test_brackets_and_strings_go_on_over_blank_lines(session, console):
    type_in(session, "sum(ones(2)\n\n)\n'''a\n\nb'''")
    assert console.lines == ["tensor(2.)", repr("a\n\nb")]


def test_a_blank_line_ends_a_block(session, console):
    assert type_in(session, "for i in range(3):\n    k = i")
    assert not session.feed("")
    session.feed("k")
    assert console.lines == ["2"]


def test_a_line_that_is_not_indented_ends_a_block_too(session, console):
    type_in(session, "if True:\n    k = 1\nelse:\n    k = 2\nk")
    assert console.lines == ["1"]


def test_a_function_may_go_on_behind_a_blank_line(session, console):
    type_in(session, "def f(a):\n    b = 2*a\n\n    return b\n\nf(3)")
    assert console.lines == ["6"]
    assert console.errors == []
    assert session.kept == ["def f(a):\n    b = 2*a\n\n    return b", "f(3)"]


def test_a_paste_looks_behind_blank_lines(session, console):
    more = session.paste("x = 3\nif x > 5:\n    k = 1\n\nelse:\n\n    k = 2\n\nk")
    assert not more
    assert console.lines == ["2"]


def test_what_is_wrong_is_said_at_once(session, console):
    assert not session.feed("1 +")
    assert console.errors[0].usage
    assert not session.feed("def f(x y")
    assert len(console.errors) == 2


def test_cancel_forgets_the_line(session, console):
    session.feed("f(")
    session.cancel()
    session.feed("2")
    assert console.lines == ["2"]


def test_an_error_inside_a_function_of_an_earlier_line(session, console):
    type_in(session, "k = 1\ndef f(a):\n    return a + ones(3)\n\nf(ones(2))")
    text = console.errors[0].render()
    assert "  in f, called at line 4:\n    f(ones(2))\n" in text
    assert "  line 3:\n        return a + ones(3)\n               ^^^^^^^^^^^" in text


def test_an_unknown_name_is_to_be_assigned(session, console):
    session.feed("nope + 1")
    assert console.errors[0].hint == "assign it first"


def test_graph_knows_the_piece_of_every_line(session, console):
    type_in(
        session,
        "x = ones(2, requires_grad=True)\nz = x*x\nw = z + 1\ngraph sum(w) --saved --depth 9",
    )
    ((graph, options),) = console.graphs
    assert options == {"saved": True, "depth": 9}
    assert [record.source for record in graph.records] == ["sum(w)", "z + 1", "x*x", "x"]
    assert graph.records[2].label == "z"


def test_graph_with_gradients(session, console):
    type_in(session, "x = ones(2, requires_grad=True)\ngraph sum(x) --grads")
    ((graph, _),) = console.graphs
    assert "grad" in str(graph.tree())


@pytest.mark.parametrize(
    "line, words",
    [
        ("graph 3", "not a tensor but of type int"),
        ("graph ones(2)", "does not require grad"),
        ("graph x --bogus", "no option --bogus"),
        ("graph x --depth", "--depth needs a value"),
        ("graph x --depth q", "it is a whole number"),
        ("graph x --grads", "only for scalar outputs"),
        (":bogus", "no command :bogus"),
        (":save", ":save needs a file"),
        ("help nothing", "no function is called"),
        ("help x.nothing", "'Tensor' object has no attribute 'nothing'"),
    ],
)
def test_commands_refuse_in_words(session, console, line, words):
    session.feed("x = ones(2, requires_grad=True)")
    session.feed(line)
    assert words in str(console.errors[0])


def test_graph_and_help_are_names_like_others(session, console):
    type_in(session, "graph = 3\nhelp = 4\ngraph + help\ngraph if True else 2\nhelp")
    assert console.lines == ["7", "3", "4"]


def test_help(session, console):
    type_in(
        session,
        "x = ones(2, requires_grad=True)\nhelp sin\nsin?\nhelp x\nhelp x.sin\nhelp x.grad\n?sin\nsin??",
    )
    assert console.lines == [
        "<sin>",
        "<sin>",
        "x: Tensor (2,), float64, leaf, requires grad, no grad yet",
        "<sin>",
        "x.grad = None",
        "<sin>",
        "<sin>",
    ]
    session.feed("help")
    assert ":save FILE" in console.lines[-1]


@pytest.mark.parametrize(("name", "functions"), [("grad", 0), ("graph", 0), ("diff", 1)])
def test_help_of_a_verb(session, console, name, functions):
    session.feed(f"help {name}")
    assert console.lines[0].startswith(f"{name} EXPR [OPTIONS]: the ")
    assert console.lines[1:] == [f"<{name}>"] * functions


def test_names_and_reset(session, console):
    type_in(session, "x = ones(2)\nk = 3\n:names\n:reset\n:names\nx")
    assert console.lines == ["x: Tensor (2,), float64\nk = 3"]
    assert console.errors[0].kind == "name"


def test_save_keeps_what_ran(session, console):
    type_in(session, "x = 2\nx +\ny = nope\ndef f(a):\n    return a\n\nf(x)\n:save out.py")
    assert console.files["out.py"] == "x = 2\ndef f(a):\n    return a\nf(x)\n"
    assert console.lines[-1] == "(4 lines in out.py)"


def test_load(session, console):
    console.files["in.py"] = "y = 3\n\ny + 1\n"
    type_in(session, ":load in.py\ny")
    assert console.lines == ["4", "3"]


@pytest.mark.parametrize(
    "word, hint", [("file.txt", "run file.txt"), ("-", "run -"), ("2*x", "eval '2*x'")]
)
def test_files_and_expressions_are_for_other_commands(word, hint):
    result = CliRunner().invoke(main, ["repl", word], prog_name="gradcli")
    assert result.exit_code == 2
    assert f"unexpected argument '{word}'" in result.stderr
    assert f"hint: gradcli {hint}\n" in result.stderr


@pytest.mark.parametrize("line", ["exit", "quit()", ":quit", ":q"])
def test_leaving(session, line):
    with pytest.raises(Leave):
        session.feed(line)


def test_max_steps_counts_for_each_input(console):
    session = Session(console, max_steps=10)
    for _ in range(3):
        type_in(session, "for i in range(8):\n    pass\n")
    assert console.errors == []
    type_in(session, "while True:\n    pass\n")
    assert console.errors[0].kind == "steps"


@pytest.mark.parametrize("value", ["a = [1]; " + "a = [a, a]; " * 60 + "a", "ones(10**7, 10**7)"])
def test_a_value_without_end_does_not_end_the_session(value):
    console = Recorder()
    session = Session(console)
    session.feed(value)
    session.feed("1 + 1")
    assert console.lines == ["2"]
    assert len(console.errors) == 1


VERB_LINES = {
    "grad sum(x*x)": "<grad|sum(x*x)|>",
    "grad sum(x*x) --wrt x --json": "<grad|sum(x*x)|--wrt x --json>",
    "diff x**2": "<diff|x**2|>",
    'check "x**2"': '<check|"x**2"|>',
    "grad -x": "<grad|-x|>",
    "grad (x+1)*x": "<grad|(x+1)*x|>",
    "ops sin": "<ops|sin|>",
    "clear": "<clear>",
    "%clear": "<clear>",
    "diff(tensor([1., 3.]))": "tensor([2.])",
    "diff (tensor([1., 3.]))": "tensor([2.])",
    "grad = 3; grad - 1": "2",
    "clear = 3; clear": "3",
}


@pytest.mark.parametrize("line, shown", VERB_LINES.items())
def test_a_verb_is_a_command_and_a_name_is_a_name(session, console, line, shown):
    session.feed(line)
    assert (console.errors, console.lines[-1:]) == ([], [shown])


def test_what_diff_means_is_said_once(session, console):
    type_in(session, "diff(tensor([1., 3.]))\ndiff(tensor([1., 3.]))")
    assert len([line for line in console.lines if "torch.diff" in line]) == 1


SESSION = """\
x = tensor([1., 2.], requires_grad=True)
w = tensor([3., 4.])
n = 2
grad sum(w*x**n)
x.grad
grad sum(w*x) --wrt w
diff sum(x**n)
diff t**3
jacobian w*x
hessian sum(w*x**3)
jvp x*x --vector 1,1
eval "2*x"
eval 2*z --z 3
grad x*x
"""
ANSWERS = """\
x.grad = [6, 16]
w.grad = [1, 2]
2*x
3*t**2
x.jacobian = [[3, 0], [0, 4]]
x.hessian = [[18, 0], [0, 48]]
jvp = [2, 4]
[2, 4]
6
"""


# Lines, and what the last of them prints: what a name was made of is the variable.
MADE = {
    "x = tensor([1., 2.])\nloss = (x**2).sum()\ngrad loss": "x.grad = [2, 4]",
    "x = tensor([1., 2.], requires_grad=True)\nloss = (x**2).sum()\ngrad loss": "x.grad = [2, 4]",
    "x = tensor([1., 2.])\ny = x*2\nloss = y.sum()\ngrad loss --wrt y": "y.grad = [1, 1]",
    "x = tensor([1., 2.])\ny = x*2; loss = y.sum()\ndiff loss": "full_like(x, 2)",
    'x = tensor([1., 2.])\ny = x*2\ngrad "y.sum()"': "x.grad = [2, 2]",
    "h = zeros(1)\nw = tensor(2.)\nfor v in (1., 2.): h = w*h + v\n\ngrad h.sum()": "w.grad = 1",
    # what made it would not give it again
    "x = ones(2)\nr = x + randn(2)\ngrad r.sum()": "r.grad = [1, 1]",
    "x = ones(2)\ny = 3*x\nx[0] = 5\ngrad y.sum()": "y.grad = [1, 1]",
    "x = ones(2)\ny = 3*x\nx = 7*x\ngrad y.sum()": "y.grad = [1, 1]",
    "x = ones(2)\ny = 3*x\ny += x\ngrad y.sum()": "x.grad = [4, 4]",
    "x = ones(2)\ny = x.add_(1)\ngrad y.sum()\nx": "tensor([2., 2.])",
    # numbers are variables where no tensor is one
    "x = 3\ny = x**2 + sin(x)\ngrad y": "x.grad = 5.010007503399555",
    "x = 3\ny = x**2 + sin(x)\ndiff y": "2*x + cos(x)",
    "x = 3\ngrad x**2": "x.grad = 6",
    "x = 3\ndiff x**2": "2*x",
    "x = 3\nhessian x**3": "x.hessian = 18",
    "x = 3\ny = x**2\ntaylor y --order 1": "9 + 6*(x - 3)",
    "x = 3\ny = x**2\nroot y == 25": "residual = 0",
    "x = 3\nminimize (x - 2)**2\nx": "3",
    "a = 2.5\nx = 3\ny = a*x\ngrad y --wrt a": "a.grad = 3",
    "x = 1\nfor i in range(3):\n  x = 2*x\n\nw = 3.0\ny = w*x\ngrad y --wrt w": "w.grad = 8",
    "x = 2\ndef f(t):\n  return t*x\n\ngrad f(x)": "x.grad = 4",
    "n = 3\na = 2.5\nv = ones(n)*a\ngrad sum(v)": "a.grad = 3",
    "n = 3\nw = ones(n)\ngrad sum(w**2)": "w.grad = [2, 2, 2]",
    "n = 2\nw = tensor(3.)\ngrad w**n": "w.grad = 6",
    "x = 3\ny = x**2\nx = 4\ngrad y": "y.grad = 1",
}


@pytest.mark.parametrize("lines, shown", MADE.items())
def test_the_variables_of_a_name_are_what_it_was_made_of(lines, shown):
    result = CliRunner().invoke(main, ["repl"], input=lines + "\n", prog_name="gradcli")
    assert (result.stderr, result.stdout.splitlines()[-1]) == ("", shown)


def test_which_number_is_the_variable_is_said(session, console):
    type_in(session, "x = 3\ny = x**2 + sin(x)\ngrad y\nx = 4\ngrad y")
    assert [line[1:-1] for line in console.lines if line[:1] == "("] == [
        "note: x = 3 is the variable, through y = x**2 + sin(x)",
        "note: y keeps its value; the lines that made it would give another now",
    ]


def test_a_hint_is_of_the_line_that_it_follows(session, console):
    type_in(session, "np.sin(1)\nfoo\nx.bar")
    assert [e.hint for e in console.errors] == [
        "here it is written sin(1)",
        *["assign it first"] * 2,
    ]


def test_verbs_take_the_names_of_the_session_and_leave_them_as_they_are():
    result = CliRunner().invoke(main, ["repl"], input=SESSION, prog_name="gradcli")
    assert result.stdout == ANSWERS
    assert result.stderr.startswith("error: grad can be implicitly created only for scalar")
    assert result.exit_code == 1


@pytest.mark.parametrize(
    "text, more",
    [
        ("1 + 1", False),
        ("f(1,", True),
        ("x = [1,\n2]", False),
        ("for i in range(3):", True),
        ("for i in range(3):\n    i", True),
        ("for i in range(3):\n    i\n\n    2*i", True),
        ("for i in range(3):\n    i\n    ", False),
        ("if x: 1\ny", False),
        ("graph sum(x", False),
        ("softmax?", False),
        ("!ls (", False),
        ("1 +* 2", False),
    ],
)
def test_what_is_typed_is_complete(session, text, more):
    assert session.needs_more(text) is more


def test_vars_timeit_and_the_shell(session, console, monkeypatch):
    monkeypatch.setattr("timeit.Timer.autorange", lambda timer: (20, timer.timeit(1)))
    type_in(session, "x = ones(2)\nvars\n!ls -l\n%timeit sum(x)\n%timeit\n%timeit nothing")
    assert console.lines[:2] == ["x: Tensor (2,), float64", "<!ls -l>"]
    assert re.fullmatch(r"[\d.e+]+ [nµm]?s \(the best of 5 times 20 runs\)", console.lines[2])
    assert [error.message for error in console.errors] == [
        ":timeit needs an expression",
        "name 'nothing' is not defined",
    ]

"""A newcomer's lines: each is answered in one step, or refused with a hint that is the working line."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from tests.commands.running import run
from tests.sweep import sweep

LINES = [
    line.replace(" | | ", " |  | ").split(" | ")
    for line in (Path(__file__).parent / "newcomer_lines.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@sweep(("line", "works", "first"), LINES, parts=1)
def test_one_step(line: str, works: str, first: str) -> None:
    verb, expression, *options = shlex.split(line.replace("\\", "\\\\"))
    result = run(verb, expression, *options)
    if works.strip():
        assert result.exit_code != 0, result.output
        hint = result.stderr.partition("\nhint: ")[2].strip()
        hint = hint.removesuffix("; --math reads it as it is")
        assert hint == f"here it is written {works}" or f'gradcli {verb} "{works}"' in hint
        result = run(verb, works, *options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0] == first


@pytest.mark.long
@sweep(("argv", "words"), [
        # An unknown option hides nothing that is wrong with the expression, and offers no option given.
        (["eval", "ln(x)", "--x", "1", "--foo", "2"], "no function is called `ln`"),
        (["eval", "np.exp(x)", "--x", "1", "--no-such"], "here it is written exp(x)"),
        (["eval", "import numpy as np\nnp.array([[1.,2.]])"], "here it is written tensor([[1., 2.]])"),
        (["eval", "e*x", "--x", "1"], "add --e VALUE; Euler's number is torch.e"),
        (["eval", "x*y", "--x", "1", "--z", "2"], "did you mean `--y`?"),
        # A function that torch has under this name too, with other arguments, keeps its namespace.
        (["eval", "embedding(y, z)", "--y", "0", "--z", "1"], "nn.functional.embedding(y, z)"),
        (["eval", "torch.gelu(x)", "--x", "1"], "here it is written gelu(x)"),
        (["eval", "gellu(x)", "--x", "1"], "did you mean `gelu` or"),
        # Distributions and options of other tools.
        (["eval", "norm.cdf(x)", "--x", "1"], "here it is written special.ndtr(x)"),
        (["diff", "norm.cdf(x)"], "here it is written special.ndtr(x)"),
        (["eval", "scipy.stats.norm.ppf(0.3)"], "here it is written special.ndtri(0.3)"),
        (["grad", "w@C@w", "--w", "1,2", "--C", "cov.csv"], "a file is read by @: write @cov.csv"),
        (["grad", "S*K", "--S", "1", "--K", "2", "--greeks"], "--second S,S"),
        (["diff", "x**2", "--steps"], "write --show-steps"),
        (["taylor", "x**2", "--degree", "4"], "write --order N"),
        (["plot", "sin(x)", "--taylor", "3"], "gradcli taylor EXPR --order 1,3,5 --plot"),
        (["minimize", "x**2", "--x", "1", "--method", "sgd"], "did you mean `gradient-descent`"),
        (["plot", "x**2", "--tangent-at", "1"], "write --at VALUE"),
        (["minimize", "x**2", "--x", "1", "--learning-rate", "1"], "write --rate R"),
        (["jvp", "x*y", "--x", "1", "--y", "2", "--v", "1,0"], "write --vector x=1 --vector y=0"),
        (["check", "x**2", "--answer", "2*x"], "write --against FORMULA"),
        (["plot", "sin(x)", "cos(x)", "x", "--x", "0:3"], 'gradcli plot "sin(x), cos(x), x"'),
        (["diff", "int(x^2)", "--math"], "`int` is an integral, or the integer part?"),
        (["diff", "x == 1, y == 2"], "gradcli diff EQUATION --of NAME"),
        # Where integers are wanted.
        (["eval", "nll_loss(z, y)", "--z", "1,2;3,4", "--y", "0,1"], "--y 'tensor([0,1])'"),
        (["eval", "x[y]", "--x", "1,2", "--y", "0,1"], "--y 'tensor([0,1])'"),
        (["eval", "gather(x, 0, y)", "--x", "1,2", "--y", "0,1"], "--y 'tensor([0,1])'"),
        (["eval", "F.embedding(y, z)", "--y", "0,1", "--z", "1,2;3,4"], "--y 'tensor([0,1])'"),
        # A function is no value to differentiate, and what it is called nothing else can be.
        (["diff", "z = zeros_like; y = F; z", "--F", "ones(3)"], "function `zeros_like`, and here"),
        (["diff", "sin(x)*cos"], "the derivative calls the function `cos`, and here cos is a variable"),
        (["eval", "max(x, 1, 2)", "--x", "1"], "its signature is"),
        # As in PyTorch a number beside a tensor, or in place of one, is a dimension: no Python's max.
        (["eval", "z[:, t]", "--z", "1,2;3,4", "--t", "0,1"], "integers: --t 'tensor([0,1])'"),
        (["eval", "max(1, 2)"], "`2` is a dimension here; the larger of two is `maximum(1, 2)`"),
        (["eval", "max(x, 0)**2", "--x", "3"], "here it is written clamp(x, min=0)**2"),
        (["eval", "min(x, 3)", "--x", "1,2"], "the smaller of two is `minimum(x, 3)`"),
        # Numbers of Python's that overflow, modules of functions, values that are none.
        (["grad", "1e200**2*x", "--x", "1"], "error: Numerical result out of range\n"),
        (["grad", "1e200**2*x", "--x", "1"], "a tensor gives inf instead: write `tensor(1e200)`"),
        (["grad", "from math import exp; exp(x)", "--x", "1"], "write functions without a module"),
        (["grad", "print(x)", "--x", "1"], "end with the expression that is meant"),
        (["grad", "lambda: x", "--x", "1"], "call it, as in f(x)"),
    ], parts=1)  # fmt: skip
def test_what_is_said(argv: list[str], words: str) -> None:
    result = run(*argv)
    assert result.exit_code in (1, 2)
    assert words in result.stderr
    assert "fault in gradcli" not in result.stderr


@sweep(("argv", "words", "works"), [
        # A line as it was typed, what is said, and the line that the hint writes (--torch runs PyTorch).
        ("eval x^2 --x 3", "**2; --math reads it as it is", "eval x^2 --math --x 3"),
        ("graph net.py", "gradcli graph --torch net.py", "graph x**2 --x 2"),
        ("eval net.py", "gradcli run net.py", "run net.py"),
        ("map decay.csv", "gradcli map EXPR decay.csv", "map t*2 decay.csv"),
        ("eval decay.csv", "--x @decay.csv:COLUMN", "eval sin(x) --x @decay.csv:t"),
        ("eval sin(x) --x 1 2", "--x '1,2'", "eval sin(x) --x '1,2'"),
        ("eval sin(x) --x 1, 2", "--x '1,2'", "eval sin(x) --x '1,2'"),
        ("eval sin(x) --x [1, 2]", "--x '1,2'", "eval sin(x) --x '1,2'"),
        ("eval 'sin(30 deg)'", "written sin(deg2rad(30))", "eval sin(deg2rad(30))"),
        ("eval sin(30*deg)", "written sin(deg2rad(30))", "eval sin(deg2rad(30))"),
        ("diff x**2 --format tex", "did you mean `latex`?", "diff x**2 --format latex"),
        ("map t*2 decay.csv --name z", "--as NAME=COLUMN", "map t*2 decay.csv --as z=value"),
        ("map t*2 decay.csv --keep", "--keep-columns none", "map t*2 decay.csv --keep-columns none"),
        ("map t*y decay.csv --cross", "write --second x,y", "map t*y decay.csv --second t,y"),
        ("grad x*c --x 2 --c 3 --requires_grad=False c", "--no-grad c",
         "grad x*c --x 2 --c 3 --no-grad c"),
        ("grad x*c --x 2 --c 3 --requires-grad c", "--wrt c chooses",
         "grad x*c --x 2 --c 3 --wrt c"),
        ("grad x*c --x 2 --c 3 --grad_outputs 2", "--seed 2", "grad x*c --x 2 --c 3 --seed 2"),
        ("eval x**2 --x 3 --tikz", "gradcli graph 'x**2' --x 3 --format tikz",
         "graph x**2 --x 3 --format tikz"),
        (r"diff --math 'x \pm \sqrt{x}'", r"'x + \sqrt{x}', 'x - \sqrt{x}'",
         r"diff --math 'x + \sqrt{x}'"),
        (r"root --math 'x^2 = \pm 2' --x 1", "'x^2 = 2', 'x^2 = - 2'", "root --math 'x^2 = 2' --x 1"),
        ("hessian x**2*y --x 1 --y 2 --latex", "gradcli diff 'x**2*y' --order 2 --format latex",
         "diff x**2*y --order 2 --format latex"),
        ("jacobian [x*y,x] --x 1 --y 2 --latex", "gradcli diff '[x*y,x]' --jacobian --format latex",
         "diff [x*y,x] --jacobian --format latex"),
        ("explain x**2", "did you mean `help`?", "help gradient"),
        ("diff W1@x --W1 matrix", "--shape W1=m,n", "diff W1@x --shape W1=m,n"),
        ("diff W1@x --W1 2x3", "--shape W1=2,3", "diff W1@x --shape W1=2,3"),
        ("grad sum(W1@x) --W1 matrix --x 1,2,3", "--shape W1=2,3",
         "grad sum(W1@x) --shape W1=2,3 --x 1,2,3"),
        ("eval x --x 2 --dtype torch.float32", "`float32`", "eval x --x 2 --dtype float32"),
        ("fit 'y == a*t+b' decay.csv --error 0.1", "--sigma COLUMN or --sigma VALUE",
         "fit 'y == a*t+b' decay.csv --sigma 0.1"),
        ("plot sin(x) cos(x) --x 0:6", 'gradcli plot "sin(x), cos(x)"',
         "plot 'sin(x), cos(x)' --x 0:6"),
        ("graph x**2 --x 2 -o a.svg -o b.dot", "-o is given twice: a.svg and b.dot",
         "graph x**2 --x 2 --format svg"),
        ("map call.txt decay.csv", "gradcli map -f call.txt decay.csv", "map -f call.txt decay.csv"),
        ("map -f call.txt decay.csv --kep-columns none", "did you mean `--keep-columns`",
         "map -f call.txt decay.csv --keep-columns none"),
        ("eval randn(3) --seed 0", "write --manual-seed N", "eval randn(3) --manual-seed 0"),
        ("plot sin(x) --x 0..2pi", "a range is written 0:2*pi", "plot sin(x) --x 0:2*pi"),
        ("plot sin(x) --x 0:2pi", "here it is written 2*pi", "plot sin(x) --x 0:2*pi"),
        ("plot sin(x) --x 0,6", "as in --x 0:6", "plot sin(x) --x 0:6"),
        ("eval limit(sin(x)/x) --x 0", "there are no limits", "jacobian sin(x)/x --x 0"),
        ("grad 'h = 2*w; h**2' --w 1 --wrt h", "--retain h prints its gradient",
         "grad 'h = 2*w; h**2' --w 1 --retain h"),
        ("plot x**2 --x 0:1 --surface", "--surface is of two variables",
         "plot x**2+y**2 --x 0:1 --y 0:1 --surface"),
        ("eval 'x ± 0.1' --x 3", "with the value: --x 3±0.1", "eval x**2 --x 3±0.1"),
    ], parts=1)  # fmt: skip
def test_what_is_advised_is_a_line_that_works(
    argv: str, words: str, works: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("decay.csv").write_text("t,y\n0,1\n1,2\n2,4\n3,9\n", "utf-8")
    Path("call.txt").write_text("u = 2*t\nu*y\n", "utf-8")
    Path("net.py").write_text("x = tensor(2., requires_grad=True)\ny = x**2\n", "utf-8")
    refused = run(*shlex.split(argv))
    assert refused.exit_code == 2, refused.output
    assert words in refused.stderr
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "call.txt", "decay.csv", "net.py",
    ]  # fmt: skip
    assert run(*shlex.split(works)).exit_code == 0


@sweep(("typed", "meant"), [
        ("diff x**2 --latex", "diff x**2 --format latex"),
        ("diff --latex x**2", "diff x**2 --format latex"),
        ("eval x**2 --x 3 --latex", "eval x**2 --x 3 --format latex"),
        ("graph x**2 --x 2 --tikz", "graph x**2 --x 2 --format tikz"),
        ("graph x**2 --x 2 --tex", "graph x**2 --x 2 --format tikz"),
        ("grad x*c --x 2 --c 3 --no_grad c", "grad x*c --x 2 --c 3 --no-grad c"),
        ("grad x*c --x 2 --c 3 --no_grad=c", "grad x*c --x 2 --c 3 --no-grad c"),
        ("grad x**2 --x 2 --retain_graph", "grad x**2 --x 2 --retain-graph"),
        (r"eval x**2 --x '3 \pm 0.1'", "eval x**2 --x 3±0.1"),
        # A variable of that name is a variable.
        ("diff x*latex --latex 2", "diff x*latex --let latex=2"),
        ("eval no_grad*x --no_grad 2 --x 3", "eval x*2 --x 3"),
    ], parts=1)  # fmt: skip
def test_spellings_of_other_tools_are_read(typed: str, meant: str) -> None:
    found, expected = run(*shlex.split(typed)), run(*shlex.split(meant))
    assert found.exit_code == 0, found.stderr
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)


def test_a_file_that_is_called_like_an_attribute_is_no_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.T").write_text("", "utf-8")
    assert run("eval", "x.T", "--x", "3").stdout == "3\n"


def test_an_assignment_is_drawn_as_its_right_side() -> None:
    drawn = run("plot", "y = sin(x)", "--x", "0:6")
    assert drawn.exit_code == 0
    labelled = run("plot", "sin(x)", "--x", "0:6").stdout.replace("d/dx sin(x)", "dy/dx")
    assert drawn.stdout == labelled.replace("sin(x)", "y(x)")
    assert run("plot", "y(x) = sin(x)", "--x", "0:6").stdout == drawn.stdout


def test_no_option_that_is_given_is_offered() -> None:
    assert "did you mean" not in run("eval", "x", "--x", "1", "--xx", "2").stderr


def test_names_of_functional_stay_free_for_variables() -> None:
    assert run("eval", "3*pad", "--pad", "3").stdout == "9\n"
    assert run("diff", "linear**2").stdout == "2*linear\n"
    assert run("diff", "mse_loss(x, y)", "--wrt", "x").exit_code == 0


def test_nothing_of_it_is_imported_for_an_answer() -> None:
    code = (
        "import sys; from gradcli.cli import main\n"
        "try: main(['grad', '2*dot(x,x)', '--x', '0,1,2,3'])\n"
        "except SystemExit: pass\n"
        "print('gradcli.language.translations' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "x.grad = [0, 4, 8, 12]\nFalse\n"


def test_every_translation_is_a_working_line() -> None:
    from gradcli import evaluate
    from gradcli.language import foreign_names, translations
    from gradcli.language.parser import parses

    matrices = {"inv", "transpose", "tr", "Tr"}
    lines = [f"{name}(x)" for name in foreign_names.FUNCTIONS if name not in ("power", "mod")]
    lines += [f"{prefix}.exp(x)" for prefix in foreign_names.PREFIXES]
    lines += ["power(x, 2)", "np.mod(x, 2)", *(f"{root}x" for root in "√∛∑∏")]
    lines += [f"x*{name}" for name in foreign_names.CONSTANTS]
    for line in lines:
        told = translations.hint(line, parses, {"x": False})
        assert told is not None, line
        value = [[2.0]] if line.partition("(")[0] in matrices else [1.5]
        if line != "array(x)" and line != "concatenate(x)":
            evaluate(told.removeprefix("here it is written "), x=value)


def test_what_is_right_is_not_translated() -> None:
    from gradcli.language import translations
    from gradcli.language.parser import parses

    for line in (
        "2*dot(x, x)", "y = a*x; y + b", "f = lambda x: x**2; f(3)(4)", "x[1:, ::2] @ y.T", "a | b",
        "def gamma(x): return x\ngamma(2)", "ln = log; ln(x)", "sum(x, dim=0)", "max(x, 0)",
        "x.sum().backward()", "F.relu(x)", "linalg.norm(x)", "f'{x:.3f}'", "[1, 2], (3,)", "-x**-2",
        "x if y else z", "[a for a in b] + b", '{"a": x}["a"]', "not a and b", "x -1", "0x1f", "2j",
    ):  # fmt: skip
        assert translations.hint(line, parses) is None, line


LEFT_OUT = {
    "nn.Linear(2, 3)": "programs have no modules",
    "nn.ReLU()(x)": "programs have no modules",
    "nn.CrossEntropyLoss()": "programs have no modules",
    "torch.optim.SGD([x], 0.1)": "programs have no optimisers",
    "{1, 2}": "use a list",
}


@sweep("source", LEFT_OUT, parts=1)
def test_what_is_left_out_says_what_stands_for_it(source):
    result = CliRunner().invoke(main, ["eval", source, *["--x", "1"] * ("x" in source)])
    assert result.exit_code and LEFT_OUT[source] in result.stderr

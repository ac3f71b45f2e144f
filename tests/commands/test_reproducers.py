"""Every command line of the language's that once went wrong: what it must answer, in what limits.

Each table runs in a forked child that may take 4 GB of addresses and 5 seconds of the processor.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from tests.commands.terminal import environment
from tests.fuzz.command_lines import MEMORY, PATIENCE, SECONDS, ran
from tests.sweep import sweep

# (command line, exit code, what standard output holds, what standard error holds)
NAMES = [
    (["diff", "r*F*sin(theta)"], 0, "F.grad = r*sin(theta)", ""),
    (["diff", "nn*special"], 0, "nn.grad = special", ""),
    (["diff", "torch*x"], 0, "torch.grad = x", ""),
    (["diff", "F.relu(x)"], 0, "where(x > 0, 1, 0)", ""),
    (["eval", "F*2"], 2, "", "no value for F"),
    (["eval", "F*2", "--F", "3"], 0, "6", ""),
    (["grad", "F*2", "--F", "3"], 0, "F.grad = 2", ""),
    (["jacobian", "F*2", "--F", "3"], 0, "2", ""),
    (["check", "fft*2", "--fft", "3"], 0, "ok: fft", ""),
    (["graph", "linalg*2", "--linalg", "3"], 0, "AccumulateGrad linalg", ""),
    (["eval", "t*x", "--x", "2"], 2, "", "t is a function"),
    *[
        (["eval", text], 2, "", f"{name} is a function\n")
        for text, name in [
            ("norm*2", "norm"), ("2**id", "id"), ("-type", "type"), ("range < 3", "range"),
            ("len[0]", "len"), ("norm.shape", "norm"), ("sum(t*1)", "t"), ("sin(type)", "type"),
            ("stack([norm])", "norm"), ("tensor([1, len])", "len"), ("print + 1", "print"),
            ("sin(sin)", "sin"),
        ]
    ],
    (["eval", "norm*id*type*range*len*t", *"--norm 1 --id 1 --type 1 --range 1 --len 1 --t 2".split()],
     0, "2", ""),
    (["diff", "id**2*type"], 0, "id.grad = 2*id*type", ""),
    (["diff", "x if isinstance(x, Tensor) else float"], 0, "1", ""),
    (["eval", "vmap(sin)(x)", "--x", "0,0"], 0, "[0, 0]", ""),
    (["eval", "(lambda a, b=2: a*b)(5)"], 0, "10", ""),
    (["eval", "(lambda a, b=c: a*b)(5)", "--c", "3"], 0, "15", ""),
    (["eval", "(lambda a: (lambda b: a*b*c)(2))(5)", "--c", "3"], 0, "30", ""),
    (["eval", "f = lambda a: a*later; later = 3; f(2)"], 0, "6", ""),
    (["eval", "def f(a):\n def g(b):\n  return a*b*later\n return g\nlater = 2\nf(3)(4)"], 0, "24", ""),
    (["eval", "def f():\n import math\n return math.pi\nf()"], 0, "3.14159", ""),
    (["diff", "(lambda t: t**2)(x)"], 0, "2*x", ""),
    (["eval", "outer(x, [1,2])", "--x", "3,4"], 0, "[[3, 6], [4, 8]]", ""),
    (["eval", "maximum(x.long(), 1).dtype", "--x", "3,4"], 0, "torch.int64", ""),
]  # fmt: skip
TEXTS = [
    (["eval", "1" + " " * 100_000], 0, "1", ""),
    (["eval", "1 +" + " " * 100_000], 2, "", "a value is missing after `+`"),
    (["eval", "sin(" + " " * 100_000], 2, "", "`(` is never closed"),
    (["eval", " " * 100_000 + "1"], 0, "1", ""),
    (["eval", "1" + "_1" * 60_000], 2, "", "an integer of 60001 digits is too long"),
    (["eval", "0x" + "f" * 30_000], 0, "", ""),
    (["eval", "'\\" * 60_000], 2, "", "this string is never closed"),
    (["eval", "x" + "\\\n" * 60_000], 2, "", "a backslash may only end a line"),
    (["eval", "  \\\n  1"], 2, "", "unexpected indentation"),
    (["eval", "f'{x " + "if x else x " * 9_000 + "'"], 2, "", "error"),
]

# What the generator of command lines found (tests/fuzz/command_lines.py).
FOUND = [
    (["grad", "x*x", "--x", f"1(2)e{'9' * 5000}"], 2, "", "an uncertainty is a finite real number"),
    (["grad", "x*x", "--x", f"(1±2)e-{'9' * 5000}"], 0, "x.grad = 0", ""),
    (["grad", "x*x", "--x", f"1.5(5)e{'0' * 5000}1"], 0, "value = 220 ± 150", ""),
    (["eval", "x", "--x", "0:1e12"], 2, "", "1000000000000 values (at most 1000000000)"),
    (["eval", "x", "--x", "0:1e18:1e-9"], 2, "", "about 2**89 values (at most 1000000000)"),
    (["check", "x*x", "--samples", "2", "--manual-seed", "-1"], 0, "ok: 2 points", ""),
    (["eval", "mean(x, 0, True)", "--x", "1,2,3"], 0, "[2]", ""),
    (["eval", "prod(x, 0, True), std(x, 0, True), var(x, 0, True)", "--x", "1,1"], 0, "[1]", ""),
    (["diff", "F.layer_norm(a*(b > 0.1), (3,)).mean()", "--shape=a=4,1", "--b=ones(4,3)"], 0, "a.grad", ""),
]  # fmt: skip
# The same of `map`, over three rows.
ROWS = [
    (["x*ones(0)", "--uncertainty=x=0"], "grad can be implicitly created only for scalar outputs"),
    (["x*ones(2)", "--uncertainty=x=0"], "grad can be implicitly created only for scalar outputs"),
    (["x*ones(0)", "--no-grad=all"], "the value of a row has no elements: its shape is (0,)"),
    (["(x, ())", "--no-grad=all"], "the value of a row has no elements"),
    (["x[x > 1]", "--no-grad=all"], "they have shapes (0,) and (1,)"),
    (["(x, x) if x > 1 else (x,)", "--no-grad=all"], "some have more items than others"),
    (["print(x)", "--no-grad=all"], "the program has no value"),
    (["(x, 'a')", "--no-grad=all"], "the value is a str, not a number or a tensor"),
]
# What the generator of views and in-place writes found (tests/fuzz/inplace.py).
WRITTEN = [
    (["graph", "b = sin(x); c = b.exp_(); b.zero_(); sum(c**2 + b)", "--saved", "--x=1,2"],
     0, "(written in place since, (2,))", ""),
    (["diff", "a = sin(s); b = a[None]; a.neg_(); b[0]"], 0, "-cos(s)", ""),
    (["diff", "a = s.clone(); b = a.view(1, 1); b /= 2; b.flatten()[0]", "--s", "2"], 0, "1/2", ""),
]  # fmt: skip

CYCLE, DOUBLED = "a=[]; a.append(a); ", "a=[1]; " + "a=[a,a]; " * 60
TOO_LONG, BILLIONS = "items is too long (at most 10000000)", "10000000000 items is too long"
BOUNDED = [
    ([f"{CYCLE}a"], "[[...]]", ""),
    ([f"{CYCLE}str(a)"], "[[...]]", ""),
    ([f"{CYCLE}display(a)"], "[[...]]", ""),
    ([f"{CYCLE}a", "--plain"], "", "a list that holds itself has no end"),
    ([f"{CYCLE}a", "--json"], "", "a list that holds itself has no end"),
    ([f"{CYCLE}sin(a)"], "", "a list that holds itself is not a tensor"),
    ([f"{CYCLE}tensor(a)"], "", "a list that holds itself is not a tensor"),
    ([f"{CYCLE}sum(a)"], "", "a list that holds itself is not a tensor"),
    ([f"{DOUBLED}a"], "", TOO_LONG),
    (["[[0]*10**5]*10**4"], "", "1000010000 items is too long"),
    (["tensor([[0]*10**5]*10**4)"], "", "1000010000 items is too long"),
    (["sin([[0]*10**5]*10**4)"], "", "1000010000 items is too long"),
    (["ones(2)[[[0]*10**5]*10**4]"], "", "1000010000 items is too long"),
    (["ones(2)[0, [[0]*10**5]*10**4]"], "", "1000010000 items is too long"),
    (["a = [[0]*10**5]*10**4; sorted(a)"], "", "1000010000 items is too long"),
    (["a = [[0]*10**5]*10**4; b = [[0]*10**5]*10**4; a == b"], "", "1000010000 items is too long"),
    (["a = [[0]*10**5]*10**4; b = [[0]*10**5]*10**4; a < b"], "", "1000010000 items is too long"),
    (["a = [[0]*10**5]*10**4; ([0]*10**5 + [1]) in a"], "", "1000010000 items is too long"),
    (["a = [[0]*10**5]*10**4; a.count([0]*10**5)"], "", "1000010000 items is too long"),
    (["a = [[0]*10**5]*10**4; a == a, 1 in a, a.count(1)"], "(True, False, 0)", ""),
    ([f"{CYCLE}ones(3)[a]"], "", "a list that holds itself is not a tensor"),
    ([f"{DOUBLED}a == a"], "True", ""),
    (["a = (int,); " + "a = (a, a); " * 60 + "isinstance('', a)"], "", TOO_LONG),
    ([f"{DOUBLED}b = a; {DOUBLED}a == b"], "", TOO_LONG),
    ([f"{DOUBLED}len(a)"], "2", ""),
    ([f"{DOUBLED}sin(a)"], "", TOO_LONG),
    ([f"{DOUBLED}tensor(a)"], "", TOO_LONG),
    ([f"{DOUBLED}str(a)"], "", TOO_LONG),
    ([f"{DOUBLED}print(a)"], "", TOO_LONG),
    ([f"{DOUBLED}f'{{a}}'"], "", TOO_LONG),
    ([f"{DOUBLED}'{{}}'.format(a)"], "", TOO_LONG),
    ([f"{DOUBLED}'%s' % a"], "", TOO_LONG),
    ([f"{DOUBLED}assert False, a"], "", TOO_LONG),
    (["list(zip(range(10**10)))"], "", BILLIONS),
    (["list(enumerate(range(10**10)))"], "", BILLIONS),
    (["list(reversed(range(10**10)))"], "", BILLIONS),
    (["sorted(range(10**10))"], "", BILLIONS),
    (["tensor(range(10**10))"], "", BILLIONS),
    (["a = []; a.extend(range(10**10))"], "", BILLIONS),
    (["a = []\na += range(10**10)"], "", BILLIONS),
    (["a = [1]\nfor i in range(40): a.extend(a)"], "", TOO_LONG),
    (["','.join(range(10**10))"], "", BILLIONS),
    (["ones(2)[range(10**10)]"], "", BILLIONS),
    (["x = ones(2); x[0, range(10**10)] = 1"], "", BILLIONS),
    (["('a'*10**6).join(['b']*10**5)"], "", TOO_LONG),
    (["('{0}'*10**6).format('a'*10**6)"], "", TOO_LONG),
    (["('%s'*10**5) % (('a'*10**6,)*10**5)"], "", TOO_LONG),
    (["'a'*10**10"], "", BILLIONS),
    (["2**10**10"], "", "an integer of more than 1048576 bits"),
    (["1.5 in range(10**12)"], "False", ""),
    (["2. in range(10**12)"], "True", ""),
    (["tensor_split(ones(3), 10**8)"], "", "100000000 items is too long (at most 1000000)"),
    (["split(ones(10**7), 1)"], "", "10000000 items is too long (at most 1000000)"),
    (["list(ones(10**7))"], "", "10000000 items is too long (at most 1000000)"),
    (["ones(3).expand(10**12, 3).sum()"], "", "3000000000000 items is too long"),
    (["ones(1).expand(10**10).tolist()"], "", BILLIONS),
    (["ones(10**6, 10**6)"], "", "out of memory: an array of shape (1000000, 1000000) takes 7.28 TiB"),
    (["ones(3).repeat(10**10)"], "", "out of memory: an array of shape"),
    (["tile(ones(3), (10**10,))"], "", "out of memory: an array of shape"),
    (["randperm(10**9)"], "", "out of memory"),
    (["x", "--x", "0:1e9"], "", "out of memory: an array of shape (1000000000,) takes 7.45 GiB"),
]  # fmt: skip
WORDS = [
    (["sorted([1], foo=1)"], "", "sorted() got an unexpected keyword argument 'foo'"),
    (["print(1, foo=1)"], "", "print() got an unexpected keyword argument 'foo'"),
    (["F.dropout(ones(2), 1, 2, 3, 4, 5)"], "", "error: dropout() takes"),
    (["print"], "<built-in function print>", ""),
    (["ones(2)[lambda: 1]"], "", "are valid indices (got function)"),
    (["(lambda: 1)[0]"], "", "'function' object is not subscriptable"),
    (
        ["type(sin), type(lambda: 1)"],
        "(<class 'builtin_function_or_method'>, <class 'function'>)",
        "",
    ),
    (
        ["try:\n  'a'*10**9\nexcept ValueError as e:\n  z = type(e), e\nz"],
        "(<class 'ValueError'>, ValueError(",
        "",
    ),
    (["type(1).foo"], "", "'type' object has no attribute 'foo'"),
    (["import math; math + 1"], "", "unsupported operand type(s) for +: 'module' and 'int'"),
    (["[sorted, 'a'.upper]"], "[<built-in function sorted>, <built-in function upper>]", ""),
    (["['a', [1, 'b']]"], "['a', [1, 'b']]", ""),
    (["isinstance([], list), type(()) == tuple"], "(True, True)", ""),
]


def one_way(rows: list[tuple[list[str], str, str]]) -> list[tuple[list[str], int, str, str]]:
    """Rows of `eval` whose exit code is 0 where nothing is said, and else 1."""
    return [(["eval", *argv], int(bool(said)), shown, said) for argv, shown, said in rows]


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What each child would import for itself."""
    for verb in ("eval", "grad", "diff", "check", "jacobian", "graph", "hessian"):
        assert not CliRunner().invoke(main, [verb, "2*x", "--x", "1"]).exit_code
        assert CliRunner().invoke(main, [verb, "sin(", "--x", "1"]).exit_code
    assert not CliRunner().invoke(main, ["map", "x", "-"], input="x\n1\n").exit_code


TABLES = {"names": NAMES, "texts": TEXTS, "found": FOUND, "written": WRITTEN,
          "bounded": one_way(BOUNDED), "words": one_way(WORDS)}  # fmt: skip


def answered(argvs: list[list[str]]) -> list[list[Any]]:
    """What each command line answers, one after the other in one child with the limits of `ran`.

    Those after one that ends the child are missing.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            signal.alarm(PATIENCE)
            with os.fdopen(writing, "w") as answers:
                for argv in argvs:
                    result = CliRunner().invoke(main, argv, prog_name="gradcli")
                    print(
                        json.dumps([result.exit_code, result.stdout, result.stderr]), file=answers
                    )
                    answers.flush()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        found = [json.loads(line) for line in answers]
    os.waitpid(child, 0)
    return found


@sweep("table", TABLES, parts=6, often=1)
def test_what_once_went_wrong(table: str) -> None:
    rows = TABLES[table]
    found = answered([argv for argv, *_ in rows])
    wrong = [
        f"{argv}: {code}\n{out[:500]}\n{err[:500]}"
        for (argv, wanted, shown, said), (code, out, err) in zip(rows, found, strict=False)
        if code != wanted or shown not in out or said not in err or bool(err) != bool(said)
    ]
    if len(found) < len(rows):
        wrong.append(f"{rows[len(found)][0]}: no answer in {SECONDS} s and {MEMORY} bytes")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("argv", "said"), ROWS, ids=lambda value: str(value)[:60])
def test_what_once_went_wrong_over_rows(argv: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,2\n0.5,-4\n3,0.001\n")
    found, out, err = ran(["map", argv[0], "t.csv", *argv[1:]], "", tmp_path)
    assert (found, out, said in err, "fault" in err) == (1, "", True, False), f"{out}\n{err}"


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': "
# (files, command line, what standard error says)
FILES = [
    ({"a.npy": HEADER + "(3,"}, ["eval", "x", "--x", "@a.npy"], "(its header cannot be read)"),
    ({"a.npy": HEADER + "(10**15,), }"}, ["eval", "x", "--x", "@a.npy"], "(its header cannot be read)"),
    ({"a.npy": "(" * 5000}, ["map", "x", "a.npy"], "(its header cannot be read)"),
    ({}, ["eval", "x*x", "--x", "3", "-o", "é" * 127 + ".npy"], "cannot write é"),
    ({}, ["eval", "x*x", "--x", "3", "-o", ""], "cannot write a file without a name"),
    ({"a.csv": "x\n1\n"}, ["map", "x*x", "a.csv", "-o", ""], "cannot write a file without a name"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "argv", "said"), FILES, ids=[row[2] for row in FILES])
def test_files_that_once_went_wrong(
    files: dict[str, str], argv: list[str], said: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        data = text.encode("latin1")
        magic = b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little")
        (tmp_path / name).write_bytes(magic + data if name.endswith(".npy") else data)
    found, out, err = ran(argv, "", tmp_path)
    assert (found, out, said in err) == (2, "", True), f"{out}\n{err}"
    assert {path.name for path in tmp_path.iterdir()} == set(files)  # none half written


@pytest.mark.long
def test_memory_is_asked_for() -> None:
    """Where the machine has but a gigabyte left, no more is taken, whatever overcommits."""
    code = (
        "import numpy\nfrom gradcli import cli\nimport gradcli.engine.system.budget as budget\n"
        "budget._free_on_machine = lambda: 1 << 30\n"
        "import sys\nsys.argv = ['gradcli', 'eval', 'x', '--x', '0:1e9']\ncli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(OPENBLAS_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "out of memory: an array of shape (1000000000,) takes 7.45 GiB" in done.stderr

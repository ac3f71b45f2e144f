"""`gradcli jacobian`, `hessian`, `jvp`, and `grad --order`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.running import run
from tests.sweep import sweep


def lines(*argv: str) -> list[str]:
    result = run(*argv)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_jacobian() -> None:
    assert lines("jacobian", "x**2", "--x", "1,2,3") == [
        "x.jacobian = [[2, 0, 0], [0, 4, 0], [0, 0, 6]]"
    ]
    assert lines("jacobian", "A@x", "--A", "1,2;3,4", "--x", "1,2", "--wrt", "x", "--plain") == [
        "x.jacobian\t1,2;3,4"
    ]


@sweep(
    "argv",
    [
        ["jacobian", "print('once'); outer(x, x)", "--x", "1,2"],
        ["jacobian", "print('once'); outer(x, x)", "--x", "1,2", "--mode", "forward"],
        ["jvp", "print('once'); x*2", "--x", "1,2", "--vector", "1,1"],
        ["hessian", "print('once'); sum(x**2)", "--x", "1,2"],
        ["hessian", "print('once'); sum(x**2)", "--x", "1,2", "--vector", "1,1"],
        ["diff", "print('once'); x**2"],
        ["diff", "print('once'); norm(x)", "--x", "0,0"],
    ],
    parts=1,
)
def test_what_the_program_prints_is_printed_once(argv: list[str]) -> None:
    assert lines(*argv).count("once") == 1


GLOBAL = [
    # (what leaves something to the next run, the gradient of its sum, its second derivative)
    ("y = x**3; set_grad_enabled(False); y", 12, 12),
    ("y = tensor(0.1)*x*x; set_default_dtype(float32); y", 0.4, 0.2),
    ("x*x*randn(())", 6.163984432976173, 3.0819922164880866),
]
ASKED = [
    *(("jacobian",), ("jacobian", "--mode", "forward"), ("jacobian", "--sparse")),
    *(("jvp", "--vector", "1"), ("jacobian", "--vector", "1")),
    *(("hessian",), ("hessian", "--vector", "1"), ("hessian", "--sparse")),
]


@sweep("argv", [("grad",), *ASKED, ("diff", "--plain")], parts=1)
@pytest.mark.parametrize(("source", "first", "second"), GLOBAL)
def test_a_program_runs_again_as_it_ran_before(
    source: str, first: float, second: float, argv: tuple[str, ...]
) -> None:
    """Whether gradients are recorded, dtypes and random numbers: one program, one derivative."""
    if argv[0] == "diff":
        if "randn" not in source:
            text = lines("diff", source, "--x", "2")[-1]
            assert float(lines("eval", text, "--x", "2")[0]) == pytest.approx(first, rel=1e-12)
        return
    (found,) = lines(argv[0], source, "--x", "2", "--manual-seed", "0", *argv[1:])
    wanted = second if argv[0] == "hessian" else first
    assert float(found.split("=")[1]) == pytest.approx(wanted, rel=1e-12)


def test_columns_are_those_of_the_same_random_numbers() -> None:
    argv = ["stack([x, x])*randn(2)", "--x", "1", "--manual-seed", "0"]
    (value,), (found,) = lines("eval", *argv), lines("jacobian", *argv)
    assert found == f"x.jacobian = {value}"


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_modes_agree(mode: str) -> None:
    argv = ["jacobian", "stack([x[0]*x[1], x[0]**2, sin(x[1])])", "--x", "2,0", "--json"]
    found = json.loads(lines(*argv, "--mode", mode)[0])
    assert found["wrt"] == {"x": {"jacobian": [[0.0, 2.0], [4.0, 0.0], [0.0, 1.0]]}}
    assert found["shape"] == [3]


def test_auto_takes_fewer() -> None:
    def method(*argv: str) -> str:
        return json.loads(lines("jacobian", *argv, "--json")[0])["method"]  # type: ignore[no-any-return]

    assert method("x*y", "--x", "1,2,3", "--y", "2", "--wrt", "y") == "forward"
    assert method("sum(x*y)", "--x", "1,2,3", "--y", "2") == "reverse"


@pytest.mark.parametrize("function", ["logdet", "det", "linalg.inv", "linalg.slogdet"])
def test_matrices_are_traced(function: str) -> None:
    source = f"{function}(x)[1]" if function == "linalg.slogdet" else f"{function}(x)"
    result = run("jacobian", source, "--x", "2,1;1,3")
    assert (result.exit_code, result.stderr) == (0, "")  # no note that it goes row by row


def test_jacobian_times_vector() -> None:
    assert lines("jacobian", "x**2", "--x", "1,2,3", "--vector", "1,0,1") == ["jvp = [2, 0, 6]"]
    assert lines("jvp", "x**2", "--x", "1,2,3", "--vector", "1,0,1") == ["jvp = [2, 0, 6]"]
    two = ["jvp", "x*y", "--x", "2", "--y", "3", "--vector", "x=1", "--vector", "y=10", "--value"]
    assert lines(*two) == ["value = 6", "jvp = 23"]


def test_hessian() -> None:
    assert lines("hessian", "x[0]**2*x[1]", "--x", "2,3") == ["x.hessian = [[6, 4], [4, 0]]"]
    assert lines("hessian", "a*x**3", "--x", "2", "--a", "3") == [
        "x.x.hessian = 36",
        "x.a.hessian = 12",
        "a.x.hessian = 12",
        "a.a.hessian = 0",
    ]
    found = json.loads(lines("hessian", "sum(x**3)", "--x", "1,2", "--json")[0])
    assert found["wrt"] == {"x": {"hessian": {"x": [[6.0, 0.0], [0.0, 12.0]]}}}


def test_sparse() -> None:
    """Only what is not zero, and as few numbers where all is elementwise."""
    assert lines("jacobian", "x**2*y", "--x", "1,0,3", "--y", "2", "--sparse", "--wrt", "x") == [
        "x.jacobian[0, 0] = 4",
        "x.jacobian[2, 2] = 12",
    ]
    assert lines("hessian", "x[0]**2*x[1]", "--x", "2,3", "--sparse", "--plain") == [
        "x.hessian[0, 0]\t6",
        "x.hessian[0, 1]\t4",
        "x.hessian[1, 0]\t4",
    ]
    found = json.loads(lines("jacobian", "x*sum(x)", "--x", "1,-1", "--sparse", "--json")[0])
    assert found["wrt"] == {
        "x": {
            "jacobian": {
                "shape": [2, 2],
                "indices": [[0, 0], [0, 1], [1, 0], [1, 1]],
                "values": [1, 1, -1, -1],
            }
        }
    }
    zero = run("hessian", "sum(x)", "--x", "1,2", "--sparse")
    assert (zero.stdout, zero.stderr) == ("", "gradcli: note: x.hessian: every element is zero\n")
    large = lines("jacobian", "sin(x)", "--x", "linspace(1, 2, 60000)", "--sparse", "--plain")
    assert len(large) == 60_000


@pytest.mark.parametrize("command", ["jacobian", "hessian", "jvp"])
def test_modes_mean_what_they_mean_in_grad(command: str) -> None:
    program = "with no_grad():\n    c = x*2\nsum(c*x)"
    vector = ["--vector", "ones"] if command == "jvp" else []
    expected = {
        "jacobian": "x.jacobian = [6, 8]",
        "hessian": "x.hessian = [[0, 0], [0, 0]]",
        "jvp": "jvp = 14",
    }
    assert lines(command, program, "--x", "3,4", *vector) == [expected[command]]


def test_what_runs_entry_by_entry_is_noted() -> None:
    result = run("jacobian", "renorm(x, 2, 0, 1.0)", "--x", "3,4;1,2")
    assert result.exit_code == 0, result.output
    noted = run("jacobian", "pdist(x)", "--x", "3,4;1,2;0,1", "--mode", "reverse")
    assert noted.stderr == (
        "gradcli: note: pdist_backward cannot take many seeds at once, so it ran once for each\n"
    )


def test_hessian_times_vector() -> None:
    argv = ["hessian", "sum(x**3)", "--x", "1,2,3", "--vector", "1,0,1"]
    assert lines(*argv) == ["x.hvp = [6, 0, 18]"]


def test_grad_of_higher_order() -> None:
    assert lines("grad", "x**4", "--x", "2", "--order", "3") == ["x.grad3 = 48"]
    assert lines("grad", "x**4*y", "--x", "2", "--y", "3", "--order", "2") == [
        "x.grad2 = 144",
        "y.grad2 = 0",
    ]
    found = json.loads(lines("grad", "x**3", "--x", "2", "--order", "2", "--json")[0])
    assert found["grads"]["x"]["grad"] == 12 and found["order"] == 2


@sweep(
    ("argv", "code", "words"),
    [
        (["hessian", "x**2", "--x", "1,2"], 1, "the Hessian is that of a scalar"),
        (["jvp", "x", "--x", "1"], 2, "no direction"),
        (["jvp", "x", "--x", "1,2", "--vector", "1,2,3"], 2, "x has shape (2,)"),
        (["jvp", "x*y", "--x", "1", "--y", "2", "--vector", "1"], 2, "of which variable"),
        (["jvp", "x", "--x", "1", "--vector", "y=1"], 2, "'y' is not a variable"),
        (
            ["jvp", "x*y", "--x", "tensor([1,2])", "--y", "2", "--vector", "x=1,1"],
            1,
            "can require gradients",
        ),
        (
            ["jacobian", "x", "--x", "tensor([1,2])"],
            1,
            "can require gradients",
        ),
        (["grad", "x", "--x", "1", "--order", "2", "--trace"], 2, "--order works only with"),
        (
            ["grad", "x", "--x", "1", "--order", "2", "--create-graph"],
            2,
            "leave out --create-graph",
        ),
        (["jacobian", "x", "--x", "1", "--sparse", "--mode", "forward"], 2, "--mode forward"),
        (
            ["hessian", "x", "--x", "1", "--sparse", "--vector", "1"],
            2,
            "cannot be used with --vector",
        ),
    ],
    parts=1,
)
def test_refusals(argv: list[str], code: int, words: str) -> None:
    result = run(*argv)
    assert result.exit_code == code, result.output
    assert words in result.stderr


BAND = ("hessian", "sum(x[1:]**2*x[:-1])", "--x", "ones(4)", "--sparse")


def test_sparse_matrices_as_rows_of_places_and_values() -> None:
    assert lines(*BAND, "--csv")[:3] == ["i,j,value", "0,1,2", "1,0,2"]
    four = lines("jacobian", "sin(X)", "--X", "ones(2, 2)", "--sparse", "--csv")
    assert four[0] == "i,j,k,l,value" and len(four) == 5


def test_sparse_matrices_in_a_file_that_scipy_reads(tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    path = tmp_path / "h.npz"
    lines(*BAND, "-o", str(path))
    found = sparse.load_npz(path)
    exact = [[0, 2, 0, 0], [2, 2, 2, 0], [0, 2, 2, 2], [0, 0, 2, 2]]
    assert found.nnz == 9 and found.toarray().tolist() == exact


@sweep(
    ("argv", "words"),
    [
        (("hessian", "sum(x)*y", "--x", "ones(4)", "--y", "1", "--sparse", "--csv"), "4 matrices"),
        (("jacobian", "sin(X)", "--X", "ones(2, 2)", "--sparse", "-o", "j.npz"), "4 dimensions"),
        ((*BAND, "-o", "h.npy"), "--sparse cannot be used with -o h.npy"),
    ],
    parts=1,
)
def test_what_sparse_matrices_are_not_written_as(argv: tuple[str, ...], words: str) -> None:
    result = run(*argv)
    assert result.exit_code == 2 and words in result.stderr


def test_a_matrix_that_is_too_large_names_its_size() -> None:
    result = run("hessian", "sum(x**2)", "--x", "ones(3000000)")
    assert result.exit_code == 1
    assert "(3000000, 3000000) takes 65.5 TiB" in result.stderr and "--sparse" in result.stderr


@pytest.mark.parametrize(
    "argv, shown",
    [
        (["jacobian", "[x*y, sin(x)]", "--x", "0", "--y", "2"], "x.jacobian = [2, 1]\ny.jacobian = [0, 0]\n"),
        (["jacobian", "p = x*y; d = x**2; (p, d)", "--x", "1", "--y", "2"],
         "x.jacobian = [2, 2]\ny.jacobian = [1, 0]\n"),
        (["jacobian", "[1, x]", "--x", "3"], "x.jacobian = [0, 1]\n"),
        (["jvp", "x*y, x", "--x", "1", "--y", "2", "--vector", "x=1"], "jvp = [2, 1]\n"),
    ],
)  # fmt: skip
def test_a_list_of_numbers_is_a_vector(argv, shown):
    result = run(*argv)
    assert (result.stdout, result.stderr) == (shown, "")

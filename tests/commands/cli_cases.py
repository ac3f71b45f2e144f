"""Command lines whose whole output is kept in tests/golden/cli, as a pipe and as a terminal get it.

python tests/commands/cli_cases.py        writes the files anew; read the difference before you commit it
"""

from __future__ import annotations

from pathlib import Path

from tests.commands.terminal import in_terminal, piped

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "cli"
PRODUCT = ["y = a*x; y + b", "--x", "3", "--a", "4", "--b", "5"]
SQUARES = "; ".join(["y = x*x", *["y = y*y"] * 15, "y"])

CASES: dict[str, list[str]] = {
    "grad": ["grad", "2*dot(x,x)", "--x", "0,1,2,3"],
    "grad-retain": ["grad", *PRODUCT, "--retain", "y", "--value"],
    "grad-json": ["grad", *PRODUCT, "--retain", "y", "--json"],
    "grad-plain": ["grad", "sum(x*m)", "--x", "1,2", "--m", "1,2;3,4", "--plain"],
    "grad-many": ["grad", "sum(x*x)", "--x", "0:2000"],
    "grad-vector": ["grad", "x + a", "--x", "3", "--a", "4,2"],
    "grad-trace": ["grad", "sum(sin(w*x + b)**2)/3", "--w", "1,2,3", "--x", "2,3,4", "--b", "0.5",
                   "--trace"],
    "grad-freed": ["grad", "2*dot(x,x)", "--x", "0,1", "--passes", "2"],
    "grad-integers": ["grad", "x", "--x", "tensor([1,2])"],
    "grad-detached": ["grad", "sum(x.detach())", "--x", "1,2"],
    "eval-matrix": ["eval", "x @ x.T", "--x", "1,2;3,4"],
    "eval-special": ["eval", "1/x", "--x", "0,-0.0,4,nan", "--json"],
    "eval-shapes": ["eval", "x + a", "--x", "1,2,3", "--a", "1,2"],
    "eval-syntax": ["eval", "2 * (3 + 4"],
    "eval-unknown": ["eval", "1 + sofmax(x)", "--x", "1,2"],
    "eval-unbound": ["eval", "a*x + b", "--a", "1", "--x", "2"],
    "eval-value": ["eval", "x", "--x", "1,,2"],
    "eval-ragged": ["eval", "x", "--x", "1,2;3"],
    "eval-error-json": ["eval", "2*/3", "--json"],
    "graph": ["graph", *PRODUCT],
    "graph-saved": ["graph", *PRODUCT, "--saved"],
    "graph-all": ["graph", "sum(tanh(x*w))", "--x", "1,2", "--w", "3", "--saved", "--grads",
                  "--values", "--edges", "--no-grad", "w"],
    "graph-json": ["graph", *PRODUCT, "--json"],
    "graph-dot": ["graph", *PRODUCT, "--format", "dot"],
    "graph-squarings": ["graph", SQUARES, "--x", "1"],
    "graph-nothing": ["graph", "a+a", "--a", "1", "--no-grad", "all"],
    "ops-sin": ["ops", "sin"],
    "help-grad": ["grad", "2*dot(x,w)", "--help"],
    "help": ["--help"],
}  # fmt: skip


def as_pipe(argv: list[str]) -> str:
    """Exit code, standard output and standard error, in a pipe."""
    done = piped(*argv)
    return f"exit {done.returncode}\n-- stdout\n{done.stdout}-- stderr\n{done.stderr}"


def as_terminal(argv: list[str]) -> str:
    """Exit code and screen of a terminal of 80 columns, escapes as \\e."""
    code, screen = in_terminal(*argv)
    return f"exit {code}\n-- screen\n{screen}".replace("\x1b", "\\e")


FORMS = {"pipe": as_pipe, "terminal": as_terminal}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, argv in CASES.items():
        for form, run in FORMS.items():
            text = run(argv)
            if "fault in gradcli" in text:
                raise SystemExit(f"{name}: {text}")
            (FOLDER / f"{name}.{form}.txt").write_text(text, encoding="utf-8")

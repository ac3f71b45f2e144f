"""The text of tensors against PyTorch's, recorded in golden/printing.json."""

import base64
import json
import re
import time
import zlib
from pathlib import Path

import numpy as np

import gradcli
from gradcli.engine.core import printing
from tests.sweep import sweep

GOLDEN = Path(__file__).parents[2] / "golden" / "printing.json"
CASES = json.loads(GOLDEN.read_text())["cases"]


def array_of(case):
    """The array of a recorded case."""
    data = zlib.decompress(base64.b64decode(case["bytes"]))
    return np.frombuffer(data, case["dtype"]).reshape(case["shape"])


@sweep("options", sorted({json.dumps(case["options"]) for case in CASES}), parts=1)
def test_text_is_pytorchs(options):
    checked = 0
    with printing.printoptions(profile="default"):
        printing.set_printoptions(**json.loads(options))
        for case in CASES:
            if json.dumps(case["options"]) != options:
                continue
            text = printing.tensor_text(
                array_of(case),
                default_dtype=np.dtype(case["default"]),
                suffixes=["requires_grad=True"] if case["requires_grad"] else [],
            )
            assert text == case["text"]
            checked += 1
    assert checked


def test_numpy_scalars_print_like_0d_arrays():
    assert printing.array_text(np.float64(2)) == "2."
    assert printing.array_text(np.float32(0.5)) == "0.5000"
    assert printing.array_text(np.bool_(True)) == "True"
    assert printing.array_text(np.complex128(1 - 2j)) == "1.-2.j"


def test_prefix_indents_and_suffixes_wrap():
    text = printing.tensor_text(
        np.zeros((2, 2)),
        prefix="Parameter",
        default_dtype=np.dtype(np.float64),
        suffixes=["grad_fn=<MulBackward0>"],
    )
    assert text == ("Parameter([[0., 0.],\n           [0., 0.]], grad_fn=<MulBackward0>)")
    text = printing.tensor_text(
        np.arange(20.0), default_dtype=np.dtype(np.float32), suffixes=["grad_fn=<MulBackward0>"]
    )
    assert text.endswith("19.], dtype=torch.float64,\n       grad_fn=<MulBackward0>)")


def test_options_are_kept_and_restored():
    before = printing.get_printoptions()
    with printing.printoptions(precision=2, sci_mode=True):
        assert printing.array_text(np.array([1.5])) == "[1.50e+00]"
        printing.set_printoptions(linewidth=40)
        assert printing.get_printoptions()["precision"] == 2
        # Left out, sci_mode goes back to automatic.
        assert printing.get_printoptions()["sci_mode"] is None
    assert printing.get_printoptions() == before


def test_a_big_array_is_not_scanned():
    # Only the edges are formatted: a broadcast view of 10**12 items has to print at once.
    big = np.broadcast_to(np.float32(1.5), (1_000_000, 1_000_000))
    start = time.process_time()
    text = printing.array_text(big)
    assert time.process_time() - start < 0.5
    assert text.splitlines()[0] == "[[1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000],"
    assert len(text.splitlines()) == 7


def test_nodes_and_handles_are_shown_by_numbers_that_no_run_changes():
    x = gradcli.tensor(1.0, requires_grad=True)
    first, second = x * 2, x.sin()
    shown = [re.sub("0x[0-9a-f]+", "0x…", str(y.grad_fn)) for y in (first, second)]
    assert shown == ["<MulBackward0 object at 0x…>", "<SinBackward0 object at 0x…>"]
    numbers = [int(str(y.grad_fn).split()[-1][2:-1], 16) for y in (first, second, first)]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0]]
    handles = [repr(x.register_hook(print)) for _ in range(2)]
    assert handles[0].startswith("<torch.utils.hooks.RemovableHandle object at 0x")
    assert len(set(handles)) == 2

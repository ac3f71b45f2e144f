"""torch.save and torch.load: what comes back, what is refused, and that no code is ever run."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli


def values(torch: Any) -> dict[str, Any]:
    x = torch.arange(6.0).reshape(2, 3)
    return {
        "tensors": [x, x[0], x.T, torch.tensor(3), torch.zeros(0, 3), torch.tensor([True, False])],
        "types": [
            torch.ones(2, dtype=torch.float16),
            torch.tensor([1 + 2j]),
            torch.float64,
            x.shape,
        ],
        "leaves": (torch.ones(1, requires_grad=True), torch.nn.parameter.Parameter(torch.ones(2))),
        "plain": {1: None, "é": [True, -5, 2**70, 0.5, float("inf"), 1j, b"a\xff"], (1, 2): ()},
        "ordered": OrderedDict(b=1, a=torch.device("cpu")),
    }


def saved(value: Any, torch: Any = gradcli) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_everything_comes_back() -> None:
    found = gradcli.load(saved(values(gradcli)))
    assert repr(found) == repr(values(gradcli))
    x, row, turned = found["tensors"][:3]
    x[0, 0] = 9  # what shared its memory does so again
    assert row[0] == 9 and turned[0, 0] == 9 and turned.stride() == (1, 3)


@pytest.mark.long
@pytest.mark.needs("torch")
def test_pytorch_reads_it_and_is_read() -> None:
    torch = importlib.import_module("torch")
    assert repr(torch.load(saved(values(gradcli)))) == repr(values(torch))
    assert repr(gradcli.load(saved(values(torch), torch))) == repr(values(gradcli))
    layer = torch.nn.Linear(2, 3)
    state = gradcli.load(saved(layer.state_dict(), torch))
    assert np.array_equal(state["weight"].numpy(), layer.weight.detach().numpy())


def test_one_value_twice_is_one_and_a_circle_is_a_circle() -> None:
    x = gradcli.ones(2)
    circle: list[Any] = [x, x]
    circle.append(circle)
    found = gradcli.load(saved(circle))
    assert found[0] is found[1] and found[2] is found


@pytest.mark.parametrize("value", [{1}, object(), print, np.float64(1), [os.system]])
def test_what_only_code_could_bring_back_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError, match="no code is run on loading"):
        gradcli.save(value, io.BytesIO())


class _Shell:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/gradcli-was-here",)


def archive(program: bytes, compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr("archive/data.pkl", program)
        made.writestr("archive/byteorder", sys.byteorder)
        made.writestr("archive/data/0", b"\0" * 8)
    file.seek(0)
    return file


_TENSOR = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n"
    b"X\x01\0\0\0" + b"0X\x03\0\0\0cpuK\x02tQK%c(K%ctK%c\x85\x89)tR."
)
HOSTILE = {
    "a call of the shell": pickle.dumps(_Shell(), 2),
    "the same in a later protocol": pickle.dumps([_Shell()], 4),
    "a class of Python's": b"\x80\x02cbuiltins\ngetattr\n.",
    "a name of ours": b"\x80\x02cgradcli.serialization\nload\n.",
    "an instruction that builds objects": b"\x80\x02ccollections\nOrderedDict\n)\x81.",
    "attributes of a list": b"\x80\x02]}b.",
    "a call of what is no name": b"\x80\x02X\x01\0\0\0a)R.",
    "an item of a tuple": b"\x80\x02)K\x01a.",
    "memory beyond the storage": _TENSOR % (0, 3, 1),
    "memory before the storage": _TENSOR.replace(b"K%c(", b"J\xff\xff\xff\xff(") % (2, 1),
    "steps beyond the storage": _TENSOR % (0, 2, 2),
    "a key that takes forever to hash": b"\x80\x02}" + b")" + b"\x85" * 500 + b"K\x01s.",
    "nothing": b"",
    "no end": b"\x80\x02]",
    "an empty stack": b"\x80\x02.",
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE)
def test_no_code_is_run(program: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed.*no code|damaged"):
        gradcli.load(archive(program), weights_only=False)
    assert not Path("/tmp/gradcli-was-here").exists()


def test_a_tensor_within_its_storage_is_read() -> None:
    assert gradcli.load(archive(_TENSOR % (0, 2, 1))).tolist() == [0, 0]
    cuda = (_TENSOR % (0, 2, 1)).replace(b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:0")
    assert gradcli.load(archive(cuda), map_location="cpu").tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        gradcli.load(archive(cuda))
    with pytest.raises(RuntimeError, match="compressed"):
        gradcli.load(archive(_TENSOR % (0, 2, 1), zipfile.ZIP_DEFLATED))
    with pytest.raises(RuntimeError, match="not a ZIP archive"):
        gradcli.load(io.BytesIO(b"hello"))


def test_a_file_is_whole_or_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    gradcli.save({"w": gradcli.ones(2)}, path)
    with pytest.raises(TypeError):
        gradcli.save(object(), path)
    assert gradcli.load(path)["w"].tolist() == [1, 1]
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        gradcli.save(1, tmp_path / "nowhere" / "model.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
        gradcli.save(1, 3)


def test_numbers_of_bfloat16_become_float32_with_a_warning() -> None:
    """The storage of PyTorch's `tensor([1.5, -0.3340])` in bfloat16: the upper halves of its float32."""
    value = gradcli.tensor([1.5, -0.333984375])
    source = saved(value)
    made = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.namelist():
            data = old.read(entry).replace(b"torch\nFloatStorage", b"torch\nBFloat16Storage")
            if entry.endswith("data/0"):
                data = (np.frombuffer(data, np.uint32) >> 16).astype(np.uint16).tobytes()
            new.writestr(entry, data)
    with pytest.warns(UserWarning, match="those of the file become torch.float32"):
        assert gradcli.equal(gradcli.load(made), value)


def test_a_whole_model_is_told_of_its_state() -> None:
    with pytest.raises(TypeError, match=r"not Linear: .* give its state_dict\(\)"):
        saved(gradcli.nn.Linear(1, 1))

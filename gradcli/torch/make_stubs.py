"""Write the stubs of type checkers: `python -m gradcli.torch.make_stubs`.

Functions and methods of the table are made while the program runs, so a type checker sees none of them. The
stubs say what each returns: a tensor, or a bool, where all of its samples do; else Any. What they take is
checked when they are called.
"""

from __future__ import annotations

import ast
import keyword
import warnings
from pathlib import Path
from typing import Any

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry import table
from gradcli.engine.system import dtypes

ROOT = Path(__file__).parents[1]
_HEAD = """\"\"\"{doc} Made by gradcli.torch.make_stubs; do not edit.\"\"\"

import builtins
from typing import Any

from gradcli.engine.core.tensor import Tensor
"""
# Namespaces of functions alone, as they are imported: `from gradcli import linalg`.
_NAMESPACES = ("special", "linalg", "fft", "nn.functional")
# Modules whose source says more than a stub would.
_WRITTEN = ("Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential")
_SEVERAL = "tuple[Tensor, ...]"
# Functions without samples, or whose samples are of several types.
_SAID = {
    **dict.fromkeys("from_numpy from_dlpack range complex cuda empty_strided".split(), "Tensor"),
    **dict.fromkeys("split chunk hsplit split_with_sizes tensor_split".split(), _SEVERAL),
    **dict.fromkeys(("promote_types", "result_type"), "dtype"),
    **dict.fromkeys(("initial_seed", "seed"), "int"),
}


_DTYPE = "from gradcli.engine.system.dtypes import dtype\n"


def returns(name: str) -> str:
    """The type of what the function of that name returns, by its samples."""
    if name in _SAID or name.startswith("new_"):
        return _SAID.get(name, "Tensor")
    entry = table.resolve(name)
    found = {_type(text) for text in getattr(entry, "samples", ()) or ()}
    return found.pop() if len(found) == 1 else "Any"


def _type(text: str) -> str:
    from gradcli.language import evaluate

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value: Any = evaluate(text)
    except Exception:  # a sample that is there for its refusal has no type
        return "Any"
    if type(value) is tuple and all(type(v) is Tensor for v in value):
        return _SEVERAL
    return type(value).__name__ if type(value) in (bool, Tensor) else "Any"


def _function(name: str, method: bool = False) -> str:
    own = "self, " if method else ""
    short = name.rpartition(".")[2]
    found = returns(name)
    if found in ("bool", "int"):
        found = f"builtins.{found}"  # `bool` and `int` are dtypes there
    return f"def {short}({own}*args: Any, **kwargs: Any) -> {found}: ..."


def texts() -> dict[Path, str]:
    """The text of each stub."""
    table.load()
    names = [n for n in table.names() if not keyword.iskeyword(n.rpartition(".")[2])]
    other = {"diff", "cuda"}  # verbs and namespaces
    plain = [n for n in names if "." not in n and n not in other]
    found: dict[Path, str] = {}
    lines = [f"{_HEAD.format(doc='Functions of tensors, and constants.')}{_DTYPE}"]
    for name in plain:
        value = table.resolve(name)
        if isinstance(value, dtypes.dtype):
            lines.append(f"{name}: dtype")
        elif isinstance(value, (float, int)):
            lines.append(f"{name}: builtins.{type(value).__name__}")
        elif callable(value) and not isinstance(value, type):
            lines.append(_function(name))
        else:
            lines.append(f"{name}: Any")
    found[ROOT / "_functions.pyi"] = "\n".join([*lines, ""])
    for space in _NAMESPACES:
        inside = [
            n for n in names if n.startswith(f"{space}.") and n.count(".") == space.count(".") + 1
        ]
        lines = [_HEAD.format(doc=f"The functions of torch.{space}.")]
        lines += [_function(n) for n in inside]
        lines += ["def __getattr__(name: str) -> Any: ..."]
        found[ROOT / (space.replace(".", "/") + ".pyi")] = "\n".join([*lines, ""])
    tree = ast.parse((ROOT / "engine/core/tensor.py").read_text("utf-8"))
    (tensor,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    own = {n.name for n in tensor.body if isinstance(n, ast.FunctionDef)} | {*table.PROPERTIES}
    doc = "The methods of tensors that the table adds."
    lines = [f"{_HEAD.format(doc=doc)}{_DTYPE}", "class Methods:"]
    lines += [f"    {_method(n)}" for n in sorted(table.methods() - own) if not n.startswith("_")]
    lines += [f"    {n}: Tensor" for n in sorted(table.PROPERTIES)]
    found[ROOT / "engine/core/tensor_methods.pyi"] = "\n".join([*lines, ""])
    found[ROOT / "nn/_classes.pyi"] = _layers()
    return found


def _layers() -> str:
    """The classes of layers, of which a type checker is to know that they are modules."""
    from gradcli.torch import nn

    lines = [_HEAD.format(doc="The layers of torch.nn.")]
    lines.append("from gradcli.torch.nn.modules.module import Module\n")
    for name in dir(nn):
        kind = getattr(nn, name, None)
        if isinstance(kind, type) and issubclass(kind, nn.Module) and name not in _WRITTEN:
            lines.append(f"class {name}(Module):")
            lines.append("    def __init__(self, *args: Any, **kwargs: Any) -> None: ...")
    return "\n".join([*lines, ""])


def _method(name: str) -> str:
    if name.endswith("_"):
        return f"def {name}(self, *args: Any, **kwargs: Any) -> Tensor: ..."
    return _function(name, method=True)


if __name__ == "__main__":
    for path, text in texts().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines")

"""What mypy says of operators that somebody declares, with `gradcli.mypy_plugin` and without."""

from __future__ import annotations

from pathlib import Path

import pytest

FILE = '''
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradcli
from gradcli.engine.registry.table import Primitive, function, operator


@operator("elementwise float", kernel=np.cbrt, node="CbrtBackward0", samples="(randn(3))")
class cbrt:
    """The cube root."""

    self = lambda grad, result: grad / (3 * result**2)


def rooted(node: str) -> Callable[[type], Primitive]:
    return operator("elementwise float", kernel=np.sqrt, node=node)


@rooted("RootBackward0")
class root:
    self = lambda grad, result: grad / (2 * result)


@function("both(Tensor input)", samples="(randn(3))")
def both(input: gradcli.Tensor) -> Any:
    return cbrt(root(input), out=None) + cbrt.kernel(8.0)


@dataclass
class Plain:
    size: int


plain = Plain()
'''
MISSING = 'error: Missing positional argument "size" in call to "Plain"  [call-arg]'
MANY = 'error: Too many arguments for "{}"  [call-arg]'


@pytest.mark.long
@pytest.mark.parametrize(
    "plugins, said",
    [
        ("gradcli.mypy_plugin", [MISSING]),
        ("", [MANY.format("root"), 'error: Unexpected keyword argument "out"', MISSING]),
    ],
)
def test_a_class_of_rules_is_a_primitive(plugins: str, said: list[str], tmp_path: Path) -> None:
    from mypy import api

    (tmp_path / "operators.py").write_text(FILE, encoding="utf-8")
    settings = tmp_path / "mypy.ini"
    settings.write_text(f"[mypy]\nstrict = true\nplugins = {plugins}\n", encoding="utf-8")
    cache = tmp_path / "cache"
    where = ["--config-file", str(settings), "--cache-dir", str(cache)]
    found, _, _ = api.run([*where, str(tmp_path / "operators.py")])
    lines = [line.partition(": ")[2] for line in found.splitlines() if ": error: " in line]
    for text in said:
        assert any(text in line for line in lines), found
    if plugins:
        assert len(lines) == len(said), found

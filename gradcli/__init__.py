"""gradcli: a differentiator of expressions and an inspector of backward graphs.

The module speaks PyTorch's language: `import gradcli as torch` gives its functions of tensors, its
`autograd`, `linalg`, `nn.functional` and the other namespaces, on an engine of NumPy. The commands are
functions of expressions: `gradcli.grad("x**2", x=3)`. Everything is loaded when it is first asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

from gradcli.engine.registry import torch_namespaces
from gradcli.version import __version__

TYPE_CHECKING = False  # typing takes milliseconds, in which Ctrl-C would not be ours yet
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    # What a type checker sees; at run time `__getattr__` finds it when it is asked for.
    from gradcli import autograd as autograd
    from gradcli import fft as fft
    from gradcli import func as func
    from gradcli import graphs as graphs
    from gradcli import language as language
    from gradcli import linalg as linalg
    from gradcli import nn as nn
    from gradcli import optim as optim
    from gradcli import special as special
    from gradcli import testing as testing
    from gradcli import utils as utils
    from gradcli._functions import *  # noqa: F403
    from gradcli.columns.streaming.table_functions import compile as compile
    from gradcli.commands.function_verbs import hvp as hvp
    from gradcli.commands.function_verbs import vjp as vjp
    from gradcli.commands.solver_verbs import fit as fit
    from gradcli.commands.solver_verbs import minimize as minimize
    from gradcli.commands.solver_verbs import root as root
    from gradcli.commands.table_reading import read_table as read_table
    from gradcli.commands.table_verbs import map as map
    from gradcli.commands.table_verbs import plot as plot
    from gradcli.commands.typed_verbs import check as check
    from gradcli.commands.typed_verbs import diff as diff
    from gradcli.commands.typed_verbs import grad as grad
    from gradcli.commands.typed_verbs import hessian as hessian
    from gradcli.commands.typed_verbs import jacobian as jacobian
    from gradcli.commands.typed_verbs import jvp as jvp
    from gradcli.commands.typed_verbs import value_and_grad as value_and_grad
    from gradcli.commands.verbs import graph as graph
    from gradcli.commands.verbs import simplify as simplify
    from gradcli.commands.verbs import taylor as taylor
    from gradcli.engine.core.device import channels_last as channels_last
    from gradcli.engine.core.device import channels_last_3d as channels_last_3d
    from gradcli.engine.core.device import contiguous_format as contiguous_format
    from gradcli.engine.core.device import device as device
    from gradcli.engine.core.device import preserve_format as preserve_format
    from gradcli.engine.core.device import strided as strided
    from gradcli.engine.core.errors import EngineError as EngineError
    from gradcli.engine.core.modes import enable_grad as enable_grad
    from gradcli.engine.core.modes import inference_mode as inference_mode
    from gradcli.engine.core.modes import (
        is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    )
    from gradcli.engine.core.modes import is_anomaly_enabled as is_anomaly_enabled
    from gradcli.engine.core.modes import is_grad_enabled as is_grad_enabled
    from gradcli.engine.core.modes import is_inference_mode_enabled as is_inference_mode_enabled
    from gradcli.engine.core.modes import no_grad as no_grad
    from gradcli.engine.core.modes import set_grad_enabled as set_grad_enabled
    from gradcli.engine.core.printing import get_printoptions as get_printoptions
    from gradcli.engine.core.printing import printoptions as printoptions
    from gradcli.engine.core.printing import set_printoptions as set_printoptions
    from gradcli.engine.core.random import Generator as Generator
    from gradcli.engine.core.random import default_generator as default_generator
    from gradcli.engine.core.size import Size as Size
    from gradcli.engine.core.tensor import Tensor as Tensor
    from gradcli.engine.system import GradcliError as GradcliError
    from gradcli.engine.system.dtypes import bfloat16 as bfloat16
    from gradcli.engine.system.dtypes import dtype as dtype
    from gradcli.engine.system.dtypes import get_default_dtype as get_default_dtype
    from gradcli.engine.system.dtypes import set_default_dtype as set_default_dtype
    from gradcli.engine.system.number_limits import finfo as finfo
    from gradcli.engine.system.number_limits import iinfo as iinfo
    from gradcli.graphs import inspect as inspect
    from gradcli.language import evaluate as evaluate
    from gradcli.language import parse as parse
    from gradcli.language.located_errors import LanguageError as LanguageError
    from gradcli.notebook import load_ipython_extension as load_ipython_extension
    from gradcli.tables.table_errors import TableError as TableError
    from gradcli.torch import accelerator as accelerator
    from gradcli.torch import amp as amp
    from gradcli.torch import backends as backends
    from gradcli.torch import cuda as cuda
    from gradcli.torch import distributions as distributions
    from gradcli.torch import jit as jit
    from gradcli.torch import random as random
    from gradcli.torch import return_types as return_types
    from gradcli.torch import serialization as serialization
    from gradcli.torch import types as types
    from gradcli.torch.amp import GradScaler as GradScaler
    from gradcli.torch.amp import autocast as autocast
    from gradcli.torch.serialization import load as load
    from gradcli.torch.serialization import save as save
    from gradcli.torch.switches import (
        are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    )
    from gradcli.torch.switches import get_float32_matmul_precision as get_float32_matmul_precision
    from gradcli.torch.switches import set_float32_matmul_precision as set_float32_matmul_precision
    from gradcli.torch.switches import typename as typename
    from gradcli.torch.switches import use_deterministic_algorithms as use_deterministic_algorithms
    from gradcli.transforms.assertions import GradientMismatch as GradientMismatch
    from gradcli.transforms.assertions import GradientTrouble as GradientTrouble
    from gradcli.transforms.vmap import vmap as vmap

# Where the names that are not in the operator table live.
_HOME = {
    **dict.fromkeys(["Tensor"], "gradcli.engine.core.tensor"),
    "Size": "gradcli.engine.core.size",
    **dict.fromkeys(
        [
            *("device", "strided", "contiguous_format", "preserve_format"),
            *("channels_last", "channels_last_3d"),
        ],
        "gradcli.engine.core.device",
    ),
    **dict.fromkeys(["finfo", "iinfo"], "gradcli.engine.system.number_limits"),
    **dict.fromkeys(["Generator", "default_generator"], "gradcli.engine.core.random"),
    **dict.fromkeys(
        ["dtype", "get_default_dtype", "set_default_dtype"],
        "gradcli.engine.system.dtypes",
    ),
    **dict.fromkeys(
        [
            *("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "is_grad_enabled"),
            *("is_inference_mode_enabled", "is_anomaly_enabled", "is_anomaly_check_nan_enabled"),
        ],
        "gradcli.engine.core.modes",
    ),
    **dict.fromkeys(
        ["set_printoptions", "get_printoptions", "printoptions"], "gradcli.engine.core.printing"
    ),
    **dict.fromkeys(["save", "load"], "gradcli.torch.serialization"),
    **dict.fromkeys(["autocast", "GradScaler"], "gradcli.torch.amp"),
    **dict.fromkeys(
        [
            *("set_float32_matmul_precision", "get_float32_matmul_precision", "typename"),
            *("use_deterministic_algorithms", "are_deterministic_algorithms_enabled"),
        ],
        "gradcli.torch.switches",
    ),
    **dict.fromkeys(["evaluate", "parse"], "gradcli.language"),
    "inspect": "gradcli.graphs",
    "compile": "gradcli.columns.streaming.table_functions",
    "vmap": "gradcli.torch.func",
    "load_ipython_extension": "gradcli.notebook",
    **dict.fromkeys(
        [
            *("check", "diff", "grad", "graph", "hessian", "jacobian", "simplify", "taylor"),
            "value_and_grad",
        ],
        "gradcli.commands.verbs",
    ),
    **dict.fromkeys(["hvp", "vjp"], "gradcli.commands.function_verbs"),
    **dict.fromkeys(["fit", "minimize", "root"], "gradcli.commands.solver_verbs"),
    **dict.fromkeys(["jvp", "map", "plot"], "gradcli.commands.table_verbs"),
    "read_table": "gradcli.commands.table_reading",
    "GradcliError": "gradcli.engine.system",
    "LanguageError": "gradcli.language.located_errors",
    "TableError": "gradcli.tables.table_errors",
    "EngineError": "gradcli.engine.core.errors",
    "bfloat16": "gradcli.engine.system.dtypes",
    **dict.fromkeys(["GradientMismatch", "GradientTrouble"], "gradcli.transforms.assertions"),
}
# PyTorch's namespaces, which stand in the folder `torch`: `gradcli.linalg` is `gradcli.torch.linalg`.
_TORCH = frozenset(
    [
        *("autograd", "linalg", "special", "fft", "nn", "func", "testing", "return_types"),
        *("jit", "types", "distributions"),
        *("amp", "utils", "cuda", "random", "backends", "accelerator", "serialization", "optim"),
    ]
)
_NAMESPACES = _TORCH | frozenset(
    [
        *("engine", "operators", "transforms", "language", "formulas", "graphs", "tables"),
        *("columns", "commands"),
    ]
)


class _Namespaces:
    """Finds `gradcli.NAMESPACE…` for Python's import: the module of that name in the folder `torch`.

    It goes before Python's own finders. These would load `gradcli.nn.functional` from the folder of
    `gradcli.nn` a second time, under another name. Where a program says `sys.modules["torch"] = gradcli`,
    `torch.nn` is the same module.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        parts = name.split(".", 2)
        package = sys.modules.get(parts[0])
        ours = package is sys.modules[__name__] and len(parts) > 1 and parts[1] in _TORCH
        return ModuleSpec(name, _Namespaces) if ours else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Python makes an empty module, which `exec_module` puts the right one in place of."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        _complete()
        name = module.__name__
        inside = torch_namespaces.home(name.partition(".")[2])
        sys.modules[name] = import_module(f"{__name__}.torch.{inside}")


sys.meta_path.insert(0, _Namespaces)
torch_namespaces.torch = sys.modules[__name__]


def _complete() -> Any:
    """The operator table, which gives tensors their methods and operators.

    Whichever public name is asked for first, a tensor is whole from then on. A command imports what it
    needs by itself, and does not come here.
    """
    table = import_module("gradcli.engine.registry.table")
    table.base()
    errors: Any = import_module("gradcli.engine.core.errors")
    if errors.remedy_of is None:
        errors.remedy_of = _remedy
    return table


def _remedy(error: Any) -> Any:
    """What to do about an error of the engine, for who writes a program of tensors."""
    return import_module("gradcli.language.error_remedies").remedy(error, "tensors")


if not TYPE_CHECKING:  # a checker knows the names above, and finds a misspelt one

    def __getattr__(name: str) -> Any:
        if not name.startswith("__"):
            _complete()
        if name in _HOME:
            value = getattr(import_module(_HOME[name]), name)
        elif name in _NAMESPACES:
            return import_module(f"gradcli.{name}")
        elif name.startswith("__"):
            raise AttributeError(f"module 'gradcli' has no attribute {name!r}")
        else:
            value = _table(name)
        globals()[name] = value
        return value


# What commands and other libraries call what has another name here, or stands elsewhere.
_ELSEWHERE = {
    "eval": "gradcli.evaluate(source, x=1) is the value of an expression",
    "lambdify": "gradcli.compile(source) is a function",
    "grad_and_value": "gradcli.value_and_grad(f), or gradcli.func.grad_and_value(f)",
    "jit": "gradcli.compile(f) is a compiled function",
    "jacrev": "gradcli.jacobian(f), or gradcli.func.jacrev(f)",
    "jacfwd": 'gradcli.jacobian(f, mode="forward"), or gradcli.func.jacfwd(f)',
    "elementwise_grad": "gradcli.vmap(gradcli.grad(f)) has the slope at each element",
    "solve": "gradcli.root(source, x=1) solves an equation, gradcli.linalg.solve(A, b) a linear system",
    "derivative": "gradcli.diff(source) is the formula, gradcli.grad(source, x=1) its value",
    "maximize": 'gradcli.minimize("-(…)", x=1) finds where an expression is largest',
    "tree_map": "gradcli.func.grad and vmap take dicts and lists of tensors as they are",
    "custom_vjp": "a class of gradcli.autograd.Function has a backward of its own",
    "custom_jvp": "a class of gradcli.autograd.Function has a jvp of its own",
    "custom_gradient": "a class of gradcli.autograd.Function has a backward of its own",
    "integrate": "gradcli.trapezoid(y, x) integrates samples",
}


def _table(name: str) -> Any:
    table = _complete()
    found = table.resolve(name)
    if found is None:
        said = f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else torch_namespaces.absent(name)
        raise AttributeError(f"module 'gradcli' has no attribute {name!r}{said}")
    return found.call if isinstance(found, table.Function) else found


def __dir__() -> list[str]:
    table = import_module("gradcli.engine.registry.table")
    plain = [n for n in table.names() if "." not in n]
    return sorted({*plain, *_HOME, *_NAMESPACES, "__version__"})


__all__ = ["__version__"]

"""Modules under PyTorch's names, filled from the operator table."""

from __future__ import annotations

from importlib import import_module
from sys import modules

TYPE_CHECKING = False  # typing is not imported at start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The package `gradcli`, which stands for `torch` and sets itself here: lower rooms do not import it.
torch: Any = None


# PyTorch's modules whose names stand in one module here: `nn.modules.container` is `nn.modules`.
_GATHERED = {
    "nn.modules": (
        "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold "
        "instancenorm lazy linear loss normalization padding pixelshuffle pooling rnn sparse "
        "transformer upsampling utils"
    ),
    "nn.utils": "clip_grad convert_parameters spectral_norm weight_norm",
    "optim": ("adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd"),
    "utils.data": "dataloader dataset sampler",
    "distributions": "bernoulli categorical distribution kl normal uniform",
}


# What of PyTorch's is not here, by its name below torch, and what to use in its place.
ABSENT = {
    "distributed": "gradcli computes in one process: leave it out",
    "distributions.Beta": "write the log density as a formula",
    "distributions.Independent": "Normal(…).log_prob(x).sum(-1) is that of whole draws",
    "distributions.MultivariateNormal": "loc + L @ torch.randn(n) draws, of a Cholesky factor L",
    "export": "torch.save(model.state_dict(), file) keeps a model",
    "fx": "gradcli graph --torch FILE.py shows a model's operations",
    "hub": "torch.load reads a file of weights that is there",
    "multiprocessing": "Python's own multiprocessing starts processes",
    "nn.utils.parametrizations.orthogonal": "torch.linalg.qr(weight).Q in forward is orthogonal",
    "nn.utils.prune": "multiply the weight by a mask in forward",
    "onnx": "torch.save(model.state_dict(), file) keeps a model, which PyTorch reads and exports",
    "optim.SparseAdam": "optim.Adam is here, as gradients are not sparse",
    "profiler": "python -m cProfile measures a program",
    "quantization": "tensors have PyTorch's plain dtypes alone",
    "sparse": "tensors are dense: x.to_dense() in PyTorch makes one of them",
    "utils.tensorboard": "print the numbers, or write them with csv",
}


def absent(name: str) -> str:
    """What stands after the error of a name below torch that is not here: a sentence, or nothing."""
    return f"; gradcli does not have torch.{name}: {ABSENT[name]}" if name in ABSENT else ""


def home(name: str) -> str:
    """The module here that has the names of one of PyTorch's, by their dotted names below torch."""
    parent, _, own = name.rpartition(".")
    return parent if own in _GATHERED.get(parent, "").split() else name


def filled(module: str, prefix: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module with the table's names under a prefix."""

    def find(name: str) -> Any:
        table = modules.get("gradcli.engine.registry.table") or import_module(
            "gradcli.engine.registry.table"
        )
        found = table.resolve(f"{prefix}.{name}")
        if found is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = found.call if isinstance(found, table.Function) else found
        if module in modules:  # found at once from now on
            setattr(modules[module], name, found)
        return found

    def listed() -> list[str]:
        table = import_module("gradcli.engine.registry.table")
        start = f"{prefix}."
        return [n.removeprefix(start) for n in table.names() if n.startswith(start)]

    return find, listed

"""torch.optim: optimizers with groups of parameters, and schedules of their learning rates."""

from importlib import import_module
from typing import Any

from gradcli.engine.registry.torch_namespaces import absent
from gradcli.torch.optim import lr_scheduler
from gradcli.torch.optim.lbfgs import LBFGS
from gradcli.torch.optim.optimizer import Optimizer
from gradcli.torch.optim.rules import (
    ASGD,
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Muon,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
)


def __getattr__(name: str) -> Any:
    if name == "swa_utils":
        return import_module(f"{__name__}.swa_utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{absent(f'optim.{name}')}")


__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]

"""torch.optim: optimizers with groups of parameters, and schedules of their learning rates."""

from typing import Any

from gradcli.engine.registry.torch_namespaces import absent
from gradcli.torch.optim import lr_scheduler
from gradcli.torch.optim.lbfgs import LBFGS
from gradcli.torch.optim.optimizer import Optimizer
from gradcli.torch.optim.rules import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{absent(f'optim.{name}')}")


__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]

"""torch.optim: optimizers with groups of parameters, and schedules of their learning rates."""

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

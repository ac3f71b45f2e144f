"""torch.optim: optimizers with groups of parameters, and schedules of their learning rates."""

from gradcli.torch.optim import lr_scheduler
from gradcli.torch.optim.lbfgs import LBFGS
from gradcli.torch.optim.optimizer import Optimizer
from gradcli.torch.optim.rules import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, RMSprop

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Optimizer",
    "RMSprop",
    "lr_scheduler",
]

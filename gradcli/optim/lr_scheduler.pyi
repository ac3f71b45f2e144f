"""What type checkers see of `gradcli.optim.lr_scheduler`."""

from gradcli.torch.optim.lr_scheduler import *

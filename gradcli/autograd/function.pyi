"""What type checkers see of `gradcli.autograd.function`."""

from gradcli.torch.autograd.function import *

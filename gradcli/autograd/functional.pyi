"""What type checkers see of `gradcli.autograd.functional`."""

from gradcli.torch.autograd.functional import *

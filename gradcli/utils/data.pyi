"""What type checkers see of `gradcli.utils.data`."""

from gradcli.torch.utils.data import *

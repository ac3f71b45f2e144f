"""What type checkers see of `gradcli.func`, which is `gradcli.torch.func`."""

from gradcli.torch.func import *

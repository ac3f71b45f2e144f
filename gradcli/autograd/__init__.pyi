"""What type checkers see of `gradcli.autograd`, which is `gradcli.torch.autograd`."""

from typing import Any

from gradcli.torch.autograd import *
from gradcli.torch.autograd import forward_ad as forward_ad
from gradcli.torch.autograd import function as function
from gradcli.torch.autograd import functional as functional
from gradcli.torch.autograd import grad_mode as grad_mode
from gradcli.torch.autograd import variable as variable
from gradcli.transforms.gradcheck import GradcheckError as GradcheckError
from gradcli.transforms.gradcheck import gradcheck as gradcheck
from gradcli.transforms.gradcheck import gradgradcheck as gradgradcheck

def __getattr__(name: str) -> Any: ...

"""What type checkers see of `gradcli.nn`, which is `gradcli.torch.nn`."""

from typing import Any

from gradcli.nn import functional as functional
from gradcli.nn._classes import *
from gradcli.torch.nn import init as init
from gradcli.torch.nn import modules as modules
from gradcli.torch.nn import parameter as parameter
from gradcli.torch.nn import utils as utils
from gradcli.torch.nn.modules.containers import ModuleDict as ModuleDict
from gradcli.torch.nn.modules.containers import ModuleList as ModuleList
from gradcli.torch.nn.modules.containers import ParameterDict as ParameterDict
from gradcli.torch.nn.modules.containers import ParameterList as ParameterList
from gradcli.torch.nn.modules.containers import Sequential as Sequential
from gradcli.torch.nn.modules.module import Module as Module
from gradcli.torch.nn.parameter import Buffer as Buffer
from gradcli.torch.nn.parameter import Parameter as Parameter

def __getattr__(name: str) -> Any: ...

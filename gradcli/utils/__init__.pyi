"""What type checkers see of `gradcli.utils`, which is `gradcli.torch.utils`."""

from typing import Any

from gradcli.utils import data as data

def __getattr__(name: str) -> Any: ...

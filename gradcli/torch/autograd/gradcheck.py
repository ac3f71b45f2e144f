"""torch.autograd.gradcheck: a module, and the function that the package calls by the same name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from gradcli.transforms.gradcheck import (
    GradcheckError,
    get_analytical_jacobian,
    get_numerical_jacobian,
    gradcheck,
    gradgradcheck,
)


class _Callable(ModuleType):
    """Importing the module binds it to the function's name in the package: so it can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "gradcheck",
    "gradgradcheck",
]

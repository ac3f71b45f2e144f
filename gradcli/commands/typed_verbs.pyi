"""What type checkers see of the verbs that take expressions, functions or tensors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, overload

from gradcli.engine.core.tensor import Tensor

_Values = Mapping[str, Any] | None
_Names = str | Iterable[str] | None
_Argnums = int | tuple[int, ...]

@overload
def grad(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: _Names = None,
    seed: Any = None,
    order: int = 1,
    explain: bool = False,
    **variables: Any,
) -> Any: ...
@overload
def grad(
    source: Callable[..., Any],
    argnums: _Argnums = 0,
    /,
    *,
    wrt: _Names = None,
    has_aux: bool = False,
) -> Callable[..., Any]: ...
@overload
def grad(source: Callable[..., Any], values: _Values = None, /, **given: Any) -> Any: ...
@overload
def value_and_grad(source: str, values: _Values = None, /, **given: Any) -> tuple[Tensor, Any]: ...
@overload
def value_and_grad(
    source: Callable[..., Any],
    argnums: _Argnums = 0,
    /,
    *,
    wrt: _Names = None,
    has_aux: bool = False,
) -> Callable[..., tuple[Any, Any]]: ...
@overload
def value_and_grad(
    source: Callable[..., Any], values: _Values = None, /, **given: Any
) -> tuple[Any, Any]: ...
@overload
def jacobian(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: _Names = None,
    mode: str | None = None,
    sparse: bool = False,
    explain: bool = False,
    **variables: Any,
) -> Any: ...
@overload
def jacobian(
    source: Callable[..., Any],
    argnums: _Argnums = 0,
    /,
    *,
    wrt: _Names = None,
    mode: str = "reverse",
) -> Callable[..., Any]: ...
@overload
def jacobian(source: Callable[..., Any], values: _Values = None, /, **given: Any) -> Any: ...
@overload
def hessian(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: _Names = None,
    sparse: bool = False,
    explain: bool = False,
    **variables: Any,
) -> Any: ...
@overload
def hessian(
    source: Callable[..., Any], argnums: _Argnums = 0, /, *, wrt: _Names = None
) -> Callable[..., Any]: ...
@overload
def hessian(source: Callable[..., Any], values: _Values = None, /, **given: Any) -> Any: ...
@overload
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Tensor: ...
@overload
def diff(source: str, values: _Values = None, /, *, wrt: str, **variables: Any) -> str: ...
@overload
def diff(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: Sequence[str] | None = None,
    **variables: Any,
) -> Any: ...

"""What type checkers see of the verbs that take expressions, functions or tensors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, overload

from gradcli.commands.verbs import Check
from gradcli.engine.core.tensor import Tensor
from gradcli.formulas.print.printed_text import Formula
from gradcli.transforms.batched_passes import Sparse
from gradcli.transforms.tolerances import Comparison

_Values = Mapping[str, Any] | None
_Names = str | Iterable[str] | None
class _Formulas(Formula):
    """A formula, or where there are several variables a dict of them: what both can do."""
    def __getitem__(self, name: Any, /) -> Formula: ...
    def items(self) -> Iterable[tuple[str, Formula]]: ...
    def keys(self) -> Iterable[str]: ...
    def values(self) -> Iterable[Formula]: ...

class _Result(Tensor, dict[str, Tensor]):  # type: ignore[misc]
    """A tensor, or where there are several variables a dict of them by name: what both can do."""

class _Matrix(Tensor, dict[str, dict[str, Tensor]]):  # type: ignore[misc]
    """The same of two variables at once."""

_Argnums = int | tuple[int, ...]

@overload
def grad(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: str,
    seed: Any = None,
    order: int = 1,
    explain: bool = False,
    **variables: Any,
) -> Tensor: ...
@overload
def grad(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: Iterable[str],
    seed: Any = None,
    order: int = 1,
    explain: bool = False,
    **variables: Any,
) -> dict[str, Tensor]: ...
@overload
def grad(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: None = None,
    seed: Any = None,
    order: int = 1,
    explain: bool = False,
    **variables: Any,
) -> _Result: ...
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
def value_and_grad(
    source: str, values: _Values = None, /, **given: Any
) -> tuple[Tensor, _Result]: ...
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
    sparse: Literal[True],
    explain: bool = False,
    **variables: Any,
) -> Sparse: ...
@overload
def jacobian(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: _Names = None,
    mode: str | None = None,
    sparse: Literal[False] = False,
    explain: bool = False,
    **variables: Any,
) -> _Result: ...
@overload
def jacobian(
    source: Callable[..., Any],
    argnums: _Argnums = 0,
    /,
    *,
    wrt: _Names = None,
    mode: str = "reverse",
    sparse: Literal[False] = False,
) -> Callable[..., Any]: ...
@overload
def jacobian(
    source: Callable[..., Any],
    argnums: int = 0,
    /,
    *,
    wrt: str | None = None,
    sparse: Literal[True],
) -> Callable[..., Sparse]: ...
@overload
def jacobian(source: Callable[..., Any], values: _Values = None, /, **given: Any) -> Any: ...
@overload
def hessian(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: _Names = None,
    sparse: Literal[True],
    explain: bool = False,
    **variables: Any,
) -> Sparse: ...
@overload
def hessian(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: _Names = None,
    sparse: Literal[False] = False,
    explain: bool = False,
    **variables: Any,
) -> _Matrix: ...
@overload
def hessian(
    source: Callable[..., Any],
    argnums: _Argnums = 0,
    /,
    *,
    wrt: _Names = None,
    sparse: Literal[False] = False,
) -> Callable[..., Any]: ...
@overload
def hessian(
    source: Callable[..., Any],
    argnums: int = 0,
    /,
    *,
    wrt: str | None = None,
    sparse: Literal[True],
) -> Callable[..., Sparse]: ...
@overload
def hessian(source: Callable[..., Any], values: _Values = None, /, **given: Any) -> Any: ...
@overload
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Tensor: ...
@overload
def diff(source: str, values: _Values = None, /, *, wrt: str, **variables: Any) -> Formula: ...
@overload
def diff(
    source: str,
    values: _Values = None,
    /,
    *,
    wrt: Sequence[str] | None = None,
    **variables: Any,
) -> _Formulas: ...
@overload
def jvp(
    source: str, values: _Values = None, /, *, vector: Any = None, **given: Any
) -> tuple[Tensor, Tensor]: ...
@overload
def jvp(
    source: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    /,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]: ...
@overload
def check(
    source: str,
    values: _Values = None,
    /,
    *,
    expected: str,
    wrt: _Names = None,
    order: int = 1,
    jacobian: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    **variables: Any,
) -> Comparison: ...
@overload
def check(
    source: str,
    values: _Values = None,
    /,
    *,
    against: str,
    wrt: _Names = None,
    order: int = 1,
    jacobian: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    **variables: Any,
) -> Comparison: ...
@overload
def check(
    source: str | Callable[..., Any],
    values: Any = None,
    /,
    *,
    wrt: _Names = None,
    second_order: bool = False,
    expected: Any = None,
    against: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    **variables: Any,
) -> Check: ...

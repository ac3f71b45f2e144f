"""Forward mode: dual numbers, pushed through the same rules as reverse mode.

After every operation the engine calls a `Push` (the state's `intercept`): a linear primitive is
applied to the
tangents, a bilinear one by the product rule, an elementwise rule takes the tangent in the place of the
gradient, and any other primitive's product is the transpose of its vector-Jacobian product (J.
Townsend, 2017),
which differentiates the rule once more.
"""

from __future__ import annotations

from typing import Any

from gradcli.engine.core import modes
from gradcli.engine.core.custom_function import BackwardCFunction
from gradcli.engine.core.tensor import Shown, Tensor, edge, track_view, wrap
from gradcli.engine.core.views import refuse_shared, set_own
from gradcli.transforms.forward_rules import _flat, _push, _tangent
from gradcli.transforms.forward_state import Forward, UnpackedDualTensor, _here


class Push:
    """What the engine calls after every operation while tangents travel: those of a level, and below it.

    A level's tangents are computed by operations of the levels below, whose own tangents travel with them.
    """

    __slots__ = ("below", "level")

    def __init__(self, level: Forward, below: Any) -> None:
        self.level, self.below = level, below

    def __call__(self, primitive: Any, values: Any, outputs: Any) -> None:
        if self.below is not None:
            self.below(primitive, values, outputs)
        level = self.level
        if modes.current().inference or (level.taped and not _on_tape(level, outputs)):
            return
        outer, _here.level = _here.level, level
        before = modes.local.state
        try:
            if all(_tangent(v) is None for v in _flat(values)) and not _refuses(primitive, level):
                return
            modes.change(
                intercept=self.below,
                enabled=modes.is_grad_enabled() and not level.taped,
                rules=not isinstance(primitive, BackwardCFunction),
            )
            _push(primitive, values, outputs, level)
        except NotImplementedError as error:
            if not level.taped:
                raise
            level.refused.append(error)
        finally:
            modes.restore(before)
            _here.level = outer


def _on_tape(level: Forward, outputs: Any) -> bool:
    if level.refused or not modes.is_grad_enabled():  # nor is a view recorded then
        return False
    return any(isinstance(o, Tensor) and o.requires_grad for o in outputs)


def _refuses(primitive: Any, level: Forward) -> bool:
    if level.taped and (
        isinstance(primitive, BackwardCFunction) or primitive.node == "NotImplemented"
    ):
        raise NotImplementedError("only its node knows")
    return False


class dual_level(modes.Mode):
    """Inside, tangents travel with the tensors that `make_dual` has given them to."""

    taped, nests = False, False

    def __init__(self) -> None:
        super().__init__()
        self._outer: list[Forward | None] = []

    def values(self) -> dict[str, Any]:
        if not (_here.enabled or self.nests):
            return {}
        assert _here.level is not None
        return {"intercept": Push(_here.level, modes.current().intercept)}

    def __enter__(self) -> int:
        outer = _here.level
        if outer is not None and not (self.nests and outer.nests):
            raise RuntimeError("Nested forward mode AD is not supported at the moment")
        self._outer.append(outer)
        _here.level = Forward(self.taped, self.nests)
        super().__enter__()
        return 0

    def __exit__(self, *error: object) -> None:
        _here.level = self._outer.pop()
        super().__exit__(*error)


class nested_level(dual_level):
    """As `dual_level`, in another of its kind as well: each has tangents of its own."""

    nests = True


class taped_level(nested_level):
    """Inside, tangents travel along the tape: with what is recorded, and with nothing else.

    So that `no_grad`, `detach` and writes in place mean what they mean to `grad`.
    """

    taped = True

    def __enter__(self) -> int:
        super().__enter__()
        assert _here.level is not None
        self.refused = _here.level.refused
        return 0


def enter_dual_level() -> int:
    """Enter a level without a `with`; leave it with `exit_dual_level`."""
    mode = dual_level()
    level = mode.__enter__()
    _here.entered.append(mode)
    return level


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level that `enter_dual_level` entered."""
    if not _here.entered:
        raise RuntimeError("Dual level must be a positive number.")
    _here.entered.pop().__exit__()


def is_forward_enabled() -> bool:
    """True where tangents travel (once a level is open)."""
    return _here.enabled


class set_forward_enabled(modes.Mode):
    """Inside, tangents travel with their tensors, or stay behind."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self.mode = mode
        self._former: list[bool] = []

    def values(self) -> dict[str, Any]:
        if not self.mode or _here.level is None:
            return {"intercept": None}
        return {"intercept": modes.current().intercept or Push(_here.level, None)}

    def __enter__(self) -> None:
        self._former.append(_here.enabled)
        _here.enabled = self.mode
        super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        _here.enabled = self._former.pop()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent of the same shape and dtype; only inside `dual_level`."""
    if _here.level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for value in (tensor, tangent):
        if not (value.is_floating_point() or value.is_complex()):
            which = "primal" if value is tensor else "tangent"
            raise ValueError(
                f"Expected {which} to be floating point or complex, but got: {value.dtype}"
            )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the given "
            f"forward gradient is of size {list(tangent.shape)}."
        )
    if _tangent(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level"
            "0 is not supported."
        )
    if tensor.stride() != tangent.stride():  # PyTorch copies it to where it lies as the tensor
        refuse_shared(tensor)
    push = modes.current().intercept
    with modes.changed(enabled=True, intercept=getattr(push, "below", None)):
        out: Tensor = tensor.view_as(tensor)
    set_own(out, _here.level, tangent)
    for level_of_func in modes.nested.get()[-1:]:  # what a derivative is given may be written
        out.shows = Shown(tensor, level_of_func.since)
    return out


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor and its tangent; None where it has none, or outside of a level."""
    if _here.level not in (tensor.tangents or {}):
        return UnpackedDualTensor(tensor, None)
    primal = wrap(tensor.memory())
    primal.node, primal.versions = edge(tensor), tensor.shared_versions()
    if primal.node is not None and not modes.is_grad_enabled():  # a view, which follows the tensor
        primal.node = None
        track_view(primal, tensor, False, modes.current())
    primal.tangents = {k: t for k, t in (tensor.tangents or {}).items() if k is not _here.level}
    return UnpackedDualTensor(primal, None if modes.current().inference else _tangent(tensor))

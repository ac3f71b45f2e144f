"""torch.nn.Module: parameters, buffers and modules by name, what runs around `forward`, and their state."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from gradcli.engine.core.hooks import Hooks, RemovableHandle, add
from gradcli.engine.core.modes import no_grad, users_level
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.system.dtypes import bfloat16
from gradcli.torch.nn.parameter import Buffer, Parameter, UninitializedParameter

# Hooks of all modules, as PyTorch's register_module_forward_hook keeps them.
_pre_hooks: Hooks = {}
_hooks: Hooks = {}
_backward_hooks: Hooks = {}
_backward_pre_hooks: Hooks = {}
# and its register_module_parameter_registration_hook, by the kind that is registered
_registration_hooks: dict[str, Hooks] = {"parameter": {}, "buffer": {}, "module": {}}
_KINDS = ("_parameters", "_buffers", "_modules")


class LoadResult(NamedTuple):
    """What `load_state_dict` did not find, and did not know."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class Module:
    """A part of a network: what is assigned to it as a Parameter or Module is found by its name.

    `forward` says what it computes; to call the module runs its hooks, too.
    """

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _version = 1

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        # So early, a class whose own __init__ forgets super().__init__() is told so by its first assignment.
        object.__setattr__(self, "_ready", False)
        return self

    def __init__(self) -> None:
        for kind in _KINDS:
            object.__setattr__(self, kind, {})
        object.__setattr__(self, "training", True)
        object.__setattr__(self, "_non_persistent_buffers_set", set())
        object.__setattr__(self, "_forward_pre_hooks", {})
        object.__setattr__(self, "_forward_hooks", {})
        object.__setattr__(self, "_backward_hooks", {})
        object.__setattr__(self, "_backward_pre_hooks", {})
        object.__setattr__(self, "_ready", True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; a subclass says it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        backward = self._backward_hooks or self._backward_pre_hooks
        backward = backward or _backward_hooks or _backward_pre_hooks
        around = self._forward_pre_hooks or self._forward_hooks or _pre_hooks or _hooks
        if not (around or backward):
            try:
                return self.forward(*args, **kwargs)
            except AttributeError as error:
                if type(error.obj).__name__ == "ndarray":
                    _refuse_arrays(self, args, error)
                raise
        for hook in [*_pre_hooks.values(), *self._forward_pre_hooks.values()]:
            takes = getattr(hook, "with_kwargs", False)
            found = hook.call(self, args, kwargs) if takes else hook(self, args)
            if takes and found is not None:
                args, kwargs = found
            elif found is not None:
                args = found if isinstance(found, tuple) else (found,)
        call = None
        if backward:
            from gradcli.torch.nn.modules.backward_hooks import Call

            own, pre = self._backward_hooks, self._backward_pre_hooks
            hooks = [*_backward_hooks.values(), *own.values()]
            call = Call(self, hooks, [*_backward_pre_hooks.values(), *pre.values()])
            args = call.before(args)
        try:
            result = self.forward(*args, **kwargs)
        except Exception:  # of the user's: it goes on to them
            self._call_always(args, kwargs)
            raise
        for hook in [*_hooks.values(), *self._forward_hooks.values()]:
            takes = getattr(hook, "with_kwargs", False)
            found = hook.call(self, args, kwargs, result) if takes else hook(self, args, result)
            result = result if found is None else found
        return result if call is None else call.after(result)

    def _call_always(self, args: Any, kwargs: Any) -> None:
        """After an error in `forward`: the hooks that are called always, without a result."""
        for hook in [*_hooks.values(), *self._forward_hooks.values()]:
            if not getattr(hook, "always_call", False):
                continue
            try:
                given = (args, kwargs, None) if hook.with_kwargs else (args, None)
                hook(self, *given)
            except Exception as error:  # of a hook, which must not hide the first
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error!s}",
                    stacklevel=users_level(),
                )

    # -- names ---------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        for kind in _KINDS:
            values = self.__dict__.get(kind)
            if values is not None and name in values:
                return values[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        """Register a Parameter, Module or Buffer; what it replaces in its own kind gives it its place."""
        if not self._ready:
            if isinstance(value, Parameter | Module):
                what = "parameters" if isinstance(value, Parameter) else "module"
                raise AttributeError(f"cannot assign {what} before Module.__init__() call")
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._forget(name, but="_parameters")
            self.register_parameter(name, value)
        elif name in self._parameters:
            if value is not None:
                raise _wrong_kind(
                    value, "as parameter", name, "torch.nn.Parameter or None expected"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            self._forget(name, but="_modules")
            self._modules[name] = _registered("module", self, name, value)
        elif name in self._modules:
            if value is not None:
                raise _wrong_kind(
                    value, "as child module", name, "torch.nn.Module or None expected"
                )
            self._modules[name] = _registered("module", self, name, None)
        elif isinstance(value, Buffer) or name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                wanted = "torch.nn.Buffer, torch.Tensor or None expected"
                raise _wrong_kind(value, "as buffer", name, wanted)
            stays = name not in self._non_persistent_buffers_set
            stays = value.persistent if isinstance(value, Buffer) else stays
            # a class of the user's may have a register_buffer without the third parameter
            self.register_buffer(name, value, *(() if stays else (False,)))
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, but: str) -> None:
        """Drop what has a name, unless it is of this kind, where it keeps its place until replaced."""
        self.__dict__.pop(name, None)
        for kind in _KINDS:
            if kind != but:
                self.__dict__[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__[kind]:
                del self.__dict__[kind][name]
                if kind == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = itertools.chain.from_iterable(self.__dict__[kind] for kind in _KINDS)
        return sorted({*super().__dir__(), *names})

    def _refuse_name(self, kind: str, name: str) -> None:
        """Raise for a name that a parameter, buffer or module cannot have, or that something else has."""
        if not self._ready:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_of(name)}")
        said = f", got: {name}" if kind == "module" else ""
        wrong = None
        if "." in name:
            wrong = f'{kind} name can\'t contain "."{said}'
        elif name == "":
            wrong = f'{kind} name can\'t be empty string ""'
        elif hasattr(self, name) and name not in self.__dict__[f"_{kind}s"]:
            wrong = f"attribute '{name}' already exists"
        if wrong is not None:
            raise KeyError(wrong)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None in the place of one."""
        self._refuse_name("parameter", name)
        if param is not None and not isinstance(param, Parameter):
            wanted = "torch.nn.Parameter or None required"
            raise _wrong_kind(param, "object to parameter", name, wanted)
        if param is not None:
            param = _registered("parameter", self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module's state and is not learned."""
        self._refuse_name("buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise _wrong_kind(tensor, "object to buffer", name, "torch Tensor or None required")
        self._buffers[name] = _registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_of(module)} is not a Module subclass")
        self._refuse_name("module", name)
        self._modules[name] = _registered("module", self, name, module)

    register_module = add_module

    # -- what there is ---------------------------------------------------------------------------------
    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(path, module) of this module and of all in it, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}{'.' if prefix else ''}{name}"
                yield from module.named_modules(memo, inner, remove_duplicate)

    def _members(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = (
            self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in module.__dict__[kind].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}{'.' if path else ''}{name}", value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, parameter) of this module and, unless told otherwise, of all in it."""
        return self._members("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer) of this module and, unless told otherwise, of all in it."""
        return self._members("_buffers", prefix, recurse, remove_duplicate)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the modules right inside."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, in the order of their registration."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def modules(self) -> Iterator[Module]:
        """This module and all in it."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The modules right inside."""
        return (module for _, module in self.named_children())

    def get_submodule(self, target: str) -> Module:
        """The module of a path such as `net.0`."""
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{found._get_name()} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found  # type: ignore[no-any-return]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return getattr(module, name)  # type: ignore[no-any-return]

    get_buffer = get_parameter

    # -- changes ---------------------------------------------------------------------------------------
    def train(self, mode: bool = True) -> Self:
        """Let dropout and batch norms behave as while training, here and in all modules inside."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Self:
        """The opposite of `train`."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with every module, those inside first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Give all parameters, their gradients and the buffers what a function makes of them."""
        for module in self.modules() if recurse else [self]:
            for value in (p for p in module._parameters.values() if p is not None):
                with no_grad():
                    grad, value.grad = value.grad, None
                    value.data = fn(value.data)
                    if grad is not None:
                        value.grad = fn(grad).requires_grad_(grad.requires_grad)
            for name, buffer in module._buffers.items():
                module._buffers[name] = None if buffer is None else fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Another dtype for what is floating; a device of PyTorch's that gradcli has is the CPU."""
        return self._apply(
            lambda t: t.to(*args, **kwargs) if t.is_floating_point() or t.is_complex() else t
        )

    def _floating(self, name: str) -> Self:
        return self._apply(lambda t: getattr(t, name)() if t.is_floating_point() else t)

    def float(self) -> Self:
        """Floating parameters and buffers as float32."""
        return self._floating("float")

    def double(self) -> Self:
        """Floating parameters and buffers as float64."""
        return self._floating("double")

    def half(self) -> Self:
        """Floating parameters and buffers as float16."""
        return self._floating("half")

    def bfloat16(self) -> Self:
        """Refused: NumPy has no such numbers."""
        return self._apply(lambda t: t.to(bfloat16) if t.is_floating_point() else t)

    def type(self, dst_type: Any) -> Self:
        """All parameters and buffers in a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Self:
        """The module: everything is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Refused in PyTorch's words: there is the CPU alone."""
        return self._apply(lambda t: t.cuda(device))

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Learn the parameters, or no more."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        zero_grads(self.parameters(), set_to_none)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: what PyTorch compiles here runs as it is."""

    def share_memory(self) -> Self:
        """The module: it lives in one process."""
        return self

    # -- hooks -----------------------------------------------------------------------------------------
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; what it returns, if anything, is passed instead."""
        return _added(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; what it returns, if anything, is the output."""
        return _added(self._forward_hooks, hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the outputs' gradients are known; it may replace them."""
        return _added(self._backward_pre_hooks, hook, prepend, False)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known.

        What it returns, if anything, replaces them. What is no tensor among inputs and outputs has None;
        keyword arguments are not among them.
        """
        return _added(self._backward_hooks, hook, prepend, False)

    # -- state -----------------------------------------------------------------------------------------
    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers by their paths, detached unless told otherwise."""
        named: tuple[Any, ...] = (destination, prefix, keep_vars)
        destination, prefix, keep_vars = args + named[len(args) :]
        found: Any = OrderedDict() if destination is None else destination
        for name, value in [*self._parameters.items(), *self._buffers.items()]:
            if value is not None and name not in self._non_persistent_buffers_set:
                found[prefix + name] = value if keep_vars else value.detach()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> LoadResult:
        """Copy values into the parameters and buffers of the same paths.

        Raises RuntimeError, which names the keys, where shapes differ or, if strict, where keys do.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        own = self.state_dict(keep_vars=True)
        wrong = []
        for name, value in own.items():
            given = state_dict.get(name)
            if given is None:
                continue
            if not isinstance(given, Tensor):
                wrong.append(
                    f'While copying the parameter named "{name}", expected torch.Tensor or '
                    f"Tensor-like object from checkpoint but received {type(given)}"
                )
            elif isinstance(value, UninitializedParameter):
                value.materialize(given.shape)
                self._copy(name, value, given, assign)
            elif tuple(given.shape) != tuple(value.shape):
                wrong.append(
                    f"size mismatch for {name}: copying a param with shape {given.shape} from "
                    f"checkpoint, the shape in current model is {value.shape}."
                )
            else:
                self._copy(name, value, given, assign)
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        if strict:
            lists = (("Missing", missing), ("Unexpected", unexpected))
            wrong = [_keys(word, names) for word, names in lists if names] + wrong
        if wrong:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(wrong)
            )
        return LoadResult(missing, unexpected)

    def _copy(self, name: str, value: Any, given: Any, assign: bool) -> None:
        if not assign:
            with no_grad():
                value.copy_(given)
            return
        path, _, own = name.rpartition(".")
        module = self.get_submodule(path)
        if own in module._parameters:
            given = given if isinstance(given, Parameter) else Parameter(given, value.requires_grad)
        setattr(module, own, given)

    # -- text ------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """What stands between the parentheses of a module's repr; a subclass says it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        inside = [f"({name}): {_indented(repr(m))}" for name, m in self._modules.items()]
        if not inside and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join([*lines, *inside]) + "\n)"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _wrong_kind(value: Any, role: str, name: str, wanted: str) -> TypeError:
    """PyTorch's words for a value that cannot stand in the place of a parameter, buffer or module."""
    return TypeError(f"cannot assign '{_type_of(value)}' {role} '{name}' ({wanted})")


def _type_of(value: Any) -> str:
    """How PyTorch names a type in these messages."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = type(value)
    return f"{'' if kind.__module__ == 'builtins' else kind.__module__ + '.'}{kind.__name__}"


def _keys(word: str, names: list[str]) -> str:
    return f"{word} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in names) + ". "


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


class _Hook:
    """A forward hook that takes the keyword arguments, too, or is called after an error as well."""

    def __init__(self, call: Callable[..., Any], with_kwargs: bool, always_call: bool) -> None:
        self.call, self.with_kwargs, self.always_call = call, with_kwargs, always_call

    def __call__(self, *given: Any) -> Any:
        return self.call(*given)


def _refuse_arrays(module: Module, given: tuple[Any, ...], error: AttributeError) -> None:
    """Raise TypeError, in PyTorch's words, for a layer's argument that is an array of NumPy's."""
    for i, value in enumerate(given):
        if value is error.obj and module.__module__.startswith("gradcli."):
            from gradcli.engine.core.errors import LayerInputError

            raise LayerInputError(
                f"{type(module).__name__.lower()}(): argument 'input' (position {i + 1}) must be Tensor, "
                "not numpy.ndarray"
            ) from None


def _added(
    hooks: Hooks,
    hook: Callable[..., Any],
    prepend: bool,
    with_kwargs: bool,
    always_call: bool = False,
) -> RemovableHandle:
    special = with_kwargs or always_call
    kept: Any = _Hook(hook, with_kwargs, always_call) if special else hook
    before = dict(hooks) if prepend else {}
    handle = add(hooks, kept)
    if prepend:
        for key in before:
            hooks[key] = hooks.pop(key)
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the `forward` of every module."""
    return add(_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the `forward` of every module."""
    return _added(_hooks, hook, False, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` where the gradients of any module's outputs are known."""
    return add(_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` where the gradients of any module's inputs are known."""
    return add(_backward_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` where a module gets a parameter; what it returns replaces it."""
    return add(_registration_hooks["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` where a module gets a buffer; what it returns replaces it."""
    return add(_registration_hooks["buffer"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` where a module gets one; what it returns replaces it."""
    return add(_registration_hooks["module"], hook)


def _registered(kind: str, module: Module, name: str, value: Any) -> Any:
    for hook in _registration_hooks[kind].values():
        found = hook(module, name, value)
        value = value if found is None else found
    return value


def zero_grads(parameters: Any, set_to_none: bool) -> None:
    """Drop gradients, or fill them with zeros."""
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if set_to_none:
            parameter.grad = None
        else:
            parameter.grad = parameter.grad.detach()
            parameter.grad.zero_()


__all__ = ["Module"]

"""torch.func.functional_call and stack_module_state: modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli.engine.core.tensor import arrays
from gradcli.engine.registry.table import resolve
from gradcli.torch.nn.modules.module import Module


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    parameter_and_buffer_dicts: by path, in one mapping or several. args: a tuple, or the one argument.
    tie_weights: whether a parameter that has several paths is replaced at all of them. strict: whether
    all must be given, and no others. Raises ValueError and RuntimeError in PyTorch's words.
    """
    passed = parameter_and_buffer_dicts, args, kwargs
    if arrays.holds is not None and arrays.holds(passed):  # within a function of arrays
        words: dict[str, Any] = {"tie_weights": tie_weights, "strict": strict}
        return arrays.back(functional_call(module, *arrays.into(passed), **words))
    given = parameter_and_buffer_dicts
    if not isinstance(given, (Mapping, list, tuple)):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, "
            f"but got {type(given)}"
        )
    if not isinstance(given, Mapping):
        names = [name for each in given for name in each]
        twice = list(dict.fromkeys(n for n in names if names.count(n) > 1))
        if twice:
            raise ValueError(
                f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous"
            )
        given = {name: value for each in given for name, value in each.items()}
    every = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    if strict:
        _all_given(given, [name for name, _ in every])
    if tie_weights:
        given = {**given, **_tied(every, given)}
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given):
        return module(*args, **(kwargs or {}))


def _all_given(given: Mapping[str, Any], names: Sequence[str]) -> None:
    missing = [n for n in names if n not in given]
    unexpected = [n for n in given if n not in names]
    words = [
        f"{word} key(s): {', '.join(map(repr, keys))}."
        for word, keys in (("Unexpected", unexpected), ("Missing", missing))
        if keys
    ]
    if words:
        raise RuntimeError("Error(s) in reparametrizing:\n\t" + "\n\t".join(words))


def _tied(every: Sequence[tuple[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given of one path of a parameter, by its other paths."""
    paths: dict[int, list[str]] = {}
    for name, value in every:
        paths.setdefault(id(value), []).append(name)
    found = {}
    for names in paths.values():
        said = [n for n in names if n in given]
        if len({id(given[n]) for n in said}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(said)}, which are tied. "
                "Consider using tie_weights=False"
            )
        found.update(dict.fromkeys(names, given[said[0]]) if said else {})
    return found


@contextmanager
def _replaced(module: Module, given: Mapping[str, Any]) -> Iterator[None]:
    before: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for path, value in given.items():
            inner, _, name = path.rpartition(".")
            owner = module.get_submodule(inner)
            for kind in (owner._parameters, owner._buffers):
                if name in kind:
                    before.append((kind, name, kind[name]))
                    kind[name] = value
        yield
    finally:
        for kind, name, value in reversed(before):
            kind[name] = value


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of alike modules, stacked by path: what `vmap` runs an ensemble on.

    Raises RuntimeError where the modules are not alike.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    stack = resolve("stack")
    parameters = {}
    for name, first in models[0].named_parameters():
        made = stack([m.get_parameter(name) for m in models]).detach()
        parameters[name] = made.requires_grad_(first.requires_grad)
    buffers = {
        name: stack([m.get_buffer(name) for m in models]).detach()
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


__all__ = ["functional_call", "stack_module_state"]

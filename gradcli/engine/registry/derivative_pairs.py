"""Constructors for `nn.functional`: a map with its derivative, and functions of 1, 2 and 3 dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gradcli.engine.core.declaration import itself
from gradcli.engine.core.generated_calls import generated as compiled
from gradcli.engine.core.primitive import Primitive, VjpRules
from gradcli.engine.registry.rule_helpers import zeros_like
from gradcli.engine.registry.table import function, operator

FAMILY = "pairs"  # the name in `gradcli ops`

# The VJP rules of a linear map's derivative by the map's input, of which it uses only the shape.
NOTHING: dict[str, Any] = {"self": lambda g, self: zeros_like(self)}
# The same for a piecewise linear map, whose slope is locally constant.
PIECEWISE: dict[str, Any] = {"grad_output": itself, "self": zeros_like}


def pair(
    name: str,
    node: str,
    kernel: Callable[..., Any],
    kernel_backward: Callable[..., Any],
    backward: dict[str, Any],
    *,
    saves: str = "",
    slope: str = "",
    slope_node: str = "",
    batching: str = "folded",
    public: bool = False,
    doc: str = "",
    **facts: Any,
) -> Primitive:
    """Define the primitive NAME, and NAME_backward (without "_p") for its derivative; returns NAME.

    backward: VJP rules of the derivative; the default for grad_output is NAME itself. saves: the fields
    that NAME saves, if the derivative's parameters have other names (see `passing`). slope: the symbolic
    rule of the derivative. slope_node: its node's name, if it is unusual. facts: about NAME.
    """
    back = operator(
        kernel=kernel_backward,
        node=slope_node or f"{node}BackwardBackward0",
        linearity=None if backward else "linear",
        public=False,
        batching=batching,
        saves_by_need=False,
        symbolic=slope,
    )(_rules(f"{name.removesuffix('_p')}_backward", kernel, backward))
    rule = passing(back, saves) if saves else back
    rules = {"self": rule, "__doc__": doc}
    primitive = operator(
        kernel=kernel, node=f"{node}Backward0", public=public, batching=batching, **facts
    )(_rules(name, kernel, rules))
    back.vjps = {"grad_output": primitive} | back.vjps
    return primitive


def passing(rule: VjpRules, names: str) -> VjpRules:
    """A VJP rule that calls `rule` (or a primitive) with g and the saved fields `names`, in order."""
    called = getattr(rule, "name", None) or rule.__name__
    given = ", ".join(["g", *names.split()])
    return compiled(called, given, [f"return rule({given})"], {"rule": rule})


def last(name: str, kernel: Callable[..., Any], arguments: str, **facts: Any) -> Primitive:
    """Define a derivative that cannot be differentiated again by these arguments."""
    rules = dict.fromkeys(arguments.split(), lambda g: g)
    return operator(kernel=kernel, node="NotImplemented", public=False, **facts)(
        _rules(name, kernel, rules)
    )


def _rules(name: str, kernel: Callable[..., Any], rules: dict[str, Any]) -> type:
    """A class of VJP rules in its kernel's module, as `operator` decorates."""
    return type(name, (), rules | {"__module__": kernel.__module__})


SIZES = ("4", "4,4", "4,4,4")


def of_dimensions(
    *signatures: str,
    body: Callable[..., Any],
    doc: str,
    samples: Iterable[str],
    primitives: Mapping[int, VjpRules],
    dims: Iterable[int] = (1, 2, 3),
    words: Mapping[str, tuple[str, ...]] | None = None,
    aliases: str = "",
    **about: Any,
) -> None:
    """Enter `nn.functional.NAME` for images of n = 1, 2 and 3 dimensions; `{n}` in the texts is n.

    body: called with n and the signature's values. samples: arguments of sample calls. words: other
    placeholders, with a text for each n; `{size}` is replaced by an image's sizes. primitives: by n; 1
    defaults to 2. about: as for `function`.
    """
    for n in dims:
        texts = {"n": n, "s": "s" if n > 1 else "", "size": SIZES[n - 1]}
        texts |= {word: each[n - 1] for word, each in (words or {}).items()}
        name = f"nn.functional.{signatures[0].partition('(')[0].lstrip('_').format(**texts)}"

        def call(*values: Any, n: int = n, **named: Any) -> Any:
            return body(n, *values, **named)

        call.__module__ = body.__module__
        function(
            *(text.format(**texts) for text in signatures),
            name=name,
            doc=doc.format(**texts),
            method=False,
            primitives=[primitives[n if n in primitives else 2]] if primitives else [],
            samples=[name + sample.format(**texts) for sample in samples],
            aliases=aliases.format(**texts),
            **about,
        )(call)

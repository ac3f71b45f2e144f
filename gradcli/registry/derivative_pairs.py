"""What families of `nn.functional` are made of: a map and its derivative, and functions of n dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gradcli.core.generated_calls import generated as compiled
from gradcli.core.primitive import Primitive, VjpRules, itself
from gradcli.registry.rule_helpers import zeros_like
from gradcli.registry.table import function, operator

FAMILY = "pairs"  # as `ops` calls it

# The rules of a derivative for what the map is linear in: it looks at no more than its shape.
NOTHING: dict[str, Any] = {"self": lambda g, self: zeros_like(self)}
# Those of one whose slope is the same all around.
PIECEWISE: dict[str, Any] = {"grad_output": itself, "self": zeros_like}


def pair(
    name: str,
    node: str,
    kernel: Any,
    kernel_backward: Any,
    backward: dict[str, Any],
    *,
    saves: str = "",
    slope: str = "",
    slope_node: str = "",
    batching: str = "folded",
    doc: str = "",
    **facts: Any,
) -> Primitive:
    """The primitive NAME of a map, behind that of its derivative, NAME_backward (without "_p").

    backward: rules of the derivative; that for grad_output is the map itself, where none is here. saves:
    what the map saves, where the derivative calls it otherwise (see `passing`). slope: how the derivative
    is spelled. slope_node: its node, where that has no name of the usual kind. facts: about the primitive of
    the map.
    """
    back = operator(
        kernel_backward,
        slope_node or f"{node}BackwardBackward0",
        linearity=None if backward else "linear",
        public=False,
        batching=batching,
        saves_by_need=False,
        symbolic=slope,
    )(_rules(f"{name.removesuffix('_p')}_backward", kernel, backward))
    rule = passing(back, saves) if saves else back
    facts = {"public": False, "batching": batching} | facts
    rules = {"self": rule, "__doc__": doc}
    primitive = operator(kernel, f"{node}Backward0", **facts)(_rules(name, kernel, rules))
    back.vjps = {"grad_output": primitive} | back.vjps
    return primitive


def passing(rule: VjpRules, names: str) -> VjpRules:
    """A rule that hands on to another, or to a primitive, the gradient and what these names say, in order."""
    called = getattr(rule, "name", None) or rule.__name__
    given = ", ".join(["g", *names.split()])
    return compiled(called, given, [f"return rule({given})"], {"rule": rule})


def last(name: str, kernel: Any, arguments: str, **facts: Any) -> Primitive:
    """The primitive of a derivative that has none itself with respect to these arguments."""
    rules = dict.fromkeys(arguments.split(), lambda g: g)
    return operator(kernel, "NotImplemented", public=False, **facts)(_rules(name, kernel, rules))


def _rules(name: str, kernel: Any, rules: dict[str, Any]) -> type:
    """The class of rules of a primitive, which is at home where its kernel is."""
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
    """Enter `nn.functional.NAME` for images of 1, 2 and 3 dimensions: `{n}` in the texts is their number.

    body: is called with that and with what the signature says. samples: the arguments. words: what stands
    in the texts besides, for each number of dimensions; `{size}` are an image's sizes. primitives:
    by number of
    dimensions; images of one are worked on as those of two. about: as for `function`.
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

r"""Integrals and limits of formulas, where they have a formula: `\int_0^x \sin t\,dt` as `1 - cos(x)`.

The table of antiderivatives is short: powers, exponentials, sines and cosines of what is linear in the
variable, and sums and multiples of these. An integral that has none is still differentiated by a limit.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from gradcli.language.foreign_names import bare
from gradcli.language.math_tree import Node, nodes
from gradcli.language.math_values import POWER, PRODUCT, SIGN, SUM, Value

if TYPE_CHECKING:
    from gradcli.language.math_writer import Writer

# The antiderivative of a function of u, where u is linear, by that of u: (its name, its sign).
_FUNCTIONS = {"exp": ("exp", ""), "sin": ("cos", "-"), "cos": ("sin", ""), "sinh": ("cosh", ""),
              "cosh": ("sinh", "")}  # fmt: skip


def _node(kind: str, like: Node, text: str = "", *parts: Node) -> Node:
    return Node(kind, like.token, text, parts)


def _number(like: Node, value: Fraction | int) -> Node:
    value = Fraction(value)
    inner = _node("number", like, str(abs(value.numerator)))
    if value.denominator > 1:
        inner = _node("product", like, "frac", inner, _node("number", like, str(value.denominator)))
    return inner if value >= 0 else _node("neg", like, "", inner)


def depends(node: Node, name: str) -> bool:
    """Whether a tree has a variable in it."""
    return any(n.kind == "name" and n.text == name for n in nodes(node))


def replaced(node: Node, name: str, by: Node) -> Node:
    """A tree with another in place of a variable, in brackets unless it is a name or a number."""
    if node.kind == "name" and node.text == name:
        return by if by.kind in ("name", "number", "raw") else _node("group", by, "", by)
    if not node.parts or node.kind == "name":
        return node
    return node._replace(parts=tuple(replaced(part, name, by) for part in node.parts))


# -- antiderivatives -------------------------------------------------------------------------------
def _antiderivative(node: Node, name: str) -> Node | None:
    if not depends(node, name):
        variable = _node("name", node, name)
        return variable if node.text == "1" else _node("product", node, "*", node, variable)
    if node.kind == "name":
        return _node("product", node, "frac", _power(node, node, Fraction(2)), _number(node, 2))
    if node.kind == "group":
        return _antiderivative(node.only, name)
    if node.kind in ("neg", "sum"):
        parts = [_antiderivative(part, name) for part in node.parts]
        found = [part for part in parts if part is not None]
        return node._replace(parts=tuple(found)) if len(found) == len(parts) else None
    if node.kind == "product":
        return _of_product(node, name)
    if node.kind == "power":
        return _of_power(node, name)
    if node.kind == "root" and len(node.parts) == 1 and node.only.kind == "name":
        return _of_power(_node("power", node, "", node.only, _number(node, Fraction(1, 2))), name)
    if node.kind == "call" and node.text in _FUNCTIONS and len(node.parts) == 1:
        return _of_function(node, node.text, node.only, name)
    return None


def _power(node: Node, base: Node, exponent: Fraction) -> Node:
    return base if exponent == 1 else _node("power", node, "", base, _number(node, exponent))


def _of_product(node: Node, name: str) -> Node | None:
    left, right = node.parts
    if node.text in ("", "*", "·"):
        for constant, other in ((left, right), (right, left)):
            if not depends(constant, name) and (inner := _antiderivative(other, name)) is not None:
                if constant.text == "1":
                    return inner
                return _node("product", node, "*", constant, _node("group", inner, "", inner))
        return None
    if node.text not in ("/", "frac"):
        return None
    if not depends(right, name):
        inner = _antiderivative(left, name)
        if inner is None:
            return None
        return _node("product", node, "frac", _node("group", inner, "", inner), right)
    exponent = _exponent(right, name)
    if depends(left, name) or exponent is None:
        return None
    inner = _of_exponent(node, name, -exponent)
    return (
        inner
        if left.text == "1"
        else _node("product", node, "*", left, _node("group", inner, "", inner))
    )


def _exponent(node: Node, name: str) -> Fraction | None:
    """n of t^n."""
    if node.kind == "group":
        return _exponent(node.only, name)
    if node.kind == "name" and node.text == name:
        return Fraction(1)
    if node.kind == "power" and node.parts[0].kind == "name" and node.parts[0].text == name:
        return _rational(node.parts[1])
    return None


def _rational(node: Node) -> Fraction | None:
    if node.kind == "group":
        return _rational(node.only)
    if node.kind == "number" and re.fullmatch(r"\d+(\.\d+)?", node.text):
        return Fraction(node.text)
    if node.kind == "neg":
        inner = _rational(node.only)
        return None if inner is None else -inner
    if node.kind == "product" and node.text in ("/", "frac"):
        one, two = map(_rational, node.parts)
        return one / two if one is not None and two else None
    return None


def _of_exponent(node: Node, name: str, exponent: Fraction) -> Node:
    variable = _node("name", node, name)
    if exponent == -1:
        return _node("call", node, "log", _node("call", node, "abs", variable))
    above = _power(node, variable, exponent + 1)
    return _node("product", node, "frac", above, _number(node, exponent + 1))


def _of_power(node: Node, name: str) -> Node | None:
    base, exponent = node.parts
    if base.kind == "name" and base.text == "e" and depends(exponent, name):
        return _of_function(node, "exp", exponent, name)
    number = _exponent(node, name)
    if number is not None:
        return _of_exponent(node, name, number)
    if base.kind != "name" or base.text != name or depends(exponent, name):
        return None
    more = _node("group", node, "", _node("sum", node, "++", exponent, _number(node, Fraction(1))))
    return _node("product", node, "frac", _node("power", node, "", base, more), more)


def _of_function(node: Node, function: str, inner: Node, name: str) -> Node | None:
    # By substitution: the antiderivative of f(k*t + c) is F(k*t + c)/k. What is not linear in t has none
    # here.
    slope = _slope(inner, name)
    if slope is None:
        return None
    outer, sign = _FUNCTIONS[function]
    found = _node("call", node, outer, inner)
    if slope.text != "1":
        found = _node("product", node, "frac", found, _node("group", slope, "", slope))
    return _node("neg", node, "", found) if sign else found


def _slope(node: Node, name: str) -> Node | None:
    """k of k t + c."""
    if node.kind == "name" and node.text == name:
        return _number(node, 1)
    if node.kind == "group":
        return _slope(node.only, name)
    if node.kind == "neg":
        inner = _slope(node.only, name)
        return None if inner is None else _node("neg", node, "", inner)
    if node.kind == "sum":
        moving = [(s, p) for s, p in zip(node.text, node.parts, strict=True) if depends(p, name)]
        if len(moving) != 1:
            return None
        inner = _slope(moving[0][1], name)
        return inner if inner is None or moving[0][0] == "+" else _node("neg", node, "", inner)
    if node.kind == "product":
        left, right = node.parts
        if node.text in ("", "*", "·"):
            for constant, other in ((left, right), (right, left)):
                if not depends(constant, name) and (inner := _slope(other, name)) is not None:
                    return (
                        constant
                        if inner.text == "1"
                        else _node("product", node, "*", constant, inner)
                    )
        if node.text in ("/", "frac") and not depends(right, name):
            inner = _slope(left, name)
            return None if inner is None else _node("product", node, "frac", inner, right)
    return None


# -- what is written -------------------------------------------------------------------------------
def integral(writer: Writer, node: Node) -> Value:
    """An integral by its antiderivative."""
    body, *limits = node.parts
    if len(limits) == 1:
        raise writer.error("an integral has two limits, or none", node.token)
    found = _antiderivative(body, node.text)
    if found is None and writer.by:
        only = only_differentiated(writer, node, writer.by)
        if only is not None:
            return only
    if found is None:
        hint = "gradcli integrates powers, exponentials, sines and cosines; trapezoid(y, x) adds up numbers"
        raise writer.error("this integral has no formula that is known here", node.token, hint)
    if not limits:
        writer.say("an antiderivative, without its constant")
        return writer.value(found)
    low, high = limits
    _check_poles(writer, node, found, low, high)
    lower = writer.value(replaced(found, node.text, low))
    upper = writer.value(replaced(found, node.text, high))
    # `x**2/2 - 0**2/2` is written x**2/2.
    if low.kind == "number" and float(low.text) == 0 and _is_zero_at_zero(found):
        return upper
    if lower.text.startswith("-") and lower.level >= PRODUCT:
        return Value(f"{upper.text} + {lower.text[1:]}", SUM)
    return Value(f"{upper.text} - {lower.at(PRODUCT)}", SUM)


def _is_zero_at_zero(node: Node) -> bool:
    """Whether an antiderivative of powers alone is 0 at 0."""
    if any(n.kind == "call" for n in nodes(node)):
        return False
    powers = [n for n in nodes(node) if n.kind == "power"]
    return all((_rational(p.parts[1]) or 0) > 0 for p in powers) and not any(
        n.kind == "power" and n.parts[0].text == "e" for n in powers
    )


def _check_poles(writer: Writer, node: Node, found: Node, low: Node, high: Node) -> None:
    """Refuse an integral over a pole at 0; say that there may be one."""
    poles = [
        n for n in nodes(found)
        if (n.kind == "call" and n.text == "abs")
        or (n.kind == "power" and (_rational(n.parts[1]) or 0) < 0)
    ]  # fmt: skip
    if not poles:
        return
    first, last = _rational(low), _rational(high)
    if first is not None and last is not None:
        if min(first, last) <= 0 <= max(first, last):
            raise writer.error("this integral goes over a pole, at 0", node.token)
        return
    writer.say(f"the limits have one sign: there is a pole at {node.text} = 0")


def by_limit(writer: Writer, node: Node, name: str) -> Value | None:
    """The derivative of an integral by a variable of its limits: the integrand there; None where the
    integrand depends on the variable, too."""
    body, *limits = node.parts or (node,)
    if node.kind != "integral" or len(limits) != 2 or (depends(body, name) and node.text != name):
        return None
    terms: list[tuple[str, Value]] = []
    # Leibniz's rule, where only the limits depend on x: d/dx of the integral from a(x) to b(x) of f is
    # f(b)*b' - f(a)*a'. So `\int_0^x e^{-t^2} dt`, which has no formula, has a derivative that has one.
    for sign, limit in (("+", limits[1]), ("-", limits[0])):
        if not depends(limit, name):
            continue
        there = writer.value(replaced(body, node.text, limit))
        if limit.kind != "name":
            inner = writer.value(limit).text
            slope = Value(f"func.grad(lambda {name}: {bare(inner)})({name})")
            there = Value(f"{there.at(PRODUCT)}*{slope.at(SIGN)}", PRODUCT)
        terms.append((sign, there))
    if not terms:
        return Value("0*" + name, PRODUCT)
    (sign, first), *rest = terms
    text = first.text if sign == "+" else f"-{first.at(POWER)}"
    for sign, term in rest:
        text += f" {sign} {term.at(PRODUCT)}"
    return Value(text, SUM if rest or sign == "-" else first.level)


def only_differentiated(writer: Writer, node: Node, name: str) -> Value | None:
    """A text whose first derivative by a variable is that of an integral, and that is nothing else: for
    a command that only differentiates, once."""
    found = by_limit(writer, node, name)
    if found is None:
        return None
    # The text that is written has the right first derivative: detach(f(x))*x is differentiated to f(x).
    # Its value is not the integral, so it is written only for commands that print nothing but the
    # derivative.
    writer.say(f"what is differentiated is an integral, by {name} of its limits")
    return Value(f"detach({found.text})*{name}", PRODUCT)


def limit(writer: Writer, node: Node) -> Value:
    r"""`\lim_{x \to a}` of what is continuous at a, as the value there; the rest is refused.

    Sums, products and powers of the functions below are continuous wherever they are finite, but for
    quotients: what stands below a line must have a value, and that is not 0.
    """
    body, point = node.parts
    if not depends(body, node.text):
        return writer.value(body)
    # Only limits that are values are computed. sin(x)/x at 0 has a denominator of 0, so it is refused: a
    # wrong limit would be worse than none.
    there = point.only if point.kind == "side" else point
    infinite = "inf" in writer.value(there).text
    if not _is_continuous(body, node.text) or not _has_no_pole(body, node.text, there, infinite):
        at = writer.value(there).text
        shown = bare(writer.value(body).text)
        hint = f'gradcli taylor "{shown}" --{node.text} {at} shows how it goes on there'
        if infinite:
            hint = f"gradcli eval with a large {node.text} shows where it goes"
        raise writer.error("this limit is not computed", node.token, hint)
    writer.say(f"the limit is the value at {writer.value(there).text}")
    return writer.value(replaced(body, node.text, there))


_CONTINUOUS = frozenset("sin cos exp tanh atan arctan sinh cosh abs erf sigmoid".split())
_AT_INFINITY = frozenset("exp tanh atan arctan erf sigmoid".split())


def _is_continuous(node: Node, name: str) -> bool:
    """Whether a tree is made of what is continuous where it has a value."""
    if not depends(node, name):
        return True
    if node.kind in ("name", "group", "neg", "sum", "abs"):
        return (
            all(_is_continuous(part, name) for part in node.parts)
            if node.kind != "name"
            else not node.parts
        )
    if node.kind == "product":
        return node.text in ("", "*", "·", "/", "frac") and all(
            _is_continuous(part, name) for part in node.parts
        )
    if node.kind == "power":
        base, exponent = node.parts
        if base.kind == "name" and base.text == "e":
            return _is_continuous(exponent, name)
        number = _rational(exponent)
        return (
            number is not None
            and number > 0
            and number.denominator == 1
            and _is_continuous(base, name)
        )
    return node.kind == "call" and node.text in _CONTINUOUS and _is_continuous(node.parts[0], name)


def _has_no_pole(node: Node, name: str, there: Node, infinite: bool) -> bool:
    """Whether no part below a line is 0 at a point, or has no value that is known."""
    for part in nodes(node):
        if part.kind == "product" and part.text in ("/", "frac") and depends(part.parts[1], name):
            below = part.parts[1]
            if infinite:
                if _exponent(below, name) is None or depends(part.parts[0], name):
                    return False
                continue
            at = _rational(there)
            found = None if at is None else _value(below, name, at)
            if found is None or found == 0:
                return False
        function = part.kind == "call" or (part.kind == "power" and part.parts[0].text == "e")
        if infinite and function and depends(part, name):
            word = part.text if part.kind == "call" else "exp"
            if word not in _AT_INFINITY:
                return False
        several = part.kind in ("sum", "product") and part.text not in ("/", "frac")
        if infinite and several and sum(depends(p, name) for p in part.parts) > 1:
            return False  # inf - inf, 0*inf
    return True


def _value(node: Node, name: str, at: Fraction) -> Fraction | None:
    """The value of a polynomial at a number."""
    if node.kind == "name":
        return at if node.text == name else None
    if node.kind == "number":
        return _rational(node)
    if node.kind in ("group", "neg", "sum"):
        total = Fraction(0)
        for sign, part in zip(node.text if node.kind == "sum" else "+", node.parts, strict=True):
            found = _value(part, name, at)
            if found is None:
                return None
            total += found if sign == "+" else -found
        return -total if node.kind == "neg" else total
    if node.kind in ("product", "power"):
        one, two = (_value(part, name, at) for part in node.parts)
        if one is None or two is None:
            return None
        if node.kind == "power":
            return one**two.numerator if two.denominator == 1 and 0 <= two < 20 else None
        if node.text in ("/", "frac"):
            return one / two if two else None
        return one * two if node.text in ("", "*", "·") else None
    return None


def is_linear_in_integrals(node: Node) -> bool:
    """Whether a text is a sum of integrals, with numbers before them, and of what has none in it."""
    if not any(n.kind == "integral" for n in nodes(node)):
        return True
    if node.kind == "integral":
        return not any(n.kind == "integral" for part in node.parts for n in nodes(part))
    if node.kind in ("sum", "neg", "group"):
        return all(map(is_linear_in_integrals, node.parts))
    if node.kind == "product" and node.text in ("", "*", "·"):
        number, other = node.parts
        return number.kind in ("number", "fraction") and is_linear_in_integrals(other)
    return False

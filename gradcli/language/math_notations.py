r"""What LaTeX has for derivatives, integrals, limits, sums and matrices, as the parser reads it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from gradcli.language.foreign_names import CONSTANTS
from gradcli.language.located_errors import LanguageError
from gradcli.language.math_indices import subscripts
from gradcli.language.math_symbols import CASES, MATRICES, OTHERWISE, RELATIONS
from gradcli.language.math_tree import Binder, Node, nodes
from gradcli.language.notation import Token, indexed, is_differential, is_greek, letter_name

if TYPE_CHECKING:
    from gradcli.language.math_parser import Parser


# -- derivatives, integrals, limits --------------------------------------------------------------
def derivative(parser: Parser, token: Token) -> Node | None:
    r"""`\frac{d}{dx} x^2`, `\frac{\partial^2 f}{\partial x \partial y}` behind a `\frac`, or None."""
    start = parser.at
    if "d" in parser.own or parser.next.text != "{":
        return None
    parser.take()
    order, inner, closed = 1, None, False
    # Tried as a derivative: `d`, `d^2`, `df` or a whole `d (x^2)` above the line, and below it as many dx
    # as the order says. If anything does not fit (`\frac{d}{d + 1}`), it is an ordinary fraction, and
    # reading begins again at `start`.
    first = parser.next
    if first.text == "partial" or (first.kind == "name" and re.fullmatch(r"[d∂]\w?", first.text)):
        parser.take()
        if parser.accept("**"):
            power = parser.group() if parser.next.text == "{" else parser.primary()
            if power.kind == "number":
                order = int(power.text)
        if len(first.text) == 2:  # df
            parser.tokens.insert(
                parser.at, first._replace(text=first.text[1:], start=first.start + 1)
            )
        if parser.next.text != "}":
            try:
                inner = parser.sum()
            except LanguageError:
                inner = None
        closed = parser.accept("}")
    variables = below(parser, order) if closed and parser.next.text == "{" else ()
    if not variables or len(variables) != order:
        parser.at = start
        restore(parser, first)
        return None
    if inner is None:
        if not (parser.begins_operand() or parser.next.text in ("-", "+")):
            raise parser.error("what is differentiated is missing", token)
        inner = parser.product()
        if parser.next.text in ("+", "-"):
            parser.remarks.append("the derivative ends before the sum; write ( ) around all of it")
    elif inner.kind == "name" and inner.text not in parser.own:
        raise no_function(parser, inner.text, token, variables[0])
    return Node("derivative", token, " ".join(variables), (inner,))


def restore(parser: Parser, first: Token) -> None:
    """Undo the split of `df` after a start that was no derivative."""
    for i, (one, two) in enumerate(pairwise(parser.tokens)):
        if one is first and len(first.text) == 2 and two.start == first.start + 1:
            del parser.tokens[i + 1]
            return


def below(parser: Parser, order: int) -> tuple[str, ...]:
    r"""The variables of `{dx^2}`, `{\partial x \partial y}`; () where there are none.

    "sigma^2" of `\partial \sigma^2` where the order says that it is one variable, of `\partial(\sigma^2)`.
    """
    parser.expect("{")
    variables: list[tuple[str, int]] = []
    while parser.next.kind != "end" and not parser.accept("}"):
        token = parser.take()
        if token.text in ("d", "partial", "∂") and (square := in_brackets(parser)):
            name = square
        elif token.text in ("d", "partial", "∂") and parser.next.kind in ("name", "command"):
            name = differentiated_by(parser, letter_name(parser.take()))
        elif token.kind == "name" and re.fullmatch(r"d\w", token.text):
            name = differentiated_by(parser, token.text[1:])
        else:
            return ()
        count = 1
        if parser.accept("**"):
            power = parser.group() if parser.next.text == "{" else parser.primary()
            count = int(power.text) if power.kind == "number" else 0
        elif parser.next.kind == "power":
            count = int(parser.superscript().text)
        variables.append((name, count))
    if len(variables) == order and all(count in (1, 2) for _, count in variables):
        return tuple(name + "^2" * (count == 2) for name, count in variables)
    return tuple(name for name, count in variables for _ in range(count))


def in_brackets(parser: Parser) -> str:
    r"""sigma^2 of the `(\sigma^2)` that follows, which is read; "" of anything else."""
    found = [parser.peek(k) for k in range(7)]
    one = indexed(found, 1) if found[0].text == "(" else None
    if one is None:
        return ""
    behind = [t.text for t in found[one.end : one.end + 5] if t.text not in ("{", "}")]
    if behind[:3] != ["**", "2", ")"] and behind[:2] != ["²", ")"]:
        return ""
    while not parser.accept(")"):
        parser.take()
    return f"{one.name}^2"


def differentiated_by(parser: Parser, name: str) -> str:
    r"""The variable of `\partial \theta_j`, whose letter is read already.

    theta_j, where the text has that name elsewhere too; else theta, of which it is the derivative by one
    element.
    """
    name, _, index = name.partition("_")
    if not index and parser.next.text == "_":
        parser.take()
        index = parser.argument().text
    if not index:
        return name
    texts = [t.text for t in parser.tokens if t.text not in ("{", "}")]
    again = texts.count(f"{name}_{index}") + sum(
        three == (name, "_", index) for three in zip(texts, texts[1:], texts[2:], strict=False)
    )
    if again > 1 or index.isdigit() or f"{name}_{index}" in parser.own:
        return f"{name}_{index}"
    parser.remarks.append(f"of the derivative by {name}, the one by {name}_{index} is an element")
    return name


def no_function(parser: Parser, name: str, token: Token, by: str = "x") -> LanguageError:
    typed = f"\\{by}" if is_greek(by.partition("_")[0].removesuffix("^2")) and by.isascii() else by
    shown = by if by.isidentifier() else f"'{by}'"
    return parser.error(
        f"the derivative of {name} needs the formula of {name}", token,
        f'gradcli diff "EXPR" --wrt {shown}; or in place of {name} the formula: '
        f"\\frac{{d}}{{d{typed}}} (EXPR)",
        "name",
    )  # fmt: skip


def linear_derivative(parser: Parser, token: Token) -> Node | None:
    """`d/dx x^2`, `d²/dx² x^2` and `∂²/∂x∂y f`, whose d is read already."""
    start, order = parser.at, _order(parser)
    variables = _in_one_line(parser, order) if parser.accept("/") else []
    if not order or len(variables) != order:
        parser.at = start
        return None
    if not (parser.begins_operand() or parser.next.text in ("-", "+")):
        raise parser.error("what is differentiated is missing", token)
    inner = parser.product()
    if parser.next.text in ("+", "-"):
        parser.remarks.append("the derivative ends before the sum; write ( ) around all of it")
    return Node("derivative", token, " ".join(variables), (inner,))


def _order(parser: Parser) -> int:
    """The raised number behind a d, 1 where there is none; 0 for what is no number."""
    if parser.next.kind == "power":
        raised = parser.superscript()
    elif parser.next.text == "**" and parser.peek(1).kind == "number":
        parser.take()
        raised = Node("number", parser.next, parser.take().text)
    else:
        return 1
    return int(raised.text) if raised.kind == "number" and raised.text.isdigit() else 0


def _in_one_line(parser: Parser, order: int) -> list[str]:
    """The variables of `dx`, `dx²` and `∂x∂y`, not more than the order says."""
    found: list[str] = []
    while len(found) < order:
        token, after = parser.next, parser.peek(1)
        if token.text in ("partial", "∂") and after.kind in ("name", "command"):
            parser.at += 2
            name = differentiated_by(parser, letter_name(after))
        elif token.kind == "name" and re.fullmatch(r"[d∂][^\W\d_]", token.text):
            parser.take()
            name = token.text[1:]
        else:
            return []
        count = _order(parser)
        found += [f"{name}^2"] if count == 2 and order == 1 else [name] * count
    return found


def of_differentials(parser: Parser, name: str, token: Token) -> Node | None:
    """`dy/dx`, whose dy is read already: a derivative of what follows; a quotient where both have values."""
    below = parser.peek(1).text
    if name in parser.own and below in parser.own:
        parser.remarks.append(f"{name}/{below} is the quotient of the variables {name} and {below}")
        return None
    if name in parser.own or below in parser.own:
        return None
    start = parser.at
    parser.at += 2
    follows = parser.begins_operand() and parser.next.kind != "end"
    parser.at = start
    if not follows:
        raise no_function(parser, name[1:], token, below[1:])
    parser.remarks.append(f"{name}/{below} is the derivative of what follows")
    return linear_derivative(parser, token)


def partial(parser: Parser, token: Token) -> Node | None:
    r"""`\partial/\partial x f`, `\partial_x f`."""
    if (found := linear_derivative(parser, token)) is not None:
        return found
    if parser.next.text == "_":
        inner = parser.subscript()[0]
        if inner.kind == "name" and (parser.begins_operand()):
            return Node("derivative", token, inner.text, (parser.product(),))
    name = parser.next.text if parser.next.kind == "name" else "a function"
    raise no_function(parser, name, token)


def nabla(parser: Parser, token: Token) -> Node:
    r"""`\nabla f`, `\nabla_x f`, `\nabla_x^2 f`, `\nabla \cdot F`, `\nabla \times F`, `\nabla^2 f`."""
    operator, wrt = "grad", parser.subscript()
    if parser.accept("·"):
        operator = "div"
    elif parser.accept("×"):
        operator = "curl"
    elif parser.accept("**") or parser.next.kind == "power":
        power = parser.superscript() if parser.next.kind == "power" else parser.exponent()
        if power.text != "2":
            raise parser.error("∇ has no other power than ∇^2, the Laplacian", token)
        operator = "laplacian"
        wrt = wrt or parser.subscript()
    if not parser.begins_operand():
        raise parser.error("nothing follows ∇", token, "write what it differentiates: ∇ f")
    inner = parser.product()
    name = wrt[0].text if wrt else ""
    if name and operator == "laplacian":  # ∇_w^2 f is the Hessian, ∇^2 f the Laplacian
        return Node("derivative", token, f"{name} {name}", (inner,))
    return Node("nabla", token, operator, (inner,), name)


def differential(parser: Parser) -> Node:
    """The dx of an integral, as a factor of 1."""
    token = parser.take()
    name = token.text[1:]
    if not name:
        following = parser.take()
        if following.kind not in ("name", "command"):
            raise parser.error("the variable of the integral is missing", following)
        name = following.text
    parser.differentials[-1] = name
    return Node("number", token, "1", (), "differential")


def integral(parser: Parser, token: Token) -> Node:
    r"""`\int_0^x \sin t dt`."""
    low: tuple[Node, ...] = ()
    high: tuple[Node, ...] = ()
    for _ in range(2):
        if parser.next.text == "_" and parser.next.kind == "sign":
            parser.take()
            low = (raised_limit(parser),)
        elif parser.accept("**"):
            high = (raised_limit(parser),)
        elif parser.next.kind == "power":
            high = (parser.superscript(),)
    if parser.next.kind == "end":
        raise parser.error("this integral has no integrand", token, "as in \\int x dx")
    # The body is a sum, read like any other, with one difference: while an entry of `differentials` is
    # "", a factor `dx` anywhere in it is the end of this integral, as in `\int \frac{dx}{x}`. Integrals
    # nest, so it is a stack.
    parser.differentials.append("")
    body = parser.sum()
    if not parser.differentials[-1] and is_differential(parser.next):
        differential(parser)
    name = parser.differentials.pop()
    if not name:
        raise parser.error("the variable of this integral is missing", token, "as in \\int x dx")
    return Node("integral", token, name, (body, *low, *high))


def raised_limit(parser: Parser) -> Node:
    r"""A limit of a sum or an integral: `{…}`, or one letter or number, that has no index: `^b_a`."""
    token = parser.next
    if token.text == "-" or token.kind not in ("name", "number", "command"):
        return parser.signed() if token.text == "-" else parser.argument()
    if token.kind == "number":
        parser.take()
        return Node("number", token, token.text)
    if token.kind == "command":
        return parser.primary()
    # `\sum^b_{a=1}`, typed as `^b_a`: the tokenizer reads the name b_a. The limit is b, and `_a` begins
    # the other.
    head, underline, rest = token.text.partition("_")
    if token.text not in parser.own and len(head) > 1 and head not in CONSTANTS:  # \\sum_{i=1}^nx_i
        one, more = head[0], f"{head[1:]}{underline}{rest}"
        parser.tokens[parser.at : parser.at + 1] = [
            token._replace(text=one, end=token.start + 1),
            token._replace(text=more, start=token.start + 1, blank=False),
        ]
    elif underline and token.text not in parser.own:
        middle = token.start + len(head)
        parser.tokens[parser.at : parser.at + 1] = [
            token._replace(text=head, end=middle),
            Token("sign", "_", False, middle, middle + 1),
            Token("name", rest, False, middle + 1, token.end),
        ]
    token = parser.take()
    if token.text in CONSTANTS and token.text not in parser.own:
        return Node("raw", token, CONSTANTS[token.text])
    return Node("name", token, token.text)


def limit(parser: Parser, token: Token) -> Node:
    r"""`\lim_{x \to 0} \frac{\sin x}{x}`."""
    if parser.next.text != "_":
        raise parser.error("the point of this limit is missing", token, "as in \\lim_{x \\to 0}")
    parser.take()
    parser.expect("{")
    variable = parser.take()
    parser.expect("→")
    point = sum_of_point(parser)
    parser.expect("}")
    name = variable.text
    return Node("limit", token, name, (parser.product(), point))


def sum_of_point(parser: Parser) -> Node:
    """`0`, `0^+`, `\\infty`."""
    token = parser.next
    minus = parser.sign()
    value = parser.postfix()
    side = ""
    if parser.accept("**"):
        braced = parser.accept("{")
        if parser.next.text in ("+", "-"):
            side = parser.take().text
        if braced:
            parser.expect("}")
    value = Node("neg", token, "", (value,)) if minus else value
    return value if not side else Node("side", token, side, (value,))


# -- environments --------------------------------------------------------------------------------
def environment(parser: Parser, token: Token) -> Node:
    r"""`\begin{pmatrix} a & b \\ c & d \end{pmatrix}`, `\begin{cases} x & x > 0 \\ … \end{cases}`."""
    before = parser.tokens[parser.at - 2] if parser.at > 1 else token
    braced = parser.source[before.start : before.end] == "\\{"  # \\left\\{ \\begin{array}
    parser.expect("{")
    name = parser.take().text
    if parser.accept("*"):
        name += "*"
    parser.expect("}")
    if name not in MATRICES and name not in CASES:
        raise parser.error(f"`\\begin{{{name}}}` is not supported", token,
                         "there are cases, matrix and their like")  # fmt: skip
    if name == "array" and parser.next.text == "{":
        parser.closing()
    in_cases = name in CASES or (name == "array" and braced)
    rows: list[list[Node]] = [[]]
    bars, parser.bars = parser.bars, ""
    while parser.next.text != "end":
        if parser.next.kind == "end":
            raise parser.error(f"`\\end{{{name}}}` is missing", token)
        if parser.accept("\\\\"):
            rows.append([])
        elif parser.accept("&", "\n") or (in_cases and parser.accept(",", ";", ".", ":")):
            continue
        elif in_cases and (parser.next.text in ("if", *OTHERWISE) or is_word(parser, rows[-1])):
            word = parser.take()
            if word.text in OTHERWISE:
                rows[-1].append(Node("raw", word, "otherwise"))
        else:
            rows[-1].append(parser.logical())
    parser.take()
    parser.closing()
    parser.bars = bars
    rows = [row for row in rows if row]
    conditions = name == "array" and all(
        len(row) == 2 and row[1].kind == "relation" for row in rows
    )
    if in_cases or conditions:
        return cases(parser, token, rows)
    return matrix(parser, token, name, rows)


def is_word(parser: Parser, row: list[Node]) -> bool:
    r"""Whether the next token is a word before a condition, in any language: `\text{si } x > 0`."""
    token, after = parser.next, parser.peek(1)
    upright = token.font in ("text", "mathrm", "textrm", "mbox", "textbf")
    return (
        bool(row) and token.kind == "name" and token.text not in parser.own
        and (token.text in ("for", "when", "falls") or (upright and token.text not in ("and", "or", "not")))
        and after.kind in ("name", "command", "number", "sign") and after.text not in ("&", "\\\\")
        and after.text not in RELATIONS
    )  # fmt: skip


def matrix(parser: Parser, token: Token, name: str, rows: list[list[Node]]) -> Node:
    if len({len(row) for row in rows}) != 1:
        raise parser.error("the rows of this matrix have different lengths", token)
    cells = tuple(cell for row in rows for cell in row)
    found = Node("matrix", token, str(len(rows[0])), cells)
    if name in ("vmatrix", "Vmatrix"):
        return Node("call", token, "det", (found,))
    return found


def cases(parser: Parser, token: Token, rows: list[list[Node]]) -> Node:
    parts: list[Node] = []
    for i, row in enumerate(rows):
        if len(row) == 1 and i == len(rows) - 1 > 0:
            row.append(Node("raw", token, "otherwise"))
        if len(row) != 2:
            raise parser.error("a case has a value and a condition: x & x > 0 \\\\", token)
        parts += row
    return Node("cases", token, "", tuple(parts))


# -- sums over indices ---------------------------------------------------------------------------
def series(parser: Parser, token: Token, kind: str) -> Node:
    r"""`\sum_i x_i y_i`, `\sum_{k=1}^{10} k^2`, `\sum_{i<j}`, `\sum^{3}_{k=1}`, `\max_i`."""
    binder = Binder(())
    high: Node | None = None
    for _ in range(2):
        if parser.next.text == "_" and parser.next.kind == "sign":
            parser.take()
            binder = below_sum(parser, token)
        elif parser.next.kind == "power":
            high = parser.superscript()
        elif parser.accept("**"):
            high = raised_limit(parser)
    if high is not None:
        binder = binder._replace(high=high)
    start = parser.at
    body = parser.product()
    if kind in ("sum", "prod") and not binder.names and high is None:
        binder = Binder(index_of(parser, body, token))
    if (
        kind not in ("sum", "prod")
        and len(binder.names) == 1
        and _is_variable(body, binder.names[0])
    ):
        one = binder.names[0]
        typed = parser.source[parser.tokens[start].start :].partition(";")[0].strip()
        typed = f"-({typed})" if kind in ("amax", "argmax") else typed
        hint = f"gradcli minimize --math '{typed}' --wrt {one} --{one} START finds it"
        word = {"amax": "max", "amin": "min"}.get(kind, kind)
        raise parser.error(f"{word} over all {one} is no number of a formula", token, hint)
    return Node("series", token, kind, (body,), "", binder)


def index_of(parser: Parser, body: Node, token: Token) -> tuple[str, ...]:
    r"""The index of a sum that names none: i of `\sum x_i`; () where nothing has an index."""
    found = {one.letter for n in nodes(body) if n.kind == "name" and n.text not in parser.own
             for one in subscripts(n)}  # fmt: skip
    bound = {n for node in nodes(body) if node.binder is not None for n in node.binder.names}
    letters = sorted({x for x in found if re.fullmatch("[i-n]", x)} - bound)
    if len(letters) > 1:
        names = ", ".join(letters)
        raise parser.asks(f"is this sum over {letters[0]}, or over {names}?", token,
                          f"say it below: \\sum_{{{letters[0]}}}")  # fmt: skip
    if letters:
        parser.remarks.append(f"the sum is over {letters[0]}")
    return tuple(letters)


def _is_variable(body: Node, letter: str) -> bool:
    """Whether a letter below `min` is a variable of the body, and no index there."""
    found = [n for n in nodes(body) if n.kind == "name" and n.text == letter and not n.parts]
    indexed = [n for n in nodes(body) if any(p.text == letter for p in n.parts if n.kind == "name")]
    return bool(found) and not indexed


def below_sum(parser: Parser, token: Token) -> Binder:
    """What stands below a sum."""
    if parser.next.text == "(":
        raise parser.error(
            "a sum over a set is not supported", token, "write its elements as a vector"
        )
    if not parser.accept("{"):
        name = parser.take()
        if not name.text.isidentifier():
            raise parser.error("the index of a sum is one letter", token)
        return Binder((name.text,))
    if parser.next.text == "(":
        return pair(parser, token)
    if parser.next.kind == "number":  # 1 \le i < j \le n
        low = parser.sum()
        if not parser.accept("<=", "<"):
            raise parser.error("the index of a sum is one letter", token)
        strict = parser.tokens[parser.at - 1].text == "<"
        low = Node("sum", low.token, "++", (low, Node("number", low.token, "1"))) if strict else low
        return chain(parser, token, low)
    return chain(parser, token, None)


def pair(parser: Parser, token: Token) -> Binder:
    r"""`(i, j)}`, as `i, j}`; of a set, `(i, j) \in \Omega`, none is read."""
    end = next((k for k in range(9) if parser.peek(k).text == ")"), 0)
    if not end or parser.peek(end + 1).text != "}":
        known = (
            "\\sum_{i,j} M_{ij} …, with an M that is 1 for the pairs of the set, and 0 for others"
        )
        raise parser.error("a sum over a set is not supported", token, f"write {known}")
    del parser.tokens[parser.at + end], parser.tokens[parser.at]
    return chain(parser, token, None)


def chain(parser: Parser, token: Token, low: Node | None) -> Binder:
    """`i`, `i, j`, `ij`, `i = 1`, `i, j = 1`, `i < j \\le n`, up to the brace."""
    found: list[str] = []
    relation, high = "", None
    while True:
        name = parser.take()
        text = name.text
        if not text.isidentifier() or name.kind not in ("name", "command"):
            raise parser.error("the index of a sum is one letter", token)
        if found and relation and "_" in text:  # j \ne y_i
            hint = "write M_{ij} before it, with an M that is 0 for what is left out, 1 elsewhere"
            raise parser.error(f"a sum without the element {text} is not read", name, hint)
        # `\sum_{ij}` is over i and j.
        found += [*text] if 1 < len(text) <= 3 and text.isascii() and text.islower() else [text]
        sign = parser.take().text
        if sign == "}":
            break
        if sign == "∈":
            raise parser.error(
                "a sum over a set is not supported", name, "write its elements as a vector"
            )
        if sign == "=":
            low = parser.sum()
            parser.expect("}")
            break
        if sign == ",":
            continue
        if sign not in ("<", "<=", "!=", ">", ">="):
            raise parser.error("the index of a sum is one letter", token)
        # In `i < j <= n` the first sign is between two indices, the second one begins the limit. What
        # follows tells: a single letter and the end, or another sign, is an index; all else is a limit.
        rest = "".join(t.text for t in parser.tokens[parser.at : parser.at + 2])
        if sign in ("<", "<=") and not re.fullmatch(r"[a-z](?:[<}]|<=|!=)", rest):
            high = limit_of(parser, sign)
            break
        if sign in ("<", "<=") and low is not None and parser.peek(1).text == "}":
            high = limit_of(parser, sign)
            if len(found) < 2 and high.kind == "name" and not relation:
                break
            break
        if relation and relation != sign:
            raise parser.error("one sum has one relation between its indices", token)
        relation = sign
    if len(set(found)) != len(found):
        raise parser.error("an index appears twice here", token)
    return Binder(tuple(found), relation, low, high)


def limit_of(parser: Parser, sign: str) -> Node:
    """The upper limit of `i \\le n`, `i < n`."""
    high = parser.sum()
    parser.expect("}")
    if sign == "<":
        high = Node("sum", high.token, "+-", (high, Node("number", high.token, "1")))
    return high

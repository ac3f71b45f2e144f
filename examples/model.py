"""gradcli in small: python model.py grad "2*dot(x,x)" --x 0,1,2,3 (or diff, hessian, graph).

A text becomes a tree, the tree runs on tensors, tensors record nodes, a pass over the nodes gives gradients,
and the same rules give second derivatives and formulas. docs/model.md reads this file aloud.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from lark import Lark, Token, Tree

# -- 1. Language: text to tree to value -----------------------------------------------------------
GRAMMAR = r"""
?sum: product | sum "+" product -> add | sum "-" product -> subtract
?product: factor | product "*" factor -> multiply | product "/" factor -> divide
?factor: "-" factor -> negative | power
?power: atom | atom "**" factor -> power
?atom: NUMBER -> number | NAME -> name | NAME "(" sum ("," sum)* ")" -> call | "(" sum ")"
NAME: /[a-z_]\w*/
%import common.NUMBER
%ignore " "
"""
PARSER = Lark(GRAMMAR, start="sum", parser="lalr", propagate_positions=True)
FUNCTIONS = {f.__name__: f for f in (np.sum, np.dot, np.exp, np.log)}


def evaluate(source: str, variables: dict[str, Any]) -> Any:
    """The value of a text. Operators are NumPy's functions; a node is told which piece made it."""

    def value(tree: Tree[Token]) -> Any:
        first = str(tree.children[0])
        if tree.data in ("number", "name"):
            return float(first) if tree.data == "number" else variables[first]
        function = FUNCTIONS[first] if tree.data == "call" else getattr(np, tree.data)
        result = function(*[value(t) for t in tree.children if isinstance(t, Tree)])
        if isinstance(result, Tensor) and result.node is not None:
            result.node.source = source[tree.meta.start_pos : tree.meta.end_pos]
        return result

    return value(PARSER.parse(source))


# -- 2. Engine: tensors and the nodes that they record --------------------------------------------
CLOCK = itertools.count(1)  # what is computed later has a larger number
Rules = dict[str, tuple[Callable[..., Any], list[str]]]  # operand: its rule, and what that needs


class Node:
    """One recorded call. edges: the node that each operand's gradient goes to; none: a leaf."""

    def __init__(self, name: str, shape: tuple[int, ...], edges: dict[str, Node]) -> None:
        self.name, self.shape, self.edges = name, shape, edges
        self.number, self.source = next(CLOCK), ""
        self.rules, self.saved = {}, {}  # of a recorded call: see `apply`


class Tensor(np.lib.mixins.NDArrayOperatorsMixin):
    """An array and the node that made it. `+`, `*` … and NumPy's functions come to `apply`."""

    def __init__(self, array: Any, node: Node | None = None) -> None:
        self.array, self.node = array, node

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any) -> Tensor:
        return apply(ufunc, *operands)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        known = function in (np.shape, np.ones_like)  # what no gradient goes through
        return function(self.array) if known else apply(function, *args)


def leaf(array: Any, name: str = "") -> Tensor:
    """A variable: its node has no edges, so that a backward pass ends there."""
    return Tensor(array, Node(f"AccumulateGrad {name}", np.shape(array), {}))


def apply(kernel: Callable[..., Any], *operands: Any) -> Tensor:
    """Call a kernel on tensors; record a node if an operand has one, with what its rules need."""
    name, rules = OPERATORS[kernel]
    tensors = [o if isinstance(o, Tensor) else Tensor(np.asarray(o)) for o in operands]
    result = Tensor(kernel(*[t.array for t in tensors]))
    edges = {n: t.node for n, t in zip(rules, tensors, strict=True) if t.node is not None}
    if edges:
        values = {**dict(zip(rules, tensors, strict=True)), "result": result}
        node = result.node = Node(f"{name}Backward0", np.shape(result.array), edges)
        node.rules = {n: rules[n] for n in edges}
        node.saved = {p: values[p] for _, needs in node.rules.values() for p in needs}
    return result


# -- 3. Operators: a class of rules each ------------------------------------------------------------
OPERATORS: dict[Callable[..., Any], tuple[str, Rules]] = {}


class Operator:
    """A class of rules, each under the name of its operand. A rule takes the gradient of the result first;
    its other parameters are what the node has to save: operands, or `result`."""

    def __init_subclass__(cls, kernel: Callable[..., Any]) -> None:
        found = {n: r for n, r in vars(cls).items() if inspect.isfunction(r)}
        needs = {n: [*inspect.signature(r).parameters][1:] for n, r in found.items()}
        OPERATORS[kernel] = cls.__name__, {n: (found[n], needs[n]) for n in found}


class Add(Operator, kernel=np.add):
    self = lambda grad: grad
    other = lambda grad: grad


class Sub(Operator, kernel=np.subtract):
    self = lambda grad: grad
    other = lambda grad: -grad


class Mul(Operator, kernel=np.multiply):
    self = lambda grad, other: grad * other
    other = lambda grad, self: grad * self


class Div(Operator, kernel=np.divide):
    self = lambda grad, other: grad / other
    other = lambda grad, other, result: -grad * result / other


class Pow(Operator, kernel=np.power):
    self = lambda grad, self, exponent: grad * exponent * self ** (exponent - 1)
    exponent = lambda grad, self, result: grad * result * np.log(self)


class Neg(Operator, kernel=np.negative):
    self = lambda grad: -grad


class Exp(Operator, kernel=np.exp):
    self = lambda grad, result: grad * result


class Log(Operator, kernel=np.log):
    self = lambda grad, self: grad / self


class Dot(Operator, kernel=np.dot):
    self = lambda grad, tensor: grad * tensor
    tensor = lambda grad, self: grad * self


class Sum(Operator, kernel=np.sum):
    self = lambda grad, self: grad * np.ones_like(self)


# -- 4. The backward pass: nodes by descending number -----------------------------------------------
def backward(value: Tensor, seed: Any, *, record: bool = False, since: int = 0) -> dict[Node, Any]:
    """The gradients of the leaves, and of nodes not numbered above `since`, where the pass ends too.

    What used a result has a larger number than what made it, so the latest node's gradient is complete.
    record: rules run on tensors, and what they compute can be differentiated again; else on arrays.
    """
    gradients, found = {value.node: seed} if value.node else {}, {}
    while gradients:
        node = max(gradients, key=lambda n: n.number)
        gradient = gradients.pop(node)
        if not node.edges or node.number <= since:
            found[node] = gradient
            continue
        for name, end in node.edges.items():
            rule, needs = node.rules[name]
            saved = [node.saved[n] if record else node.saved[n].array for n in needs]
            part = rule(gradient, *saved)
            if end.shape == () != np.shape(part):
                part = np.sum(part)  # a number was spread over a vector
            gradients[end] = gradients[end] + part if end in gradients else part
    return found


# -- 5. Levels: derivatives of derivatives ----------------------------------------------------------
def grad(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The gradient of a function, as a function that can be differentiated in turn.

    All levels record on one tape. A level has a variable of its own, where its pass ends: what is older
    belongs to the levels around it.
    """

    def gradient(x: Tensor) -> Tensor:
        own = x + 0.0 if x.node is not None else leaf(x.array)  # known to the level around, or not
        found = backward(function(own), Tensor(1.0), record=True, since=own.node.number)
        return found.get(own.node, Tensor(np.zeros_like(x.array)))

    return gradient


# -- 6. Formulas: the same rules on arrays that remember how they were made --------------------------
class Formula(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands for an array. tree: a number, a name, or (function, *trees)."""

    def __init__(self, tree: Any, shape: tuple[int, ...] = ()) -> None:
        self.tree, self.shape = tree, shape

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any) -> Formula:
        trees = [o.tree if isinstance(o, Formula) else float(o) for o in operands]
        return Formula(short(ufunc.__name__, *trees), np.broadcast_shapes(*map(np.shape, operands)))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in (np.shape, np.ones_like):
            return self.shape if function is np.shape else Formula(1.0, self.shape)
        return Formula((function.__name__, *[a.tree for a in args]))


def parted(tree: Any) -> tuple[float, Any]:
    """A tree as a number times the rest: 2*x is (2, x), and 3 is (3, 1)."""
    if isinstance(tree, float):
        return tree, 1.0
    return tree[1:] if tree[0] == "multiply" and isinstance(tree[1], float) else (1.0, tree)


def short(word: str, *trees: Any) -> Any:
    """A call, with the obvious done: numbers are computed, like terms added, numbers go first."""
    (m, a), (n, b) = parted(trees[0]), parted(trees[-1])
    if all(isinstance(t, float) for t in trees):
        return float(getattr(np, word)(*trees))
    if word == "negative":
        return short("multiply", -1.0, trees[0])
    if word in ("add", "subtract") and a == b:
        return short("multiply", m + n if word == "add" else m - n, a)
    if word == "multiply" and m * n in (0.0, 1.0):
        rest = b if a == 1.0 else a if b == 1.0 else ("multiply", a, b)
        return rest if m * n else 0.0
    if word == "multiply" and not isinstance(trees[0], float):
        return short("multiply", m * n, short("multiply", a, b))
    return trees[0] if word in ("divide", "power") and trees[1] == 1.0 else (word, *trees)


SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}


def written(tree: Any, around: int = 0) -> str:
    """The text of a tree. around: how tightly the operator binds that it is an operand of."""
    if isinstance(tree, str | float):
        text = str(tree).removesuffix(".0")
        return f"({text})" if text[0] == "-" and around else text
    if tree[0] not in SIGNS:
        return f"{tree[0]}({', '.join(map(written, tree[1:]))})"
    sign = SIGNS[tree[0]]
    own, to_the_right = BINDS[sign], sign == "**"
    text = written(tree[1], own + to_the_right) + sign + written(tree[2], own + 1 - to_the_right)
    return f"({text})" if own < around else text


def derivatives(source: str, values: dict[str, Any]) -> dict[str, str]:
    """The gradients as texts. Each is run at another point and compared with the tape before it is shown."""
    formulas = {n: leaf(Formula(n, np.shape(v)), n) for n, v in values.items()}
    texts = {n: written(g.tree) for n, g in gradients(source, formulas, Formula(1.0)).items()}
    point = {n: v + 0.375 for n, v in values.items()}
    tape = gradients(source, {n: leaf(v, n) for n, v in point.items()}, 1.0)
    for name, text in texts.items():
        assert np.allclose(evaluate(text, point), tape[name]), f"{text} is wrong"
    return texts


# -- 7. Graphs and the command line -------------------------------------------------------------------
def gradients(source: str, variables: dict[str, Tensor], seed: Any) -> dict[str, Any]:
    """The gradient of a text's value by each variable that it depends on."""
    found = backward(evaluate(source, variables), seed)
    return {name: found[t.node] for name, t in variables.items() if t.node in found}


def lines(node: Node, first: str = "", rest: str = "") -> Iterator[str]:
    """The backward graph as a tree, a line a node. (gradcli/graphs: each node once; pictures, pages.)"""
    yield f"{first}{node.name}  {node.shape}  {node.source}".rstrip()
    for name, end in node.edges.items():
        last = name == [*node.edges][-1]
        yield from lines(end, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def main(command: str, source: str, *options: str) -> None:
    """COMMAND EXPRESSION --NAME VALUE …; a value is a number, or a vector as in 0,1,2."""
    pairs = zip(options[::2], options[1::2], strict=True)
    values = {n.removeprefix("--"): np.squeeze([*map(float, t.split(","))]) for n, t in pairs}
    variables = {name: leaf(value, name) for name, value in values.items()}
    if command == "graph":
        print(*lines(evaluate(source, variables).node), sep="\n")
    elif command == "diff":
        print(*derivatives(source, values).values(), sep="\n")
    elif command == "grad":
        for name, found in gradients(source, variables, np.float64(1)).items():
            print(f"{name}.grad = {np.asarray(found).tolist()}")
    elif command == "hessian":
        for name, value in values.items():
            first = grad(lambda x, n=name: evaluate(source, {**variables, n: x}))
            second = [grad(lambda x, u=u, f=first: np.sum(f(x) * u)) for u in np.eye(value.size)]
            print(f"{name}.hessian = {[row(Tensor(value)).array.tolist() for row in second]}")


if __name__ == "__main__":
    main(*sys.argv[1:])

# ruff: noqa: E501 (tables of cases)
"""Programs mean what Python makes of them."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.system import dtypes
from gradcli.language import LanguageError, Machine, as_tensor, evaluate, parse, run
from gradcli.language import names as known
from tests.sweep import sweep


def value(source: str, **variables: Any) -> Any:
    return run(parse(source), variables).value


def leaf(data: Any) -> Tensor:
    tensor = as_tensor(data)
    tensor.requires_grad_()
    return tensor


def told(source: str, **variables: Any) -> str:
    with pytest.raises(LanguageError) as caught:
        run(parse(source), variables)
    return caught.value.render(80)


PYTHON = [
    "1 + 2*3 - 4/5", "7 // 2, -7 // 2, 7 % -3, 2**-1, -2**2", "1 < 2 < 3", "1 < 3 < 2 < 0", "3 > 2 == 2",
    "1 and 0 or 5", "not 0", "[] or 'x'", "0 and 1/0", "1 or 1/0", "1 if 0 else 2", "(1, 2) + (3,)", "[1, 2] * 2",
    "'ab' * 2 + 'c'", "'a' in 'abc', 4 not in [1, 2]", "None is None, 1 is not None", "[1, 2, 3][1:]", "(1, 2, 3)[-1]",
    "'abc'[::-1]", "[[1, 2], [3]][0][1]", "len([1, 2]), list(range(3)), tuple(range(1, 7, 2))", "1j*1j", "0xff, 1_000",
    "f'{1 + 1}{\"a\"!r:>5}|{3.14159:.2f}|{{}}'", "'{} {1}'.format(1, 2) if 0 else '{} {}'.format(1, 2)",
    "'{:>{w}}|{}'.format(1, 2, w=4), '{1}{0}'.format(1, 2)", "'%d %s' % (1, 'a')", "'a,b'.split(','), ','.join(['a', 'b'])", "int('5') + int(2.7), float('1e3'), bool([])",
    "round(2.345, 2), round(1234, -2)", "sum(i*i for i in range(4)), max(i % 3 for i in range(5)), sum(range(5)), sum((1, 2))",
    "any(i > 2 for i in range(3)), all(i < 3 for i in range(3)), min((3, 1, 2)), sum(([i] for i in range(2)), [])",
    "d = {'a': 1}\nd.update(b=2)\nd.setdefault('c', []).append(3)\nd | {'a': 0}, d.pop('a'), list(d), d == dict(d), 'b' in d",
    "d = {'a': [1]}\nd['a'] += [2]\nd, sorted(d.items()), {**d, 'b': 1}",
    "dict([(1, 2)], x=3), {i: [j for j in range(i)] for i in range(3)}, dict(zip('ab', (1, 2))).values()",
    "(lambda x, y=2: x**y)(3), (lambda: 7)()", "5 & 3 | 8, ~5", "1e400 > 10", "True + 1", "str(1.5), repr('a')",
    "[x, y] == [1, 2]", "x, y = 5, 6\n(y, x)", "x = y = 3\nx + y", "x += 2\nx -= 1\nx *= 3\nx", "a, (b, c) = 1, [2, 3]\na + b + c",
    "s = 0\nfor i in range(5):\n  if i == 3: continue\n  s += i\ns", "n = 0\nwhile True:\n  n += 1\n  if n > 4: break\nn",
    "r = []\nfor i, (p, q) in enumerate([(1, 2), (3, 4)]):\n  r.append(i + p*q)\nr", "l = [0, 0]\nl[1] = 5\nl[0] += 2\nl",
    "def f(a, b=2):\n  if a > b: return a\n  return f(a + 1)\nf(0), f(9, b=1)", "def f(): pass\nf()",
    "def fact(n):\n  return 1 if n < 2 else n*fact(n - 1)\nfact(20)", "def mk(n):\n  def add(q): return q + n\n  return add\nmk(3)(4)",
    "k = 1\ndef g(): return k\nk = 2\ng()", "def f(n):\n  for i in range(n):\n    for j in range(n):\n      if i*j == 6: return i, j\nf(5)",
    "try:\n  1/0\nexcept ZeroDivisionError as e:\n  r = str(e)\nr", "try:\n  [][1]\nexcept (KeyError, IndexError): r = 1\nr",
    "def f():\n  try: return 1\n  except: return 2\nf()", "r = 0\nfor i in range(3):\n  try:\n    if i == 1: continue\n    r += 1/i\n  except ZeroDivisionError:\n    r += 10\nr",
    "try:\n  try: 1/0\n  except KeyError: r = 1\nexcept Exception: r = 2\nr", "def f(x):\n  return x + u\ntry:\n  f(1)\nexcept NameError as e:\n  r = str(e)\nr",
    "i = 7\nf = [lambda: i]\ni = 8\nf[0]()", "if x > 5: r = 1\nelif x > 0: r = 2\nelse: r = 3\nr", "assert x == 1\nx", "sorted([3, 1, 2]), list(reversed([1, 2]))",
    "a = [1, 2]\nb = a\nb += [3]\na", "x if x else y, x and y, x or y", "3 .real, (2.5).is_integer()", "a = 1; b = a + 1; a*b",
]  # fmt: skip


def python_value(source: str) -> Any:
    """What Python computes: the last line is an expression."""
    *before, last = source.split("\n") if "\n" in source else source.split(";")
    scope: dict[str, Any] = {"x": 1, "y": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\n".join(line if "\n" in source else line.strip() for line in before), scope)
        return eval(last.strip(), scope)


@sweep("source", PYTHON)
def test_as_python(source: str) -> None:
    assert repr(value(source, x=1, y=2)) == repr(python_value(source))


# -- hypothesis: arithmetic over NumPy scalars ------------------------------------------------------
_numbers = st.sampled_from(("x", "y", "z", "2", "3.5", "0.25", "-1", "1e2"))


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = ("+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", ">", ">=", " and ", " or ")
    return st.one_of(
        st.tuples(inner, st.sampled_from(operators), inner).map(lambda p: f"{p[0]}{p[1]}{p[2]}"),
        st.tuples(inner, st.sampled_from(("**2", "**3", "**0.5"))).map(lambda p: f"({p[0]}){p[1]}"),
        inner.map(lambda s: f"({s})"),
        inner.map(lambda s: f"-{s}"),
        inner.map(lambda s: f"not {s}" if not s.startswith("-") else f"+{s}"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.tuples(inner, inner).map(lambda p: f"[{p[0]}, {p[1]}][1]"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]}) < ({p[1]}) < ({p[2]})"),
    )


@given(st.recursive(_numbers, _grow, max_leaves=14))
def test_arithmetic_is_pythons_over_numpy_scalars(source: str) -> None:
    variables = {"x": np.float64(1.5), "y": np.float64(-0.75), "z": np.float64(3.0)}
    try:
        program = parse(source)
    except LanguageError:
        with pytest.raises(SyntaxError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "", "eval")
        return
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = eval(source, dict(variables))
        except (ZeroDivisionError, TypeError, OverflowError) as error:
            expected = type(error)
        try:
            found = run(program, variables).value
        except LanguageError as error:
            found = type(error.__cause__)
    assert repr(found) == repr(expected)


# -- tensors ---------------------------------------------------------------------------------------
def test_names_and_spans_reach_the_graph() -> None:
    source = "y = a*x; y + b"
    x, a, b = leaf(3.0), leaf(4.0), leaf(5.0)
    result = run(parse(source), {"x": x, "a": a, "b": b})
    node = result.value.grad_fn
    assert source[slice(*node.span)] == "y + b"
    product = node.next_functions[0][0]
    assert source[slice(*product.span)] == "a*x"
    assert product.label == "y" and result.names["y"].label == "y"
    assert (x.label, a.label) == ("x", "a")
    assert result.names["y"].grad_fn is product


def test_first_name_stays() -> None:
    names = run(parse("u = x; v = 2*x; w = v"), {"x": leaf(1.0)}).names
    assert names["u"].label == "x" and names["w"].label == "v"


def test_spans_in_control_flow_are_of_the_path_taken() -> None:
    source = "def f(x):\n  y = x*2\n  while y < 100:\n    y = y*2\n  if y > 150:\n    z = y + 1\n  else:\n    z = 100*y\n  return z\nf(a)"
    result = run(parse(source), {"a": leaf(1.5)})
    node = result.value.grad_fn
    assert source[slice(*node.span)] == "y + 1"
    assert node.next_functions[0][0].label == "y"
    result.value.backward()
    assert result.names["a"].grad.item() == 128.0


def test_bound_names_beat_the_table() -> None:
    assert value("sum + pi", sum=1, pi=2) == 3
    assert value("sum = 5; sum") == 5
    assert value("pi") == math.pi


def test_numbers_are_lifted_where_a_function_wants_a_tensor() -> None:
    assert isinstance(value("sin(2)"), Tensor)
    assert value("maximum(2, 3)").item() == 3
    assert value("maximum(x, 3)", x=leaf([1.0, 5.0])).tolist() == [3.0, 5.0]
    assert value("mean(x, 0, True)", x=leaf([1.0, 5.0])).tolist() == [3.0]  # no tensor of True
    assert value("all(x, 0, True)", x=leaf([1.0, 5.0])).tolist() == [True]
    assert value("pow(2, 3)").item() == 8 and value("xlogy(0, 0.5)").item() == 0
    assert value("pow(2, x)", x=leaf(3.0)).grad_fn.name() == "PowBackward2"
    assert value("where(True, 1, 2)").item() == 1  # a truth becomes no number
    assert value("where(False, x, 2*x)", x=leaf([1.0, 5.0])).tolist() == [2.0, 10.0]
    assert value("sum(True)").dtype is dtypes.int64
    assert value("lt(2, x)", x=leaf([1.0, 5.0])).tolist() == [False, True]
    assert value("masked_select(x, True)", x=leaf([1.0, 5.0])).tolist() == [1.0, 5.0]
    with pytest.raises(LanguageError, match="Expected a long tensor for index, but got Bool"):
        value("take(x, True)", x=leaf([1.0, 5.0]))
    node = value("pow(x, 2)", x=leaf(3.0)).grad_fn
    assert node.name() == "PowBackward0"


def test_hooks_written_in_the_language() -> None:
    v = leaf([0.0, 0.0, 0.0])
    run(
        parse(
            "h = v.register_hook(lambda grad: grad*2)\nv.backward(tensor([1., 2., 3.]))\nh.remove()"
        ),
        {"v": v},
    )
    assert v.grad is not None and v.grad.tolist() == [2.0, 4.0, 6.0]


def test_no_grad_is_left_whatever_happens() -> None:
    x = leaf(2.0)
    sources = (
        "def f():\n  with no_grad():\n    return x*2\nf()",
        "for i in [1]:\n  with no_grad():\n    break",
        "for i in [1]:\n  with no_grad():\n    continue",
        "try:\n  with no_grad():\n    1/0\nexcept ZeroDivisionError: pass",
        "with no_grad(), enable_grad():\n  y = x*2",
        "def f():\n  with no_grad():\n    1/0\ndef g():\n  f()\ntry:\n  g()\nexcept: pass",
    )
    for source in sources:
        assert run(parse(source + "\n(x*1).requires_grad"), {"x": x}).value is True
    with pytest.raises(LanguageError):
        run(parse("with no_grad():\n  1/0"), {"x": x})
    assert value("(x*1).requires_grad", x=x) is True


def test_in_place_and_assigned_attributes() -> None:
    x = leaf([1.0, 2.0])
    run(parse("(x*x).sum().backward()\nx.grad.zero_()\nx.grad.data = tensor([7., 8.])"), {"x": x})
    assert x.grad is not None and x.grad.tolist() == [7.0, 8.0]
    assert value("y = x*1\ny[0] = 5\ny += 1\ny", x=leaf([1.0, 2.0])).tolist() == [6.0, 3.0]
    assert value("x = torch.ones(2); x.requires_grad = True; x.requires_grad") is True


def test_namespaces_and_imports() -> None:
    assert value("torch.pi == pi") is True
    assert value("import torch as t, numpy as np\n(t.inf, np.pi)") == (math.inf, math.pi)
    assert value("import torch.nn.functional as F\nF.relu(-x)", x=leaf(2.0)).item() == 0.0
    assert (
        value("from torch import linalg as la, sin\nla.norm(sin(x))", x=leaf([0.0])).item() == 0.0
    )


def test_print_goes_where_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    out: list[str] = []
    run(parse("print('a', 1, sep='-', end='!')\ndisplay([1])"), write=out.append)
    assert "".join(out) == "a-1![1]\n"
    run(parse("print(2)"))
    assert capsys.readouterr().out == "2\n"


def test_evaluate() -> None:
    assert evaluate("2*dot(x, x)", x=[0, 1, 2, 3]).item() == 28
    assert evaluate("[1, 2]").tolist() == [1.0, 2.0]
    stacked = evaluate("[x, 2*x]", x=leaf(3.0))
    assert stacked.tolist() == [3.0, 6.0] and stacked.requires_grad
    assert evaluate("3").shape == ()
    for source in ("x = 3", "", "'text'", "sin"):
        with pytest.raises(LanguageError):
            evaluate(source)


def test_a_machine_keeps_its_names() -> None:
    machine = Machine({"x": leaf(2.0)})
    machine.run(parse("def f(v): return v*k"))
    machine.run(parse("k = 5"))
    assert machine.run(parse("f(x)")).item() == 10
    assert machine.run(parse("y = 1")) is None


# -- closed lists ----------------------------------------------------------------------------------
UNREACHABLE = [
    "x.__class__", "x.__dict__", "(1).__class__", "'a'.__class__", "print.__self__", "torch.__loader__", "len.__self__",
    "x.array", "x.node", "x.__init__", "'{0.__class__}'.format(x)", "'{x.array}'.format(x=x)", "'{0[0]}'.format([1])",
    "x.hooks", "f'{x.__class__}'", "(lambda: 0).spec", "(lambda: 0).machine", "x.grad_fn.row", "x.grad_fn.__class__",
    "float.fromhex('1')", "open('f')", "eval('1')", "exec('1')", "__import__('os')", "getattr(x, 'array')", "globals()",
    "vars(x)", "type(x).mro()", "x.__array__()", "float32.dtype", "[].sort.__self__", "x._grad = 1", "x.array = 1",
    "import os", "import sys", "from numpy import load", "import numpy as np; np.load", "x.data.ctypes", "().__len__()",
]  # fmt: skip


@sweep("source", UNREACHABLE, parts=1)
def test_nothing_outside_the_lists_is_reachable(source: str) -> None:
    with pytest.raises(LanguageError):
        run(parse(source), {"x": leaf(1.0) * 2})


HUGE = [
    "9**9**9", "10**10**10", "(-3)**10**9", "'a'*10**10", "10**10*'a'", "[0]*10**9", "(1, 2)*10**9", "list(range(10**12))",
    "f'{1:>1000000000}'", "'%1000000000d' % 1", "'%*d' % (10**9, 1)", "'{:>999999999}'.format(1)", "'a'.ljust(10**10)",
    "'a'.rjust(10**9)", "x = 3\nfor i in range(100): x = x*x", "s = 'a'\nfor i in range(100): s = s + s",
    "('a'*1000000).replace('a', 'b'*1000000)", "l = [1]\nfor i in range(100): l += l", "s = 'ab'\nfor i in range(99): s *= 9",
]  # fmt: skip


@sweep("source", HUGE, parts=3, often=1)
def test_huge_results_are_refused_at_once(source: str) -> None:
    begun = time.process_time()
    with pytest.raises(LanguageError):
        run(parse(source), {})
    assert time.process_time() - begun < 2


# -- errors ----------------------------------------------------------------------------------------
def test_shape_errors_show_both_operands() -> None:
    assert told(
        "1 + x*(a + b)", x=leaf(1.0), a=leaf([1.0, 2.0, 3.0]), b=leaf([1.0, 2.0])
    ).splitlines()[:5] == [
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0",
        "  `a` has shape (3,)",
        "  `b` has shape (2,)",
        "    1 + x*(a + b)",
        "           ^^^^^",
    ]
    text = told("dot(x, w)", x=leaf([1.0, 2.0]), w=leaf([1.0, 2.0, 3.0]))
    assert "`x` has shape (2,)" in text and "`w` has shape (3,)" in text


@pytest.mark.parametrize("source", ["x['a']", "x['a'] = 1"])
def test_a_string_as_an_index_is_an_error_alone(
    source: str, recwarn: pytest.WarningsRecorder
) -> None:
    assert told(source, x=leaf([1.0, 2.0])).startswith("new(): invalid data type 'str'\n")
    assert not recwarn.list


def test_unknown_names() -> None:
    assert told("y + sni(2)", y=1).splitlines() == [
        "name 'sni' is not defined", "    y + sni(2)", "        ^^^", "hint: did you mean `sin`?",
    ]  # fmt: skip
    assert "did you mean `weight`" in told("weihgt*2", weight=leaf(1.0))
    assert "did you mean `sum`" in told("x.smu()", x=leaf(1.0))
    with pytest.raises(LanguageError) as caught:
        run(parse("foo(2)"))
    assert caught.value.usage and caught.value.kind == "name"


def test_engine_errors_are_not_usage_errors() -> None:
    with pytest.raises(LanguageError) as caught:
        run(parse("y = 2*x\ny.backward()"), {"x": leaf([1.0, 2.0])})
    error = caught.value
    assert not error.usage
    assert error.message.startswith("grad can be implicitly created only for scalar outputs")
    assert error.span == (8, 20) and error.hint is not None
    assert isinstance(error.__cause__, RuntimeError)


def test_the_calls_that_led_there() -> None:
    source = "def g(x):\n  return x + nothing\ndef f(x):\n  return g(x)*2\nf(3)"
    assert told(source).splitlines() == [
        "name 'nothing' is not defined",
        "  in f, called at line 5:", "    f(3)", "    ^^^^",
        "  in g, called at line 4:", "      return g(x)*2", "             ^^^^",
        "  line 2:", "      return x + nothing", "                 ^^^^^^^",
        "hint: give it a value: --nothing VALUE",
    ]  # fmt: skip


def test_errors_in_hooks_name_both_places() -> None:
    text = told("x.register_hook(lambda g: g*bad)\n(x*3).backward()", x=leaf(2.0))
    assert "(x*3).backward()" in text and "g*bad" in text


def test_recursion_and_steps_have_limits() -> None:
    text = told("def f(n):\n  return f(n + 1)\nf(1)")
    assert text.startswith("maximum recursion depth exceeded") and "more calls before these" in text
    assert value("def f(n):\n  return 0 if n == 0 else 1 + f(n - 1)\nf(900)") == 900
    assert value("def f(n): return f(n)\ntry: f(1)\nexcept RecursionError as e: r = str(e)\nr") == (
        "maximum recursion depth exceeded"
    )
    for source in ("while True: pass", "def f():\n  while 1:\n    try: 1/0\n    except: pass\nf()"):
        with pytest.raises(LanguageError) as caught:
            run(parse(source), max_steps=1000)
        assert caught.value.kind == "steps"
    assert run(parse("for i in range(100): x = i\nx"), max_steps=100).value == 99


def test_calls_of_functions_are_checked() -> None:
    assert "missing 1 required positional argument: 'b'" in told("def f(a, b): pass\nf(1)")
    assert "takes 1 positional argument but 2 were given" in told("def f(a): pass\nf(1, 2)")
    assert "unexpected keyword argument 'c'" in told("def f(a): pass\nf(1, c=2)")
    assert "multiple values for argument 'a'" in told("def f(a): pass\nf(1, a=2)")
    assert "keyword argument repeated" in told("sum(x, dim=0, dim=1)", x=leaf([1.0]))
    assert "cannot access local variable 'v'" in told("def f():\n  w = v\n  v = 1\nf()")
    assert "'int' object is not callable" in told("3(4)")


def test_deep_programs_run() -> None:
    assert value("(" * 5_000 + "1" + ")" * 5_000) == 1
    assert value("1" + "+1" * 5_000) == 5_001
    assert value("-" * 5_000 + "1") == 1
    assert value("0 or " * 5_000 + "7") == 7
    assert value("(1 if 1 else 2) if 1 else " * 5_000 + "3") == 1
    assert value("if 0: x = 1\n" + "elif 0: x = 2\n" * 5_000 + "else: x = 3\nx") == 3
    assert value("not " * 10_001 + "1") is False
    assert value("1" + "<2<3" * 1 + "<4" * 0) is True


def test_a_chain_of_tensor_operations_runs() -> None:
    x = leaf(1.0)
    result = value("x" + "+x" * 20_000, x=x)
    result.backward()
    assert x.grad is not None and x.grad.item() == 20_001


def test_other_rooms_may_register_names() -> None:
    known.register("triple", lambda x: x * 3)
    try:
        assert value("triple(2)") == 6 and known.is_known("triple")
    finally:
        known.unregister("triple")
    assert not known.is_known("triple")


DECORATED = """
def twice(g):
    return lambda x: g(g(x))
@no_grad()
def f(x, *, k=2):
    return x*k
@func.vmap
@func.grad
def cube(x: Tensor, *, n: float = 3.0) -> Tensor:
    return x**n
@twice
def step(x, y=1, *, z, w=2,):
    return x + y
"""


def test_decorators_and_parameters_given_by_name() -> None:
    """As in Python: what a decorator makes takes the name; what follows `*` has no position."""
    assert "step() missing 1 required keyword-only argument: 'z'" in told(DECORATED + "step(1)")
    assert "f() takes 1 positional argument but 2 were given" in told(DECORATED + "f(1, 2)")
    ours = run(
        parse(
            DECORATED + "x = tensor(3., requires_grad=True)\ny = f(x, k=5)\n"
            "(y, y.requires_grad, cube(tensor([1., 2.])).tolist())"
        ),
        {},
    ).value
    assert (ours[0].item(), *ours[1:]) == (15.0, False, [3.0, 12.0])
    text = "def add(n):\n    return lambda g: lambda x: g(x) + n\n@add(1)\n@add(10)\ndef g(x): return x*2\ng(3)"
    assert run(parse(text), {}).value == 17

# ruff: noqa: E501 (tables of cases)
"""What is written otherwise by those who price options: dates as values, N(d1), orders of derivatives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradcli
from tests.commands.running import outcome

# (arguments, the exit code, a piece of what is said)
SAID = [
    ("eval T --T 2024-12-31", 2, "2024-12-31 looks like a date, and a value is a number"),
    ("eval T --T 1,2024-12-31", 2, "a difference has blanks: 2024 - 12 - 31"),
    ("grad T --T 2024-01-05", 2, "a difference has blanks: 2024 - 1 - 5"),
    ("eval T --T 2024-12", 0, "2012"),
    ("eval T --T 2024-13-31", 0, "1980"),
    ("eval N(d1) --d1 1", 2, "the normal distribution function is special.ndtr, here: special.ndtr(d1)"),
    ("eval S*N(d)-K*N(-d) --d 1 --S 1 --K 1", 2, "here: S*special.ndtr(d)-K*special.ndtr(-d)"),
    ("eval S*N(d)-K*N(-d) --d 1 --S 1 --K 1 --math", 2, "here: S*special.ndtr(d) - K*special.ndtr(-d)"),
    ("eval 2*N(-d) --d 1 --math", 2, "here: 2*special.ndtr(-d)"),
    ("eval N(2) --N 3 --math", 0, "6"),
    ("eval Phi(x) --x 0", 2, "here: special.ndtr(x)"),
    ("eval Phi(x) --x 0 --math", 0, "0.5"),
    ("eval cdf(x) --x 0", 2, "here: special.ndtr(x)"),
    ("eval cuberoot(x) --x 8", 2, "here it is written sign(x)*abs(x)**(1/3)"),
    ("eval cuberoot(x) --x 8 --math", 0, "2"),
    ("map x*yield q.csv", 2, "a column called yield is read as another variable: write y, and --columns y=yield"),
    ("map x*y q.csv --columns y=yield --wrt y", 0, "x,yield,day,lambda,value,y.grad\n1,0.02,2025-01-02,3,0.02,1\n"),
    ("map x*lambda q.csv", 2, "write lam, and --columns lam=lambda"),
    ("fit x==a*yield q.csv", 2, "--columns y=yield"),
    ("eval x*class --x 1", 2, "write c, and --c @FILE:class"),
    ("eval class", 2, "hint: classes belong to Python"),
    ("eval x --x 3.0±0.1%", 0, "note: --x 3.0±0.1%: the percentage is one of the value: ±0.003"),
    ("eval np.interp(t,T,r) --t 1 --T 1,2 --r 3,4", 2, "hint: between points of columns T and r: i = searchsorted(T, t) - 1"),
    ("eval np.foo(t) --t 1", 2, "no function is called `foo`"),
    ("eval x --x {'a':1,'b':[2,3]}", 2, "hint: give each key a variable of its own: --a 1 --b 2,3"),
    ("eval x --x {1:0.02,2:0.03}", 2, "hint: write pairs as rows of a matrix: [[1, 0.02], [2, 0.03]]"),
    ("eval x --x [{'a':1,'b':2}]", 2, "hint: leave out the names: [[1, 2]]"),
    ("eval x --x ['1','2']", 2, "hint: leave out the quotes: 1,2"),
    ("eval x --x [null,1]", 2, "did you mean `nan`?"),
    ("eval 2*x --x 3.012345678±0.1 --precision 8", 0, "6.02469136 ± 0.20000000\n"),
    ("eval 2*x --x 3.012345678±0.1", 0, "6.02 ± 0.20\n"),
    ("eval sum(x) @q.csv", 2, "columns of a table are variables' values: --x @q.csv:x"),
    ("grad sum(x*day*z) @q.csv", 2, "--x @q.csv:x --day @q.csv:day"),
    ("diff x**2 -o greeks.c", 2, "no such option -o\nhint: > FILE writes what is printed"),
    ("diff -f q.txt -o greeks.c", 2, "no such option -o\nhint: > FILE writes what is printed"),
    ("hessian x**2 --x 2 --value", 2, "gradcli eval EXPR prints the value, gradcli grad EXPR --value both"),
    ("map x*x q.csv --as x.grad=delta", 2, "the new name comes first: --as delta=x.grad"),
    ("map x*x q.csv --as v=value,d=x.grad --keep-columns none", 0, "v,d\n1,2\n4,4\n"),
    ("map x*x q.csv --format jsonl --keep-columns day,x --wrt x", 0, '"day": "2025-01-02", "x": 1, "value"'),
    ("map x*x q.csv --format jsonl --keep-columns day --where x>1", 0, '{"day": "2024-12-31", "value": 4.0'),
    ("root --help-all", 0, "Solve for these variables only; the others are"),
    ("minimize --help-all", 0, "Move these variables only; the others are"),
    ("map --help", 0, "--missing error|nan|skip"),
    ("map --help", 0, "--head N"),
    ("grad S**3*K --S 2 --K 1 --order 2", 0, "S.grad2 = 12\nK.grad2 = 0"),
    ("grad S**3*K --S 2 --K 1 --order 3 --plain", 0, "S.grad\t6\nK.grad\t0"),
    ("eval S*N(d)-K^2 --S 1", 2, "here it is written S*special.ndtr(d) - K**2\n"),
    ("map -`x.grad`/x q.csv", 2, "| gradcli map '-g/value' -"),
    ("map func.grad(x)*x q.csv", 1, "hint: a function is no number"),
    ("minimize x --x 1 --constraint x>=0", 2, "write --subject RELATION"),
    ("diff x*y --wrt x --foo z", 2, "--foo is neither an option nor a variable of the expression (variables: x, y)"),
    ("diff x*y --wrt x --let foo=z", 2, "foo is not a variable of the expression"),
    ("diff x*y --wrt x --second x,y", 2, "a mixed derivative: gradcli diff EXPR --wrt x,y --order 2"),
    ("diff s=x*y;s*2 --s z", 2, "--s is neither an option nor a variable of the expression"),
    ("simplify x*y --foo z", 2, "--foo is neither an option nor a variable"),
    ("taylor x*y --x 1 --let foo=z", 2, "foo is not a variable"),
    ("minimize (w-A[0,0])**2 --w 0 --A @m.csv", 0, "note: A is read from a file, and held; --wrt w,A varies it too"),
    ("root w+A[0,0] --w 0 --A @m.csv", 0, "w = -1"),
    ("fit y==a*x*A[0,1] f.csv --A @m.csv", 0, "A is read from a file, and held"),
    ("minimize w --w 1", 1, "error: no minimum: the value falls without end\nhint: set --bounds"),
    ("root relu(x)==0 --x 3", 0, "note: this root is not the only one: up to rounding the sides are equal all around it"),
    ("root x**2==0 --x 3", 0, "residual"),
    ("root exp(x)==1 --x 3", 0, "residual"),
    ("root relu(u-x)==0 q.csv --u 9 --keep-columns x", 0, "up to rounding the sides are equal all around 1, where u moves neither"),
    ("root relu(u-x)==0 q.csv --u 9 --keep-columns x", 0, "x,u\n1,nan\n2,nan\n"),
    ("root exp(u)==x q.csv --u 9 --keep-columns none --where x<2", 0, "e-1"),
    # the variables of a minimum are those of its constraints, too
    ("minimize x**2 --x 1 --a 3 --wrt x --subject x>=a", 0, "x = 3\n"),
    ("minimize x@A@x --A 2,1;1,3 --x 1,1 --wrt x --subject sum(x)==1", 0, "x = [0.66666666666666"),
    ("minimize x@x --x 1,1 --subject x[0]>=0 --subject x[1]-x[0]==2", 0, "x = [0, 2]\n"),
    ("minimize x**2 --x 1 --a 3±0.1 --subject x==a", 0, "x = 3.00 ± 0.10\nvalue = 9.00 ± 0.60\n"),
    ("minimize b=2*x;x**2 --x 1 --subject b==4", 0, "x = 2\n"),
    ("minimize x**2 --x 1 --subject x>=a", 2, "error: no value for a\n    x>=a\n       ^\nhint: add --a VALUE"),
    ("minimize x**2 --x 1 --subject f(x)>=1", 2, "no function is called `f`"),
    # standard errors of a likelihood's minimum
    ("minimize 2*(x-1)**2 --x 3 --errors", 0, "x = 1.00 ± 0.50\nvalue = 0\n"),
    ("minimize (x-1)**2/2+y --x 3 --y 4 --bounds y=0: --errors", 0, "note: y is held by a bound or a constraint, and has no error"),
    ("minimize (x-y)**2/2+y**2 --x 3 --y 4 --errors --covariance --plain", 0, "covariance\t1.5,0.5;0.5,0.5\n"),
    ("minimize 2*(x-1)**2 --x 3 --errors --json", 0, '"errors": {"x": 0.5}, "covariance": {"x": {"x": 0.25}}'),
    ("minimize 2*(x-a)**2 --x 3 --a 1±1 --errors", 2, "--errors cannot be used with uncertainties of values"),
    ("minimize (x-y)**2 --x 3 --y 4 --errors", 0, "note: there are no errors: flat: the Hessian is singular"),
    ("minimize 2*(x-1)**2 --x 3 --covariance", 2, "as in --x 0.994±0.002; of a negative log-likelihood: --errors"),
    ("minimize 2*(x-1)**2 --x 3 --standard-errors", 2, "hint: write --errors"),
    # a Taylor polynomial in some variables
    ("taylor a*sin(x) --a 2 --x 0 --wrt x --order 3", 0, "2*x - x**3/3\n"),
    ("taylor a*sin(x) --a pi/4 --x 0 --wrt x --order 1 --json", 0, '"at": {"x": "0"}, "order": 1, "taylor": "pi*x/4"'),
    ("taylor sum(a*y**2) --a 1,2 --y 1 --wrt y --order 2", 0, "3 + 6*(y - 1) + 3*(y - 1)**2\n"),
    ("taylor sum(a*y**2) --a 1,2 --y 1", 2, "a is an array\nhint: --wrt y expands in y, and holds the others"),
    ("taylor a*y**2 --a 1,2 --y 1 --wrt y", 1, "a is an array: the coefficients are numbers then"),
    # one matrix of all second derivatives
    ("hessian x**3*y --x 1 --y 2 --csv", 0, "x.hessian,y.hessian\n12,3\n3,0\n"),
    ("hessian sum(x**2)*y --x 1,2 --y 3 --csv", 0, "x.hessian[0],x.hessian[1],y.hessian\n6,0,2\n0,6,4\n2,4,0\n"),
    ("eval A@A --A @named.csv", 0, "[[7, 10], [15, 22]]\n"),
    ("eval A --A @named.csv", 0, "named.csv: its first column has the names of the others, as rows"),
    ("eval sum(p) --p @t.csv:p", 2, "hint: text is compared row by row: gradcli map \"where(p == 'A', 1, 0)\" t.csv"),
    ("map where(p=='A',v,0) t.csv --no-grad all", 0, "p,v,value\nA,1,1\nB,2,0\n"),
    ("grad x*y --x 1 --y 2 --second x,y", 2, "gradcli hessian EXPR --wrt x,y in numbers"),
    ("fit y==a*exp(-lambda*x) f.csv", 2, "hint: call the variable otherwise: lam\n"),
    ("eval x*lambda --x 1 --lambda 2", 2, "hint: call the variable otherwise, and give --lam VALUE"),
    ("map sum(v/(1+v)**arange(1,3)) t.csv --no-grad all --keep-columns none", 0, "value\n0.75\n0.888"),
    ("map end-begin d.csv --no-grad all --keep-columns none", 0, "value\n179\n362\n"),
    ("map end-begin d.csv --no-grad all", 0, "note: d.csv: end is days since 2025-01-02;"),
    ("eval end-begin --end @d.csv:end --begin @d.csv:begin", 0, "[179, 362]\n"),
    ("ops normal cdf", 0, "special.ndtr  The cumulative distribution function of the standard normal"),
    ("ops normal cumulative", 0, "special.ndtr  The cumulative"),
    ("eval grad(x**2*y,x) --x 2 --y 3", 2, 'hint: gradcli grad "x**2*y" --wrt x is the number, gradcli diff'),
    ("eval 2*grad(x**2,x) --x 2", 2, "hint: a gradient inside of an expression is func.grad(lambda x: x**2)(x)"),
    ("map (begin-2025-01-01)/365 d.csv", 2, "hint: a date is no number: --time-origin 2025-01-01 counts columns of dates"),
    ("map begin-'2025-01-01' d.csv", 1, "hint: a text is compared, as in name == 'A'; a column of dates is days"),
    ("map v t.csv --group-by p", 2, "hint: a sum of rows: gradcli map EXPR FILE --no-grad all --where"),
    ("map v t.csv --group_by p", 2, "hint: a sum of rows"),
    ("eval sum(v) --v @t.csv:v --where p=='A'", 2, "hint: rows of a table: gradcli map EXPR FILE --no-grad all --where CONDITION"),
]  # fmt: skip

# The same, of which one a time is enough.
ALSO = [
    ("eval sum(x**k) --x 2 --k 1:20", 0, "note: --k 1:20 ends at 19, as ranges do; 1:21 has 20, too"),
    ("eval sum(x**k) --x 2 --k 0:20", 0, "1048575\n"),
    ("diff S*Φ(d) --wrt d", 0, "the normal distribution function is special.ndtr"),
    ("map g=lambda(s):s*x;-func.grad(g) q.csv", 2, "error"),
    ("map norm.cdf(x) q.csv", 2, "hint: here it is written special.ndtr(x)\n"),
    ("map math.ceil(x) q.csv", 2, "hint: here it is written ceil(x)\n"),
    ("map xx*2 q.csv", 2, "did you mean `x`? (its columns are"),
    ("map max(x,0) q.csv", 1, "hint: here it is written clamp(x, min=0)\n"),
    ("map max(x-1,0)*2 q.csv --no-grad all", 0, "the larger of two is clamp(x-1, min=0)\n"),
    ("map float(x)*2 q.csv --no-grad all", 0, "the rows ran one by one: it looks at the numbers, as `if`"),
    ("map x*day q.csv --wrt x", 0, "day is days since 2025-01-02; --time-origin DATE counts from another day"),
    ("map x*day q.csv --wrt x --time-origin 2025-01-01", 0, "day is days since 2025-01-01\n"),
    ("map x*x q.csv --keep-columns day,x --no-grad all", 0, "day,x,value\n2025-01-02,1,1\n"),
    ("root u*x==v q.csv --u 1 --v 2", 2, "hint: say which number is unknown: --wrt u or --wrt v"),
    ("root u*x==2 q.csv --u 1 --keep-columns day,x --as iv=u,pct=100*iv", 0, "day,x,iv,pct\n2025-01-02,1,2,200\n"),
    ("root cos(x)==x --x 1 --starts 3", 2, "hint: gradcli root EXPR --x FROM:TO --all finds every root"),
    ("root cos(x)==x --x 1 --as y=x", 2, "error: --as needs a table"),
    ("map cp*x q.csv --columns cp=lambda --wrt x --keep-columns none", 0, "value,x.grad\n3,3\n8,4\n"),
    ("eval cp*2 --cp 3", 0, "6\n"),
    ("eval cp.exp(2)", 2, "hint: here it is written exp(2)\n"),
    ("root d2*d1==6 --a 1 --wrt a --let d1=a+1 --let d2=d1+1", 0, "a = 1\n"),
    ("root d2==6 --a 1 --wrt a --let d2=a+1", 0, "a = 5\n"),
    ("root d2*d1==x q.csv --a 1 --wrt a --let d1=a+1 --let d2=d1*2 --keep-columns x --head 1", 0, "x,a\n1,-0.29289"),
    ("root b=2;C=b*a==4 --a 1", 2, "hint: `C = …` only gives a name: end with `; C == 4`\n"),
    ("root b=2;C=b*a --a 1", 2, "hint: `C = …` only gives a name: end with `; C == VALUE`\n"),
    ("map y=x*x;z=y*2 q.csv --keep-columns none --wrt x", 0, "value,x.grad\n2,4\n8,8\n"),
    ("map 1/(x-2) q.csv --keep-columns none --no-grad all --head 1 --detect-anomaly", 0, "value\n-1\n"),
    ("map x*t q.csv", 2, "hint: give --t VALUE, or --columns t=COLUMN (its columns are: x, yield, day, lambda)"),
    ("grad mean(relu(x*randn(9)-1)) --x 1 --order 2", 0, "note: kinks have no second derivative, and random draws miss them"),
    ("hessian mean(relu(x*randn(9)-1)) --x 1", 0, "note: kinks have no second derivative, and random draws miss them"),
    ("grad mean((x*randn(9))**2) --x 1 --order 2 --manual-seed 1", 0, "x.grad2 ="),
    ("eval S*N(d1)-K*N(-d_2) --d1 1 --d_2 2 --S 1 --K 1 --math", 0, "N is special.ndtr, the normal distribution's\n"),
    ("eval N(d1) --d1 0 --math", 0, "0.5\n"),
    ("eval N'(d_{1}) --d_1 1 --math", 0, "0.24197072451914"),
    ("diff N(d_+) --math --wrt d_+", 2, ""),
    ("eval N(d1)*2 --d1 1 --N 4 --math", 0, "8\n"),
    ("eval N(x)*2 --x 1 --math", 2, "the normal distribution function is special.ndtr"),
    # columns that are made of others
    ("map x*x q.csv --keep-columns none --as q=value,d=x.grad/2,h=d*q+x", 0, "q,x.grad,d,h\n1,2,1,2\n4,4,2,10\n"),
    ("map a*x*x q.csv --a 3 --keep-columns none --as q=value/a,r=clamp(value,min=4)", 0, "value,x.grad,q,r\n3,6,1,4\n12,12,4,12\n"),
    ("map x*x q.csv --keep-columns none --as q=`yield`*2,big=x>1", 0, "value,x.grad,q,big\n1,2,0.04,False\n4,4,0.06,True\n"),
    ("map x*x q.csv --as q=foo*2", 2, "error: --as: there is no column 'foo'\n    foo*2\n    ^^^\nhint: there are x, value, x.grad, yield, day"),
    ("map x*x q.csv --as q=x.gard*2", 2, "hint: did you mean `x.grad`?"),
    ("map x*lam q.csv --columns lam=lambda --wrt x --as q=lam.grad*2", 2, "--wrt has the variables by which there are gradients"),
    ("map x*x q.csv --as q=day*2", 0, "day is days since"),
    ("map dot(w,x) q.csv --columns x=x,lambda --w 1,2 --wrt w --as n=w.grad.norm(),m=w.grad[1]-x[0]", 0, "3.1622776601683795,2\n"),
    ("map dot(w,x) q.csv --columns x=x,lambda --w 1,2 --wrt w --as n=2*w.grad", 2, "n is a column, and its formula has 2 numbers"),
    ("map x,x*x q.csv --wrt x --keep-columns none --as d=value_1.x.grad-value_0.x.grad", 0, ",d\n1,1,1,2,1\n"),
    ("map x*x q.csv --keep-columns none --format jsonl --as d=2*value", 0, '"value": 4.0, "x.grad": 4.0, "d": 8.0, "wrt"'),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.csv").write_text(
        "x,yield,day,lambda\n1,0.02,2025-01-02,3\n2,0.03,2024-12-31,4\n"
    )
    (tmp_path / "q.txt").write_text("x**2")
    (tmp_path / "m.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "named.csv").write_text(",a,b\na,1,2\nb,3,4\n")
    (tmp_path / "d.csv").write_text("begin,end\n2025-01-02,2025-06-30\n2025-01-03,2025-12-31\n")
    (tmp_path / "t.csv").write_text("p,v\nA,1\nB,2\n")
    (tmp_path / "f.csv").write_text("x,y\n1,2\n2,4\n3,7\n")


@pytest.mark.parametrize(("line", "code", "piece"), SAID, ids=[line for line, *_ in SAID])
def test_what_is_said(line: str, code: int, piece: str) -> None:
    found = outcome(*line.split())
    assert found[0] == code and piece in found[1] + found[2], found


@pytest.mark.long
@pytest.mark.parametrize(("line", "code", "piece"), ALSO, ids=[line for line, *_ in ALSO])
def test_what_is_said_too(line: str, code: int, piece: str) -> None:
    found = outcome(*line.split())
    assert found[0] == code and piece in found[1] + found[2], found


def test_a_sum_over_coupons_has_its_way() -> None:
    found = outcome("map", "sum(x*k for k in range(1, x))", "q.csv", "--no-grad", "all")
    assert "sum(where(k <= n, TERM, 0))" in found[2]
    program = "k = arange(1, 9); sum(where(k <= x, k, 0))"
    found = outcome("map", program, "q.csv", "--no-grad", "all", "--keep-columns", "x")
    assert found[1] == "x,value\n1,1\n2,3\n"


def test_new_names_in_python() -> None:
    columns = {"S": [1.0, 2.0], "K": [3.0, 4.0]}
    for called in ({"as_": {"price": "value"}}, {"as": "price=value"}, {"as_": ["price=value"]}):
        assert list(gradcli.map("S*K", columns, wrt=(), **called)) == ["price"]
    assert gradcli.map("S*K", columns, wrt="S", as_={"d": "S.grad/2"})["d"].tolist() == [1.5, 2.0]


def test_no_note_of_sums_over_arrays() -> None:
    program = "k = arange(1, 3); sum(v/(1+v)**k)"
    for text in (program, "sum(v/(1+v)**arange(1, 3))", "sum(stack([v, v]))"):
        assert outcome("map", text, "t.csv", "--no-grad", "all")[2] == ""
    assert "of all rows: gradcli eval" in outcome("map", "sum(v*2)", "t.csv")[2]


def test_a_date_with_blanks_is_arithmetic() -> None:
    assert outcome("eval", "T", "--T", "2024 - 12 - 31")[1] == "1981\n"


def test_json_has_the_order() -> None:
    found = json.loads(outcome("grad", "S**3", "--S", "2", "--order", "2", "--json")[1])
    assert found["wrt"]["S"]["grad2"] == found["wrt"]["S"]["grad"] == 12


LONG = "first = x*x + 1; second = first + x; third = second*first; fourth_of_them = third; fourth_of_them"


def test_printed_programs_say_what_they_are() -> None:
    text = outcome("diff", LONG, "--format", "c")[1]
    assert "/* first = x*x + 1; second = first + x; third = second*first; ... and its" in text
    text = outcome("diff", "S*y + erf(K)", "--wrt", "S,K", "--format", "c")[1]
    assert "double gradient[2]" in text and "(void)" not in text


def test_one_library_has_the_functions_of_a_printed_program() -> None:
    text = outcome("diff", "erf(x)*special.entr(x)", "--format", "numpy")[1]
    assert "erf = special.erf\n" in text and "vectorize" not in text
    assert "vectorize" in outcome("diff", "erf(x)*x", "--format", "numpy", "--shape", "x=3")[1]

"""The terms of automatic differentiation, each in a few sentences with a line to try.

`gradcli help TERM` prints one, `gradcli help terms` lists them, docs/glossary.md has them all.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Term(NamedTuple):
    """A term: its name, what it means, a command line that shows it, other names, terms beside it."""

    name: str
    text: str
    example: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


TERMS = (
    # what a graph consists of
    Term(
        "computational graph",
        "The operations of a computation with the values that flow between them. What PyTorch"
        " records, and gradcli shows, is the backward graph: one node per operation, with "
        "edges from the result to the inputs.",
        'gradcli graph "y = a*x; y + b" --x 3 --a 4 --b 5',
        ("backward graph", "autograd graph", "compute graph", "computation graph", "dag"),
        ("node", "tape", "leaf"),
    ),
    Term(
        "node",
        "One recorded operation of the backward graph. It knows how to turn the gradient of "
        "its result into gradients of its inputs. A tensor's node is its grad_fn; its name, "
        "such as MulBackward0, says the operation.",
        'gradcli graph "x*y" --x 2 --y 3 --saved',
        ("grad_fn", "next_functions", "backward node"),
        ("computational graph", "saved tensor", "accumulategrad"),
    ),
    Term(
        "AccumulateGrad",
        "The node at each leaf of the backward graph. It adds the gradient that arrives to "
        "the leaf's .grad.",
        'gradcli graph "x*x" --x 3 --grads',
        (),
        ("leaf", "gradient accumulation"),
    ),
    Term(
        "tape",
        "The record of the operations that a run has made, in their order. Reverse mode walks"
        " it backward. In PyTorch the tape is the backward graph, and a new one is made by "
        "each run.",
        'gradcli grad "sum((a*b)**2)" --a 1,2 --b 2,4 --trace',
        (),
        ("computational graph", "reverse mode"),
    ),
    Term(
        "leaf",
        "A tensor that no recorded operation has made: a variable, a parameter, or anything "
        "that requires no gradient. Only leaves that require grad get a .grad by the backward"
        " pass. What an operation made of such a leaf is a non-leaf, and keeps its gradient "
        "only if it is retained.",
        'gradcli eval "y = x*x; [x.is_leaf, y.is_leaf]" --x 3',
        ("leaf tensor", "is_leaf", "leaves", "non-leaf", "leaf node"),
        ("retained gradient", "requires_grad", "AccumulateGrad"),
    ),
    Term(
        "requires_grad",
        "Whether operations on a tensor are recorded, so that gradients can reach it. On a "
        "command line every variable requires grad; --no-grad NAME leaves one out, --wrt NAME"
        " chooses. A result requires grad if an input does.",
        'gradcli grad "a*x" --a 2 --x 3 --no-grad a',
        ("requires grad",),
        ("leaf", "no_grad", "detach"),
    ),
    Term(
        "saved tensor",
        "A value of the forward pass that a node keeps because its derivative needs it: for "
        "x*y the gradient by x is y. Saved tensors are most of the memory that training "
        "takes. The backward pass frees them.",
        'gradcli graph "x*y" --x 2 --y 3 --saved',
        ("saved tensors", "saved variable", "activations"),
        ("retain_graph", "version", "checkpointing"),
    ),
    # gradients and passes
    Term(
        "gradient",
        "The derivatives of one number by each element of a variable, in the variable's "
        "shape. It points in the direction in which the number grows fastest.",
        'gradcli grad "x**2 + 3*y" --x 2 --y 1',
        ("grad", ".grad"),
        ("partial derivative", "jacobian", "VJP"),
    ),
    Term(
        "partial derivative",
        "The derivative by one variable, where all others are held constant.",
        'gradcli diff "x**2*y" --wrt x',
        (),
        ("gradient", "total derivative", "chain rule"),
    ),
    Term(
        "total derivative",
        "The derivative along a change of all variables: the sum of each partial derivative "
        "times the change of its variable. gradcli jvp computes it, and diff --along writes "
        "it.",
        'gradcli jvp "x**2*y" --x 2 --y 3 --vector x=1 --vector y=1',
        (),
        ("partial derivative", "JVP"),
    ),
    Term(
        "chain rule",
        "The derivative of f(g(x)) is f'(g(x)) times g'(x). Backpropagation applies it node "
        "by node: the gradient that arrives times the local derivative is the gradient that "
        "goes on. Where paths meet, their gradients add up.",
        'gradcli diff "sin(x**2)" --show-steps',
        ("local derivative", "local gradient", "upstream gradient"),
        ("backpropagation", "VJP"),
    ),
    Term(
        "backpropagation",
        "The computation of all gradients of one number in one walk through the graph, from "
        "the result to the leaves. It costs a few times as much as the value, for any number "
        "of variables.",
        'gradcli grad "y = a*x; (y - b)**2" --x 3 --a 4 --b 5 --trace',
        ("backprop", "backward pass", "backward", "reverse pass", ".backward()"),
        ("reverse mode", "chain rule", "seed gradient"),
    ),
    Term(
        "reverse mode",
        "Differentiation from the result back to the inputs, by products of a vector with "
        "Jacobians (VJP). It is cheap where few results depend on many inputs, as a loss on "
        "its parameters.",
        'gradcli grad "sum(tanh(W@x))" --W "0.1,0.2;0.3,0.4" --x 1,2',
        ("reverse-mode", "adjoint"),
        ("forward mode", "VJP", "backpropagation"),
    ),
    Term(
        "forward mode",
        "Differentiation from the inputs on, beside the values: each value carries its "
        "derivative along one direction (JVP). It needs no graph, and is cheap where few "
        "inputs have many results.",
        'gradcli jvp "sin(x)*x" --x 2 --vector 1',
        ("forward-mode", "dual number", "dual numbers", "tangent mode"),
        ("JVP", "reverse mode", "tangent"),
    ),
    Term(
        "seed gradient",
        "The gradient that a backward pass starts from: of the loss by itself, 1. Where the "
        "value is a vector, there is no such 1, and the seed says by which weights its "
        "elements are summed. PyTorch: the argument of backward().",
        'gradcli grad "x*x" --x 1,2 --seed 1,10',
        ("seed", "cotangent", "grad_output", "grad_outputs", "upstream", "initial gradient"),
        ("VJP", "backpropagation"),
    ),
    Term(
        "VJP",
        "Vector-Jacobian product: the row vector v (the seed) times the Jacobian. It is what "
        "one backward pass computes, without making the Jacobian.",
        'gradcli grad "x**2" --x 1,2,3 --seed 1,0,2',
        ("vector-Jacobian product", "vector jacobian product", "pullback"),
        ("JVP", "seed gradient", "jacobian"),
    ),
    Term(
        "JVP",
        "Jacobian-vector product: the Jacobian times a direction v, which is the derivative "
        "along v. Forward mode computes it beside the value.",
        'gradcli jvp "x**2" --x 1,2,3 --vector 1,0,0',
        ("Jacobian-vector product", "directional derivative", "pushforward"),
        ("VJP", "forward mode", "tangent"),
    ),
    Term(
        "tangent",
        "In forward mode, the derivative of a value along the chosen direction. In a plot, "
        "the straight line that touches the curve: gradcli plot EXPR --at VALUE.",
        'gradcli jvp "exp(x)" --x 0 --vector 2',
        (),
        ("JVP", "seed gradient"),
    ),
    Term(
        "Jacobian",
        "The matrix of all first derivatives of a vector: one row for each element of the "
        "result, one column for each element of the variable.",
        'gradcli jacobian "[x[0]*x[1], sin(x[0])]" --x 1,2',
        ("jacobian matrix",),
        ("gradient", "VJP", "JVP"),
    ),
    Term(
        "Hessian",
        "The matrix of all second derivatives of a number. It is symmetric; its eigenvalues "
        "tell a minimum (all positive) from a saddle point.",
        'gradcli hessian "x[0]**2*x[1]" --x 1,2',
        ("hessian matrix", "curvature"),
        ("Hessian-vector product", "create_graph"),
    ),
    Term(
        "Hessian-vector product",
        "The Hessian times a vector, which costs as much as a few gradients: the derivative "
        "of the gradient along the vector. The Hessian itself is never made.",
        'gradcli hessian "sum(x**3)" --x 1,2 --vector 1,0',
        ("hvp", "hessian vector product"),
        ("Hessian", "JVP"),
    ),
    Term(
        "gradient accumulation",
        "Each backward pass adds to .grad and replaces nothing. Training sets it to zero "
        "before each step (optimizer.zero_grad()), or lets several small batches add up on "
        "purpose.",
        'gradcli grad "x**2" --x 3 --passes 2 --retain-graph',
        ("accumulate", "zero_grad", "accumulation"),
        ("AccumulateGrad", "retain_graph"),
    ),
    Term(
        "retained gradient",
        "The gradient of an intermediate result, which the backward pass forgets unless it is"
        " asked to keep it: y.retain_grad() in a program, --retain y on a command line.",
        'gradcli grad "y = x**2; 3*y" --x 2 --retain y',
        ("retain_grad", "retained grad", "retain", "retains_grad"),
        ("leaf", "hook"),
    ),
    Term(
        "retain_graph",
        "Keeps what the nodes saved, so that the same graph can be walked once more. Without "
        "it the first backward pass frees it, and a second one is an error.",
        'gradcli grad "x**3" --x 2 --passes 2 --retain-graph',
        ("retain graph", "freed graph"),
        ("saved tensor", "create_graph"),
    ),
    Term(
        "create_graph",
        "Records the backward pass itself, so that the gradient can be differentiated again. "
        "Second and higher derivatives need it.",
        'gradcli grad "x**4" --x 2 --order 2',
        ("create graph", "double backward", "higher-order gradient", "second derivative"),
        ("Hessian", "retain_graph"),
    ),
    # what stops or changes gradients
    Term(
        "detach",
        "x.detach() has the same values and the same memory as x, but no graph: it is a "
        "constant to the backward pass, and no gradient goes through it. Writing into it "
        "writes into x.",
        'gradcli grad "x * x.detach()" --x 3',
        ("stop gradient", "stop-gradient"),
        ("no_grad", "requires_grad"),
    ),
    Term(
        "no_grad",
        "with no_grad(): what runs inside is not recorded. It saves memory where no gradients"
        " are needed, and lets a program change its leaves in place, as an optimizer does. On"
        " a command line, --no-grad NAME makes one variable a constant.",
        'gradcli grad "with no_grad():\n    c = x*x\nc*x" --x 3',
        ("no grad", "inference_mode", "enable_grad", "set_grad_enabled"),
        ("detach", "requires_grad"),
    ),
    Term(
        "in-place operation",
        "An operation that writes its result into the memory of an input: x.add_(1), x *= 2, "
        "x[0] = 3. PyTorch refuses it on a leaf that requires grad, and where the backward "
        "pass needs what was overwritten.",
        'gradcli grad "y = x*1; y[0] = 0; sum(y*y)" --x 1,2',
        ("in-place", "inplace", "in place"),
        ("version", "view", "saved tensor"),
    ),
    Term(
        "version",
        "A counter that each tensor has, and each write in place raises. A node notes the "
        "version of what it saves. If it has changed when the backward pass needs it, the "
        "pass stops: 'one of the variables needed for gradient computation has been modified "
        "by an inplace operation'.",
        'gradcli eval "y = x*1; y.add_(1); y._version" --x 1,2',
        ("version counter", "in-place version", "_version"),
        ("in-place operation", "saved tensor"),
    ),
    Term(
        "view",
        "A tensor that shares the memory of another: x[0], x.T, x.reshape(2, 3). What is "
        "written into one is seen in the other, and gradients follow.",
        'gradcli grad "y = x*1; v = y[0]; v.mul_(5); sum(y)" --x 1,2',
        ("base",),
        ("in-place operation", "version"),
    ),
    Term(
        "hook",
        "A function that is called with a gradient as it passes. It may look at it, or return"
        " another one in its place: x.register_hook(f) in a program, --hook 'NAME: EXPR of "
        "grad' on a command line.",
        "gradcli grad \"y = x**2; 3*y\" --x 2 --hook 'y: grad*10'",
        ("register_hook", "hooks", "backward hook"),
        ("retained gradient",),
    ),
    Term(
        "broadcasting",
        "Arrays of different shapes are stretched to a common one: (3,) with (2, 3). In the "
        "backward pass the gradient is summed over what was stretched, so that it has the "
        "variable's own shape.",
        'gradcli grad "sum(A*b)" --A "1,2;3,4" --b 1,1',
        ("unbroadcast", "sum_to_size"),
        ("gradient",),
    ),
    Term(
        "checkpointing",
        "Saving less in the forward pass, and computing it again in the backward pass: less "
        "memory for more time.",
        'gradcli graph "sum(tanh(x)**2)" --x 1,2 --saved',
        ("gradient checkpointing", "activation checkpointing"),
        ("saved tensor",),
    ),
    # points and numbers
    Term(
        "kink",
        "A point where a function has no derivative, for its slopes to the left and to the "
        "right differ: relu and abs at 0. Systems choose a value there; gradcli takes "
        "PyTorch's and says so.",
        'gradcli grad "relu(x)" --x 0',
        ("subgradient", "non-differentiable", "nondifferentiable", "subdifferential"),
        ("gradient",),
    ),
    Term(
        "vanishing gradient",
        "Gradients that become smaller at each layer, until the first layers learn nothing: "
        "sigmoid has a slope of at most 1/4. Where they grow instead, they explode.",
        'gradcli graph "sum(sigmoid(sigmoid(sigmoid(w*x))))" --w 2 --x 3 --norms',
        ("exploding gradient", "vanishing gradients", "exploding gradients", "saturation"),
        ("chain rule",),
    ),
    Term(
        "anomaly",
        "A NaN or an infinity in a value or a gradient. --detect-anomaly stops at the first "
        "one and says which operation made it.",
        'gradcli grad "x*log(x)" --x 0 --detect-anomaly',
        ("detect_anomaly", "nan", "anomaly detection"),
        ("kink",),
    ),
    Term(
        "numerical gradient",
        "The derivative by differences of values: (f(x+h) - f(x-h)) / 2h. It is slow and has "
        "few digits, but depends on no rule, so it checks the rules. gradcli check and "
        "torch.autograd.gradcheck compare with it.",
        'gradcli check "sin(x)*x" --x 2',
        ("finite differences", "finite difference", "gradcheck", "numerical differentiation"),
        ("automatic differentiation",),
    ),
    Term(
        "automatic differentiation",
        "Exact derivatives of a program, by the chain rule over its operations. It is neither"
        " a formula (symbolic differentiation) nor differences (numerical differentiation), "
        "though gradcli has all three: grad, diff, check.",
        'gradcli grad "sin(x)*x" --x 2',
        ("autodiff", "autograd", "ad", "symbolic differentiation"),
        ("reverse mode", "forward mode", "numerical gradient"),
    ),
    Term(
        "implicit differentiation",
        "The derivative of a variable that an equation defines, such as y in x² + y² = 1, "
        "without solving it: differentiate both sides.",
        'gradcli diff "x**2 + y**2 == 1" --of y --wrt x',
        ("implicit function",),
        ("partial derivative",),
    ),
    Term(
        "gradient descent",
        "Steps against the gradient: x becomes x - rate*gradient. A small rate is slow, a "
        "large one leaves the minimum.",
        'gradcli plot "x**2" --x=-2:2 --descend 0.1 --at 1.8 --csv',
        ("learning rate", "descent", "step size", "sgd"),
        ("gradient",),
    ),
    Term(
        "loss",
        "The number that training makes small: how far the predictions are from the targets. "
        "The backward pass starts from it.",
        'gradcli grad "mean((w*x + b - t)**2)" --w 1 --b 0 --x 1,2,3 --t 2,4,6 --wrt w,b',
        ("objective", "cost function", "loss function"),
        ("backpropagation", "gradient descent"),
    ),
    # measured values
    Term(
        "uncertainty",
        "How far a measured number may be off, as a standard deviation: 0.995 ± 0.002. That of a "
        "result follows from those of the inputs by the gradient, the square root of the sum of "
        "(df/dx u(x))², with terms for inputs that are correlated. eval, grad, map, root and "
        "minimize propagate what stands behind ±, or --uncertainty x=0.002; diff --uncertainty "
        "prints the formula, and --budget the share of each input. The guide: docs/guide/values.md.",
        'gradcli eval "4*pi**2*L/T**2" --L 0.995±0.002 --T 2.003±0.005 --budget',
        (
            "error propagation",
            "propagation of uncertainty",
            "propagation of errors",
            "gaussian error propagation",
            "standard uncertainty",
            "measurement error",
            "uncertainties",
            "error bars",
            "sigma",
        ),
        ("gradient", "monte carlo"),
    ),
    Term(
        "Monte Carlo",
        "The uncertainty of a result from random draws of the inputs, where it is no straight line "
        "over the range of their uncertainties, so that the gradient does not tell it.",
        'gradcli eval "exp(x)" --x 1±0.8 --monte-carlo 10000',
        ("monte carlo propagation", "sampling"),
        ("uncertainty",),
    ),
    Term(
        "chi2",
        "The sum of the squares of a fit's residuals, each divided by the uncertainty of its datum. "
        "If the model and the uncertainties are right it is about dof, the number of data minus that "
        "of parameters; p_value is the probability of one as large or larger. residual_deviation is "
        "the square root of chi2/dof; without uncertainties, it is that of the data. Counts have cash "
        "in its place, by Poisson's likelihood. The tutorial: docs/tutorials/fit.md.",
        'gradcli minimize "sum(((y - a*x - b)/0.1)**2)" --x 0,1,2 --y 1.1,2.9,5.2 --a 1 --b 1 --no-grad x,y',
        ("chi squared", "chi square", "reduced chi2", "p value", "goodness of fit", "dof", "cash"),
        ("uncertainty", "AIC"),
    ),
    Term(
        "AIC",
        "Akaike's information criterion: of several models of the same data the one with the least is "
        "best, and a difference of 10 is clear. It is chi2 + 2k for k parameters (n log(chi2/n) + 2k "
        "without uncertainties of the n data, cash + 2k of counts); BIC, the Bayesian one, has k log(n) "
        "in place of 2k. gradcli fit --aic prints both, and --json has them.",
        'gradcli eval "[chi2 + 2*k, chi2 + k*log(n)]" --chi2 16.46 --k 3 --n 10',
        ("BIC", "information criterion", "model selection", "model comparison"),
        ("chi2",),
    ),
)


def key(name: str) -> str:
    """A name as terms are compared: small letters, spaces for `_` and `-`, without `s` at the end or `()`."""
    plain = re.sub(r"[\s_-]+", " ", name.lower().strip().removesuffix("()").strip("."))
    plain = plain.strip().removeprefix("torch.").removeprefix("the ").removeprefix("tensor.")
    return plain.removesuffix("s") if len(plain) > 3 and not plain.endswith("ss") else plain


def names_of(term: Term) -> list[str]:
    """Every name of a term."""
    return [term.name, *term.also]


def find(name: str) -> Term | None:
    """The term of that name; None where there is none."""
    wanted = key(name)
    for names in (lambda t: (t.name,), lambda t: t.also):
        for term in TERMS:
            if any(key(other) == wanted for other in names(term)):
                return term
    return None


def close(name: str) -> list[str]:
    """The names of terms that a misspelt one is closest to."""
    from gradcli.language.located_errors import suggest

    return suggest(name, [other for term in TERMS for other in names_of(term)])


def explained(term: Term, columns: int) -> list[str]:
    """A term as lines: its names, its meaning, an example, terms beside it."""
    from gradcli.commands.terminal import wrapped

    unlike: dict[str, str] = {}  # of spellings that differ by `_` or `-` alone, the first
    for name in names_of(term):
        unlike.setdefault(key(name), name)
    others = [*unlike.values()][1:5]
    heading = term.name + (f"  (also: {', '.join(others)})" if others else "")
    lines = [wrapped(heading, columns, rest="    ")]
    lines.append(wrapped(term.text, columns, first="  ", rest="  "))
    lines.append("  example")
    lines += [f"    {line}" for line in term.example.split("\n")]
    if term.see:
        lines.append(f"  see also: {', '.join(term.see)}")
    return lines


def listed(columns: int) -> list[str]:
    """All terms, a line each, with the beginning of what they mean."""
    room = max(len(term.name) for term in TERMS) + 2
    lines = []
    for term in sorted(TERMS, key=lambda t: t.name.lower()):
        first = re.split(r"(?<=\.)\s", term.text)[0].rstrip(":.")
        text = f"{term.name:<{room}}{first}"
        lines.append(text if len(text) <= columns else f"{text[: columns - 1].rstrip()}…")
    return lines

#!/usr/bin/env bash
# CasADi: d/dy x**y at (0, 2) is nan, and x*log(x) at 0 has slope -inf, not nan: x/x is cancelled in the graph.
#
# Guess: 0**y is 0 for every y near 2, so its slope by y is 0; and x*log(x) has log(0) + 0/0, which is nan.
# Seen with casadi 3.8.2 (SX): nan and -inf. if_else selects and does not multiply, so where(x > 0, sqrt(x), 0) has
# slope 0 at 0 where frameworks that multiply by a mask have nan.
#
# Each line below is a question, by its name in the table of kinks, and the answer. CASADI=VERSION asks another release; what
# is another answer is shown, and the script fails.
set -euo pipefail
. "$(dirname "$0")/kinks/ask.sh"
with "casadi==${CASADI:-3.8.2}" numpy==2.4.6
cat > "$work/questions.py" <<'PY'
from asking import INF, composed, missing, run  # first: it bounds the threads

import casadi as ca


def size(v):
    return (len(v), len(v[0])) if isinstance(v, list) and isinstance(v[0], list) else (len(v), 1) if isinstance(v, list) else (1, 1)


def d(f, *at, only=None, order=1):
    """The gradient of f's value at the point, by every argument or by one of them."""

    def answer():
        xs = [ca.SX.sym(f"x{k}", *size(v)) for k, v in enumerate(at)]
        out = f(*xs)
        for _ in range(order - 1):
            out = ca.gradient(out, xs[0])
        grads = [ca.gradient(out, x) for x in xs]
        found = ca.Function("g", xs, grads).call([ca.DM(v) for v in at])
        found = [g.full().tolist() for g in found]
        found = [[row[0] for row in g] if len(g[0]) == 1 else g for g in found]
        found = [g[0] if size(v) == (1, 1) else g for g, v in zip(found, at)]
        return found[only] if only is not None else found[0] if len(found) == 1 else found

    return answer


def value_and(f, *at):
    grad = d(f, *at)
    return lambda: [float(f(*map(ca.DM, at))), *grad()]


def prod(x):
    out = 1
    for k in range(x.shape[0]):
        out = out * x[k]
    return out


def cumprods(x):
    return x[0] + x[0] * x[1] + x[0] * x[1] * x[2]


Q = {
    "Q1": d(ca.fabs, 0.0),
    "Q1b": d(ca.fabs, -0.0),
    "Q2": d(ca.sqrt, 0.0),
    "Q3": d(ca.fmax, 1.0, 1.0),
    "Q4": d(ca.mmax, [1.0, 3.0, 3.0]),
    "Q4b": missing("mmax gives no index"),
    "Q5": d(lambda x: ca.fmax(x, 0.0), 0.0),
    "Q5b": missing(),
    "Q6": d(lambda x: x**0, 0.0),
    "Q6b": d(lambda x: x**0.0, 0.0),
    "Q7": d(lambda x: x**1, 0.0),
    "Q7b": d(lambda x: x**2.0, 0.0),
    "Q8": d(ca.power, 0.0, 2.0, only=1),
    "Q8b": d(ca.power, 0.0, 0.0, only=1),
    "Q8c": d(ca.power, 0.0, 0.0, only=0),
    "Q9": d(ca.power, -2.0, 2.0),
    "Q10": d(ca.norm_2, [0.0, 0.0]),
    "Q11": d(ca.atan2, 0.0, 0.0),
    "Q12": composed("fmin(fmax(x, 0), 1)", d(lambda x: ca.fmin(ca.fmax(x, 0), 1), 0.0)),
    "Q12b": composed("fmin(fmax(x, 0), 1)", d(lambda x: ca.fmin(ca.fmax(x, 0), 1), 1.0)),
    "Q13": d(ca.sign, 0.0),
    "Q13b": d(ca.floor, 1.0),
    "Q13c": missing(),
    "Q14": d(lambda x: ca.if_else(x > 0, ca.sqrt(x), 0.0), 0.0),
    "Q15": d(lambda x: x * ca.log(x), 0.0),
    "Q15b": missing(),
    "Q16": composed("x[0]*x[1]*x[2]", d(prod, [2.0, 0.0, 3.0])),
    "Q16b": composed("x[0]*x[1]*x[2]", d(prod, [0.0, 0.0, 3.0])),
    "Q16c": composed("products", d(cumprods, [2.0, 0.0, 3.0])),
    "Q17": missing(),
    "Q17b": missing(),
    "Q17c": d(ca.mmin, [1.0, 1.0]),
    "Q18": d(ca.logsumexp, [-INF, -INF]),
    "Q18b": d(ca.logsumexp, [INF, 0.0]),
    "Q19": missing(),
    "Q19b": missing(),
    "Q20": d(ca.acos, 1.0),
    "Q20b": d(ca.atanh, 1.0),
    "Q21": d(ca.hypot, 0.0, 0.0),
    "Q22": composed("fmod", d(lambda x: ca.fmod(x, 2), 4.0)),
    "Q22b": composed("fmod", d(ca.fmod, 4.0, 2.0, only=1)),
    "Q22c": composed("remainder, of IEEE 754", value_and(ca.remainder, -5.0, 3.0)),
    "Q22d": value_and(ca.fmod, -5.0, 3.0),
    "Q23": d(lambda x: ca.fabs(x) ** 3, 0.0, order=2),
    "Q23b": composed("fmax(x, 0)", d(lambda x: ca.fmax(x, 0) ** 2, 0.0, order=2)),
    "Q24": missing(),
    "Q25": d(lambda x: ca.asin(ca.sin(x)), ca.pi / 2),
    "Q26": d(ca.det, [[1.0, 2.0], [2.0, 4.0]]),
    "Q27": d(lambda A: ca.sum1(ca.eig_symbolic(A)), [[1.0, 0.0], [0.0, 1.0]]),
    "Q27b": d(lambda A: ca.eig_symbolic(A)[0], [[1.0, 0.0], [0.0, 1.0]]),
    "Q28": d(lambda x: x ** (1 / 3), 0.0),
    "Q28b": missing(),
    "Q29": d(lambda x: ca.log1p(ca.exp(x)), 1000.0),
    "Q29b": d(lambda x: ca.log1p(ca.exp(x)), -1000.0),
    "Q29c": missing(),
    "Q29d": d(lambda x: 1 / (1 + ca.exp(-x)), -1000.0),
    "Q30": d(lambda x: ca.sum1(x / ca.norm_2(x)), [0.0, 0.0]),
}

Q |= {
    "K3": d(ca.fmin, 1.0, 1.0),
    "K13": d(lambda x: ca.norm_1(x), [0.0, 2.0]),
    "K14b": d(ca.ceil, 1.0),
    "K15": d(ca.asin, 1.0),
}

if __name__ == "__main__":
    run(Q)
PY
cat > "$work/expected" <<'END'
Q1: 0
Q1b: 0
Q2: inf
Q3: [0.5, 0.5]
Q4: [0, 0.5, 0.5]
Q4b: no such function (mmax gives no index)
Q5: 0.5
Q5b: no such function
Q6: 0
Q6b: 0
Q7: 1
Q7b: 0
Q8: nan
Q8b: -inf
Q8c: nan
Q9: [-4, nan]
Q10: [nan, nan]
Q11: [nan, nan]
Q12: 0.5 (as fmin(fmax(x, 0), 1))
Q12b: 0.5 (as fmin(fmax(x, 0), 1))
Q13: 0
Q13b: 0
Q13c: no such function
Q14: 0
Q15: -inf
Q15b: no such function
Q16: [0, 6, 0] (as x[0]*x[1]*x[2])
Q16b: [0, 0, 0] (as x[0]*x[1]*x[2])
Q16c: [1, 8, 0] (as products)
Q17: no such function
Q17b: no such function
Q17c: [0.5, 0.5]
Q18: [nan, nan]
Q18b: [nan, nan]
Q19: no such function
Q19b: no such function
Q20: -inf
Q20b: inf
Q21: [nan, nan]
Q22: 1 (as fmod)
Q22b: -2 (as fmod)
Q22c: [1, 1, 2] (as remainder, of IEEE 754)
Q22d: [-2, 1, 1]
Q23: 0
Q23b: 0.5 (as fmax(x, 0))
Q24: no such function
Q25: inf
Q26: [[4, -2], [-2, 1]]
Q27: [[1, 0], [0, 1]]
Q27b: [[nan, nan], [nan, nan]]
Q28: inf
Q28b: no such function
Q29: nan
Q29b: 0
Q29c: no such function
Q29d: nan
Q30: [nan, nan]
K3: [0.5, 0.5]
K13: [0, 1]
K14b: 0
K15: inf
END
as_with "casadi 3.8.2"

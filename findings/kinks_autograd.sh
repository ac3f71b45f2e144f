#!/usr/bin/env bash
# autograd (HIPS): clip has slope 0 at both ends, and the gradient of prod is nan at a factor that is 0.
#
# Guess: clip at its bounds passes the gradient on, as NumPy's own closed interval suggests; prod is a polynomial, so its
# gradient at [2, 0, 3] is [0, 6, 0].
# Seen with autograd 1.9.1: clip has 0 at both ends, while maximum and minimum share a tie; the gradient of prod is
# [0, nan, 0]; clip has no derivative by its bounds, nor do cumprod, median, cbrt and fmod have one.
#
# Each line below is a question, by its name in the table of kinks, and the answer. AUTOGRAD=VERSION asks another release; what
# is another answer is shown, and the script fails.
set -euo pipefail
. "$(dirname "$0")/kinks/ask.sh"
with "autograd==${AUTOGRAD:-1.9.1}" scipy==1.17.1 numpy==2.4.6
cat > "$work/questions.py" <<'PY'
from asking import INF, missing, run, show  # first: it bounds the threads

import autograd.numpy as np
import autograd.scipy.special as special
from autograd import grad


def T(v):
    return np.array(v, dtype=float) if isinstance(v, list) else v


def d(f, *at, only=None, order=1):
    """The gradient of f's value at the point, by every argument or by one of them."""

    def answer():
        def by(k, T):
            g = grad(f, k)
            if order == 2:
                g = grad(g, k)
            return np.asarray(g(*map(T, at))).tolist()

        def all_by(T):
            found = [by(k, T) for k in range(len(at))] if only is None else [by(only, T)]
            return show(found[0] if len(found) == 1 else found)

        try:
            return all_by(T)
        except ZeroDivisionError:
            return "raises ZeroDivisionError for a Python float; for an array: " + all_by(np.array)

    return answer


def value_and(f, *at):
    g = d(f, *at)
    return lambda: f"[{float(f(*map(T, at))):g}, {g()[1:]}"


W = np.array([1.0, 2.0, 3.0])
Q = {
    "Q1": d(np.abs, 0.0),
    "Q1b": d(np.abs, -0.0),
    "Q2": d(np.sqrt, 0.0),
    "Q3": d(np.maximum, 1.0, 1.0),
    "Q4": d(np.max, [1.0, 3.0, 3.0]),
    "Q4b": missing("max gives no index"),
    "Q5": d(lambda x: np.maximum(x, 0.0), 0.0),
    "Q5b": missing(),
    "Q6": d(lambda x: x**0, 0.0),
    "Q6b": d(lambda x: x**0.0, 0.0),
    "Q7": d(lambda x: x**1, 0.0),
    "Q7b": d(lambda x: x**2.0, 0.0),
    "Q8": d(np.power, 0.0, 2.0, only=1),
    "Q8b": d(np.power, 0.0, 0.0, only=1),
    "Q8c": d(np.power, 0.0, 0.0, only=0),
    "Q9": d(np.power, -2.0, 2.0),
    "Q10": d(np.linalg.norm, [0.0, 0.0]),
    "Q11": d(np.arctan2, 0.0, 0.0),
    "Q12": d(lambda x: np.clip(x, 0, 1), 0.0),
    "Q12b": d(lambda x: np.clip(x, 0, 1), 1.0),
    "Q13": d(np.sign, 0.0),
    "Q13b": d(np.floor, 1.0),
    "Q13c": d(np.round, 0.5),
    "Q14": d(lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0),
    "Q15": d(lambda x: x * np.log(x), 0.0),
    "Q15b": d(lambda x: special.xlogy(x, x), 0.0) if hasattr(special, "xlogy") else missing(),
    "Q16": d(np.prod, [2.0, 0.0, 3.0]),
    "Q16b": d(np.prod, [0.0, 0.0, 3.0]),
    "Q16c": d(lambda x: np.sum(np.cumprod(x)), [2.0, 0.0, 3.0]),
    "Q17": d(np.median, [1.0, 2.0, 2.0, 3.0]),
    "Q17b": d(lambda x: np.sum(np.sort(x) * W), [2.0, 1.0, 2.0]),
    "Q17c": d(np.min, [1.0, 1.0]),
    "Q18": d(special.logsumexp, [-INF, -INF]),
    "Q18b": d(special.logsumexp, [INF, 0.0]),
    "Q19": d(np.sinc, 0.0),
    "Q19b": d(np.sinc, 0.0, order=2),
    "Q20": d(np.arccos, 1.0),
    "Q20b": d(np.arctanh, 1.0),
    "Q21": d(np.hypot, 0.0, 0.0),
    "Q22": d(lambda x: x % 2, 4.0),
    "Q22b": d(np.mod, 4.0, 2.0, only=1),
    "Q22c": value_and(np.mod, -5.0, 3.0),
    "Q22d": value_and(np.fmod, -5.0, 3.0),
    "Q23": d(lambda x: np.abs(x) ** 3, 0.0, order=2),
    "Q23b": d(lambda x: np.maximum(x, 0) ** 2, 0.0, order=2),
    "Q24": d(np.std, [1.0, 1.0, 1.0]),
    "Q25": d(lambda x: np.arcsin(np.sin(x)), np.pi / 2),
    "Q26": d(np.linalg.det, [[1.0, 2.0], [2.0, 4.0]]),
    "Q27": d(lambda A: np.sum(np.linalg.eigh(A)[0]), [[1.0, 0.0], [0.0, 1.0]]),
    "Q27b": d(lambda A: np.linalg.eigh(A)[0][0], [[1.0, 0.0], [0.0, 1.0]]),
    "Q28": d(lambda x: x ** (1 / 3), 0.0),
    "Q28b": d(np.cbrt, 0.0),
    "Q29": d(lambda x: np.log1p(np.exp(x)), 1000.0),
    "Q29b": d(lambda x: np.log1p(np.exp(x)), -1000.0),
    "Q29c": d(special.expit, 1000.0),
    "Q29d": d(lambda x: 1 / (1 + np.exp(-x)), -1000.0),
    "Q30": d(lambda x: np.sum(x / np.linalg.norm(x)), [0.0, 0.0]),
}

Q |= {
    "K1": d(np.fmax, 1.0, 1.0),
    "K1b": d(np.fmin, 1.0, 1.0),
    "K2": d(lambda x, y: np.clip(x, y, 5.0), 1.0, 1.0),
    "K2b": d(lambda x, y: np.clip(x, -5.0, y), 1.0, 1.0),
    "K3": d(np.minimum, 1.0, 1.0),
    "K10": d(lambda x: np.max(x, 0), [1.0, 3.0, 3.0]),
    "K13": d(lambda x: np.linalg.norm(x, 1), [0.0, 2.0]),
    "K14": d(np.trunc, 1.0),
    "K14b": d(np.ceil, 1.0),
    "K15": d(np.arcsin, 1.0),
}

if __name__ == "__main__":
    run(Q)
PY
cat > "$work/expected" <<'END'
Q1: 0
Q1b: 0
Q2: raises ZeroDivisionError for a Python float; for an array: inf
Q3: [0.5, 0.5]
Q4: [0, 0.5, 0.5]
Q4b: no such function (max gives no index)
Q5: 0.5
Q5b: no such function
Q6: 0
Q6b: 0
Q7: 1
Q7b: 0
Q8: 0
Q8b: 0
Q8c: 0
Q9: [-4, nan]
Q10: [nan, nan]
Q11: [nan, nan]
Q12: 0
Q12b: 0
Q13: 0
Q13b: 0
Q13c: 0
Q14: raises ZeroDivisionError for a Python float; for an array: nan
Q15: nan
Q15b: no such function
Q16: [0, nan, 0]
Q16b: [nan, nan, 0]
Q16c: raises NotImplementedError: VJP of cumprod wrt argnums (0,) not defined
Q17: raises NotImplementedError: VJP of median wrt argnums (0,) not defined
Q17b: [2, 1, 3]
Q17c: [0.5, 0.5]
Q18: [nan, nan]
Q18b: [nan, 0]
Q19: nan
Q19b: nan
Q20: -inf
Q20b: inf
Q21: [nan, nan]
Q22: 1
Q22b: -2
Q22c: [1, 1, 2]
Q22d: raises NotImplementedError: VJP of fmod wrt argnums (0,) not defined
Q23: 0
Q23b: 0.5
Q24: [nan, nan, nan]
Q25: inf
Q26: raises LinAlgError: Singular matrix
Q27: [[1, 0], [0, 1]]
Q27b: [[1, 0], [0, 0]]
Q28: raises ZeroDivisionError for a Python float; for an array: inf
Q28b: raises NotImplementedError: VJP of cbrt wrt argnums (0,) not defined
Q29: nan
Q29b: 0
Q29c: 0
Q29d: nan
Q30: [nan, nan]
K1: [0.5, 0.5]
K1b: [0.5, 0.5]
K2: raises NotImplementedError: VJP of clip wrt argnum 0 not defined
K2b: raises NotImplementedError: VJP of clip wrt argnum 0 not defined
K3: [0.5, 0.5]
K10: [0, 0.5, 0.5]
K13: raises NotImplementedError: Gradient of norm not implemented for ord=1
K14: 0
K14b: 0
K15: inf
END
as_with "autograd 1.9.1"

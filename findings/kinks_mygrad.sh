#!/usr/bin/env bash
# MyGrad: a tie of maximum gives no gradient to either side, and leaky_relu'(0) is neither of its two slopes.
#
# Guess: whoever wins a tie of maximum(x, y), the two gradients add up to 1; leaky_relu at 0 has the leak or 1; the
# slopes of arccos and arctanh at 1 are both infinite.
# Seen with mygrad 2.5.0: [0, 0] for maximum(1, 1), for minimum too; 0 for leaky_relu(x, 0.01) at 0; 0 for arccos and
# arcsin at 1, but inf for arctanh; sign, floor, round, mod and fmod refuse tensors.
#
# Each line below is a question, by its name in the table of kinks, and the answer. MYGRAD=VERSION asks another release; what
# is another answer is shown, and the script fails.
set -euo pipefail
. "$(dirname "$0")/kinks/ask.sh"
with "mygrad==${MYGRAD:-2.5.0}" scipy==1.17.1 numpy==2.4.6
cat > "$work/questions.py" <<'PY'
from asking import missing, run  # first: it bounds the threads

import mygrad as mg
import numpy as np
from mygrad.nnet import activations


def d(f, *at, only=None):
    """The gradient of f's value at the point, by every argument or by one of them."""

    def answer():
        xs = [mg.tensor(v, dtype=np.float64) for v in at]
        f(*xs).backward()
        found = [None if x.grad is None else x.grad.tolist() for x in xs]
        return found[only] if only is not None else found[0] if len(found) == 1 else found

    return answer


def value_and(f, *at):
    grad = d(f, *at)
    return lambda: [f(*map(mg.tensor, at)).item(), *grad()]


SECOND = missing("no second derivatives")
Q = {
    "Q1": d(mg.abs, 0.0),
    "Q1b": d(mg.abs, -0.0),
    "Q2": d(mg.sqrt, 0.0),
    "Q3": d(mg.maximum, 1.0, 1.0),
    "Q4": d(mg.max, [1.0, 3.0, 3.0]),
    "Q4b": missing("max gives no index"),
    "Q5": d(lambda x: mg.maximum(x, 0.0), 0.0),
    "Q5b": d(activations.relu, 0.0),
    "Q6": d(lambda x: x**0, 0.0),
    "Q6b": d(lambda x: x**0.0, 0.0),
    "Q7": d(lambda x: x**1, 0.0),
    "Q7b": d(lambda x: x**2.0, 0.0),
    "Q8": d(mg.power, 0.0, 2.0, only=1),
    "Q8b": d(mg.power, 0.0, 0.0, only=1),
    "Q8c": d(mg.power, 0.0, 0.0, only=0),
    "Q9": d(mg.power, -2.0, 2.0),
    "Q10": d(mg.linalg.norm, [0.0, 0.0]),
    "Q11": d(mg.arctan2, 0.0, 0.0),
    "Q12": d(lambda x: mg.clip(x, 0, 1), 0.0),
    "Q12b": d(lambda x: mg.clip(x, 0, 1), 1.0),
    "Q13": d(mg.sign, 0.0),
    "Q13b": d(mg.floor, 1.0),
    "Q13c": d(mg.rint, 0.5),
    "Q14": d(lambda x: mg.where(x > 0, mg.sqrt(x), 0.0), 0.0),
    "Q15": d(lambda x: x * mg.log(x), 0.0),
    "Q15b": missing(),
    "Q16": d(mg.prod, [2.0, 0.0, 3.0]),
    "Q16b": d(mg.prod, [0.0, 0.0, 3.0]),
    "Q16c": d(lambda x: mg.cumprod(x).sum(), [2.0, 0.0, 3.0]),
    "Q17": missing(),
    "Q17b": missing(),
    "Q17c": d(mg.min, [1.0, 1.0]),
    "Q18": missing(),
    "Q18b": missing(),
    "Q19": d(mg.sinc, 0.0),
    "Q19b": SECOND,
    "Q20": d(mg.arccos, 1.0),
    "Q20b": d(mg.arctanh, 1.0),
    "Q21": missing(),
    "Q22": d(lambda x: mg.mod(x, 2), 4.0),
    "Q22b": d(mg.mod, 4.0, 2.0, only=1),
    "Q22c": value_and(mg.mod, -5.0, 3.0),
    "Q22d": value_and(mg.fmod, -5.0, 3.0),
    "Q23": SECOND,
    "Q23b": SECOND,
    "Q24": d(mg.std, [1.0, 1.0, 1.0]),
    "Q25": d(lambda x: mg.arcsin(mg.sin(x)), np.pi / 2),
    "Q26": missing(),
    "Q27": missing(),
    "Q27b": missing(),
    "Q28": d(lambda x: x ** (1 / 3), 0.0),
    "Q28b": d(mg.cbrt, 0.0),
    "Q29": d(lambda x: mg.log1p(mg.exp(x)), 1000.0),
    "Q29b": d(lambda x: mg.log1p(mg.exp(x)), -1000.0),
    "Q29c": d(activations.sigmoid, 1000.0),
    "Q29d": d(lambda x: 1 / (1 + mg.exp(-x)), -1000.0),
    "Q30": d(lambda x: (x / mg.linalg.norm(x)).sum(), [0.0, 0.0]),
}

Q |= {
    "K3": d(mg.minimum, 1.0, 1.0),
    "K4": d(activations.hard_tanh, -1.0),
    "K4b": d(activations.hard_tanh, 1.0),
    "K5": d(lambda x: activations.leaky_relu(x, 0.01), 0.0),
    "K9": d(lambda x: activations.elu(x, 2.0), 0.0),
    "K10": d(lambda x: mg.max(x, 0), [1.0, 3.0, 3.0]),
    "K13": d(lambda x: mg.linalg.norm(x, 1), [0.0, 2.0]),
    "K15": d(mg.arcsin, 1.0),
}

if __name__ == "__main__":
    run(Q)
PY
cat > "$work/expected" <<'END'
Q1: 0
Q1b: 0
Q2: inf
Q3: [0, 0]
Q4: [0, 1, 0]
Q4b: no such function (max gives no index)
Q5: 0
Q5b: 0
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
Q13: raises ValueError: <ufunc 'sign'> cannot involve non-constant mygrad tensors.
Q13b: raises ValueError: <ufunc 'floor'> cannot involve non-constant mygrad tensors.
Q13c: raises ValueError: <ufunc 'rint'> cannot involve non-constant mygrad tensors.
Q14: nan
Q15: nan
Q15b: no such function
Q16: [0, 6, 0]
Q16b: [0, 0, 0]
Q16c: [1, 8, 0]
Q17: no such function
Q17b: no such function
Q17c: [1, 0]
Q18: no such function
Q18b: no such function
Q19: 0
Q19b: no such function (no second derivatives)
Q20: 0
Q20b: inf
Q21: no such function
Q22: raises ValueError: <ufunc 'remainder'> cannot involve non-constant mygrad tensors.
Q22b: raises ValueError: <ufunc 'remainder'> cannot involve non-constant mygrad tensors.
Q22c: raises ValueError: <ufunc 'remainder'> cannot involve non-constant mygrad tensors.
Q22d: raises ValueError: <ufunc 'fmod'> cannot involve non-constant mygrad tensors.
Q23: no such function (no second derivatives)
Q23b: no such function (no second derivatives)
Q24: [nan, nan, nan]
Q25: 0
Q26: no such function
Q27: no such function
Q27b: no such function
Q28: inf
Q28b: inf
Q29: nan
Q29b: 0
Q29c: 0
Q29d: nan
Q30: [nan, nan]
K3: [0, 0]
K4: 0
K4b: 0
K5: 0
K9: 1
K10: [0, 1, 0]
K13: [0, 1]
K15: 0
END
as_with "mygrad 2.5.0"

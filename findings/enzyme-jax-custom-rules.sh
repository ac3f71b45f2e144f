#!/usr/bin/env bash
# Enzyme for JAX: custom_jvp, custom_vjp and stop_gradient are not seen, and so logaddexp(x, x) has slopes that add up to 2.
#
# Guess: jax.grad of a function and of the same function behind `enzyme_jax_ir` agree; a rule that a program or JAX itself
# has given with custom_jvp or custom_vjp holds for both, or is refused.
# Seen with enzyme-ad 0.0.16, jax 0.10.2 (CPU): Enzyme differentiates the compiled code, where no such rule is left. A
# straight-through estimator has gradient 0 in place of 1 (it does not learn), a gradient clipped to 1 is 10, x*stop_gradient(x)
# has twice its slope, and relu has 1 at 0 in place of 0. JAX's own functions lean on such rules: the gradient of
# logaddexp at (0, 0) is [0.5, 1.5] in place of [0.5, 0.5], of sinc at 0 it is nan in place of 0. Nothing is said.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet enzyme-ad==0.0.16 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$work/ask.py" <<'PY'
import jax
import jax.numpy as jnp
from enzyme_ad.jax import enzyme_jax_ir

jax.config.update("jax_enable_x64", True)


@jax.custom_jvp
def straight_through(x):
    return jnp.round(x)


straight_through.defjvp(lambda primals, tangents: (jnp.round(primals[0]), tangents[0]))


@jax.custom_vjp
def clipped_on_the_way_back(x):
    return x


clipped_on_the_way_back.defvjp(
    lambda x: (x, None), lambda saved, gradient: (jnp.clip(gradient, -1.0, 1.0),)
)

CASES = {
    "straight-through round": (straight_through, [0.3]),
    "gradient clipped to 1": (lambda x: 10 * clipped_on_the_way_back(x), [0.3]),
    "x*stop_gradient(x)": (lambda x: x * jax.lax.stop_gradient(x), [0.3]),
    "relu at 0": (jax.nn.relu, [0.0]),
    "logaddexp(0, 0)": (lambda x: jnp.logaddexp(x[0], x[1]), [0.0, 0.0]),
    "sinc at 0": (jnp.sinc, [0.0]),
    "exp(x)*x": (lambda x: jnp.exp(x) * x, [0.0]),
}


def slope(function, at):
    return jax.jit(jax.grad(lambda x: jnp.sum(function(x))))(jnp.array(at)).tolist()


for name, (function, at) in CASES.items():
    print(f"{name}: JAX {slope(function, at)}, Enzyme {slope(enzyme_jax_ir()(function), at)}")
PY
JAX_PLATFORMS=cpu "$work/venv/bin/python" "$work/ask.py" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
straight-through round: JAX [1.0], Enzyme [0.0]
gradient clipped to 1: JAX [1.0], Enzyme [10.0]
x*stop_gradient(x): JAX [0.3], Enzyme [0.6]
relu at 0: JAX [0.0], Enzyme [1.0]
logaddexp(0, 0): JAX [0.5, 0.5], Enzyme [0.5, 1.5]
sinc at 0: JAX [0.0], Enzyme [nan]
exp(x)*x: JAX [1.0], Enzyme [1.0]
SEEN
echo "as it was seen"

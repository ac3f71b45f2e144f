"""Expressions whose graphs PyTorch and gradcli must agree on, node for node."""

from __future__ import annotations

# Values of the variables; every one requires grad and is float64, except those in CONSTANTS.
VARIABLES: dict[str, object] = {
    "s": 1.5,
    "t": 0.75,
    "x": [0.5, 1.25, 2.0],
    "y": [1.5, 0.25, 0.75],
    "m": [[0.5, 1.0, 2.0], [1.5, 0.25, 0.75], [0.1, 0.7, 1.3]],
    "n": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]],
    "b": [[[1.0, 2.0], [3.0, 4.0]], [[0.5, 1.5], [2.5, 3.5]]],
    "k": [2.0, 3.0, 1.0],
}
CONSTANTS = frozenset({"k"})

EXPRESSIONS = """
x + y
x - y
x * y
x / y
x + 1
1 + x
x - 2
2 - x
2 * x
x * 2.5
x / 2
2 / x
-x
x ** 2
x ** 0.5
x ** y
2 ** x
x ** -1
x % 2
x @ y
m @ x
x @ m
m @ n
b @ b
m * x
s * m + x
k * x
x * k + k
2 * dot(x, x)
3 * dot(x, (y + 2) ** 2)
sum((x * y) ** 2)
(x + s).mean()
(s + x).sum()
x.exp()
x.sin() * x.cos()
tan(x) + tanh(x)
sqrt(x) + rsqrt(x)
log(x) + log1p(x) + log2(x) + log10(x)
exp2(x) + expm1(x)
sinh(x) + cosh(x)
asin(t) + acos(t) + atan(t)
sigmoid(x)
relu(x)
abs(x)
sign(x) * x
x.square()
reciprocal(x)
floor(x) + ceil(x) + trunc(x) + round(x) + frac(x)
clamp(x, 0.5, 1.0)
clamp(x, min=0.75)
clamp(x, max=y)
maximum(x, y)
minimum(x, y)
fmax(x, y) + fmin(x, y)
atan2(x, y)
hypot(x, y)
where(x > 1, x, y)
where(x > 1, x, 0.0)
sum(m)
sum(m, dim=0)
sum(m, dim=(0, 1), keepdim=True)
mean(m)
mean(m, dim=1)
prod(x)
prod(m, dim=1)
amax(m, dim=1)
amin(m, dim=0, keepdim=True)
max(x)
min(x)
max(m, dim=1).values
min(m, dim=0)[0]
var(x)
std(x)
var(m, dim=1)
std(m, dim=0, correction=0)
norm(x)
norm(m)
logsumexp(m, dim=1)
softmax(x, dim=0)
log_softmax(m, dim=1)
cumsum(x, dim=0)
cumprod(x, dim=0)
mv(m, x)
mm(m, n)
bmm(b, b)
outer(x, y)
matmul(m, n)
x.reshape(3, 1)
m.view(9)
m.flatten()
x.unsqueeze(0).squeeze(0)
m.transpose(0, 1)
n.t()
n.T
b.permute(2, 0, 1)
x.expand(2, 3)
cat([x, y])
cat([m, n], dim=1)
stack([x, y])
stack([x, y, x], dim=1)
x[0]
x[-1]
x[1:]
x[::2]
m[1]
m[:, 1]
m[0, 2]
m[..., None]
x[None]
x[[0, 2]]
x[x > 1]
m[[0, 1], [1, 2]]
x.clone()
x.detach() * y
x.select(0, 1)
narrow(x, 0, 1, 2)
split(x, [1, 2])[1]
chunk(m, 3)[2]
unbind(m)[1]
flip(x, [0])
roll(x, 1)
diag(x)
diagonal(m)
tril(m) + triu(m)
trace(m)
repeat_interleave(x, 2)
x.repeat(2)
gather(x, 0, tensor([0, 0, 2]))
index_select(m, 0, tensor([0, 2]))
masked_select(x, x > 1)
masked_fill(x, x > 1, 0.0)
take(m, tensor([0, 4]))
sort(x)[0]
topk(x, 2)[0]
kthvalue(x, 2)[0]
median(x)
linalg.inv(m)
linalg.det(m)
linalg.solve(m, x)
linalg.norm(m)
inverse(m)
einsum('ij,j->i', m, x)
addmm(m, m, m)
lerp(x, y, 0.25)
addcmul(x, x, y)
addcdiv(x, x, y)
softplus(x)
nn.functional.softplus(x)
nn.functional.silu(x)
nn.functional.gelu(x)
nn.functional.elu(x)
nn.functional.leaky_relu(x)
nn.functional.mse_loss(x, y)
nn.functional.l1_loss(x, y)
nn.functional.smooth_l1_loss(x, y)
nn.functional.binary_cross_entropy(sigmoid(x), k - k)
nn.functional.linear(x, m, y)
nn.functional.normalize(x, dim=0)
xlogy(x, y)
logaddexp(x, y)
erf(x)
lgamma(x)
digamma(x)
logit(t)
sinc(x)
polar(x, y).real
torch.complex(x, y).abs()
x.to(float32) * 2
x.float() + x
s.detach() * x
""".strip().splitlines()

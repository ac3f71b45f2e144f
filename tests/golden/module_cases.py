"""Modules of torch.nn, what they are given, optimizers and schedules: run by torch and by gradcli alike."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections import Counter
from typing import Any

X = "randn(4, 3, 8)"
IMAGE = "randn(2, 4, 6, 6)"
VOLUME = "randn(1, 2, 4, 4, 4)"
LOGS = "randn(6, 2, 4).log_softmax(2)"
Q = "randn(3, 5, 8)"
INTS = "tensor([[0, 2, 1], [1, 1, 0]])"
# module, then its inputs
CASES: list[tuple[str, str]] = [
    ("Linear(8, 5)", X),
    ("Linear(8, 5, bias=False)", X),
    ("Linear(8, 5, dtype=torch.float64)", "randn(2, 8, dtype=torch.float64)"),
    ("Bilinear(3, 4, 5)", "randn(6, 3), randn(6, 4)"),
    ("Identity(3, a=4)", X),
    ("Flatten()", IMAGE),
    ("Flatten(2)", IMAGE),
    ("Unflatten(1, (2, 2))", IMAGE),
    *[(f"Conv1d(3, 6, 3{more})", X) for more in ("", ", stride=2, padding=1", ", groups=3, dilation=2")],
    ("Conv1d(3, 6, 4, padding='same', padding_mode='circular')", X),
    ("Conv2d(4, 6, 3, padding=1, bias=False)", IMAGE),
    ("Conv2d(4, 6, (3, 2), stride=(2, 1), padding_mode='reflect', padding=1)", IMAGE),
    ("Conv3d(2, 3, 2)", VOLUME),
    ("ConvTranspose1d(3, 5, 3, stride=2, output_padding=1)", X),
    ("ConvTranspose2d(4, 3, 2, stride=2)", IMAGE),
    ("ConvTranspose3d(2, 3, 2)", VOLUME),
    ("Embedding(3, 4)", INTS),
    ("Embedding(3, 4, padding_idx=-1)", INTS),
    ("EmbeddingBag(3, 4, mode='sum')", INTS),
    ("LayerNorm(8)", X),
    ("LayerNorm((3, 8), bias=False)", X),
    ("RMSNorm(8)", X),
    ("GroupNorm(2, 4)", IMAGE),
    ("BatchNorm1d(3)", X),
    ("BatchNorm2d(4, momentum=None)", IMAGE),
    ("BatchNorm3d(2, affine=False)", VOLUME),
    ("InstanceNorm1d(3, affine=True)", X),
    ("InstanceNorm2d(4)", IMAGE),
    ("PReLU()", X),
    ("PReLU(3)", X),
    *[
        (f"{name}", X)
        for name in (
            "ReLU()", "ReLU6()", "ELU(0.5)", "CELU()", "SELU()", "SiLU()", "Mish()", "GELU()",
            "GELU('tanh')", "GLU()", "Hardshrink()", "Hardsigmoid()", "Hardswish()", "Hardtanh(-2, 0.5)",
            "LeakyReLU(0.2)", "RReLU()", "LogSigmoid()", "Sigmoid()", "Tanh()", "Tanhshrink()",
            "Softsign()", "Softplus(2)", "Softshrink(0.1)", "Threshold(0.1, 20)", "Softmax(-1)",
            "Softmin(1)", "LogSoftmax(dim=-1)", "Dropout()", "Dropout(0.3)", "Dropout1d()",
            "AlphaDropout(0.2)", "MaxPool1d(2)", "MaxPool1d(3, 2, 1)", "AvgPool1d(2)", "LPPool1d(2, 3)",
            "AdaptiveAvgPool1d(3)", "AdaptiveMaxPool1d(3)", "ConstantPad1d(2, 3.5)", "ZeroPad1d(1)",
            "ReflectionPad1d(2)", "ReplicationPad1d((1, 2))", "CircularPad1d(1)",
            "LazyLinear(4)", "LazyConv1d(4, 3)", "LazyBatchNorm1d()",
        )
    ],
    *[
        (name, IMAGE)
        for name in (
            "Softmax2d()", "Dropout2d(0.4)", "MaxPool2d(2)", "AvgPool2d(3, 1, 1)", "AdaptiveAvgPool2d(1)",
            "AdaptiveMaxPool2d((2, 3))", "LPPool2d(1.5, 2)", "LocalResponseNorm(2)", "Unfold(2)",
            "PixelShuffle(2)", "PixelUnshuffle(2)", "ChannelShuffle(2)", "Upsample(scale_factor=2)",
            "Upsample(size=(3, 3), mode='bilinear')", "UpsamplingNearest2d(scale_factor=2)",
            "UpsamplingBilinear2d(scale_factor=2)", "ZeroPad2d((1, 2, 0, 1))", "ReflectionPad2d(1)",
        )
    ],
    ("CosineSimilarity()", "randn(4, 5), randn(4, 5)"),
    ("PairwiseDistance(1)", "randn(4, 5), randn(4, 5)"),
    *[
        (f"{name}", "randn(4, 5), randn(4, 5)")
        for name in (
            "L1Loss()", "MSELoss(reduction='sum')", "SmoothL1Loss(beta=0.5)", "HuberLoss(delta=0.3)",
            "PoissonNLLLoss()", "KLDivLoss(reduction='batchmean')",
        )
    ],
    ("BCELoss()", "rand(4), rand(4)"),
    ("BCEWithLogitsLoss(pos_weight=tensor([2.0]))", "randn(4), rand(4)"),
    ("CrossEntropyLoss()", "randn(4, 5), tensor([0, 4, 2, 1])"),
    ("CrossEntropyLoss(weight=rand(5), label_smoothing=0.1)", "randn(4, 5), tensor([0, 4, 2, 1])"),
    ("NLLLoss(ignore_index=2)", "randn(4, 5), tensor([0, 4, 2, 1])"),
    ("GaussianNLLLoss()", "randn(4), randn(4), rand(4)"),
    ("MarginRankingLoss(0.1)", "randn(4), randn(4), tensor([1., -1, 1, -1])"),
    ("HingeEmbeddingLoss()", "randn(4), tensor([1., -1, 1, -1])"),
    ("CosineEmbeddingLoss()", "randn(4, 3), randn(4, 3), tensor([1, -1, 1, -1])"),
    ("MultiMarginLoss()", "randn(4, 5), tensor([0, 4, 2, 1])"),
    ("MultiLabelSoftMarginLoss()", "randn(4, 5), rand(4, 5)"),
    ("TripletMarginLoss(swap=True)", "randn(4, 5), randn(4, 5), randn(4, 5)"),
    ("SoftMarginLoss()", "randn(4), tensor([1., -1, 1, -1])"),
    ("CTCLoss()", f"{LOGS}, tensor([[1, 2], [3, 1]]), tensor([6, 5]), tensor([2, 2])"),
    ("RNN(8, 5)", X),
    ("RNN(8, 5, nonlinearity='relu', batch_first=True)", X),
    ("LSTM(8, 5)", X),
    ("LSTM(8, 5, num_layers=2, bidirectional=True)", X),
    ("LSTM(8, 5, proj_size=3, bias=False)", X),
    ("GRU(8, 5, num_layers=2, batch_first=True)", X),
    ("GRU(8, 5)", "randn(3, 8)"),
    ("RNNCell(8, 5)", "randn(3, 8)"),
    ("LSTMCell(8, 5)", "randn(3, 8)"),
    ("GRUCell(8, 5, bias=False)", "randn(3, 8), randn(3, 5)"),
    ("MultiheadAttention(8, 2)", "randn(5, 3, 8), randn(6, 3, 8), randn(6, 3, 8)"),
    ("MultiheadAttention(8, 2, batch_first=True, kdim=4, vdim=3)", f"{Q}, randn(3, 6, 4), randn(3, 6, 3)"),
    ("TransformerEncoderLayer(8, 2, 16, dropout=0.0)", "randn(5, 3, 8)"),
    ("TransformerEncoderLayer(8, 2, 16, 0.0, 'gelu', norm_first=True, batch_first=True)", "randn(3, 5, 8)"),
    ("TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2)", "randn(5, 3, 8)"),
    ("Transformer(8, 2, 1, 2, 16, 0.0)", "randn(5, 3, 8), randn(4, 3, 8)"),
    ("TransformerDecoderLayer(8, 2, 16, 0.0)", "randn(5, 3, 8), randn(4, 3, 8)"),
    ("Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))", X),
]  # fmt: skip

OPTIMIZERS = [
    "SGD(p, lr=0.1)",
    "SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)",
    "SGD(p, lr=0.1, momentum=0.9, nesterov=True)",
    "SGD(p, 0.1, 0.5, 0.2, maximize=True)",
    "Adam(p, lr=0.1)",
    "Adam(p, 0.1, (0.8, 0.9), weight_decay=0.1, amsgrad=True)",
    "AdamW(p, lr=0.1)",
    "Adamax(p, lr=0.1)",
    "RMSprop(p, lr=0.05)",
    "RMSprop(p, lr=0.05, momentum=0.5, centered=True)",
    "Adagrad(p, lr=0.1, lr_decay=0.01)",
    "Adadelta(p)",
    "NAdam(p, lr=0.1)",
    "NAdam(p, 0.1, weight_decay=0.1, decoupled_weight_decay=True)",
    "RAdam(p, lr=0.1)",
    "RAdam(p, 0.1, (0.6, 0.7), weight_decay=0.1)",
    "Rprop(p, lr=0.05)",
    "ASGD(p, lr=0.1, lambd=0.1, t0=2)",
    "Adafactor(p, lr=0.1)",
    "Adafactor(p, lr=0.5, eps=(1e-6, 1e-2), d=2.0, weight_decay=0.1, maximize=True)",
    "Muon(p[:1], lr=0.1)",
    "Muon(p[:1], lr=0.1, nesterov=False, adjust_lr_fn='match_rms_adamw')",
    "LBFGS(p, lr=0.5, max_iter=4)",
    "LBFGS(p, max_iter=5, line_search_fn='strong_wolfe')",
]
SCHEDULES = [
    "StepLR(o, 3)",
    "MultiStepLR(o, [2, 5], 0.5)",
    "ExponentialLR(o, 0.9)",
    "LambdaLR(o, lambda k: 1 / (k + 1))",
    "ConstantLR(o, 0.5, 3)",
    "LinearLR(o, 0.25, 1.0, 4)",
    "PolynomialLR(o, 6, 2.0)",
    "CosineAnnealingLR(o, 4, 0.01)",
    "CosineAnnealingWarmRestarts(o, 3, 2)",
    "OneCycleLR(o, 0.5, total_steps=12)",
    "CyclicLR(o, 0.1, 0.5, 3, 2)",
    "CyclicLR(o, 0.1, 0.5, 2, mode='triangular2', cycle_momentum=False)",
    "CyclicLR(o, 0.1, 0.5, 2, mode='exp_range', gamma=0.9)",
    "ChainedScheduler([StepLR(o, 3), ExponentialLR(o, 0.9)])",
]


def plain(value: Any) -> Any:
    """Tensors as lists, tuples as lists, None as None."""
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value if value is None else value.detach().tolist()


def bits(tensor: Any) -> str:
    return hashlib.sha256(tensor.detach().numpy().tobytes()).hexdigest()[:16]


def answer(torch: Any, module: str, inputs: str) -> dict[str, Any]:
    """What a module shows, holds, gives, and the gradients of the sum of what it gives."""
    names = {name: getattr(torch, name) for name in ("randn", "rand", "tensor")} | {"torch": torch}
    torch.manual_seed(3)
    made = eval(f"torch.nn.{module}", names)  # our own cases, in a script of the tests
    given = eval(f"({inputs},)", names)
    found: dict[str, Any] = {"repr": repr(made)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = made(*given)
    found["after"] = repr(made)
    state = made.state_dict()
    found["state"] = {
        name: [list(t.shape), bits(t)] for name, t in state.items() if "running" not in name
    }
    found["value"] = plain(value)
    parts = [v for v in (value if isinstance(value, tuple) else (value,)) if v is not None]
    parts = [p for v in parts for p in (v if isinstance(v, tuple) else (v,))]
    total = sum(part.sum() for part in parts)
    if total.requires_grad:
        total.backward()
    found["grads"] = {name: plain(p.grad) for name, p in made.named_parameters()}
    return found


_STATE = "randn(1, 3, 5)"
# Calls whose graphs are recorded: all inputs require grad, but for the targets of losses.
GRAPHS = [
    *CASES,
    ("LSTM(8, 5, batch_first=True)", "randn(3, 4, 8)"),
    ("LSTM(8, 5, batch_first=True, bidirectional=True)", "randn(3, 4, 8)"),
    ("LSTM(8, 5)", f"randn(4, 3, 8), ({_STATE}, {_STATE})"),
    ("LSTM(8, 5, dtype=torch.float64)", "randn(4, 3, 8).double()"),
    ("LSTM(8, 5, proj_size=4)", "randn(4, 3, 8), (randn(1, 3, 4), randn(1, 3, 5))"),
    ("GRU(8, 5)", f"randn(4, 3, 8), {_STATE}"),
    ("RNN(8, 5, batch_first=True)", f"randn(3, 4, 8), {_STATE}"),
    ("MultiheadAttention(8, 2, batch_first=True)", "*[randn(3, 5, 8)] * 3"),
]


def _flat(value: Any) -> list[Any]:
    return [p for v in value for p in _flat(v)] if isinstance(value, tuple | list) else [value]


def nodes(torch: Any, module: str, inputs: str) -> dict[str, int]:
    """How many nodes of each name a module's outputs depend on."""
    names = {name: getattr(torch, name) for name in ("randn", "rand", "tensor")} | {"torch": torch}
    torch.manual_seed(3)
    made = eval(f"torch.nn.{module}", names)  # our own cases, in a script of the tests
    given = eval(f"({inputs},)", names)
    for value in _flat(given[:1] if "Loss" in module else given):
        if value.is_floating_point():
            value.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _flat(made(*given))
    waiting, seen = [getattr(v, "grad_fn", None) for v in found], {}
    while waiting:
        node = waiting.pop()
        if node is not None and id(node) not in seen:
            seen[id(node)] = node
            waiting += [other for other, _ in node.next_functions]
    return dict(sorted(Counter(node.name() for node in seen.values()).items()))


def trained(torch: Any, optimizer: str) -> list[Any]:
    """The parameters after six steps on a small problem."""
    torch.manual_seed(5)
    w = torch.nn.Parameter(torch.randn(5, 3))
    b = torch.nn.Parameter(torch.zeros(3))
    x, y = torch.randn(20, 5), torch.randn(20, 3)
    made = eval(f"torch.optim.{optimizer}", {"torch": torch, "p": [w, b]})

    def loss() -> Any:
        made.zero_grad()
        value = ((x @ w + b - y) ** 2).mean()
        value.backward()
        return value

    losses = [float(made.step(loss).detach()) for _ in range(6)]
    return [losses, plain(w), plain(b)]


def rates(torch: Any, schedule: str) -> list[float]:
    """The learning rates of ten steps."""
    p = [torch.nn.Parameter(torch.ones(2))]
    o = torch.optim.SGD(p, lr=0.2)
    made = eval(schedule, {**vars(torch.optim.lr_scheduler), "o": o})  # our own cases
    found = []
    for _ in range(10):
        o.step()
        found.append(o.param_groups[0]["lr"])
        made.step()
    return found


_NET = """
torch.manual_seed(2)
nn, utils, swa = torch.nn, torch.nn.utils, torch.optim.swa_utils
net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2))
x, y = torch.randn(12, 4), torch.randn(12, 2)
def train(steps=3, each=lambda: None):
    o = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        o.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        o.step()
        each()
def state(of):
    return [[n, [*t.shape], t.double().flatten().tolist()] for n, t in of.state_dict().items()]
"""
_WHOLE = "train(); found = [repr(net), state(net), net(x).tolist(), net.eval()(x).tolist()]"
# What programs find: of averages of models, and of weights that are worked out.
PROGRAMS = {
    "swa": "a = swa.AveragedModel(net); train(4, lambda: a.update_parameters(net))\n"
    "swa.update_bn([(x[:6], y), (x[6:], y)], a); found = [repr(a), state(a), a(x).tolist()]",
    "ema": "a = swa.AveragedModel(net, multi_avg_fn=swa.get_ema_multi_avg_fn(0.9), use_buffers=True)\n"
    "train(4, lambda: a.update_parameters(net)); found = state(a)",
    "ema of one": "a = swa.AveragedModel(net, avg_fn=swa.get_ema_avg_fn(0.9))\n"
    "train(3, lambda: a.update_parameters(net)); found = state(a)",
    "swa of one": "a = swa.AveragedModel(net, avg_fn=swa.get_swa_avg_fn())\n"
    "train(3, lambda: a.update_parameters(net)); found = state(a)",
    "rates": "o = torch.optim.SGD([{'params': n.parameters()} for n in (net[0], net[3])], lr=0.2)\n"
    "s = swa.SWALR(o, SWA); found = []\n"
    "for _ in range(7): o.step(); s.step(); found.append([g['lr'] for g in o.param_groups])",
    "weight norm": "utils.parametrizations.weight_norm(net[0]); " + _WHOLE,
    "weight norm of all": "utils.parametrizations.weight_norm(net[3], dim=None); " + _WHOLE,
    "weight norm removed": "utils.parametrizations.weight_norm(net[0], dim=1); train()\n"
    "utils.parametrize.remove_parametrizations(net[0], 'weight'); " + _WHOLE,
    "spectral norm": "utils.parametrizations.spectral_norm(net[0]); " + _WHOLE,
    "spectral norm of a bias": "utils.parametrizations.spectral_norm(net[0], 'bias'); " + _WHOLE,
    "spectral norm of a convolution": "net = nn.ConvTranspose1d(4, 3, 2)\n"
    "utils.parametrizations.spectral_norm(net, n_power_iterations=2); found = state(net)",
    "weight norm by a hook": "utils.weight_norm(net[0]); " + _WHOLE,
    "weight norm by a hook removed": "utils.weight_norm(net[0], dim=None); train()\n"
    "utils.remove_weight_norm(net[0]); " + _WHOLE,
    "spectral norm by a hook": "utils.spectral_norm(net[0], n_power_iterations=2); " + _WHOLE,
    "spectral norm by a hook removed": "utils.spectral_norm(net[0]); train()\n"
    "utils.remove_spectral_norm(net[0]); " + _WHOLE,
    "a symmetric weight": "class Symmetric(nn.Module):\n"
    "    def forward(self, w): return w.triu() + w.triu(1).mT\n"
    "net = nn.Linear(4, 4); y = torch.randn(12, 4)\n"
    "utils.parametrize.register_parametrization(net, 'weight', Symmetric())\n"
    "with utils.parametrize.cached(): same = net.weight is net.weight\n"
    "p = utils.parametrize; train(); found = [same, p.is_parametrized(net), p.is_parametrized(net, 'bias'),\n"
    "  type(net).__name__, p.type_before_parametrizations(net).__name__, state(net), net.weight.tolist()]\n"
    "import copy; found += [copy.deepcopy(net)(x).tolist()]\n"
    "p.remove_parametrizations(net, 'weight'); found += [type(net).__name__, state(net)]",
    "two in turn, and set": "class Twice(nn.Module):\n    def forward(self, w): return 2 * w\n"
    "    def right_inverse(self, w): return w / 2\n"
    "p = utils.parametrize; p.register_parametrization(net[0], 'weight', Twice())\n"
    "p.register_parametrization(net[0], 'weight', Twice()); before = state(net)\n"
    "net[0].weight = torch.ones(6, 4); found = [repr(net), before, state(net), net[0].weight.tolist()]\n"
    "p.remove_parametrizations(net[0], 'weight', leave_parametrized=False); found += state(net)",
    "another shape": "class Row(nn.Module):\n    def forward(self, w): return w[0]\n"
    "utils.parametrize.register_parametrization(net[0], 'weight', Row())",
    "no such parameter": "utils.parametrize.register_parametrization(net[2], 'weight', nn.ReLU())",
    "two hooks": "utils.weight_norm(net[0]); utils.weight_norm(net[0])",
    "no hook": "utils.remove_weight_norm(net[0])",
    "a decay of 2": "swa.get_ema_avg_fn(2)",
    "clipped by a norm": "train(1); t = torch.tensor(3.0)\n"
    "utils.clip_grads_with_norm_(net.parameters(), 1.0, t)\n"
    "found = [p.grad.tolist() for p in net.parameters()]",
}  # fmt: skip
PROGRAMS |= {
    f"rates {how}": PROGRAMS["rates"].replace("SWA", how)
    for how in ("0.05, 4", "[0.05, 0.01], 3, 'linear'", "0.05, 0", "0.05, -1", "[0.1]", "0.1, 2, 'no'")
}  # fmt: skip
del PROGRAMS["rates"]


def told(torch: Any, program: str) -> Any:
    """What a program finds, or the words of its error."""
    names = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(_NET + PROGRAMS[program], names)  # our own programs
        except Exception as error:  # PyTorch's words are the answer
            return f"{type(error).__name__}: {error}"
    return names["found"]


def batches(torch: Any) -> list[Any]:
    """Shuffled batches, splits, and a number that is drawn after them."""
    torch.manual_seed(9)
    data = torch.utils.data
    dataset = data.TensorDataset(torch.arange(10), torch.arange(10) * 1.5)
    loader = data.DataLoader(dataset, batch_size=4, shuffle=True)
    found = [[plain(batch) for batch in loader] for _ in range(2)]
    parts = data.random_split(dataset, [0.7, 0.3])
    return [found, [list(part.indices) for part in parts], torch.rand(1).tolist()]


# Programs of hooks: each prints what its hooks are given. `net` is a small network, `x` and `y` are inputs.
HOOKS = [
    "[m.register_full_backward_hook(show) for m in net.modules()]; net(y).sum().backward()",
    "[m.register_full_backward_hook(show) for m in net.modules()]; net(x).sum().backward()",
    "net[1].register_full_backward_hook(lambda m, gi, go: (gi[0]*2,)); run(net, y)",
    "net[2].register_full_backward_pre_hook(lambda m, go: (go[0]*3,)); run(net, y)",
    "net[1].register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0])); run(net, y)",
    "net[1].register_full_backward_pre_hook(lambda m, go: (go[0], go[0])); run(net, y)",
    "net[0].register_full_backward_hook(lambda m, gi, go: (x,)); run(net, x)",
    "two = Two(); two.register_full_backward_hook(show); two(y, x)[0].sum().backward()",
    "h = net[0].register_full_backward_hook(show); h.remove(); run(net, y)",
    "h = hooks.register_module_full_backward_hook(show); run(net, y); h.remove()",
    "h = hooks.register_module_full_backward_pre_hook(show_before); run(net, y); h.remove()",
    "opt.register_step_pre_hook(told); opt.register_step_post_hook(told); opt.step()",
    "h = steps.register_optimizer_step_post_hook(told); opt.step(); h.remove(); opt.step()",
    "opt.register_step_pre_hook(lambda o, args, kwargs: 3); opt.step()",
    "h = hooks.register_module_parameter_registration_hook(named); nn.Linear(2, 3); h.remove()",
    "bad.register_forward_hook(named, always_call=True); bad(x)",
]


def hooked(torch: Any, program: str) -> list[str]:
    """What a program of hooks prints, and the error that ends it."""
    from importlib import import_module

    nn, lines = torch.nn, []

    def say(*words: Any) -> None:
        lines.append(" ".join(map(str, words)))

    def shapes(grads: Any) -> list[Any]:
        return [None if g is None else (tuple(g.shape), round(float(g.sum()), 4)) for g in grads]

    def run(net: Any, given: Any) -> None:
        net(given).sum().backward()
        say(shapes([p.grad for p in net.parameters()]))

    class Two(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a + b, a * b

    class Bad(nn.Module):
        def forward(self, a: Any) -> Any:
            raise ValueError("no")

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    names = {
        "nn": nn,
        "net": net,
        "x": torch.ones(5, 3),
        "y": torch.ones(5, 3, requires_grad=True),
        "run": run,
        "Two": Two,
        "bad": Bad(),
        "opt": torch.optim.SGD(net.parameters(), 0.1),
        "hooks": import_module(f"{torch.__name__}.nn.modules.module"),
        "steps": import_module(f"{torch.__name__}.optim.optimizer"),
        "show": lambda m, gi, go: say(type(m).__name__, shapes(gi), shapes(go)),
        "show_before": lambda m, go: say(type(m).__name__, shapes(go)),
        "told": lambda o, args, kwargs: say(type(o).__name__, len(args), kwargs),
        "named": lambda m, name, value: say(
            type(m).__name__, type(name).__name__, type(value).__name__
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(program, names)
        except Exception as error:  # which is part of the answer
            lines.append(f"{type(error).__name__}: {error}".partition("<function")[0])
    return lines


# How a name `b` of a module that has `a` and `c` beside it stands before, and what is done to it. What is
# replaced keeps its place; what changes its kind goes to the end of the other's.
BEFORE = {
    "a parameter": "m.b = P()",
    "no parameter": "m.register_parameter('b', None)",
    "a buffer": "m.register_buffer('b', T())",
    "a buffer that is not saved": "m.register_buffer('b', T(), persistent=False)",
    "no buffer": "m.register_buffer('b', None)",
    "a module": "m.b = L()",
    "no module": "m.add_module('b', None)",
    "an attribute": "m.b = 3",
    "of the class": "type(m).b = 3",
    "nothing": "pass",
}
ACTIONS = [
    "m.b = P()", "m.b = T()", "m.b = L()", "m.b = None", "m.b = 4", "m.b = nn.Buffer(T())",
    "m.b = nn.Buffer(T(), persistent=False)", "m.register_parameter('b', P())",
    "m.register_parameter('b', None)", "m.register_parameter('b', T())", "m.register_buffer('b', T())",
    "m.register_buffer('b', T(), persistent=False)", "m.register_buffer('b', None)",
    "m.register_buffer('b', P())", "m.register_buffer('b', 3)", "m.add_module('b', L())",
    "m.add_module('b', None)", "m.register_module('b', nn.Sequential(L()))", "m.add_module('b', T())",
    "del m.b", "del m.b; m.b = P()", "del m.b; m.b = L()", "del m.b; m.b = T()",
    "m.requires_grad_(False); m.b = P(); m.b = P()",
    "m.load_state_dict({n: T() for n in m.state_dict()}, assign=True)",
]  # fmt: skip
FIVE = "l = nn.ModuleList([nn.Linear(1, k) for k in range(1, 6)])"
SEQUENCE = (
    "l = nn.Sequential(nn.Linear(1, 3), nn.Tanh(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))"
)
NAMED = "l = nn.Sequential(OrderedDict(x=nn.Linear(1, 3), y=nn.Tanh(), z=nn.Linear(3, 1)))"
DICT = "l = nn.ModuleDict({'x': nn.Linear(1, 3), 'y': nn.Tanh(), 'z': nn.Linear(3, 1)})"
PARAMETERS = "l = nn.ParameterList([P(k) for k in range(1, 5)])"
PARAMETER_DICT = "l = nn.ParameterDict({'z': P(1), 'x': T(2), 'y': P(3)})"
MADE = "nn.Linear(7, 7)"
# Programs on a container `l`: made by the first text, changed by the second.
CONTAINERS = [
    *[
        (start, change)
        for start in (FIVE, SEQUENCE, NAMED)
        for change in (
            f"l[0] = {MADE}", f"l[-1] = {MADE}", f"l[2] = {MADE}", f"l[5] = {MADE}", f"l[-6] = {MADE}",
            "l[1] = None", "l[1] = 3", "l['0']", "del l[0]", "del l[-1]", "del l[1:3]", "del l[::2]",
            "del l[7]",
            f"l.append({MADE})", "l.append(3)", f"l.insert(1, {MADE})", f"l.insert(0, {MADE})",
            f"l.insert(5, {MADE})", f"l.insert(-1, {MADE})", f"l.insert(9, {MADE})",
            f"l.extend([{MADE}, nn.Tanh()])", "l.extend(3)", "say(l.pop(1))", "say(l.pop(-1))",
            "say(l.pop(slice(0, 2)))", f"del l[1]; l.append({MADE}); l[0] = nn.Tanh()",
            f"l = l + nn.Sequential({MADE})", f"l = l + [{MADE}]", f"l += nn.Sequential({MADE})",
            f"l += [{MADE}]",
            "l = l * 2", "l = 2 * l", "l *= 2", "l = l * 0", "l = l * 1.5", "l = l[1:]", "l = l[::-1]",
            f"k = l[1:]; k[0] = {MADE}; say(k)", f"l.add_module('2', {MADE})", f"setattr(l, '0', {MADE})",
            f"l.add_module('x', {MADE})", f"l.x = {MADE}", f"delattr(l, '0'); l.append({MADE})",
            "l[0].weight = P(5); l[0].weight = P(6)", "l[0].bias = None", "del l[0].bias; l[0].bias = P(2)",
            "say([n for n in dir(l) if n.isdigit()])", "say(len(l), l[0] is [*l][0])",
        )
        if (start, change) != (NAMED, "l *= 2")  # where PyTorch looks for a module '0'
    ],
    *[
        (DICT, change)
        for change in (
            f"l['x'] = {MADE}", f"l['y'] = {MADE}", f"l['w'] = {MADE}",
            f"l.update({{'y': {MADE}, 'a': {MADE}}})",
            f"l.update([('y', {MADE})])", "l.update([('y',)])", "l.update([3])", "l.update(3)",
            "l['keys'] = 3",
            f"l['keys'] = {MADE}", f"l['a.b'] = {MADE}", f"l[''] = {MADE}", f"l[3] = {MADE}", "del l['x']",
            f"del l['x']; l['x'] = {MADE}", "say(l.pop('y'))", "l.pop('q')", "l.clear()", "l['q']",
            "'y' in l and say(1)",
            f"l.x = {MADE}", "l.x = None", "l.x = 3", "say([*l], [*l.keys()], len(l))", "l.get('x')",
            "l.update(nn.ModuleDict({'y': nn.ReLU()}))", "l(3)",
        )
    ],
    *[
        (PARAMETERS, change)
        for change in (
            "l[0] = P(9)", "l[1] = T(9)", "l[-1] = P(9)", "l[1] = 3", "l[7] = P(1)", "l.append(P(9))",
            "l.append(T(9))",
            "l.append('word')", "l += [P(8), T(9)]", "l.extend(T(3))", "l.extend(3)", "l = l[1:]",
            "l = l[::-1]",
            "say(len(l), [p.shape[0] for p in l])", "l.insert(0, P(9))", "l.pop()", "del l[0]", "l(3)",
            "l + [P(1)]",
            "setattr(l, '0', P(9))", "l.x = P(9); say(len(l))", "say([n for n in dir(l) if n.isdigit()])",
        )
    ],
    *[
        (PARAMETER_DICT, change)
        for change in (
            "l['x'] = P(9)", "l['y'] = T(9)", "l['w'] = P(9)", "l['x'] = 3", "l['w'] = 'word'", "del l['x']",
            "del l['x']; l['x'] = P(9)", "say(l.pop('x'))", "l.popitem()", "l.clear()",
            "say([*l], [*reversed(l)], len(l))",
            "l.setdefault('x', P(9)); l.setdefault('v', T(9))", "say(l.get('x'), l.get('q'), l.get('q', 4))",
            "l = l.copy()", "l = l.fromkeys(['a', 'b'], P(2))",
            "l = l | nn.ParameterDict({'x': P(9), 'a': P(8)})",
            "l |= nn.ParameterDict({'x': P(9), 'a': P(8)})", "l.update({'y': P(9), 'b': P(8), 'a': P(7)})",
            "l.update(OrderedDict(b=P(8), a=P(7)))", "l.update([('b', P(8)), ('a', P(7))])", "l.update([3])",
            "l.update([(3,)])", "l.update(3)", "l(3)", "l.q = P(9)",
        )
    ],
]  # fmt: skip
REGISTRATIONS = [
    *[(f"m.a = P(); m.d = L(); m.register_buffer('e', T()); {before}; m.c = P(); m.f = L(); "
       "m.register_buffer('g', T())", action) for before in BEFORE.values() for action in ACTIONS],
    *CONTAINERS,
]  # fmt: skip


def registered(torch: Any, start: str, change: str) -> list[Any]:
    """The names and shapes of all that a module holds, in order, after a change; or its error."""
    from collections import OrderedDict
    from itertools import count

    nn = torch.nn
    sizes = count(1)

    def tensor(size: int | None = None) -> Any:
        return torch.zeros(size or next(sizes))

    lines: list[str] = []
    names: dict[str, Any] = {
        "nn": nn,
        "m": type("M", (nn.Module,), {})(),
        "T": tensor,
        "P": lambda size=None: nn.Parameter(tensor(size)),
        "L": lambda: nn.Linear(1, next(sizes)),
        "OrderedDict": OrderedDict,
        "say": lambda *values: lines.append(" ".join(map(str, values))),
    }
    exec(start, names)
    try:
        exec(change, names)
    except Exception as error:  # which is part of the answer
        told = re.sub(
            r"\b(torch|gradcli)\.[\w.]*\.(?=[A-Z])", "", str(error)
        )  # where a class lives
        lines.append(f"{type(error).__name__}: {told}")
    module = names.get("l", names["m"])
    held = (module.named_parameters(), module.named_buffers(), module.state_dict().items())
    lines += [" ".join(f"{name}:{'x'.join(map(str, t.shape))}" for name, t in of) for of in held]
    lines.append(
        " ".join(f"{name}:{type(child).__name__}" for name, child in module.named_children())
    )
    return [*lines, repr(module)] if "l" in names else lines

import torch
from torch.nn import functional as F

torch.manual_seed(0)
x, v, s = (torch.randn(*n, requires_grad=True) for n in ((5, 4), (4,), (2, 5, 4)))
a = torch.randn(5, 4)
row, square = torch.randn(4), torch.randn(4, 4)
weight, bias = torch.randn(3, 4), torch.randn(3)
mask, places = a > 0, torch.tensor([0, 2, 1])
chance = torch.rand(5, 4)
batch = torch.randn(2, 5, 4)
mean, spread = torch.zeros(4), torch.ones(4)
kernel = torch.randn(3, 5, 2)
found = [
    x * a,  # a
    a * x,  # a
    a - x,  # a
    a / x.abs(),  # a
    x + 2,  #
    x * row,  # row
    x @ square,  # square
    square @ v,  # square
    torch.addmm(bias, x, weight.T),  # bias view_weight
    F.linear(a, x),  # a
    F.linear(a, x, row[:1]),  # a view_row
    torch.where(mask, a, x),  # a
    torch.where(mask, x, a),  # a
    torch.lerp(x, a, 0.5),  # a
    torch.lerp(a, x, chance),  # a chance
    torch.addcmul(x, a, chance),  # a chance
    torch.cat([a, x]),  # a
    torch.stack([x, a, chance]),  # a chance
    x.masked_fill(mask, 0.0),  #
    x.index_select(0, places),  #
    x.index_add(0, places, a[:3]),  # view_a
    x.gather(0, places[:, None]),  #
    x.scatter_add(0, places[:, None].expand(3, 4), a),  # a
    F.layer_norm(a, (4,), v, row),  # a row
    F.layer_norm(x, (4,), row, mean),  # row mean
    F.batch_norm(x, mean, spread, row, None, True),  # row
    F.batch_norm(a, mean, spread, v, row, True),  # a row
    F.mse_loss(x, a),  # a
    F.huber_loss(a, x),  # a
    F.binary_cross_entropy_with_logits(x, chance, row.abs()),  # chance
    F.binary_cross_entropy(x.sigmoid(), chance, row.abs()),  # chance
    F.kl_div(x.log_softmax(1), chance, reduction="sum"),  # chance None
    F.conv1d(s, kernel),  # kernel
    torch.einsum("bij,jk->bik", s, square),  # view_square
    torch.outer(v, row),  # row
    torch.dot(row, v),  # row
    torch.cdist(x, weight),  # weight
    torch.bmm(batch, s.mT),  # batch
    F.prelu(a, v),  # a
    F.cosine_similarity(x, a),  # None
    torch.atan2(a, x),  # a
    torch.pow(chance, x),  # chance
    torch.maximum(x, a),  # a
    torch.linalg.solve(square, x.mT),  # square
    F.grid_sample(s[None], torch.zeros(1, 3, 3, 2)),  # None
    F.dropout(x, 0.5),  # None
]
loss = sum(one.sum() for one in found)

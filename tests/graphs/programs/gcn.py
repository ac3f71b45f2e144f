"""A network on a graph: a convolution by a sparse matrix, and messages summed by scatter_add."""

import torch
from torch import nn


class Convolution(nn.Module):
    def __init__(self, inside, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inside, out) / inside**0.5)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, x @ self.weight) + self.bias


class Messages(nn.Module):
    def __init__(self, inside, out):
        super().__init__()
        self.linear = nn.Linear(2 * inside, out)

    def forward(self, x, edges):
        source, target = edges
        sent = self.linear(torch.cat([x[source], x[target]], -1))
        summed = torch.zeros(len(x), sent.shape[1])
        return summed.scatter_add(0, target[:, None].expand_as(sent), sent)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Convolution(8, 16), Messages(16, 3)

    def forward(self, x, adjacency, edges):
        h = torch.relu(self.first(x, adjacency))
        return self.second(nn.functional.dropout(h, 0.5, self.training), edges)


torch.manual_seed(0)
edges = torch.randint(0, 20, (2, 60))
adjacency = torch.sparse_coo_tensor(edges, torch.full((60,), 1 / 3), (20, 20)).coalesce()
x, labels = torch.randn(20, 8), torch.randint(0, 3, (20,))
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x, adjacency, edges), labels)
    loss.backward()
    optimizer.step()

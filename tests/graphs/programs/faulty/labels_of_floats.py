import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
y = torch.randint(0, 3, (16,))
net = nn.Linear(4, 3)
labels = y.float()
loss = F.cross_entropy(net(x), labels)  # FAULT
loss.backward()

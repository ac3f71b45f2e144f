import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 4)
t = torch.randn(16, 1)
net = nn.Linear(4, 1)
labels = (t > 0).long()
loss = F.binary_cross_entropy_with_logits(net(x), labels)  # FAULT
loss.backward()

import torch

torch.manual_seed(0)
x = torch.randn(16, 4)
w = torch.randn(4, requires_grad=True)
v = torch.tensor([w[0], w[1]])  # FAULT
loss = (v**2).sum()
loss.backward()

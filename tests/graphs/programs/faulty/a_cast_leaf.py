import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(16, 4)
y = torch.randint(0, 3, (16,))
w = torch.randn(4, 3, requires_grad=True).double()  # FAULT
loss = F.cross_entropy(x.double() @ w, y)
loss.backward()
print(w.grad)

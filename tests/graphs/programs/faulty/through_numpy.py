import numpy as np
import torch

torch.manual_seed(0)
x = torch.randn(16, 4)
w = torch.randn(4, 3, requires_grad=True)
h = torch.from_numpy(np.asarray(x.mm(w).detach()))  # FAULT
loss = (h**2).mean()
loss.backward()

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 3), nn.Linear(3, 8)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
x = torch.randn(32, 8)
for _ in range(4):
    code = encoder(x)
    code = code.clone().detach().requires_grad_(True)  # FAULT
    loss = nn.functional.mse_loss(decoder(code), x)
    opt.zero_grad()
    loss.backward()
    opt.step()

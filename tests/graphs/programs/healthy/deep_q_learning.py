"""Q-learning: a target network without a gradient, copied now and then; actions by argmax."""

import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(policy)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
memory, state = [], torch.randn(4)
for step in range(24):
    with torch.no_grad():
        action = random.randrange(2) if random.random() < 0.3 else policy(state).argmax().item()
    after = state * 0.9 + 0.1 * torch.randn(4) + 0.1 * action
    memory.append((state, action, float(after.sum() > 0), after))
    state = after
    if len(memory) < 16:
        continue
    states, actions, rewards, afters = zip(*random.sample(memory, 16), strict=True)
    values = policy(torch.stack(states)).gather(1, torch.tensor(actions).unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = target(torch.stack(afters)).max(1).values
    loss = F.smooth_l1_loss(values, torch.tensor(rewards) + 0.99 * best)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    if step % 4 == 0:
        target.load_state_dict(policy.state_dict())

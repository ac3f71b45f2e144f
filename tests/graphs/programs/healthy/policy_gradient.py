"""Actor and critic: sampled actions, rewards as numbers, the critic's value detached in the actor's loss."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.actor, self.critic = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, state):
        h = torch.relu(self.body(state))
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(3):
    saved, state = [], torch.randn(4)
    for _ in range(10):
        choice, value = model(state)
        action = choice.sample()
        saved.append((choice.log_prob(action), value, 1.0 if action.item() == 1 else 0.0))
        state = torch.randn(4)
    total, losses = 0.0, []
    for log_prob, value, reward in reversed(saved):
        total = reward + 0.95 * total
        advantage = total - value.item()
        losses.append(-log_prob * advantage + (value - total) ** 2)
    loss = torch.stack(losses).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

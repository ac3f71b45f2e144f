#!/bin/sh
# The same fit as one program: a process is started once, not eighty times.
gradcli run - --x 0,1,2,3,4 --y 1.1,2.9,5.2,6.8,9.1 --no-grad x,y <<'PROGRAM'
p = zeros(2, requires_grad=True)
for step in range(400):
    loss = ((p[0]*x + p[1] - y)**2).mean()
    p.grad = None
    loss.backward()
    with no_grad():
        p -= 0.1 * p.grad
    if step in (0, 9, 99, 399):
        print(f"{step + 1:4d}  loss {loss.item():.4f}  a {p[0].item():.4f}  b {p[1].item():.4f}")
PROGRAM

# The graph is that of the path taken: Heron's root, differentiated through its loop.
def root(a):
    guess = a / 2
    turns = 0
    while abs(guess * guess - a) > 1e-12:
        guess = (guess + a / guess) / 2
        turns += 1
    print(f"  {turns} turns")
    return guess


for start in [2.0, 100.0]:
    a = tensor(start, requires_grad=True)
    r = root(a)
    r.backward()
    print(f"root({start:g}) = {r.item():.12g}, slope {a.grad.item():.10f}")
    assert allclose(a.grad, 1 / (2 * r.detach()))

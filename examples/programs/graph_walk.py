# The backward graph is made of ordinary objects: walk it from the result to the leaves.
x = tensor(3.0, requires_grad=True)
k = tensor(0.5)  # a constant: no edge leads to it
energy = k * x**2

pending = [(energy.grad_fn, 0)]
while len(pending) > 0:
    node, depth = pending.pop()
    print("  " * depth + node.name())
    for parent, _ in reversed(node.next_functions):
        if parent is None:
            print("  " * (depth + 1) + "(nothing to differentiate)")
        else:
            pending.append((parent, depth + 1))

# What a node saves is what its rule needs, and no more.
product = energy.grad_fn
print("saved for x:", product._saved_self)
print("saved for k:", product._saved_other)
print("k itself:", product._saved_self is k)

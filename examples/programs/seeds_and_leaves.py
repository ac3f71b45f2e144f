# A vector has no single gradient: the seed says how much each element counts.
t = tensor([0.0, 1.0, 2.0], requires_grad=True)
position = 3 * t**2
try:
    position.backward()
except RuntimeError as error:
    print(error)
position.backward(gradient=ones(3))
print("velocity:", t.grad)

# Only leaves keep their gradient; an intermediate must ask for it.
a = tensor(2.0, requires_grad=True)
inner = a * a
outer = inner.sin()
inner.retain_grad()
outer.backward()
print("leaf:", a.is_leaf, a.grad)
print("kept:", inner.is_leaf, inner.grad)

# Whole numbers have no derivatives.
try:
    arange(3).requires_grad_()
except RuntimeError as error:
    print(error)

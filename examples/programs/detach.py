# Three ways to say that something is a constant.
x = tensor([1.0, 2.0, 3.0], requires_grad=True)

scale = (x * x).detach()
(scale * x).sum().backward()
print("detach:", x.grad)  # scale, not 3*x**2

x.grad = None
with no_grad():
    norm = x.norm()
(x / norm).sum().backward()
print("no_grad:", x.grad * norm)

try:
    scale.sum().backward()
except RuntimeError as error:
    print("nothing to do:", error)

# Training: the step itself is not recorded.
before = x._version
with no_grad():
    x -= 0.1 * x.grad
print("a leaf still:", x.is_leaf, "- written", x._version - before, "time")

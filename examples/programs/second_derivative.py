# Record the backward pass itself, and differentiate that.
x = tensor(2.0, requires_grad=True)
f = x**3 - 4 * x
(slope,) = autograd.grad(f, x, create_graph=True)
(curvature,) = autograd.grad(slope, x)
print("f  ", f.item())
print("f' ", slope.item(), slope.grad_fn is not None)
print("f''", curvature.item())

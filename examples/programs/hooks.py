# A hook sees a gradient on its way and may replace it: here, one that must not explode.
def clip(grad):
    print("  arrives:", grad)
    return grad.clamp(-10, 10)


w = tensor([0.1, 2.0, 5.0], requires_grad=True)
cube = w**3
handle = cube.register_hook(clip)

print("with the hook")
(7 * cube).sum().backward()
print("  w.grad:", w.grad)

w.grad = None
cube = w**3
handle = cube.register_hook(clip)
handle.remove()
print("removed again")
(90 * cube).sum().backward()
print("  w.grad:", w.grad)

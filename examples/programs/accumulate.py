# Gradients add up on a leaf until somebody clears them.
speed = tensor([1.0, 2.0, 3.0], requires_grad=True)
print("before:", speed.grad)

for lap in range(3):
    (speed**2).sum().backward()
    print("lap", lap + 1, speed.grad)

speed.grad.zero_()
print("cleared:", speed.grad)
speed.grad = None
(4 * speed).sum().backward()
print("afresh:", speed.grad)

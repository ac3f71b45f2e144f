# A graph is freed as it is used; asking again is refused unless it was kept.
x = tensor([1.0, -2.0], requires_grad=True)
loss = (x * x).sum()
loss.backward()
try:
    loss.backward()
except RuntimeError as error:
    print("refused:", str(error).split(" (")[0])

loss = (x * x).sum()
x.grad = None
loss.backward(retain_graph=True)
once = x.grad.clone()
loss.backward()
print("once:", once, "twice:", x.grad)

# A sum saves nothing, so there is nothing to free.
total = x.sum()
total.backward()
total.backward()
print("and a sum, twice:", x.grad)

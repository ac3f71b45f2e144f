"""Programs of PyTorch's that `graph --torch` watches, to be timed beside running them alone."""

"""The backward graph of a program of PyTorch's own."""

"""PyTorch's namespaces: names over what the other folders hold."""

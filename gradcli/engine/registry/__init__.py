"""How a function is declared: PyTorch's signatures, the table of names, helpers of VJP rules."""

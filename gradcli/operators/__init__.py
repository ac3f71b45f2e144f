"""The operators: their kernels, rules and facts."""

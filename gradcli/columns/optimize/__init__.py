"""What gradients are for: fits, minima and roots, by SciPy's methods with exact derivatives."""

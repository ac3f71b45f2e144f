"""Operators made of others: losses, activations, normalisations, linear algebra by name."""

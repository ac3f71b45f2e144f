"""Operators of neural networks: layers, activations, losses."""

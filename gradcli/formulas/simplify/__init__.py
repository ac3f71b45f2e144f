"""Passes that make a formula shorter."""

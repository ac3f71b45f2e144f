"""torch.nn's modules: `module` is their base, `layers` and its like hold the layers."""

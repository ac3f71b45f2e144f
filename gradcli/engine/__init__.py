"""The engine: tensors, the backward graph that operations record, and the pass over it."""

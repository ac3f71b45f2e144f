"""The engine: tensors and nodes, how an operator is declared, and what the machine gives."""

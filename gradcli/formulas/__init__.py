"""The derivative as text: lifting, simplification, printers, proof."""

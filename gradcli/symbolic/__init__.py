"""The derivative as text: lifting, canonicalisation, printers, proof."""

"""What other programs make of what gradcli prints; `python -m tests.readers` asks all that are installed."""

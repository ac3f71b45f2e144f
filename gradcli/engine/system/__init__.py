"""What the machine gives and what the process may take: memory, threads, formats, limits, signals."""

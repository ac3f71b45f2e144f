"""Timings against other libraries, as ratios from interleaved runs: `python -m tests.benchmarks`."""

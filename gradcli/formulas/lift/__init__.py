"""From the calls of a trace to expressions that a person would write."""

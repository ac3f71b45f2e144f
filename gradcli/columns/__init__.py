"""A program over many rows: streaming, the compiler, fits and minima."""

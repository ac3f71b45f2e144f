"""What is asked of formulas: proof, matrices, orders, series, mistakes."""

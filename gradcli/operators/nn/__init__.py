"""The neural networks' part of the table; it imports the other operators, they never import it."""

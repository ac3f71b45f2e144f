"""Expressions as data, their exact algebra, and their text."""

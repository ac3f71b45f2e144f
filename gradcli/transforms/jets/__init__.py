"""Taylor arithmetic on traces."""

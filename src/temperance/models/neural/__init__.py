"""Neural networks in JAX: every beta of a grid and every fold is trained side by side."""

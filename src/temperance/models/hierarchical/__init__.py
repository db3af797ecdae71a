"""Linear regression that learns the scale of the coefficients' prior."""

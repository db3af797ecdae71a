"""Linear regression whose coefficients' prior learns its scale."""

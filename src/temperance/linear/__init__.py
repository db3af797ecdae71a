"""Linear regression: every exponent and every scale of the prior from one decomposition."""

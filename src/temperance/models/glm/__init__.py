"""Logistic regression: Gaussian approximations, followed along beta."""

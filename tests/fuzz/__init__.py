"""Generators of hostile problems, with oracles."""

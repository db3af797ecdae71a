"""Calibration beside what a user would do instead: ``python -m benchmarks``."""

"""Saved choices: a fitted estimator as a JSON file and back."""

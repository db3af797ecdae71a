"""Strategies on real data: splits, their summary, the figure and the page."""

"""Rows: which are the same, and what is drawn from their contents."""

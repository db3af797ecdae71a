"""The thesis that the library began from: its settings, figures, claims, and pages of evidence."""

"""The thesis behind the library: its settings, figures and claims, and pages of evidence."""

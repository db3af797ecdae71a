"""The default strategy: the settings used to choose it, tables and their page."""

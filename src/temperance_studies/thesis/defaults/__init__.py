"""The default strategy: the settings used to choose it, rivals, tables and their page."""

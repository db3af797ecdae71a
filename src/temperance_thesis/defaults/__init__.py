"""The default strategy: settings on which it was chosen, rivals, tables and their page."""

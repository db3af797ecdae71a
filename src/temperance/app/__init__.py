"""The application: command, tables, report, saved choices."""

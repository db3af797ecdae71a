"""Tables from files: inputs and a target for the estimators."""

from temperance.tables.reading import TableError, read_frame
from temperance.tables.table import Table, Task, diabetes, prepare

__all__ = ["Table", "TableError", "Task", "diabetes", "prepare", "read_frame"]

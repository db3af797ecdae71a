"""Tables from files: inputs and a target for the estimators."""

from temperance.app.tables.encoding import Column, new_rows
from temperance.app.tables.reading import TableError, read_frame
from temperance.app.tables.table import Table, Task, diabetes, prepare

__all__ = [
    "Column",
    "Table",
    "TableError",
    "Task",
    "diabetes",
    "new_rows",
    "prepare",
    "read_frame",
]

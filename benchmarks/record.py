"""One measurement, and the file of all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Record:
    """Time of one piece of work on data of one size.

    ``beside`` names the work of the same section that a user would take instead; it is empty for
    those alternatives themselves.
    """

    section: str
    work: str
    size: str
    seconds: float
    beside: str = ""
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """All measurements of a run, with what they were made on."""

    command: str
    machine: dict[str, Any]
    versions: dict[str, str]
    records: list[Record]

    def write(self, path: Path) -> None:
        """Store as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """Load what was stored."""
        stored = json.loads(path.read_text())
        records = [Record(**each) for each in stored.pop("records")]
        return cls(records=records, **stored)

    def of(self, section: str) -> list[Record]:
        """Return the records of a section."""
        return [record for record in self.records if record.section == section]

    def ratio(self, record: Record) -> float | None:
        """Divide the time of a record by that of its alternative; nothing without one."""
        for other in self.of(record.section):
            if other.work == record.beside and other.size == record.size:
                return record.seconds / other.seconds
        return None

"""One measurement, and the file of all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Record:
    """Time of one piece of work, and of one alternative where there is one.

    ``aim`` is the largest accepted ratio ours / theirs; ``extrapolated`` says that the alternative
    was measured in part, and how it was carried to the whole.
    """

    section: str
    work: str
    case: str
    ours: float
    beside: str = ""
    theirs: float | None = None
    aim: float | None = None
    extrapolated: str = ""
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Ours over theirs."""
        return None if self.theirs is None else self.ours / self.theirs

    @property
    def met(self) -> bool | None:
        """Whether the aim was reached; nothing without an aim."""
        return None if self.aim is None or self.ratio is None else self.ratio <= self.aim


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

    def updated(self, newer: Results) -> Results:
        """Replace the sections that were measured again, where they stood; new ones come last."""
        again = {record.section for record in newer.records}
        kept = [record for record in self.records if record.section not in again]
        order = {record.section: None for record in self.records + newer.records}
        records = [
            each for section in order for each in kept + newer.records if each.section == section
        ]
        return replace(self, records=records)

    def of(self, section: str) -> list[Record]:
        """Return the records of a section."""
        return [record for record in self.records if record.section == section]

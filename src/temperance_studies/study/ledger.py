r"""The store of a study's results: one SQLite file that survives interruption.

Each result is stored under the hash of all that determines it.  The file also contains the
description of the study, and is refused for any other study.  It lists the results that were
requested, so that missing ones are reported.
"""

from __future__ import annotations

import io
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from temperance.app.files import write_whole
from temperance.messages import TemperanceWarning, warn
from temperance_studies.study.database import Database, Row
from temperance_studies.study.identity import canonical, digest
from temperance_studies.study.measures import MEASURES, measure_of

if TYPE_CHECKING:
    import pandas as pd

# The generation of the numbers.  Increase it with every change after which a study gives other
# numbers, whether in data, seeds, strategies, models or rules: older stores are then refused.
# A digest of the source would change with every edit, also of a comment, and interrupted studies
# could not be resumed during development.  tests/studies/test_study.py compares some numbers of
# every model with those of this generation, to detect such changes.
NUMBERS = 4

NAMES = """CREATE TABLE names (
    kind TEXT, name TEXT, setting TEXT, identity TEXT NOT NULL, description TEXT NOT NULL,
    place INTEGER NOT NULL, repeats INTEGER NOT NULL, checksum TEXT NOT NULL,
    PRIMARY KEY (kind, name, setting)
) WITHOUT ROWID"""


class StoreWarning(TemperanceWarning):
    """A store lacks results that were requested, or some were damaged."""


class Name(NamedTuple):
    """Meaning of a name: a setting, or a strategy in the setting with that digest."""

    kind: str
    name: str
    setting: str
    identity: str
    description: str
    place: int
    repeats: int  # largest number ever requested; 0 for settings


class Ledger:
    """Stored results of one study.

    Parameters
    ----------
    path : path or None
        The file, created if it does not exist; ``None`` keeps the results in memory.
    description : mapping or None
        What the study is, in plain values; damaged results are dropped and computed again.
        ``None`` reads an existing file, and warns of every requested result that is missing.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, description: Mapping[str, Any] | None = None
    ) -> None:
        meta = None if description is None else {"description": canonical(description)}
        measure = measure_of(path) if description is None else description.get("measure", "risk")
        self.measure = MEASURES[measure]
        schema = {"names": NAMES, "results": self.measure.results}
        self._database = Database(path, schema, self.measure.format, meta)
        try:
            if "description" not in self._database.meta:
                raise self._database.damaged("it does not say which study it holds")
            self.description: dict[str, Any] = json.loads(self._database.meta["description"])
            if description is None:
                self._warn_of_missing()
            else:
                self._refuse_another(self.description, json.loads(canonical(description)))
                self._drop_damaged()
        except BaseException:
            self.close()
            raise

    def _refuse_another(self, stored: dict[str, Any], expected: dict[str, Any]) -> None:
        differ = [key for key in sorted(stored | expected) if stored.get(key) != expected.get(key)]
        if "numbers" in differ:
            there, here = (each.get("numbers", 0) for each in (stored, expected))
            raise self._database.refusal(
                "was made by a version of the library that gives other numbers, "
                f"{'before' if there < here else 'after'} this one (generation {there} in the "
                f"file, {here} now); take another file, or delete this one to compute anew"
            )
        if differ:
            differences = "; ".join(
                f"{key}: {_short(stored.get(key), expected.get(key))} in the file, "
                f"{_short(expected.get(key), stored.get(key))} asked for"
                for key in differ
            )
            raise self._database.refusal(f"holds another study ({differences}); take another file")

    def _warn_of_missing(self) -> None:
        """Warn of requested results that are not in the file."""
        self._database.refuse_faults()
        requested = self._requested()
        if not requested:
            raise self._database.refusal("is empty")
        rows, damaged = self._database.rows("results")
        missing = requested.keys() - {row[1:4] for row in rows}
        if missing or damaged:
            warn(
                f"store {str(self._database.path)!r} lacks {len(missing)} of the {len(requested)} "
                f"results asked for, {len(damaged)} of them damaged"
                f"{_some([requested[each] for each in missing], len(missing))}; "
                "temperance_studies.study.compare computes them",
                StoreWarning,
            )

    def _drop_damaged(self) -> None:
        """Drop damaged results, so that they are computed again, and warn."""
        if not self._database.rows("results")[1]:
            self._database.refuse_faults()
            return
        damaged = self._database.drop_damaged("results")
        if not damaged:  # another process has dropped them
            return
        # Either the key is readable or the values that determine it; if neither is, it is unknown.
        requested = self._requested()
        keys = {self.key(*each): each for each in requested}
        found = {keys.get(row[0], row[1:4]) for row in damaged} & requested.keys()
        warn(
            f"store {str(self._database.path)!r} had {len(damaged)} damaged results, which are "
            "dropped and computed again when asked for"
            f"{_some([requested[each] for each in found], len(damaged))}",
            StoreWarning,
        )

    def _requested(self) -> dict[tuple[str, int, str], tuple[str, int, str]]:
        """Return setting, repetition and strategy of requested results, by digest and by name."""
        settings, strategies = self._settings(), self._strategies()
        if not {each.setting for each in strategies} <= settings.keys():
            raise self._database.damaged("it has strategies of settings that it cannot name")
        return {
            (each.setting, i, each.identity): (settings[each.setting].name, i, each.name)
            for each in strategies
            for i in range(each.repeats)
        }

    def ask(
        self,
        settings: Mapping[str, Any],
        strategies: Mapping[str, Mapping[str, Any]],
        repeats: int,
    ) -> None:
        """Register requested results: the strategies of each setting, and the number of repeats.

        A name must always have the same meaning.
        """
        names = [
            Name("setting", name, "", digest(setting), canonical(setting), place, 0)
            for place, (name, setting) in enumerate(settings.items())
        ]
        names += [
            Name(
                "strategy", name, digest(settings[label]), digest(each), canonical(each), i, repeats
            )
            for label, chosen in strategies.items()
            for i, (name, each) in enumerate(chosen.items())
        ]
        if self._new(names):
            with self._database.writing() as write:
                write("names", self._new(names))
            # In the main file, so that missing results are known even if the log is lost.
            self._database.into_main_file()

    def _new(self, names: Iterable[Name]) -> list[Name]:
        """Return the names that are new to the file."""
        known = {each[:3]: each for each in self._names()}
        new = []
        for each in names:
            old = known.get(each[:3], each)
            if old.identity != each.identity:
                raise self._database.refusal(
                    f"has another {each.kind} named {each.name!r}: {old.description} in the file, "
                    f"{each.description} asked for; give it another name"
                )
            if each[:3] not in known or old.repeats < each.repeats:
                new.append(old._replace(repeats=each.repeats))
        return new

    def _names(self) -> list[Name]:
        return [Name(*row) for row in self._database.sound_rows("names")]

    def _settings(self) -> dict[str, Name]:
        return {each.identity: each for each in self._names() if each.kind == "setting"}

    def _strategies(self) -> list[Name]:
        return [each for each in self._names() if each.kind == "strategy"]

    def key(self, setting: str, repetition: int, strategy: str) -> str:
        """Return the hash of all that determines a result; settings and strategies by digest."""
        return digest([self._described, setting, repetition, strategy])

    @cached_property
    def _described(self) -> str:
        return digest(self.description)

    def keys(self) -> set[str]:
        """Return the keys of all results."""
        return {key for key, *_ in self._database.rows("results")[0]}

    def add(self, setting: str, repetition: int, results: Iterable[tuple[str, Row]]) -> None:
        """Commit the results of one data set, given with the digests of their strategies."""
        rows = [
            (self.key(setting, repetition, strategy), setting, repetition, strategy, *result)
            for strategy, result in results
        ]
        with self._database.writing() as write:
            write("results", rows)

    def table(self) -> pd.DataFrame:
        """Return all results with the names of their settings and strategies."""
        import pandas as pd

        settings = self._settings()
        strategies: dict[tuple[str, str], list[Name]] = defaultdict(list)
        for each in self._strategies():
            strategies[each.setting, each.identity].append(each)
        found: dict[tuple[Any, ...], Row] = {}
        for _, identity, repetition, chosen, *numbers in self._database.rows("results")[0]:
            if identity not in settings or (identity, chosen) not in strategies:
                raise self._database.damaged("it has results of strategies that it cannot name")
            setting = settings[identity]
            for strategy in strategies[identity, chosen]:
                order = (setting.place, setting.name, repetition, strategy.place, strategy.name)
                found[order] = (setting.name, repetition, strategy.name, *numbers)
        rows = [found[order] for order in sorted(found)]
        table = pd.DataFrame(rows, columns=list(self.measure.columns))
        numbers = [each for each in self.measure.fields if each not in self.measure.texts]
        return table.astype(dict.fromkeys(numbers, "float64") | {"repetition": "int64"})

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write all results as Parquet, atomically."""
        target = Path(path)
        if not target.parent.is_dir():
            raise ValueError(f"path must lie in an existing folder, got {str(path)!r}")
        content = io.BytesIO()
        self.table().to_parquet(content, engine="pyarrow", index=False)
        write_whole(target, content.getvalue())
        return target

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        """Return the ledger, to be closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def _some(results: list[tuple[str, int, str]], total: int) -> str:
    """Return the first few results, each given as setting, repetition and strategy, as text."""
    first = sorted(results, key=itemgetter(1, 0, 2))[:3]
    differences = [
        f"repetition {repetition} of {setting!r} by {strategy!r}"
        for setting, repetition, strategy in first
    ]
    more = [f"{total - len(differences)} more"] if total > len(differences) else []
    return ": " + ", ".join(differences + more) if differences else ""


def _short(value: Any, other: Any) -> str:
    """Return a value as text; of a mapping only the entries that differ from the other."""
    if isinstance(value, dict) and isinstance(other, dict):
        own = {key: each for key, each in value.items() if other.get(key) != each}
        return ", ".join(f"{key} = {json.dumps(each)}" for key, each in own.items()) or "nothing"
    return json.dumps(value)

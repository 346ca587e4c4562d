"""Reads one run's files by name; what is wrong with them is collected and never stops the reading."""

from dataclasses import dataclass, field
from typing import TypeVar

from labctl.analyze.counters import Counters, parse_counters
from labctl.analyze.evidence import conflict
from labctl.analyze.files import EvidenceFiles
from labctl.codes import Code
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import LabctlError, MalformedRecord, Problem
from labctl.frozen import FrozenModel

ModelT = TypeVar("ModelT", bound=FrozenModel)


@dataclass(slots=True)
class RecordReader:
    """Reads records by name and collects what is wrong with them."""

    files: EvidenceFiles
    names: frozenset[str]
    problems: list[Problem] = field(default_factory=list)

    def leniently(self) -> "RecordReader":
        """A reader of the same files whose complaints nobody hears: what was cut short may be half a file."""
        return RecordReader(self.files, self.names)

    def bytes_of(self, name: str, *, because: str | None) -> bytes | None:
        """The bytes of a file; where it is absent, a problem if `because` says why it must be there."""
        if name in self.names:
            try:
                return self.files.read(name)
            except LabctlError as error:
                self.problems.extend(error.problems)
        elif because is not None:
            self.problems.append(
                Problem(Code.MISSING_FILE, f"data/{name}", f"a file: {because}", "nothing", "restore it from a copy")
            )
        return None

    def lines_of(self, name: str, *, because: str | None) -> tuple[str, ...] | None:
        """The lines of a file as `bytes_of` gives them; only a line feed ends a line, as a path may hold the others."""
        data = self.bytes_of(name, because=because)
        return None if data is None else tuple(data.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n"))

    def record(self, name: str, model: type[ModelT], *, because: str | None) -> ModelT | None:
        """One record, or None where it is absent or malformed."""
        data = self.bytes_of(name, because=because)
        if data is None:
            return None
        try:
            record = model.from_json(data, f"data/{name}")
        except MalformedRecord as error:
            self.problems.extend(error.problems)
            return None
        if record.canonical() != data:
            self.problems.append(conflict(f"data/{name}", "the canonical form of the record", "another form"))
        return record

    def counters(self, name: str, engine: EngineVocabulary, *, because: str | None) -> Counters | None:
        """The counters of one file."""
        data = self.bytes_of(name, because=because)
        try:
            return None if data is None else parse_counters(data, engine, f"data/{name}")
        except MalformedRecord as error:
            self.problems.extend(error.problems)
            return None

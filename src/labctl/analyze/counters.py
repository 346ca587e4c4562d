"""A server's counters before and after its prompts, by the names of the engine's vocabulary."""

from dataclasses import dataclass
from fractions import Fraction

from prometheus_client.parser import text_string_to_metric_families

from labctl.analyze.metrics_grammar import unreadable_lines
from labctl.codes import Code
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import MalformedRecord, Problem

MERGED_LABELS = frozenset({"engine", "model_name"})
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Counters:
    """Sample values by vocabulary name and label set, summed over engines."""

    values: dict[str, dict[Labels, Fraction]]

    def total(self, field: str) -> Fraction | None:
        """The sum over all label sets, or None where the counter is absent."""
        samples = self.values.get(field)
        return None if samples is None else sum(samples.values(), Fraction(0))

    def by_label(self, field: str, label: str) -> dict[str, Fraction]:
        """The sums by the value of one label."""
        sums: dict[str, Fraction] = {}
        for labels, value in self.values.get(field, {}).items():
            key = dict(labels).get(label, "")
            sums[key] = sums.get(key, Fraction(0)) + value
        return sums


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """The counters of one start, before and after."""

    before: Counters
    after: Counters
    off_when_absent: frozenset[str]

    def grown(self, field: str) -> Fraction | None:
        """How much a counter grew; None where it is absent and that does not mean that its feature is off."""
        after = self.after.total(field)
        if after is None:
            is_off = field in self.off_when_absent and self.before.total(field) is None
            return Fraction(0) if is_off else None
        before = self.before.total(field)
        if before is None:
            # A labelled counter has no sample until it first counts; the unlabelled ones are there from the start.
            return after if field in self.off_when_absent else None
        return after - before

    def is_absent(self, field: str) -> bool:
        """Whether a counter is absent before and after."""
        return self.before.total(field) is None and self.after.total(field) is None

    def grown_by_label(self, field: str, label: str) -> dict[str, Fraction]:
        """How much a counter grew, by the value of one label; a value that is gone has shrunk."""
        before = self.before.by_label(field, label)
        after = self.after.by_label(field, label)
        keys = dict.fromkeys((*after, *before))
        return {key: after.get(key, Fraction(0)) - before.get(key, Fraction(0)) for key in keys}


def parse_counters(data: bytes, engine: EngineVocabulary, where: str) -> Counters:
    """Read Prometheus text.

    Raises:
        MalformedRecord: not UTF-8, not Prometheus text, a value that is not finite, or a sample twice.
    """
    wanted = _fields_by_sample(engine)
    found: dict[str, dict[Labels, Fraction]] = {}
    seen: set[tuple[str, Labels]] = set()
    for name, labels, value in _samples(data, where):
        if name not in wanted:
            continue
        if (name, labels) in seen:
            raise MalformedRecord(_problem(where, "each sample once", f"{name}{dict(labels)} twice"))
        seen.add((name, labels))
        kept = tuple(pair for pair in labels if pair[0] not in MERGED_LABELS)
        for field in wanted[name]:
            sums = found.setdefault(field, {})
            sums[kept] = sums.get(kept, Fraction(0)) + _finite(value, f"{where}: {name}")
    return Counters(found)


def _fields_by_sample(engine: EngineVocabulary) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for field, sample in engine.counters.model_dump().items():
        if sample:
            fields.setdefault(sample, []).append(field)
    return fields


def _samples(data: bytes, where: str) -> list[tuple[str, Labels, float]]:
    try:
        text = data.decode("utf-8")
        if numbers := unreadable_lines(text):
            raise MalformedRecord(_problem(f"{where}:{numbers[0]}", "Prometheus text", f"{len(numbers)} other lines"))
        return [
            (sample.name, tuple(sorted(sample.labels.items())), sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]
    except (ValueError, KeyError, IndexError) as error:  # what the parser raises on malformed lines
        raise MalformedRecord(_problem(where, "Prometheus text", f"{type(error).__name__}: {error}"[:160])) from error


def _finite(value: float, where: str) -> Fraction:
    if value != value or value in (float("inf"), float("-inf")) or value < 0:  # noqa: PLR0124 (NaN differs from itself)
        raise MalformedRecord(_problem(where, "a finite number, not negative", str(value)))
    return Fraction(value)


def _problem(where: str, expected: str, got: str) -> Problem:
    return Problem(Code.RECORD_FORM, where, expected, got, "restore the file as the server sent it")

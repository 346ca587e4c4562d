"""Judge many changes of one sealed run: what the verifier sees of each, and what is seen once its author re-sealed it.

    with Bench(run, folder) as bench:      # a copy that the bench may spoil, and that it restores after each look
        tally = try_mutations(bench, 100, seed=1)
    tally.missed                           # changes that neither a gate nor a listed outside witness answers
    tally.alone                            # changes that one of the two analyzers answers otherwise than the other

Every change is looked at three times: as it is (`seal verify` must refuse it); with everything around the payload
sealed again; and with the digests and counts inside the payload mended as well. A re-sealed change is seen by the
verifier, by the analyzer (a record conflict, a gate that no longer passes, evidence that cannot be read), or by no
check inside the run at all. The last is allowed for what `outside` lists, because there the run is what another honest
run could have been; only a seal digest that was told to somebody else tells the two apart. Both analyzers look at each,
and must say the same: neither believes the run, or every gate, integer, rational and digest is equal.
"""

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from labctl.agreement import disagreements
from labctl.analyze.sealed_run import analyze_run
from labctl.errors import BrokenEvidence
from labctl.frozen import canonical_json
from labctl.packet.tool import analyzer_identity
from labctl.records.verdict import GateResult, Verdict, VerdictKind
from labctl.seal.verify import SealedRun, open_sealed_run
from labctl.standalone.analyze_run import judge_run
from labctl.standalone.sealed_files import Broken
from tests.tamper.mutations import Files, mutate
from tests.tamper.outside import outside_reason
from tests.tamper.resealing import mended, resealed

CODE = re.compile(r"\[([A-Z_]+)\]")


class Level(StrEnum):
    """How much the author of a change has made to agree with it."""

    RAW = "as it is"
    RESEALED = "re-sealed"
    MENDED = "mended and re-sealed"


@dataclass
class Tally:
    """What became of each change."""

    tried: Counter[str] = field(default_factory=Counter)
    """Changes by kind."""
    caught: Counter[tuple[str, Level, str]] = field(default_factory=Counter)
    """Kind, level, and the first check that answered."""
    witnessed: Counter[tuple[str, Level, str]] = field(default_factory=Counter)
    """Kind, level, and why only an outside witness can tell the changed run from another honest one."""
    missed: list[tuple[str, Level, str]] = field(default_factory=list)
    """Kind, level and place of each change that nothing answered."""
    alone: list[tuple[str, Level, str, str]] = field(default_factory=list)
    """Kind, level and place of each change of which the two analyzers say different things, and the first of those."""


class Bench:
    """A copy of a sealed run that can be changed and put back."""

    def __init__(self, run: SealedRun, folder: Path) -> None:
        self.root = folder / run.root.name
        shutil.copytree(run.root, self.root, copy_function=shutil.copyfile)
        self.files: Files = {
            path.relative_to(self.root).as_posix(): path.read_bytes() for path in self.root.rglob("*") if path.is_file()
        }
        self._run_dir = run.run_dir
        self._analyzer = analyzer_identity()
        self._verdict = self._judged()
        self._passed = {gate.id for gate in self._verdict.gates if gate.result is GateResult.PASSED}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.root)

    def verifier_says(self, files: Files) -> str | None:
        """The first code with which `seal verify` refuses a changed run; None where it takes it."""
        with self._changed(files):
            try:
                open_sealed_run(self.root)
            except BrokenEvidence as error:
                return f"seal verify: {error.codes[0]}"
        return None

    def checks_say(self, files: Files) -> tuple[str | None, str | None]:
        """What answers a changed run, and how the analyzers differ over it.

        Returns:
            The first check inside the run, seal or analyzer, that answers it (None where all is as before), and the
            first thing that the second analyzer says differently (None where nothing).
        """
        with self._changed(files):
            answer, verdict = self._first_analyzer()
            return answer, _disagreement(verdict, _second_verdict(self.root))

    def _first_analyzer(self) -> tuple[str | None, Verdict | None]:
        try:
            run = open_sealed_run(self.root)
        except BrokenEvidence as error:
            return f"seal verify: {error.codes[0]}", None
        try:
            verdict = analyze_run(run, self._analyzer)
        except BrokenEvidence as error:
            return f"analyzer: {error.codes[0]}", None
        return self._difference(verdict), verdict

    def resealed(self, files: Files, level: Level) -> Files | None:
        """A changed run sealed again; None where sealing it again undoes the change."""
        inner = mended(files) if level is Level.MENDED else files
        after = resealed(inner, self._run_dir, self.files["seal.json"])
        return None if after == resealed(self.files, self._run_dir, self.files["seal.json"]) else after

    def _judged(self) -> Verdict:
        return analyze_run(open_sealed_run(self.root), self._analyzer)

    def _difference(self, verdict: Verdict) -> str | None:
        for gate in verdict.gates:
            if gate.id in self._passed and gate.result is not GateResult.PASSED:
                return f"gate {gate.id}"
        if verdict.verdict is self._verdict.verdict:
            return None
        if verdict.verdict is VerdictKind.INVALID:
            code = CODE.search(verdict.because[0])
            return f"conflict: {code[1] if code else verdict.because[0].split(':')[0]}"
        return f"verdict {verdict.verdict}"

    @contextmanager
    def _changed(self, files: Files) -> Iterator[None]:
        _write(self.root, self.files, files)
        try:
            yield
        finally:
            _write(self.root, files, self.files)


def try_mutations(bench: Bench, count: int, seed: int, kinds: Sequence[str] = ()) -> Tally:
    """Look at a number of random changes of a run, of all kinds or of some."""
    tally = Tally()
    chance = random.Random(seed)  # noqa: S311 (changes, not secrets)
    for _ in range(count):
        mutation = mutate(bench.files, chance, chance.choice(kinds) if kinds else None)
        tally.tried[mutation.kind] += 1
        _note(tally, (mutation.kind, Level.RAW, mutation.where), bench.verifier_says(mutation.files), None)
        for level in (Level.RESEALED, Level.MENDED):
            after = bench.resealed(mutation.files, level)
            if after is not None:
                change = (mutation.kind, level, mutation.where)
                answer, difference = bench.checks_say(after)
                _note(tally, change, answer, outside_reason(bench.files, after))
                tally.alone += [(*change, difference)] if difference is not None else []
    return tally


def _second_verdict(root: Path) -> Verdict | None:
    """What the standalone analyzer says, as `main` would say it; None where it gives no verdict."""
    try:
        return Verdict.from_json(canonical_json(judge_run(root)), "standalone")
    except (Broken, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def _disagreement(one: Verdict | None, other: Verdict | None) -> str | None:
    """How two analyzers differ; a run that one calls invalid and of which the other can say nothing is one fault."""
    if not _is_believed(one) and not _is_believed(other):
        return None
    if one is None or other is None:
        return f"only the {'first' if other is None else 'second'} analyzer gives a verdict"
    return next(map(str, disagreements(one, other)), None)


def _is_believed(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.verdict is not VerdictKind.INVALID


def _note(tally: Tally, change: tuple[str, Level, str], answer: str | None, reason: str | None) -> None:
    kind, level, _ = change
    if answer is not None:
        tally.caught[kind, level, answer] += 1
    elif reason is not None:
        tally.witnessed[kind, level, reason] += 1
    else:
        tally.missed.append(change)


def _write(root: Path, before: Files, after: Files) -> None:
    for path in before.keys() - after.keys():
        (root / path).unlink()
        for folder in (root / path).parents:
            if folder == root or any(folder.iterdir()):
                break
            folder.rmdir()
    for path, data in after.items():
        if before.get(path) != data:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

"""From a folder of evidence that another lab wrote to a plain view of it."""

import re
from collections.abc import Sequence
from pathlib import Path

from labctl.analyze.foreign.bench import look_at_bench
from labctl.analyze.foreign.counting import look_at_counters, read_delta
from labctl.analyze.foreign.draft import ViewDraft
from labctl.analyze.foreign.folder import open_start_folder
from labctl.analyze.foreign.log_audit import look_at_log
from labctl.analyze.foreign.surroundings import (
    look_at_digests,
    look_at_end,
    look_at_environment,
    look_at_identity,
    look_at_idle,
)
from labctl.analyze.foreign.taught import hold_against_teacher
from labctl.analyze.foreign.told_rows import read_told_rows
from labctl.engines.foreign_lab import DRAFT_LENGTH, vocabulary
from labctl.records.evidence_view import EvidenceView


def inspect_folder(root: Path, teachers: Sequence[Path] = ()) -> EvidenceView:
    """Look at every file that is known, and say what is missing; nothing is written.

    Args:
        root: the folder of one start.
        teachers: files of tokens or texts of the lab's teacher, against which the client's own are held.

    Raises:
        NotFound: there is no such folder, or it holds nothing.
        BrokenEvidence: a teacher's file cannot be read.
    """
    draft = ViewDraft()
    folder = open_start_folder(root, draft)
    engine = vocabulary()
    identity = look_at_identity(folder)
    look_at_end(folder)
    rows = read_told_rows(folder)
    delta = read_delta(folder, engine)
    if delta is not None:
        length = identity.get(DRAFT_LENGTH, "")
        known = int(length) if re.fullmatch("[0-9]{1,4}", length) else None
        look_at_counters(draft, delta, rows, known)
    bench = look_at_bench(folder)
    for teacher in teachers:
        hold_against_teacher(draft, bench or {}, teacher)
    look_at_environment(folder, look_at_log(folder, engine, identity))
    look_at_idle(folder)
    look_at_digests(folder)
    return draft.view(str(root), folder.names)

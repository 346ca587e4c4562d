"""Break the code in named ways, one at a time in a scratch copy, and run the tests that must turn red for each.

`python scripts/mutation_gate.py` exits 1 where a break leaves its tests green, or where they are not green without it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "campaigns", "schemas", "pyproject.toml")
RED = 1  # pytest's status for tests that ran and failed; anything else is a broken gate


@dataclass(frozen=True, slots=True)
class Break:
    """One way to break the code, and the tests that must notice."""

    name: str
    file: str
    """Below src/labctl."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Below tests."""


BREAKS = (
    Break(
        "skip a digest",
        "seal/manifest.py",
        "elif sha256 != found.sha256:",
        "elif sha256 != found.sha256 and not path.endswith('.bin'):",
        ("tamper/test_seal.py::test_two_files_with_swapped_contents_are_both_named",),
    ),
    Break(
        "ignore extra files",
        "seal/manifest.py",
        "for path in sorted(found.keys() - expected.keys()):",
        "for path in ():",
        ("tamper/test_seal.py::test_whatever_is_added_is_named",),
    ),
    Break(
        "drop a gate",
        "analyze/gates/judge.py",
        "for name, kind in registered_gates(evidence.packet.preregistration):",
        "for name, kind in registered_gates(evidence.packet.preregistration)[:-1]:",
        ("unit/analyze/gates/test_judge.py::test_a_sound_run_passes_every_gate", "unit/analyze/test_verdict.py"),
    ),
    Break(
        "accept a missing usage",
        "analyze/gates/cold.py",
        "cached = None if row.usage is None else row.usage.cached_tokens",
        "cached = 0 if row.usage is None or row.usage.cached_tokens is None else row.usage.cached_tokens",
        ("unit/analyze/gates/test_judge.py::test_what_is_absent_is_not_zero_and_not_a_pass",),
    ),
    Break(
        "accept a tie as a win",
        "analyze/pairs.py",
        "wins=sum(b > a for a, b in both),",
        "wins=sum(b >= a for a, b in both),",
        ("unit/analyze/gates/test_pair.py::test_a_tie_is_a_loss",),
    ),
    Break(
        "take the floor itself as above the floor",
        "analyze/gates/decision.py",
        "is_met=reported.value > floor)",
        "is_met=reported.value >= floor)",
        ("unit/analyze/gates/test_decision.py::test_the_floor_must_be_exceeded_strictly",),
    ),
    Break(
        "skip the ledger",
        "marker.py",
        "line = find_consumed(authorization.ledger, packet_id)\n    if line is not None:\n        got",
        "line = find_consumed(authorization.ledger, packet_id)\n    if False:\n        got",
        ("unit/test_marker.py::test_a_marker_that_was_deleted_does_not_free_its_packet",),
    ),
    Break(
        "allow a marker to be used again",
        "marker.py",
        "if isinstance(state, MarkerValid):\n        got",
        "if isinstance(state, MarkerValid):\n        return\n        got",
        ("unit/test_marker.py::test_a_packet_is_consumed_once",),
    ),
    Break(
        "accept an unsigned review",
        "packet/review_count.py",
        "if filed.signature is None or policy.allowed_signers is None:\n        raise _unsigned",
        "if filed.signature is None or policy.allowed_signers is None:\n"
        "        return _Voice(frozenset({mail}), None)\n        raise _unsigned",
        ("unit/packet/test_review.py::test_a_signature_is_demanded_where_the_preregistration_asks",),
    ),
    Break(
        "ignore that events shared a read",
        "analyze/stream.py",
        "return reads[place] in (*reads[max(place - 1, 0) : place], *reads[place + 1 : place + 2])",
        "return False",
        ("unit/analyze/test_stream.py::test_events_that_share_a_read_are_coalesced",),
    ),
    Break(
        "believe a leg that changed after it closed",
        "analyze/files.py",
        "if data == manifest_lines(found):",
        "if data:",
        ("tamper/test_semantics.py::test_a_leg_that_changed_after_it_closed_is_seen_at_the_phase_stop",),
    ),
    Break(
        "leave parts of the second analyzer out of its digest",
        "packet/tool.py",
        'STANDALONE_FOLDER.glob("[!_.]*.py")',
        'STANDALONE_FOLDER.glob("analyze_run.py")',
        ("unit/standalone/test_analyze_run.py::test_its_identity_is_the_digest_of_its_own_bytes",),
    ),
    Break(
        "believe a kernel stamp that cannot be",
        "analyze/stamp_range.py",
        "if not earliest_ns <= arrived_ns <= read.mono_ns + CLOCK_TOLERANCE_NS:",
        "if not arrived_ns <= read.mono_ns + CLOCK_TOLERANCE_NS:",
        ("unit/analyze/test_stream.py::test_a_stamp_lies_between_the_read_before_and_its_own",),
    ),
    Break(
        "let a command name what nothing pins",
        "packet/named_paths.py",
        "if is_there and not is_held else None",
        "if is_there and not is_held and named.startswith('//') else None",
        ("unit/packet/test_named_paths.py::test_a_file_or_folder_that_nothing_pins_is_refused",),
    ),
    Break(
        "let a journal be cut and joined",
        "analyze/journal_reading.py",
        "if (entry.seq, entry.prev) != (number, previous) or entry.canonical() != line:",
        "if entry.canonical() != line:",
        ("tamper/test_semantics.py::test_a_sealed_contradiction_is_invalid_and_named",),
    ),
)


def gate(folder: Path) -> list[tuple[str, bool]]:
    """Each break and whether its tests noticed; in a copy of the project below a folder."""
    copy_project(folder)
    every = sorted({test for one in BREAKS for test in one.tests})
    if _run(folder, every) != 0:
        message = "the named tests are not green without any break"
        raise SystemExit(message)
    return [(one.name, is_noticed(folder, one)) for one in BREAKS]


def copy_project(folder: Path) -> None:
    """Copy what the tests need."""
    for name in COPIED:
        source = TOP / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)


def is_noticed(folder: Path, one: Break) -> bool:
    """Whether the tests of one break turn red in a copy."""
    path = folder / "src" / "labctl" / one.file
    sound = path.read_text()
    if sound.count(one.old) != 1:
        message = f"{one.name}: {one.file} does not have its line exactly once any more"
        raise SystemExit(message)
    path.write_text(sound.replace(one.old, one.new))
    try:
        return _run(folder, list(one.tests)) == RED
    finally:
        path.write_text(sound)


def _run(folder: Path, tests: list[str]) -> int:
    """The status of pytest with the copy's code before the installed one."""
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        *(f"tests/{test}" for test in tests),
    ]
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


def main() -> int:
    """Run the gate and say what it found."""
    with tempfile.TemporaryDirectory(prefix="labctl-mutation-gate-") as scratch:
        found = gate(Path(scratch))
    for name, is_noticed in found:
        sys.stdout.write(f"{'red' if is_noticed else 'STILL GREEN'}: {name}\n")
    return 0 if all(is_noticed for _, is_noticed in found) else 1


if __name__ == "__main__":
    sys.exit(main())

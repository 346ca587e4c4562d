"""Changes that no check inside a run can see once its author sealed it again, and why.

Each entry names a part of a run whose content could just as well have come out of another honest run: nothing else in
the run speaks of it. `outside_reason(before, after)` says which entry covers a change; None where at least one changed
file is covered by none, so that the change must be seen. What tells such a run from the true one is a seal digest that
was told to somebody else: the ledger's line, a mirror of the ledger, a reviewer's signature.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from labctl.analyze.component.address_space import read_address_space
from labctl.analyze.counters import parse_counters
from labctl.analyze.stream import read_row
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import LabctlError
from labctl.records.marker import PreflightPassed
from labctl.records.run import HostIdentity
from labctl.records.wire import read_wire_row
from tests.tamper.mutations import Files

COMPUTED = re.compile(
    r"bagit\.txt|bag-info\.txt|(tag)?manifest-sha256\.txt|seal\.json|data/layout\.json|.*/leg-manifest-sha256\.txt"
    r"|.*/LEG_STARTED\.json|.*/postflight\.json|.*/exit\.json|data/journal\.jsonl|data/phase1/.*"
)
NUMBERS = re.compile(rb"-?\d+")
WALL = re.compile(rb'"wall_ns":-?\d+')
HEADERS = re.compile(rb"(HTTP/1\.1)\\r\\n(?:[^\"]*?)\\r\\n\\r\\n")
STAMPS = re.compile(rb'"(\w+_ns|gc_collections|local_port)":-?\d+')
EXECUTABLE = re.compile(rb'"executable":"[^"]*"|-?\d+')
STORAGES = re.compile(rb'"storage_bytes":(\d+),"storage_offset":\d+,"storage_ptr":(\d+)')
WARNINGS = re.compile(rb"(?m)^.*Warning: .*$")
CHALLENGES = re.compile(rb'"challenge_sha256":"[0-9a-f]{64}"|"(?:wall|mono|started_mono|ended_mono)_ns":-?\d+')
LINKS = re.compile(rb'"(?:order|discovery|pre_import|rows)_sha256":"[0-9a-f]{64}"|"wall_ns":-?\d+')
INTERPRETER = re.compile(rb'"python":"[^"]*"')
PLACES = re.compile(rb'"(?:data|storage)_ptr":\d+')
IDS = ("pid", "parent_pid", "start_ticks")
WORDS = re.compile(rb'"(?:torch|python|name|device|order_sha256)":"[^"]*"|"(?:data_ptr|visible|wall_ns|mono_ns)":-?\d+')
RELATED = (
    "prompt_tokens",
    "generation_tokens",
    "requests_succeeded",
    "process_start_time",
    "accepted_tokens",
    "accepted_per_position",
)
"""Counters that a gate holds to one value; what is only bounded, such as draft tokens, is not among them."""
OWN_LIMITS = ("response_limit_bytes", "silence_s")
OWN_OF_CARDS = ("stop_timeout_s", "silence_s")


@dataclass(frozen=True, slots=True)
class Edit:
    """One file that differs between two runs."""

    path: str
    before: Files
    after: Files

    @property
    def sides(self) -> tuple[bytes, bytes]:
        """Its bytes before and after."""
        return self.before[self.path], self.after[self.path]

    def same(self, left_out: re.Pattern[bytes]) -> bool:
        """Whether both sides are the same without what a pattern matches."""
        one, other = (left_out.sub(b"", data) for data in self.sides)
        return one == other


def outside_reason(before: Files, after: Files) -> str | None:
    """Why only an outside witness can see what differs between two runs; None where a check inside must."""
    reasons: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        one, other = before.get(path), after.get(path)
        if one != other and not (COMPUTED.fullmatch(path) and _is_mended(path, one, other)):
            reason = _reason(Edit(path, before, after))
            if reason is None:
                return None
            reasons.append(reason)
    return reasons[0] if reasons else "times and labels of the records that close a leg or a run"


def _reason(edit: Edit) -> str | None:
    if edit.path not in edit.before:
        return None
    is_gone = edit.path not in edit.after
    for pattern, judge, reason in ENTRIES:
        if re.fullmatch(pattern, edit.path) and (judge is _any or (not is_gone and judge(edit))):
            return reason
    return None


def _is_mended(path: str, one: bytes | None, other: bytes | None) -> bool:
    """Whether a file differs only as mending and sealing make it differ."""
    if one is None or other is None:
        return False
    return (
        path.endswith(("manifest-sha256.txt", ".txt"))
        or path in ("seal.json", "data/layout.json")
        or (_without_digests(one) == _without_digests(other))
    )


def _without_digests(data: bytes) -> bytes:
    return NUMBERS.sub(b"0", re.sub(rb'"[0-9a-f]{64}"', b'""', data))


def _any(_: Edit) -> bool:
    return True


def _same_but_ids(edit: Edit) -> bool:
    return edit.same(EXECUTABLE)


def _same_but_wall(edit: Edit) -> bool:
    return edit.same(WALL)


def _same_but_stamps(edit: Edit) -> bool:
    return edit.same(STAMPS)


def _same_requests(edit: Edit) -> bool:
    one, other = (HEADERS.sub(rb"\1", STAMPS.sub(b"", data)) for data in edit.sides)
    return one == other


def _same_paths(edit: Edit) -> bool:
    one, other = ({line.rpartition(b"\t")[0] for line in maps.split(b"\n")} - {b""} for maps in edit.sides)
    return one == other


def _same_totals(edit: Edit) -> bool:
    engine = EngineVocabulary.from_json(edit.before["data/packet/engine.json"], "engine")
    try:
        one, other = (parse_counters(data, engine, "counters") for data in edit.sides)
    except LabctlError:
        return False
    # absent is as good as zero here: where that matters to a gate, the gate says that the counter is absent
    return all((one.total(field) or 0) == (other.total(field) or 0) for field in RELATED)


def _same_ranges(edit: Edit) -> bool:
    """Whether every tensor's storage is mapped on both sides, and torch on both or neither."""
    folder = edit.path.rpartition("/")[0]
    spans = {
        (int(start), int(start) + int(size))
        for name in ("rows.jsonl", "component.json")
        for size, start in STORAGES.findall(edit.before[f"{folder}/{name}"])
    }
    spaces = [read_address_space(data.decode("utf-8", "replace").splitlines()) for data in edit.sides]
    is_torch = len({b"libtorch" in data for data in edit.sides}) == 1
    return is_torch and all(space is not None and all(map(space.holds, spans)) for space in spaces)


def _same_warnings(edit: Edit) -> bool:
    one, other = (WARNINGS.findall(data) for data in edit.sides)
    return one == other


def _same_cards(edit: Edit) -> bool:
    return _same_without(edit, ("tool", "answers", "remarks", "wall_ns", "mono_ns", "filtered_by"))


def _same_ends(edit: Edit) -> bool:
    return _same_without(
        edit, ("visible", "started_mono_ns", "ended_mono_ns", "start_ticks", "log_bytes", "log_sha256")
    )


def _same_processes(edit: Edit) -> bool:
    try:
        one, other = (json.loads(data) for data in edit.sides)
        for end in (one, other):
            end["seen"] = {name: told for name, told in end["seen"].items() if name not in IDS}
    except (ValueError, KeyError, AttributeError, TypeError):
        return False
    return bool(one == other)


def _same_but_places(edit: Edit) -> bool:
    return edit.same(PLACES)


def _same_but_interpreter(edit: Edit) -> bool:
    return edit.same(INTERPRETER)


def _same_without(edit: Edit, left_out: tuple[str, ...]) -> bool:
    try:
        one, other = (
            {name: told for name, told in json.loads(data).items() if name not in left_out} for data in edit.sides
        )
    except (ValueError, AttributeError):
        return False
    return bool(one == other)


def _same_but_challenges(edit: Edit) -> bool:
    return edit.same(CHALLENGES)


def _same_but_links(edit: Edit) -> bool:
    return edit.same(LINKS)


def _same_but_words(edit: Edit) -> bool:
    return edit.same(WORDS)


def _same_orders_of_cards(edit: Edit) -> bool:
    """Whether orders differ in nothing but folders, labctl's own limits, and how a profile that is silent looks."""
    try:
        one, other = (json.loads(LINKS.sub(b'"link":0', data)) for data in edit.sides)
        for order in (one, other):
            del order["paths"], order["devices"]
            for name in OWN_OF_CARDS:
                del order["limits"][name]
    except (ValueError, KeyError, TypeError):
        return False
    return bool(one == other)


def _same_orders(edit: Edit) -> bool:
    try:
        one, other = (json.loads(data) for data in edit.sides)
        for order in (one, other):
            del order["paths"]
            for name in OWN_LIMITS:
                del order["limits"][name]
    except (ValueError, KeyError):
        return False
    return bool(one == other)


def _same_machine(edit: Edit) -> bool:
    try:
        one, other = (HostIdentity.from_json(data, "identity") for data in edit.sides)
    except LabctlError:
        return False
    return (one.machine_id_sha256, one.boot_id) == (other.machine_id_sha256, other.boot_id)


def _same_preflight(edit: Edit) -> bool:
    try:
        one, other = (PreflightPassed.from_json(data, "preflight") for data in edit.sides)
    except LabctlError:
        return False
    facts = [(each.packet_sha256, each.file_systems, each.rehearsal_seal_sha256) for each in (one, other)]
    return facts[0] == facts[1] and all(finding.is_met for finding in other.findings)


def _same_tokens(edit: Edit) -> bool:
    reads = edit.path.removesuffix(".bin") + ".reads.jsonl"
    try:
        one, other = (
            read_row(read_wire_row(files[reads], files[edit.path], reads)) for files in (edit.before, edit.after)
        )
    except LabctlError:
        return False
    return not other.faults and (one.token_ids, one.usage, one.finish_reason) == (
        other.token_ids,
        other.usage,
        other.finish_reason,
    )


ENTRIES: tuple[tuple[str, Callable[[Edit], bool], str], ...] = (
    (r"data/legs/.*/server\.log", _any, "a log line that no registered pattern looks for"),
    (r"data/legs/.*/leg\.log", _any, "the leg's own log, which no gate reads"),
    (r"data/legs/.*/telemetry\.jsonl", _any, "host load between rows, which no gate reads"),
    (r"data/legs/.*/metrics-(before|after)\.prom", _same_totals, "samples that nothing holds to one value"),
    (r"data/legs/.*/wire/\d+\.reads\.jsonl", _same_but_stamps, "a stamp moved to where it could have been"),
    (r"data/legs/.*/wire/\d+\.reads\.jsonl", _same_requests, "a header of a request beside its line and its body"),
    (r"data/legs/.*/wire/\d+\.bin", _same_tokens, "what a server says beside tokens, usage and the end"),
    (r"data/legs/.*/order\.json", _same_orders, "private folders of a start and limits of labctl's own"),
    (r"data/legs/.*/maps\.txt", _same_paths, "order and inode of mapped files"),
    (
        r"data/legs/.*/process\.json",
        _same_but_ids,
        "process ids, times and program path of a start; the packet pins the program by digest",
    ),
    (r"data/legs/.*-card\d+/maps\.txt", _same_ranges, "what is mapped beside the ranges that tensors lie in"),
    (r"data/legs/.*/(rank-\d+|worker)\.log", _same_warnings, "what a worker or a rank prints beside warnings"),
    (r"data/(legs/.*/discovery|host/devices)\.json", _same_cards, "who told of the cards, and when"),
    (r"data/legs/.*/rank-\d+\.exit\.json", _same_ends, "who told of a rank's card, and when"),
    (r"data/legs/.*/rank-\d+\.exit\.json", _same_processes, "process ids of a rank as its leg saw them"),
    (r"data/legs/.*/rows\.jsonl", _same_but_places, "where a tensor lay whose pointers no gate reads"),
    (r"data/legs/.*/pre-import\.json", _same_but_interpreter, "what a worker's interpreter called itself"),
    (r"data/legs/.*/rows\.jsonl", _same_but_challenges, "challenged digests of bytes that the run does not hold"),
    (r"data/legs/.*/rank-\d+\.jsonl", _same_but_words, "what a rank calls its software and its card, and when"),
    (
        r"data/legs/.*/order\.json",
        _same_orders_of_cards,
        "private folders of a leg on cards, limits of labctl's own, and how cards are looked at",
    ),
    (
        r"data/legs/.*/(pre-import|component)\.json",
        _same_but_links,
        "digests of other records, which were changed too",
    ),
    (r"data/host/identity\.json", _same_machine, "what the machine is, beside its id and its boot"),
    (r"data/host/preflight\.json", _same_preflight, "the words in which preflight says that its checks hold"),
    (r"data/packet/marker\.copy\.json", _same_but_wall, "the wall time of the marker"),
)

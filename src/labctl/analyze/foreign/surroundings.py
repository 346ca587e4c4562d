"""What surrounds a foreign start: who it says it was, how it ended, whether the cards were idle, and its digests."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from labctl.analyze.foreign.draft import ViewDraft
from labctl.analyze.foreign.folder import LIMIT_BYTES, StartFolder
from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.engines.foreign_lab import (
    CLEANUP,
    ENVIRONMENT,
    FOLDER_DIGESTS,
    IDENTITY,
    IDLE_AFTER,
    IDLE_BEFORE,
    INTERVAL,
    INTERVAL_SUMMARY,
    NOT_A_RECORD,
    STATUS,
)
from labctl.errors import BrokenEvidence

SNAPSHOT = re.compile(rf"{INTERVAL}/.+-[0-9]+\.json")
DIGEST_LINE = re.compile(r"(?P<sha256>[0-9a-f]{64}) [ *](?P<name>.+)")
SHOWN_FACTS = ("label", "treatment", "selector_stack", "retries", "suite_invocations", "no_warmup")


def look_at_identity(folder: StartFolder) -> dict[str, str]:
    """Who the start says it was."""
    identity = folder.pairs(IDENTITY, "what was run, and whether it may count")
    folder.draft.facts += [(name, identity[name]) for name in SHOWN_FACTS if name in identity]
    if identity.get(NOT_A_RECORD) == "true":
        folder.draft.finds(IDENTITY, f"{NOT_A_RECORD}=true: by its own word this leg is not a record leg")
    elif identity:
        folder.draft.facts.append((NOT_A_RECORD, identity.get(NOT_A_RECORD, "not told")))
    return identity


def look_at_end(folder: StartFolder) -> None:
    """How the start ended, and what its cleaning up says."""
    status = folder.pairs(STATUS, "how the start ended").get("status")
    if status is not None:
        folder.draft.equal("status of the start", "PASS", status)
    bad = {name: value for name, value in folder.pairs(CLEANUP, "how it was stopped").items() if value != "0"}
    if CLEANUP in folder.names:
        folder.draft.holds("statuses of the stop", ("0 each", bad or "0 each"), is_met=not bad)


def look_at_environment(folder: StartFolder, unknown: Sequence[str]) -> None:
    """The environment of the server, against the variables that it did not know."""
    environment = folder.pairs(ENVIRONMENT, "what the server's environment was")
    if not environment:
        return
    folder.draft.facts.append(("variables of the server", str(len(environment))))
    strangers = sorted(set(unknown) - environment.keys())
    told = ", ".join(strangers) or "none"
    if unknown:
        folder.draft.holds("unknown variables that are not in the environment", ("none", told), is_met=not strangers)


def look_at_idle(folder: StartFolder) -> None:
    """The snapshots of the cards before and after."""
    names = [IDLE_BEFORE, IDLE_AFTER, *(name for name in folder.names if SNAPSHOT.fullmatch(name))]
    found = {name: folder.document(name, "whether the cards were idle") for name in names}
    there = {name: document for name, document in found.items() if document is not None}
    busy = [name for name, document in there.items() if document.get("status") != "passed"]
    if there:
        told = ", ".join(busy) or "none"
        folder.draft.holds(f"snapshots of {len(there)} that are not idle", ("none", told), is_met=not busy)
    text = (folder.bytes_of(INTERVAL_SUMMARY, "how long the cards were watched") or b"").decode("utf-8", "replace")
    counted = sum(map(int, re.findall(r"\bsnapshots=([0-9]{1,6})", text)))
    here = sum(SNAPSHOT.fullmatch(name) is not None for name in folder.names)
    if counted != here:
        folder.draft.missing.append(f"{INTERVAL}: {counted - here} of {counted} snapshots that its summary counts")


def look_at_digests(folder: StartFolder) -> None:
    """The list of digests that lies beside the folder, where one does."""
    beside = folder.root.with_name(folder.root.name + FOLDER_DIGESTS)
    listed = _listed(beside, folder.root.name)
    if not listed:
        folder.draft.missing.append(f"{beside.name}: nothing says what the bytes were")
        return
    here = [name for name in folder.names if name in listed]
    changed = [name for name in here if sha256_hex(folder.bytes_of(name, "") or b"") != listed[name]]
    told = ", ".join(changed) or "none"
    what = f"files of {len(here)} that differ from {beside.name}"
    folder.draft.holds(what, ("none", told), is_met=bool(here) and not changed)
    _tell_lists(folder.draft, beside.name, listed, folder.names)


def _tell_lists(draft: ViewDraft, name: str, listed: Mapping[str, str], names: Sequence[str]) -> None:
    absent = [one for one in listed if one not in names]
    if absent:
        draft.missing.append(f"{len(absent)} of {len(listed)} files that {name} lists: {', '.join(absent[:3])}, …")
    surplus = [one for one in names if one not in listed]
    if surplus:
        draft.finds(name, f"does not list {', '.join(surplus)}", len(surplus))


def _listed(path: Path, folder: str) -> dict[str, str]:
    try:
        text = read_regular(path, limit_bytes=LIMIT_BYTES).decode("utf-8", "replace")
    except BrokenEvidence:
        return {}
    found = (DIGEST_LINE.fullmatch(line) for line in text.splitlines())
    named = {match["name"]: match["sha256"] for match in found if match is not None}
    return {name.removeprefix(f"{folder}/"): digest for name, digest in named.items()}

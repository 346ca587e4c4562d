"""The server's log of a foreign start: what no clean log holds, and what each rank says of its graphs."""

from collections import Counter
from collections.abc import Mapping, Sequence

from labctl.analyze.figures import figure
from labctl.analyze.foreign.draft import ViewDraft
from labctl.analyze.foreign.folder import StartFolder
from labctl.analyze.log_lines import LineMatches, file_chunks, find_lines
from labctl.engines.foreign_lab import (
    COMPILED_WHILE_SERVING,
    EXPECTED_TOPOLOGY,
    LEAKED_MEMORY,
    LOG,
    SERVER_VERSION,
    TOPOLOGY,
    UNKNOWN_VARIABLE,
)
from labctl.engines.vocabulary import EngineVocabulary

SHOWN_BYTES = 160
CR = r"\r"
Topology = tuple[str, str, tuple[tuple[str, str], ...]]
"""Rank, event, and what the line's other groups hold."""


def look_at_log(folder: StartFolder, engine: EngineVocabulary, identity: Mapping[str, str]) -> tuple[str, ...]:
    """Audit the log, line by line; gives the names of variables that the server did not know."""
    if not folder.is_there(LOG, "fallbacks, exceptions, graphs and what else only a log tells"):
        return ()
    capacity = [] if engine.kv_capacity_pattern is None else [engine.kv_capacity_pattern]
    own = [TOPOLOGY, COMPILED_WHILE_SERVING, UNKNOWN_VARIABLE, SERVER_VERSION, LEAKED_MEMORY, CR]
    found = find_lines(file_chunks(folder.root / LOG), [*engine.deny_patterns, *own, *capacity])
    draft = folder.draft
    _tell_denied(draft, [found[pattern] for pattern in engine.deny_patterns if not _is_told_apart(found[pattern])])
    _tell_compiled(draft, found[COMPILED_WHILE_SERVING])
    _tell_rest(draft, found, engine)
    _tell_topology(draft, found[TOPOLOGY], identity)
    for pattern in capacity:
        _tell_capacity(draft, found[pattern])
    return _tell_unknown(draft, found[UNKNOWN_VARIABLE])


def _is_told_apart(matches: LineMatches) -> bool:
    return matches.first is not None and b"JIT compilation during inference" in matches.first


def _tell_denied(draft: ViewDraft, denied: Sequence[LineMatches]) -> None:
    total = sum(matches.count for matches in denied)
    draft.equal("lines of an exception, an error or a fallback", 0, total)
    for matches in denied:
        if matches.first is not None:
            draft.finds(LOG, f"a line that no clean log holds: {_text(matches.first)}", matches.count)


def _tell_compiled(draft: ViewDraft, matches: LineMatches) -> None:
    if matches.count:
        names = ", ".join(_values(matches, "kernel"))
        draft.finds(LOG, f"JIT-in-inference warnings: kernels were compiled while rows waited: {names}", matches.count)


def _tell_unknown(draft: ViewDraft, matches: LineMatches) -> tuple[str, ...]:
    names = tuple(_values(matches, "name"))
    if names:
        draft.finds(
            LOG, f"unknown-environment-variable warnings: nothing reads them: {', '.join(names)}", matches.count
        )
    return names


def _tell_rest(draft: ViewDraft, found: Mapping[str, LineMatches], engine: EngineVocabulary) -> None:
    versions = ", ".join(_values(found[SERVER_VERSION], "version"))
    draft.facts.append(("version that the server prints", versions or "none"))
    if versions:
        draft.finds(LOG, f"version {versions}; counters are read by the names of {engine.engine} {engine.versions}")
    if found[CR].count:
        draft.finds(
            LOG, "lines hold a carriage return, of a progress bar; tolerated: a line ends at LF", found[CR].count
        )
    leaked = found[LEAKED_MEMORY]
    if leaked.first is not None:
        draft.finds(LOG, f"shared memory was left at the stop: {_text(leaked.first)}", leaked.count)


def _tell_topology(draft: ViewDraft, matches: LineMatches, identity: Mapping[str, str]) -> None:
    seen: Counter[Topology] = Counter()
    for groups, count in matches.groups.items():
        told = dict(groups)
        seen[told.pop("rank"), told.pop("event"), tuple(sorted(told.items()))] += count
    if not seen:
        draft.missing.append("lines on graphs by rank: the log holds none")
        return
    for (rank, event, values), count in sorted(seen.items()):
        shown = ", ".join(f"{name}={value}" for name, value in reversed(values))
        draft.topology.append(f"rank {rank}: {event.lower()} {count} x {shown}")
    expected = {name: identity[key] for name, key in EXPECTED_TOPOLOGY.items() if key in identity}
    if len(expected) < len(EXPECTED_TOPOLOGY):
        draft.missing.append("the topology that the identity expects")
        return
    ranks = {rank for rank, _, _ in seen}
    wanted = tuple(sorted(expected.items()))
    told_alike = {(rank, event) for rank, event, values in seen if values == wanted}
    every = {(rank, event) for rank in ranks for event in ("Captured", "Replayed")}
    is_met = {key[:2] for key in seen} == told_alike == every and set(seen.values()) == {1}
    sides = f"{expected}, captured once and replayed once", f"{len(told_alike)} of {len(every)} lines so"
    draft.holds(f"graphs of {len(ranks)} ranks", sides, is_met=is_met)


def _tell_capacity(draft: ViewDraft, matches: LineMatches) -> None:
    counts = [int(text.replace(",", "")) for text in _values(matches, "tokens") if text.replace(",", "").isdecimal()]
    if counts:
        draft.metrics.append(figure("kv_capacity_tokens", "", min(counts), "tokens"))


def _values(matches: LineMatches, name: str) -> list[str]:
    return list(dict.fromkeys(value for groups in matches.groups if (value := dict(groups).get(name)) is not None))


def _text(line: bytes) -> str:
    return line[:SHOWN_BYTES].decode("utf-8", "backslashreplace")

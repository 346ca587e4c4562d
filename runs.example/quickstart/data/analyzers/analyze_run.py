"""The second analyzer: `python3 analyze_run.py RUN` judges a sealed run, on any machine, with nothing but Python 3.11.

It shares no code with labctl: it verifies the seal itself, parses the wire bytes with its own HTTP and event-stream
parsers, and computes every exact figure again. `--phase RUN` answers the phase stop of a run that still goes on. The
answer is canonical JSON on standard output, exit 0; where there is none: a line a problem on the error output, exit 5.

Left to labctl: intervals and standard deviations; the registered form of each record and some of what records say of
each other; the suite's YAML (its digest is verified, the prompts are those of the work orders); what is authorized.
"""
# Whoever audits a run reads this file whole: its blank lines are single, so that it stays under 1,200 lines.
# fmt: off

import hashlib
import json
import os
import re
import stat
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from math import comb
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

NAME = "standalone"
Doc = dict[str, Any]
T = TypeVar("T")
Told = tuple[object, ...]
Lines = dict[str, list[Doc]]
Counters = dict[str, dict[tuple[tuple[str, str], ...], Fraction]]

class Broken(Exception):
    """Nothing can be said; its arguments are the problems found, one line each."""
def _problem(code: str, where: str, expected: str, got: str) -> str:
    return f"{where}: expected {expected}, got {got}; restore the run from a copy [{code}]"

def _unequal(where: str, *checks: tuple[str, object, object]) -> Iterator[str]:
    """A contradiction for each (name, expected, got) that differs."""
    for name, one, other in checks:
        if one != other:
            sides = f"{where}: {name}: expected {str(one)[:300]}, got {str(other)[:300]}"
            yield f"{sides}; treat the run as invalid; its records contradict each other [RECORD_CONFLICT]"

def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

def _canonical(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"

def _parse_json(data: bytes, pairs: Callable[[list[tuple[str, object]]], Doc] | None = None) -> Any:  # noqa: ANN401
    """A value without NaN, infinity or lone surrogates, else a ValueError; what a server sent may have equal keys."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=pairs, parse_constant=_finite, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if b"\\u" in data:
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate has no UTF-8
    return value

def _finite(text: str) -> float:
    if (value := float(text)) - value != 0:
        raise ValueError(text)
    return value

def _unique_keys(pairs: list[tuple[str, object]]) -> Doc:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)

def _document(data: bytes, where: str) -> Doc:
    try:
        value = _parse_json(data, _unique_keys)
    except ValueError as error:
        raise Broken(_problem("BAD_JSON", where, "strict JSON", str(error)[:160])) from error
    if not isinstance(value, dict) or not value:
        raise Broken(_problem("RECORD_FORM", where, "a record", "something else"))
    return value

# The seal: nothing is parsed before its digest is known.
TAGS = ("bag-info.txt", "bagit.txt", "manifest-sha256.txt", "seal.json", "tagmanifest-sha256.txt")
BAGIT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}"
SAFE_LINE = re.compile(rf"([0-9a-f]{{64}})  ({PART}(?:/{PART})*)")
KNOWN_PATH = re.compile(
    rf"data/(packet/(prereg\.yaml|packet\.json|engine\.json|marker\.copy\.json|(inputs|approvals)/{PART})"
    r"|host/(identity|env|devices|preflight)\.json"
    rf"|legs/{PART}/(order\.json|LEG_STARTED\.json|wire/{PART}|metrics-(before|after)\.prom|process\.json|maps\.txt"
    r"|server\.log|telemetry\.jsonl|postflight\.json|exit\.json|leg\.log|leg-manifest-sha256\.txt)"
    r"|phase1/[A-Za-z0-9][A-Za-z0-9._-]{0,249}\.json|analyzers/[A-Za-z0-9][A-Za-z0-9._-]{0,251}\.py"
    r"|journal\.jsonl|outcome\.json|layout\.json)"
)

def _read(root: Path, path: str) -> bytes:
    try:
        if stat.S_ISREG((root / path).lstat().st_mode):
            return (root / path).read_bytes()
    except OSError as error:
        code = "MISSING_FILE" if isinstance(error, FileNotFoundError) else "READ_FAILED"
        raise Broken(_problem(code, path, "a readable file", os.strerror(error.errno or 0))) from error
    raise Broken(_problem("FORBIDDEN_FILE", path, "a regular file", "something else"))

def _manifest(files: Mapping[str, bytes]) -> bytes:
    return "".join(f"{_sha256(files[path])}  {path}\n" for path in sorted(files)).encode()

class _Seal:
    """The seal of a run, every byte of which was verified and is held from then on; Broken where it does not hold."""
    def __init__(self, root: Path) -> None:
        if missing := [name for name in (*TAGS, "data") if not os.path.lexists(root / name)]:
            raise Broken(*(_problem("UNSEALED", name, "a sealed run", "no such file") for name in missing))
        self.problems: list[str] = []
        self.tags = {name: _read(root, name) for name in TAGS}
        payload = self._read_payload(root)
        self._tell("EXTRA_FILE", {path.name for path in root.iterdir()} - {*TAGS, "data"}, "", "no such entry")
        self._tell("EXTRA_FILE", {path for path in payload if not KNOWN_PATH.fullmatch(path)}, "", "a known kind")
        self._compare("manifest-sha256.txt", payload)
        self._compare("tagmanifest-sha256.txt", {name: self.tags[name] for name in TAGS[:3]})
        self.files = {path.removeprefix("data/"): data for path, data in payload.items()}
        if not self.problems:
            self.statement = _document(self.tags["seal.json"], "seal.json")
            found = self._differences(self.statement["predicate"])
            self.problems += (problem.replace("[RECORD_CONFLICT]", "[SEAL_FOREIGN]") for problem in found)
        if self.problems:
            raise Broken(*self.problems)

    def _tell(self, code: str, names: Iterable[str], got: str, expected: str = "a file of the manifest") -> None:
        shown = [ascii(name)[1:-1] for name in sorted(names)]
        self.problems += [_problem(code, name, expected, got or "something else") for name in shown]

    def _read_payload(self, root: Path) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for folder, folders, files in os.walk("" if (root / "data").is_symlink() else root / "data"):
            for path in (Path(folder, name) for name in (*folders, *files)):
                shown, mode = path.relative_to(root).as_posix(), path.lstat().st_mode
                if stat.S_ISREG(mode) and not mode & (stat.S_ISUID | stat.S_ISGID):
                    found[shown] = _read(root, shown)
                elif not stat.S_ISDIR(mode) or not any(path.iterdir()):
                    self._tell("FORBIDDEN_FILE", [shown], "", "a regular file, or a folder that holds something")
        return found

    def _compare(self, name: str, found: dict[str, bytes]) -> None:
        lines = [line for text in self.tags[name].decode("latin-1").split("\n") if (line := SAFE_LINE.fullmatch(text))]
        wanted = {line[2]: line[1] for line in lines}
        if self.tags[name] != _manifest(found):
            self._tell("MISSING_FILE", wanted.keys() - found.keys(), "nothing")
            self._tell("EXTRA_FILE", found.keys() - wanted.keys(), "a file", "no such file")
            changed = [path for path in wanted.keys() & found.keys() if _sha256(found[path]) != wanted[path]]
            self._tell("DIGEST_MISMATCH", changed, "another digest", "the digest of the manifest")
        if self.tags[name] != _manifest(found) and not self.problems:
            self._tell("MANIFEST_FORM", [name], "another form", "sorted lines of digest and safe path")

    def _differences(self, said: Doc) -> Iterator[str]:
        blank = {**self.statement, "predicate": {**said, "self_sha256": "0" * 64}}
        packet_bytes, marker_bytes = (_need(self.files, f"packet/{name}.json") for name in ("packet", "marker.copy"))
        packet, marker = (_document(data, "data/packet") for data in (packet_bytes, marker_bytes))
        ended = said["outcome"]
        if ended["outcome"] != "aborted":  # what another process sealed is aborted, whatever its controller had written
            ended = _document(_need(self.files, "outcome.json"), "data/outcome.json")
        subject = {marker["run_dir"]: self.tags["manifest-sha256.txt"], "packet.json": packet_bytes}
        subject |= {"marker": marker_bytes, "tagmanifest-sha256.txt": self.tags["tagmanifest-sha256.txt"]}
        told = sorted((one["name"], one["digest"]["sha256"]) for one in self.statement["subject"])
        return _unequal(
            "seal.json",
            ("canonical form", _canonical(self.statement), self.tags["seal.json"]),
            ("its own digest", _sha256(_canonical(blank)), said["self_sha256"]),
            ("subject", sorted((name, _sha256(data)) for name, data in subject.items()), told),
            ("order", packet["preregistration"]["schedule"]["order"], said["order"]),
            ("marker", (_sha256(packet_bytes), packet["kind"]), (marker["packet_sha256"], marker["kind"])),
            ("outcome", (ended["outcome"], ended["cause"]), (said["outcome"]["outcome"], said["outcome"]["cause"])),
            ("the two lines of a bag", BAGIT, self.tags["bagit.txt"]),
        )

def _need(files: Mapping[str, bytes], name: str) -> bytes:
    if name not in files:
        raise Broken(_problem("MISSING_FILE", f"data/{name}", "a file", "nothing"))
    return files[name]

# The wire: stamps, then HTTP, then events, then what they say.
LETTERS = {"opened": "O", "connect_started": "S", "connected": "C", "sent": "W", "read": "R", "closed": "X"}
MAX_TOKEN = 1 << 31
TEXT = rb"[\t\x20-\x7e\x80-\xff]*"
HEADERS = rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:" + TEXT + rb"\r\n)*)\r\n"
HEAD = re.compile(rb"HTTP/1\.1 200(?: " + TEXT + rb")?\r\n" + HEADERS)
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})(?:[ \t]*;" + TEXT + rb")?\r\n")
TRAILER, LINE_END = re.compile(HEADERS), re.compile(rb"\r\n?|\n")

def _read_stamps(stamps: bytes, received: bytes, where: str) -> Lines:
    """The lines of a request by event; Broken where they are not as they were written."""
    lines: Lines = {name: [] for name in LETTERS}
    sequence, times = "", []
    for number, text in enumerate(stamps.splitlines(keepends=True), start=1):
        line = _document(text, f"{where}:{number}")
        if line.get("event") not in LETTERS or _canonical(line) != text:
            raise Broken(_problem("RECORD_FORM", f"{where}:{number}", "a line as it was written", "another"))
        lines[line["event"]].append(line)
        sequence += LETTERS[line["event"]]
        times += [line[name] for name in ("mono_before_ns", "mono_after_ns", "mono_ns") if name in line]
    is_ordered = re.fullmatch("OS(CW*R*)?X", sequence) and times == sorted(times)
    if not is_ordered or sum(line["length"] for line in lines["read"]) != len(received):
        raise Broken(_problem("RECORD_FORM", where, "stamps in order that fit the received bytes", "others"))
    return lines

def _read_response(data: bytes) -> list[tuple[int, bytes]]:
    """Each run of body bytes of an event stream with its place on the wire; a ValueError unless all of it is there."""
    if (head := HEAD.match(data)) is None:
        raise ValueError(f"no head with status 200: {data[:60]!r}")
    parts = [line.partition(b":") for line in head[1].split(b"\r\n")]
    headers = [(name.lower(), value.strip(b" \t")) for name, _, value in parts]
    framing = [header for header in headers if header[0] in (b"transfer-encoding", b"content-length")]
    kinds = [value.partition(b";")[0].strip().lower() for name, value in headers if name == b"content-type"]
    if len(framing) > 1 or kinds != [b"text/event-stream"]:
        raise ValueError(f"not one framing, or not a stream: {framing}, {kinds}")
    return list(_read_body(data, head.end(), *framing))

def _read_body(data: bytes, at: int, framing: tuple[bytes, bytes] = (b"", b"")) -> Iterator[tuple[int, bytes]]:
    name, value = framing
    is_chunked = name == b"transfer-encoding" and value.lower() == b"chunked"
    if name == b"content-length" and value.isdigit() and at + int(value) == len(data):
        yield at, data[at:]
        return
    while is_chunked and (size := CHUNK.match(data, at)):
        start, at = size.end(), size.end() + int(size[1], 16)
        if start == at and TRAILER.fullmatch(data, start):
            return
        if start == at or data[at : at + 2] != b"\r\n":
            break
        yield start, data[start:at]
        at += 2
    raise ValueError(f"framing at byte {at} of {len(data)}")

def _read_events(body: bytes) -> tuple[list[tuple[bytes, bytes, int]], bool]:
    """Name, data and last byte of each event of a stream, and whether the stream ends between two events."""
    events, name, data = [], b"", None
    at = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    for ending in LINE_END.finditer(body, at):
        line, at = body[at : ending.start()], ending.end()
        if not line:
            if name or data is not None:  # a named block without data is kept: an error must not get lost
                events.append((name, data or b"", ending.start()))
            name, data = b"", None
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if key == b"data":
            data = value if data is None else data + b"\n" + value
        elif key == b"event":
            name = value
    return events, at == len(body) and not name and data is None

def _require(value: Any, is_met: object) -> Any:  # noqa: ANN401 (a server's JSON)
    if not is_met:
        raise TypeError("another type or value")
    return value

def _counts(value: object, limit: int = 1 << 63) -> list[int]:
    is_list = isinstance(value, list) and all(type(one) is int and 0 <= one < limit for one in value)
    return list(_require(value, is_list))

@dataclass(slots=True)
class _Answer:
    """What the events of one row say, in order, and every fault."""
    ids: list[int] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    finishes: list[str] = field(default_factory=list)
    usages: list[Doc] = field(default_factory=list)
    prompts: list[list[int]] = field(default_factory=list)
    models: dict[str, None] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    is_done: bool = False

    def take(self, number: int, name: bytes, data: bytes) -> None:
        self.faults += [f"after_end: event {number}"] if self.is_done else []
        if data == b"[DONE]" and name != b"error":
            self.is_done = True
            return
        try:
            chunk = {"error": data} if name == b"error" else _parse_json(data)
            if isinstance(chunk, dict) and chunk.get("error") is not None:
                self.faults.append(f"error_event: event {number}")
            else:
                self._take_chunk(number, chunk)
        except ValueError:
            self.faults.append(f"bad_json: event {number}")
        except (KeyError, TypeError, AttributeError) as error:
            self.faults.append(f"bad_shape: event {number}: {error}")

    def _take_chunk(self, number: int, chunk: Doc) -> None:
        self.models[_require(chunk["model"], isinstance(chunk["model"], str))] = None
        choices = _require(chunk["choices"], isinstance(chunk["choices"], list) and len(chunk["choices"]) <= 1)
        self._take_prompt(chunk)
        for choice in choices:
            self._take_choice(number, choice)
        if (usage := chunk.get("usage")) is not None:
            details = usage.get("prompt_tokens_details")
            cached = details.get("cached_tokens") if isinstance(details, dict) else None
            counts = [usage["prompt_tokens"], usage["completion_tokens"], 0 if cached is None else cached]
            prompt, completion, _ = _counts(counts)
            self.usages.append({"prompt": prompt, "completion": completion, "cached": cached})

    def _take_choice(self, number: int, choice: Doc) -> None:
        _require(choice, choice["index"] == 0)
        self._take_prompt(choice)
        if ids := _counts(choice.get("token_ids") or [], MAX_TOKEN):
            self.faults += [f"after_end: tokens in event {number}"] if self.finishes else []
            self.ids += ids
            self.sizes.append((number, len(ids)))
        text = choice["text"] if "text" in choice else choice["delta"].get("content")
        text = "" if text is None and "text" not in choice else text
        self.texts.append(_require(text, isinstance(text, str)))
        if (reason := choice.get("finish_reason")) is not None:
            self.finishes.append(_require(reason, isinstance(reason, str)))

    def _take_prompt(self, holder: Doc) -> None:
        if holder.get("prompt_token_ids") is not None:
            self.prompts.append(_counts(_require(holder["prompt_token_ids"], not self.prompts), MAX_TOKEN))

    def close(self) -> None:
        sides = ((len(self.finishes), "no_finish"), (len(self.usages), "no_usage"), (int(self.is_done), "no_done"))
        self.faults += [name for count, name in sides if count != 1]
        prompt = self.prompts[0] if self.prompts else []
        self.faults += [] if prompt else ["no_prompt_ids"]
        for usage in self.usages[:1] if len(self.usages) == 1 else ():
            told = (usage["completion"], usage["prompt"] if prompt else 0)
            self.faults += [] if self.ids and told == (len(self.ids), len(prompt)) else [f"token_count: {usage}"]

# One row, and the registry's formulas for it.
CLOCK_TOLERANCE_NS, NS_PER_S, WINDOW = 1_000_000, 10**9, 100
CONVENTIONAL, LEGACY = "decode_rate_conventional_1_100", "decode_rate_legacy_100_1_100"
GAPS = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p99": Fraction(99, 100), "max": Fraction(1)}

@dataclass(slots=True)
class _Row:
    """One row, as far as its bytes tell; `faults` are of its answer, `doubts` of its stamps.

    An event is its stamp, its tokens, and whether its read held another; metrics (tokens/s, ns) are of rows that count.
    """
    lines: Lines
    number: int
    answer: _Answer = field(default_factory=_Answer)
    events: list[tuple[int, int, bool]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    metrics: dict[str, Fraction] = field(default_factory=dict)

    @property
    def coalesced(self) -> int:
        return sum(tokens for _, tokens, is_shared in self.events if is_shared)

    @property
    def told(self) -> Told:
        prompts = [_sha256(_canonical(ids)) for ids in self.answer.prompts]
        text = _sha256("".join(self.answer.texts).encode())
        return self.answer.ids, text, next(iter(self.answer.finishes), None), next(iter(prompts), None)

    @classmethod
    def read(cls, lines: Lines, received: bytes) -> "_Row":
        opened, closed, reads = lines["opened"][0], lines["closed"][0], lines["read"]
        row, is_kernel = cls(lines, opened["row"]), all(read["kernel_ns"] is not None for read in reads)
        stamps = [read["kernel_ns" if is_kernel else "mono_ns"] for read in reads]
        moved = {name: abs(closed[name] - opened[name]) for name in ("clock_offset_ns", "boottime_minus_monotonic_ns")}
        row.doubts += [f"{name} moved by {ns} ns" for name, ns in moved.items() if ns > CLOCK_TOLERANCE_NS]
        row.doubts += [] if stamps == sorted(stamps) else ["stamp_order"]
        row.faults += [] if closed["ended"] in ("complete", "status_not_200") else [f"transport: {closed['ended']}"]
        try:
            body = _read_response(received)
        except ValueError as error:
            row.faults.append(f"response: {error}")
            return row
        row._read_answer(body, stamps)
        if not row.faults and not row.doubts and row.events and lines["sent"]:
            clock = ("realtime_ns", "realtime_ns") if is_kernel else ("mono_ns", "mono_before_ns")
            row._measure(lines["connect_started"][0][clock[0]], lines["sent"][-1][clock[1]])
        return row

    def _read_answer(self, body: list[tuple[int, bytes]], stamps: list[int]) -> None:
        events, is_whole = _read_events(b"".join(portion for _, portion in body))
        for number, (name, data, _) in enumerate(events):
            self.answer.take(number, name, data)
        self.answer.close()
        self.faults += [*([] if is_whole else ["cut_event"]), *self.answer.faults]
        starts = list(accumulate((len(portion) for _, portion in body), initial=0))
        ends = list(accumulate(read["length"] for read in self.lines["read"]))
        held = []
        for number, _ in self.answer.sizes:
            place = events[number][2]  # the byte that completed the event, first in the body and then on the wire
            portion = bisect_right(starts, place) - 1
            held.append(bisect_right(ends, body[portion][0] + place - starts[portion]))
        for at, (read, (_, tokens)) in enumerate(zip(held, self.answer.sizes, strict=True)):
            self.events.append((stamps[read], tokens, read in held[max(at - 1, 0) : at] + held[at + 1 : at + 2]))

    def _measure(self, connect_ns: int, sent_ns: int) -> None:
        first_ns, last_ns, count = self.events[0][0], self.events[-1][0], len(self.answer.ids)
        spans = {"decode_rate_full": (count - 1, last_ns - first_ns), "wall_rate": (count, last_ns - sent_ns)}
        passed = list(accumulate(tokens for _, tokens, _ in self.events))
        if count >= WINDOW:
            at = bisect_left(passed, WINDOW)
            span_ns = self.events[at][0] - first_ns
            spans |= {CONVENTIONAL: (WINDOW - 1, span_ns), LEGACY: (WINDOW, span_ns)}
            spans["decode_rate_chunked_1_100"] = (passed[at] - passed[0], span_ns)
        self.metrics = {name: Fraction(n * NS_PER_S, ns) for name, (n, ns) in spans.items() if n > 0 and ns > 0}
        self.metrics |= {"ttft": Fraction(first_ns - sent_ns), "ttft_from_connect": Fraction(first_ns - connect_ns)}
        # A stamp belongs to the last event of its read: no gap beside a shared read is a measurement.
        gaps = [later[0] - earlier[0] for earlier, later in pairwise(self.events) if not (earlier[2] or later[2])]
        self.metrics |= {f"inter_event_latency_{name}": _quantile(gaps, share) for name, share in GAPS.items() if gaps}

    def figures(self, leg: str) -> Doc:
        where, prompt = f"{leg} row {self.number}", self.lines["opened"][0]["prompt_id"]
        figures = [_figure(name, where, value, "tokens/s or ns") for name, value in self.metrics.items()]
        figures.append(_figure("coalesced_tokens", where, self.coalesced, "tokens"))
        counts = {"token_count": len(self.answer.ids), "token_ids_sha256": _sha256(_canonical(self.answer.ids))}
        return {"leg": leg, "row": self.number, "prompt": prompt, **counts, "figures": figures}

def _quantile(values: Iterable[Fraction | int], share: Fraction = Fraction(1, 2)) -> Fraction:
    """By linear interpolation between order statistics; the median, unless told otherwise."""
    ordered = [Fraction(value) for value in sorted(values)]
    below, part = divmod(share * (len(ordered) - 1), 1)
    return ordered[below] + part * (ordered[min(below + 1, len(ordered) - 1)] - ordered[below])

def _headline(rows: Sequence[_Row], metric: str) -> Fraction | None:
    known = [row.metrics[metric] for row in rows if metric in row.metrics]
    return _quantile(known) if known and len(known) == len(rows) else None

def _gain_percent(candidate: Fraction, control: Fraction) -> Fraction:
    return (candidate / control - 1) * 100

def _figure(name: str, where: str, value: Fraction | int, unit: str) -> Doc:
    shown = Context(prec=12).divide(Decimal(value.numerator), Decimal(value.denominator))
    return {"name": name, "where": where, "value": str(value), "decimal": f"{shown.normalize():f}", "unit": unit}

def _start_figures(leg: str, rows: Sequence[_Row], metric: str) -> Doc:
    known = [row.metrics[metric] for row in rows if metric in row.metrics]
    waits = [row.metrics["ttft"] for row in rows if row.metrics]
    named: dict[str, Fraction | int] = {"first_row": known[0]} if metric in rows[0].metrics else {}
    if known:
        named |= {metric: _quantile(known), "minimum": min(known), "maximum": max(known)}
        named |= {"mean": sum(known, Fraction(0)) / len(known), "p10": _quantile(known, Fraction(1, 10))}
    named |= {"ttft_median": _quantile(waits)} if waits else {}
    named |= {"tokens": sum(len(row.answer.ids) for row in rows), "coalesced_tokens": sum(r.coalesced for r in rows)}
    named["invalid_rows"] = sum(bool(row.faults or row.doubts) for row in rows)
    return {"leg": leg, "rows": len(rows), "figures": [_figure(name, leg, value, "") for name, value in named.items()]}

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(.*)\})?\s*(\S+)(?:\s+-?[0-9]+)?")
LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
PLACEHOLDER = re.compile(r"(\{(?:python|host|port|nonce|leg_dir|cache_dir|model:[A-Za-z0-9][A-Za-z0-9._-]{0,127})\})")
FIXED = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": "UTC"}
FIXED |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
FIRST_PAIR = 2

def _read_counters(data: bytes, names: Mapping[str, str]) -> Counters:
    """Samples by the vocabulary's names, summed over engines; a ValueError where one is twice there or not finite."""
    found: Counters = {}
    seen = set()
    for sample in filter(None, (SAMPLE.fullmatch(line.strip()) for line in data.decode().split("\n"))):
        labels, value = tuple(sorted(LABEL.findall(sample[2] or ""))), sample[3]
        kept = tuple(pair for pair in labels if pair[0] not in ("engine", "model_name"))
        for known in (known for known, called in names.items() if called == sample[1]):
            if (known, labels) in seen or _finite(value) < 0:
                raise ValueError(f"a sample twice, or negative: {sample[0]}")
            seen.add((known, labels))
            sums = found.setdefault(known, {})
            sums[kept] = sums.get(kept, Fraction(0)) + Fraction(float(value))
    return found

def _total(counters: Counters, name: str) -> Fraction | None:
    return sum(counters[name].values(), Fraction(0)) if name in counters else None

@dataclass(slots=True)
class _Leg:
    """One start; what its folder does not hold is None or empty."""
    name: str
    folder: str
    manifest_sha256: str | None = None
    order: Doc | None = None
    started: Doc | None = None
    process: Doc | None = None
    postflight: Doc | None = None
    exit: Doc | None = None
    counters: tuple[Counters, Counters] | None = None
    log: bytes | None = None
    maps: bytes | None = None
    rows: list[_Row] = field(default_factory=list)

    def grown(self, name: str, off: Sequence[str]) -> Fraction | None:
        """How much a counter grew; None where it is absent and that does not mean that its feature is off."""
        if self.counters is None:
            return None
        before, after = (_total(one, name) for one in self.counters)
        if after is None or before is None:
            return (after or Fraction(0)) if name in off and before is None else None
        return after - before

class _Run:
    """One run, or its closed legs so far, with everything in it that contradicts something else."""
    def __init__(self, files: Mapping[str, bytes], ending: Doc | None) -> None:
        self.files, self.ending = files, ending
        self.is_aborted = ending is not None and ending["outcome"] == "aborted"
        self.problems: list[str] = []
        names = ("packet.json", "marker.copy.json", "engine.json")
        data = {name: _need(files, f"packet/{name}") for name in names}
        self.digests = {name: _sha256(one) for name, one in data.items()}
        self.packet, self.marker, self.engine = (_document(one, f"data/packet/{name}") for name, one in data.items())
        self.prereg: Doc = self.packet["preregistration"]
        self.order: list[str] = self.prereg["schedule"]["order"]
        self.problems += _unequal("data/packet", ("canonical form", _canonical(self.packet), data["packet.json"]))
        self.journal: list[Doc] = []
        self.prompts: list[Doc] = []
        folders = {name.split("/")[1] for name in files if name.startswith("legs/")}
        # Aborted without a leg, the controller was killed before it had written anything but the packet.
        self.taught = self._load_inputs() if folders or not self.is_aborted else None
        self._load_journal()
        self.outcome, self.answers = self._load_outcome()
        planned = [_Leg(name, f"{index:02d}-{name}") for index, name in enumerate(self.order, start=1)]
        self.problems += _unequal("data/legs", ("not ordered", set(), folders - {leg.folder for leg in planned}))
        self.legs = [leg for leg in planned if leg.folder in folders]
        for leg in self.legs:
            heard = len(self.problems)
            self._load_leg(leg)
            if self.was_cut_short(leg):
                del self.problems[heard:]  # it may hold half of anything
            prompts = leg.order["requests"]["prompts"] if leg.order else self.prompts
            self.prompts = self.prompts or prompts
            self.problems += _unequal(f"data/legs/{leg.folder}/order.json", ("prompts", self.prompts, prompts))

    def arm(self, arm: str) -> list[_Leg]:
        return [leg for leg in self.legs if leg.name[0] == arm]

    def happened(self, *events: str) -> list[str | None]:
        return [entry["leg"] for entry in self.journal if entry["event"] in events]

    def was_cut_short(self, leg: _Leg) -> bool:
        return self.is_aborted and leg.name not in self.happened("leg_closed")

    def _take(self, name: str, why: str) -> bytes | None:
        if why and name not in self.files:
            self.problems.append(_problem("MISSING_FILE", f"data/{name}", f"a file: {why}", "nothing"))
        return self.files.get(name)

    def _record(self, name: str, why: str) -> Doc | None:
        data = self._take(name, why)
        try:
            found = None if data is None else _document(data, f"data/{name}")
        except Broken as error:
            self.problems += error.args
            return None
        if not name.endswith("oracle.json"):  # which people may have written
            self.problems += _unequal(f"data/{name}", ("form", found and _canonical(found), data))
        return found

    def _load_inputs(self) -> list[Told] | None:
        _need(self.files, "packet/inputs/suite.yaml")
        pinned = {f"packet/inputs/{one['role']}": one["sha256"] for one in self.packet["files"]}
        pinned["packet/prereg.yaml"] = self.packet["prereg_yaml_sha256"]
        pinned["packet/engine.json"] = self.packet["engine_sha256"]
        analyzers = {one["name"]: one["sha256"] for one in self.packet["analyzers"]}
        pinned |= {"analyzers/analyze_run.py": analyzers[NAME]} if NAME in analyzers else {}
        for name in sorted(pinned.keys() | {name for name in self.files if name.startswith("analyzers/")}):
            found = _sha256(self.files[name]) if name in self.files else None
            self.problems += _unequal("data", (name, pinned.get(name), found))
        has_teacher = self.prereg["oracle"] != "first_control"
        oracle = self._record("packet/inputs/oracle.json", "taught") if has_teacher else None
        names = ("token_ids", "text_sha256", "finish_reason", "prompt_token_ids_sha256")
        return [tuple(row[name] for name in names) for row in oracle["rows"]] if oracle else None

    def _load_journal(self) -> None:
        before, why = _sha256(b""), "" if self.is_aborted else "every run has one"
        for number, line in enumerate((self._take("journal.jsonl", why) or b"").splitlines(keepends=True)):
            if self.is_aborted and not line.endswith(b"\n"):
                break  # the controller was killed while it wrote this line
            try:
                entry = _document(line, f"data/journal.jsonl:{number + 1}")
            except Broken as error:
                self.problems += error.args
                break
            sides = (number, before, line), (entry["seq"], entry["prev"], _canonical(entry))
            self.problems += _unequal(f"data/journal.jsonl:{number + 1}", ("place in the chain", *sides))
            self.journal.append(entry)
            before = _sha256(line)

    def _load_outcome(self) -> tuple[Doc | None, list[Doc]]:
        heard, why = len(self.problems), "" if self.is_aborted else "the run is sealed"
        outcome = self._record("outcome.json", why) if self.ending else None
        if self.ending and self.is_aborted and (outcome is None or outcome.get("outcome") != "aborted"):
            outcome = {**self.ending, "legs_closed": self.happened("leg_closed")}
        if self.is_aborted:
            del self.problems[heard:]  # half of anything may be there
        names = sorted(name for name in self.files if name.startswith("phase1/"))
        answers = [answer for name in names if (answer := self._record(name, ""))]
        if self.is_aborted and not self.happened("phase_answered", "phase_stopped"):
            del self.problems[heard:]
        return outcome, answers

    def _load_leg(self, leg: _Leg) -> None:
        at = f"legs/{leg.folder}/"
        below = {name.removeprefix(at): name for name in self.files if name.startswith(at)}
        if (manifest := self._take(f"{at}leg-manifest-sha256.txt", "")) is not None:
            del below["leg-manifest-sha256.txt"]
            found = _manifest({name: self.files[path] for name, path in below.items()})
            changed = set(found.decode().splitlines()) ^ set(manifest.decode("latin-1").splitlines())
            names = sorted({line[66:] for line in changed}) or ([] if found == manifest else ["leg manifest"])
            self.problems += [
                _problem("DIGEST_MISMATCH", f"data/{at}{name}", "its digest", "another") for name in names
            ]
            leg.manifest_sha256 = None if names and self.was_cut_short(leg) else _sha256(manifest)
        leg.exit = self._record(f"{at}exit.json", "closed" if leg.manifest_sha256 else "")
        why = "completed" if leg.exit and leg.exit["cause"] == "completed" else ""
        names = [f"{at}{name}.json" for name in ("order", "LEG_STARTED", "process", "postflight")]
        leg.order, leg.started, leg.process, leg.postflight = (self._record(name, why) for name in names)
        leg.log, leg.maps = (self._take(at + name, why) for name in ("server.log", "maps.txt"))
        texts = [self._take(f"{at}metrics-{when}.prom", why) for when in ("before", "after")]
        try:
            sides = [_read_counters(data, self.engine["counters"]) for data in texts if data is not None]
            leg.counters = (sides[0], sides[1]) if len(sides) == len(texts) else None
        except ValueError as error:
            self.problems.append(_problem("RECORD_FORM", f"data/{at}metrics", "Prometheus text", str(error)[:160]))
        self._load_rows(leg, [path for path in below.values() if path.endswith(".reads.jsonl")])

    def _load_rows(self, leg: _Leg, paths: list[str]) -> None:
        for path in sorted(paths):
            stem = path.removesuffix(".reads.jsonl")
            stamps, received = (self._take(stem + end, "wire") for end in (".reads.jsonl", ".bin"))
            try:
                if stamps is not None and received is not None:
                    leg.rows.append(_Row.read(_read_stamps(stamps, received, f"data/{stem}"), received))
            except Broken as error:
                self.problems += error.args
        leg.rows.sort(key=lambda row: row.number)

    def nonce(self, leg: str) -> str:
        return _sha256(f"{self.marker['nonce']}:{leg}".encode())[:32]

    def start_values(self, order: Doc) -> dict[str, str]:
        """What each placeholder stands for; the order says it, or it is read off the order's own arguments."""
        values = {"{host}": order["address"], "{port}": str(order["port"]), "{nonce}": self.nonce(order["leg"])}
        values |= {"{leg_dir}": order["paths"]["scratch"], "{cache_dir}": order["paths"]["cache"]}
        argv, own = self._template(order["arm"])
        seen = [order["environment"].get(name, "") for name in own]
        for part, observed in [*zip(argv, order["argv"], strict=False), *zip(own.values(), seen, strict=True)]:
            pieces = PLACEHOLDER.split(part)
            unknown = [piece for piece in pieces if PLACEHOLDER.fullmatch(piece) and piece not in values]
            known = [str(values.get(piece, piece)) for piece in pieces]
            pattern = "".join("(.+)" if piece in unknown else re.escape(piece) for piece in known)
            found = re.fullmatch(pattern, observed, re.DOTALL)
            values = {**dict(zip(unknown, found.groups() if found else (), strict=False)), **values}
        return values

    def expected_start(self, order: Doc) -> tuple[list[str], dict[str, str]]:
        values, home, seen = self.start_values(order), order["paths"]["home"], order["environment"]
        argv, own = self._template(order["arm"])
        parts = [*argv, *own.values()]
        filled = [PLACEHOLDER.sub(lambda found: values.get(found[0], "unknown"), part) for part in parts]
        passed = {name: seen[name] for name in self.packet["host"]["environment_passed"] if name in seen}
        private = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "XDG_CONFIG_HOME": f"{home}/.config"}
        private |= {"PYTHONPYCACHEPREFIX": f"{home}/.pycache", "TMPDIR": order["paths"]["temporary"]}
        fixed = {name: value for name, value in (FIXED | private).items() if name in self.packet["environment_allowed"]}
        return filled[: len(argv)], fixed | passed | dict(zip(own, filled[len(argv) :], strict=True))

    def _template(self, arm: str) -> tuple[list[str], dict[str, str]]:
        service, treatment = self.prereg["service"], self.prereg["treatment"] or {}
        argv, environment = list(service["command"]), dict(service["environment"])
        side = treatment.get("control" if arm == "A" else "candidate")
        if side is not None and "argument" in treatment:
            argv += [treatment["argument"], *([] if side is True else [side])]
        elif side is not None:
            environment[treatment["environment"]] = side
        return argv, environment

STEPS = {
    "ready": {"leg_started": "running", "phase_answered": "ready", "phase_stopped": "stopped", "run_closed": "closed"},
    "opened": {"preflight_recorded": "ready"}, "running": {"leg_closed": "ready"}, "stopped": {"run_closed": "closed"},
}

def _contradictions(run: _Run) -> Iterator[str]:
    packet, marker = run.packet, run.marker
    said = (packet["kind"], run.order, packet["repository"]["commit"], packet["repository"]["tree_dirhash"])
    marked = tuple(marker[name] for name in ("kind", "order", "git_commit", "tree_dirhash"))
    digests = (run.digests["packet.json"], packet["prereg_yaml_sha256"])
    both = ("digests", digests, (marker["packet_sha256"], marker["prereg_sha256"]))
    yield from _unequal("data/packet: marker", both, ("kind, order, commit, tree", said, marked))
    for leg in run.legs:
        if leg.process and not run.was_cut_short(leg):
            yield from _request_contradictions(run, leg, leg.process)
    yield from _journal_contradictions(run)
    has_stopped = bool(run.happened("phase_stopped"))
    if has_stopped or run.happened("phase_answered"):
        pinned = sorted((one["name"], one["sha256"]) for one in packet["analyzers"])
        told = sorted((one["analyzer"], one["analyzer_sha256"]) for one in run.answers)
        may_continue = all(answer["continue"] for answer in run.answers)
        yield from _unequal("data/phase1", ("answers", pinned, told), ("continue", not has_stopped, may_continue))
        manifests = {leg.folder: leg.manifest_sha256 for leg in run.legs[:FIRST_PAIR]}
        yield from _unequal("data/phase1", *(("legs", manifests, answer["legs"]) for answer in run.answers))

def _request_contradictions(run: _Run, leg: _Leg, process: Doc) -> Iterator[str]:
    workload, model = run.prereg["workload"], process["readiness"]["served_model"]
    asked = {"model": model, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    asked |= {"return_token_ids": True} | {name: workload[name] for name in ("max_tokens", "seed", "ignore_eos")}
    places = [(row.number, row.lines["opened"][0]["prompt_id"]) for row in leg.rows]
    prompts = list(enumerate((prompt["id"] for prompt in run.prompts), start=1))
    yield from _unequal(f"data/legs/{leg.folder}/wire", ("rows", prompts[: len(places)], places))
    for row, prompt in zip(leg.rows, run.prompts, strict=False):
        content = {"prompt": prompt["text"]} if prompt["text"] is not None else {"messages": prompt["messages"]}
        wanted, sent = _canonical(asked | content)[:-1], "".join(line["bytes_latin1"] for line in row.lines["sent"])
        body = sent.encode("latin-1").partition(b"\r\n\r\n")[2]
        if row.lines["closed"][0]["ended"] == "complete" or not wanted.startswith(body):
            yield from _unequal(f"data/legs/{leg.folder}/wire/{row.number:02d}", ("request body", wanted, body))

def _journal_contradictions(run: _Run) -> Iterator[str]:
    state, closed, answers, before_ns = "opened", 0, 0, 0
    for number, entry in enumerate(run.journal, start=1):
        event, leg, where = entry["event"], entry["leg"], f"data/journal.jsonl:{number}"
        is_due = run.prereg["schedule"]["stop_after_first_pair"] and closed == FIRST_PAIR and not answers
        next_leg = run.order[closed] if closed < len(run.order) else None
        legal = {"leg_started": leg == next_leg and not is_due, "leg_closed": leg == next_leg, "phase_answered": is_due}
        legal |= {"phase_stopped": is_due, "run_closed": state == "stopped" or next_leg is None}
        following = "closed" if event == "run_aborted" and state != "closed" else STEPS.get(state, {}).get(event)
        if following is None or not legal.get(event, True):
            yield from _unequal(where, ("step", "a legal one", f"{event} {leg} when {state}"))
            return
        state, closed, answers = following, closed + (event == "leg_closed"), answers + event.startswith("phase_")
        yield from _unequal(where, ("time that goes on", max(before_ns, entry["mono_ns"]), entry["mono_ns"]))
        before_ns = entry["mono_ns"]
    wanted, surplus = run.order[:closed], list[str]()
    if run.outcome:
        yield from _unequal("data/outcome.json", ("closed", run.happened("leg_closed"), run.outcome["legs_closed"]))
    if run.outcome and not run.is_aborted:  # a killed controller leaves its journal at any legal place
        surplus = [leg.name for leg in run.legs if leg.name not in wanted]
        sides = ("closed", run.outcome["outcome"] == "phase_stopped"), (state, bool(run.happened("phase_stopped")))
        yield from _unequal("data/journal.jsonl", ("end, phase stop", *sides))
    lacking = sorted({*wanted} - {leg.name for leg in run.legs if leg.manifest_sha256})
    yield from _unequal("data/legs", ("legs not closed, legs too many", ([], []), (lacking, surplus)))

# Gates: what was registered, held against the run.
EXACTNESS, TIMING = ("exact_tokens", "cross_leg_exact"), ("pair", "control_near", "decision")
STAGES = (("identity",), ("complete_rows", "cold", "clean_log", "treatment"), EXACTNESS, ("accounting",), TIMING)
ZERO_BEFORE = ("requests_succeeded", "prompt_tokens", "generation_tokens", "requests_running", "requests_waiting")
SPECULATION = ("drafts", "draft_tokens", "accepted_tokens", "accepted_per_position")
MAX_CYCLE, MIN_CYCLES, MIN_TOKENS, FLAT_POSITIONS = 16, 3, 8, 4

@dataclass(slots=True)
class _Gate:
    """What one gate found: misses (a check did not hold), gaps (a check could not be made) and figures."""
    kind: str
    id: str
    misses: list[Doc] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    figures: list[Doc] = field(default_factory=list)
    checks: int = 0
    withheld: str = ""

    def same(self, where: str, what: str, expected: object, observed: object) -> None:
        self.checks += 1
        if expected != observed:
            sides = {"expected": str(expected)[:300], "observed": str(observed)[:300]}
            self.misses.append({"what": what, "where": where, **sides})

    def holds(self, where: str, what: str, *, is_met: bool) -> None:
        self.same(where, what, "this", "this" if is_met else "not this")

    def knows(self, value: T | None, where: str, what: str) -> TypeGuard[T]:
        self.gaps += [f"{where}: {what} is absent"] if value is None else []
        return value is not None

    def note(self, where: str, unit: str, **values: Fraction | int) -> None:
        self.figures += [_figure(name, where, value, unit) for name, value in values.items()]

    @property
    def result(self) -> str:
        if self.withheld or not (self.misses or self.checks) or (self.gaps and not self.misses):
            return "not_evaluated"
        return "failed" if self.misses else "passed"

    @property
    def reason(self) -> str:
        told = ["{where}: {what}: expected {expected}, observed {observed}".format(**miss) for miss in self.misses[:1]]
        return self.withheld or "; ".join(told or self.gaps[:5] or ([] if self.checks else ["nothing to check"]))

    def __str__(self) -> str:
        return f"gate {self.id} {self.result}: {self.reason}"

    def answer(self) -> Doc:
        misses, said = [] if self.withheld else self.misses, {"id": self.id, "kind": self.kind, "figures": self.figures}
        said |= {"result": self.result, "reason": self.reason}
        return said | {"misses": misses[:50], "miss_count": len(misses)}

class _Judge:
    """Judges one gate after the other; each public method is named after a kind."""
    def __init__(self, run: _Run) -> None:
        self.run, self.prereg, self.off = run, run.prereg, run.engine["off_when_absent"]
        decision = [self.prereg["decision"]["headline"]] if self.prereg["decision"] else []
        pairs = (gate["metric"] for gate in self.prereg["gates"] if gate["kind"] == "pair")
        self.metric = str([*decision, *pairs, CONVENTIONAL][0])

    def identity(self, gate: _Gate, _: Doc) -> None:
        run, values = self.run, set()
        for leg in run.legs:
            if not leg.order or not leg.process:
                gate.knows(None, leg.name, "the record of its process")
                continue
            gate.same(leg.name, "nonce of the order", run.nonce(leg.name), leg.order["nonce"])
            root, pairs = leg.process["root"], run.start_values(leg.order).items()
            values.add(tuple(sorted(pair for pair in pairs if pair[0] == "{python}" or ":" in pair[0])))
            gate.same(leg.name, "argv, environment", run.expected_start(leg.order), (root["argv"], root["environment"]))
            strangers = {*root["environment_other"], *root["environment"]} - set(run.packet["environment_allowed"])
            gate.same(leg.name, "names that are not allowed", (set(), []), (strangers, root["environment_other"]))
            self._one_server(gate, leg, leg.process)
        gate.same("run", "distinct interpreters and models", len(values) and 1, len(values))
        boots = {leg.started["boot_id"] for leg in run.legs if leg.started} or {run.marker["host"]["boot_id"]}
        gate.same("run", "boot of every start", {run.marker["host"]["boot_id"]}, boots)
        for legs in (run.arm("A"), run.arm("B")):
            for leg in legs[1:]:
                mapped = [_mapped_files(one) for one in (legs[0], leg)]
                if gate.knows(None if None in mapped else mapped, leg.name, "a list of mapped files"):
                    gate.same(leg.name, f"mapped files, as in {legs[0].name}", *mapped)
        spans = [(leg.started["mono_ns"], leg.exit["mono_ns"]) for leg in run.legs if leg.started and leg.exit]
        gate.holds("run", f"starts in turn: {spans}", is_met=all(one[1] < two[0] for one, two in pairwise(spans)))
        gate.checks = gate.checks if run.legs else 0

    def _one_server(self, gate: _Gate, leg: _Leg, process: Doc) -> None:
        name, root, ready, version = leg.name, process["root"], process["readiness"], _served_version(process)
        found = re.fullmatch(self.run.engine["version_pattern"], version) if version is not None else None
        gate.holds(name, f"a registered engine version, {version}", is_met=found is not None)
        pids = {one["pid"] for one in (root, *process["tree"])}
        sockets = [*process["listeners"], *process["listeners_after"]]
        counts = (len(process["listeners"]), len(process["listeners_after"]), len({one["inode"] for one in sockets}))
        gate.same(name, "listening sockets before and after, the same one", (1, 1, 1), counts)
        gate.same(name, "sockets of others", [], [one for one in sockets if not pids & set(one["owner_pids"])])
        gate.same(name, "root process after the last prompt", [root["start_ticks"]], process["roots_after"])
        gate.same(name, "process start", *(_total(one, "process_start_time") for one in leg.counters or ({}, {})))
        if leg.postflight:
            left = [leg.postflight[key] for key in ("processes_left", "listeners_left", "shared_memory_left")]
            gate.same(name, "processes, listeners and shared memory left", [[], [], []], left)
            rows = [row.lines[event][0]["mono_ns"] for row in leg.rows for event in ("connect_started", "closed")]
            stamps = [ready["ready_mono_ns"], *rows, leg.postflight["stop_signal_mono_ns"]]
            gate.same(name, "rows between ready and stop, one after the other", sorted(stamps), stamps)
        nonce = self.run.nonce(name) if any("{nonce}" in one for one in self.prereg["service"]["command"]) else ""
        gate.holds(name, f"nonce {nonce} in the order and the served model", is_met=nonce in ready["served_model"])
        models = {model for row in leg.rows for model in row.answer.models} or {ready["served_model"]}
        gate.same(name, "model of every event", {ready["served_model"]}, models)

    def complete_rows(self, gate: _Gate, _: Doc) -> None:
        for leg in self.run.legs:
            gate.same(leg.name, "rows", len(self.run.prompts or leg.rows or "?"), len(leg.rows))
            for row in leg.rows:
                gate.same(f"{leg.name} row {row.number}", "faults", [], row.faults + row.doubts)

    def treatment(self, gate: _Gate, proof: Doc) -> None:
        for leg in self.run.legs:
            state = proof["control" if leg.name[0] == "A" else "candidate"]
            if "log" in proof and gate.knows(leg.log, leg.name, "the server log"):
                count = len(_matching(leg.log, proof["log"]))
                is_met = (count > 0) == (state == "present")
                gate.holds(leg.name, f"lines of the proof are {state}: {count}", is_met=is_met)
                gate.note(leg.name, "lines", proof_lines=count)
            name = proof.get("counter", "")
            if name and gate.knows(grown := leg.grown(name, self.off), leg.name, f"counter {name}"):
                after = _total(leg.counters[1], name) if leg.counters else None
                is_met = grown > 0 if state == "positive" else not after
                gate.holds(leg.name, f"counter {name} is {state}: {grown}", is_met=is_met)
                gate.note(leg.name, "count", **{name: grown})

    def cold(self, gate: _Gate, said: Doc) -> None:
        for leg in self.run.legs:
            for row in leg.rows:
                cached = row.answer.usages[0]["cached"] if row.answer.usages else None
                if gate.knows(cached, f"{leg.name} row {row.number}", "cached tokens of the usage"):
                    gate.same(f"{leg.name} row {row.number}", "cached tokens", said["cached_tokens"], cached)
            if gate.knows(leg.counters, leg.name, "counters"):
                self._cold_counters(gate, leg, said["requests_per_start"], leg.counters)

    def _cold_counters(self, gate: _Gate, leg: _Leg, asked: int, sides: tuple[Counters, Counters]) -> None:
        before, after = sides
        for name in ZERO_BEFORE:
            if gate.knows((name in {*before, *after, *self.off}) or None, leg.name, f"counter {name}"):
                gate.same(leg.name, f"{name} before", 0, _total(before, name) or 0)
        for name in ("prefix_cache_hits", "preemptions"):
            if gate.knows(grown := leg.grown(name, self.off), leg.name, f"counter {name}"):
                gate.same(leg.name, f"{name} during the start", 0, grown)
        if gate.knows(requests := _total(after, "requests_succeeded"), leg.name, "counter requests_succeeded"):
            gate.same(leg.name, "requests after", asked, requests)
            gate.note(leg.name, "requests", requests=requests)
            ends = [(dict(labels), value) for labels, value in after["requests_succeeded"].items()]
            bad = sum(value for end, value in ends if end.get("finished_reason") in ("abort", "error"))
            gate.same(leg.name, "requests that ended badly", 0, bad)

    def clean_log(self, gate: _Gate, said: Doc) -> None:
        engine, is_strict = self.run.engine, said["unknown_environment"] == "fail"
        for leg in self.run.legs:
            if gate.knows(leg.log, leg.name, "the server log"):
                unknown = _matching(leg.log, engine["unknown_environment_pattern"])
                gate.note(leg.name, "lines", unknown_environment_lines=len(unknown))
                gate.same(leg.name, "unknown variables", [], unknown[:1] if is_strict else [])
                for pattern in [*engine["deny_patterns"], *(one["pattern"] for one in said["deny"])]:
                    gate.same(leg.name, f"lines matching {pattern!r}", [], _matching(leg.log, pattern)[:1])
                for one in said["require"]:
                    count = len(_matching(leg.log, one["pattern"]))
                    gate.same(leg.name, f"lines matching {one['pattern']!r}", one["count"] or max(count, 1), count)

    def exact_tokens(self, gate: _Gate, _: Doc) -> None:
        controls = self.run.arm("A") if self.prereg["oracle"] == "first_control" else []
        taught = [row.told for row in controls[0].rows] if controls else self.run.taught
        expected = taught if any(leg.rows for leg in self.run.legs) else None  # nothing equals nothing: no proof
        if gate.knows(expected, "run", "a row, a teacher or a first control start"):
            _compare(gate, self.run.legs, expected)
            long = [row.answer.ids for leg in self.run.legs for row in leg.rows if len(row.answer.ids) >= MIN_TOKENS]
            filled = [any(i[n:] == i[:-n] for n in range(1, 1 + min(MAX_CYCLE, len(i) // MIN_CYCLES))) for i in long]
            gate.note("", "rows", degenerate_rows=sum(filled))  # one token or a short cycle fills them

    def cross_leg_exact(self, gate: _Gate, _: Doc) -> None:
        if gate.knows((any(leg.rows for leg in self.run.legs) and self.run.legs[1:]) or None, "run", "a second start"):
            _compare(gate, self.run.legs[1:], [row.told for row in self.run.legs[0].rows])

    def accounting(self, gate: _Gate, _: Doc) -> None:
        for leg in self.run.legs:
            for row in leg.rows:
                where, usage, prompts = f"{leg.name} row {row.number}", row.answer.usages[:1], row.answer.prompts
                is_there = gate.knows(usage or None, where, "usage")
                if is_there and gate.knows(prompts or None, where, "prompt token ids"):
                    gate.same(where, "prompt token ids", usage[0]["prompt"], len(prompts[0]))
                if is_there:
                    gate.same(where, "token ids", usage[0]["completion"], len(row.answer.ids))
            tokens = sum(len(row.answer.ids) for row in leg.rows)
            prompt_tokens = sum(len(ids) for row in leg.rows for ids in row.answer.prompts)
            for name, expected in (("generation_tokens", tokens), ("prompt_tokens", prompt_tokens)):
                if gate.knows(grown := leg.grown(name, self.off), leg.name, f"counter {name}"):
                    gate.same(leg.name, f"growth of {name} against the rows", expected, grown)
                    gate.note(leg.name, "tokens", **{name: grown})
            self._speculation(gate, leg, tokens)

    def _speculation(self, gate: _Gate, leg: _Leg, tokens: int) -> None:
        known, name = [leg.grown(one, self.off) for one in SPECULATION], leg.name
        length, is_lookup = _drafting(self.run, leg)
        held = {one for side in leg.counters or () for one in side}
        is_lacking = None in known or (length and not held.issuperset(SPECULATION))
        if not gate.knows(None if is_lacking else known, name, "a speculation counter"):
            return
        drafts, proposed, accepted, by_position = counts = [one or Fraction(0) for one in known]
        if not length:
            gate.same(name, "draft rounds without speculation", 0, drafts)
            return
        is_met = drafts <= proposed <= drafts * length if is_lookup else proposed == drafts * length
        gate.holds(name, f"{proposed} tokens of {drafts} drafts of {length}", is_met=is_met)
        gate.same(name, "accepted tokens over positions", accepted, by_position)
        gate.holds(name, "at least one accepted token", is_met=accepted >= 1)
        # A round emits one token of its own and what was accepted; a row that reaches its limit cuts its last round.
        most = tokens + len(leg.rows) * length
        gate.holds(name, f"drafts and accepted tokens are at most {most}", is_met=drafts + accepted <= most)
        self._survival(gate, leg, drafts)
        gate.note(name, "count", **dict(zip(SPECULATION[:3], counts, strict=False)))
        if proposed:
            gate.note(name, "share", acceptance_rate=accepted / proposed)
        if drafts:
            gate.note(name, "tokens", accepted_per_cycle=accepted / drafts, emitted_per_cycle=1 + accepted / drafts)
            if (seconds := leg.grown("request_decode_time_sum", self.off)) is not None:
                gate.note(name, "ms", cycle_ms=seconds * 1000 / drafts)

    def _survival(self, gate: _Gate, leg: _Leg, drafts: Fraction) -> None:
        places: dict[str, Fraction] = {}
        for sign, counters in zip((-1, 1), leg.counters or (), strict=False):
            for labels, value in counters.get(SPECULATION[3], {}).items():
                place = dict(labels).get("position", "")
                places[place] = places.get(place, Fraction(0)) + sign * value
        survival = [places[place] for place in sorted(places, key=lambda place: (len(place), place))]
        positions = {str(number) for number in range(len(places))}
        gate.same(leg.name, "positions", positions, positions if {*places} == {""} else {*places})
        gate.same(leg.name, "survival never rises", sorted(survival, reverse=True), survival)
        if len(survival) >= FLAT_POSITIONS and survival[0] > 0:
            gate.note(leg.name, "share", survival_last_over_first=survival[-1] / survival[0])
        if drafts:
            gate.note(leg.name, "share", **{f"survival_{at}": value / drafts for at, value in enumerate(survival)})

class _SpeedJudge(_Judge):
    def pairs(self, metric: str) -> Iterator[tuple[str, int, bool, dict[str, Any]]]:
        for control, candidate in zip(self.run.arm("A"), self.run.arm("B"), strict=False):
            before, after = ([row.metrics.get(metric) for row in leg.rows] for leg in (control, candidate))
            both = [(a, b) for a, b in zip(before, after, strict=False) if a is not None and b is not None]
            heads = [one for leg in (candidate, control) if (one := _headline(leg.rows, metric)) is not None]
            count, found = max(len(before), len(after)), Doc()
            found["row_wins"] = sum(b > a for a, b in both)  # a tie is a loss, and so is a row that does not count
            found |= {"headline_gain": _gain_percent(heads[0], heads[1])} if len(heads) > 1 else {}
            gains = [_gain_percent(b, a) for a, b in both]
            found |= {"median_paired_gain": _quantile(gains)} if gains and len(gains) == count else {}
            yield f"{candidate.name} vs {control.name}", count, None not in before and len(before) == count, found

    def effect(self) -> list[Doc]:
        found = [_figure(key, pair[0], value, "") for pair in self.pairs(self.metric) for key, value in pair[3].items()]
        heads = [[_headline(leg.rows, self.metric) for leg in self.run.arm(arm)] for arm in "BA"]
        if all(heads) and None not in heads[0] + heads[1]:
            gain = _gain_percent(*(sum((one for one in arm if one), Fraction(0)) / len(arm) for arm in heads))
            found.append(_figure("gain_of_mean_headlines", "", gain, "percent"))
        return found

    def pair(self, gate: _Gate, said: Doc) -> None:
        pairs = list(self.pairs(said["metric"]))
        gate.knows(pairs or None, "run", "a pair of starts")
        for name, rows, is_sound, values in pairs:
            tail = sum(comb(rows, count) for count in range(values["row_wins"], rows + 1))
            gate.note(name, "", **values, sign_test_p=Fraction(tail, 2**rows))
            if gate.knows(is_sound or None, name, f"{said['metric']} of a control row"):
                for key in ("row_wins", "headline_gain_percent", "median_paired_gain_percent"):
                    floor, value = said[f"min_{key}"], values.get(key.removesuffix("_percent"))
                    is_met = floor is None or (value is not None and value >= Fraction(floor))
                    gate.holds(name, f"{key} of at least {floor}: {value}", is_met=is_met)

    def control_near(self, gate: _Gate, said: Doc) -> None:
        reference, within = Fraction(said["reference"]), Fraction(said["within_percent"])
        for leg in self.run.arm("A"):
            if gate.knows(speed := _headline(leg.rows, self.metric), leg.name, self.metric):
                is_near = abs(speed - reference) * 100 <= reference * within
                gate.holds(leg.name, f"headline {float(speed)} within {within} % of {reference}", is_met=is_near)
                gate.note(leg.name, "tokens/s", **{self.metric: speed})
                gate.note(leg.name, "percent", distance=_gain_percent(speed, reference))

    def decision(self, gate: _Gate, said: Doc) -> None:
        rows = {leg.name: leg.rows for leg in self.run.legs}
        speeds = {name: _headline(rows.get(name, []), said["headline"]) for name in self.run.order}
        known = [(name[0], speed) for name, speed in speeds.items() if gate.knows(speed, name, said["headline"])]
        candidates, controls = ([speed for one, speed in known if one == arm] for arm in "BA")
        if gate.gaps or not gate.knows((candidates and controls) or None, "run", "a start of each arm"):
            return
        reported, margin = min(candidates), min(candidates) - max(controls)
        gate.note("", "tokens/s", reported_value=reported, lower_candidate_minus_higher_control=margin)
        gate.holds("run", "a reported value above 0", is_met=reported > 0)
        if said["record_to_beat"] is not None:
            floor = Fraction(said["record_to_beat"]) * (100 + Fraction(said["floor_over_record_percent"] or 0)) / 100
            gate.note("", "tokens/s", practical_floor=floor)
            gate.holds("run", f"{float(reported)} above the practical floor {float(floor)}", is_met=reported > floor)

    def is_exact_within_arms(self) -> bool:
        gate = _Gate("within_arms", "within_arms")
        for legs in filter(None, (self.run.arm("A"), self.run.arm("B"))):
            _compare(gate, legs[1:], [row.told for row in legs[0].rows])
        return not gate.misses

    def gates(self, *, has_stopped: bool) -> list[_Gate]:
        prereg, gates = self.prereg, list[_Gate]()
        asked = [{"kind": "identity"}, {"kind": "complete_rows"}, *prereg["gates"]]
        asked[2:2] = [{"kind": "treatment", **prereg["treatment"]["proof"]}] if prereg["treatment"] else []
        asked[2:2] = [{"kind": "decision", **prereg["decision"]}] if prereg["decision"] else []
        for said in (one for stage in STAGES for one in asked if one["kind"] in stage):
            gate = _Gate(said["kind"], said.get("id") or said["kind"])
            getattr(self, gate.kind)(gate, said)
            unsound = {one.kind for one in gates if one.result != "passed"}
            is_exact = self.is_exact_within_arms() if prereg["class"] == "comparison" else not unsound & {*EXACTNESS}
            if gate.kind in TIMING and not is_exact:
                gate.withheld = "not looked at: exactness did not pass; figures are diagnostic"
            elif gate.kind == "decision" and has_stopped:
                gate.withheld = "not looked at: the run stopped after the first pair by the registered rule"
            elif gate.kind in TIMING[1:] and "complete_rows" in unsound:
                gate.withheld = "not looked at: a row does not count"
            gates.append(gate)
        return gates

def _served_version(process: Doc) -> str | None:
    try:
        version = _parse_json(process["readiness"]["version_body"].encode(), _unique_keys)["version"]
    except (ValueError, LookupError, TypeError):
        return None
    return version if isinstance(version, str) else None

def _mapped_files(leg: _Leg) -> set[str] | None:
    """What a start mapped, but for what it makes for itself under random names; None where that is not recorded."""
    if leg.order is None or leg.maps is None:
        return None
    own = (f"{leg.order['paths']['scratch']}/", "/dev/", "/memfd:", "[")
    paths = {line.split("\t")[0] for line in leg.maps.decode("utf-8", "backslashreplace").splitlines()}
    return {path for path in paths if path and not path.startswith(own) and not path.endswith(" (deleted)")}

def _matching(log: bytes | None, pattern: str) -> list[bytes]:
    found = re.compile(pattern.encode())
    return [line for line in (log or b"").split(b"\n") if found.search(line.removesuffix(b"\r"))]

def _compare(gate: _Gate, legs: Iterable[_Leg], expected: list[Told]) -> None:
    """Token ids, text, finish reason and prompt ids, row by row; a row without tokens equals nothing."""
    for leg in legs:
        gate.same(leg.name, "rows", len(expected), len(leg.rows))
        exact = [(row, bool(told[0]) and row.told == told) for row, told in zip(leg.rows, expected, strict=False)]
        gate.same(leg.name, "rows that differ", [], [row.number for row, is_equal in exact if not is_equal])
        gate.note(leg.name, "rows", exact_rows=sum(is_equal and not row.faults for row, is_equal in exact))

def _drafting(run: _Run, leg: _Leg) -> tuple[int, bool]:
    """Tokens of a draft (0: no speculation), and whether it is a lookup, which may propose fewer."""
    argv, option = leg.order["argv"] if leg.order else [], run.engine["speculation_length_option"]
    texts = [value for name, value in pairwise(argv) if name == option]
    texts += [part.removeprefix(f"{option}=") for part in argv if part.startswith(f"{option}=")]
    try:
        asked = json.loads(texts[0])
        return int(asked["num_speculative_tokens"]), asked.get("method") == "ngram"
    except (ValueError, LookupError, TypeError, AttributeError):
        return 0, False

OWN_SHA256 = _sha256(Path(__file__).read_bytes())

def _answer_phase(run: _Run, problems: Iterable[str]) -> Doc:
    """Whether the other legs may run, given the first pair alone."""
    every, run.legs = run.legs, run.legs[:FIRST_PAIR]
    gates = [gate for gate in _SpeedJudge(run).gates(has_stopped=True) if gate.result != "passed"]
    reasons = [*problems, *(str(gate) for gate in gates if gate.kind not in ("decision", "control_near"))]
    answer: Doc = {"schema": "labctl/phase/1", "analyzer": NAME, "analyzer_sha256": OWN_SHA256, "reasons": reasons}
    answer["legs"] = {leg.folder: leg.manifest_sha256 for leg in run.legs if leg.manifest_sha256}
    answer["continue"], run.legs = not reasons and len(run.legs) == FIRST_PAIR, every
    return answer

def _invalid(run: _Run, gates: list[_Gate]) -> list[str]:
    reasons = list(run.problems)
    if run.outcome is None or run.outcome["cause"] == "evidence":
        reasons.append("no outcome is there, or evidence could not be written")
    if run.outcome is None or run.outcome["outcome"] != "aborted":
        reasons += [str(gate) for gate in gates if gate.result == "not_evaluated" and not gate.withheld]
        reasons += [str(gate) for gate in gates if gate.kind == "identity" and gate.result == "failed"]
        bad = [(leg, row) for leg in run.arm("A") for row in leg.rows if row.faults or row.doubts]
        reasons += [f"{leg.name} row {row.number} does not count: {row.faults + row.doubts}" for leg, row in bad]
    return reasons

def _decide(run: _Run, gates: list[_Gate]) -> tuple[str, list[str]]:
    """The first line of the table that matches, and why."""
    why, ended = {str(gate): gate.kind for gate in gates if gate.result == "failed"}, run.outcome or {}
    failed, named, how = {*why.values()}, run.prereg["class"], ended.get("outcome")
    is_compared = named == "comparison" and how == "completed" and failed <= {*EXACTNESS}
    table = (
        ("invalid", invalid := _invalid(run, gates)),
        ("infrastructure_abort_after_measurement_start", how == "aborted"),
        ("rehearsal_only", run.packet["kind"] == "rehearsal"), ("calibration", named == "calibration"),
        ("comparison_measured", is_compared and _SpeedJudge(run).is_exact_within_arms()),
        ("diagnostic_measured_not_exact", failed & {*EXACTNESS}),
        ("phase1_failed_stop", how == "phase_stopped"),
        ("negative_or_inconclusive_stop", failed - {"decision"}),
        ("exact_reproducible_candidate_below_practical_floor", failed),
        ("exploratory_pass", named == "exploratory"), ("record_candidate", named == "record"),
    )
    kind = next(name for name, holds in table if holds)
    return kind, invalid or [*ended.get("detail", []), *why] or [f"the first line of the table that holds is {kind}"]

def judge_run(root: Path) -> Doc:
    """The verdict of a sealed run; Broken where there is nothing that could be judged."""
    seal = _Seal(root.resolve())
    run = _Run(seal.files, seal.statement["predicate"]["outcome"])
    run.problems += list(_contradictions(run))
    folders = (f"data/legs/{leg.folder}" for leg in run.legs[FIRST_PAIR:])
    later = ("data/outcome.json", "data/journal.jsonl", "data/phase1", *folders)
    for answer in (one for one in run.answers if one["analyzer"] == NAME):
        again = _answer_phase(run, [one for one in run.problems if not one.startswith(later)])
        said = [(one["continue"], one["legs"]) for one in (again, answer)]
        run.problems += _unequal(f"data/phase1/{NAME}.json", ("the phase, judged again", said[0], said[1]))
    judge = _SpeedJudge(run)
    gates = judge.gates(has_stopped=(run.outcome or {}).get("outcome") == "phase_stopped")
    kind, because = _decide(run, gates)
    decisions = [gate for gate in gates if gate.kind == "decision" and gate.result != "not_evaluated"]
    reported = [one for gate in decisions for one in gate.figures if one["name"] == "reported_value"]
    reported = [] if kind in ("invalid", "infrastructure_abort_after_measurement_start") else reported
    versions = {_served_version(leg.process) or "unknown" for leg in run.legs if leg.process}
    standing = "frozen" if {"name": NAME, "sha256": OWN_SHA256} in run.packet["analyzers"] else "later"
    digests = {"seal_sha256": _sha256(seal.tags["seal.json"]), "root_sha256": _sha256(seal.tags["manifest-sha256.txt"])}
    digests |= {"packet_sha256": run.digests["packet.json"], "marker_sha256": run.digests["marker.copy.json"]}
    told: Doc = {"schema": "labctl/verdict/1", "verdict": kind, "because": because, "run_dir": run.marker["run_dir"]}
    told |= {"campaign": run.prereg["id"], "class": run.prereg["class"], "kind": run.packet["kind"], **digests}
    told |= {"attempt": run.packet["attempt"], "is_stand_in": run.engine.get("is_stand_in", False)}
    told["engine"] = f"{run.engine['engine']} {', '.join(sorted(versions)) or 'not served'}"
    told["analyzer"] = {"name": NAME, "sha256": OWN_SHA256, "standing": standing}
    told |= {"gates": [gate.answer() for gate in gates], "effect": judge.effect()}
    told["starts"] = [_start_figures(leg.name, leg.rows, judge.metric) for leg in run.legs if leg.rows]
    told["rows"] = [row.figures(leg.name) for leg in run.legs for row in leg.rows]
    told |= {"reported_value": reported[0] if reported else None, "expectation": "", "authorizes": []}
    told["warnings"] = ["the suite's YAML was not parsed: the prompts are those of the work orders, all equal"]
    return told | {"does_not_authorize": ["anything: what a verdict authorizes is left to labctl"]}

def judge_phase(root: Path) -> Doc:
    """The answer to the phase stop of a run that still goes on; Broken where nothing could be judged."""
    data, manifests = root / "data", root.glob("data/legs/*/leg-manifest-sha256.txt")
    closed = tuple(f"legs/{path.parent.name}/" for path in manifests)
    names = (path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file())
    kept = (name for name in names if name.startswith(("packet/", "host/", "analyzers/", "journal.jsonl", *closed)))
    run = _Run({name: _read(data, name) for name in kept}, None)
    return _answer_phase(run, [*run.problems, *_contradictions(run)])

def main(arguments: list[str]) -> int:
    """Answer on standard output; where that cannot be done, one line a problem on the error output."""
    judge, paths = (judge_phase, arguments[1:]) if arguments[:1] == ["--phase"] else (judge_run, arguments)
    if arguments == ["--identity"]:
        sys.stdout.buffer.write(_canonical({"name": NAME, "sha256": OWN_SHA256}))
        return 0
    if len(paths) != 1 or paths[0].startswith("-"):
        sys.stderr.write("usage: python3 analyze_run.py [--phase] RUN\n")
        return 2
    try:
        answer = _canonical(judge(Path(paths[0])))
    except Broken as error:
        sys.stderr.write("".join(f"{problem}\n" for problem in error.args))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        got = f"{type(error).__name__}: {error}"[:160]
        sys.stderr.write(_problem("RECORD_FORM", "a record", "its registered form", got) + "\n")
    else:
        sys.stdout.buffer.write(answer)
        return 0
    return 5

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

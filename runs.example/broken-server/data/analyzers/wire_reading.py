"""The wire: stamps, then HTTP, then events, then what they say."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .record_forms import require_form
from .sealed_files import Broken, Doc, canonical, document, parse_json, problem

Lines = dict[str, list[Doc]]

# The wire: stamps, then HTTP, then events, then what they say.
LETTERS = {"opened": "O", "connect_started": "S", "connected": "C", "sent": "W", "read": "R", "closed": "X"}
HTTP_OK, MAX_TOKEN = 200, 1 << 31
TEXT = rb"[\t\x20-\x7e\x80-\xff]*"
HEADERS = rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:" + TEXT + rb"\r\n)*)\r\n"
HEAD = re.compile(rb"HTTP/1\.1 200(?: " + TEXT + rb")?\r\n" + HEADERS)
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})(?:[ \t]*;" + TEXT + rb")?\r\n")
TRAILER, LINE_END = re.compile(HEADERS), re.compile(rb"\r\n?|\n")


def read_stamps(stamps: bytes, received: bytes, where: str) -> Lines:
    """The lines of a request by event; Broken where they are not as they were written."""
    lines: Lines = {name: [] for name in LETTERS}
    sequence, times = "", []
    for number, text in enumerate(stamps.splitlines(keepends=True), start=1):
        line = document(text, f"{where}:{number}")
        if line.get("event") not in LETTERS or canonical(line) != text:
            raise Broken(problem("RECORD_FORM", f"{where}:{number}", "a line as it was written", "another"))
        lines[line["event"]].append(require_form(line["event"], line, f"{where}:{number}"))
        sequence += LETTERS[line["event"]]
        times += [line[name] for name in ("mono_before_ns", "mono_after_ns", "mono_ns") if name in line]
    is_ordered = re.fullmatch("OS(CW*R*)?X", sequence) and times == sorted(times)
    is_ordered = is_ordered and _ends_well(lines["closed"][0], sequence)
    if not is_ordered or sum(line["length"] for line in lines["read"]) != len(received):
        raise Broken(problem("RECORD_FORM", where, "stamps in order that fit the received bytes", "others"))
    return lines


def _ends_well(closed: Doc, sequence: str) -> bool:
    if closed["ended"] not in ("complete", "status_not_200"):
        return True
    status = closed["http_status"]
    return {*"WR"} <= {*sequence} and status is not None and (status == HTTP_OK) == (closed["ended"] == "complete")


def read_response(data: bytes) -> list[tuple[int, bytes]]:
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


def read_events(body: bytes) -> tuple[list[tuple[bytes, bytes, int]], bool]:
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
class Answer:
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
        """Take one event, in order."""
        self.faults += [f"after_end: event {number}"] if self.is_done else []
        if data == b"[DONE]" and name != b"error":
            self.is_done = True
            return
        try:
            chunk = {"error": data} if name == b"error" else parse_json(data)
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
        """Say what is missing once the stream has ended."""
        sides = ((len(self.finishes), "no_finish"), (len(self.usages), "no_usage"), (int(self.is_done), "no_done"))
        self.faults += [name for count, name in sides if count != 1]
        prompt = self.prompts[0] if self.prompts else []
        self.faults += [] if prompt else ["no_prompt_ids"]
        for usage in self.usages[:1] if len(self.usages) == 1 else ():
            told = (usage["completion"], usage["prompt"] if prompt else 0)
            self.faults += [] if self.ids and told == (len(self.ids), len(prompt)) else [f"token_count: {usage}"]

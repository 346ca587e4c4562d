"""What a sealed run holds: strict JSON, digests, and the seal, which is verified before anything is parsed."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Doc = dict[str, Any]


class Broken(Exception):
    """Nothing can be said; its arguments are the problems found, one line each."""


def problem(code: str, where: str, expected: str, got: str) -> str:
    """One line: what is wrong where, and the code of it."""
    return f"{where}: expected {expected}, got {got}; restore the run from a copy [{code}]"


def unequal(where: str, *checks: tuple[str, object, object]) -> Iterator[str]:
    """A contradiction for each (name, expected, got) that differs."""
    for name, one, other in checks:
        if one != other:
            sides = f"{where}: {name}: expected {str(one)[:300]}, got {str(other)[:300]}"
            yield f"{sides}; treat the run as invalid; its records contradict each other [RECORD_CONFLICT]"


def sha256(data: bytes) -> str:
    """The lower-case hex digest of some bytes."""
    return hashlib.sha256(data).hexdigest()


def canonical(value: object) -> bytes:
    """The one form in which labctl writes JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def parse_json(data: bytes, pairs: Callable[[list[tuple[str, object]]], Doc] | None = None) -> Any:  # noqa: ANN401 (any JSON)
    """A value without NaN, infinity or lone surrogates, else a ValueError; what a server sent may have equal keys."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=pairs, parse_constant=finite, parse_float=finite)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if b"\\u" in data:
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate has no UTF-8
    return value


def finite(text: str) -> float:
    """A number that is neither NaN nor infinite, else a ValueError."""
    if (value := float(text)) - value != 0:
        raise ValueError(text)
    return value


def unique_keys(pairs: list[tuple[str, object]]) -> Doc:
    """The pairs of an object, else a ValueError where a key is twice there."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def document(data: bytes, where: str) -> Doc:
    """A record from strict JSON, no key twice; Broken where it is none."""
    try:
        value = parse_json(data, unique_keys)
    except ValueError as error:
        raise Broken(problem("BAD_JSON", where, "strict JSON", str(error)[:160])) from error
    if not isinstance(value, dict) or not value:
        raise Broken(problem("RECORD_FORM", where, "a record", "something else"))
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
    r"|discovery\.json|pre-import\.json|rows\.jsonl|component\.json|worker\.log|rank-[A-Za-z0-9._-]{0,240}\.(jsonl|log|exit\.json)"
    r"|server\.log|telemetry\.jsonl|postflight\.json|exit\.json|leg\.log|leg-manifest-sha256\.txt)"
    r"|phase1/[A-Za-z0-9][A-Za-z0-9._-]{0,249}\.json|analyzers/[A-Za-z0-9][A-Za-z0-9._-]{0,251}\.py"
    r"|journal\.jsonl|outcome\.json|layout\.json)"
)


def read_file(root: Path, path: str) -> bytes:
    """The bytes of a regular file below a root; Broken where there is none."""
    try:
        if stat.S_ISREG((root / path).lstat().st_mode):
            return (root / path).read_bytes()
    except OSError as error:
        code = "MISSING_FILE" if isinstance(error, FileNotFoundError) else "READ_FAILED"
        raise Broken(problem(code, path, "a readable file", os.strerror(error.errno or 0))) from error
    raise Broken(problem("FORBIDDEN_FILE", path, "a regular file", "something else"))


def manifest_of(files: Mapping[str, bytes]) -> bytes:
    """The one form of a manifest: digest, two blanks, path, in the order of paths."""
    return "".join(f"{sha256(files[path])}  {path}\n" for path in sorted(files)).encode()


def parts_sha256(files: Mapping[str, bytes]) -> str:
    """The digest of an analyzer, given its files by name: that of its manifest, or of its one file."""
    return sha256(manifest_of(files)) if len(files) > 1 else "".join(sha256(data) for data in files.values())


def need(files: Mapping[str, bytes], name: str) -> bytes:
    """The bytes of a file that must be there, else Broken."""
    if name not in files:
        raise Broken(problem("MISSING_FILE", f"data/{name}", "a file", "nothing"))
    return files[name]


class Seal:
    """The seal of a run, every byte of which was verified and is held from then on; Broken where it does not hold."""

    def __init__(self, root: Path) -> None:
        if missing := [name for name in (*TAGS, "data") if not os.path.lexists(root / name)]:
            raise Broken(*(problem("UNSEALED", name, "a sealed run", "no such file") for name in missing))
        self.problems: list[str] = []
        self.tags = {name: read_file(root, name) for name in TAGS}
        payload = self._read_payload(root)
        self._tell("EXTRA_FILE", {path.name for path in root.iterdir()} - {*TAGS, "data"}, "", "no such entry")
        self._tell("EXTRA_FILE", {path for path in payload if not KNOWN_PATH.fullmatch(path)}, "", "a known kind")
        self._compare("manifest-sha256.txt", payload)
        self._compare("tagmanifest-sha256.txt", {name: self.tags[name] for name in TAGS[:3]})
        self.files = {path.removeprefix("data/"): data for path, data in payload.items()}
        if not self.problems:
            self.statement = document(self.tags["seal.json"], "seal.json")
            found = self._differences(self.statement["predicate"])
            self.problems += (problem.replace("[RECORD_CONFLICT]", "[SEAL_FOREIGN]") for problem in found)
        if self.problems:
            raise Broken(*self.problems)

    def _tell(self, code: str, names: Iterable[str], got: str, expected: str = "a file of the manifest") -> None:
        shown = [ascii(name)[1:-1] for name in sorted(names)]
        self.problems += [problem(code, name, expected, got or "something else") for name in shown]

    def _read_payload(self, root: Path) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for folder, folders, files in os.walk("" if (root / "data").is_symlink() else root / "data"):
            for path in (Path(folder, name) for name in (*folders, *files)):
                shown, mode = path.relative_to(root).as_posix(), path.lstat().st_mode
                if stat.S_ISREG(mode) and not mode & (stat.S_ISUID | stat.S_ISGID):
                    found[shown] = read_file(root, shown)
                elif not stat.S_ISDIR(mode) or not any(path.iterdir()):
                    self._tell("FORBIDDEN_FILE", [shown], "", "a regular file, or a folder that holds something")
        return found

    def _compare(self, name: str, found: dict[str, bytes]) -> None:
        lines = [line for text in self.tags[name].decode("latin-1").split("\n") if (line := SAFE_LINE.fullmatch(text))]
        wanted = {line[2]: line[1] for line in lines}
        if self.tags[name] != manifest_of(found):
            self._tell("MISSING_FILE", wanted.keys() - found.keys(), "nothing")
            self._tell("EXTRA_FILE", found.keys() - wanted.keys(), "a file", "no such file")
            changed = [path for path in wanted.keys() & found.keys() if sha256(found[path]) != wanted[path]]
            self._tell("DIGEST_MISMATCH", changed, "another digest", "the digest of the manifest")
        if self.tags[name] != manifest_of(found) and not self.problems:
            self._tell("MANIFEST_FORM", [name], "another form", "sorted lines of digest and safe path")

    def _differences(self, said: Doc) -> Iterator[str]:
        blank = {**self.statement, "predicate": {**said, "self_sha256": "0" * 64}}
        packet_bytes, marker_bytes = (need(self.files, f"packet/{name}.json") for name in ("packet", "marker.copy"))
        packet, marker = (document(data, "data/packet") for data in (packet_bytes, marker_bytes))
        ended = said["outcome"]
        if ended["outcome"] != "aborted":  # what another process sealed is aborted, whatever its controller had written
            ended = document(need(self.files, "outcome.json"), "data/outcome.json")
        subject = {marker["run_dir"]: self.tags["manifest-sha256.txt"], "packet.json": packet_bytes}
        subject |= {"marker": marker_bytes, "tagmanifest-sha256.txt": self.tags["tagmanifest-sha256.txt"]}
        told = sorted((one["name"], one["digest"]["sha256"]) for one in self.statement["subject"])
        return unequal(
            "seal.json",
            ("canonical form", canonical(self.statement), self.tags["seal.json"]),
            ("its own digest", sha256(canonical(blank)), said["self_sha256"]),
            ("subject", sorted((name, sha256(data)) for name, data in subject.items()), told),
            ("order", marker["order"], said["order"]),
            ("marker", (sha256(packet_bytes), packet["kind"]), (marker["packet_sha256"], marker["kind"])),
            ("outcome", (ended["outcome"], ended["cause"]), (said["outcome"]["outcome"], said["outcome"]["cause"])),
            ("the two lines of a bag", BAGIT, self.tags["bagit.txt"]),
        )

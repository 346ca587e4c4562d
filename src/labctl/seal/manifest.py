"""The one byte form of a manifest, and the comparison of a manifest with what is there; pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from labctl.codes import Code
from labctl.errors import ManifestMismatch, Problem
from labctl.rundir import SAFE_PART

PAYLOAD_PREFIX = "data/"
_LINE = re.compile(rb"([0-9a-f]{64})  (.+)", re.DOTALL)
_RESTORE = "restore the file from a copy"


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file that is there has in it."""

    sha256: str
    size_bytes: int


def parse_manifest(data: bytes, where: str, *, prefix: str = PAYLOAD_PREFIX) -> dict[str, str]:
    """The digest of each path of a manifest.

    Args:
        data: the manifest's bytes.
        where: its name, for messages.
        prefix: what every path starts with; empty for a tag manifest or the manifest of a leg.

    Raises:
        ManifestMismatch: with every line that deviates from the one canonical form (MANIFEST_FORM).
    """
    lines = data.split(b"\n")
    problems = list(_frame_problems(data, where))
    digests: dict[str, str] = {}
    folded: set[str] = set()
    before = b""
    for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, start=1):
        fault = _line_fault(line, prefix, before)
        if fault is None:
            digest, path = line[:64].decode(), line[66:].decode()
            fault = f"a name that differs from another only in case: {path}" if path.casefold() in folded else None
            folded.add(path.casefold())
            digests[path] = digest
            before = line[66:]
        if fault is not None:
            problems.append(_form_problem(f"{where}:{number}", fault))
    if problems:
        raise ManifestMismatch(problems)
    return digests


def compare_manifest(
    expected: Mapping[str, str], sizes: Mapping[str, int], found: Mapping[str, FileFacts]
) -> Iterator[Problem]:
    """Every difference between a manifest and the files that are there, each under its own code.

    Args:
        expected: digest by path, from the manifest.
        sizes: size in bytes by path, where it is known.
        found: what is there.
    """
    for path in sorted(expected.keys() - found.keys()):
        yield Problem(Code.MISSING_FILE, path, "a file of the manifest", "nothing", _RESTORE)
    for path in sorted(found.keys() - expected.keys()):
        yield Problem(Code.EXTRA_FILE, path, "no file beside those of the manifest", "a file", "move it away")
    for path in sorted(expected.keys() & found.keys()):
        yield from _file_problems(path, expected[path], sizes.get(path), found[path])


def shown(name: str) -> str:
    """A file name that is safe to print, whatever it holds."""
    return name if all(SAFE_PART.match(part) for part in name.split("/")) else ascii(name)


def _file_problems(path: str, sha256: str, size_bytes: int | None, found: FileFacts) -> Iterator[Problem]:
    if size_bytes is not None and size_bytes != found.size_bytes:
        yield Problem(Code.SIZE_MISMATCH, path, f"{size_bytes} bytes", f"{found.size_bytes} bytes", _RESTORE)
    elif sha256 != found.sha256:
        yield Problem(Code.DIGEST_MISMATCH, path, f"sha256 {sha256}", found.sha256, _RESTORE)


def _frame_problems(data: bytes, where: str) -> Iterator[Problem]:
    if not data:
        yield _form_problem(f"{where}:1", "no line at all")
    elif not data.endswith(b"\n"):
        last = len(data.split(b"\n"))
        yield _form_problem(f"{where}:{last}", "no newline at the end")


def _line_fault(line: bytes, prefix: str, before: bytes) -> str | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return ascii(line[:100])
    path = match[2]
    text = path.decode("ascii", "replace")
    if not text.startswith(prefix) or not all(SAFE_PART.match(part) for part in text.split("/")):
        return f"the path {text[:200]!a}"
    if path == before:
        return f"the path {text} twice"
    if path < before:
        return f"the path {text} out of order"
    return None


def _form_problem(where: str, fault: str) -> Problem:
    expected = "64 lower-case hex digits, two spaces, a safe path, sorted by bytes, one newline"
    return Problem(Code.MANIFEST_FORM, where, expected, fault, "restore the manifest from a copy")

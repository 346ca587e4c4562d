"""SHA-256 digests, of bytes and of whole trees."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

CHUNK_BYTES = 1 << 20


def sha256_hex(data: bytes) -> str:
    """The lower-case hex SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> tuple[str, int]:
    """The lower-case hex SHA-256 and the size in bytes of one regular file."""
    state = hashlib.sha256()
    size_bytes = 0
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            state.update(chunk)
            size_bytes += len(chunk)
    return state.hexdigest(), size_bytes


def manifest_lines(digests: Mapping[str, str]) -> bytes:
    """The one canonical form of a manifest: `<hex>␠␠<path>`, sorted by the bytes of the path."""
    ordered = sorted(digests.items(), key=lambda item: item[0].encode())
    return "".join(f"{digest}  {path}\n" for path, digest in ordered).encode()


def dirhash(digests: Mapping[str, str]) -> str:
    """The digest of a tree, given the digest of every file by its relative path (in-toto `dirHash`)."""
    return sha256_hex(manifest_lines(digests))


def dirhash_of_files(root: Path, files: Iterable[Path]) -> str:
    """The `dirHash` of some files below a root."""
    return dirhash({path.relative_to(root).as_posix(): sha256_file(path)[0] for path in files})

"""A model's files held against their manifest."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from labctl.codes import Code
from labctl.digest import sha256_file, sha256_hex
from labctl.errors import FreezeRefused, Problem
from labctl.packet.model import FrozenModelFiles
from labctl.prereg.model_manifest import parse_model_manifest


def verify_model(name: str, folder: Path, manifest: bytes) -> FrozenModelFiles:
    """Hold every file of a model's folder against the manifest; the folder holds nothing else.

    Raises:
        FreezeRefused: with every file that is missing, differs or is not listed (FILE_DRIFT).
        InvalidPreregistration: the manifest is not one.
    """
    files = parse_model_manifest(manifest, f"model-{name}.sha256").files
    expected = {file.path: file.sha256 for file in files}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = dict(zip(expected, pool.map(lambda path: _digest(folder / path), expected), strict=True))
    problems = [
        _drift(folder / path, digest, found[path][0] or "no readable file")
        for path, digest in expected.items()
        if found[path][0] != digest
    ]
    problems += [
        _drift(file, "only files of the manifest", "a file beside them")
        for file in sorted(folder.rglob("*"))
        if not file.is_dir() and file.relative_to(folder).as_posix() not in expected
    ]
    if problems:
        raise FreezeRefused(problems)
    size_bytes = sum(size for _digest_text, size in found.values())
    return FrozenModelFiles(name=name, manifest_sha256=sha256_hex(manifest), files=len(files), bytes=size_bytes)


def _digest(path: Path) -> tuple[str | None, int]:
    try:
        return sha256_file(path)
    except OSError:
        return None, 0


def _drift(where: Path, expected: str, got: str) -> Problem:
    do = "restore the model's files, or make the manifest again and freeze anew"
    return Problem(Code.FILE_DRIFT, str(where), expected, got, do)

"""A copy of a sealed run for others: it tells of its differences, holds no mapped name, and is never the run."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import BrokenEvidence, Refused
from labctl.records.export import ExportRecord, Redaction
from labctl.seal.export import (
    FILES,
    ORIGINAL_MANIFEST,
    RECORD,
    ExportRequest,
    export_run,
    named_range,
    named_replacement,
)
from labctl.seal.verify import SealedRun, open_sealed_run
from labctl.standalone.analyze_run import judge_run
from labctl.standalone.sealed_files import Broken
from tests.fakes.run_builder import RunBuilder, json_edit

SECRET = b"hunter2-the-secret"
HOSTNAME = "alices-workstation"


@pytest.fixture
def run(tmp_path: Path) -> SealedRun:
    builder = RunBuilder(stops=False)
    builder.leg("B1").log = b"INFO starting\nkey " + SECRET + b"\nINFO ready\n"
    builder.edits["host/identity.json"] = json_edit(lambda document: document.update(hostname=HOSTNAME))
    return builder.seal(tmp_path)


def request(run: SealedRun, target: Path, **changes: object) -> ExportRequest:
    usual = {"reason": "shown to a stranger", "names": {}, "redactions": ()}
    return ExportRequest(run=run, target=target, **(usual | changes))  # type: ignore[arg-type] # one field each


def everything(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_names_and_secrets_are_gone_and_what_was_taken_out_is_told(run: SealedRun, tmp_path: Path) -> None:
    log = run.read("legs/02-B1/server.log")
    start = log.index(SECRET)
    taken = Redaction(path="legs/02-B1/server.log", start=start, end=start + len(SECRET))
    names = {"Lab One": "Somebody", "lab@example.org": "nobody@example.org"}
    record = export_run(request(run, tmp_path / "copy", names=names, redactions=(taken,)))
    text = everything(tmp_path / "copy")
    assert [word for word in (SECRET, HOSTNAME.encode(), b"Lab One", b"lab@example.org") if word in text] == []
    assert (tmp_path / "copy/data/legs/02-B1/server.log").read_bytes() == log.replace(SECRET, b"#" * len(SECRET))
    assert record.redactions == (taken,)
    assert {one.replacement for one in record.names} >= {"machine-1", "Somebody"}
    assert ExportRecord.from_json((tmp_path / "copy" / RECORD).read_bytes(), RECORD) == record


def test_every_difference_is_told_and_every_other_file_is_the_originals(run: SealedRun, tmp_path: Path) -> None:
    record = export_run(request(run, tmp_path / "copy", names={"Lab One": "Somebody"}))
    manifest = (tmp_path / "copy" / ORIGINAL_MANIFEST).read_bytes()
    assert sha256_hex(manifest) == record.original.root_sha256 == run.root_sha256
    assert record.original.seal_sha256 == run.seal_sha256
    listed = {line[66:]: line[:64] for line in manifest.decode().splitlines()}
    found = {
        path.relative_to(tmp_path / "copy").as_posix(): sha256_hex(path.read_bytes())
        for path in (tmp_path / "copy/data").rglob("*")
        if path.is_file()
    }
    assert found.keys() == listed.keys()
    changed = {f"data/{one.path}": (one.original_sha256, one.sha256) for one in record.changed}
    assert changed == {path: (listed[path], found[path]) for path in found if found[path] != listed[path]}
    checked = subprocess.run(["sha256sum", "-c", "--strict", "--quiet", FILES], cwd=tmp_path / "copy", check=False)
    assert checked.returncode == 0


def test_a_copy_never_passes_as_the_run(run: SealedRun, tmp_path: Path) -> None:
    export_run(request(run, tmp_path / "copy"))
    with pytest.raises(BrokenEvidence) as caught:
        open_sealed_run(tmp_path / "copy")
    assert set(caught.value.codes) == {Code.UNSEALED}
    with pytest.raises(Broken, match="UNSEALED"):
        judge_run(tmp_path / "copy")
    assert json.loads((tmp_path / "copy" / RECORD).read_bytes())["is_original"] is False


def test_the_original_is_untouched(run: SealedRun, tmp_path: Path) -> None:
    before = everything(run.root)
    export_run(request(run, tmp_path / "copy", names={"Lab One": "Somebody"}))
    assert everything(run.root) == before
    assert open_sealed_run(run.root).seal_sha256 == run.seal_sha256


@pytest.mark.parametrize(
    "changes",
    [
        {"names": {"ab": "x"}},
        {"names": {"Lab One": "not Lab One"}},
        {"redactions": (Redaction(path="legs/02-B1/server.log", start=5, end=5),)},
        {"redactions": (Redaction(path="legs/02-B1/server.log", start=0, end=10_000_000),)},
        {"redactions": (Redaction(path="legs/02-B1/nothing.log", start=0, end=1),)},
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    changes: dict[str, object], run: SealedRun, tmp_path: Path
) -> None:
    with pytest.raises(Refused) as caught:
        export_run(request(run, tmp_path / "copy", **changes))
    assert set(caught.value.codes) == {Code.WRONG_VALUE}
    assert not (tmp_path / "copy").exists()


def test_a_folder_that_is_there_is_refused(run: SealedRun, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with pytest.raises(Refused) as caught:
        export_run(request(run, tmp_path / "copy"))
    assert caught.value.codes == (Code.EXISTS,)


def test_ranges_and_names_are_read_as_they_are_written(run: SealedRun) -> None:
    size = len(run.read("legs/02-B1/server.log"))
    path = "legs/02-B1/server.log"
    assert named_range(run, path) == named_range(run, f"data/{path}") == Redaction(path=path, start=0, end=size)
    assert named_range(run, f"{path}:3-9") == Redaction(path=path, start=3, end=9)
    assert named_replacement("a=b=c") == ("a=b", "c")
    wrong: list[Callable[[], object]] = [
        lambda: named_range(run, f"{path}:x-9"),
        lambda: named_range(run, ""),
        lambda: named_replacement("alone"),
    ]
    for call in wrong:
        with pytest.raises(Refused):
            call()


def test_the_command_says_what_it_made(run: SealedRun, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "labctl", "runs", "export", str(run.root), str(tmp_path / "copy")]
    command += ["--reason", "shown", "--map", "Lab One=Somebody", "--redact", "legs/02-B1/server.log"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.seal_sha256[:12] in done.stdout
    assert "ranges taken out: 1" in done.stdout
    assert (tmp_path / "copy/data/legs/02-B1/server.log").read_bytes().strip(b"#") == b""

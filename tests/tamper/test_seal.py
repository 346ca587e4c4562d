"""One thing is broken in a sealed run; the verifier must name exactly that."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import manifest_lines, sha256_hex
from labctl.errors import BrokenEvidence, LabctlError, ManifestMismatch, Problem, SealInvalid
from labctl.frozen import canonical_json, strict_json
from labctl.records.run import NOTHING_SHA256
from labctl.records.seal import RunSeal, self_digest
from labctl.rundir import RunPaths
from labctl.seal.bag import bag_info, hash_files, tag_manifest
from labctl.seal.verify import SealedRun, SealState, open_sealed_run, peek_statement, seal_state
from labctl.seal.write import seal_run
from tests.fakes.sealed_run import RUN_NAME, spoil, write_run, write_sealed_run


@pytest.fixture
def sealed(tmp_path: Path) -> SealedRun:
    return write_sealed_run(tmp_path / RUN_NAME)


def verdict(root: Path) -> LabctlError:
    with pytest.raises(BrokenEvidence) as caught:
        open_sealed_run(root)
    assert caught.value.exit_code == 5
    return caught.value


def faults(root: Path) -> set[tuple[Code, str]]:
    return {(problem.code, problem.where) for problem in verdict(root).problems}


def every_file(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_one_changed_bit_in_any_file_is_found_and_the_file_is_named(sealed: SealedRun) -> None:
    names = every_file(sealed.root)
    assert len(names) == len(sealed.names()) + 5
    for name in names:
        before = (sealed.root / name).read_bytes()
        for place in {0, len(before) // 2, len(before) - 1} if before else ():
            changed = bytearray(before)
            changed[place] ^= 1
            spoil(sealed.root / name, bytes(changed))
            error = verdict(sealed.root)
            assert {problem.where.split(":")[0] for problem in error.problems} == {name}, (place, str(error))
        spoil(sealed.root / name, before)
    assert open_sealed_run(sealed.root) == sealed


def test_every_bit_of_the_seal_counts(sealed: SealedRun) -> None:
    before = sealed.paths.seal.read_bytes()
    for place in range(0, len(before), 7):
        changed = bytearray(before)
        changed[place] ^= 1
        spoil(sealed.paths.seal, bytes(changed))
        assert all("seal.json" in problem.where for problem in verdict(sealed.root).problems)


def test_a_payload_file_that_changed_is_the_only_complaint(sealed: SealedRun) -> None:
    for name in sealed.names():
        before = sealed.read(name)
        if before:
            changed = bytearray(before)
            changed[-1] ^= 4
            spoil(sealed.paths.data / name, bytes(changed))
            assert faults(sealed.root) == {(Code.DIGEST_MISMATCH, f"data/{name}")}
            spoil(sealed.paths.data / name, before)


def test_a_seal_cut_at_any_byte_is_rejected(sealed: SealedRun) -> None:
    whole = sealed.paths.seal.read_bytes()
    for length in range(len(whole)):
        spoil(sealed.paths.seal, whole[:length])
        assert seal_state(sealed.root) is not SealState.SEALED
        if length % 101 == 0 or length == len(whole) - 1:
            assert isinstance(verdict(sealed.root), SealInvalid)


def test_a_seal_that_is_not_json_counts_as_unsealed(sealed: SealedRun) -> None:
    spoil(sealed.paths.seal, sealed.paths.seal.read_bytes()[:100])
    assert faults(sealed.root) == {(Code.UNSEALED, "seal.json")}
    assert seal_state(sealed.root) is SealState.UNSEALED


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("seal.json", Code.UNSEALED),
        ("manifest-sha256.txt", Code.UNSEALED),
        ("tagmanifest-sha256.txt", Code.MISSING_FILE),
        ("bagit.txt", Code.MISSING_FILE),
        ("bag-info.txt", Code.MISSING_FILE),
        ("data/journal.jsonl", Code.MISSING_FILE),
        ("data/layout.json", Code.MISSING_FILE),
    ],
)
def test_a_file_that_is_gone_is_named(sealed: SealedRun, name: str, code: Code) -> None:
    (sealed.root / name).unlink()
    assert faults(sealed.root) == {(code, name)}


def test_nothing_at_all_is_unsealed(tmp_path: Path) -> None:
    assert {problem.code for problem in verdict(tmp_path).problems} == {Code.UNSEALED}
    assert {problem.code for problem in verdict(tmp_path / "absent").problems} == {Code.UNSEALED}
    assert seal_state(tmp_path) is SealState.UNSEALED


def _file(data: Path) -> str:
    (data / "legs/01-A1/maps.txt").write_bytes(b"")
    return "data/legs/01-A1/maps.txt"


def _dotfile(data: Path) -> str:
    (data / "legs/.hidden").write_bytes(b"")
    return "'data/legs/.hidden'"


def _empty_folder(data: Path) -> str:
    (data / "phase1").mkdir()
    return "data/phase1"


def _in_new_folder(data: Path) -> str:
    (data / "more").mkdir()
    (data / "more/x.txt").write_bytes(b"")
    return "data/more/x.txt"


def _beside_data(data: Path) -> str:
    (data.parent / "notes.txt").write_bytes(b"")
    return "notes.txt"


def _unverified_signature(data: Path) -> str:
    (data.parent / "seal.json.sig").write_bytes(b"")
    return "seal.json.sig"


def _symlink(data: Path) -> str:
    (data / "phase1").symlink_to("legs")
    return "data/phase1"


def _fifo(data: Path) -> str:
    os.mkfifo(data / "host/devices.json")
    return "data/host/devices.json"


@pytest.mark.parametrize(
    ("add", "code"),
    [
        (_file, Code.EXTRA_FILE),
        (_dotfile, Code.FORBIDDEN_FILE),
        (_empty_folder, Code.EXTRA_FILE),
        (_in_new_folder, Code.EXTRA_FILE),
        (_beside_data, Code.EXTRA_FILE),
        (_unverified_signature, Code.EXTRA_FILE),
        (_symlink, Code.FORBIDDEN_FILE),
        (_fifo, Code.FORBIDDEN_FILE),
    ],
)
def test_whatever_is_added_is_named(sealed: SealedRun, add: Callable[[Path], str], code: Code) -> None:
    where = add(sealed.paths.data)
    started = time.monotonic()
    assert faults(sealed.root) == {(code, where)}
    assert time.monotonic() - started < 5


def test_a_file_replaced_by_a_fifo_does_not_block(sealed: SealedRun) -> None:
    sealed.paths.journal.unlink()
    os.mkfifo(sealed.paths.journal)
    assert faults(sealed.root) == {
        (Code.FORBIDDEN_FILE, "data/journal.jsonl"),
        (Code.MISSING_FILE, "data/journal.jsonl"),
    }


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda data: data[:-1], Code.SIZE_MISMATCH),
        (lambda _: b"", Code.SIZE_MISMATCH),
        (lambda data: data + b"\n", Code.SIZE_MISMATCH),
        (lambda data: bytes(len(data)), Code.DIGEST_MISMATCH),
    ],
)
def test_size_and_content_have_their_own_codes(sealed: SealedRun, change: Callable[[bytes], bytes], code: Code) -> None:
    wire = sealed.paths.leg(1, "A1").wire_bytes(1)
    spoil(wire, change(wire.read_bytes()))
    assert faults(sealed.root) == {(code, "data/legs/01-A1/wire/01.bin")}


def test_all_faults_are_told_at_once(sealed: SealedRun) -> None:
    spoil(sealed.paths.journal, b"{}\n")
    sealed.paths.leg(1, "A1").order.unlink()
    (sealed.paths.data / "phase1").mkdir()
    assert {code for code, _ in faults(sealed.root)} == {Code.SIZE_MISMATCH, Code.MISSING_FILE, Code.EXTRA_FILE}


def test_two_files_with_swapped_contents_are_both_named(sealed: SealedRun) -> None:
    one, two = (sealed.paths.leg(index, name).wire_bytes(1) for index, name in ((1, "A1"), (2, "B1")))
    first, second = one.read_bytes(), two.read_bytes()
    spoil(one, second)
    spoil(two, first)
    assert faults(sealed.root) == {
        (Code.DIGEST_MISMATCH, "data/legs/01-A1/wire/01.bin"),
        (Code.DIGEST_MISMATCH, "data/legs/02-B1/wire/01.bin"),
    }


def test_a_copy_under_another_name_is_still_the_run_that_was_sealed(sealed: SealedRun) -> None:
    renamed = sealed.root.rename(sealed.root.with_name("an-example"))
    assert open_sealed_run(renamed).run_dir == RUN_NAME


def test_a_seal_that_names_another_run_than_the_marker_is_foreign(sealed: SealedRun) -> None:
    seal = sealed.paths.seal.read_bytes()
    spoil(sealed.paths.seal, seal.replace(RUN_NAME.encode(), RUN_NAME[:-1].encode() + b"0"))
    codes = {code for code, _ in faults(sealed.root)}
    assert codes
    assert codes <= {Code.SEAL_FOREIGN, Code.SEAL_FORM}


def test_the_seal_of_another_run_is_foreign(sealed: SealedRun, tmp_path: Path) -> None:
    other = write_sealed_run(tmp_path / "other" / RUN_NAME)
    spoil(sealed.paths.seal, other.paths.seal.read_bytes())
    assert faults(sealed.root) >= {(Code.SEAL_FOREIGN, f"seal.json: subject[0] ({RUN_NAME})")}
    assert {code for code, _ in faults(sealed.root)} == {Code.SEAL_FOREIGN}


def reseal_tags(paths: RunPaths) -> None:
    """Make layout, manifest, tag manifest and bag info agree with the payload again, as a forger would."""
    every = [paths.root / name for name in every_file(paths.root) if name.startswith("data/")]
    sizes = {path.relative_to(paths.data).as_posix(): path.stat().st_size for path in every if path != paths.layout}
    spoil(paths.layout, canonical_json({"schema": "labctl/layout/1", "files": sizes}))
    digests = {path.relative_to(paths.root).as_posix(): sha256_hex(path.read_bytes()) for path in every}
    info = bag_info(path.stat().st_size for path in every)
    spoil(paths.root / "bag-info.txt", info)
    spoil(paths.manifest, manifest_lines(digests))
    spoil(paths.tag_manifest, tag_manifest(info, manifest_lines(digests)))


def test_a_payload_with_its_manifest_made_anew_is_foreign_to_the_seal(sealed: SealedRun) -> None:
    spoil(sealed.paths.leg(1, "A1").wire_bytes(1), b"better numbers")
    reseal_tags(sealed.paths)
    error = verdict(sealed.root)
    assert isinstance(error, SealInvalid)
    assert (Code.SEAL_FOREIGN, f"seal.json: subject[0] ({RUN_NAME})") in faults(sealed.root)


def test_a_layout_that_speaks_of_other_files_is_a_conflict(sealed: SealedRun) -> None:
    sealed.paths.leg(1, "A1").wire_bytes(2).write_bytes(b"one more row")
    layout = sealed.paths.layout.read_bytes()
    reseal_tags(sealed.paths)
    spoil(sealed.paths.layout, layout)
    every = {name: sha256_hex((sealed.root / name).read_bytes()) for name in every_file(sealed.root) if "data/" in name}
    spoil(sealed.paths.manifest, manifest_lines(every))
    info = (sealed.root / "bag-info.txt").read_bytes()
    spoil(sealed.paths.tag_manifest, tag_manifest(info, manifest_lines(every)))
    assert faults(sealed.root) == {(Code.RECORD_CONFLICT, "data/layout.json")}


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("counts", "files"), 3, "seal.json: predicate.counts"),
        (("order",), ["B1", "A1"], "seal.json: predicate.order"),
        (("externalParameters", "engine_sha256"), "9" * 64, "seal.json: predicate.externalParameters"),
        (("byproducts",), [], "seal.json: predicate.byproducts"),
        (("outcome", "outcome"), "phase_stopped", "seal.json: predicate.outcome"),
    ],
)
def test_a_statement_that_says_something_else_is_foreign(
    sealed: SealedRun, path: tuple[str, ...], value: object, where: str
) -> None:
    document = strict_json(sealed.paths.seal.read_bytes(), "seal")
    place = document["predicate"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    spoil(sealed.paths.seal, _with_own_digest(document))
    assert faults(sealed.root) == {(Code.SEAL_FOREIGN, where)}


@pytest.mark.parametrize(
    "change",
    [
        lambda seal: seal | {"predicateType": "https://labctl.dev/run-seal/v2"},
        lambda seal: seal | {"_type": "https://in-toto.io/Statement/v0.1"},
        lambda seal: seal | {"extra": 1},
        lambda seal: seal | {"subject": []},
        lambda seal: seal | {"subject": seal["subject"][:1]},
        lambda seal: seal | {"subject": [{**one, "digest": {**one["digest"], "md5": "0"}} for one in seal["subject"]]},
        lambda seal: seal | {"subject": [{**one, "digest": {"sha1": "0" * 40}} for one in seal["subject"]]},
        lambda seal: seal | {"predicate": seal["predicate"] | {"policy": {"symlinks": True}}},
    ],
)
def test_a_statement_of_another_form_is_refused(
    sealed: SealedRun, change: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    document = strict_json(sealed.paths.seal.read_bytes(), "seal")
    spoil(sealed.paths.seal, canonical_json(change(document)))
    assert {code for code, _ in faults(sealed.root)} == {Code.SEAL_FORM}


def test_a_statement_in_another_byte_form_is_refused(sealed: SealedRun) -> None:
    spoil(sealed.paths.seal, sealed.paths.seal.read_bytes().replace(b",", b", ", 1))
    assert faults(sealed.root) == {(Code.SEAL_FORM, "seal.json")}


def test_a_marker_of_another_packet_is_foreign(tmp_path: Path) -> None:
    run = write_run(tmp_path / RUN_NAME)
    marker = run.paths.packet / "marker.copy.json"
    document = strict_json(marker.read_bytes(), "marker")
    marker.write_bytes(canonical_json(document | {"packet_sha256": "7" * 64}))
    with pytest.raises(SealInvalid) as caught:
        seal_run(run, NOTHING_SHA256)
    assert caught.value.codes == (Code.SEAL_FOREIGN,)
    assert not run.paths.manifest.exists()


def test_bytes_that_change_after_verification_are_not_handed_out(sealed: SealedRun) -> None:
    opened = open_sealed_run(sealed.root)
    before = opened.read("journal.jsonl")
    spoil(sealed.paths.journal, before.replace(b"run_closed", b"run_clased"))
    with pytest.raises(ManifestMismatch) as caught:
        opened.read("journal.jsonl")
    assert caught.value.codes == (Code.DIGEST_MISMATCH,)


def test_a_name_that_is_not_in_the_run_is_not_read(sealed: SealedRun) -> None:
    for name in ("../seal.json", "absent.json", "/etc/hostname"):
        with pytest.raises(ManifestMismatch):
            sealed.read(name)


def test_a_copy_with_other_modes_and_times_is_still_sealed(sealed: SealedRun, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / RUN_NAME
    shutil.copytree(sealed.root, copy, copy_function=shutil.copyfile)
    assert open_sealed_run(copy).seal_sha256 == sealed.seal_sha256


def forge(paths: RunPaths, changes: dict[str, bytes | None]) -> None:
    """Change payload files and make everything that a forger can make agree with them again, the seal included."""
    for name, data in changes.items():
        if data is None:
            (paths.data / name).unlink()
        else:
            (paths.data / name).touch()
            spoil(paths.data / name, data)
    reseal_tags(paths)
    document = strict_json(paths.seal.read_bytes(), "seal")
    manifest, tags = paths.manifest.read_bytes(), paths.tag_manifest.read_bytes()
    document["subject"][0]["digest"]["sha256"] = sha256_hex(manifest)
    document["subject"][1]["digest"]["sha256"] = sha256_hex(tags)
    document["subject"][2]["digest"]["sha256"] = sha256_hex((paths.packet / "packet.json").read_bytes())
    document["subject"][3]["digest"]["sha256"] = sha256_hex((paths.packet / "marker.copy.json").read_bytes())
    every = [path for path in paths.data.rglob("*") if path.is_file()]
    counts = {"files": len(every), "bytes": sum(path.stat().st_size for path in every)}
    document["predicate"]["counts"] |= counts
    spoil(paths.seal, _with_own_digest(document))


def test_a_file_of_an_unknown_kind_is_named_even_under_a_forged_seal(sealed: SealedRun) -> None:
    forge(sealed.paths, {"notes.txt": b"x"})
    assert faults(sealed.root) == {(Code.EXTRA_FILE, "data/notes.txt")}


def test_a_malformed_packet_is_named_even_under_a_forged_seal(sealed: SealedRun) -> None:
    forge(sealed.paths, {"packet/packet.json": b"{}\n"})
    assert {code for code, _ in faults(sealed.root)} == {Code.RECORD_FORM}


def test_a_rehearsal_cannot_be_told_to_be_real_by_its_marker(sealed: SealedRun) -> None:
    marker = strict_json(sealed.read("packet/marker.copy.json"), "marker")
    forge(sealed.paths, {"packet/marker.copy.json": canonical_json(marker | {"kind": "rehearsal"})})
    assert faults(sealed.root) == {(Code.SEAL_FOREIGN, "data/packet/marker.copy.json")}


def test_a_completed_run_has_an_outcome_that_says_so(sealed: SealedRun) -> None:
    forge(sealed.paths, {"outcome.json": None})
    assert faults(sealed.root) == {(Code.MISSING_FILE, "data/outcome.json")}


def test_a_layout_of_another_form_is_named_even_under_a_forged_seal(sealed: SealedRun) -> None:
    spoil(sealed.paths.layout, b"[]\n")
    digests = {name: sha256_hex((sealed.root / name).read_bytes()) for name in every_file(sealed.root) if "/" in name}
    spoil(sealed.paths.manifest, manifest_lines(digests))
    info = (sealed.root / "bag-info.txt").read_bytes()
    spoil(sealed.paths.tag_manifest, tag_manifest(info, manifest_lines(digests)))
    assert {code for code, _ in faults(sealed.root)} == {Code.RECORD_FORM}


def test_a_manifest_without_the_layout_is_named(sealed: SealedRun) -> None:
    digests = {name: sha256_hex((sealed.root / name).read_bytes()) for name in every_file(sealed.root) if "/" in name}
    del digests["data/layout.json"]
    sealed.paths.layout.unlink()
    spoil(sealed.paths.manifest, manifest_lines(digests))
    info = (sealed.root / "bag-info.txt").read_bytes()
    spoil(sealed.paths.tag_manifest, tag_manifest(info, manifest_lines(digests)))
    assert faults(sealed.root) == {(Code.MISSING_FILE, "data/layout.json")}


def test_a_listing_looks_at_seal_and_manifest_only(sealed: SealedRun) -> None:
    assert seal_state(sealed.root) is SealState.SEALED
    assert peek_statement(sealed.root) == sealed.statement
    spoil(sealed.paths.journal, b"x")
    assert seal_state(sealed.root) is SealState.SEALED
    spoil(sealed.paths.manifest, b"x")
    assert seal_state(sealed.root) is SealState.BROKEN
    sealed.paths.manifest.unlink()
    assert seal_state(sealed.root) is SealState.BROKEN
    sealed.paths.seal.unlink()
    assert seal_state(sealed.root) is SealState.UNSEALED
    assert peek_statement(sealed.root) is None


@pytest.mark.parametrize(
    "name", ["bagit.txt", "bag-info.txt", "tagmanifest-sha256.txt", "manifest-sha256.txt", "seal.json"]
)
def test_a_tag_file_that_is_a_link_or_a_folder_is_named(sealed: SealedRun, name: str) -> None:
    (sealed.root / name).rename(sealed.root.parent / "elsewhere")
    (sealed.root / name).symlink_to(sealed.root.parent / "elsewhere")
    assert {where for _, where in faults(sealed.root)} == {name}
    (sealed.root / name).unlink()
    (sealed.root / name).mkdir()
    assert {where for _, where in faults(sealed.root)} == {name}


def test_a_payload_that_is_no_folder_is_named(sealed: SealedRun) -> None:
    sealed.paths.data.rename(sealed.root.parent / "elsewhere")
    sealed.paths.data.symlink_to(sealed.root.parent / "elsewhere")
    assert (Code.FORBIDDEN_FILE, "data") in faults(sealed.root)


def test_folders_too_deep_to_be_listed_are_named(sealed: SealedRun) -> None:
    before = Path.cwd()
    os.chdir(sealed.paths.data)
    try:
        for _ in range(20):
            Path("x" * 250).mkdir()
            os.chdir("x" * 250)
        Path("file").touch()
    finally:
        os.chdir(before)
    assert {code for code, _ in faults(sealed.root)} <= {Code.FORBIDDEN_FILE, Code.READ_FAILED}


def test_folders_within_folders_without_end_are_named(sealed: SealedRun) -> None:
    sealed.paths.legs.joinpath(*["x"] * 40).mkdir(parents=True)
    assert {code for code, _ in faults(sealed.root)} == {Code.FORBIDDEN_FILE}


def test_a_file_that_goes_while_the_run_is_read_is_a_problem(tmp_path: Path) -> None:
    problems: list[Problem] = []
    assert hash_files(tmp_path, ["data/gone"], problems) == {}
    assert [(problem.code, problem.where) for problem in problems] == [(Code.MISSING_FILE, "data/gone")]


def _with_own_digest(document: dict[str, object]) -> bytes:
    draft = RunSeal.from_json(canonical_json(document), "seal")
    predicate = {**draft.model_dump(mode="json")["predicate"], "self_sha256": self_digest(draft)}
    return canonical_json(document | {"predicate": predicate})

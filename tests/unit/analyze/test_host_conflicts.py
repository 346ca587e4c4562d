"""Records from before the first leg that contradict packet or marker, under a seal that holds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labctl.analyze.load import load_evidence
from labctl.codes import Code
from labctl.records.run import NOTHING_SHA256, ClosedRun, Outcome
from labctl.rundir import RunPaths
from labctl.seal.write import seal_run
from tests.fakes.run_builder import RunBuilder, json_edit


def conflicts(builder: RunBuilder, folder: Path) -> set[tuple[Code, str]]:
    return found(*builder.write(folder))


def found(paths: RunPaths, outcome: Outcome) -> set[tuple[Code, str]]:
    run = seal_run(ClosedRun(paths, outcome), NOTHING_SHA256)
    return {(problem.code, problem.where) for problem in load_evidence(run, run.outcome).conflicts}


def unmet(value: dict[str, Any]) -> None:
    value["findings"] = [{"check": "idle", "expected": "idle", "observed": "busy", "is_met": False}]


@pytest.mark.parametrize(
    ("name", "change", "where"),
    [
        ("identity", lambda value: value.update(machine_id_sha256="1" * 64), "identity.json: machine"),
        ("identity", lambda value: value.update(boot_id="another"), "identity.json: boot"),
        ("preflight", lambda value: value.update(packet_sha256="1" * 64), "preflight.json: packet"),
        ("preflight", lambda value: value.update(file_systems={"runs": "nfs"}), "preflight.json: file systems"),
        ("preflight", lambda value: value.update(rehearsal_seal_sha256="1" * 64), "preflight.json: rehearsal"),
        ("preflight", unmet, "preflight.json: checks that do not hold"),
        ("env", lambda value: value.update(allowed=["LD_PRELOAD"]), "env.json: allowed names"),
    ],
)
def test_a_record_of_the_host_that_contradicts_packet_or_marker_is_named(
    name: str, change: Callable[[dict[str, Any]], None], where: str, tmp_path: Path
) -> None:
    builder = RunBuilder(stops=False)
    builder.edits[f"host/{name}.json"] = json_edit(change)
    assert conflicts(builder, tmp_path) == {(Code.RECORD_CONFLICT, f"data/host/{where}")}


@pytest.mark.parametrize("name", ["identity", "preflight", "env"])
def test_a_record_of_the_host_that_is_gone_is_named(name: str, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False, removed={f"host/{name}.json"})
    assert conflicts(builder, tmp_path) == {(Code.MISSING_FILE, f"data/host/{name}.json")}


def test_an_input_that_the_packet_does_not_pin_is_named(tmp_path: Path) -> None:
    paths, outcome = RunBuilder(stops=False).write(tmp_path)
    (paths.packet / "inputs" / "another.json").write_bytes(b"{}\n")
    assert found(paths, outcome) == {(Code.RECORD_CONFLICT, "data/packet/inputs/another.json")}


def test_an_approval_that_the_marker_counted_must_be_there(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.edits["packet/marker.copy.json"] = json_edit(lambda value: value.update(approvals=["e" * 64]))
    where = "data/packet/approvals: approvals that the marker counted"
    assert (Code.RECORD_CONFLICT, where) in conflicts(builder, tmp_path)


@pytest.mark.parametrize("name", ["wire/02", "leg.log"])
def test_a_row_under_the_number_of_another_and_a_missing_log_are_named(name: str, tmp_path: Path) -> None:
    paths, outcome = RunBuilder(stops=False).write(tmp_path)
    leg = paths.leg(4, "A2")
    if name == "leg.log":
        leg.log.unlink()
    else:
        for end in (".bin", ".reads.jsonl"):
            (leg.wire / f"02{end}").rename(leg.wire / f"03{end}")
    expected = "data/legs/04-A2/leg.log" if name == "leg.log" else "data/legs/04-A2/wire/03: row"
    assert expected in {where for _, where in found(paths, outcome)}

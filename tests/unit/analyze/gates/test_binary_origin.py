"""Compiled files in which the arms differ come from the arm's own pinned folder alone, by both analyzers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.records.verdict import GateResult
from tests.fakes.run_builder import RunBuilder
from tests.fakes.two_verdicts import both, failed

Spoil = Callable[[RunBuilder], object]
FOLDERS = {"A": "/opt/sets/page64", "B": "/opt/sets/page32"}
TREATMENT = {
    "binaries": "attention",
    "control": "page64",
    "candidate": "page32",
    "control_manifest": "models/page64.sha256",
    "candidate_manifest": "models/page32.sha256",
    "proof": {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"},
}
COMMON = b"/usr/lib/libc.so.6\t08:01 12\n"
MANIFEST = b"%s  libattn.so\n%s  sub/libmore.so\n" % (b"a" * 64, b"b" * 64)


def treated() -> RunBuilder:
    """A run whose arms load one library, each from its own folder; B drafts."""
    builder = RunBuilder(stops=False)
    said = builder.frozen_packet().model_dump(mode="json")
    service = said["preregistration"]["service"]
    service["command"] = [*service["command"], "--kernels", "{binaries}/libattn.so"]
    service["environment"] = {"LD_LIBRARY_PATH": "{binaries}"}
    gates = [gate for gate in said["preregistration"]["gates"] if gate["kind"] != "accounting"]
    builder.packet = {
        "preregistration": {"treatment": TREATMENT, "service": service, "gates": gates},
        "environment_allowed": sorted([*said["environment_allowed"], "LD_LIBRARY_PATH"]),
        "host": {"binaries": {"page64": "sets/page64", "page32": "sets/page32"}},
    }
    builder.inputs = {f"binaries-{key}.sha256": MANIFEST for key in ("page64", "page32")}
    for leg in builder.legs:
        leg.binaries = FOLDERS[leg.name[0]]
        leg.maps = COMMON + f"{leg.binaries}/libattn.so\t08:01 20\n".encode()
    return builder


def mapped(arm: str, *paths: str) -> Spoil:
    def spoil(builder: RunBuilder) -> None:
        for leg in builder.legs:
            if leg.name[0] == arm:
                leg.maps = COMMON + "".join(f"{path}\t08:01 30\n" for path in paths).encode()

    return spoil


def from_folder(arm: str, folder: str) -> Spoil:
    def spoil(builder: RunBuilder) -> None:
        for leg in builder.legs:
            if leg.name[0] == arm:
                leg.binaries = folder
                leg.maps = COMMON + f"{folder}/libattn.so\t08:01 30\n".encode()

    return spoil


SPOILS: list[Spoil] = [
    mapped("B"),
    mapped("B", "/opt/sets/page64/libattn.so"),
    mapped("B", "/opt/sets/page32/libattn.so", "/build/tree/libattn.so"),
    mapped("A", "/opt/sets/page64/libattn.so", "/opt/sets/page64/libother.so"),
    mapped("A", "/opt/sets/page64/libattn.so", "/elsewhere/libmore.so"),
    # one path, however it is spelt: only a line feed ends a line of the list, and only the last tab ends its path
    mapped("B", "/build/a\x0b/opt/sets/page32/libattn.so"),
    mapped("B", "/build/a\u2028/opt/sets/page32/libattn.so"),
    mapped("B", "/opt/sets/page32/libattn.so\t/build/tree"),
    from_folder("B", FOLDERS["A"]),
]


def test_each_arm_with_its_own_files_passes_both(tmp_path: Path) -> None:
    one, other = both(treated(), tmp_path)
    assert failed(one) == []
    assert disagreements(one, other) == ()
    assert [gate.result for gate in one.gates if gate.kind == "identity"] == [GateResult.PASSED]
    told = "compiled files from /opt/sets/page64 in A1, from /opt/sets/page32 in B1"
    assert one.observed_difference == (told,)


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_file_from_anywhere_else_fails_identity_by_both(spoil: Spoil, tmp_path: Path) -> None:
    builder = treated()
    spoil(builder)
    one, other = both(builder, tmp_path)
    assert failed(one) == failed(other) == ["identity"]


def test_a_start_whose_mapped_files_are_not_known_is_not_evaluated(tmp_path: Path) -> None:
    builder = treated()
    builder.removed = {f"legs/{leg.folder}/maps.txt" for leg in builder.legs}
    one, other = both(builder, tmp_path)
    results = [gate.result for verdict in (one, other) for gate in verdict.gates if gate.kind == "identity"]
    assert results == [GateResult.NOT_EVALUATED] * 2

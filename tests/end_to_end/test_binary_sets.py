"""Arms that differ in compiled files: each start maps those of its own pinned folder, or identity fails."""

import json
from pathlib import Path
from typing import Any

import pytest

from labctl.digest import sha256_hex
from tests.fakes.campaign_repository import HOST, CampaignRepository, make_repository, write_yaml

SERVER = Path(__file__).parents[1] / "fakes" / "lying_server.py"
LIBRARY = "libkernels.so"
SETS = ("page64", "page32")
TREATMENT = {
    "binaries": "kernels",
    "control": "page64",
    "candidate": "page32",
    "control_manifest": "models/page64.sha256",
    "candidate_manifest": "models/page32.sha256",
    "proof": {
        "log": "kernels of (?P<set>[a-z0-9]+) are loaded",
        "example": "kernels of page64 are loaded",
        "control": {"set": "page64"},
        "candidate": {"set": "page32"},
    },
}


def any_library() -> bytes:
    """A shared library that this interpreter has mapped itself."""
    paths = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libm" in line}
    return Path(min(paths)).read_bytes()


def pinned(folder: Path, name: str, file: str, data: bytes) -> None:
    """A folder with one file outside the campaigns, and its manifest inside."""
    place = folder / "outside" / name
    place.mkdir(parents=True)
    (place / file).write_bytes(data)
    manifest = folder / "campaigns" / "models" / f"{name}.sha256"
    manifest.parent.mkdir(exist_ok=True)
    manifest.write_text(f"{sha256_hex(data)}  {file}\n")


def campaign_of(folder: Path, lie: str) -> CampaignRepository:
    repository, library = make_repository(folder), any_library()
    for name in SETS:
        pinned(folder, name, LIBRARY, library + name.encode())
    pinned(folder, "server", SERVER.name, SERVER.read_bytes())
    sets = {name: f"outside/{name}" for name in SETS}
    host = HOST | {"models": {"server": "outside/server"}, "binaries": sets}
    write_yaml(folder / "campaigns" / "hosts" / "test-host.yaml", host)

    def change(document: dict[str, Any]) -> None:
        command = document["service"]["command"]
        own = [f"{{model:server}}/{SERVER.name}", "--lie", lie, "--load", f"{{binaries}}/{LIBRARY}"]
        document["service"]["command"] = [*command[:2], *own, *command[4:]]
        document["models"] = [{"name": "server", "manifest": "models/server.sha256"}]
        document["treatment"] = TREATMENT
        document["schedule"] = {"order": ["A1", "B1"]}

    repository.edit(change)
    return repository


@pytest.mark.parametrize(("lie", "result"), [("honest", "passed"), ("load-another", "failed")])
def test_a_start_maps_its_own_arms_files_or_identity_fails(lie: str, result: str, tmp_path: Path) -> None:
    repository = campaign_of(tmp_path / "lab", lie)
    answer = repository.labctl("rehearse", str(repository.campaign), "--service", "real", "--json")
    assert answer.stdout, answer.stderr
    verdict = json.loads(answer.stdout)
    found = {one["id"]: (one["result"], one["reason"]) for one in verdict["gates"]}
    assert found["identity"][0] == result, found
    assert found["treatment"][0] == "passed", found
    (told,) = verdict["observed_difference"]
    assert "outside/page64 in A1" in told
    assert "outside/page32 in B1" in told


def test_a_file_that_is_not_as_its_manifest_says_refuses_the_freeze(tmp_path: Path) -> None:
    repository = campaign_of(tmp_path / "lab", "honest")
    (repository.root / "outside" / "page32" / LIBRARY).write_bytes(b"another build")
    repository.commit()
    answer = repository.labctl("packet", "freeze", str(repository.campaign))
    assert answer.returncode == 3
    assert "outside/page32" in answer.stderr
    assert "[FILE_DRIFT]" in answer.stderr

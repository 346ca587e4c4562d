"""What labctl writes is read alike by programs that know nothing of it: coreutils, bagit, OpenSSH."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import bagit
import pytest

from labctl.clock import SystemClock
from labctl.packet.approval import ApprovalRequest, make_approval
from labctl.prereg.model import Api
from labctl.records.run import NOTHING_SHA256
from labctl.seal.abort import Abortion, seal_aborted
from labctl.seal.verify import SealedRun, open_sealed_run
from labctl.signature import Namespace, sign_bytes
from tests.fakes.packets import make_packet
from tests.fakes.run_builder import RunBuilder
from tests.fakes.sealed_run import RUN_NAME, spoil, write_run, write_sealed_run

EXAMPLES = Path(__file__).parents[2] / "runs.example"
ADA = "Ada <ada@x.org>"
NAMESPACE = "labctl-review@v1"
MANIFESTS = ("manifest-sha256.txt", "tagmanifest-sha256.txt")


def aborted(folder: Path) -> SealedRun:
    paths = write_run(folder / RUN_NAME).paths
    paths.outcome.unlink()
    return seal_aborted(paths.root, Abortion("killed", NOTHING_SHA256, SystemClock()))


def example(root: Path) -> Callable[[Path], SealedRun]:
    return lambda _: open_sealed_run(root)


RUNS: dict[str, Callable[[Path], SealedRun]] = {
    "four starts": lambda folder: RunBuilder().seal(folder),
    "chat": lambda folder: RunBuilder(api=Api.CHAT).seal(folder),
    "one pair": lambda folder: RunBuilder(order=("A1", "B1"), stops=False).seal(folder),
    "without meaning": lambda folder: write_sealed_run(folder / RUN_NAME),
    "aborted": aborted,
} | {path.parent.name: example(path.parent) for path in sorted(EXAMPLES.glob("*/seal.json"))}


def sha256sum(root: Path, manifest: str) -> int:
    command = ["sha256sum", "-c", "--strict", "--status", manifest]
    return subprocess.run(command, cwd=root, check=False).returncode


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_coreutils_and_bagit_accept_every_good_run(make: Callable[[Path], SealedRun], tmp_path: Path) -> None:
    root = make(tmp_path).root
    assert [sha256sum(root, manifest) for manifest in MANIFESTS] == [0, 0]
    bagit.Bag(str(root)).validate()
    sums = subprocess.run(["sha256sum", "manifest-sha256.txt"], cwd=root, check=True, capture_output=True, text=True)
    seal = json.loads((root / "seal.json").read_bytes())
    assert seal["subject"][0]["digest"] == {"sha256": sums.stdout.split()[0]}
    packet = subprocess.run(["sha256sum", "packet.json"], cwd=root / "data/packet", check=True, capture_output=True)
    marker = json.loads((root / "data/packet/marker.copy.json").read_bytes())
    assert packet.stdout.split()[0].decode() == marker["packet_sha256"]


def test_they_refuse_what_labctl_refuses(tmp_path: Path) -> None:
    sealed = write_sealed_run(tmp_path / RUN_NAME)
    spoil(sealed.paths.leg(1, "A1").server_log, b"READY\n")
    assert sha256sum(sealed.root, "manifest-sha256.txt") != 0
    with pytest.raises(bagit.BagValidationError):
        bagit.Bag(str(sealed.root)).validate()


def test_openssh_verifies_a_signed_approval_and_nothing_else(tmp_path: Path) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    signers.write_text(f"ada@x.org {key.with_suffix('.pub').read_text()}")
    approval = make_approval(make_packet(), ApprovalRequest(ADA, key, None, ("read it",)), 1_800_000_000).canonical()
    signature = tmp_path / "approval.json.sig"
    signature.write_bytes(sign_bytes(approval, key, Namespace.REVIEW))

    def verify(data: bytes, namespace: str = NAMESPACE, person: str = "ada@x.org") -> bool:
        command = [
            "ssh-keygen",
            "-Y",
            "verify",
            "-f",
            str(signers),
            "-I",
            person,
            "-n",
            namespace,
            "-s",
            str(signature),
        ]
        return subprocess.run(command, input=data, capture_output=True, check=False).returncode == 0

    assert verify(approval)
    assert not verify(approval.replace(b"approve", b"approvf", 1))
    assert not verify(approval, namespace="labctl-seal@v1")
    assert not verify(approval, person="bob@x.org")

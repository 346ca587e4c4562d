from dataclasses import replace
from pathlib import Path

import pytest

from labctl.campaign.ledger_mirror import REF, LedgerMirror
from labctl.codes import Code
from labctl.errors import AlreadyConsumed, BrokenEvidence, DirtySource, RunFailed
from labctl.ledger import LedgerEvent, append_ledger
from labctl.rundir import AuthorizationPaths
from tests.fakes.lab_repository import LabRepository


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    """A repository with a bare remote `origin`."""
    lab = LabRepository.create(tmp_path / "lab")
    lab.git("init", "--quiet", "--bare", str(tmp_path / "origin.git"))
    lab.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    return lab


@pytest.fixture
def mirror(lab: LabRepository) -> LedgerMirror:
    return LedgerMirror(lab.top, "origin", AuthorizationPaths(lab.top / ".labctl/authorization"))


@pytest.fixture
def other(lab: LabRepository, mirror: LedgerMirror) -> LedgerMirror:
    """Another authorization root, as on another machine, with the same remote."""
    return replace(mirror, authorization=AuthorizationPaths(lab.top / ".labctl/other"))


def consume(mirror: LedgerMirror, packet: str) -> None:
    event = LedgerEvent("consumed", packet * 64, "quick", f"quick-{packet}", "0" * 64, 1)
    append_ledger(mirror.authorization.ledger, event)


def remote_ledgers(lab: LabRepository) -> dict[str, bytes]:
    origin = str(lab.top.parent / "origin.git")
    names = lab.git("--git-dir", origin, "ls-tree", "--name-only", REF).split()
    return {name: f"{lab.git('--git-dir', origin, 'show', f'{REF}:{name}')}\n".encode() for name in names}


def test_every_line_is_on_the_remote_and_each_push_follows_the_one_before(
    lab: LabRepository, mirror: LedgerMirror
) -> None:
    assert mirror.require_agreement("a" * 64) == 0
    consume(mirror, "a")
    mirror.publish()
    first = mirror.read().tip
    consume(mirror, "b")
    mirror.publish()
    assert remote_ledgers(lab) == {mirror.name: mirror.authorization.ledger.read_bytes()}
    assert lab.git("rev-parse", f"{REF}~1") == first
    mirror.publish()
    assert mirror.read().tip == lab.git("rev-parse", REF)
    assert mirror.require_agreement("c" * 64) == 2


def test_machines_that_share_a_remote_keep_each_others_lines(
    lab: LabRepository, mirror: LedgerMirror, other: LedgerMirror
) -> None:
    consume(mirror, "a")
    mirror.publish()
    consume(other, "b")
    other.publish()
    ledgers = {one.name: one.authorization.ledger.read_bytes() for one in (mirror, other)}
    assert remote_ledgers(lab) == ledgers


def test_a_packet_that_another_machine_consumed_is_spent_here(mirror: LedgerMirror, other: LedgerMirror) -> None:
    consume(other, "a")
    other.publish()
    with pytest.raises(AlreadyConsumed) as refused:
        mirror.require_agreement("a" * 64)
    assert refused.value.codes == (Code.CONSUMED,)
    assert "run quick-a" in refused.value.problems[0].got


@pytest.mark.parametrize("how", ["removed", "shortened", "rewritten"])
def test_a_ledger_that_lost_lines_is_noticed_and_never_pushed(
    lab: LabRepository, mirror: LedgerMirror, how: str
) -> None:
    consume(mirror, "a")
    consume(mirror, "b")
    mirror.publish()
    before = remote_ledgers(lab)
    ledger = mirror.authorization.ledger
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.unlink()
    if how == "shortened":
        ledger.write_bytes(lines[0])
    if how == "rewritten":
        consume(mirror, "c")
    with pytest.raises(BrokenEvidence) as broken:
        mirror.require_agreement("d" * 64)
    assert broken.value.codes == (Code.LEDGER_BROKEN,)
    with pytest.raises(RunFailed) as failed:
        mirror.publish()
    assert failed.value.codes == (Code.LEDGER_BROKEN,)
    assert remote_ledgers(lab) == before


def test_what_no_ledger_would_say_is_noticed(lab: LabRepository, mirror: LedgerMirror) -> None:
    blob = lab.git("hash-object", "-w", "--stdin", stdin=b"a note\n")
    tree = lab.git("mktree", stdin=f"100644 blob {blob}\tforeign.jsonl\n".encode())
    lab.git("push", "--quiet", "origin", f"{lab.git('commit-tree', tree, '-m', 'A note')}:{REF}")
    with pytest.raises(BrokenEvidence) as broken:
        mirror.require_agreement("a" * 64)
    assert broken.value.codes == (Code.LEDGER_BROKEN,)


def test_a_push_in_between_is_not_overwritten(mirror: LedgerMirror, other: LedgerMirror) -> None:
    consume(mirror, "a")
    seen = mirror.read()
    consume(other, "b")
    other.publish()
    with pytest.raises(DirtySource):
        mirror._push(seen)
    assert list(mirror.read().ledgers) == [other.name]


def test_a_remote_that_cannot_be_reached_or_written_is_told(lab: LabRepository, mirror: LedgerMirror) -> None:
    mirror.prove_writable()
    consume(mirror, "a")
    (lab.top.parent / "origin.git").rename(lab.top.parent / "moved.git")
    with pytest.raises(DirtySource):
        mirror.prove_writable()
    with pytest.raises(RunFailed) as failed:
        mirror.publish()
    assert failed.value.codes == (Code.WRITE_FAILED,)


def test_a_password_in_a_remotes_address_is_not_repeated(lab: LabRepository, mirror: LedgerMirror) -> None:
    lab.git("remote", "set-url", "origin", "https://lab:hunter2-hunter2@127.0.0.1:9/lab.git")
    with pytest.raises(DirtySource) as refused:
        mirror.read()
    assert "hunter2" not in str(refused.value)
    assert "127.0.0.1:9" in str(refused.value)

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import MissingReview, Refused
from labctl.frozen import canonical_json
from labctl.packet.approval import ApprovalRequest, make_approval
from labctl.packet.approve import file_approval
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.machine import packet_folder
from labctl.packet.model import Packet
from labctl.packet.rehearsal import RehearsalTarget, freeze_rehearsal
from labctl.packet.review import filed_approvals, require_reviews
from labctl.packet.review_count import FiledApproval, Policy, count_approvals
from labctl.packet.summary import summarize_for_review
from labctl.rundir import PacketPaths
from labctl.signature import Namespace, sign_bytes
from tests.fakes.lab_repository import LabRepository
from tests.fakes.packets import make_packet

DAY_NS = 86_400 * 1_000_000_000
ADA, BOB, EVE = "Ada <ada@x.org>", "Bob <bob@x.org>", "Eve <eve@x.org>"
AUTHOR, COMMITTER = "Lab One <LAB@example.org>", "Committer Two <committer@example.org>"


@dataclass
class FixedClock:
    """A clock that stands still until a test moves it."""

    now_ns: int = 1_800_000_000 * 1_000_000_000

    def realtime_ns(self) -> int:
        return self.now_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def boottime_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)


@dataclass
class Lab:
    """A frozen packet, its folder, and people with keys."""

    repository: LabRepository
    packet: Packet
    folder: PacketPaths
    keys: dict[str, Path]
    clock: FixedClock = field(default_factory=FixedClock)

    def approve(self, reviewer: str, key: str | None = None, days: int | None = None) -> Path:
        request = ApprovalRequest(reviewer, self.keys[key] if key else None, days, ("read it",))
        return file_approval(self.folder, request, self.clock)

    def file_anyhow(self, reviewer: str, key: str) -> Path:
        """File a signed approval as somebody would who goes around the command."""
        request = ApprovalRequest(reviewer, self.keys[key], None, ())
        data = make_approval(self.packet, request, self.clock.realtime_ns() // 1_000_000_000).canonical()
        path = self.folder.approvals / f"{sha256_hex(data)[:12]}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        path.with_name(path.name + ".sig").write_bytes(sign_bytes(data, self.keys[key], Namespace.REVIEW))
        return path

    def unfiled(self, reviewer: str, key: str) -> tuple[Code, ...]:
        """Why an approval is not even filed; nothing new lies there afterwards."""
        before = sorted(self.folder.approvals.glob("*"))
        with pytest.raises(Refused) as refused:
            self.approve(reviewer, key)
        assert sorted(self.folder.approvals.glob("*")) == before
        return refused.value.codes

    def refusal(self) -> MissingReview:
        with pytest.raises(MissingReview) as refused:
            require_reviews(self.folder, self.clock)
        return refused.value

    def rewrite(self, path: Path, change: Callable[[dict[str, Any]], None], key: str | None = None) -> None:
        """Change a filed approval, and sign it again where a key is given."""
        document = json.loads(path.read_bytes())
        change(document)
        path.write_bytes(canonical_json(document))
        if key:
            signature = sign_bytes(path.read_bytes(), self.keys[key], Namespace.REVIEW)
            path.with_name(path.name + ".sig").write_bytes(signature)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    made = {name: folder / name for name in ("ada", "ada2", "bob", "eve", "author")}
    for path in made.values():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)
    return made


def lab_with(tmp_path: Path, keys: dict[str, Path], reviews: str, signers: str | None = None) -> Lab:
    repository = LabRepository.create(tmp_path / "lab")
    if signers is not None:
        repository.write("campaigns/allowed_signers", signers)
    repository.edit_campaign("reviews: {required: 0, signatures: none}", f"reviews: {reviews}")
    repository.commit("Reviews")
    packet = freeze_packet(FreezeRequest(repository.campaign))
    return Lab(repository, packet, packet_folder(packet, repository.top), keys)


@pytest.fixture
def unsigned(tmp_path: Path, keys: dict[str, Path]) -> Lab:
    return lab_with(tmp_path, keys, "{required: 2, signatures: none}")


@pytest.fixture
def signed(tmp_path: Path, keys: dict[str, Path]) -> Lab:
    people = {
        "ada": "ada@x.org,ada@home.org",
        "ada2": "ada@home.org",
        "bob": "bob@x.org",
        "author": "lab@example.org,author@home.org",
    }
    lines = [f"{mails} {keys[name].with_suffix('.pub').read_text()}" for name, mails in people.items()]
    lines.append(f"alias@x.org {keys['bob'].with_suffix('.pub').read_text()}")
    return lab_with(tmp_path, keys, "{required: 2, signatures: ssh, allowed_signers: allowed_signers}", "".join(lines))


def test_enough_approvals_of_this_packet_are_leave_to_consume_it(unsigned: Lab) -> None:
    filed = [unsigned.approve(ADA), unsigned.approve(BOB)]
    reviewed = require_reviews(unsigned.folder, unsigned.clock)
    assert (reviewed.packet, reviewed.packet_id, reviewed.folder) == (
        unsigned.packet,
        unsigned.packet.id,
        unsigned.folder,
    )
    assert sorted(reviewed.approvals) == sorted(sha256_hex(path.read_bytes()) for path in filed)


def test_too_few_approvals_are_refused_with_the_command_to_run(unsigned: Lab) -> None:
    assert unsigned.refusal().codes == (Code.REVIEW_MISSING,)
    unsigned.approve(ADA)
    refused = unsigned.refusal()
    assert refused.codes == (Code.REVIEW_MISSING,)
    assert f"labctl review request {unsigned.packet.id}" in str(refused)


@pytest.mark.parametrize("person", [AUTHOR, COMMITTER, "Other Name <lab@EXAMPLE.org>"])
def test_author_and_committers_cannot_review(unsigned: Lab, person: str) -> None:
    with pytest.raises(MissingReview) as refused:
        unsigned.approve(person)
    assert refused.value.codes == (Code.REVIEWER_EXCLUDED,)
    path = unsigned.approve(ADA)
    unsigned.rewrite(path, lambda document: document["predicate"].update(reviewer=person))
    assert unsigned.refusal().codes == (Code.REVIEW_MISSING, Code.REVIEWER_EXCLUDED)


def test_one_person_counts_once(unsigned: Lab) -> None:
    path = unsigned.approve(ADA)
    with pytest.raises(MissingReview) as refused:
        unsigned.approve("Ada again <ADA@x.org>")
    assert refused.value.codes == (Code.REVIEW_DUPLICATE,)
    path.with_name("copy.json").write_bytes(path.read_bytes())
    assert unsigned.refusal().codes == (Code.REVIEW_MISSING, Code.REVIEW_DUPLICATE)


def test_an_approval_counts_until_it_expires(unsigned: Lab) -> None:
    unsigned.approve(ADA, days=2)
    unsigned.approve(BOB)
    unsigned.clock.now_ns += 2 * DAY_NS - 1
    assert len(require_reviews(unsigned.folder, unsigned.clock).approvals) == 2
    unsigned.clock.now_ns += 1
    assert unsigned.refusal().codes == (Code.REVIEW_MISSING, Code.REVIEW_EXPIRED)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_approval_of_anything_else_is_foreign(unsigned: Lab, place: int) -> None:
    path = unsigned.approve(ADA)
    unsigned.rewrite(path, lambda document: document["subject"][place].update(digest={"sha256": "0" * 64}))
    assert unsigned.refusal().codes == (Code.REVIEW_MISSING, Code.REVIEW_FOREIGN)


def test_an_approval_of_the_next_attempt_is_foreign_to_this_one(unsigned: Lab) -> None:
    path = unsigned.approve(ADA)
    unsigned.repository.edit_campaign("Does prompt", "Would prompt")
    unsigned.repository.commit("Other words")
    other = packet_folder(freeze_packet(FreezeRequest(unsigned.repository.campaign)), unsigned.repository.top)
    (other.approvals / path.name).write_bytes(path.read_bytes())
    with pytest.raises(MissingReview) as refused:
        require_reviews(other, unsigned.clock)
    assert refused.value.codes == (Code.REVIEW_MISSING, Code.REVIEW_FOREIGN)


def test_everything_that_is_wrong_is_reported_at_once(unsigned: Lab) -> None:
    first, second = unsigned.approve(ADA, days=1), unsigned.approve(BOB)
    second.write_bytes(b"{}")
    (unsigned.folder.approvals / "zz.json").write_bytes(b"not json")
    unsigned.clock.now_ns += DAY_NS
    codes = unsigned.refusal().codes
    assert codes[0] is Code.REVIEW_MISSING
    assert {Code.REVIEW_EXPIRED, Code.RECORD_FORM, Code.BAD_JSON} <= set(codes)
    assert first.exists()


def test_a_packet_that_changed_after_approval_is_refused_before_any_marker(unsigned: Lab) -> None:
    unsigned.approve(ADA)
    unsigned.approve(BOB)
    data = bytearray(unsigned.folder.prereg.read_bytes())
    data[0] ^= 1
    unsigned.folder.prereg.write_bytes(bytes(data))
    with pytest.raises(Exception, match="DIGEST_MISMATCH"):
        require_reviews(unsigned.folder, unsigned.clock)


def test_unsigned_approvals_count_for_class_exploratory_only() -> None:
    counts = {}
    for name in ("exploratory", "calibration", "comparison", "record"):
        packet = make_packet(preregistration={"class": name})
        data = make_approval(packet, ApprovalRequest(ADA, None, None, ()), 0).canonical()
        counted, problems = count_approvals((FiledApproval("a.json", data, None),), Policy(packet, None, 0))
        counts[name] = (len(counted), [problem.code for problem in problems])
    assert counts.pop("exploratory") == (1, [])
    assert list(counts.values()) == [(0, [Code.SIGNATURE_INVALID])] * 3


def test_signed_approvals_count_by_key_and_person(signed: Lab) -> None:
    signed.approve(ADA, "ada")
    signed.approve(BOB, "bob")
    assert len(require_reviews(signed.folder, signed.clock).approvals) == 2


def test_a_signature_is_demanded_where_the_preregistration_asks(signed: Lab) -> None:
    with pytest.raises(MissingReview) as refused:
        signed.approve(ADA)
    assert refused.value.codes == (Code.SIGNATURE_INVALID,)
    signed.approve(ADA, "ada")
    path = signed.approve(BOB, "bob")
    path.with_name(path.name + ".sig").unlink()
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.SIGNATURE_INVALID)


def test_one_key_under_two_names_counts_once(signed: Lab) -> None:
    path = signed.approve(BOB, "bob")
    alias = path.with_name("alias.json")
    alias.write_bytes(path.read_bytes())
    signed.rewrite(alias, lambda document: document["predicate"].update(reviewer="Alias <alias@x.org>"), "bob")
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.REVIEW_DUPLICATE)


def test_one_person_with_two_keys_counts_once(signed: Lab) -> None:
    signed.approve(ADA, "ada")
    assert signed.unfiled("Ada <ada@home.org>", "ada2") == (Code.REVIEW_DUPLICATE,)
    signed.file_anyhow("Ada <ada@home.org>", "ada2")
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.REVIEW_DUPLICATE)


def test_a_key_speaks_only_for_its_own_person(signed: Lab) -> None:
    assert signed.unfiled(ADA, "bob") == (Code.SIGNATURE_INVALID,)
    signed.file_anyhow(ADA, "bob")
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.SIGNATURE_INVALID)


def test_an_unknown_key_speaks_for_nobody(signed: Lab) -> None:
    assert signed.unfiled(EVE, "eve") == (Code.SIGNATURE_INVALID,)
    signed.file_anyhow(EVE, "eve")
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.SIGNATURE_INVALID)


def test_a_key_of_the_author_reviews_for_nobody(signed: Lab) -> None:
    assert signed.unfiled("Author at home <author@home.org>", "author") == (Code.REVIEWER_EXCLUDED,)
    assert signed.unfiled(BOB, "author") == (Code.SIGNATURE_INVALID,)


def test_an_approval_that_does_not_count_is_in_nobodys_way(signed: Lab) -> None:
    junk = signed.file_anyhow(ADA, "bob")
    taken = signed.approve(BOB, "bob")
    assert signed.unfiled(BOB, "bob") == (Code.REVIEW_DUPLICATE,)
    signed.rewrite(taken, lambda document: document["predicate"].update(scope="everything"))
    again = signed.approve(BOB, "bob")
    signed.approve(ADA, "ada")
    assert len({junk, taken, again}) == 3
    assert len(require_reviews(signed.folder, signed.clock).approvals) == 2


def test_whose_approval_expired_may_approve_again(signed: Lab) -> None:
    signed.approve(BOB, "bob", days=1)
    signed.approve(ADA, "ada")
    signed.clock.now_ns += DAY_NS
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.REVIEW_EXPIRED)
    signed.approve(BOB, "bob", days=1)
    assert len(require_reviews(signed.folder, signed.clock).approvals) == 2


def test_one_changed_byte_breaks_a_signature(signed: Lab) -> None:
    path = signed.approve(ADA, "ada")
    signed.rewrite(path, lambda document: document["predicate"].update(scope="everything"))
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.SIGNATURE_INVALID)


def test_a_signature_made_for_a_seal_is_no_approval(signed: Lab) -> None:
    path = signed.approve(ADA, "ada")
    signature = sign_bytes(path.read_bytes(), signed.keys["ada"], Namespace.SEAL)
    path.with_name(path.name + ".sig").write_bytes(signature)
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.SIGNATURE_INVALID)


def test_signers_come_from_the_packet_and_not_from_the_work_tree(signed: Lab) -> None:
    signers = signed.repository.top / "campaigns/allowed_signers"
    signers.write_text(f"eve@x.org {signed.keys['eve'].with_suffix('.pub').read_text()}")
    assert signed.unfiled(EVE, "eve") == (Code.SIGNATURE_INVALID,)
    signed.file_anyhow(EVE, "eve")
    assert signed.refusal().codes == (Code.REVIEW_MISSING, Code.SIGNATURE_INVALID)


def test_a_key_that_does_not_sign_files_nothing(signed: Lab, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text("no key")
    signed.keys = signed.keys | {"bad": bad}
    with pytest.raises(Refused) as refused:
        signed.approve(ADA, "bad")
    assert refused.value.codes == (Code.SIGNATURE_INVALID,)
    assert filed_approvals(signed.folder) == ()


def test_a_rehearsal_needs_no_reviews(unsigned: Lab) -> None:
    packet = freeze_rehearsal(FreezeRequest(unsigned.repository.campaign), RehearsalTarget.EMBEDDED)
    reviewed = require_reviews(packet_folder(packet, unsigned.repository.top), unsigned.clock)
    assert (reviewed.packet.kind, reviewed.approvals) == ("rehearsal", ())


def test_a_reviewer_is_shown_what_decides(signed: Lab) -> None:
    text = "\n".join(summarize_for_review(signed.packet))
    said = signed.packet.preregistration
    for part in (signed.packet.id, said.question, "sole difference: --speculative-config: A absent", "arm B:", "pair"):
        assert part in text
    assert "cannot review: committer@example.org, lab@example.org" in text

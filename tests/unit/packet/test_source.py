import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import dirhash, sha256_hex
from labctl.errors import DirtySource, NotFound, Problem
from labctl.packet.git_command import find_repository, refuse_hidden_state
from labctl.packet.git_objects import ObjectReader, object_digest
from labctl.packet.source import (
    MAX_NAMED,
    committer_mails,
    copy_work_tree,
    export_snapshot,
    head_commit,
    verify_work_tree,
)
from tests.fakes.lab_repository import FILES, GIT_ENVIRONMENT, LabRepository

README = "README.md"


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    return LabRepository.create(tmp_path / "lab")


def expected_dirhash() -> str:
    return dirhash({path: sha256_hex(text.encode()) for path, text in FILES.items()})


def refusal(lab: LabRepository) -> DirtySource:
    with pytest.raises(DirtySource) as refused:
        verify_work_tree(lab.top, lab.head)
    return refused.value


def refusal_of(lab: LabRepository, commit: str) -> tuple[Problem, ...]:
    with pytest.raises(DirtySource) as refused:
        verify_work_tree(lab.top, commit)
    return refused.value.problems


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_a_clean_work_tree_is_its_commit(tmp_path: Path, object_format: str) -> None:
    lab = LabRepository.create(tmp_path / "lab", object_format=object_format)
    tree = verify_work_tree(lab.top, lab.head)
    assert (tree.commit, tree.files, tree.tree_dirhash) == (lab.head, len(FILES), expected_dirhash())
    assert head_commit(lab.top) == lab.head


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_that_the_index_hides_is_found(lab: LabRepository, flag: str) -> None:
    lab.git("update-index", flag, README)
    lab.write(README, "B lab.\n")
    assert lab.git("status", "--porcelain") == ""
    problem = refusal(lab).problems[0]
    assert (problem.code, problem.where) == (Code.DIRTY_SOURCE, str(lab.top / README))


def test_an_edit_of_equal_size_and_time_is_found(lab: LabRepository) -> None:
    before = (lab.top / README).stat()
    lab.write(README, "B lab.\n")
    os.utime(lab.top / README, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert refusal(lab).codes == (Code.DIRTY_SOURCE,)


def test_every_difference_is_named_at_once(lab: LabRepository) -> None:
    (lab.top / README).unlink()
    (lab.top / ".gitignore").chmod(0o755)
    (lab.top / "campaigns/suites/two.yaml").unlink()
    (lab.top / "campaigns/suites/two.yaml").symlink_to("/dev/null")
    lab.edit_campaign("class: exploratory", "class: calibration")
    got = {Path(problem.where).name: problem.got for problem in refusal(lab).problems}
    assert got == {
        README: "nothing",
        ".gitignore": "another executable bit",
        "two.yaml": "a link",
        "campaign.yaml": "other bytes",
    }


def test_a_long_list_of_differences_is_cut_and_counted(lab: LabRepository) -> None:
    for number in range(MAX_NAMED + 7):
        lab.write(f"many/{number}.txt", "x")
    lab.commit("Many")
    for file in (lab.top / "many").iterdir():
        file.unlink()
    problems = refusal(lab).problems
    assert len(problems) == MAX_NAMED + 1
    assert problems[-1].got == "7 more files that differ"


def test_untracked_files_are_no_part_of_a_commit(lab: LabRepository) -> None:
    lab.write("sitecustomize.py", "raise SystemExit\n")
    assert verify_work_tree(lab.top, lab.head).files == len(FILES)


def test_configured_filters_and_line_ends_do_not_stand_between_bytes(lab: LabRepository) -> None:
    lab.git("config", "core.autocrlf", "true")
    lab.git("config", "filter.hide.clean", "printf 'A lab.\\n'")
    lab.git("config", "core.fileMode", "false")
    lab.write(".git/info/attributes", "README.md filter=hide\n")
    lab.write(README, "something else altogether\r\n")
    assert lab.git("diff", "--name-only") == ""
    assert [Path(problem.where).name for problem in refusal(lab).problems] == [README]


def test_a_snapshot_holds_the_commit_and_not_the_work_tree(lab: LabRepository, tmp_path: Path) -> None:
    lab.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (lab.top / "deep/er").mkdir(parents=True)
    (lab.top / "deep/er/link").symlink_to("../../README.md")
    commit = lab.commit("A program and a link")
    lab.write(README, "dirty")
    lab.write("untracked.py", "")
    target = tmp_path / "snapshot"
    digest = export_snapshot(lab.top, commit, target)
    assert (target / "deep/er/link").read_text() == FILES[README]
    assert (target / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (target / README).stat().st_mode & 0o777 == 0o600
    assert target.stat().st_mode & 0o777 == 0o700
    assert not (target / "untracked.py").exists()
    lab.git("checkout", "--quiet", README)
    assert digest == verify_work_tree(lab.top, commit).tree_dirhash


def test_attributes_that_archives_obey_do_not_change_a_snapshot(lab: LabRepository, tmp_path: Path) -> None:
    lab.write(".gitattributes", "README.md export-subst ident\nLICENSE export-ignore\n")
    lab.write("LICENSE", "free\n")
    lab.write(README, "$Format:%H$ $Id$\n")
    commit = lab.commit("Attributes")
    export_snapshot(lab.top, commit, tmp_path / "snapshot")
    assert (tmp_path / "snapshot" / README).read_text() == "$Format:%H$ $Id$\n"
    assert (tmp_path / "snapshot/LICENSE").exists()


@pytest.mark.parametrize("goal", ["/etc/passwd", "../outside", "campaigns/../../outside", "campaigns/../README.md"])
def test_a_link_that_may_leave_the_tree_is_refused(lab: LabRepository, tmp_path: Path, goal: str) -> None:
    (lab.top / "link").symlink_to(goal)
    commit = lab.commit("A link")
    with pytest.raises(DirtySource) as refused:
        export_snapshot(lab.top, commit, tmp_path / "snapshot")
    assert refused.value.codes == (Code.FORBIDDEN_FILE,)


def test_links_are_compared_by_where_they_lead(lab: LabRepository) -> None:
    (lab.top / "link").symlink_to(README)
    commit = lab.commit("A link")
    assert verify_work_tree(lab.top, commit).files == len(FILES) + 1
    (lab.top / "link").unlink()
    (lab.top / "link").symlink_to("campaigns")
    assert refusal(lab).codes == (Code.DIRTY_SOURCE,)


def test_replace_refs_are_refused_and_never_followed(lab: LabRepository) -> None:
    old = lab.head
    lab.write(README, "other\n")
    lab.git("replace", old, lab.commit("Other"))
    with pytest.raises(DirtySource, match="1 replace refs") as refused:
        verify_work_tree(lab.top, old)
    assert refused.value.codes == (Code.HIDDEN_GIT_STATE,)
    with ObjectReader(lab.top) as reader:
        assert reader.read(reader.commit(old).tree, "tree") != reader.read(reader.commit(lab.head).tree, "tree")


def test_everything_that_a_repository_hides_is_named(lab: LabRepository, tmp_path: Path) -> None:
    git = lab.top / ".git"
    (git / "info/grafts").write_text(f"{lab.head}\n")
    (git / "objects/info/alternates").write_text(f"{tmp_path}\n")
    (git / "shallow").write_text(f"{lab.head}\n")
    lab.git("config", "remote.origin.promisor", "true")
    with pytest.raises(DirtySource) as refused:
        refuse_hidden_state(lab.top)
    assert [problem.got for problem in refused.value.problems] == [
        "grafts",
        "alternate object folders",
        "a shallow clone",
        "a partial clone",
    ]


def test_submodules_are_refused(lab: LabRepository) -> None:
    lab.git("update-index", "--add", "--cacheinfo", f"160000,{lab.head},engine")
    lab.git("commit", "--quiet", "--message", "A submodule")
    problem = refusal(lab).problems[0]
    assert (problem.code, problem.got) == (Code.HIDDEN_GIT_STATE, "a submodule")


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "..", ".git", ".GIT", "a\\b"])
def test_names_that_lead_elsewhere_or_hide_are_refused(lab: LabRepository, tmp_path: Path, name: str) -> None:
    blob = lab.git("hash-object", "-w", README)
    tree_bytes = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
    tree = lab.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=tree_bytes)
    commit = lab.git("commit-tree", tree, "-m", "Odd")
    with pytest.raises(DirtySource) as refused:
        export_snapshot(lab.top, commit, tmp_path / "snapshot")
    assert refused.value.codes == (Code.FORBIDDEN_FILE,)


def test_a_tree_with_one_name_twice_is_refused(lab: LabRepository) -> None:
    entry = b"100644 a\0" + bytes.fromhex(lab.git("hash-object", "-w", README))
    tree = lab.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=entry + entry)
    commit = lab.git("commit-tree", tree, "-m", "Twice")
    with ObjectReader(lab.top) as reader, pytest.raises(DirtySource, match="once"):
        list(reader.files(commit))


def test_an_object_that_is_not_what_its_id_says_is_refused(lab: LabRepository) -> None:
    blob, other = lab.git("hash-object", "-w", README), lab.git("hash-object", "-w", ".gitignore")
    objects = lab.top / ".git/objects"
    place = objects / blob[:2] / blob[2:]
    place.unlink()
    place.write_bytes((objects / other[:2] / other[2:]).read_bytes())
    assert refusal(lab).codes == (Code.BAD_COMMIT,)


@pytest.mark.parametrize("named", ["HEAD", "abc", "main", "a" * 39, "A" * 40, "0" * 40])
def test_only_full_ids_of_objects_that_are_there_are_read(lab: LabRepository, named: str) -> None:
    with pytest.raises(DirtySource) as refused:
        verify_work_tree(lab.top, named)
    assert refused.value.codes == (Code.BAD_COMMIT,)


@pytest.mark.parametrize("kind", ["refs/tags", "refs/heads"])
def test_a_ref_that_is_named_like_an_id_is_never_followed(lab: LabRepository, kind: str) -> None:
    first = lab.head
    lab.write(README, "second\n")
    second = lab.commit("Second")
    lab.git("update-ref", f"{kind}/{first}", second)
    lab.git("update-ref", f"{kind}/{first[:10]}", second)
    with ObjectReader(lab.top) as reader:
        assert reader.commit(first).tree == lab.git("rev-parse", f"{second}~1^{{tree}}")
    assert {problem.where for problem in refusal_of(lab, first)} == {str(lab.top / README)}
    with pytest.raises(DirtySource, match="a full object id"):
        verify_work_tree(lab.top, first[:10])


def test_settings_and_caches_that_trust_the_index_change_nothing(lab: LabRepository) -> None:
    for setting in (
        "core.trustctime false",
        "core.checkStat minimal",
        "core.untrackedCache true",
        "core.ignoreStat true",
    ):
        lab.git("config", *setting.split())
    os.utime(lab.top / README, (1_000_000_000, 1_000_000_000))  # older than the index, so that git trusts the time
    lab.git("update-index", "--refresh", "--untracked-cache")
    lab.write(README, "B lab.\n")
    os.utime(lab.top / README, (1_000_000_000, 1_000_000_000))
    assert lab.git("status", "--porcelain") == ""
    assert refusal(lab).codes == (Code.DIRTY_SOURCE,)


def test_a_repository_within_the_work_tree_hides_no_tracked_file(lab: LabRepository) -> None:
    LabRepository.create(lab.top / "campaigns/nested")
    assert verify_work_tree(lab.top, lab.head).files == len(FILES)
    lab.write("campaigns/quick/.git/HEAD", "ref: refs/heads/main\n")
    lab.edit_campaign("class: exploratory", "class: calibration")
    assert refusal(lab).codes == (Code.DIRTY_SOURCE,)


def test_objects_of_another_folder_are_not_lent_by_a_variable(
    lab: LabRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = LabRepository.create(tmp_path / "other")
    other.write(README, "other\n")
    foreign = other.commit("Other")
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(other.top / ".git/objects"))
    with pytest.raises(DirtySource, match="no such object"):
        verify_work_tree(lab.top, foreign)


def test_a_tag_or_a_tree_is_no_commit(lab: LabRepository) -> None:
    lab.git("tag", "-a", "-m", "A tag", "v1")
    for named in (lab.git("rev-parse", "v1"), lab.git("rev-parse", "HEAD^{tree}")):
        with pytest.raises(DirtySource, match="expected a commit"):
            verify_work_tree(lab.top, named)


def test_variables_and_configuration_of_git_are_not_ours(
    lab: LabRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = LabRepository.create(tmp_path / "other")
    other.write(README, "other\n")
    other.commit("Other")
    for name, value in {
        "GIT_DIR": str(other.top / ".git"),
        "GIT_WORK_TREE": str(other.top),
        "GIT_OBJECT_DIRECTORY": str(other.top / ".git/objects"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.worktree",
        "GIT_CONFIG_VALUE_0": str(other.top),
    }.items():
        monkeypatch.setenv(name, value)
    assert verify_work_tree(lab.top, head_commit(lab.top)).tree_dirhash == expected_dirhash()


def test_no_configured_program_is_run(lab: LabRepository, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    script = lab.write(".git/trap.sh", f"#!/bin/sh\ntouch {trap}\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager"):
        lab.git("config", key, str(script))
    verify_work_tree(lab.top, head_commit(lab.top))
    copy_work_tree(lab.top, tmp_path / "copy")
    assert not trap.exists()
    lab.git("status")
    assert trap.exists()


def test_a_repository_without_a_commit_has_no_head(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True, env=GIT_ENVIRONMENT)
    with pytest.raises(DirtySource) as refused:
        head_commit(tmp_path)
    assert refused.value.codes == (Code.BAD_COMMIT,)
    assert "a commit that is checked out" in str(refused.value)
    assert "`git commit`" in str(refused.value)


def test_a_path_outside_every_work_tree_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="git init"):
        find_repository(tmp_path / "campaign.yaml")


def test_a_copy_holds_tracked_files_as_they_lie(lab: LabRepository, tmp_path: Path) -> None:
    lab.write(README, "dirty\n")
    lab.write("untracked.txt", "no\n")
    lab.write("added.txt", "yes\n")
    (lab.top / "link").symlink_to(README)
    lab.git("add", "added.txt", "link")
    (lab.top / ".gitignore").unlink()
    digest, files = copy_work_tree(lab.top, tmp_path / "copy")
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert names == {README, "added.txt", "link", "campaigns"}
    assert (tmp_path / "copy" / README).read_text() == "dirty\n"
    assert (files, len(digest)) == (len(FILES) + 1, 64)


def test_a_copy_refuses_submodules(lab: LabRepository, tmp_path: Path) -> None:
    lab.git("update-index", "--add", "--cacheinfo", f"160000,{lab.head},engine")
    with pytest.raises(DirtySource, match="a submodule"):
        copy_work_tree(lab.top, tmp_path / "copy")


def test_everybody_who_touched_the_preregistration_is_known(lab: LabRepository) -> None:
    lab.edit_campaign("class: exploratory", "class: exploratory # yes")
    lab.git("add", "--all")
    lab.git("-c", "user.name=x", "commit", "--quiet", "-m", "By Eve", "--author", "Eve <Eve@Example.org>")
    lab.write(README, "other\n")
    lab.git("add", "--all")
    lab.git("commit", "--quiet", "-m", "By Mallory", "--author", "Mallory <mallory@example.org>")
    lab.commit("Nothing to do with it")
    mails = committer_mails(lab.top, lab.head, "campaigns/quick/campaign.yaml")
    assert mails == ("committer@example.org", "eve@example.org", "lab@example.org")


def test_object_ids_are_those_of_git(lab: LabRepository) -> None:
    data = b"A lab.\n"
    assert object_digest("blob", data, "a" * 40) == lab.git("hash-object", README)
    assert object_digest("blob", data, "a" * 64) == hashlib.sha256(b"blob 7\0" + data).hexdigest()

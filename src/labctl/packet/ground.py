"""Where a campaign's files come from while it is frozen: an export of the commit that the work tree equals."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labctl.codes import Code
from labctl.durable import make_folders
from labctl.errors import DirtySource, FreezeRefused, Problem
from labctl.packet.contents import Ground, Progress
from labctl.packet.git_command import find_repository
from labctl.packet.machine import scratch_root
from labctl.packet.model import CampaignRepository
from labctl.packet.source import committer_mails, copy_work_tree, export_snapshot, head_commit, verify_work_tree
from labctl.prereg.card_files import AnyLoadedCampaign, load_any_campaign

_COMMIT = "run `git add {0} && git commit`; freezing takes only what is committed"
_ADD = "run `git add {0}`; a rehearsal needs no commit"


def locate_campaign(path: Path) -> tuple[Path, AnyLoadedCampaign]:
    """The repository of a campaign, and the campaign as the work tree has it, so that faults name the author's lines.

    Raises:
        InvalidPreregistration: with every problem of the campaign's files.
        NotFound: the file is in no git work tree.
    """
    campaign = load_any_campaign(path)
    return find_repository(path), campaign


@contextmanager
def exported(repository: Path, campaign: AnyLoadedCampaign, progress: Progress) -> Iterator[Ground]:
    """The commit that the work tree equals, exported for as long as it is needed."""
    commit = head_commit(repository)
    progress(f"holding the work tree against commit {commit[:12]}")
    tree = verify_work_tree(repository, commit)
    path = path_in(repository, campaign)
    with new_snapshot(scratch_root(campaign.host.model, repository)) as snapshot:
        tree_dirhash = export_snapshot(repository, commit, snapshot)
        if tree_dirhash != tree.tree_dirhash:
            do = "freeze again while nothing writes into the repository"
            raise DirtySource(Problem(Code.DIRTY_SOURCE, str(repository), tree.tree_dirhash, tree_dirhash, do))
        _require_files(campaign, (repository, snapshot), f"a file of commit {commit[:12]}", _COMMIT)
        facts = CampaignRepository(
            commit=commit,
            tree_dirhash=tree_dirhash,
            files=tree.files,
            prereg_path=path,
            committers=committer_mails(repository, commit, path),
        )
        yield Ground(repository, snapshot, facts)


@contextmanager
def copied(repository: Path, campaign: AnyLoadedCampaign, progress: Progress) -> Iterator[Ground]:
    """The files that git tracks, as they lie in the work tree, copied for as long as they are needed."""
    commit = head_commit(repository)
    progress("copying the tracked files as they are")
    path = path_in(repository, campaign)
    with new_snapshot(scratch_root(campaign.host.model, repository)) as snapshot:
        tree_dirhash, files = copy_work_tree(repository, snapshot)
        _require_files(campaign, (repository, snapshot), "a file in the index of git", _ADD)
        committers = committer_mails(repository, commit, path)
        facts = CampaignRepository(
            commit=commit, tree_dirhash=tree_dirhash, files=files, prereg_path=path, committers=committers
        )
        yield Ground(repository, snapshot, facts)


@contextmanager
def new_snapshot(scratch: Path) -> Iterator[Path]:
    """A free name below the scratch root; what is there at the end is removed."""
    make_folders(scratch)
    snapshot = scratch / f"snapshot-{os.urandom(8).hex()}"
    try:
        yield snapshot
    finally:
        if snapshot.exists():
            shutil.rmtree(snapshot)


def _require_files(campaign: AnyLoadedCampaign, places: tuple[Path, Path], expected: str, how: str) -> None:
    """Refuse where the snapshot lacks what the work tree has, before the snapshot's own lines are complained of."""
    repository, snapshot = places
    problems = []
    for path in campaign.paths():
        name = os.path.relpath(path.resolve(), repository.resolve())
        if name.startswith("../"):
            do, got = f"keep the campaign's files below {repository}", "one outside the repository"
            problems.append(Problem(Code.DIRTY_SOURCE, str(path), expected, got, do))
        elif not (snapshot / name).is_file():
            got = "one that is not in it"
            problems.append(Problem(Code.DIRTY_SOURCE, name, expected, got, how.format(name)))
    if problems:
        raise FreezeRefused(problems)


def campaign_in(ground: Ground) -> AnyLoadedCampaign:
    """The campaign as the snapshot has it.

    Raises:
        InvalidPreregistration: see `load_any_campaign`.
    """
    return load_any_campaign(ground.snapshot / ground.facts.prereg_path)


def path_in(repository: Path, campaign: AnyLoadedCampaign) -> str:
    """Where the campaign file stands in its repository."""
    return campaign.preregistration.path.resolve().relative_to(repository.resolve()).as_posix()

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
from labctl.prereg.campaign_files import LoadedCampaign, load_campaign


def locate_campaign(path: Path) -> tuple[Path, LoadedCampaign]:
    """The repository of a campaign, and the campaign as the work tree has it, so that faults name the author's lines.

    Raises:
        InvalidPreregistration: with every problem of the campaign's files.
        NotFound: the file is in no git work tree.
    """
    campaign = load_campaign(path)
    return find_repository(path), campaign


@contextmanager
def exported(repository: Path, campaign: LoadedCampaign, progress: Progress) -> Iterator[Ground]:
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
        facts = CampaignRepository(
            commit=commit,
            tree_dirhash=tree_dirhash,
            files=tree.files,
            prereg_path=path,
            committers=committer_mails(repository, commit, path),
        )
        yield Ground(repository, snapshot, facts)


@contextmanager
def copied(repository: Path, campaign: LoadedCampaign, progress: Progress) -> Iterator[Ground]:
    """The files that git tracks, as they lie in the work tree, copied for as long as they are needed."""
    commit = head_commit(repository)
    progress("copying the tracked files as they are")
    path = path_in(repository, campaign)
    with new_snapshot(scratch_root(campaign.host.model, repository)) as snapshot:
        tree_dirhash, files = copy_work_tree(repository, snapshot)
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


def campaign_in(ground: Ground) -> LoadedCampaign:
    """The campaign as the snapshot has it.

    Raises:
        FreezeRefused: the snapshot does not have the file, because git does not (DIRTY_SOURCE).
        InvalidPreregistration: see `load_campaign`.
    """
    path = ground.snapshot / ground.facts.prereg_path
    if not path.is_file():
        do = "add it to git and commit it"
        raise FreezeRefused(
            Problem(Code.DIRTY_SOURCE, ground.facts.prereg_path, "a file that git tracks", "one that it does not", do)
        )
    return load_campaign(path)


def path_in(repository: Path, campaign: LoadedCampaign) -> str:
    """Where the campaign file stands in its repository."""
    return campaign.preregistration.path.resolve().relative_to(repository.resolve()).as_posix()

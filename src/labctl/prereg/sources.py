"""What a campaign takes from elsewhere: trees of commits, installed packages, models."""

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from labctl.frozen import FrozenModel, GitCommit, SafeName, Sha256
from labctl.prereg.field_types import Line, RelativePath, is_absent, kind_by_key


class GitSource(FrozenModel):
    """A source tree, verified by the content of its commit."""

    git: SafeName
    """A key of the host profile's `sources`."""
    commit: GitCommit
    """The full object id of the commit."""
    base: GitCommit | None = Field(default=None, exclude_if=is_absent)
    """The commit that a patch series starts from; with `patches`, or neither."""
    patches: RelativePath | None = Field(default=None, exclude_if=is_absent)
    """A folder below campaigns/; its `*.patch` files, applied to the base by name, must give the tree of `commit`."""


class InstalledSource(FrozenModel):
    """An installed package, verified by its RECORD in the campaign's interpreter."""

    installed: SafeName
    """The distribution's name."""
    version: Line
    """The exact version."""
    record_sha256: Sha256 | None = None
    """SHA-256 of the RECORD file; null: whatever freezing finds, which then stands in the packet."""


Source = Annotated[
    Annotated[GitSource, Tag("git")] | Annotated[InstalledSource, Tag("installed")],
    Discriminator(
        kind_by_key("git", "installed"),
        custom_error_type="source_kind",
        custom_error_message="a source needs exactly one of the keys `git` and `installed`",
    ),
]


class ModelSource(FrozenModel):
    """Model files, verified by a manifest."""

    name: SafeName
    """A key of the host profile's `models`; the placeholder is `{model:NAME}`."""
    manifest: RelativePath
    """`sha256sum` lines of every file of the model, relative to the model's folder; a path below campaigns/."""

"""What an export of a sealed run says of itself: of which run it is a copy, and where it is not."""

from typing import Annotated, Literal

from pydantic import Field

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.prereg.field_types import Line

Count = Annotated[int, Field(ge=0)]


class Original(FrozenModel):
    """The sealed run that was copied; it stays where it is, whole."""

    run_dir: SafeName
    """Its name."""
    seal_sha256: Sha256
    """Digest of its seal statement."""
    root_sha256: Sha256
    """Digest of its manifest, which lies beside this record."""
    packet_sha256: Sha256
    """Its packet."""


class Redaction(FrozenModel):
    """Bytes that were taken out; as many `#` stand in their place."""

    path: str
    """The file, below data/."""
    start: Count
    """The first byte that was taken out."""
    end: Count
    """The first byte after them."""


class MappedName(FrozenModel):
    """A name that was replaced wherever it stood; what it was is not said."""

    replacement: Line
    """What stands there now."""
    places: Count
    """How often."""


class ChangedFile(FrozenModel):
    """A file that is not as it was sealed."""

    path: str
    """The file, below data/."""
    original_sha256: Sha256
    """Its digest in the original's manifest."""
    sha256: Sha256
    """Its digest here."""


class ExportRecord(FrozenModel):
    """The whole of `EXPORT.json`."""

    schema_id: Literal["labctl/export/1"] = Field(default="labctl/export/1", alias="schema")
    """The format of this document."""
    is_original: Literal[False] = False
    """An export is never the run: it has no seal, and no command takes it for one."""
    original: Original
    """What it is a copy of."""
    reason: Line
    """Why it was made."""
    names: tuple[MappedName, ...]
    """Names that were replaced."""
    redactions: tuple[Redaction, ...]
    """Bytes that were taken out."""
    changed: tuple[ChangedFile, ...]
    """Every file that differs; all others are the original's, as its manifest says."""

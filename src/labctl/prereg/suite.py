"""Suites (prompts), oracles (expected tokens) and model manifests: the other files that a campaign names."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.prereg.field_types import is_absent
from labctl.prereg.model import Api

TokenIds = Annotated[tuple[Annotated[int, Field(ge=0, le=2**31 - 1)], ...], Field(min_length=1)]
PromptContent = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]


class Message(FrozenModel):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    """Who speaks."""
    content: PromptContent
    """What is said."""


class Prompt(FrozenModel):
    """One request of a suite: a text for completions, or messages for chat."""

    id: SafeName
    """The prompt's name; unique in the suite."""
    text: PromptContent | None = None
    """The prompt of a completions suite."""
    messages: Annotated[tuple[Message, ...], Field(min_length=1)] | None = None
    """The messages of a chat suite."""


class Suite(FrozenModel):
    """The prompts of a workload, in order. A suite's identity is the digest of its bytes, never its name."""

    labctl: Literal[1]
    """The version of this format."""
    kind: Literal["suite"]
    """The file's kind."""
    id: SafeName
    """A name for people."""
    prompts: Annotated[tuple[Prompt, ...], Field(min_length=1, max_length=10_000)]
    """The prompts, in the order in which every start is asked them."""


class OracleRow(FrozenModel):
    """What one prompt must give, as far as it is known: token ids, or a digest of the text, or both."""

    prompt: SafeName
    """The prompt's id."""
    prompt_token_ids_sha256: Sha256 | None = Field(default=None, exclude_if=is_absent)
    """SHA-256 of the canonical JSON list of prompt token ids, as the server reported them."""
    token_ids: TokenIds | None = Field(default=None, exclude_if=is_absent)
    """The generated token ids; without them only gate `exact_text` can compare."""
    text_sha256: Sha256 | None = Field(default=None, exclude_if=is_absent)
    """SHA-256 of the generated text in UTF-8."""
    finish_reason: Literal["length", "stop"] | None = Field(default=None, exclude_if=is_absent)
    """Why generation ended."""


class ImportedFile(FrozenModel):
    """One file that an oracle was imported from."""

    schema_name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """The format that it says it has."""
    sha256: Sha256
    """Its digest."""


class OracleOrigin(FrozenModel):
    """Where an oracle's tokens come from."""

    run: SafeName
    """The sealed run."""
    seal_sha256: Sha256
    """SHA-256 of its seal statement."""
    packet_sha256: Sha256
    """Its packet."""
    leg: SafeName
    """The start whose rows were taken."""


class ImportedOrigin(FrozenModel):
    """An oracle of another lab, whose tokens labctl never saw being generated."""

    kind: Literal["imported"]
    """The origin's kind."""
    files: Annotated[tuple[ImportedFile, ...], Field(min_length=1)]
    """The files that it was made from."""
    source_sha256: Sha256
    """SHA-256 of the lab's own record of the start, as its files name it."""


def _origin_kind(value: Any) -> str:  # noqa: ANN401 (pydantic passes raw input)
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", ())
    return "imported" if "kind" in keys else "sealed"


Origin = Annotated[
    Annotated[OracleOrigin, Tag("sealed")] | Annotated[ImportedOrigin, Tag("imported")], Discriminator(_origin_kind)
]


class Oracle(FrozenModel):
    """A teacher: the tokens that every row of a campaign is held against."""

    labctl: Literal[1]
    """The version of this format."""
    kind: Literal["oracle"]
    """The file's kind."""
    suite_sha256: Sha256
    """SHA-256 of the suite's bytes."""
    api: Api
    """Completions or chat."""
    max_tokens: Annotated[int, Field(ge=1)]
    """Tokens asked for."""
    ignore_eos: bool
    """Whether end tokens were ignored."""
    origin: Origin
    """The sealed start that it was made from, or the files of another lab."""
    rows: Annotated[tuple[OracleRow, ...], Field(min_length=1)]
    """One row a prompt, in the suite's order."""

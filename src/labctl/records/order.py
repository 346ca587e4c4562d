"""The work order: everything a leg process is told."""

from typing import Annotated, Literal

from pydantic import Field

from labctl.engines.vocabulary import EngineVocabulary
from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.prereg.cards import Cards
from labctl.prereg.field_types import EnvironmentName, LegName
from labctl.prereg.host_profile import Devices
from labctl.prereg.model import Api, Arm
from labctl.prereg.suite import Prompt
from labctl.records.marker import Nonce


def _is_absent(value: object) -> bool:
    """What came later is left out where unused, so that earlier records keep their one canonical form."""
    return value is None


class StartPaths(FrozenModel):
    """The folders of one start; absolute."""

    leg: str
    """Where the leg writes its records: its folder inside the run."""
    scratch: str
    """The start's own folder outside the run; holds the four below, empty when the leg starts, removed when it ends."""
    cache: str
    """`{cache_dir}`."""
    temporary: str
    """TMPDIR."""
    home: str
    """HOME."""
    working: str
    """The empty working folder of the server."""


class Limits(FrozenModel):
    """Bounds on one start."""

    ready_timeout_s: int
    """Seconds until ready."""
    stop_timeout_s: int
    """Seconds until every process has ended after SIGTERM."""
    request_timeout_s: int
    """Seconds for one request."""
    log_limit_bytes: int
    """Bytes the server may print."""
    response_limit_bytes: int
    """Bytes a response may have."""
    silence_s: int
    """Seconds without a byte on the lifeline after which the leg stops its tree."""


class Requests(FrozenModel):
    """What the start is asked."""

    api: Api
    """Completions or chat."""
    prompts: tuple[Prompt, ...]
    """In order."""
    max_tokens: int
    """Tokens to generate."""
    seed: int
    """The request's seed."""
    ignore_eos: bool
    """Whether generation goes on after an end token."""


class WorkOrder(FrozenModel):
    """One leg of an endpoint campaign."""

    schema_id: Literal["labctl/order/1"] = Field(default="labctl/order/1", alias="schema")
    """The format of this document."""
    kind: Literal["endpoint"]
    """The leg's kind."""
    packet_kind: Literal["real", "rehearsal"]
    """The packet's kind."""
    packet_sha256: Sha256
    """The packet."""
    marker_sha256: Sha256
    """The marker."""
    index: Annotated[int, Field(ge=1)]
    """The leg's place in the order, from 1."""
    leg: LegName
    """The leg's name."""
    arm: Arm
    """The leg's arm."""
    machine_id_sha256: Sha256
    """The only machine that may run this order."""
    boot_id: str
    """The boot in which the packet was consumed."""
    nonce: Nonce
    """This start's nonce."""
    address: Literal["127.0.0.1"]
    """Where the server listens."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Its port."""
    argv: tuple[str, ...]
    """The server's argument list, placeholders filled."""
    environment: dict[EnvironmentName, str]
    """The server's whole environment."""
    paths: StartPaths
    """Folders."""
    limits: Limits
    """Bounds."""
    requests: Requests
    """Prompts."""
    engine: EngineVocabulary
    """What the engine calls things."""
    cards: Cards | None = Field(default=None, exclude_if=_is_absent)
    """Cards whose memory is looked at before the start and after the stop."""
    devices: Devices | None = Field(default=None, exclude_if=_is_absent)
    """How they are looked at."""


class LegStarted(FrozenModel):
    """The claim of the leg's folder by one process."""

    schema_id: Literal["labctl/leg-started/1"] = Field(default="labctl/leg-started/1", alias="schema")
    """The format of this document."""
    leg: SafeName
    """The leg."""
    order_sha256: Sha256
    """The work order."""
    pid: int
    """The leg process."""
    start_ticks: int
    """Its start time in clock ticks since boot."""
    boot_id: str
    """The boot."""
    wall_ns: int
    """UTC, for labels."""
    mono_ns: int
    """The monotonic clock."""

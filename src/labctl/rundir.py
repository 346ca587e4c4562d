"""Every name inside a run, an analysis and an authorization root, in one place."""

import re
from dataclasses import dataclass
from pathlib import Path

BAG_FILES = ("bagit.txt", "bag-info.txt")
MANIFEST = "manifest-sha256.txt"
TAG_MANIFEST = "tagmanifest-sha256.txt"
SEAL = "seal.json"
SEAL_SIGNATURE = "seal.json.sig"
SAFE_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")
WIRE_STEM = re.compile(r"[0-9]{2,4}\Z")


@dataclass(frozen=True, slots=True)
class LegPaths:
    """The files of one leg."""

    root: Path

    @property
    def order(self) -> Path:
        """The work order that the leg read."""
        return self.root / "order.json"

    @property
    def started(self) -> Path:
        """The O_EXCL claim of the leg process."""
        return self.root / "LEG_STARTED.json"

    @property
    def wire(self) -> Path:
        """The folder of raw rows."""
        return self.root / "wire"

    def wire_bytes(self, row: int) -> Path:
        """The received bytes of a row (1-based)."""
        return self.wire / f"{row:02d}.bin"

    def wire_reads(self, row: int) -> Path:
        """The stamps of a row (1-based)."""
        return self.wire / f"{row:02d}.reads.jsonl"

    @property
    def metrics_before(self) -> Path:
        """The counters before the first prompt."""
        return self.root / "metrics-before.prom"

    @property
    def metrics_after(self) -> Path:
        """The counters after the last prompt."""
        return self.root / "metrics-after.prom"

    @property
    def process(self) -> Path:
        """Observed arguments, environment, tree and sockets."""
        return self.root / "process.json"

    @property
    def maps(self) -> Path:
        """The libraries really mapped."""
        return self.root / "maps.txt"

    @property
    def server_log(self) -> Path:
        """What the server printed."""
        return self.root / "server.log"

    @property
    def telemetry(self) -> Path:
        """Samples of host load, between rows."""
        return self.root / "telemetry.jsonl"

    @property
    def postflight(self) -> Path:
        """The proof that nothing is left."""
        return self.root / "postflight.json"

    @property
    def exit(self) -> Path:
        """How the leg ended."""
        return self.root / "exit.json"

    @property
    def log(self) -> Path:
        """What the leg process itself printed (empty unless something broke)."""
        return self.root / "leg.log"

    @property
    def discovery(self) -> Path:
        """The cards that the leg's process saw, after its affinity was set."""
        return self.root / "discovery.json"

    @property
    def pre_import(self) -> Path:
        """What a worker wrote before it imported anything."""
        return self.root / "pre-import.json"

    @property
    def rows(self) -> Path:
        """What a worker wrote of each row."""
        return self.root / "rows.jsonl"

    @property
    def component(self) -> Path:
        """What a worker wrote at its end."""
        return self.root / "component.json"

    @property
    def worker_log(self) -> Path:
        """What a worker printed."""
        return self.root / "worker.log"

    def rank_stages(self, rank: int) -> Path:
        """The stages that a rank proved."""
        return self.root / f"rank-{rank}.jsonl"

    def rank_log(self, rank: int) -> Path:
        """What a rank printed."""
        return self.root / f"rank-{rank}.log"

    def rank_exit(self, rank: int) -> Path:
        """How a rank ended, seen from outside."""
        return self.root / f"rank-{rank}.exit.json"

    @property
    def manifest(self) -> Path:
        """The digests of this leg's files, written when the leg closes."""
        return self.root / "leg-manifest-sha256.txt"


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one run."""

    root: Path

    @property
    def data(self) -> Path:
        """The payload."""
        return self.root / "data"

    @property
    def packet(self) -> Path:
        """Copies of the packet's files."""
        return self.data / "packet"

    @property
    def host(self) -> Path:
        """What the machine was."""
        return self.data / "host"

    @property
    def legs(self) -> Path:
        """One folder a leg."""
        return self.data / "legs"

    def leg(self, index: int, name: str) -> LegPaths:
        """The folder of a leg, by its 1-based place in the order and its name."""
        return LegPaths(self.legs / f"{index:02d}-{name}")

    @property
    def phase(self) -> Path:
        """Answers of the analyzers at the phase stop."""
        return self.data / "phase1"

    @property
    def analyzers(self) -> Path:
        """Copies of the analyzers that stand alone."""
        return self.data / "analyzers"

    @property
    def journal(self) -> Path:
        """The hash chain of the run's own steps."""
        return self.data / "journal.jsonl"

    @property
    def outcome(self) -> Path:
        """Completed, or aborted and why."""
        return self.data / "outcome.json"

    @property
    def layout(self) -> Path:
        """Path and size of every other payload file."""
        return self.data / "layout.json"

    @property
    def manifest(self) -> Path:
        """The payload digests."""
        return self.root / MANIFEST

    @property
    def tag_manifest(self) -> Path:
        """The digests of the files beside the payload."""
        return self.root / TAG_MANIFEST

    @property
    def seal(self) -> Path:
        """The seal statement."""
        return self.root / SEAL


@dataclass(frozen=True, slots=True)
class PacketPaths:
    """The files of one frozen packet."""

    root: Path

    @property
    def packet(self) -> Path:
        """The canonical packet; its SHA-256 is the packet's id."""
        return self.root / "packet.json"

    @property
    def prereg(self) -> Path:
        """The exact bytes of the YAML file."""
        return self.root / "prereg.yaml"

    @property
    def engine(self) -> Path:
        """The resolved engine vocabulary."""
        return self.root / "engine.json"

    @property
    def inputs(self) -> Path:
        """Suite, oracle and the other small pinned inputs, by role."""
        return self.root / "inputs"

    @property
    def approvals(self) -> Path:
        """Reviews that were filed for this packet."""
        return self.root / "approvals"


@dataclass(frozen=True, slots=True)
class AuthorizationPaths:
    """The files of one authorization root."""

    root: Path

    @property
    def packets(self) -> Path:
        """Frozen packets by id."""
        return self.root / "packets"

    def packet(self, packet_id: str) -> PacketPaths:
        """The folder of one packet."""
        return PacketPaths(self.packets / packet_id)

    @property
    def markers(self) -> Path:
        """One-shot markers by packet id."""
        return self.root / "markers"

    def marker(self, packet_id: str) -> Path:
        """The marker of one packet."""
        return self.markers / f"{packet_id}.json"

    @property
    def ledger(self) -> Path:
        """The hash chain of consumptions and seals."""
        return self.root / "ledger" / "consumed.jsonl"

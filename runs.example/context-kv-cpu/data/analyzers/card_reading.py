"""A run that starts no server, read from its files: cards, and one leg a card, or one leg with all ranks in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .card_forms import DISCOVERY, card_form
from .record_forms import require, require_form
from .run_conflicts import journal_contradictions
from .run_reading import Run
from .sealed_files import Broken, Doc, canonical, document, manifest_of, need, problem, sha256, unequal
from .start_conflicts import host_contradictions


@dataclass(slots=True)
class CardRunLeg:
    """One leg; records that are there by file name, and all files."""

    name: str
    folder: str
    index: int
    manifest_sha256: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    records: dict[str, Doc] = field(default_factory=dict)
    lines: dict[str, list[Doc]] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_completed(self) -> bool:
        """Whether it says that it came to its end."""
        return self.records.get("exit.json", {}).get("cause") == "completed"

    def sha256_of(self, name: str) -> str | None:
        """The digest of one of its files."""
        return sha256(self.files[name]) if name in self.files else None


class CardRun(Run):
    """One run of a component or a probe, with everything in it that contradicts something else."""

    def __init__(self, files: Mapping[str, bytes], ending: Doc) -> None:  # what servers need is not there
        self.files, self.ending = files, ending
        self.is_aborted = ending["outcome"] == "aborted"
        self.problems: list[str] = []
        data = {name: need(files, f"packet/{name}") for name in ("packet.json", "marker.copy.json")}
        self.digests = {name: sha256(one) for name, one in data.items()}
        self.packet, self.marker = (document(one, f"data/packet/{name}") for name, one in data.items())
        require_form("marker.copy.json", self.marker, "data/packet/marker.copy.json")
        self.prereg: Doc = self.packet["preregistration"]
        is_probe = self.prereg["kind"] == "probe"
        self.order = ["probe"] if is_probe else [f"card{index}" for index in range(self.prereg["cards"]["count"])]
        self.problems += unequal("data/packet", ("canonical form", canonical(self.packet), data["packet.json"]))
        self.journal: list[Doc] = []
        self.legs = []
        folders = {name.split("/")[1] for name in files if name.startswith("legs/")}
        if folders or not self.is_aborted:
            self._hold_inputs({})
            self._load_approvals()
        self._load_journal()
        self.outcome, self.answers = self._load_outcome()
        self.host: dict[str, Doc | None] = {}
        self._load_host()
        self.devices = self._discovery("host/devices.json", "cards are looked at before any leg" if folders else "")
        planned = [CardRunLeg(name, f"{index:02d}-{name}", index) for index, name in enumerate(self.order, start=1)]
        self.problems += unequal("data/legs", ("not ordered", set(), folders - {leg.folder for leg in planned}))
        self.card_legs = [leg for leg in planned if leg.folder in folders]
        for leg in self.card_legs:
            self._load_card_leg(leg)

    def was_cut(self, leg: CardRunLeg) -> bool:
        """Whether a leg was going on when the run was aborted."""
        return self.is_aborted and leg.name not in self.happened("leg_closed")

    def contradictions(self) -> Iterator[str]:
        """Everything that two records of the run as a whole say differently."""
        packet, marker = self.packet, self.marker
        said = (packet["kind"], self.order, packet["repository"]["commit"], packet["repository"]["tree_dirhash"])
        marked = tuple(marker[name] for name in ("kind", "order", "git_commit", "tree_dirhash"))
        digests = (self.digests["packet.json"], packet["prereg_yaml_sha256"])
        told = (marker["packet_sha256"], marker["prereg_sha256"])
        yield from unequal(
            "data/packet: marker", ("digests", digests, told), ("kind, order, commit, tree", said, marked)
        )
        yield from host_contradictions(self)
        closed = [leg.name for leg in self.card_legs if leg.manifest_sha256]
        yield from journal_contradictions(self, closed, [leg.name for leg in self.card_legs])

    def _discovery(self, name: str, why: str) -> Doc | None:
        """The cards before any affinity."""
        data = self._take(name, why)
        try:
            found = None if data is None else require(DISCOVERY, document(data, f"data/{name}"), f"data/{name}")
        except Broken as error:
            self.problems += error.args
            return None
        self.problems += unequal(f"data/{name}", ("form", found and canonical(found), data))
        return found

    def _load_card_leg(self, leg: CardRunLeg) -> None:
        at = f"legs/{leg.folder}/"
        leg.files = {name.removeprefix(at): data for name, data in self.files.items() if name.startswith(at)}
        manifest = leg.files.pop("leg-manifest-sha256.txt", None)
        if manifest is not None:
            is_sound = manifest == manifest_of(leg.files)
            where = f"data/{at}leg-manifest-sha256.txt"
            self.problems += (
                [] if is_sound else [problem("DIGEST_MISMATCH", where, "the digests of the leg's files", "others")]
            )
            leg.manifest_sha256 = sha256(manifest) if is_sound or not self.was_cut(leg) else None
        is_probe = self.prereg["kind"] == "probe"
        for name, data in leg.files.items():
            self._read_into(leg, name, data, is_quiet=is_probe and name.startswith("rank-"))
        if self.was_cut(leg):
            return
        wanted = ["order.json", "LEG_STARTED.json", "exit.json"] if leg.manifest_sha256 else []
        wanted += ["postflight.json", "leg.log"] if leg.is_completed else []
        if leg.is_completed and not is_probe:
            wanted += [
                "discovery.json",
                "process.json",
                "pre-import.json",
                "rows.jsonl",
                "component.json",
                "worker.log",
                "maps.txt",
            ]
        for name in wanted:
            self._take(at + name, "the leg was closed, or completed")
        self.problems += self._leg_contradictions(leg)

    def _read_into(self, leg: CardRunLeg, name: str, data: bytes, *, is_quiet: bool) -> None:
        where, faults = f"data/legs/{leg.folder}/{name}", list[str]()
        form = card_form(self.prereg["kind"], name)
        try:
            if name.endswith(".json"):
                leg.records[name] = require(form, document(data, where), where)
                faults += unequal(where, ("form", canonical(leg.records[name]), data))
            elif name.endswith(".jsonl"):
                lines = enumerate(data.splitlines(), start=1)
                found = [require(form, document(line, f"{where}:{at}"), f"{where}:{at}") for at, line in lines]
                faults += unequal(where, ("form", b"".join(map(canonical, found)), data))
                leg.lines[name] = found
        except Broken as error:
            faults += error.args
        if is_quiet:
            leg.faults[name] = faults
        elif not self.was_cut(leg):
            self.problems += faults

    def _leg_contradictions(self, leg: CardRunLeg) -> Iterator[str]:
        where, started, ended = (
            f"data/legs/{leg.folder}",
            leg.records.get("LEG_STARTED.json"),
            leg.records.get("exit.json"),
        )
        if started:
            wanted = (leg.name, leg.sha256_of("order.json"), self.marker["host"]["boot_id"])
            said = tuple(started[name] for name in ("leg", "order_sha256", "boot_id"))
            yield from unequal(f"{where}/LEG_STARTED.json", ("leg, order, boot", wanted, said))
        if ended:
            yield from unequal(f"{where}/exit.json", ("leg", leg.name, ended["leg"]))
            if self.outcome and not self.is_aborted:
                yield from unequal(f"{where}/exit.json", ("cause", "completed", ended["cause"]))

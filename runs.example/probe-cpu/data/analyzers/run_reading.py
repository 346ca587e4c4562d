"""One run and its starts, read from its files, with everything that is not there or not in its form."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .metrics_text import read_samples
from .record_forms import require_form
from .row_figures import CONVENTIONAL, UNTOLD, Row, Told
from .sealed_files import (
    Broken,
    Doc,
    canonical,
    document,
    finite,
    manifest_of,
    need,
    parse_json,
    parts_sha256,
    problem,
    sha256,
    unequal,
    unique_keys,
)
from .start_order import drawn_order
from .wire_reading import read_stamps

NAME = "standalone"
Counters = dict[str, dict[tuple[tuple[str, str], ...], Fraction]]
PLACEHOLDER = re.compile(
    r"(\{(?:python|host|port|nonce|leg_dir|cache_dir|binaries|model:[A-Za-z0-9][A-Za-z0-9._-]{0,127})\})"
)
FIXED = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": "UTC"}
FIXED |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
FIRST_PAIR = 2


def read_counters(data: bytes, names: Mapping[str, str]) -> Counters:
    """Samples by the vocabulary's names, summed over engines; a ValueError where one is twice there or not finite."""
    found: Counters = {}
    seen = set()
    for name, labels, text in read_samples(data.decode()):
        kept = tuple(pair for pair in labels if pair[0] not in ("engine", "model_name"))
        for known in (known for known, called in names.items() if called == name):
            if (known, labels) in seen or finite(text) < 0:
                raise ValueError(f"a sample twice, or negative: {name} {labels}")
            seen.add((known, labels))
            sums = found.setdefault(known, {})
            sums[kept] = sums.get(kept, Fraction(0)) + (
                Fraction(int(text)) if text.lstrip("+").isdigit() else Fraction(float(text))
            )
    return found


def total(counters: Counters, name: str) -> Fraction | None:
    """The sum of a counter over its labels; None where it is absent."""
    return sum(counters[name].values(), Fraction(0)) if name in counters else None


def served_version(process: Doc) -> str | None:
    """The version that the server told, or None."""
    try:
        version = parse_json(process["readiness"]["version_body"].encode(), unique_keys)["version"]
    except (ValueError, LookupError, TypeError):
        return None
    return version if isinstance(version, str) else None


@dataclass(slots=True)
class Leg:
    """One start; what its folder does not hold is None or empty."""

    name: str
    folder: str
    manifest_sha256: str | None = None
    order: Doc | None = None
    started: Doc | None = None
    process: Doc | None = None
    postflight: Doc | None = None
    exit: Doc | None = None
    counters: tuple[Counters, Counters] | None = None
    after: Counters | None = None
    log: bytes | None = None
    maps: bytes | None = None
    rows: list[Row] = field(default_factory=list)

    def grown(self, name: str, off: Sequence[str]) -> Fraction | None:
        """How much a counter grew; None where it is absent and that does not mean that its feature is off."""
        if self.counters is None:
            return None
        before, after = (total(one, name) for one in self.counters)
        if after is None or before is None:
            return (after or Fraction(0)) if name in off and before is None else None
        return after - before


class Run:
    """One run, or its closed legs so far, with everything in it that contradicts something else."""

    def __init__(self, files: Mapping[str, bytes], ending: Doc | None) -> None:
        self.files, self.ending = files, ending
        self.is_aborted = ending is not None and ending["outcome"] == "aborted"
        self.problems: list[str] = []
        names = ("packet.json", "marker.copy.json", "engine.json")
        data = {name: need(files, f"packet/{name}") for name in names}
        self.digests = {name: sha256(one) for name, one in data.items()}
        self.packet, self.marker, self.engine = (document(one, f"data/packet/{name}") for name, one in data.items())
        require_form("marker.copy.json", self.marker, "data/packet/marker.copy.json")
        self.prereg: Doc = self.packet["preregistration"]
        self.off: list[str] = self.engine["off_when_absent"]
        self.order = drawn_order(self.prereg, self.marker)
        self.problems += unequal("data/packet", ("canonical form", canonical(self.packet), data["packet.json"]))
        self.journal: list[Doc] = []
        self.prompts: list[Doc] = []
        folders = {name.split("/")[1] for name in files if name.startswith("legs/")}
        # Aborted without a leg, the controller was killed before it had written anything but the packet.
        self.taught = self._load_inputs() if folders or not self.is_aborted else None
        self._load_journal()
        self.outcome, self.answers = self._load_outcome()
        self.host: dict[str, Doc | None] = {}
        self._load_host()
        planned = [Leg(name, f"{index:02d}-{name}") for index, name in enumerate(self.order, start=1)]
        self.problems += unequal("data/legs", ("not ordered", set(), folders - {leg.folder for leg in planned}))
        self.legs = [leg for leg in planned if leg.folder in folders]
        for leg in self.legs:
            heard = len(self.problems)
            self._load_leg(leg)
            if self.was_cut_short(leg):
                del self.problems[heard:]  # it may hold half of anything
            prompts = leg.order["requests"]["prompts"] if leg.order else self.prompts
            self.prompts = self.prompts or prompts
            self.problems += unequal(f"data/legs/{leg.folder}/order.json", ("prompts", self.prompts, prompts))

    def arm(self, arm: str) -> list[Leg]:
        """The starts of an arm that are there."""
        return [leg for leg in self.legs if leg.name[0] == arm]

    @property
    def metric(self) -> str:
        """The metric that decides, else that of the first pair gate."""
        decision = [self.prereg["decision"]["headline"]] if self.prereg["decision"] else []
        pairs = (gate["metric"] for gate in self.prereg["gates"] if gate["kind"] == "pair")
        return str([*decision, *pairs, CONVENTIONAL][0])

    def happened(self, *events: str) -> list[str | None]:
        """The legs of all journal entries with one of these events."""
        return [entry["leg"] for entry in self.journal if entry["event"] in events]

    def was_cut_short(self, leg: Leg) -> bool:
        """Whether a start was going on when the run was aborted."""
        return self.is_aborted and leg.name not in self.happened("leg_closed")

    def _take(self, name: str, why: str) -> bytes | None:
        if why and name not in self.files:
            self.problems.append(problem("MISSING_FILE", f"data/{name}", f"a file: {why}", "nothing"))
        return self.files.get(name)

    def _record(self, name: str, why: str, form: str = "") -> Doc | None:
        data = self._take(name, why)
        if data is None:
            return None
        try:
            found = require_form(form or name.rpartition("/")[2], document(data, f"data/{name}"), f"data/{name}")
        except Broken as error:
            self.problems += error.args
            return None
        if not name.endswith("oracle.json"):  # which people may have written
            self.problems += unequal(f"data/{name}", ("form", canonical(found), data))
        return found

    def _load_inputs(self) -> list[Told] | None:
        need(self.files, "packet/inputs/suite.yaml")
        self._hold_inputs({"packet/engine.json": self.packet["engine_sha256"]})
        has_teacher = self.prereg["oracle"] != "first_control"
        oracle = self._record("packet/inputs/oracle.json", "taught") if has_teacher else None
        self._load_approvals()
        names = ("token_ids", "text_sha256", "finish_reason", "prompt_token_ids_sha256")
        if oracle is None:
            return None
        given = [{name: value for name, value in row.items() if value is not None} for row in oracle["rows"]]
        return [tuple(row.get(name, UNTOLD) for name in names) for row in given]

    def _hold_inputs(self, more: Mapping[str, str]) -> None:
        """Hold the analyzers and every small file against the packet, and against `more` that its kind pins."""
        pinned = {**more} | {f"packet/inputs/{one['role']}": one["sha256"] for one in self.packet["files"]}
        pinned["packet/prereg.yaml"] = self.packet["prereg_yaml_sha256"]
        analyzers = {one["name"]: one["sha256"] for one in self.packet["analyzers"]}
        copies = {name[10:]: data for name, data in self.files.items() if name.startswith("analyzers/")}
        self.problems += unequal("data", ("analyzers", analyzers.get(NAME, ""), parts_sha256(copies)))
        surplus = {name for name in self.files if name.startswith("packet/inputs/")} - pinned.keys()
        self.problems += unequal("data", ("inputs that the packet does not pin", set(), surplus))
        for name in sorted(pinned):
            found = sha256(self.files[name]) if name in self.files else None
            self.problems += unequal("data", (name, pinned[name], found))

    def _load_approvals(self) -> None:
        there = {sha256(data) for name, data in self.files.items() if name.startswith("packet/approvals/")}
        lacking = set(self.marker["approvals"]) - there
        self.problems += unequal("data/packet/approvals", ("approvals that were counted", set(), lacking))

    def _load_journal(self) -> None:
        before, why = sha256(b""), "" if self.is_aborted else "every run has one"
        for number, line in enumerate((self._take("journal.jsonl", why) or b"").splitlines(keepends=True)):
            where = f"data/journal.jsonl:{number + 1}"
            if self.is_aborted and not line.endswith(b"\n"):
                break  # the controller was killed while it wrote this line
            try:
                entry = require_form("journal.jsonl", document(line, where), where)
            except Broken as error:
                self.problems += error.args
                break
            sides = (number, before, line), (entry["seq"], entry["prev"], canonical(entry))
            self.problems += unequal(where, ("place in the chain", *sides))
            self.journal.append(entry)
            before = sha256(line)

    def _load_outcome(self) -> tuple[Doc | None, list[Doc]]:
        heard, why = len(self.problems), "" if self.is_aborted else "the run is sealed"
        outcome = self._record("outcome.json", why) if self.ending else None
        if self.ending and self.is_aborted and (outcome is None or outcome.get("outcome") != "aborted"):
            outcome = {**self.ending, "legs_closed": self.happened("leg_closed")}
        if self.is_aborted:
            del self.problems[heard:]  # half of anything may be there
        names = sorted(name for name in self.files if name.startswith("phase1/"))
        answers = [answer for name in names if (answer := self._record(name, "", "phase"))]
        if self.is_aborted and not self.happened("phase_answered", "phase_stopped"):
            del self.problems[heard:]
        return outcome, answers

    def _load_host(self) -> None:
        heard, is_recorded = len(self.problems), bool(self.happened("preflight_recorded"))
        for name in ("identity.json", "preflight.json"):
            self.host[name] = self._record(f"host/{name}", "preflight was recorded" if is_recorded else "")
        allowed = self._take("host/env.json", "preflight was recorded" if is_recorded else "")
        if not is_recorded:
            del self.problems[heard:]  # the controller was killed while it wrote them
        if allowed is not None:
            expected = canonical({"allowed": self.packet["environment_allowed"]})
            self.problems += unequal("data/host/env.json", ("allowed names", expected, allowed))

    def _load_leg(self, leg: Leg) -> None:
        at = f"legs/{leg.folder}/"
        below = {name.removeprefix(at): name for name in self.files if name.startswith(at)}
        if (manifest := self._take(f"{at}leg-manifest-sha256.txt", "")) is not None:
            del below["leg-manifest-sha256.txt"]
            found = manifest_of({name: self.files[path] for name, path in below.items()})
            changed = set(found.decode().split("\n")) ^ set(manifest.decode("latin-1").split("\n"))
            names = sorted({line[66:] for line in changed if line}) or ([] if found == manifest else ["leg manifest"])
            self.problems += [problem("DIGEST_MISMATCH", f"data/{at}{name}", "its digest", "another") for name in names]
            leg.manifest_sha256 = None if names and self.was_cut_short(leg) else sha256(manifest)
        leg.exit = self._record(f"{at}exit.json", "closed" if leg.manifest_sha256 else "")
        why = "completed" if leg.exit and leg.exit["cause"] == "completed" else ""
        names = [f"{at}{name}.json" for name in ("order", "LEG_STARTED", "process", "postflight")]
        leg.order, leg.started, leg.process, leg.postflight = (self._record(name, why) for name in names)
        leg.log, leg.maps = (self._take(at + name, why) for name in ("server.log", "maps.txt"))
        self._take(f"{at}leg.log", why)
        texts = [self._take(f"{at}metrics-{when}.prom", why) for when in ("before", "after")]
        before, leg.after = (self._counters(f"data/{at}metrics", data) for data in texts)
        leg.counters = None if before is None or leg.after is None else (before, leg.after)
        self._load_rows(leg, [path for path in below.values() if path.endswith(".reads.jsonl")])

    def _counters(self, where: str, data: bytes | None) -> Counters | None:
        try:
            return None if data is None else read_counters(data, self.engine["counters"])
        except ValueError as error:
            self.problems.append(problem("RECORD_FORM", where, "Prometheus text", str(error)[:160]))
            return None

    def _load_rows(self, leg: Leg, paths: list[str]) -> None:
        for path in sorted(paths):
            stem = path.removesuffix(".reads.jsonl")
            stamps, received = (self._take(stem + end, "wire") for end in (".reads.jsonl", ".bin"))
            try:
                if stamps is not None and received is not None:
                    row = Row.read(read_stamps(stamps, received, f"data/{stem}"), received)
                    self.problems += unequal(f"data/{stem}", ("row", stem.rpartition("/")[2], f"{row.number:02d}"))
                    leg.rows.append(row)
            except Broken as error:
                self.problems += error.args
        leg.rows.sort(key=lambda row: row.number)

    def nonce(self, leg: str) -> str:
        """The nonce of a start, which follows from the marker."""
        return sha256(f"{self.marker['nonce']}:{leg}".encode())[:32]

    def start_values(self, order: Doc) -> dict[str, str]:
        """What each placeholder stands for; the order says it, or it is read off the order's own arguments."""
        values = {"{host}": order["address"], "{port}": str(order["port"]), "{nonce}": self.nonce(order["leg"])}
        values |= {"{leg_dir}": order["paths"]["scratch"], "{cache_dir}": order["paths"]["cache"]}
        argv, own = self._template(order["arm"])
        seen = [order["environment"].get(name, "") for name in own]
        for part, observed in [*zip(argv, order["argv"], strict=False), *zip(own.values(), seen, strict=True)]:
            pieces = PLACEHOLDER.split(part)
            unknown = [piece for piece in pieces if PLACEHOLDER.fullmatch(piece) and piece not in values]
            known = [str(values.get(piece, piece)) for piece in pieces]
            pattern = "".join("(.+)" if piece in unknown else re.escape(piece) for piece in known)
            found = re.fullmatch(pattern, observed, re.DOTALL)
            values = {**dict(zip(unknown, found.groups() if found else (), strict=False)), **values}
        return values

    def expected_start(self, order: Doc) -> tuple[list[str], dict[str, str]]:
        """Arguments and environment that a start must have had."""
        values, home, seen = self.start_values(order), order["paths"]["home"], order["environment"]
        argv, own = self._template(order["arm"])
        parts = [*argv, *own.values()]
        filled = [PLACEHOLDER.sub(lambda found: values.get(found[0], "unknown"), part) for part in parts]
        passed = {name: seen[name] for name in self.packet["host"]["environment_passed"] if name in seen}
        private = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "XDG_CONFIG_HOME": f"{home}/.config"}
        private |= {"PYTHONPYCACHEPREFIX": f"{home}/.pycache", "TMPDIR": order["paths"]["temporary"]}
        fixed = {name: value for name, value in (FIXED | private).items() if name in self.packet["environment_allowed"]}
        return filled[: len(argv)], fixed | passed | dict(zip(own, filled[len(argv) :], strict=True))

    def _template(self, arm: str) -> tuple[list[str], dict[str, str]]:
        service, treatment = self.prereg["service"], self.prereg["treatment"] or {}
        argv, environment = list(service["command"]), dict(service["environment"])
        side = treatment.get("control" if arm == "A" else "candidate")
        if side is not None and "argument" in treatment:
            argv += [treatment["argument"], *([] if side is True else [side])]
        elif side is not None and "environment" in treatment:
            environment[treatment["environment"]] = side
        return argv, environment

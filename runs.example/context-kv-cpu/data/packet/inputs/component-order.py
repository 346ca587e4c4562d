"""What a worker reads of its leg's `order.json`; the leg has judged the order, the worker takes what it needs."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEVICES = {"cpu": "cpu", "nvidia": "cuda:0", "intel": "xpu:0"}
"""The only visible card, as torch names it: a card that is seen alone has the number 0."""
SEED_MASK = (1 << 63) - 1


@dataclass(frozen=True)
class Case:
    """One size: its name, and all dimensions that hold in it."""

    name: str
    sizes: dict[str, int]


@dataclass(frozen=True)
class Microcase:
    """One microcase, as registered; `case` gives the sizes."""

    kind: str
    name: str
    arm: str
    case: Case


@dataclass(frozen=True)
class Order:
    """One leg's order."""

    sha256: str
    leg: str
    leg_folder: Path
    code: Path
    nonce: str
    packet_sha256: str
    marker_sha256: str
    vendor: str
    card_index: int
    work: dict[str, Any]

    @property
    def device(self) -> str:
        """The card, as torch names it."""
        return DEVICES[self.vendor]

    @property
    def dimensions(self) -> dict[str, int]:
        """Dimensions that all cases share."""
        return dict(self.work["dimensions"])

    @property
    def arms(self) -> tuple[str, ...]:
        """Arms, in order."""
        return tuple(self.work["arms"])

    @property
    def cases(self) -> tuple[Case, ...]:
        """Cases, in order."""
        return tuple(self._case(case["name"], case["values"]) for case in self.work["cases"])

    @property
    def microcases(self) -> tuple[Microcase, ...]:
        """Microcases, in order."""
        return tuple(self._microcase(entry) for entry in self.work["microcases"])

    @property
    def boundaries(self) -> tuple[str, ...]:
        """Names of the boundaries, in order."""
        return tuple(boundary["name"] for boundary in self.work["boundaries"])

    @property
    def checkpoint_seed(self) -> int:
        """The seed of weights and of what caches hold at first."""
        checkpoint = self.work["checkpoint"]
        return int(checkpoint["seed"] if checkpoint else self.work["seed"])

    def row_seed(self, arm: str, case: str, repeat: int) -> int:
        """The seed of one row's inputs, fresh in each row of each card."""
        text = f"{self.work['seed']}/{self.card_index}/{arm}/{case}/{repeat}"
        return int.from_bytes(hashlib.sha256(text.encode("ascii")).digest()[:8], "big") & SEED_MASK

    def _case(self, name: str, values: dict[str, int]) -> Case:
        return Case(name, {**self.dimensions, **values})

    def _microcase(self, entry: dict[str, Any]) -> Microcase:
        if entry["kind"] == "must_stay_inert":
            case = self._case(entry["name"], entry["values"])
        else:
            case = next(case for case in self.cases if case.name == entry["case"])
        return Microcase(entry["kind"], entry["name"], entry["arm"], case)


def read_order(path: Path) -> Order:
    """Read the order of a component leg."""
    data = path.read_bytes()
    document = json.loads(data)
    return Order(
        sha256=hashlib.sha256(data).hexdigest(),
        leg=document["leg"],
        leg_folder=Path(document["paths"]["leg"]),
        code=Path(document["code"]),
        nonce=document["nonce"],
        packet_sha256=document["packet_sha256"],
        marker_sha256=document["marker_sha256"],
        vendor=document["card"]["vendor"],
        card_index=document["card_index"],
        work=document["work"],
    )

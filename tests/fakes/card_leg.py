"""A component leg on a plain worker: makes its work order in a folder, for `tests.fakes.leg.RunningLeg` to run.

```
place = CardLegPlace.new(tmp_path)
order = place.component_order("--die", "9")            # an order for tests/fakes/plain_worker.py on the first CPU
status, errors = run_order(place, order)
place.exit(), place.worker_process(), place.worker_postflight()
```
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labctl.clock import SystemClock
from labctl.frozen import canonical_json
from labctl.host.devices.affinity import affinity_environment
from labctl.host.devices.discovery import discover, reader_of, select
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.card_order import ComponentOrder, ProbeOrder
from labctl.records.devices import Card
from labctl.records.worker import RankExit, WorkerPostflight, WorkerProcess
from tests.fakes.leg import ENVIRONMENT, LegPlace, RunningLeg

PLAIN_WORKER = Path(__file__).with_name("plain_worker.py")
PLAIN_RANK = Path(__file__).with_name("plain_rank.py")
CPUS = Cards(vendor=CardVendor.CPU, count=2, identities="discover")
LIMITS = {
    "timeout_s": 20,
    "stop_timeout_s": 1,
    "log_limit_bytes": 1 << 16,
    "memory_limit_bytes": None,
    "silence_s": 5,
}


def running(program: Path) -> list[str]:
    """The processes that run a program, and what they put aside."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(program) in command:
            found.append(folder.name)
    return found


class CardLegPlace(LegPlace):
    """The folders of one component leg below a test's folder."""

    def component_order(
        self,
        *misbehaviour: str,
        cards: Cards = CPUS,
        devices: Devices | None = None,
        **changes: Any,  # noqa: ANN401 (tests give parts of a document)
    ) -> ComponentOrder:
        """An order for the plain worker; `changes` replace fields, `limits` only those that it names.

        `card` is the card's place among the cards that are found here, 0 where it is not named.
        """
        devices = devices or Devices()
        found = found_cards(cards, devices)
        index = int(changes.pop("card", 0))
        card = found[index]
        limits = LIMITS | dict(changes.pop("limits", {}))
        argv = [sys.executable, "-I", "-u", str(PLAIN_WORKER), str(self.files.order), *misbehaviour]
        document = self._head(limits, cards, devices) | {
            "schema": "labctl/component-order/1",
            "kind": "component",
            "index": index + 1,
            "leg": f"card{index}",
            "argv": argv,
            "environment": ENVIRONMENT | affinity_environment(card),
            "card": card.model_dump(mode="json"),
            "card_index": index,
            "work": {
                "checkpoint": None,
                "arms": ["plain"],
                "cases": [{"name": "w1", "values": {"width": 1}}, {"name": "w2", "values": {"width": 2}}],
                "repeats": 2,
                "seed": 1,
                "dimensions": {"layers": 2},
                "buffers": [{"name": "pair", "shape": ["layers", "width"], "dtype": "bfloat16"}],
                "boundaries": [{"name": "pair", "of": "pair", "select": None}],
                "caches": None,
                "microcases": [],
            },
        }
        return ComponentOrder.from_json(canonical_json(document | changes), "order for a test")

    def probe_order(self, *misbehaviour: str, cards: Cards = CPUS, **changes: Any) -> ProbeOrder:  # noqa: ANN401 (parts of a document)
        """An order for the plain rank, one rank a card; `limits` and `timeouts` replace only what they name."""
        found = found_cards(cards, Devices())
        timeouts = {"stage_s": 5, "total_s": 5} | dict(changes.pop("timeouts", {}))
        document = self._head(LIMITS | dict(changes.pop("limits", {})), cards, Devices()) | {
            "schema": "labctl/probe-order/1",
            "kind": "probe",
            "index": 1,
            "leg": "probe",
            "argv": [sys.executable, "-I", "-u", str(PLAIN_RANK), str(self.files.order), *misbehaviour],
            "environment": ENVIRONMENT,
            "address": "127.0.0.1",
            "port": self.port,
            "ranks": len(found),
            "backend": "gloo",
            "cards": [card.model_dump(mode="json") for card in found],
            "collective": {"operation": "all_reduce", "dtype": "float32", "elements": 4, "expected": "sum_of_ranks"},
            "timeouts": timeouts,
            "rank_environment": [{"RANK": str(rank)} for rank in range(len(found))],
        }
        return ProbeOrder.from_json(canonical_json(document | changes), "order for a test")

    def rank_exit(self, rank: int) -> RankExit:
        """How a rank ended."""
        return RankExit.from_json(self.files.rank_exit(rank).read_bytes(), "exit")

    def _head(self, limits: Mapping[str, object], cards: Cards, devices: Devices) -> dict[str, Any]:
        own = self._fields()
        kept = ("packet_kind", "packet_sha256", "marker_sha256", "machine_id_sha256", "boot_id", "nonce")
        return {name: own[name] for name in kept} | {
            "interpreter": sys.executable,
            "paths": own["paths"].model_dump(mode="json"),
            "limits": limits,
            "code": str(self.root / "code"),
            "inputs": {},
            "selection": cards.model_dump(mode="json"),
            "devices": devices.model_dump(mode="json"),
            "discovery_sha256": "2" * 64,
        }

    def worker_process(self) -> WorkerProcess:
        """What ran."""
        return WorkerProcess.from_json(self.files.process.read_bytes(), "process.json")

    def worker_postflight(self) -> WorkerPostflight:
        """What was left."""
        return WorkerPostflight.from_json(self.files.postflight.read_bytes(), "postflight.json")


def found_cards(cards: Cards, devices: Devices) -> tuple[Card, ...]:
    """The cards as preflight finds them here, before any affinity."""
    return select(discover(reader_of(cards, devices), devices, SystemClock()), cards)


def run_order(place: LegPlace, order: ComponentOrder | ProbeOrder) -> tuple[int, str]:
    """Run a leg to its end: its exit status, and what it wrote to standard error."""
    with RunningLeg.start(place, order) as leg:
        return leg.wait(), leg.errors()

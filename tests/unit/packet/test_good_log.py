"""Freezing holds the patterns of log gates against a good log: the registered one, or the last rehearsal's."""

from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import FreezeRefused, InvalidPreregistration
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.model import Packet
from tests.fakes.lab_repository import LabRepository
from tests.fakes.run_builder import RunBuilder

GATE = "{kind: clean_log, unknown_environment: fail}"
GOOD = "INFO starting\r\nworker 0: graphs=146\n"


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    return LabRepository.create(tmp_path / "lab")


def register(lab: LabRepository, *, deny: str = "", require: str = "", good_log: str | None = None) -> None:
    """Give the campaign's log gate one pattern of each kind, and a good log of this text."""
    parts = [
        f"deny: [{{pattern: '{deny}', example: 'x {deny}'}}]" if deny else "",
        f"require: [{{pattern: '{require}', example: '{require}'}}]" if require else "",
        "good_log: quick/good.log" if good_log is not None else "",
    ]
    told = ", ".join(["kind: clean_log, unknown_environment: fail", *filter(None, parts)])
    lab.edit_campaign(GATE, f"{{{told}}}")
    if good_log is not None:
        lab.write("campaigns/quick/good.log", good_log)
    lab.commit("Hold the log gate against a good log")


def freeze(lab: LabRepository, told: list[str] | None = None) -> Packet:
    return freeze_packet(FreezeRequest(lab.campaign, progress=(told if told is not None else []).append))


def rehearse(lab: LabRepository, log: bytes, **changes: object) -> Path:
    """A sealed rehearsal whose starts printed this."""
    builder = RunBuilder(packet={"kind": "rehearsal", "preregistration": {"id": "quick"}, **changes}, stops=False)
    for leg in builder.legs:
        leg.log = log
    builder.seal(lab.top / ".labctl/runs/rehearsals")
    return builder.root


def test_a_registered_good_log_is_pinned_with_the_packet(lab: LabRepository) -> None:
    register(lab, deny="not compiled", require="graphs=146", good_log=GOOD)
    pinned = freeze(lab).file("good-clean_log.log")
    assert pinned is not None
    assert pinned.path == "campaigns/quick/good.log"


@pytest.mark.parametrize(("deny", "require"), [("starting", ""), ("graphs", ""), ("", "graphs=145")])
def test_a_pattern_that_a_good_log_would_fail_is_refused(lab: LabRepository, deny: str, require: str) -> None:
    register(lab, deny=deny, require=require, good_log=GOOD)
    with pytest.raises(FreezeRefused, match=r"quick/good\.log") as refused:
        freeze(lab)
    assert refused.value.codes == (Code.RULE,)


def test_a_pattern_of_the_engine_must_not_deny_it_either(lab: LabRepository) -> None:
    register(lab, good_log=GOOD + "Traceback (most recent call last):\n")
    with pytest.raises(FreezeRefused, match="Traceback"):
        freeze(lab)


def test_a_good_log_that_is_not_there_is_an_invalid_campaign(lab: LabRepository) -> None:
    lab.edit_campaign(GATE, "{kind: clean_log, unknown_environment: fail, good_log: quick/good.log}")
    lab.commit("Name a log that is not there")
    with pytest.raises(InvalidPreregistration) as refused:
        freeze(lab)
    assert refused.value.codes == (Code.BAD_PATH,)


def test_without_one_the_last_rehearsal_with_the_real_service_counts(lab: LabRepository) -> None:
    register(lab, deny="captured slowly")
    rehearse(lab, b"INFO captured slowly\n")
    with pytest.raises(FreezeRefused, match="captured slowly") as refused:
        freeze(lab)
    assert refused.value.problems[0].where == "gate clean_log"
    assert "data/legs/01-A1/server.log" in refused.value.problems[0].expected


@pytest.mark.parametrize("changes", [{"service": "embedded"}, {"preregistration": {"id": "another"}}])
def test_rehearsals_of_something_else_do_not_count(lab: LabRepository, changes: dict[str, object]) -> None:
    register(lab, deny="captured slowly")
    rehearse(lab, b"INFO captured slowly\n", **changes)
    told: list[str] = []
    freeze(lab, told)
    assert any("not tried" in line for line in told)


def test_a_log_that_is_not_as_it_was_sealed_does_not_count(lab: LabRepository) -> None:
    register(lab, deny="captured slowly")
    root = rehearse(lab, b"INFO captured well\n")
    for path in root.glob("data/legs/*/server.log"):
        path.chmod(0o600)
        path.write_bytes(b"INFO captured slowly\n")
    assert freeze(lab).kind == "real"

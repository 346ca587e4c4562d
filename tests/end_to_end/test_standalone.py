"""A real campaign judged by both analyzers, and what a disagreement that is seeded into one of them does."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labctl import analyzers, judges
from labctl.packet.model import Packet
from labctl.packet.tool import STANDALONE_FILE, standalone_files
from labctl.records.verdict import Verdict, VerdictKind
from labctl.report.text import render_report
from tests.fakes.campaign_repository import CampaignRepository, make_repository


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository: CampaignRepository = make_repository(tmp_path_factory.mktemp("campaign"))
    repository.edit(lambda document: document.update(schedule={"order": ["A1", "B1"], "stop_after_first_pair": False}))
    repository.freeze()
    answer = repository.labctl("consume-and-run", str(repository.campaign), "--json")
    assert answer.returncode == 0, answer.stderr
    return Path(repository.status()[0]["run"])


def test_a_packet_pins_both_and_the_run_holds_a_copy_for_strangers(run: Path) -> None:
    packet = Packet.from_json((run / "data/packet/packet.json").read_bytes(), "packet")
    assert [analyzer.name for analyzer in packet.analyzers] == ["labctl", "standalone"]
    copies = {path.name: path.read_bytes() for path in (run / "data/analyzers").iterdir()}
    assert copies == {path.name: path.read_bytes() for path in standalone_files()}


def test_both_answers_are_sealed_with_the_verdict(run: Path) -> None:
    (analysis,) = (run.parents[1] / "analyses").iterdir()
    names = {path.name for path in (analysis / "data/answers").iterdir()}
    assert names == {"labctl.json", "standalone.json"}
    facts = json.loads((analysis / "seal.json").read_bytes())["predicate"]["facts"]
    assert {one["standing"] for one in facts["analyzers"].values()} == {"frozen"}
    assert "sign_test_p" not in facts["figures_of_one_analyzer"]["labctl"]
    assert facts["judged_by"].keys() == {"version", "tree_dirhash", "commit", "is_clean"}


def replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


SEEDS: list[tuple[Callable[[str], str], str]] = [
    (replaced("(count, last_ns - sent_ns)", "(count - 1, last_ns - sent_ns)"), "wall_rate"),
    (replaced("_reported_figure(reported,", "_reported_figure(reported + 1,"), "reported_value"),
    (replaced('["cached"] if row.answer.usages', '["prompt"] if row.answer.usages'), "gate cold"),
    (replaced("self.ids += ids", "self.ids += [one + 1 for one in ids]"), "digest of token ids"),
    (replaced("def main(", "raise SystemExit(3)\n\n\ndef main("), "analyzer standalone"),
]


@pytest.mark.parametrize(("seed", "told"), SEEDS)
def test_a_seeded_disagreement_is_invalid_and_named(
    seed: Callable[[str], str], told: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {file.name: file.read_text() for file in standalone_files()}
    seeded = {name: seed(text) for name, text in texts.items()}
    assert sum(seeded[name] != texts[name] for name in texts) == 1
    for name, text in seeded.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setitem(analyzers.KNOWN_ANALYZERS, "standalone", ("-S", str(tmp_path / STANDALONE_FILE.name)))
    again = judges.Reanalysis(supersedes=None, reason="a seeded disagreement")
    judgement = judges.judge_run(judges.JudgeRequest(run, tmp_path / "analyses", again, render_report))
    assert judgement.verdict.verdict is VerdictKind.INVALID
    assert judgement.verdict.reported_value is None
    assert any(told in line for line in judgement.verdict.because), judgement.verdict.because
    sealed = Verdict.from_json(judgement.analysis.read("verdict.json"), "verdict")
    assert sealed == judgement.verdict

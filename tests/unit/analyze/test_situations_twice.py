"""The second analyzer, with its own readers of HTTP and events, judges every situation as the first does."""

from pathlib import Path
from typing import Any

import pytest

from labctl.analyze.sealed_run import analyze_run
from labctl.frozen import strict_json
from labctl.packet.tool import analyzer_identity
from labctl.standalone.analyze_run import judge_run
from tests.fakes.run_builder import RunBuilder
from tests.fakes.stream_server import Send
from tests.unit.analyze.test_sse_situations import SITUATIONS, Situation


def told(verdict: dict[str, Any]) -> tuple[object, ...]:
    gates = [(gate["id"], gate["result"]) for gate in verdict["gates"]]
    rows = [(row["leg"], row["row"], row["token_count"]) for row in verdict["rows"]]
    figures = {(row["leg"], row["row"], one["name"]): one["value"] for row in verdict["rows"] for one in row["figures"]}
    return verdict["verdict"], gates, rows, figures


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name.replace(" ", "-"))
def test_both_analyzers_judge_a_situation_alike(situation: Situation, tmp_path: Path) -> None:
    received = b"".join(step.data for step in situation.plan if isinstance(step, Send))
    builder = RunBuilder()
    row = builder.leg("B2").rows[0]
    row.edit_response = lambda _: received
    row.ended = "complete" if situation.ended == "status_not_200" else situation.ended
    run = builder.seal(tmp_path)
    first = told(strict_json(analyze_run(run, analyzer_identity()).canonical(), "verdict"))
    assert told(judge_run(builder.root)) == first
    failed = {gate for gate, result in dict(first[1]).items() if result == "failed"}  # type: ignore[call-overload] # pairs
    assert "exact_tokens" in failed
    assert ("complete_rows" in failed) == bool(situation.faults)

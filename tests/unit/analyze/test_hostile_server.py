"""Whatever a server says, the analyzer answers with a verdict that can be written; its gates say what is wrong."""

import json
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from labctl.analyze.files import OpenRunFiles
from labctl.analyze.load import load_evidence
from labctl.analyze.phase import answer_phase
from labctl.analyze.sealed_run import analyze_run
from labctl.engines.reference import VOCABULARY
from labctl.packet.tool import analyzer_identity
from labctl.records.verdict import GateResult, Verdict
from labctl.standalone.analyze_run import judge_run
from tests.fakes.run_builder import Edit, RunBuilder, json_edit

METRICS = "legs/02-B1/metrics-after.prom"
PROCESS = "legs/02-B1/process.json"
POSITIONS = VOCABULARY.counters.accepted_per_position.encode()
EXAMPLES = settings(max_examples=20, deadline=None)
NUMBERS = ["0", "-0", "1", "-1", "1e308", "5e-324", "1e999", "NaN", "+Inf", "1_0", "0x1", "\u0661", ""]
KEYS = ["choices", "index", "text", "delta", "content", "token_ids", "usage", "model", "error", "finish_reason"]
KEYS += ["prompt_token_ids", "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens", "version"]

text = st.text(max_size=8)
names = st.sampled_from([name for name in VOCABULARY.counters.model_dump().values() if name]) | text
labels = st.dictionaries(st.sampled_from(["position", "finished_reason", "engine", "le"]) | text, text, max_size=3)
numbers = st.sampled_from(NUMBERS) | st.floats().map(str) | text
leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | text | st.sampled_from(KEYS)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | text, inner),
    max_leaves=8,
)


@st.composite
def sample_lines(draw: st.DrawFn) -> bytes:
    """One line of Prometheus text, as a server might write it that knows the format and nothing else."""
    inside = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in draw(labels).items())
    return f"{draw(names)}{{{inside}}} {draw(numbers)}\n".encode("utf-8", "surrogatepass")


@st.composite
def damages(draw: st.DrawFn) -> Edit:
    """Some bytes replaced, somewhere."""
    at, length, put = draw(st.floats(0, 1)), draw(st.integers(0, 40)), draw(st.binary(max_size=40))
    return lambda data: data[: int(at * len(data))] + put + data[int(at * len(data)) + length :]


GATES = {"identity", "complete_rows", "cold", "clean_log", "treatment", "exact_tokens", "cross_leg_exact"}
GATES |= {"accounting", "pair-decode", "control_near", "decision"}


def judged(builder: RunBuilder) -> Verdict:
    """The verdict, which must be one that can be written and read again."""
    with tempfile.TemporaryDirectory() as folder:
        verdict = analyze_run(builder.seal(Path(folder)), analyzer_identity())
        evidence = load_evidence(OpenRunFiles(builder.root))
        answer_phase(evidence, analyzer_identity().sha256, evidence.conflicts).canonical()
    assert Verdict.from_json(verdict.canonical(), "verdict") == verdict
    return verdict


def run_with(**edits: Edit) -> RunBuilder:
    return RunBuilder(order=("A1", "B1"), prompts=1, stops=False, edits=edits)


def results(verdict: Verdict) -> dict[str, GateResult]:
    return {gate.id: gate.result for gate in verdict.gates}


VERSIONS = ["[" * 100_000, '{"version":"\\ud800"}', '{"version":1}', "[]", "", '{"version":NaN}']
VERSIONS += ['{"version":"reference-1","version":"reference-1"}']


def version_edit(body: str) -> Edit:
    def change(document: dict[str, Any]) -> None:
        document["readiness"]["version_body"] = body

    return json_edit(change)


@EXAMPLES
@given(st.lists(sample_lines(), min_size=1, max_size=4))
def test_strange_samples_give_a_verdict(lines: list[bytes]) -> None:
    assert set(results(judged(run_with(**{METRICS: lambda data: data + b"".join(lines)})))) == GATES


@EXAMPLES
@given(labels, numbers)
def test_strange_positions_give_a_verdict(found: dict[str, str], number: str) -> None:
    inside = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in found.items())
    line = POSITIONS + f"{{{inside}}} {number}\n".encode("utf-8", "surrogatepass")
    assert set(results(judged(run_with(**{METRICS: lambda data: data + line})))) == GATES


@EXAMPLES
@given(damages())
def test_damaged_metrics_give_a_verdict(damage: Edit) -> None:
    assert set(results(judged(run_with(**{METRICS: damage})))) == GATES


@EXAMPLES
@given(documents)
def test_an_event_of_any_json_gives_a_verdict(document: object) -> None:
    builder = run_with()
    event = b"data: " + json.dumps(document).encode() + b"\n\n"
    builder.leg("B1").rows[0].edit_body = lambda body: body.replace(b"data: [DONE]", event + b"data: [DONE]")
    assert set(results(judged(builder))) == GATES


@EXAMPLES
@given(st.sampled_from(KEYS), documents)
def test_an_event_with_any_value_under_a_known_key_gives_a_verdict(key: str, document: object) -> None:
    builder = run_with()
    value = json.dumps(document).encode()
    builder.leg("B1").rows[0].edit_body = lambda body: body.replace(
        f'"{key}":'.encode(), f'"{key}":'.encode() + value + b',"x":', 1
    )
    assert set(results(judged(builder))) == GATES


@EXAMPLES
@given(damages())
def test_a_damaged_response_gives_a_verdict(damage: Edit) -> None:
    builder = run_with()
    builder.leg("B1").rows[0].edit_response = damage
    assert set(results(judged(builder))) == GATES


@EXAMPLES
@given(documents.map(json.dumps) | text | st.just("[" * 100_000) | st.just('{"version":"\\ud800"}'))
def test_a_version_of_any_text_gives_a_verdict(body: str) -> None:
    verdict = judged(run_with(**{PROCESS: version_edit(body.encode("utf-8", "replace").decode())}))
    assert results(verdict)["identity"] is GateResult.FAILED


@pytest.mark.parametrize("body", VERSIONS)
def test_a_version_that_is_none_fails_identity_with_what_was_seen(body: str) -> None:
    verdict = judged(run_with(**{PROCESS: version_edit(body)}))
    (identity,) = (gate for gate in verdict.gates if gate.id == "identity")
    missed = [(miss.what, miss.observed) for miss in identity.misses]
    assert missed == [("engine version", "None")]
    assert verdict.engine == "reference reference-1, unknown"


@pytest.mark.parametrize("body", VERSIONS)
def test_the_second_analyzer_judges_such_a_version_alike(body: str, tmp_path: Path) -> None:
    builder = run_with(**{PROCESS: version_edit(body)})
    builder.seal(tmp_path)
    told = judge_run(builder.root)
    assert told["engine"] == "reference reference-1, unknown"
    assert {gate["id"]: gate["result"] for gate in told["gates"]}["identity"] == "failed"


@pytest.mark.parametrize("position", ["x", "", "-1", "1.0", "\u0660", "00", "9" * 5000])
def test_positions_that_are_no_numbers_fail_accounting_with_what_was_seen(position: str) -> None:
    edit: Edit = lambda data: data.replace(b'position="0"', f'position="{position}"'.encode())  # noqa: E731 (typed)
    verdict = judged(run_with(**{METRICS: edit}))
    (accounting,) = (gate for gate in verdict.gates if gate.id == "accounting")
    assert accounting.result is GateResult.FAILED
    assert "positions of accepted tokens" in {miss.what for miss in accounting.misses}

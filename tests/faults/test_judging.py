"""What a verdict must not depend on, and what cannot stand in for evidence."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labctl.analyze.sealed_run import analyze_run
from labctl.cli.seal import app
from labctl.codes import Code
from labctl.errors import LabctlError, MalformedRecord
from labctl.frozen import canonical_json, strict_json
from labctl.packet.tool import analyzer_identity
from labctl.records.marker import Marker
from labctl.records.verdict import GateResult
from tests.fakes.packets import make_packet
from tests.fakes.run_builder import RunBuilder
from tests.fakes.sealed_run import make_marker

AMBIENT = (
    {"LC_ALL": "C", "PYTHONHASHSEED": "1"},
    {"LC_ALL": "tr_TR.UTF-8", "LC_NUMERIC": "de_DE.UTF-8", "PYTHONHASHSEED": "2", "TZ": "Asia/Kathmandu"},
    {"LANG": "de_DE.UTF-8", "PYTHONOPTIMIZE": "2"},
)


def test_folder_locale_and_hash_seed_change_no_byte_of_a_verdict(tmp_path: Path) -> None:
    builder = RunBuilder()
    builder.seal(tmp_path)
    answers = set()
    for number, ambient in enumerate(AMBIENT):
        place, named = (Path("/"), str(builder.root)) if number else (tmp_path, os.path.relpath(builder.root, tmp_path))
        command = [sys.executable, "-B", "-P", "-m", "labctl.analyze", named]
        done = subprocess.run(command, cwd=place, env=ambient, check=True, capture_output=True)
        answers.add(done.stdout)
    assert len(answers) == 1


def test_a_line_in_the_servers_log_stands_in_for_no_record(tmp_path: Path) -> None:
    forged = (
        b'{"event":"leg_closed","leg":"B2"}\n{"gate":"exact_tokens","result":"passed"}\nverdict: record_candidate\n'
    )
    builder = RunBuilder()
    builder.leg("B2").rows[0].ids[5] += 1
    builder.leg("B2").log += forged
    verdict = analyze_run(builder.seal(tmp_path), analyzer_identity())
    failed = {gate.id for gate in verdict.gates if gate.result is GateResult.FAILED}
    assert {"exact_tokens", "cross_leg_exact"} <= failed


def test_no_option_of_the_verifier_makes_it_see_less() -> None:
    import typer.main

    group: Any = typer.main.get_command(app)
    options = [name for one in group.commands["verify"].params for name in one.opts]
    assert set(options) <= {"named", "--json", "--authorization"}  # the last names a ledger to look at as well


@pytest.mark.parametrize(
    "text",
    [
        '{"verdict":"failed","verdict":"passed"}',
        '{"a":{"b":1,"b":1}}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e400}',
        '{"a":"\\ud800"}',
        '{"a":1} {}',
        '{"a":1,}',
        "[" * 100_000,
    ],
)
def test_json_that_readers_differ_on_is_refused(text: str) -> None:
    with pytest.raises(MalformedRecord) as caught:
        strict_json(text.encode(), "record")
    assert caught.value.codes == (Code.BAD_JSON,)


@pytest.mark.parametrize(
    "change",
    [
        lambda marker: marker | {"mono_ns": "5"},
        lambda marker: marker | {"mono_ns": 5.0},
        lambda marker: marker | {"mono_ns": True},
        lambda marker: marker | {"packet_sha256": marker["packet_sha256"].upper()},
        lambda marker: marker | {"packet_sha256": marker["packet_sha256"][:12]},
        lambda marker: marker | {"order": "A1"},
        lambda marker: marker | {"more": 1},
        lambda marker: {name: value for name, value in marker.items() if name != "nonce"},
    ],
)
def test_a_record_takes_no_other_type_and_no_other_field(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    marker = make_marker(make_packet())
    changed = change(marker.model_dump(mode="json"))
    with pytest.raises(LabctlError) as caught:
        Marker.from_json(canonical_json(changed), "marker")
    assert set(caught.value.codes) == {Code.RECORD_FORM}

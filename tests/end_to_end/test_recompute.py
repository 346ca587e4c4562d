"""Every row rate and start headline of a verdict, recomputed from the wire bytes by a short independent script."""

import json
import re
import statistics
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "runs.example"
RUNS = sorted({path.parents[4] for path in EXAMPLES.glob("*/data/legs/*/wire/01.bin")})


def token_stamps(reads: Path) -> list[int]:
    """The arrival of each token: the kernel's stamp of the read that ended the token's event."""
    facts = [json.loads(line) for line in reads.read_bytes().splitlines()]
    ends, stamps, total = [], [], 0
    for fact in facts:
        if fact["event"] == "read" and fact["length"]:
            total += fact["length"]
            ends.append(total)
            stamps.append(fact["kernel_ns"])
    raw = reads.with_name(reads.name.replace(".reads.jsonl", ".bin")).read_bytes()
    body, place = b"", raw.index(b"\r\n\r\n") + 4
    origin: list[int] = []  # where each byte of the body stood in the received bytes
    while size := int(raw[place : raw.index(b"\r\n", place)], 16):
        place = raw.index(b"\r\n", place) + 2
        body += raw[place : place + size]
        origin += range(place, place + size)
        place += size + 2
    found = []
    for event in re.finditer(rb"data: (\{.*?\})\r?\n\r?\n", body):
        last_byte = origin[event.end() - 1]
        stamp = next(stamp for end, stamp in zip(ends, stamps, strict=True) if last_byte < end)
        for choice in json.loads(event[1])["choices"]:
            found += [stamp] * len(choice.get("token_ids") or [])
    return found


def request_sent_ns(reads: Path) -> int:
    """When the last part of the request was handed to the kernel."""
    facts = [json.loads(line) for line in reads.read_bytes().splitlines()]
    return [int(fact["realtime_ns"]) for fact in facts if fact["event"] == "sent"][-1]


def verdict_of(run: Path) -> dict[str, list[dict[str, object]]]:
    answer = subprocess.run([sys.executable, "-m", "labctl.analyze", str(run)], capture_output=True, check=True)
    verdict: dict[str, list[dict[str, object]]] = json.loads(answer.stdout)
    return verdict


def figures(entry: dict[str, object]) -> dict[str, Fraction]:
    listed = entry["figures"]
    assert isinstance(listed, list)
    return {one["name"]: Fraction(one["value"]) for one in listed}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_rates_and_headlines_follow_from_the_wire_bytes(run: Path) -> None:
    verdict = verdict_of(run)
    by_leg: dict[str, list[Fraction]] = {}
    compared = 0
    for row in verdict["rows"]:
        (folder,) = (run / "data" / "legs").glob(f"*-{row['leg']}")
        wire = folder / "wire" / f"{row['row']:02d}.reads.jsonl"
        stamps = token_stamps(wire)
        said = figures(row)
        assert len(stamps) == row["token_count"]
        if len(stamps) >= 100 and stamps[99] > stamps[0]:
            rate = Fraction(99 * 10**9, stamps[99] - stamps[0])
            assert said["decode_rate_conventional_1_100"] == rate
            by_leg.setdefault(str(row["leg"]), []).append(rate)
        if stamps[-1] > stamps[0]:
            assert said["decode_rate_full"] == Fraction((len(stamps) - 1) * 10**9, stamps[-1] - stamps[0])
        # An engine may send every token of a row at once; the whole request has a speed all the same.
        assert said["wall_rate"] == Fraction(len(stamps) * 10**9, stamps[-1] - request_sent_ns(wire))
        compared += 1
    assert compared == len(verdict["rows"]) > 0
    for start in verdict["starts"]:
        rates = by_leg.get(str(start["leg"]), [])
        if len(rates) == start["rows"] and "decode_rate_conventional_1_100" in figures(start):
            assert figures(start)["decode_rate_conventional_1_100"] == statistics.median(rates)


def test_there_are_examples_to_recompute() -> None:
    assert RUNS

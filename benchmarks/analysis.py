"""What it costs to judge a sealed run of four starts: seconds after imports, and how they grow with the tokens.

    python -m benchmarks.analysis [--prompts 13] [--tokens 128 512 2048] [--repeats 3] [--json]

The run is synthetic, sealed by the real `seal_run`; a judgement verifies the seal, parses every wire byte again and
judges every gate. The best of the repeats counts. Target: 13 x 512 tokens in under 3 s, growing linearly in tokens.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from labctl.analyze.sealed_run import analyze_run
from labctl.packet.tool import analyzer_identity
from labctl.records.verdict import VerdictKind
from labctl.seal.verify import open_sealed_run
from tests.fakes.run_builder import RunBuilder

TARGET_S = 3.0


def judge_seconds(root: Path, repeats: int) -> float:
    """The best time of some judgements of one run."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        verdict = analyze_run(open_sealed_run(root), analyzer_identity())
        best = min(best, time.perf_counter() - started)
        assert verdict.verdict is VerdictKind.EXPLORATORY_PASS, verdict.because
    return best


def build_run(folder: Path, prompts: int, tokens: int) -> Path:
    """A sealed run of four starts in which every event holds one token, the most events there can be."""
    builder = RunBuilder(prompts=prompts, tokens=tokens)
    for leg in builder.legs:
        for number, row in enumerate(leg.rows):
            row.tokens_per_event = 1
            row.gap_ns = (1_000_000 if leg.name[0] == "A" else 700_000) + number
        if leg.name[0] == "B":
            rounds = sum(len(row.ids) - 1 for row in leg.rows)
            accepted = len(leg.rows)
            leg.after.update(
                drafts=rounds,
                draft_tokens=4 * rounds,
                accepted_tokens=accepted,
                accepted_per_position=[accepted, 0, 0, 0],
            )
    return builder.seal(folder).root


def main() -> None:
    """Build, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=13)
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    seconds: dict[int, float] = {}
    for tokens in asked.tokens:
        with tempfile.TemporaryDirectory() as folder:
            seconds[tokens] = judge_seconds(build_run(Path(folder), asked.prompts, tokens), asked.repeats)
    if asked.json:
        print(json.dumps({"prompts": asked.prompts, "starts": 4, "seconds": seconds}))
        return
    print(f"4 starts x {asked.prompts} prompts, target at 512 tokens: under {TARGET_S} s")
    before: tuple[int, float] | None = None
    for tokens, took_s in seconds.items():
        growth = "" if before is None else f", x {took_s / before[1]:.2f} for x {tokens / before[0]:.2f} tokens"
        print(f"{tokens:6d} tokens a row: {took_s:7.3f} s{growth}")
        before = (tokens, took_s)


if __name__ == "__main__":
    main()

"""The folder of one start as a lab that measures by hand leaves it, small and with content of its own.

```
start = StartFolder()                # three rows, two ranks, a draft of two tokens
start.files["status.txt"] = b"…"     # spoil one file
root = start.write(tmp_path)         # with the list of digests beside it
```
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from labctl.digest import sha256_hex

NAMES = {
    "drafts": "vllm:spec_decode_num_drafts_total",
    "draft_tokens": "vllm:spec_decode_num_draft_tokens_total",
    "accepted_tokens": "vllm:spec_decode_num_accepted_tokens_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
    "generation_tokens": "vllm:generation_tokens_total",
    "preemptions": "vllm:num_preemptions_total",
    "prefix_cache_hits": "vllm:prefix_cache_hits_total",
    "decode_s": "vllm:request_decode_time_seconds_sum",
}
POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
ENDED = "vllm:request_success_total"
PROMPTS = ("sort", "join", "long")
PROMPT_TOKENS = (9, 11, 40)
COMPLETIONS = (120, 120, 60)
TOKENS = [*range(120)]
AFTER = {
    "drafts": 150,
    "draft_tokens": 300,
    "accepted_tokens": 150,
    "prompt_tokens": 60,
    "generation_tokens": 300,
    "preemptions": 0,
    "prefix_cache_hits": 0,
    "decode_s": 3,
}
LOG = (
    b"(APIServer pid=7) INFO version 0.32.0\n"
    b"(APIServer pid=7) WARNING 01-01 Unknown vLLM environment variable detected: LAB_SWITCH\n"
    b"(Worker_TP0_EP0 pid=8) Loading:  50%\r\n"
    b"(Worker_TP0_EP0 pid=8) Loading: 100%\rdone\n"
    b"(EngineCore pid=9) INFO 01-01 GPU KV cache size: 12,288 tokens\n"
    b"(Worker_TP0_EP0 pid=8) INFO Captured audited graph: Capture(graphs=4, eager_breaks=3)\n"
    b"(Worker_TP1_EP1 pid=10) INFO Captured audited graph: Capture(graphs=4, eager_breaks=3)\n"
    b"(Worker_TP0_EP0 pid=8) WARNING 01-01 JIT compilation during inference: add_kernel. A spike.\n"
    b"(Worker_TP0_EP0 pid=8) INFO Replayed audited graph: Capture(graphs=4, eager_breaks=3)\n"
    b"(Worker_TP1_EP1 pid=10) INFO Replayed audited graph: Capture(graphs=4, eager_breaks=3)\n"
)
IDENTITY = b"label=B1\nnum_speculative_tokens=2\nexpected_num_graphs=4\nexpected_num_eager_breaks=3\nretries=0\n"
IDLE = json.dumps({"status": "passed"}).encode()


@dataclass
class StartFolder:
    """One folder that can be spoiled."""

    counters: dict[str, int] = field(default_factory=lambda: dict(AFTER))
    positions: tuple[int, ...] = (100, 50)
    is_exact: tuple[bool, ...] = (True, True, True)
    cached: tuple[int, ...] = (0, 0, 0)
    files: dict[str, bytes | None] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """Write the folder and its list of digests below another; a file that is None is left out."""
        found = {name: data for name, data in (self._sound() | self.files).items() if data is not None}
        root = folder / "a-start"
        for name, data in found.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        lines = "".join(f"{sha256_hex(data)}  a-start/{name}\n" for name, data in sorted(found.items()))
        (folder / "a-start.sha256").write_text(lines, "ascii")
        return root

    def _sound(self) -> dict[str, bytes | None]:
        zero = dict.fromkeys(self.counters, 0)
        return {
            "identity.txt": IDENTITY,
            "status.txt": b"status=PASS\n",
            "cleanup-status.txt": b"stop_status=0\nidle_status=0\n",
            "service-environment.txt": b"HOME=/home/lab\nLAB_SWITCH=1\n",
            "pre-idle.json": IDLE,
            "post-idle.json": IDLE,
            "idle-interval/prestart-00.json": IDLE,
            "idle-interval/summary.txt": b"prestart elapsed_seconds=1 snapshots=1\n",
            "server.log": LOG,
            "metrics-before-suite.prom": prometheus(zero, (0,) * len(self.positions), 0),
            "metrics-after-suite.prom": prometheus(self.counters, self.positions, len(PROMPTS)),
            "exactness-vs-q1.json": json.dumps(self._comparison()).encode(),
            "bench.json": json.dumps(bench()).encode(),
        }

    def _comparison(self) -> dict[str, object]:
        rows = [
            {
                "prompt_id": prompt, "prompt_tokens": prompt_tokens, "completion_tokens": tokens, "exact": exact,
                "token_ids_equal": exact, "cached_tokens": cached, "first_diff": None if exact else {"index": 3},
            }
            for prompt, prompt_tokens, tokens, exact, cached in zip(
                PROMPTS, PROMPT_TOKENS, COMPLETIONS, self.is_exact, self.cached, strict=True
            )
        ]  # fmt: skip
        told = {"exact_count": sum(self.is_exact), "rows": rows, "long_then_next": {"passed": True}}
        return {"candidates": [{"comparison": told | {"rollover": {"count": 1, "exact_count": 1}}}]}


def prometheus(counters: dict[str, int], positions: tuple[int, ...], requests: int) -> bytes:
    """Counters as a server prints them."""
    samples = [(NAMES[name], "", value) for name, value in counters.items()]
    samples += [(POSITION, f',position="{place}"', count) for place, count in enumerate(positions)]
    samples += [(ENDED, f',finished_reason="{why}"', n) for why, n in (("length", requests), ("abort", 0))]
    samples += [("vllm:num_requests_running", "", 0), ("vllm:num_requests_waiting", "", 0)]
    lines = [f'{name}{{engine="0",model_name="m"{labels}}} {float(value)}' for name, labels, value in samples]
    return "\n".join([*lines, "process_start_time_seconds 1.8e+09", ""]).encode()


def teachers() -> tuple[dict[str, object], dict[str, object]]:
    """The teacher of the same rows: tokens of the first, and texts of all."""
    tokens = [{"prompt_id": PROMPTS[0], "token_ids": TOKENS}]
    texts = [{"prompt_id": prompt, "sha256": sha256_hex(prompt.encode())} for prompt in PROMPTS]
    return (
        {"schema": "laguna-q1-token-oracle-v1", "source_sha256": "5" * 64, "rows": tokens},
        {"schema": "laguna-q1-text-sha256-oracle-v1", "source_sha256": "5" * 64, "rows": texts},
    )


def bench() -> dict[str, object]:
    """The client's file: two rows of 120 tokens, ten a chunk, the first of which stands still once."""
    steady = [0.5 + 0.01 * place for place in range(12)]
    halting = [steady[0], *(one + 2.0 for one in steady[1:])]
    rows = [_bench_row(prompt, chunks) for prompt, chunks in zip(PROMPTS[:2], (halting, steady), strict=True)]
    speeds = sorted(100 / (chunks[9] - chunks[0]) for chunks in (halting, steady))
    rows[0]["token_ids"] = TOKENS
    told = [sha256_hex(prompt.encode()) for prompt in PROMPTS]
    return {
        "output_sha256s": told,
        "rows": rows,
        "summary": {"tok_s_1_100_after_ttft": {"count": 2, "median": sum(speeds) / 2}},
    }


def _bench_row(prompt: str, chunks: list[float]) -> dict[str, object]:
    tokens = [chunks[place // 10] for place in range(120)]
    return {
        "prompt_id": prompt,
        "completion_tokens": 120,
        "chunk_offsets_s": chunks,
        "token_id_offsets_s": tokens,
        "tok_s_1_100_after_ttft": 100 / (tokens[99] - tokens[0]),
    }

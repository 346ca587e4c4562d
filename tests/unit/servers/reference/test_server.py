"""The server as a real process: its answers, its counters, its refusals and its end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from labctl.servers.reference.tokens import encode_text

PROMPT = "The cat and the dog and the cat and the dog and"
SPECULATION = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":2}'
BODY: dict[str, object] = {"model": "m", "temperature": 0, "max_tokens": 40, "seed": 1, "return_token_ids": True}
STREAMED = BODY | {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True)
class Served:
    """A server process that answers."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def events(self, path: str, body: object) -> list[dict[str, Any]]:
        status, data = self.ask("POST", path, body)
        assert status == 200
        lines = data.decode().split("\n\n")
        assert lines[-2:] == ["data: [DONE]", ""]
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]

    def counters(self) -> dict[str, float]:
        """Samples by name, summed over their labels but the finish reason and the position."""
        totals: dict[str, float] = {}
        for family in text_string_to_metric_families(self.ask("GET", "/metrics")[1].decode()):
            for sample in family.samples:
                part = sample.labels.get("finished_reason") or sample.labels.get("position")
                name = f"{sample.name}/{part}" if part else sample.name
                totals[name] = totals.get(name, 0.0) + sample.value
        return totals


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "server.log"
    command = [sys.executable, "-I", "-P", "-m", "labctl.servers.reference", "--port", str(port)]
    with log.open("wb") as stream:
        process = subprocess.Popen([*command, "--served-model-name", "m", *options], env={}, stderr=stream)
    served = Served(process, port, log)
    try:
        wait_until_healthy(served)
        yield served
    finally:
        process.kill()
        process.wait()


def wait_until_healthy(served: Served) -> None:
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        assert served.process.poll() is None, served.log.read_text()
        try:
            status, _ = served.ask("GET", "/health")
        except ConnectionError:
            time.sleep(0.02)
        else:
            assert status == 200
            return
    pytest.fail("the server did not get ready")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("plain")) as served:
        yield served


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(choice["text"] for event in events for choice in event["choices"])


def ids_of(events: list[dict[str, Any]]) -> list[int]:
    return [token for event in events for choice in event["choices"] for token in choice.get("token_ids") or []]


def test_what_generates_nothing_is_answered(plain: Served) -> None:
    before = plain.counters()
    assert plain.ask("GET", "/version") == (200, b'{"version":"reference-1"}')
    assert json.loads(plain.ask("GET", "/v1/models")[1])["data"][0]["id"] == "m"
    assert plain.ask("GET", "/nothing")[0] == 404
    assert plain.counters() == before


def test_a_stream_holds_every_token_and_what_it_took(plain: Served) -> None:
    before = plain.counters()
    events = plain.events("/v1/completions", STREAMED | {"prompt": PROMPT})
    *steps, last = events
    prompt_ids = encode_text(PROMPT)
    assert len(ids_of(events)) == 40
    assert steps[0]["choices"][0]["prompt_token_ids"] == prompt_ids
    assert all(event["choices"][0]["prompt_token_ids"] is None for event in steps[1:])
    assert [event["choices"][0]["finish_reason"] for event in steps] == [None] * 39 + ["length"]
    assert {event["object"] for event in events} == {"text_completion"}
    assert len({(event["id"], event["created"], event["model"]) for event in events}) == 1
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": len(prompt_ids),
        "total_tokens": len(prompt_ids) + 40,
        "completion_tokens": 40,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    after = plain.counters()
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert grown.pop("vllm:request_decode_time_seconds_sum") > 0
    assert {name: count for name, count in grown.items() if "_bucket" not in name} == {
        "vllm:prompt_tokens_total": len(prompt_ids),
        "vllm:generation_tokens_total": 40,
        "vllm:request_success_total/length": 1,
        "vllm:request_decode_time_seconds_count": 1,
    }


def test_a_whole_answer_equals_its_stream(plain: Served) -> None:
    events = plain.events("/v1/completions", STREAMED | {"prompt": PROMPT})
    status, data = plain.ask("POST", "/v1/completions", BODY | {"prompt": PROMPT})
    body = json.loads(data)
    assert status == 200
    assert body["choices"][0]["text"] == text_of(events)
    assert body["choices"][0]["token_ids"] == ids_of(events)
    assert body["usage"] == events[-1]["usage"]


def test_a_chat_stream_opens_with_its_role_and_its_prompt(plain: Served) -> None:
    messages = [{"role": "user", "content": "Tell me of the river."}]
    events = plain.events("/v1/chat/completions", STREAMED | {"messages": messages})
    opening, *steps, last = events
    assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert opening["prompt_token_ids"] == encode_text("user: Tell me of the river.\nassistant:")
    assert len(ids_of(steps)) == 40
    assert all(set(event["choices"][0]["delta"]) == {"content"} for event in steps)
    assert steps[-1]["choices"][0]["finish_reason"] == "length"
    assert last["usage"]["prompt_tokens"] == len(opening["prompt_token_ids"])
    assert {event["object"] for event in events} == {"chat.completion.chunk"}


def test_token_ids_are_sent_only_on_request(plain: Served) -> None:
    events = plain.events("/v1/completions", STREAMED | {"prompt": PROMPT, "return_token_ids": False})
    assert ids_of(events) == []
    assert events[0]["choices"][0]["prompt_token_ids"] is None


def test_drafts_change_the_events_but_no_token(plain: Served, tmp_path: Path) -> None:
    expected = plain.events("/v1/completions", STREAMED | {"prompt": PROMPT})
    with serving(tmp_path, "--speculative-config", SPECULATION) as drafting:
        events = drafting.events("/v1/completions", STREAMED | {"prompt": PROMPT})
        found = drafting.counters()
    assert ids_of(events) == ids_of(expected)
    assert text_of(events) == text_of(expected)
    assert len(events) < len(expected)
    accepted = found["vllm:spec_decode_num_accepted_tokens_total"]
    assert accepted > 0
    assert len(events) - 1 + accepted == found["vllm:generation_tokens_total"] == 40
    assert found["vllm:spec_decode_num_draft_tokens_total"] == 4 * found["vllm:spec_decode_num_drafts_total"]
    by_place = [found[f"vllm:spec_decode_num_accepted_tokens_per_pos_total/{place}"] for place in range(4)]
    assert sum(by_place) == accepted
    assert by_place == sorted(by_place, reverse=True)


def test_a_prefix_cache_is_noticed_in_usage_and_in_the_counters(tmp_path: Path) -> None:
    prompt = PROMPT * 3
    with serving(tmp_path, "--enable-prefix-caching") as caching:
        rows = [caching.events("/v1/completions", STREAMED | {"prompt": prompt}) for _ in range(2)]
        found = caching.counters()
    cached = [row[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] for row in rows]
    assert cached[0] == 0
    assert cached[1] > 0
    assert found["vllm:prefix_cache_hits_total"] == cached[1]
    assert found["vllm:prefix_cache_queries_total"] == 2 * len(encode_text(prompt))
    assert ids_of(rows[0]) == ids_of(rows[1])


def test_without_a_prefix_cache_an_equal_prompt_is_computed_again(plain: Served) -> None:
    rows = [plain.events("/v1/completions", STREAMED | {"prompt": PROMPT * 3}) for _ in range(2)]
    assert [row[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] for row in rows] == [0, 0]
    assert plain.counters()["vllm:prefix_cache_hits_total"] == 0


@pytest.mark.parametrize(
    ("path", "change", "status"),
    [
        ("/v1/completions", {"temperature": 1}, 400),
        ("/v1/completions", {"max_tokens": 9000}, 400),
        ("/v1/completions", {"model": "other"}, 404),
        ("/v1/chat/completions", {}, 400),
        ("/v1/embeddings", {}, 404),
    ],
)
def test_a_refusal_is_a_json_error_and_counts_nothing(
    plain: Served, path: str, change: dict[str, object], status: int
) -> None:
    before = plain.counters()
    answered, data = plain.ask("POST", path, STREAMED | {"prompt": PROMPT} | change)
    error = json.loads(data)["error"]
    assert answered == status == error["code"]
    assert error["message"]
    assert plain.counters() == before


def test_events_are_sent_when_they_exist(plain: Served) -> None:
    body = json.dumps(STREAMED | {"prompt": PROMPT, "max_tokens": 400, "ignore_eos": True}).encode()
    with socket.create_connection(("127.0.0.1", plain.port), timeout=20) as connection:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        reads = list(iter(lambda: connection.recv(65536), b""))
    assert reads[0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"".join(reads).endswith(b"0\r\n\r\n")
    assert len(reads) > 50


def test_a_client_that_hangs_up_is_counted_as_aborted(plain: Served) -> None:
    before = plain.counters()["vllm:request_success_total/abort"]
    body = json.dumps(STREAMED | {"prompt": PROMPT, "max_tokens": 3000, "ignore_eos": True}).encode()
    with socket.create_connection(("127.0.0.1", plain.port), timeout=20) as connection:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert connection.recv(4096)
    deadline_s = time.monotonic() + 20
    while plain.counters()["vllm:request_success_total/abort"] == before and time.monotonic() < deadline_s:
        time.sleep(0.05)
    found = plain.counters()
    assert found["vllm:request_success_total/abort"] == before + 1
    assert found["vllm:num_requests_running"] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as served:
        os.kill(served.process.pid, number)
        assert served.process.wait(timeout=10) == 0
        log = served.log.read_text()
    assert "speculation: off" in log
    assert "Traceback" not in log


def test_a_taken_port_is_one_line_and_status_1(plain: Served) -> None:
    command = [sys.executable, "-I", "-P", "-m", "labctl.servers.reference", "--port", str(plain.port)]
    ended = subprocess.run(command, env={}, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 1
    errors = [line for line in ended.stderr.splitlines() if line.startswith("ERROR")]
    assert len(errors) == 1
    assert "in use" in errors[0]
    assert "Traceback" not in ended.stderr

"""How far a client's receive stamp lies after the server's send: labctl's row client beside plain httpx and aiohttp.

The server is a process of its own on another core; it reads CLOCK_REALTIME right before each send and tells its
readings when it is asked. It sends one event a write and ends the body by closing, so that what a client hands out at
once is what it read at once; only reads that hold exactly one event are compared. The clients take turns within one
run, so compare figures of one run only. The client's core is idle, or shared with one of two processes: `bursts` works
for 3 ms and sleeps for 0.5 ms, as an engine that waits for its peers does; `spin` never sleeps, which a scheduler that
favours sleepers makes nearly harmless to a client that mostly waits.

    python benchmarks/stamps.py [--events N] [--json]
"""

import argparse
import asyncio
import gc
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp
import httpx

from labctl.clock import SystemClock
from labctl.measure.client import RowFiles, RowRequest, measure_row
from labctl.measure.wire import RowLimits, kernel_stamps_held
from labctl.records.wire import read_wire_row

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
EVENT = b'data: {"event":%06d}\n\n'
EVENT_BYTES = len(EVENT % 0)
SPIN_S = 0.0003
EVENTS_BY_RATE = {100: 300, 1000: 2000}
TURNS = 2
P99_TARGETS = {"idle": 0.3, "bursts": 0.1, "spin": 0.1}
SPIN = "while True: pass"
BURSTS = """
import time
while True:
    end = time.monotonic() + 0.003
    while time.monotonic() < end:
        pass
    time.sleep(0.0005)
"""
NEIGHBOURS = {"bursts": BURSTS, "spin": SPIN}

Arrival = tuple[int, bytes]
Turn = tuple[list[Arrival], list[int]]
Client = Callable[[int, str], list[Arrival]]


@dataclass(frozen=True)
class Cell:
    """One client at one rate beside one kind of neighbour."""

    core: str
    events_per_s: int
    client: str
    single_events: int
    coalesced_fraction: float
    p50_us: float
    p99_us: float


def labctl_row(port: int, path: str) -> list[Arrival]:
    with tempfile.TemporaryDirectory() as folder:
        files = RowFiles(Path(folder, "01.bin"), Path(folder, "01.reads.jsonl"))
        request = RowRequest(row=1, prompt_id="p", host="127.0.0.1", port=port, path=path, body=b"{}")
        measure_row(request, files, RowLimits(), SystemClock())
        row = read_wire_row(files.reads.read_bytes(), files.wire.read_bytes(), "row")
    arrivals, position = [], 0
    for read in row.reads:
        data = row.received[position : position + read.length].removeprefix(HEAD)
        position += read.length
        if data:
            assert read.kernel_ns is not None, "this kernel gives no receive stamps"
            arrivals.append((read.kernel_ns, data))
    return arrivals


def plain_httpx(port: int, path: str) -> list[Arrival]:
    with (
        httpx.Client(trust_env=False, timeout=60) as client,
        client.stream("POST", f"http://127.0.0.1:{port}{path}", content=b"{}") as response,
    ):
        return [(time.time_ns(), data) for data in response.iter_raw()]


def plain_aiohttp(port: int, path: str) -> list[Arrival]:
    async def stream() -> list[Arrival]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{port}{path}", data=b"{}") as response,
        ):
            return [(time.time_ns(), data) async for data in response.content.iter_any()]

    return asyncio.run(stream())


CLIENTS: dict[str, Client] = {"labctl": labctl_row, "httpx": plain_httpx, "aiohttp": plain_aiohttp}


def serve(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    gc.disable()
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    sent_ns: list[int] = []
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request = b""
            while not request.endswith(b"\r\n\r\n{}"):
                request += connection.recv(1 << 16)
            path = request.split(b" ", 2)[1].decode().strip("/").split("/")
            connection.sendall(HEAD)
            if path == ["sent"]:
                connection.sendall(json.dumps(sent_ns).encode())
            else:
                sent_ns = send_events(connection, int(path[1]), int(path[2]))


def send_events(connection: socket.socket, events_per_s: int, count: int) -> list[int]:
    """Sleep, then spin for the last moment, so that a cold core of the server is not measured as the client's error."""
    events = [EVENT % number for number in range(count)]
    sent_ns = []
    begin_s = time.monotonic() + 0.05
    for number, event in enumerate(events):
        due_s = begin_s + number / events_per_s
        time.sleep(max(0.0, due_s - SPIN_S - time.monotonic()))
        while time.monotonic() < due_s:
            pass
        now_ns = time.time_ns()
        connection.send(event)
        sent_ns.append(now_ns)
    return sent_ns


@contextmanager
def child(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def started_server(stack: ExitStack, cpu: int) -> int:
    process = stack.enter_context(child([__file__, "--serve", str(cpu)]))
    assert process.stdout is not None
    return int(process.stdout.readline())


def measure_cells(port: int, core: str, events_per_s: int, events: int) -> list[Cell]:
    turns: dict[str, list[Turn]] = {name: [] for name in CLIENTS}
    for _ in range(TURNS):
        for name, client in CLIENTS.items():
            arrivals = client(port, f"/events/{events_per_s}/{events // TURNS}")
            sent = httpx.post(f"http://127.0.0.1:{port}/sent", content=b"{}", trust_env=False).json()
            turns[name].append((arrivals, sent))
    return [cell_of(core, events_per_s, name, seen) for name, seen in turns.items()]


def cell_of(core: str, events_per_s: int, client: str, turns: list[Turn]) -> Cell:
    single_us: list[float] = []
    for arrivals, sent_ns in turns:
        assert b"".join(data for _, data in arrivals) == b"".join(EVENT % number for number in range(len(sent_ns)))
        position = 0
        for stamp_ns, data in arrivals:
            if len(data) == EVENT_BYTES:
                single_us.append((stamp_ns - sent_ns[position // EVENT_BYTES]) / 1e3)
            position += len(data)
    total = sum(len(sent_ns) for _, sent_ns in turns)
    single_us.sort()
    p50_us, p99_us = (single_us[math.ceil(q * len(single_us)) - 1] for q in (0.50, 0.99))
    return Cell(core, events_per_s, client, len(single_us), 1 - len(single_us) / total, p50_us, p99_us)


def measure(events: int | None) -> list[Cell]:
    cpus = sorted(os.sched_getaffinity(0))
    cells: list[Cell] = []
    with ExitStack() as stack:
        port = started_server(stack, cpus[0])
        os.sched_setaffinity(0, {cpus[-1]})
        stack.enter_context(kernel_stamps_held())
        for core in P99_TARGETS:
            with ExitStack() as neighbour:
                if core in NEIGHBOURS:
                    process = neighbour.enter_context(child(["-c", NEIGHBOURS[core]]))
                    os.sched_setaffinity(process.pid, {cpus[-1]})
                for events_per_s, usual in EVENTS_BY_RATE.items():
                    cells += measure_cells(port, core, events_per_s, events or usual)
    return cells


def p99_ratio(cells: list[Cell], cell: Cell) -> float:
    plain = next(c for c in cells if (c.core, c.events_per_s, c.client) == (cell.core, cell.events_per_s, "httpx"))
    return cell.p99_us / plain.p99_us


def show(cells: list[Cell]) -> None:
    print("core   events/s client    single coalesced    p50 us    p99 us p99/httpx")
    for cell in cells:
        ratio = p99_ratio(cells, cell)
        row = (
            f"{cell.core:6} {cell.events_per_s:8} {cell.client:8} {cell.single_events:7} {cell.coalesced_fraction:9.2%}"
        )
        verdict = ""
        if cell.client == "labctl":
            target = P99_TARGETS[cell.core]
            verdict = f"  target {target}: {'met' if ratio <= target else 'missed'}"
        print(f"{row} {cell.p50_us:9.1f} {cell.p99_us:9.1f} {ratio:9.3f}{verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--events", type=int, help="events a client in each cell (default: 300 at 100/s, 2000 at 1000/s)"
    )
    parser.add_argument("--json", action="store_true", help="machine output")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve is not None:
        serve(asked.serve)
    cells = measure(asked.events)
    if asked.json:
        print(json.dumps([{**asdict(cell), "p99_ratio_to_httpx": p99_ratio(cells, cell)} for cell in cells]))
    else:
        show(cells)


if __name__ == "__main__":
    main()

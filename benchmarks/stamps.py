"""How far a client's receive stamp lies after the server's send: labctl's row client beside plain httpx and aiohttp.

The server is a process of its own on another core. When it sent an event is said in two ways: `taken`, the kernel's
own transmit stamp, set where the loopback device takes the segment; and `called`, CLOCK_REALTIME read by the server
right before the call, which therefore holds the server's own system call as well. Both clocks are the same, and the
server tells both when it is asked. It sends one event a write and ends the body by closing, so that what a client
hands out at once is what it read at once; only reads that hold exactly one event are compared. The clients take turns
within one run, so compare figures of one run only. The client's core is idle, or shared with one of two processes:
`bursts` works for 3 ms and sleeps for 0.5 ms, as an engine that waits for its peers does; `spin` never sleeps, which
a scheduler that favours sleepers makes nearly harmless to a client that mostly waits.

    python benchmarks/stamps.py [--events N] [--json]
"""

import argparse
import asyncio
import gc
import json
import math
import os
import socket
import struct
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
# <asm-generic/socket.h>, <linux/net_tstamp.h>: stamp what is sent where the device takes it, numbered, without a copy.
SO_TIMESTAMPING = 37
TX_SOFTWARE, REPORT_SOFTWARE, NUMBERED, STAMP_ONLY = 1 << 1, 1 << 4, 1 << 7, 1 << 11
SCM_TIMESTAMPING = struct.Struct("@6l")
NS_PER_S = 1_000_000_000
REFERENCES = ("taken", "called")
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
Sent = tuple[int, int, int]
"""When the kernel took an event, when the server called, and when the call was back."""
Turn = tuple[list[Arrival], list[Sent]]
Client = Callable[[int, str], list[Arrival]]


@dataclass(frozen=True)
class Cell:
    """One client at one rate beside one kind of neighbour."""

    core: str
    events_per_s: int
    client: str
    single_events: int
    coalesced_fraction: float
    taken_p50_us: float
    taken_p99_us: float
    called_p50_us: float
    called_p99_us: float
    send_call_p99_us: float

    def p99_us(self, reference: str) -> float:
        return self.taken_p99_us if reference == "taken" else self.called_p99_us


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
    sent: list[Sent] = []
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
                connection.sendall(json.dumps(sent).encode())
            else:
                sent = send_events(connection, int(path[1]), int(path[2]))


def send_events(connection: socket.socket, events_per_s: int, count: int) -> list[Sent]:
    """Sleep, then spin for the last moment, so that a cold core of the server is not measured as the client's error."""
    events = [EVENT % number for number in range(count)]
    wanted = TX_SOFTWARE | REPORT_SOFTWARE | NUMBERED | STAMP_ONLY
    connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, wanted)
    sent: list[Sent] = []
    begin_s = time.monotonic() + 0.05
    for number, event in enumerate(events):
        due_s = begin_s + number / events_per_s
        time.sleep(max(0.0, due_s - SPIN_S - time.monotonic()))
        while time.monotonic() < due_s:
            pass
        called_ns = time.time_ns()
        connection.send(event)
        returned_ns = time.time_ns()
        sent.append((taken_ns(connection), called_ns, returned_ns))
    return sent


def taken_ns(connection: socket.socket) -> int:
    """The kernel's transmit stamp of the last segment; it lies in the error queue when the call is back."""
    ancillary = connection.recvmsg(1, 512, socket.MSG_ERRQUEUE)[1]
    stamps = [data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING)]
    seconds, nanoseconds, *_ = SCM_TIMESTAMPING.unpack(stamps[0])
    return int(seconds) * NS_PER_S + int(nanoseconds)


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
    seen = [pair for arrivals, sent in turns for pair in single_events(arrivals, sent)]
    total = sum(len(sent) for _, sent in turns)
    after_taken = [stamp_ns - taken for stamp_ns, (taken, _, _) in seen]
    after_called = [stamp_ns - called for stamp_ns, (_, called, _) in seen]
    calls = [returned - called for _, sent in turns for _, called, returned in sent]
    return Cell(
        core,
        events_per_s,
        client,
        len(seen),
        1 - len(seen) / total,
        quantile_us(after_taken, 0.50),
        quantile_us(after_taken, 0.99),
        quantile_us(after_called, 0.50),
        quantile_us(after_called, 0.99),
        quantile_us(calls, 0.99),
    )


def single_events(arrivals: list[Arrival], sent: list[Sent]) -> Iterator[tuple[int, Sent]]:
    """Stamp and sending of each event that came in a read of its own."""
    assert b"".join(data for _, data in arrivals) == b"".join(EVENT % number for number in range(len(sent)))
    position = 0
    for stamp_ns, data in arrivals:
        if len(data) == EVENT_BYTES:
            yield stamp_ns, sent[position // EVENT_BYTES]
        position += len(data)


def quantile_us(values_ns: list[int], q: float) -> float:
    return sorted(values_ns)[math.ceil(q * len(values_ns)) - 1] / 1e3


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


def p99_ratio(cells: list[Cell], cell: Cell, reference: str) -> float:
    plain = next(c for c in cells if (c.core, c.events_per_s, c.client) == (cell.core, cell.events_per_s, "httpx"))
    return cell.p99_us(reference) / plain.p99_us(reference)


def show(cells: list[Cell]) -> None:
    print(
        "microseconds after the kernel took the event, and after the server called to send it; ratios to httpx at p99"
    )
    print("core   events/s client    single coalesced | taken  p50    p99 ratio | called  p50    p99 ratio | send p99")
    for cell in cells:
        print(
            f"{cell.core:6} {cell.events_per_s:8} {cell.client:8} {cell.single_events:7} {cell.coalesced_fraction:9.2%}"
            f" | {cell.taken_p50_us:10.1f} {cell.taken_p99_us:6.1f} {p99_ratio(cells, cell, 'taken'):5.3f}"
            f" | {cell.called_p50_us:11.1f} {cell.called_p99_us:6.1f} {p99_ratio(cells, cell, 'called'):5.3f}"
            f" | {cell.send_call_p99_us:8.1f}{verdict(cells, cell)}"
        )


def verdict(cells: list[Cell], cell: Cell) -> str:
    if cell.client != "labctl":
        return ""
    target = P99_TARGETS[cell.core]
    said = (f"{name} {'met' if p99_ratio(cells, cell, name) <= target else 'missed'}" for name in REFERENCES)
    return f"  target {target}: {', '.join(said)}"


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
        print(
            json.dumps(
                [
                    {**asdict(cell), "p99_ratios": {name: p99_ratio(cells, cell, name) for name in REFERENCES}}
                    for cell in cells
                ]
            )
        )
    else:
        show(cells)


if __name__ == "__main__":
    main()

"""Running a leg: who listens on a port, and the proof that nobody does."""

import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from labctl.codes import Code
from labctl.errors import PreflightFailed, Problem
from labctl.host.process_facts import open_files
from labctl.host.processes import PROC, ProcessIdentity
from labctl.records.leg import Listener

TABLES = (PROC / "net/tcp", PROC / "net/tcp6")
LISTEN = "0A"
WORD_HEX = 8
SOCKET_LINK = re.compile(r"socket:\[([0-9]+)\]")


def listeners(port: int, processes: Iterable[ProcessIdentity]) -> tuple[Listener, ...]:
    """Every LISTEN socket on a port, with those of the given processes that hold it."""
    found = [entry for table in TABLES for entry in _listening(table, port)]
    if not found:
        return ()
    holders = _holders({inode for _, inode in found}, processes)
    return tuple(
        Listener(address=address, inode=inode, owner_pids=tuple(sorted(holders.get(inode, ()))))
        for address, inode in sorted(found)
    )


def prove_port_free(address: str, port: int) -> None:
    """Bind the port once, as a server would, and see that nobody listens on it at any address.

    SO_REUSEADDR lets connections of an earlier start that are still in TIME_WAIT pass; SO_REUSEPORT would let a
    listener of a stranger pass, so it is never set.

    Raises:
        PreflightFailed: the port is taken (PORT_TAKEN).
    """
    found = listeners(port, ())
    if found:
        raise PreflightFailed(_taken(address, port, f"a listener on {found[0].address} (inode {found[0].inode})"))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise PreflightFailed(_taken(address, port, os.strerror(error.errno or 0))) from error


def _taken(address: str, port: int, got: str) -> Problem:
    do = "end the process that has the port, or name another port in the host profile"
    return Problem(Code.PORT_TAKEN, f"{address}:{port}", "a free port", got, do)


def _listening(table: Path, port: int) -> list[tuple[str, int]]:
    try:
        lines = table.read_text("ascii").splitlines()[1:]
    except FileNotFoundError:  # a kernel without IPv6
        return []
    found = []
    for line in lines:
        columns = line.split()
        address, _, port_hex = columns[1].partition(":")
        if columns[3] == LISTEN and int(port_hex, 16) == port:
            found.append((_address(address), int(columns[9])))
    return found


def _address(text: str) -> str:
    # The kernel prints each 32-bit word of the address as a number of its own byte order.
    words = [bytes.fromhex(text[start : start + WORD_HEX])[::-1] for start in range(0, len(text), WORD_HEX)]
    return str(ipaddress.ip_address(b"".join(words)))


def _holders(inodes: set[int], processes: Iterable[ProcessIdentity]) -> dict[int, set[int]]:
    holders: dict[int, set[int]] = {}
    for process in processes:
        for inode in inodes & _socket_inodes(process):
            holders.setdefault(inode, set()).add(process.pid)
    return holders


def _socket_inodes(process: ProcessIdentity) -> set[int]:
    links = (SOCKET_LINK.fullmatch(name) for name in open_files(process))
    return {int(link[1]) for link in links if link}

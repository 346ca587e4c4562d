"""The verifying reader of frozen packets: nothing comes out whose digest the packet's own id does not cover."""

from collections.abc import Iterator

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import BrokenEvidence, MalformedRecord, ManifestMismatch, Problem
from labctl.packet.model import Packet
from labctl.rundir import PacketPaths

LIMIT_BYTES = 64 << 20


def open_packet(folder: PacketPaths) -> Packet:
    """Read a frozen packet and hold its folder's name and every file beside it against it.

    Raises:
        BrokenEvidence: the packet is absent, malformed, or a file is not the one that was frozen.
    """
    data = read_regular(folder.packet, limit_bytes=LIMIT_BYTES)
    packet = read_packet(data, str(folder.packet))
    problems = tuple(_mismatches(folder, packet))
    if problems:
        raise ManifestMismatch(problems)
    return packet


def read_packet(data: bytes, where: str) -> Packet:
    """A packet from its canonical bytes.

    Raises:
        MalformedRecord: the bytes are not the one canonical form of a packet.
    """
    packet = Packet.from_json(data, where)
    if packet.canonical() != data:
        do = "restore the file as labctl wrote it"
        raise MalformedRecord(Problem(Code.RECORD_FORM, where, "the canonical form", "another form", do))
    return packet


def read_vocabulary(folder: PacketPaths) -> EngineVocabulary:
    """The engine vocabulary of a packet that `open_packet` has verified.

    Raises:
        BrokenEvidence: the file is absent or malformed.
    """
    return EngineVocabulary.from_json(read_regular(folder.engine, limit_bytes=LIMIT_BYTES), str(folder.engine))


def _mismatches(folder: PacketPaths, packet: Packet) -> Iterator[Problem]:
    if folder.root.name != packet.id:
        yield _mismatch(str(folder.root), packet.id, folder.root.name)
    expected = {folder.prereg: packet.prereg_yaml_sha256}
    expected |= {} if packet.engine_sha256 is None else {folder.engine: packet.engine_sha256}
    expected |= {folder.inputs / pinned.role: pinned.sha256 for pinned in packet.files}
    for path, digest in expected.items():
        try:
            got = sha256_hex(read_regular(path, limit_bytes=LIMIT_BYTES))
        except BrokenEvidence as error:
            yield from error.problems
            continue
        if got != digest:
            yield _mismatch(str(path), digest, got)
    known = {pinned.role for pinned in packet.files}
    for extra in sorted(file.name for file in folder.inputs.iterdir()) if folder.inputs.is_dir() else ():
        if extra not in known:
            do = "remove it: the packet does not know it"
            yield Problem(Code.EXTRA_FILE, str(folder.inputs / extra), "only pinned files", "another file", do)


def _mismatch(where: str, expected: str, got: str) -> Problem:
    return Problem(
        Code.DIGEST_MISMATCH, where, expected, got, "restore the packet's folder from a copy, or freeze anew"
    )

"""Open the run directory: its folders, the packet's files, and what the machine is."""

from pathlib import Path

from labctl.durable import make_folder, make_folders, read_regular, write_once
from labctl.frozen import canonical_json
from labctl.host.identity import read_host_identity
from labctl.marker import ConsumedPacket
from labctl.packet.tool import STANDALONE_NAME, standalone_files
from labctl.records.marker import PreflightPassed
from labctl.rundir import PacketPaths, RunPaths

COPY_LIMIT_BYTES = 64 << 20


def open_run_directory(consumed: ConsumedPacket, preflight: PreflightPassed, runs: Path) -> RunPaths:
    """Create the run's folder, which the marker names, and write everything that is known before the first leg.

    Raises:
        Refused: the folder exists already.
        BrokenEvidence: a file could not be written.
    """
    make_folders(runs)
    paths = RunPaths(runs / consumed.marker.run_dir)
    for folder in (paths.root, paths.data, paths.packet, paths.host, paths.legs):
        make_folder(folder)
    _copy_packet(consumed.folder, paths)
    write_once(paths.packet / "marker.copy.json", consumed.marker_bytes)
    write_once(paths.host / "identity.json", read_host_identity().canonical())
    write_once(paths.host / "preflight.json", preflight.canonical())
    if any(analyzer.name == STANDALONE_NAME for analyzer in consumed.packet.analyzers):
        make_folder(paths.analyzers)  # for strangers; its digest is held against the packet when the run is judged
        for file in standalone_files():
            write_once(paths.analyzers / file.name, _bytes(file))
    allowed = {"allowed": list(consumed.packet.environment_allowed)}
    write_once(paths.host / "env.json", canonical_json(allowed))
    return paths


def _copy_packet(source: PacketPaths, paths: RunPaths) -> None:
    for name in (path for path in (source.prereg, source.packet, source.engine) if path.exists()):
        write_once(paths.packet / name.name, _bytes(name))
    for folder in (source.inputs, source.approvals):
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        if files:
            make_folder(paths.packet / folder.name)
        for file in files:
            write_once(paths.packet / folder.name / file.name, _bytes(file))


def _bytes(path: Path) -> bytes:
    return read_regular(path, limit_bytes=COPY_LIMIT_BYTES)

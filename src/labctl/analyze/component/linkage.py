"""Gate `linkage`: marker, order, pre-import seal, rows and record name each other, in the order in which they came."""

import re

from labctl.analyze.card_evidence import CardEvidence
from labctl.analyze.component.card_leg import CardLeg
from labctl.analyze.gates.findings import Findings
from labctl.digest import sha256_hex
from labctl.records.component import ComponentRecord, PreImport, WorkerCompleted

SHOWS_WARNINGS = "labctl.component.warning_log.WarningLog.show"
WARNING_LINE = re.compile(rb"^.*:[0-9]+: ([A-Za-z_]+): (.*)$")
TORCH = "torch"
TORCH_LIBRARY = "libtorch"


def judge_linkage(findings: Findings, evidence: CardEvidence[CardLeg], leg: CardLeg) -> None:
    """Judge the chain of one card's records."""
    where, order, seal, record = leg.name, leg.order, leg.pre_import, leg.component
    if order is None or seal is None or record is None:
        findings.lacks(f"{where}: its order, its pre-import seal, or its record")
        return
    nonce = sha256_hex(f"{evidence.marker.nonce}:{where}".encode())[:32]
    named = (evidence.packet_id, evidence.marker_sha256, where, leg.index, nonce)
    told = (order.packet_sha256, order.marker_sha256, order.leg, order.index, order.nonce)
    findings.equal("packet, marker, leg, place and nonce of the order", where, named, told)
    findings.equal("kind of the order", where, evidence.packet.kind, order.packet_kind)
    folder = f"{evidence.marker.run_dir}/data/legs/{leg.folder}"
    findings.equal("folder of the order", where, folder, "/".join(order.paths.leg.split("/")[-4:]))
    told = (seal.packet_sha256, seal.marker_sha256, seal.leg, leg.index, seal.nonce)
    findings.equal("packet, marker, leg and nonce of the pre-import seal", where, named, told)
    findings.equal("order of seal and record", where, [leg.order_sha256] * 2, [seal.order_sha256, record.order_sha256])
    findings.equal("pre-import seal of the record", where, leg.pre_import_sha256, record.pre_import_sha256)
    rows = len(leg.rows or ())
    findings.equal("rows of the record", where, (leg.rows_sha256, rows), (record.rows_sha256, record.rows))
    counted = None if leg.exit is None else leg.exit.rows_completed
    findings.equal("rows that the leg counted", where, rows, counted)
    findings.equal("leg and process of the record", where, (where, seal.pid), (record.leg, record.pid))
    findings.holds("ending", where, ("completed", record.ending), is_met=isinstance(record.ending, WorkerCompleted))
    _judge_import(findings, leg, seal, record)
    _judge_pause(findings, leg, seal, record)
    _judge_channels(findings, leg, record)


def _judge_import(findings: Findings, leg: CardLeg, seal: PreImport, record: ComponentRecord) -> None:
    """Nothing of torch was there when the seal was written, and torch was there when the tensors were."""
    findings.equal(
        "torch among the modules before the seal", leg.name, [], [name for name in seal.modules if name == TORCH]
    )
    early = [path for path in seal.mapped_files if TORCH_LIBRARY in path]
    findings.equal("libraries of torch mapped before the seal", leg.name, [], early)
    late = any(TORCH_LIBRARY in line for line in leg.maps or ())
    findings.equal("torch mapped while tensors lived", leg.name, record.versions is not None, late)


def _judge_pause(findings: Findings, leg: CardLeg, seal: PreImport, record: ComponentRecord) -> None:
    process, where = leg.process, leg.name
    if process is None or process.observed_mono_ns is None or leg.started is None or leg.postflight is None:
        findings.lacks(f"{where}: no look at the worker while its tensors lived")
        return
    findings.equal("pauses, and rows by then", where, (1, record.rows), (process.pauses, process.rows_seen))
    stamps = [leg.started.mono_ns, process.started_mono_ns, seal.mono_ns, record.started_mono_ns]
    stamps += [row.ended_mono_ns for row in leg.rows or ()]
    stamps += [process.observed_mono_ns, record.ended_mono_ns, leg.postflight.ended_mono_ns]
    findings.equal("claim, start, seal, rows, look from outside, record, end", where, sorted(stamps), stamps)


def _judge_channels(findings: Findings, leg: CardLeg, record: ComponentRecord) -> None:
    """Warnings and output went where they should, to the end, and the log tells the same warnings."""
    where, before, after = leg.name, record.channels_before, record.channels_after
    findings.equal("where warnings and output went, at the end", where, before, after)
    shows = None if before is None else before.shows_warnings
    findings.equal("what shows warnings", where, SHOWS_WARNINGS, shows)
    log = leg.log or b""
    if leg.postflight is not None:
        told = (leg.postflight.log_bytes, leg.postflight.log_sha256)
        findings.equal("size and digest of the log", where, (len(log), sha256_hex(log)), told)
    lines = [found for line in log.split(b"\n") if (found := WARNING_LINE.match(line))]
    logged = sorted(
        (found[1].decode(), found[2].decode("utf-8", "replace")) for found in lines if b"Warning" in found[1]
    )
    recorded = sorted(
        (one.category, one.message.partition("\n")[0]) for one in record.warnings if "Warning" in one.category
    )
    findings.equal("warnings in the log", where, recorded, logged)

"""A teacher made from a sealed start: what every later start of the same workload must give, token by token."""

from labctl.analyze.evidence import LegEvidence
from labctl.analyze.load import load_evidence
from labctl.analyze.stream import StreamRow
from labctl.codes import Code
from labctl.errors import BrokenEvidence, NotFound, Problem
from labctl.packet.model import Packet
from labctl.prereg.model import Arm
from labctl.prereg.suite import Oracle, OracleOrigin, OracleRow
from labctl.records.run import OutcomeKind
from labctl.seal.verify import SealedRun


def make_oracle(run: SealedRun) -> Oracle:
    """The tokens of a completed run's first start, which must be a control.

    Raises:
        BrokenEvidence: records of the run contradict each other.
        NotFound: the run was not completed, its first start is no control, or a row is not complete.
    """
    evidence = load_evidence(run, run.outcome)
    if evidence.conflicts:
        raise BrokenEvidence(evidence.conflicts)
    leg = evidence.legs[0] if evidence.legs else None
    if run.outcome.outcome is not OutcomeKind.COMPLETED or leg is None or leg.arm is not Arm.CONTROL:
        got = f"outcome {run.outcome.outcome}, order {', '.join(evidence.order)}"
        raise _unusable(run.run_dir, "a completed run that begins with a control start", got)
    workload, suite = evidence.packet.preregistration.workload, evidence.packet.file("suite.yaml")
    if suite is None:
        raise _unusable(run.run_dir, "a packet that pins its suite", "none")
    return Oracle(
        labctl=1,
        kind="oracle",
        suite_sha256=suite.sha256,
        api=workload.api,
        max_tokens=workload.max_tokens,
        ignore_eos=workload.ignore_eos,
        origin=_origin(run, evidence.packet, leg),
        rows=tuple(_row(run.run_dir, leg.name, row) for row in leg.rows),
    )


def _origin(run: SealedRun, packet: Packet, leg: LegEvidence) -> OracleOrigin:
    return OracleOrigin(run=run.run_dir, seal_sha256=run.seal_sha256, packet_sha256=packet.id, leg=leg.name)


def _row(run: str, leg: str, row: StreamRow) -> OracleRow:
    prompt_ids, reason = row.prompt_ids_sha256, row.finish_reason
    if not row.is_whole or prompt_ids is None or reason not in ("length", "stop"):
        faults = ", ".join(f"{fault}: {detail}" for fault, detail in row.faults) or f"finish reason {reason}"
        raise _unusable(f"{run} {leg} row {row.row}", "a complete row", faults)
    return OracleRow(
        prompt=row.prompt_id,
        prompt_token_ids_sha256=prompt_ids,
        token_ids=row.token_ids,
        text_sha256=row.text_sha256,
        finish_reason="length" if reason == "length" else "stop",
    )


def _unusable(where: str, expected: str, got: str) -> NotFound:
    return NotFound(Problem(Code.NOT_FOUND, where, expected, got, "make the oracle from another run"))

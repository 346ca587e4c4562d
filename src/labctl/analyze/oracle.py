"""A teacher made from a sealed start: what every later start of the same workload must give, token by token."""

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.gates.accounting import drafting_of
from labctl.analyze.gates.cold import counter_delta
from labctl.analyze.load import load_evidence
from labctl.analyze.stream import StreamRow
from labctl.codes import Code
from labctl.errors import BrokenEvidence, NotFound, Problem
from labctl.frozen import canonical_json
from labctl.packet.model import Packet
from labctl.prereg.model import Arm
from labctl.prereg.suite import Oracle, OracleOrigin, OracleRow
from labctl.records.run import OutcomeKind
from labctl.seal.verify import SealedRun


def make_oracle(run: SealedRun) -> Oracle:
    """The tokens of a completed run's first start, which must be a control.

    Raises:
        BrokenEvidence: records of the run contradict each other.
        NotFound: the run was not completed, its first start is no control, that start speculated, or a row is not
            complete.
    """
    evidence = load_evidence(run, run.outcome)
    if evidence.conflicts:
        raise BrokenEvidence(evidence.conflicts)
    leg = evidence.legs[0] if evidence.legs else None
    if run.outcome.outcome is not OutcomeKind.COMPLETED or leg is None or leg.arm is not Arm.CONTROL:
        got = f"outcome {run.outcome.outcome}, order {', '.join(evidence.order)}"
        raise _unusable(run.run_dir, "a completed run that begins with a control start", got)
    _require_target_only(run.run_dir, evidence, leg)
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


def without_tokens(oracle: Oracle) -> Oracle:
    """The same teacher with digests of texts alone: it says nothing of a tokenizer, and less of the answers."""
    document = oracle.model_dump(mode="json")
    told = ("prompt", "text_sha256", "finish_reason")
    document["rows"] = [{name: row[name] for name in told} for row in document["rows"]]
    return Oracle.from_json(canonical_json(document), "oracle")


def _require_target_only(run: str, evidence: RunEvidence, leg: LegEvidence) -> None:
    """A teacher is what the target says alone: tokens that a drafter had a hand in prove nothing about the drafter."""
    delta = counter_delta(evidence, leg)
    drafts = None if delta is None else delta.grown("drafts")
    asked = "asks for speculation" if drafting_of(evidence, leg) is not None else "asks for none"
    if asked != "asks for none" or drafts != 0:
        got = f"a start that {asked}, and counted {'an unknown number of' if drafts is None else drafts} rounds of it"
        raise _unusable(f"{run} {leg.name}", "a start of the target alone", got)


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

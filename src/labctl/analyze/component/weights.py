"""Gate `weights_unchanged`: the weights are drawn from the registered seed, are those of the pin, and stay so."""

from labctl.analyze.component.complete_rows import judge_drawn
from labctl.analyze.component.evidence import Worked
from labctl.analyze.gates.findings import Findings
from labctl.digest import manifest_lines, sha256_hex
from labctl.prereg.component_model import Checkpoint
from labctl.records.component_row import TensorRecord


def judge_weights(findings: Findings, worked: Worked, checkpoint: Checkpoint) -> None:
    """Judge the weights of one card."""
    record, leg = worked.record, worked.leg
    for drawn in record.weights_before:
        judge_drawn(findings, f"{leg}, weight {drawn.tensor.name}", drawn, checkpoint.seed)
    before, after = worked.weights(), record.weights_after
    findings.equal("digest of the checkpoint before the rows", leg, checkpoint.sha256, checkpoint_sha256(before))
    findings.equal("digest of the checkpoint after the rows", leg, checkpoint.sha256, checkpoint_sha256(after))
    findings.equal("weights after the rows", leg, before, after)


def judge_first_caches(findings: Findings, worked: Worked) -> None:
    """Judge that what caches hold at first is what the seed gives."""
    seed = worked.said.seed if worked.said.checkpoint is None else worked.said.checkpoint.seed
    for drawn in worked.record.caches:
        judge_drawn(findings, f"{worked.leg}, cache {drawn.tensor.name}", drawn, seed)


def checkpoint_sha256(weights: tuple[TensorRecord, ...]) -> str:
    """The digest of a checkpoint: of its manifest, `sha256  name` lines by name."""
    return sha256_hex(manifest_lines({weight.name: weight.sha256 for weight in weights}))

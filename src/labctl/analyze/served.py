"""What a run served: engine and version, as its starts say."""

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.identity import served_version


def engine_served(evidence: RunEvidence) -> str:
    """The engine's name and every version that a start of the run said it is."""
    versions = {served_version(leg.process) or "unknown" for leg in evidence.legs if leg.process is not None}
    return f"{evidence.engine.engine} {', '.join(sorted(versions)) or 'not served'}"

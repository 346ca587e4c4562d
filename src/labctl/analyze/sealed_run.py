"""Step 8, analyze: from a sealed run to its verdict; the kind of its packet decides who judges."""

from typing import assert_never

from labctl.analyze.component.verdict import analyze_component
from labctl.analyze.endpoint_run import analyze_endpoint
from labctl.analyze.files import require_readable
from labctl.analyze.probe.verdict import analyze_probe
from labctl.packet.model import Packet, PinnedAnalyzer
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.model import Preregistration
from labctl.prereg.probe_model import ProbePreregistration
from labctl.records.verdict import Verdict
from labctl.seal.verify import SealedRun


def analyze_run(run: SealedRun, analyzer: PinnedAnalyzer) -> Verdict:
    """Judge a sealed run; contradictions inside it give the verdict `invalid`.

    Args:
        run: the run, verified against its seal.
        analyzer: this analyzer's own identity, which the packet pins or does not.

    Raises:
        BrokenEvidence: packet, marker, vocabulary or suite cannot be read, so that there is nothing to say.
    """
    said = Packet.from_json(require_readable(run, "packet/packet.json"), "data/packet/packet.json").preregistration
    match said:
        case Preregistration():
            return analyze_endpoint(run, analyzer)
        case ComponentPreregistration():
            return analyze_component(run, said, analyzer)
        case ProbePreregistration():
            return analyze_probe(run, said, analyzer)
        case _:
            assert_never(said)

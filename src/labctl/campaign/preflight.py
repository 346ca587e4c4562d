"""Preflight: everything that can be checked without side effects, before the marker; every fault at once."""

from concurrent.futures import ThreadPoolExecutor

from labctl.campaign.checks import PreflightRequest, every_look
from labctl.campaign.leg_trial import leg_trial_look
from labctl.campaign.look import Look
from labctl.campaign.storage_checks import existing, root_folders
from labctl.errors import PreflightFailed
from labctl.host.storage import file_system_type
from labctl.packet.in_place import verify_packet_in_place
from labctl.records.marker import Finding, PreflightPassed


def run_preflight(request: PreflightRequest) -> PreflightPassed:
    """Look at everything; start nothing of the campaign.

    Raises:
        PreflightFailed: with every check that does not hold.
    """
    packet, repository = request.reviewed.packet, request.roots.repository
    looks = tuple(every_look(request))
    with ThreadPoolExecutor(max_workers=1) as beside:  # after the load was measured, and in processes of its own
        trial = beside.submit(leg_trial_look, request.scratch)
        drift = verify_packet_in_place(packet, repository, request.announce)
    looks = (*looks, trial.result())
    failed = [*(look.problem("preflight") for look in looks if not look.is_met), *drift]
    if failed:
        raise PreflightFailed(failed)
    in_place = f"{len(packet.sources)} sources, {len(packet.models)} models, interpreter and labctl equal"
    return PreflightPassed(
        packet_sha256=request.reviewed.packet_id,
        findings=(*(_finding(look) for look in looks), _in_place(in_place)),
        file_systems={name: file_system_type(existing(folder)) for name, folder in root_folders(request.roots)},
        rehearsal_seal_sha256=request.rehearsal_seal_sha256,
    )


def _finding(look: Look) -> Finding:
    return Finding(check=look.name, expected=look.expected, observed=look.observed, is_met=look.is_met)


def _in_place(observed: str) -> Finding:
    return Finding(check="in_place", expected="everything as frozen", observed=observed, is_met=True)

"""The stages of a probe and the class of each: what a rank failed to reach names what failed."""

from collections.abc import Collection, Iterable

from labctl.records.probe import STAGES
from labctl.records.verdict import VerdictKind

# The class of a probe in which some rank did not reach the stage, and no rank failed to reach an earlier one.
CLASSES = dict(
    zip(
        STAGES,
        (
            VerdictKind.HARNESS_OR_IMPORT_FAILURE,
            VerdictKind.DEVICE_SETUP_FAILURE,
            VerdictKind.PROCESS_GROUP_INIT_FAILURE,
            VerdictKind.TENSOR_SETUP_FAILURE,
            VerdictKind.PRE_COLLECTIVE_FAILURE,
            VerdictKind.COLLECTIVE_STAGE_FAILURE,
            VerdictKind.VERIFICATION_FAILURE,
            VerdictKind.TEARDOWN_FAILURE,
        ),
        strict=True,
    )
)


def classify(
    reached: Iterable[Collection[str]], exit_statuses: Iterable[int | None], outlived: Collection[int]
) -> VerdictKind:
    """The class of a probe, by the first stage that any rank failed to reach, then by how the ranks exited.

    Args:
        reached: the stages that each rank proved.
        exit_statuses: how each rank exited; None where it did not exit by itself.
        outlived: processes that ran on after the ranks.
    """
    ranks = list(reached)
    for stage in STAGES:
        if any(stage not in rank for rank in ranks):
            return CLASSES[stage]
    is_clean = all(status == 0 for status in exit_statuses) and not outlived
    return VerdictKind.PROBE_PASS if is_clean else VerdictKind.PROCESS_EXIT_FAILURE

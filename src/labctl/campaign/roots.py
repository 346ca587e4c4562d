"""The four roots of a host profile, resolved against the top of the campaign repository."""

from dataclasses import dataclass, replace
from pathlib import Path

from labctl.packet.machine import REHEARSALS, authorization_root, rehearsal_authorization_root, scratch_root
from labctl.packet.model import Packet
from labctl.prereg.host_profile import HostProfile
from labctl.rundir import AuthorizationPaths

SCRATCH_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Roots:
    """The four roots of one host profile, absolute."""

    repository: Path
    """The top of the campaign repository."""
    authorization: AuthorizationPaths
    """Packets, markers, ledger."""
    runs: Path
    """Runs."""
    analyses: Path
    """Analyses."""
    scratch: Path
    """Snapshots and the private folders of starts."""
    anchor: Path
    """The folder up to which ownership and modes are checked."""

    def scratch_of(self, run_dir: str) -> Path:
        """The scratch folder of a run, named after the random end of the run's own name; short, as socket paths are."""
        return self.scratch / run_dir[-SCRATCH_DIGITS:]

    @classmethod
    def of_profile(cls, profile: HostProfile, repository: Path) -> "Roots":
        """The roots of real campaigns."""
        return cls(
            repository=repository,
            authorization=authorization_root(profile, repository),
            runs=repository / profile.roots.runs,
            analyses=repository / profile.roots.analyses,
            scratch=scratch_root(profile, repository),
            anchor=(repository / profile.storage.trusted_anchor).resolve(),
        )

    @classmethod
    def of_rehearsals(cls, profile: HostProfile, repository: Path) -> "Roots":
        """The same machine, with a runs root and an authorization root that only rehearsals use."""
        authorization = rehearsal_authorization_root(profile, repository)
        runs = repository / profile.roots.runs / REHEARSALS
        return replace(cls.of_profile(profile, repository), authorization=authorization, runs=runs)

    @classmethod
    def of_packet(cls, packet: Packet, repository: Path) -> "Roots":
        """The roots that a packet's run uses."""
        roots = cls.of_profile if packet.kind == "real" else cls.of_rehearsals
        return roots(packet.host, repository)

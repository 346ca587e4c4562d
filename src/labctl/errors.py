"""The error tree of labctl, on one page.

```
LabctlError
├── Refused                      exit 3: a precondition does not hold; nothing irreversible happened
│   ├── InvalidPreregistration   a campaign file (preregistration, host profile, suite, oracle, model manifest) is wrong
│   ├── DirtySource              a source is not what its declaration says
│   ├── FreezeRefused            something that freezing computes does not hold (a host check failed, a file is missing)
│   ├── MissingReview            approvals are too few, expired, or bound to something else
│   ├── PreflightFailed          the host is not as the packet says
│   ├── AlreadyConsumed          the packet's one-shot marker exists, whatever it is
│   └── NotFound                 a campaign, packet, run or analysis that was named is not there, or is not the only one
├── LegFailed                    exit 4: the packet is spent, the run is sealed as aborted
│   ├── RunFailed                after the marker something else than a leg failed; `labctl status` says what is there
│   ├── PacketBurnt              the marker exists but could not be completed or witnessed; nothing was started
│   ├── ServerNotReady           a server did not get ready, or something else answered in its place
│   ├── StreamBroken             a request ended without a complete response
│   ├── WorkerFailed             a worker on a card ended with a failure, or did not end in its time
│   ├── LegInterrupted           a signal, a cut lifeline, or a registered limit ended the leg
│   └── LeftoverFound            something of ours survived the stop
└── BrokenEvidence               exit 5: sealed or recorded bytes are not what they must be; collects all issues
    ├── ManifestMismatch         the files are not those of the manifest
    ├── MalformedRecord          a file does not parse by its one strict format
    └── SealInvalid              the seal statement is absent, malformed, or speaks of something else
```

A negative verdict is a value, never an error. A call out of order is a `RuntimeError`, because it is our bug.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from labctl.codes import Code


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, in the four parts that every message of labctl has."""

    code: Code
    where: str
    expected: str
    got: str
    do: str

    def __str__(self) -> str:
        """One line: `where: expected X, got Y; do Z [CODE]`."""
        return f"{self.where}: expected {self.expected}, got {self.got}; {self.do} [{self.code}]"


class LabctlError(Exception):
    """A problem, or several problems of one input, with the exit status of the command that meets it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        if not self.problems:
            message = "an error without a problem is a bug"
            raise RuntimeError(message)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @property
    def codes(self) -> tuple[Code, ...]:
        """The codes of all problems, in the order in which they were found."""
        return tuple(problem.code for problem in self.problems)


class Refused(LabctlError):
    """A precondition does not hold; nothing irreversible happened."""

    exit_code = 3


class InvalidPreregistration(Refused):
    """A campaign file is wrong; holds every problem of the file."""


class DirtySource(Refused):
    """A source tree or package is not what its declaration says."""


class FreezeRefused(Refused):
    """Something that freezing computes does not hold."""


class MissingReview(Refused):
    """Approvals are too few, expired, or bound to something else."""


class PreflightFailed(Refused):
    """The host is not as the packet says; nothing was started."""


class AlreadyConsumed(Refused):
    """The one-shot marker of this packet exists."""


class NotFound(Refused):
    """What was named is not there, or is not the only one."""


class LegFailed(LabctlError):
    """A leg did not complete; the packet is spent and the run is sealed as aborted."""

    exit_code = 4


class RunFailed(LegFailed):
    """After the marker something else than a leg failed; the packet is spent."""


class PacketBurnt(LegFailed):
    """The marker exists but could not be completed or witnessed; the packet is spent and nothing was started."""


class ServerNotReady(LegFailed):
    """A server did not get ready, or something else answered in its place."""


class StreamBroken(LegFailed):
    """A request ended without a complete response."""


class WorkerFailed(LegFailed):
    """A worker on a card ended with a failure, or did not end in its time."""


class LegInterrupted(LegFailed):
    """A signal, a cut lifeline or a registered limit ended the leg."""


class LeftoverFound(LegFailed):
    """Something of ours survived the stop."""


class BrokenEvidence(LabctlError):
    """Sealed or recorded bytes are not what they must be; holds every issue found."""

    exit_code = 5


class ManifestMismatch(BrokenEvidence):
    """The files are not those of the manifest."""


class MalformedRecord(BrokenEvidence):
    """A file does not parse by its one strict format."""


class SealInvalid(BrokenEvidence):
    """The seal statement is absent, malformed, or speaks of something else."""

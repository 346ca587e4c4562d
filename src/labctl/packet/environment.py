"""What a server's environment may hold: a fixed base, what the campaign registers, and nothing ambient."""

from collections.abc import Iterator
from typing import assert_never

from labctl.prereg.any_campaign import AnyPreregistration
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.environment import BASE_ENVIRONMENT, RANK_VARIABLES, SELECTING_VARIABLES
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration
from labctl.prereg.probe_model import ProbePreregistration
from labctl.prereg.treatment_kinds import EnvironmentTreatment

_FIXED = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",  # a start must not change the package that freezing hashed
    "PYTHONNOUSERSITE": "1",
}


def base_environment(*, home: str, temporary: str) -> dict[str, str]:
    """The part of a server's environment that is the same for every campaign, its two private folders apart."""
    private = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "XDG_CONFIG_HOME": f"{home}/.config"}
    # byte code beside a package is not in its RECORD: with a folder of its own that stays empty, none of it is read
    return {**_FIXED, **private, "PYTHONPYCACHEPREFIX": f"{home}/.pycache", "TMPDIR": temporary}


def environment_allowed(preregistration: AnyPreregistration, host: HostProfile) -> tuple[str, ...]:
    """The names that the environment of a server, a worker or a rank may hold, sorted."""
    return tuple(sorted({*BASE_ENVIRONMENT, *host.environment_passed, *_registered(preregistration)}))


def _registered(said: AnyPreregistration) -> Iterator[str]:
    match said:
        case Preregistration():
            yield from said.service.environment
            if isinstance(said.treatment, EnvironmentTreatment):
                yield said.treatment.environment
        case ComponentPreregistration():
            yield from (*said.worker.environment, *SELECTING_VARIABLES)
        case ProbePreregistration():
            yield from (*said.environment, *SELECTING_VARIABLES, *RANK_VARIABLES)
        case _:
            assert_never(said)

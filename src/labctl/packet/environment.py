"""What a server's environment may hold: a fixed base, what the campaign registers, and nothing ambient."""

from labctl.prereg.environment import BASE_ENVIRONMENT
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration
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


def environment_allowed(preregistration: Preregistration, host: HostProfile) -> tuple[str, ...]:
    """The names that a server's environment may hold, sorted."""
    names = {*BASE_ENVIRONMENT, *preregistration.service.environment, *host.environment_passed}
    if isinstance(preregistration.treatment, EnvironmentTreatment):
        names.add(preregistration.treatment.environment)
    return tuple(sorted(names))

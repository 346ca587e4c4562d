"""Whose noise a noise record is: the host that it names, held against another."""

from labctl.prereg.noise import NoiseHost, NoiseRecord
from labctl.records.run import HostIdentity


def noise_host(identity: HostIdentity) -> NoiseHost:
    """What a noise record names of a host."""
    return NoiseHost(**{name: getattr(identity, name) for name in NoiseHost.model_fields})


def host_differences(noise: NoiseRecord, identity: HostIdentity) -> tuple[str, ...]:
    """The names of everything in which a host is not the one of a noise record."""
    own = noise_host(identity)
    return tuple(name for name in NoiseHost.model_fields if getattr(own, name) != getattr(noise.host, name))

"""What a machine has for campaigns: identity, storage, load and cards of every vendor; nothing is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from labctl.campaign.card_checks import card_miss
from labctl.campaign.idle_check import idle_look
from labctl.campaign.look import Look
from labctl.campaign.roots import Roots
from labctl.campaign.storage_checks import storage_looks, trust_looks
from labctl.clock import Clock
from labctl.codes import Code
from labctl.errors import PreflightFailed
from labctl.host.boot import SYSTEM
from labctl.host.devices.discovery import discover, discovery_problems, reader_of, select
from labctl.host.devices.occupancy import busy_problems
from labctl.host.identity import read_host_identity
from labctl.packet.git_command import find_repository
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices, HostProfile
from labctl.prereg.load import load_host_profile
from labctl.prereg.model import CampaignClass
from labctl.records.devices import Discovery
from labctl.records.run import HostIdentity


@dataclass(frozen=True, slots=True)
class VendorReport:
    """The cards of one vendor."""

    vendor: CardVendor
    discovery: Discovery | None
    """What was found; None: nothing of this vendor is installed, or it gave no answer."""
    absent: str
    """Why nothing was asked; empty: something was."""
    looks: tuple[Look, ...]


@dataclass(frozen=True, slots=True)
class HostReport:
    """Everything that was found."""

    machine: HostIdentity
    looks: tuple[Look, ...]
    """Storage and load, where a host profile sets rules for them."""
    vendors: tuple[VendorReport, ...]

    @property
    def missed(self) -> tuple[Look, ...]:
        """Every look that does not hold."""
        every = (*self.looks, *(look for vendor in self.vendors for look in vendor.looks))
        return tuple(look for look in every if not look.is_met)


def check_host(path: Path | None, clock: Clock) -> HostReport:
    """Look at this machine, by the rules of a host profile where one is named.

    Raises:
        InvalidPreregistration: the host profile is wrong.
        PreflightFailed: the machine cannot be told from another.
    """
    profile = None if path is None else load_host_profile(path).model
    looks = () if path is None or profile is None else tuple(_profile_looks(profile, find_repository(path), clock))
    devices = (profile.devices if profile else None) or Devices()
    vendors = tuple(_vendor(vendor, devices, clock) for vendor in CardVendor)
    return HostReport(read_host_identity(), looks, vendors)


def _profile_looks(profile: HostProfile, repository: Path, clock: Clock) -> Iterator[Look]:
    roots = Roots.of_profile(profile, repository)
    yield from storage_looks(roots, profile.storage, CampaignClass.EXPLORATORY)
    yield from trust_looks(roots)
    yield idle_look(profile.idle, clock)


def _vendor(vendor: CardVendor, devices: Devices, clock: Clock) -> VendorReport:
    wanted = devices.idle_cards if devices.idle_cards and devices.idle_cards.vendor is vendor else None
    absent = _absent(vendor, devices)
    if absent and wanted is None:
        return VendorReport(vendor, None, absent, ())
    cards = wanted or Cards(vendor=vendor, count=1, identities="discover")
    try:
        found = discover(reader_of(cards, devices), devices, clock)
    except PreflightFailed as error:
        looks = tuple(card_miss(vendor.value, problem) for problem in error.problems)
        return VendorReport(vendor, None, "", looks)
    return VendorReport(vendor, found, "", tuple(_card_looks(found, wanted, devices)))


def _card_looks(found: Discovery, wanted: Cards | None, devices: Devices) -> Iterator[Look]:
    name = found.vendor.value
    try:
        problems = discovery_problems(found) if wanted is None else ()
        cards = found.cards if wanted is None else select(found, wanted)
    except PreflightFailed as error:
        problems, cards = error.problems, ()
    problems = (*problems, *busy_problems(cards, devices))
    yield from (card_miss(name, problem) for problem in problems)
    if not problems:
        yield Look(name, Code.WRONG_CARD, "cards that are sound and free", f"{len(cards)}", is_met=True)


def _absent(vendor: CardVendor, devices: Devices, system: Path = SYSTEM) -> str:
    match vendor:
        case CardVendor.CPU:
            return ""
        case CardVendor.NVIDIA:
            control = system / "dev/nvidiactl"
            return "" if control.exists() else f"no {control}: no driver is loaded"
        case CardVendor.INTEL:
            return "" if Path(devices.xpu_smi).exists() else f"no {devices.xpu_smi}"
        case _:
            assert_never(vendor)

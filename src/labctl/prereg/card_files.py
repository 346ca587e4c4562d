"""A whole campaign of kind `component` or `probe`, or of any kind: with every small file that it names."""

from dataclasses import dataclass
from pathlib import Path

from labctl.prereg.any_campaign import CardPreregistration
from labctl.prereg.campaign_file import Attempt, Loaded
from labctl.prereg.campaign_files import LoadedCampaign, load_campaign
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.kinds import kind_of
from labctl.prereg.load import try_component, try_host_profile, try_probe
from labctl.prereg.named_files import NamedFiles, with_files
from labctl.prereg.rules.fit import card_host_fits


@dataclass(frozen=True, slots=True)
class LoadedCardCampaign:
    """A component or a probe and the files that it names, all found right; paths are below `root`."""

    preregistration: Loaded[CardPreregistration]
    root: Path
    host: Loaded[HostProfile]
    worker: Path | None
    """The worker's file; None for a probe, whose ranks run labctl's own program."""
    files: tuple[Path, ...]
    allowed_signers: Path | None
    patches: dict[int, tuple[Path, ...]]

    def paths(self) -> tuple[Path, ...]:
        """Every file of the campaign, the preregistration first."""
        named = [path for path in (self.worker, self.allowed_signers) if path is not None]
        patches = [path for series in self.patches.values() for path in series]
        first = [self.preregistration.path, self.host.path]
        return tuple(dict.fromkeys([*first, *named, *self.files, *patches]))


AnyLoadedCampaign = LoadedCampaign | LoadedCardCampaign


def load_any_campaign(path: Path, root: Path | None = None) -> AnyLoadedCampaign:
    """Read a preregistration of any kind and every file that it names.

    Raises:
        InvalidPreregistration: with every problem of all files.
    """
    match kind_of(path):
        case "component":
            return _load(try_component(path), root)
        case "probe":
            return _load(try_probe(path), root)
        case _:
            return load_campaign(path, root)


def _load(attempt: Attempt[CardPreregistration], root: Path | None) -> LoadedCardCampaign:
    return with_files(attempt, root, _campaign)


def _campaign(files: NamedFiles[CardPreregistration]) -> LoadedCardCampaign | None:
    said = files.preregistration.model
    host = files.read(("host",), said.host, try_host_profile)
    worker, inputs = None, []
    if isinstance(said, ComponentPreregistration):
        worker = files.here(("worker", "file"), said.worker.file)
        inputs = [files.here(("files", index), name) for index, name in enumerate(said.files)]
    signers = files.here(("reviews", "allowed_signers"), said.reviews.allowed_signers)
    patches = files.patches(said.sources)
    if host.loaded is None:
        return None
    files.add(card_host_fits(said, host.loaded.model))
    found = tuple(path for path in inputs if path is not None)
    return LoadedCardCampaign(files.preregistration, files.root, host.loaded, worker, found, signers, patches)

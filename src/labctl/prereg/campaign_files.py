"""A whole campaign: the preregistration with every small file that it names, or every problem of all at once."""

from dataclasses import dataclass
from pathlib import Path

from labctl.prereg.campaign_file import Attempt, Loaded
from labctl.prereg.gate_kinds import CleanLog
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.load import try_host_profile, try_preregistration, try_suite
from labctl.prereg.model import Preregistration, TeacherOracle
from labctl.prereg.model_manifest import ModelManifest, try_model_manifest
from labctl.prereg.named_files import NamedFiles, with_files
from labctl.prereg.noise import NoiseRecord
from labctl.prereg.noise_file import try_noise_record
from labctl.prereg.oracle_file import try_oracle
from labctl.prereg.rules.fit import host_fits, noise_fits, oracle_fits, suite_fits
from labctl.prereg.suite import Oracle, Suite
from labctl.prereg.treatment_kinds import BinariesTreatment


@dataclass(frozen=True, slots=True)
class LoadedCampaign:
    """A preregistration and the files that it names, all found right; paths are below `root`."""

    preregistration: Loaded[Preregistration]
    root: Path
    host: Loaded[HostProfile]
    suite: Loaded[Suite]
    oracle: Loaded[Oracle] | None
    models: dict[str, Loaded[ModelManifest]]
    allowed_signers: Path | None
    noise_record: Loaded[NoiseRecord] | None
    patches: dict[int, tuple[Path, ...]]
    good_logs: tuple[Path, ...] = ()

    def paths(self) -> tuple[Path, ...]:
        """Every file of the campaign, the preregistration first."""
        oracle = [] if self.oracle is None else [self.oracle.path]
        manifests = [manifest.path for manifest in self.models.values()]
        noise = None if self.noise_record is None else self.noise_record.path
        named = [path for path in (self.allowed_signers, noise, *self.good_logs) if path is not None]
        patches = [path for series in self.patches.values() for path in series]
        first = [self.preregistration.path, self.host.path, self.suite.path]
        return tuple(dict.fromkeys([*first, *oracle, *manifests, *named, *patches]))


def load_campaign(path: Path, root: Path | None = None) -> LoadedCampaign:
    """Read a preregistration and every file that it names.

    Args:
        path: the campaign file.
        root: the folder that its paths start from; by default the parent of the file's folder.

    Raises:
        InvalidPreregistration: with every problem of all files.
    """
    return with_files(try_preregistration(path), root, _campaign)


def _campaign(files: NamedFiles[Preregistration]) -> LoadedCampaign | None:
    said = files.preregistration.model
    host = files.read(("host",), said.host, try_host_profile)
    suite = files.read(("workload", "suite"), said.workload.suite, try_suite)
    oracle: Attempt[Oracle] = Attempt(None, ())
    if isinstance(said.oracle, TeacherOracle):
        oracle = files.read(("oracle", "teacher"), said.oracle.teacher, try_oracle)
    manifests = {
        model.name: files.read(("models", index, "manifest"), model.manifest, try_model_manifest).loaded
        for index, model in enumerate(said.models)
    }
    manifests |= _binary_manifests(files)
    signers = files.here(("reviews", "allowed_signers"), said.reviews.allowed_signers)
    noise: Attempt[NoiseRecord] = Attempt(None, ())
    if said.power is not None:
        noise = files.read(("power", "noise_record"), said.power.noise_record, try_noise_record)
    patches = files.patches(said.sources)
    good_logs = _good_logs(files)
    _hold_together(files, host, suite, oracle)
    if noise.loaded is not None:
        files.add(noise_fits(said, noise.loaded.model))
    models = {name: manifest for name, manifest in manifests.items() if manifest is not None}
    if host.loaded is None or suite.loaded is None:
        return None
    found = (files.preregistration, files.root, host.loaded, suite.loaded, oracle.loaded)
    return LoadedCampaign(*found, models, signers, noise.loaded, patches, good_logs)


def _binary_manifests(files: NamedFiles[Preregistration]) -> dict[str, Loaded[ModelManifest] | None]:
    """The manifests of the sets of compiled files, by names that no model has."""
    treatment = files.preregistration.model.treatment
    if not isinstance(treatment, BinariesTreatment):
        return {}
    sides = ("control_manifest", treatment.control_manifest), ("candidate_manifest", treatment.candidate_manifest)
    return {f"{key}/": files.read(("treatment", key), name, try_model_manifest).loaded for key, name in sides}


def _good_logs(files: NamedFiles[Preregistration]) -> tuple[Path, ...]:
    gates = enumerate(files.preregistration.model.gates)
    named = [(index, gate.good_log) for index, gate in gates if isinstance(gate, CleanLog)]
    found = (files.here(("gates", index, "good_log"), name) for index, name in named)
    return tuple(path for path in found if path is not None)


def _hold_together(
    files: NamedFiles[Preregistration], host: Attempt[HostProfile], suite: Attempt[Suite], oracle: Attempt[Oracle]
) -> None:
    """Hold the files against what names them; of a file that was repaired, all but its digest can be judged."""
    said = files.preregistration.model
    if host.loaded is not None:
        files.add(host_fits(said, host.loaded.model))
    if suite.loaded is not None:
        files.add(suite_fits(said, suite.loaded.model))
    if suite.loaded is not None and oracle.loaded is not None and not suite.problems and not oracle.problems:
        files.add(oracle_fits(said, suite.loaded.model, suite.loaded.sha256, oracle.loaded.model))

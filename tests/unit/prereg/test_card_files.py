"""Components and probes: read with everything that they name, every fault at once."""

import shutil
from pathlib import Path

import pytest

from labctl.errors import InvalidPreregistration
from labctl.prereg.campaign_files import LoadedCampaign
from labctl.prereg.card_files import LoadedCardCampaign, load_any_campaign
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.extents import extent_of
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.load import load_any_preregistration, load_host_profile
from labctl.prereg.rules.fit import card_host_fits

FIXTURES = Path(__file__).parents[2] / "fixtures" / "prereg"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("good", "hosts", "suites", "oracles", "models", "keys", "noise", "workers"):
        shutil.copytree(FIXTURES / folder, tmp_path / "campaigns" / folder)
    return tmp_path / "campaigns"


def test_a_component_comes_with_its_worker_and_inputs(root: Path) -> None:
    campaign = load_any_campaign(root / "good" / "component.yaml")
    assert isinstance(campaign, LoadedCardCampaign)
    names = [path.relative_to(root).as_posix() for path in campaign.paths()]
    assert names == ["good/component.yaml", "hosts/bench.yaml", "workers/tiny.py", "workers/tiny.json"]
    said = campaign.preregistration.model
    assert isinstance(said, ComponentPreregistration)
    assert said.order == ("card0", "card1")
    assert said.row_count == 8


def test_a_probe_has_one_leg_and_no_worker_file(root: Path) -> None:
    campaign = load_any_campaign(root / "good" / "probe.yaml")
    assert isinstance(campaign, LoadedCardCampaign)
    assert campaign.worker is None
    assert campaign.preregistration.model.order == ("probe",)


def test_an_endpoint_campaign_is_read_as_one(root: Path) -> None:
    assert isinstance(load_any_campaign(root / "good" / "record.yaml"), LoadedCampaign)


@pytest.mark.parametrize("name", ["component", "probe", "record"])
def test_the_kind_of_a_file_decides_which_grammar_reads_it(name: str) -> None:
    kind = load_any_preregistration(FIXTURES / "good" / f"{name}.yaml").model.kind
    assert kind == {"record": "endpoint"}.get(name, name)


def test_every_fault_of_all_files_is_told_at_once(root: Path) -> None:
    path = root / "good" / "component.yaml"
    text = path.read_text().replace("workers/tiny.json", "workers/none.json").replace("synthetic_bias]", "no_bias]")
    path.write_text(text)
    (root / "hosts" / "bench.yaml").write_text("labctl: 2\n")
    with pytest.raises(InvalidPreregistration) as caught:
        load_any_campaign(path)
    told = " ".join(map(str, caught.value.problems))
    assert all(word in told for word in ("component.yaml:16", "none.json", "bench.yaml:1"))


def test_a_worker_variable_is_not_passed_on_from_outside_as_well(root: Path) -> None:
    said = load_any_preregistration(root / "good" / "component.yaml").model
    assert isinstance(said, ComponentPreregistration)
    profile = load_host_profile(root / "hosts" / "bench.yaml").model
    document = profile.model_dump_json(by_alias=True, exclude_none=True)
    passing = HostProfile.model_validate_json(document.replace("CUDA_VISIBLE_DEVICES", "NCCL_DEBUG"))
    (finding,) = card_host_fits(said, passing)
    assert finding.path == ("worker", "environment", "NCCL_DEBUG")
    assert list(card_host_fits(said, profile)) == []


@pytest.mark.parametrize(
    ("term", "extent"), [(7, 7), ("width", 3), ("2*width*heads", 12), ("2*depth", None), ("12", 12)]
)
def test_an_extent_is_a_product_of_integers_and_dimensions(term: int | str, extent: int | None) -> None:
    assert extent_of(term, {"width": 3, "heads": 2}) == extent

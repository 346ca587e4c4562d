"""The arms as templates, filled and read back."""

import string
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from labctl.prereg.arms import (
    PLACEHOLDER,
    StartValues,
    arm_argv,
    arm_environment,
    fill,
    fill_environment,
    substitute_back,
    substitute_back_environment,
)
from labctl.prereg.load import load_preregistration
from labctl.prereg.model import Arm, Preregistration

GOOD = Path(__file__).parents[2] / "fixtures" / "prereg" / "good"
SPECULATION = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}'
VALUES = StartValues(
    python="/opt/serving/bin/python",
    host="127.0.0.1",
    port=8000,
    nonce="5f2c",
    leg_dir="/srv/scratch/01-A1",
    cache_dir="/srv/scratch/01-A1/cache",
    models={"target": "/opt/models/target"},
)


def preregistration(name: str) -> Preregistration:
    return load_preregistration(GOOD / name).model


def with_argument(control: str, candidate: str, folder: Path) -> Preregistration:
    text = (GOOD / "record.yaml").read_text()
    text = text.replace("  control: null\n", f"  control: {control}\n")
    text = text.replace(f"  candidate: '{SPECULATION}'\n", f"  candidate: {candidate}\n")
    path = folder / "campaign.yaml"
    path.write_text(text)
    return load_preregistration(path).model


def test_an_argument_stands_at_the_end_of_the_candidate_alone() -> None:
    prereg = preregistration("record.yaml")
    assert arm_argv(prereg, Arm.CONTROL) == prereg.service.command
    assert arm_argv(prereg, Arm.CANDIDATE) == (*prereg.service.command, "--speculative-config", SPECULATION)
    assert arm_environment(prereg, Arm.CONTROL) == arm_environment(prereg, Arm.CANDIDATE)


def test_an_option_without_a_value_is_the_option_alone(tmp_path: Path) -> None:
    prereg = with_argument('"off"', "true", tmp_path)
    assert arm_argv(prereg, Arm.CONTROL)[-2:] == ("--speculative-config", "off")
    assert arm_argv(prereg, Arm.CANDIDATE)[-1] == "--speculative-config"


def test_a_variable_differs_between_the_environments_alone() -> None:
    prereg = preregistration("environment-treatment.yaml")
    assert arm_argv(prereg, Arm.CONTROL) == arm_argv(prereg, Arm.CANDIDATE) == prereg.service.command
    control, candidate = arm_environment(prereg, Arm.CONTROL), arm_environment(prereg, Arm.CANDIDATE)
    assert control | {"VLLM_USE_FLASHINFER_SAMPLER": "1"} == candidate
    assert control["VLLM_USE_FLASHINFER_SAMPLER"] == "0"


def test_a_variable_may_be_absent_in_an_arm(tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text((GOOD / "environment-treatment.yaml").read_text().replace('control: "0"', "control: null"))
    control = arm_environment(load_preregistration(path).model, Arm.CONTROL)
    assert "VLLM_USE_FLASHINFER_SAMPLER" not in control


def test_without_a_treatment_there_is_the_service_alone() -> None:
    prereg = preregistration("calibration.yaml")
    assert arm_argv(prereg, Arm.CONTROL) == prereg.service.command


def test_a_template_is_filled_with_the_values_of_a_start() -> None:
    template = ("{python}", "-m", "x", "{model:target}", "{host}:{port}", "n-{nonce}", "{leg_dir}", "{cache_dir}/a")
    assert fill(template, VALUES) == (
        "/opt/serving/bin/python",
        "-m",
        "x",
        "/opt/models/target",
        "127.0.0.1:8000",
        "n-5f2c",
        "/srv/scratch/01-A1",
        "/srv/scratch/01-A1/cache/a",
    )
    assert fill_environment({"A": "{port}", "B": "x"}, VALUES) == {"A": "8000", "B": "x"}


def test_a_literal_that_equals_a_value_is_no_difference() -> None:
    template = ("--max-model-len", "8000", "--port", "{port}", "127.0.0.1")
    assert substitute_back(fill(template, VALUES), template, VALUES) == template


def test_a_difference_stays_to_be_seen_with_values_as_placeholders() -> None:
    template = ("--port", "{port}", "--cache", "{cache_dir}")
    observed = ("--port", "8001", "--cache", "/srv/scratch/01-A1/other", "--host=127.0.0.1")
    read_back = substitute_back(observed, template, VALUES)
    assert read_back == ("--port", "8001", "--cache", "{leg_dir}/other", "--host={host}")


def test_an_environment_is_read_back_name_by_name() -> None:
    template = {"CACHE": "{cache_dir}", "PORT": "8000"}
    observed = {"PORT": "8000", "CACHE": "/srv/scratch/01-A1/cache", "EXTRA": "5f2c"}
    assert substitute_back_environment(observed, template, VALUES) == {**template, "EXTRA": "{nonce}"}


texts = st.text(alphabet=string.ascii_letters + string.digits + '/.-_{}":,', min_size=1, max_size=12)


def names_known_models(text: str) -> bool:
    return set(PLACEHOLDER.findall(text)) <= {"", "m"}


parts = (
    st.lists(
        texts | st.sampled_from(["{python}", "{host}", "{port}", "{nonce}", "{leg_dir}", "{cache_dir}", "{model:m}"]),
        min_size=1,
        max_size=3,
    )
    .map("".join)
    .filter(names_known_models)
)
start_values = st.builds(
    StartValues,
    python=texts,
    host=texts,
    port=st.integers(1, 65535),
    nonce=texts,
    leg_dir=texts,
    cache_dir=texts,
    models=st.fixed_dictionaries({"m": texts}),
)


@given(st.lists(parts, max_size=6).map(tuple), start_values)
def test_reading_back_is_the_exact_inverse_of_filling(template: tuple[str, ...], values: StartValues) -> None:
    assert substitute_back(fill(template, values), template, values) == template


@given(st.lists(parts, min_size=1, max_size=6).map(tuple), start_values, texts)
def test_a_part_that_differs_from_the_filled_template_is_never_read_back_as_the_template(
    template: tuple[str, ...], values: StartValues, change: str
) -> None:
    observed = list(fill(template, values))
    observed[0] += change
    read_back = substitute_back(observed, template, values)
    assert fill((read_back[0],), values) != fill((template[0],), values) or read_back[0] != template[0]


def test_an_unknown_model_is_a_bug_not_a_blank() -> None:
    with pytest.raises(KeyError):
        fill(("{model:other}",), VALUES)


def test_a_placeholder_that_was_never_filled_is_no_value() -> None:
    values = StartValues(python="/p", host="127.0.0.1", port=18123, nonce="n1", leg_dir="/l", cache_dir="/c", models={})
    template = ("--port", "{port}")
    assert substitute_back(("--port", "18123"), template, values) == template
    assert substitute_back(("--port", "{port}"), template, values) != template

import json
from pathlib import Path
from typing import Any

import pytest

from labctl.errors import InvalidPreregistration
from labctl.prereg.noise import log_of_percent, percent_of_log
from labctl.prereg.noise_file import load_noise_record

BENCH = Path(__file__).parents[2] / "fixtures" / "prereg" / "noise" / "bench.json"


def complaints(folder: Path, document: object) -> list[str]:
    path = folder / "noise.json"
    path.write_text(json.dumps(document))
    try:
        load_noise_record(path)
    except InvalidPreregistration as error:
        return [f"{problem.code} {problem.got.rpartition(' at ')[2]}" for problem in error.problems]
    return []


@pytest.fixture
def bench() -> Any:  # noqa: ANN401 (a JSON document)
    return json.loads(BENCH.read_text())


def test_a_record_that_agrees_with_itself_is_read() -> None:
    assert load_noise_record(BENCH).model.df == 7


def test_a_spread_other_than_that_of_its_starts_is_found(tmp_path: Path, bench: Any) -> None:  # noqa: ANN401
    bench["runs"][0]["start_sd_percent"] = "0.100000000"
    assert "WRONG_VALUE runs.0.start_sd_percent" in complaints(tmp_path, bench)


def test_a_pooled_spread_that_was_lowered_by_hand_is_found(tmp_path: Path, bench: Any) -> None:  # noqa: ANN401
    bench["start_sd_percent"] = "0.150000000"
    assert complaints(tmp_path, bench) == ["WRONG_VALUE start_sd_percent"]


def test_more_degrees_of_freedom_than_there_are_is_found(tmp_path: Path, bench: Any) -> None:  # noqa: ANN401
    bench["df"] = 70
    assert complaints(tmp_path, bench) == ["WRONG_VALUE df"]


def test_a_run_that_counts_twice_is_found(tmp_path: Path, bench: Any) -> None:  # noqa: ANN401
    bench["runs"] *= 2
    bench["df"] = 14
    assert complaints(tmp_path, bench) == ["WRONG_VALUE runs.1.seal_sha256"]


def test_limits_on_the_wrong_side_are_found(tmp_path: Path, bench: Any) -> None:  # noqa: ANN401
    bench["start_sd_lower_percent"] = "9.000000000"
    assert complaints(tmp_path, bench) == ["WRONG_VALUE start_sd_lower_percent"]


def test_starts_without_any_spread_are_no_noise_record(tmp_path: Path, bench: Any) -> None:  # noqa: ANN401
    for start in bench["runs"][0]["starts"]:
        start["headline"] = "92"
    bench["runs"][0]["start_sd_percent"] = bench["start_sd_percent"] = "0.000000000"
    bench["start_sd_lower_percent"] = "0.000000000"
    assert complaints(tmp_path, bench) == ["WRONG_VALUE start_sd_percent"]


def test_a_record_that_is_no_strict_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    path.write_text('{"labctl": 1, "labctl": 1}')
    with pytest.raises(InvalidPreregistration, match="BAD_JSON"):
        load_noise_record(path)


def test_percent_and_logarithm_are_each_others_inverse() -> None:
    assert percent_of_log(log_of_percent("2.5")) == "2.500000000"


@pytest.mark.parametrize("name", ["start_sd_percent", "row_sd_percent"])
def test_spreads_below_zero_are_found_and_nothing_breaks(tmp_path: Path, bench: Any, name: str) -> None:  # noqa: ANN401
    bench[name] = bench["runs"][0][name] = "-200"
    assert complaints(tmp_path, bench) == [f"WRONG_VALUE {name}", f"WRONG_VALUE runs.0.{name}"]


@pytest.mark.parametrize("df", [10**400, 7 * 10**9, 8])
def test_rows_that_no_run_of_eight_starts_has_are_found(tmp_path: Path, bench: Any, df: int) -> None:  # noqa: ANN401
    bench["runs"][0]["row_df"] = df
    assert complaints(tmp_path, bench) == ["WRONG_VALUE runs.0.row_df"]


def test_a_second_seal_over_one_packet_is_found(tmp_path: Path, bench: Any) -> None:  # noqa: ANN401
    bench["runs"].append(bench["runs"][0] | {"seal_sha256": "a" * 64})
    bench["df"] = 14
    assert complaints(tmp_path, bench) == ["WRONG_VALUE runs.1.packet_sha256"]


def test_a_leg_that_is_there_twice_is_found(tmp_path: Path, bench: Any) -> None:  # noqa: ANN401
    bench["runs"][0]["starts"][1]["leg"] = "A1"
    assert complaints(tmp_path, bench) == ["WRONG_VALUE runs.0.starts"]

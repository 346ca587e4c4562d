"""Which keys a mapping may hold, read from the models."""

from labctl.prereg.known_keys import known_keys
from labctl.prereg.model import Preregistration


def test_the_top_has_the_names_that_yaml_uses() -> None:
    keys = known_keys(Preregistration, (), {})
    assert {"labctl", "class", "gates", "oracle"} <= set(keys)
    assert "campaign_class" not in keys


def test_a_gate_has_the_keys_of_its_kind() -> None:
    tree = {"gates": [{"kind": "cold"}, {"kind": "pair", "cached_tokens": 0}]}
    assert known_keys(Preregistration, ("gates", 0), tree) == ["kind", "id", "cached_tokens", "requests_per_start"]
    assert "min_row_wins" in known_keys(Preregistration, ("gates", 1), tree)


def test_a_union_without_kinds_has_the_keys_of_the_member_that_fits_best() -> None:
    tree = {"treatment": {"environment": "X", "control": None}, "oracle": {"techer": "x"}}
    assert known_keys(Preregistration, ("treatment",), tree)[0] == "environment"
    assert known_keys(Preregistration, ("oracle",), tree) == ["teacher"]


def test_a_mapping_of_free_names_has_no_known_keys() -> None:
    tree = {"service": {"environment": {"A": "1"}}}
    assert known_keys(Preregistration, ("service", "environment"), tree) == []
    assert known_keys(Preregistration, ("service", "environment", "A"), tree) == []


def test_nothing_is_known_below_what_is_unknown() -> None:
    assert known_keys(Preregistration, ("zzz", "a"), {"zzz": {"a": {}}}) == []
    assert known_keys(Preregistration, ("title", 0), {"title": ["x"]}) == []

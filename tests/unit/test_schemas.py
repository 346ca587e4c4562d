"""The JSON Schemas: equal to the models, and true of the campaign files for a validator that is not ours."""

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from labctl.codes import Code
from labctl.errors import Refused
from labctl.prereg.strict_yaml import read_yaml
from labctl.schemas import check_schemas, schema_files, write_schemas

TOP = Path(__file__).parents[2]
FIXTURES = TOP / "tests" / "fixtures" / "prereg"
SCHEMAS = {"endpoint": "preregistration", "component": "component", "probe": "probe", "host": "host", "suite": "suite"}
SHIPPED = sorted((TOP / "campaigns").rglob("*.yaml"))
GOOD = sorted(path for folder in ("good", "hosts", "suites") for path in (FIXTURES / folder).glob("*.yaml"))


def tree_of(path: Path) -> Any:  # noqa: ANN401 (a tree)
    return read_yaml(path.read_bytes(), path.name).tree


@functools.cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(schema_files()[f"{SCHEMAS[kind]}.schema.json"]))


def test_the_committed_schemas_are_what_the_models_give() -> None:
    assert {path.name: path.read_bytes() for path in (TOP / "schemas").iterdir()} == schema_files()


def test_schemas_are_written_and_a_stale_one_is_named(tmp_path: Path) -> None:
    written = write_schemas(tmp_path / "schemas")
    assert check_schemas(tmp_path / "schemas") == written
    written[0].write_text("{}")
    written[1].unlink()
    with pytest.raises(Refused) as caught:
        check_schemas(tmp_path / "schemas")
    assert caught.value.codes == (Code.FILE_DRIFT, Code.FILE_DRIFT)


@pytest.mark.parametrize("name", sorted(schema_files()))
def test_every_schema_is_one_and_describes_every_field(name: str) -> None:
    schema = json.loads(schema_files()[name])
    jsonschema.Draft202012Validator.check_schema(schema)
    for model in [schema, *schema["$defs"].values()]:
        for field in model.get("properties", {}).values():
            assert field["description"]


@pytest.mark.parametrize("path", [*SHIPPED, *GOOD], ids=lambda path: path.stem)
def test_every_good_campaign_file_is_valid_by_its_schema(path: Path) -> None:
    tree = tree_of(path)
    assert list(validator(tree["kind"]).iter_errors(tree)) == []


def test_a_good_oracle_is_valid_by_its_schema() -> None:
    schema = json.loads(schema_files()["oracle.schema.json"])
    oracle = json.loads((FIXTURES / "oracles" / "three.json").read_text())
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(oracle)) == []


@pytest.mark.parametrize("code", ["UNKNOWN_KEY", "MISSING_KEY", "WRONG_TYPE"])
def test_an_editor_sees_faults_of_form_too(code: str) -> None:
    for path in sorted((FIXTURES / "bad").glob(f"*__{code}__*.yaml")):
        tree = tree_of(path)
        assert not validator(tree.get("kind", "endpoint")).is_valid(tree), path.name


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_shipped_file_has_a_modeline_that_leads_to_its_schema(path: Path) -> None:
    first = path.read_text().split("\n", 1)[0]
    assert first.startswith("# yaml-language-server: $schema=")
    target = (path.parent / first.partition("=")[2]).resolve()
    assert target == TOP / "schemas" / f"{SCHEMAS[tree_of(path)['kind']]}.schema.json"
    assert target.is_file()

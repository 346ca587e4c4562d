import importlib.util
import json
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

import labctl
from labctl.packet.environment import base_environment, environment_allowed
from labctl.packet.tool import ANALYZER_PARTS, PACKAGE_FOLDER, analyzer_identity, tool_identity
from labctl.prereg.environment import BASE_ENVIRONMENT
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration
from tests.fakes.packets import host_document, merged, preregistration_document

LOADED = """
import importlib, json, pkgutil, sys
import labctl.analyze
for found in pkgutil.walk_packages(labctl.analyze.__path__, "labctl.analyze."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(json.dumps([module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "labctl"]))
"""


def test_the_identities_are_stable_and_apart() -> None:
    assert tool_identity() == tool_identity()
    assert tool_identity().version == labctl.__version__
    assert analyzer_identity().name == "labctl"
    assert analyzer_identity().sha256 != tool_identity().tree_dirhash


def test_every_part_of_the_analyzer_is_there() -> None:
    assert [part for part in ANALYZER_PARTS if not (PACKAGE_FOLDER / part).exists()] == []


def test_everything_that_the_analyzer_loads_is_in_its_identity() -> None:
    answer = subprocess.run([sys.executable, "-I", "-c", LOADED], check=True, capture_output=True)
    loaded = {Path(file).relative_to(PACKAGE_FOLDER).as_posix() for file in json.loads(answer.stdout)}
    assert "packet/model.py" in loaded or loaded == {"__init__.py", "analyze/__init__.py", "analyze/gates/__init__.py"}
    assert {file for file in loaded if not is_part(file)} == set()


def is_part(file: str) -> bool:
    return any(file == part or file.startswith(f"{part}/") for part in ANALYZER_PARTS)


def test_the_base_environment_sets_exactly_the_registered_names() -> None:
    environment = base_environment(home="/h", temporary="/t")
    assert set(environment) == set(BASE_ENVIRONMENT)
    assert (environment["HOME"], environment["TMPDIR"]) == ("/h", "/t")


@pytest.mark.parametrize("is_variable", [True, False])
def test_allowed_names_are_the_base_and_what_is_registered(is_variable: bool) -> None:
    document = merged(preregistration_document(), {"service": {"environment": {"ENGINE_X": "1"}}})
    if is_variable:
        proof = {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"}
        document["treatment"] = {"environment": "SWITCH", "control": None, "candidate": "1", "proof": proof}
    host = HostProfile.model_validate(host_document() | {"environment_passed": ["CARD"]}, strict=False)
    names = environment_allowed(Preregistration.model_validate(document, strict=False), host)
    assert set(names) - set(BASE_ENVIRONMENT) == {"ENGINE_X", "CARD"} | ({"SWITCH"} if is_variable else set())
    assert list(names) == sorted(names)


@pytest.mark.parametrize(("is_ours", "said"), [(True, "as written"), (False, "forged")])
def test_byte_code_beside_the_source_is_not_read(tmp_path: Path, is_ours: bool, said: str) -> None:
    (tmp_path / "engine.py").write_text("WORD = 'forged'\n")
    place = importlib.util.cache_from_source(str(tmp_path / "engine.py"))
    py_compile.compile(
        str(tmp_path / "engine.py"), place, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    (tmp_path / "engine.py").write_text("WORD = 'as written'\n")
    (tmp_path / "start.py").write_text("import engine\nprint(engine.WORD)\n")
    environment = base_environment(home=str(tmp_path / "home"), temporary=str(tmp_path))
    if not is_ours:
        del environment["PYTHONPYCACHEPREFIX"]
    command = [sys.executable, str(tmp_path / "start.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__pycache__", "engine.py", "start.py"]

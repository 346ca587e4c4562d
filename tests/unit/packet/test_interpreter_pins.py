"""What a packet pins of an interpreter: whatever runs at every start, and the RECORD of everything installed."""

import importlib.metadata
from pathlib import Path

import pytest

from labctl.packet import tool
from labctl.packet.interpreter import InterpreterAnswer, InterpreterFacts, describe_interpreter, startup_files
from labctl.packet.model import Interpreter


@pytest.fixture
def facts(tmp_path: Path) -> InterpreterFacts:
    for folder in ("bin", "lib", "site/one-1.0.dist-info", "site/two-2.0.dist-info"):
        (tmp_path / folder).mkdir(parents=True)
    python = tmp_path / "bin" / "python"
    python.write_bytes(b"an interpreter")
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    for name, version in (("one", "1.0"), ("two", "2.0")):
        info = tmp_path / "site" / f"{name}-{version}.dist-info"
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,sha256=abc,0\n")
    path = (str(tmp_path / "lib"), str(tmp_path / "site"))
    answer = InterpreterAnswer(version="3.11.9", executable=str(python), path=path)
    return InterpreterFacts(python, answer, tuple(importlib.metadata.distributions(path=list(path))))


def described(facts: InterpreterFacts) -> Interpreter:
    return describe_interpreter(facts, "serving")


@pytest.mark.parametrize(
    "name",
    ["site/sitecustomize.py", "lib/usercustomize.py", "lib/sitecustomize/__init__.py", "site/sitecustomize.so"],
)
def test_a_hook_that_came_is_no_longer_what_was_pinned(name: str, facts: InterpreterFacts, tmp_path: Path) -> None:
    before = described(facts)
    hook = tmp_path / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("print('every start')\n")
    after = described(facts)
    assert hook in startup_files(facts)
    assert after.startup_sha256 != before.startup_sha256
    hook.write_text("print('otherwise')\n")
    assert described(facts).startup_sha256 not in (before.startup_sha256, after.startup_sha256)


def test_a_changed_setting_of_the_environment_is_seen(facts: InterpreterFacts, tmp_path: Path) -> None:
    before = described(facts)
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = true\n")
    assert described(facts).startup_sha256 != before.startup_sha256


@pytest.mark.parametrize("data", [b"one/__init__.py,sha256=abd,0\n", None])
def test_a_package_that_is_installed_otherwise_under_its_version_is_seen(
    data: bytes | None, facts: InterpreterFacts, tmp_path: Path
) -> None:
    before = described(facts)
    record = tmp_path / "site" / "one-1.0.dist-info" / "RECORD"
    if data is None:
        record.unlink()
    else:
        record.write_bytes(data)
    after = described(facts)
    assert after.distributions_sha256 == before.distributions_sha256
    assert after.records_sha256 != before.records_sha256


def test_packets_of_before_keep_their_one_form(facts: InterpreterFacts) -> None:
    said = described(facts).model_dump(mode="json")
    old = {name: value for name, value in said.items() if name not in ("startup_sha256", "records_sha256")}
    assert Interpreter.model_validate_json(Interpreter(**described(facts).__dict__).canonical()) == described(facts)
    read = Interpreter.model_validate({**old, "pth_files": tuple(old["pth_files"]), "pth_sha256": ()})
    assert read.model_dump(mode="json") == old


@pytest.mark.parametrize(("name", "counts"), [("fast.so", True), ("table.json", True), ("__pycache__/x.pyc", False)])
def test_every_file_of_labctl_but_compiled_byte_code_is_in_its_digest(
    name: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "labctl"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(tool, "PACKAGE_FOLDER", package)
    before = tool.tool_identity().tree_dirhash
    (package / name).write_bytes(b"\x7fELF")
    assert (tool.tool_identity().tree_dirhash != before) is counts

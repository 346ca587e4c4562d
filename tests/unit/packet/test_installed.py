import base64
import hashlib
import sys
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import dirhash, sha256_hex
from labctl.errors import DirtySource, FreezeRefused
from labctl.packet.installed import MAX_NAMED, installed_package, verify_installed
from labctl.packet.interpreter import InterpreterFacts, ask_interpreter, describe_interpreter, interpreter_path
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.sources import InstalledSource
from tests.fakes.packets import host_document

FILES = {
    "engine/__init__.py": "VERSION = 1\n",
    "engine/kernel.py": "def run(): pass\n",
    "engine/data.json": "{}\n",
    "../../../bin/engine": "#!/bin/sh\n",
    "my_engine-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: my-engine\nVersion: 1.2\n",
}
RECORD = "my_engine-1.2.dist-info/RECORD"


def record_line(path: str, text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(text)}\n"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment without pip, in which one package lies; the folder of its packages."""
    import venv

    venv.EnvBuilder(symlinks=True).create(tmp_path / "venv")
    packages = tmp_path / f"venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for path, text in FILES.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_text(text)
    lines = [record_line(path, text) for path, text in FILES.items()]
    (packages / RECORD).write_text("".join([*lines, f"{RECORD},,\n", "engine/__pycache__/kernel.pyc,,\n"]))
    return packages


def facts(environment: Path) -> InterpreterFacts:
    return ask_interpreter(environment.parents[2] / "bin/python")


def source(**changes: str) -> InstalledSource:
    return InstalledSource.model_validate({"installed": "My.Engine", "version": "1.2", **changes})


def refusal(environment: Path, **changes: str) -> DirtySource:
    with pytest.raises(DirtySource) as refused:
        verify_installed(facts(environment), source(**changes))
    assert set(refused.value.codes) == {Code.INSTALLED_DRIFT}
    return refused.value


def test_an_untouched_package_is_its_record(environment: Path) -> None:
    record = (environment / RECORD).read_bytes()
    frozen = verify_installed(facts(environment), source(record_sha256=sha256_hex(record)))
    assert frozen.files == len(FILES)
    assert frozen.record_sha256 == sha256_hex(record)
    assert frozen.files_dirhash == dirhash({path: sha256_hex(text.encode()) for path, text in FILES.items()})


def test_every_changed_missing_and_added_file_is_named(environment: Path) -> None:
    (environment / "engine/kernel.py").write_text("def run(): fast\n")
    (environment / "engine/data.json").unlink()
    (environment / "engine/planted.so").write_bytes(b"")
    (environment / "../../../bin/engine").write_text("#!/bin/bash\n")
    problems = refusal(environment).problems
    assert [Path(problem.where).name for problem in problems] == ["kernel.py", "data.json", "engine", "planted.so"]
    assert problems[1].got == "no readable file"


def test_byte_code_beside_the_package_is_not_its_business(environment: Path) -> None:
    (environment / "engine/__pycache__").mkdir()
    (environment / "engine/__pycache__/kernel.pyc").write_bytes(b"\0")
    assert verify_installed(facts(environment), source()).files == len(FILES)


def test_another_version_and_another_record_are_refused_together(environment: Path) -> None:
    problems = refusal(environment, version="1.3", record_sha256="0" * 64).problems
    assert [problem.expected for problem in problems] == ["version 1.3", "0" * 64]


def test_a_package_that_is_not_there_is_refused(environment: Path) -> None:
    assert refusal(environment, installed="other").problems[0].got == "no such package"


def test_an_editable_install_is_refused(environment: Path) -> None:
    folder = environment / "my_engine-1.2.dist-info"
    (folder / "direct_url.json").write_text('{"url":"file:///src","dir_info":{"editable":true}}')
    assert refusal(environment).problems[0].got == "an editable install"


def test_a_package_without_a_record_is_refused(environment: Path) -> None:
    (environment / RECORD).unlink()
    assert refusal(environment).problems[0].got == "none"


def test_a_weaker_digest_is_refused(environment: Path) -> None:
    text = (environment / RECORD).read_text().replace("sha256=", "md5=", 1)
    (environment / RECORD).write_text(text)
    assert refusal(environment).problems[0].got == "md5"


def test_a_long_list_is_cut_and_counted(environment: Path) -> None:
    for number in range(MAX_NAMED + 3):
        (environment / f"engine/{number}.py").write_text("")
    problems = refusal(environment).problems
    assert len(problems) == MAX_NAMED + 1
    assert problems[-1].got == "3 more that differ"


def test_an_interpreter_is_described_by_what_it_would_load(environment: Path) -> None:
    before = describe_interpreter(facts(environment), "serving")
    assert before.version == ".".join(str(part) for part in sys.version_info[:3])
    assert before.resolved_sha256 == hashlib.sha256(Path(sys.executable).resolve().read_bytes()).hexdigest()
    (environment / "hook.pth").write_text("import os\n")
    (environment / "other-2.dist-info").mkdir()
    (environment / "other-2.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 2\n")
    after = describe_interpreter(facts(environment), "serving")
    assert set(after.pth_files) - set(before.pth_files) == {"hook.pth"}
    assert after.distributions_sha256 != before.distributions_sha256


def test_variables_of_ours_do_not_reach_the_interpreter(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(environment / "engine"))
    assert str(environment / "engine") not in facts(environment).answer.path


def test_what_does_not_answer_is_no_interpreter(tmp_path: Path) -> None:
    for name, text in {"fails": "#!/bin/sh\nexit 3\n", "absent": ""}.items():
        path = tmp_path / name
        if text:
            path.write_text(text)
            path.chmod(0o755)
        with pytest.raises(FreezeRefused) as refused:
            ask_interpreter(path)
        assert refused.value.codes == (Code.FILE_DRIFT,)


def test_the_key_self_is_the_interpreter_that_runs_labctl(tmp_path: Path) -> None:
    document = host_document() | {"interpreters": {"mine": "self", "serving": ".venv/bin/python"}}
    host = HostProfile.model_validate(document, strict=False)
    assert interpreter_path(host, "mine", tmp_path) == Path(sys.executable)
    assert interpreter_path(host, "serving", tmp_path) == tmp_path / ".venv/bin/python"
    with pytest.raises(FreezeRefused, match="the key other, got mine, serving"):
        interpreter_path(host, "other", tmp_path)


def test_a_changed_line_of_start_up_code_is_another_interpreter(environment: Path) -> None:
    (environment / "hook.pth").write_text("import os\n")
    before = describe_interpreter(facts(environment), "serving")
    (environment / "hook.pth").write_text("import io\n")
    after = describe_interpreter(facts(environment), "serving")
    assert after.pth_files == before.pth_files
    assert set(after.pth_sha256 or ()) ^ set(before.pth_sha256 or ()) == {
        f"{sha256_hex(text)}  hook.pth" for text in (b"import os\n", b"import io\n")
    }


def test_a_package_is_the_files_of_its_record_and_its_own_folders(environment: Path) -> None:
    package = installed_package(facts(environment), source())
    assert {path.relative_to(environment).as_posix() for path in package.listed} == {*FILES, RECORD}
    assert package.folders == (environment / "engine",)

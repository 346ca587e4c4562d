import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labctl.campaign import secret_scan
from labctl.campaign.secret_scan import CHUNK_BYTES, MAX_NAMED, Secrets
from labctl.codes import Code
from labctl.errors import BrokenEvidence

VALUE = "hunter2-hunter2-hunter2"
SECRETS = Secrets((VALUE,))


def places(folder: Path, secrets: Secrets = SECRETS) -> list[tuple[str, str]]:
    return [(problem.where, problem.got) for problem in secrets.hits(folder)]


def test_values_are_those_of_secret_names_and_of_passwords_in_addresses() -> None:
    environment = {
        "HF_TOKEN": "a-token-of-hf-42",
        "DB_PASSWORD": "short",
        "MONKEYPATCH": "not-a-secret-at-all",
        "POSTGRES_URL": "postgres://lab:a-long-password@db/lab",
        "HOME": "/home/of/the/laboratory",
    }
    assert Secrets.of_environment(environment).values == ("a-token-of-hf-42", "a-long-password")


def test_a_planted_value_is_named_by_file_and_byte_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "legs").mkdir()
    (tmp_path / "legs/server.log").write_bytes(b"x" * 100 + VALUE.encode() + b"\n" + VALUE.encode())
    (tmp_path / "clean.json").write_text("{}")
    with pytest.raises(BrokenEvidence) as broken:
        SECRETS.refuse(tmp_path)
    assert [(p.code, p.where, p.got) for p in broken.value.problems] == [
        (Code.SECRET_FOUND, "legs/server.log", "one at byte 100"),
        (Code.SECRET_FOUND, "legs/server.log", "one at byte 124"),
    ]
    assert VALUE not in f"{broken.value} {SECRETS!r}"


@pytest.mark.parametrize("distance", [0, 1, len(VALUE) - 1, len(VALUE), len(VALUE) + 1])
@pytest.mark.parametrize("after", [0, 5, CHUNK_BYTES])
def test_a_value_across_two_reads_is_found_once(tmp_path: Path, distance: int, after: int) -> None:
    offset = CHUNK_BYTES - distance
    (tmp_path / "big").write_bytes(b"-" * offset + VALUE.encode() + b"-" * after)
    assert places(tmp_path) == [("big", f"one at byte {offset}")]


@given(
    parts=st.lists(st.sampled_from([b"abcabcabcabd", b"abcabcabcab", b"x", b"abc", b"\n"]), max_size=30),
    chunk_bytes=st.integers(1, 40),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_read_size_finds_what_one_read_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[bytes], chunk_bytes: int
) -> None:
    data = b"".join(parts)
    (tmp_path / "file").write_bytes(data)
    secrets = Secrets(("abcabcabcabd", "cabcabdx"))
    monkeypatch.setattr(secret_scan, "CHUNK_BYTES", len(data) + 1)
    whole = places(tmp_path, secrets)
    monkeypatch.setattr(secret_scan, "CHUNK_BYTES", chunk_bytes)
    assert places(tmp_path, secrets) == whole
    assert len(whole) == min(data.count(b"abcabcabcabd"), MAX_NAMED)


def test_a_value_that_json_escapes_is_found(tmp_path: Path) -> None:
    value = 'pass"word\\über-lang'
    (tmp_path / "a.json").write_text(json.dumps({"said": value}))
    (tmp_path / "b.json").write_text(json.dumps({"said": value}, ensure_ascii=False))
    (tmp_path / "c.txt").write_text(value)
    assert [where for where, _ in places(tmp_path, Secrets((value,)))] == ["a.json", "b.json", "c.txt"]


def test_many_places_are_cut(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"{VALUE}\n" * 100)
    assert len(places(tmp_path)) == MAX_NAMED


def test_what_labctl_writes_itself_is_scrubbed() -> None:
    assert SECRETS.scrubbed(f"last log line {VALUE}!") == "last log line [removed]!"


def test_without_secrets_no_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("anything")
    assert Secrets.of_environment({}).hits(tmp_path) == ()

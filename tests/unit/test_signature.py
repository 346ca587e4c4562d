import base64
import subprocess
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import Refused
from labctl.signature import (
    Namespace,
    parse_allowed_signers,
    public_key_sha256,
    sign_bytes,
    signing_key,
    verify_signature,
)

DATA = b'{"approved":true}\n'


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    made = {name: folder / name for name in ("ada", "bob")}
    for path in made.values():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)
    return made


def allowed(keys: dict[str, Path], **people: str) -> bytes:
    lines = [
        f"{principals} {keys[name].with_suffix('.pub').read_text().strip()}\n" for name, principals in people.items()
    ]
    return "".join(lines).encode()


def test_a_signature_over_the_same_bytes_verifies_and_names_key_and_person(keys: dict[str, Path]) -> None:
    signature = sign_bytes(DATA, keys["ada"], Namespace.REVIEW)
    signers = allowed(keys, bob="bob@x.org", ada="ada@x.org,Ada@Y.org")
    verified = verify_signature(DATA, signature, signers, Namespace.REVIEW, "a.json")
    assert verified.principals == ("ada@x.org", "ada@y.org")
    assert verified.key_sha256 == public_key_sha256(keys["ada"])


@pytest.mark.parametrize(
    ("data", "namespace"), [(DATA + b" ", Namespace.REVIEW), (DATA, Namespace.SEAL), (DATA, Namespace.ANALYSIS)]
)
def test_other_bytes_and_other_purposes_do_not_verify(keys: dict[str, Path], data: bytes, namespace: Namespace) -> None:
    signature = sign_bytes(DATA, keys["ada"], Namespace.REVIEW)
    with pytest.raises(Refused) as refused:
        verify_signature(data, signature, allowed(keys, ada="ada@x.org"), namespace, "a.json")
    assert refused.value.codes == (Code.SIGNATURE_INVALID,)


def test_a_key_that_is_not_registered_does_not_verify(keys: dict[str, Path]) -> None:
    signature = sign_bytes(DATA, keys["bob"], Namespace.REVIEW)
    with pytest.raises(Refused, match="another key"):
        verify_signature(DATA, signature, allowed(keys, ada="ada@x.org"), Namespace.REVIEW, "a.json")


def test_an_expired_key_does_not_verify(keys: dict[str, Path]) -> None:
    public = keys["ada"].with_suffix(".pub").read_text().strip()
    signers = f'ada@x.org valid-before="20200101" {public}\n'.encode()
    signature = sign_bytes(DATA, keys["ada"], Namespace.REVIEW)
    with pytest.raises(Refused, match="SIGNATURE_INVALID"):
        verify_signature(DATA, signature, signers, Namespace.REVIEW, "a.json")


@pytest.mark.parametrize("cut", [0, 10, 40, 120])
def test_a_torn_signature_is_none(keys: dict[str, Path], cut: int) -> None:
    signature = sign_bytes(DATA, keys["ada"], Namespace.REVIEW)
    with pytest.raises(Refused, match="an OpenSSH signature"):
        signing_key(signature[:cut], "a.json.sig")


@pytest.mark.parametrize("body", [base64.b64encode(b"NOTSIG" + bytes(40)), b"A=A"])
def test_an_armored_text_of_another_kind_is_no_signature(body: bytes) -> None:
    armored = b"-----BEGIN SSH SIGNATURE-----\n" + body + b"\n-----END SSH SIGNATURE-----\n"
    with pytest.raises(Refused, match="an OpenSSH signature"):
        signing_key(armored, "a.json.sig")


def test_comments_blanks_and_options_are_read(keys: dict[str, Path]) -> None:
    public = keys["ada"].with_suffix(".pub").read_text().strip()
    text = f'# people\n\nada@x.org namespaces="labctl-review@v1,git" {public} a comment\n'
    signer = parse_allowed_signers(text.encode())[0]
    assert (signer.line, signer.principals) == (3, ("ada@x.org",))
    assert signer.key_sha256 == public_key_sha256(keys["ada"])


@pytest.mark.parametrize(
    "line",
    [
        "*@x.org ssh-ed25519 AAAA",
        "!ada@x.org,bob@x.org ssh-ed25519 AAAA",
        "ada@x.org cert-authority ssh-ed25519 AAAA",
        "ada@x.org",
        "ada@x.org ssh-ed25519",
        "ada@x.org ssh-ed25519 ###",
        "ada@x.org, ssh-ed25519 AAAA",
    ],
)
def test_patterns_authorities_and_torn_lines_are_refused(line: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_allowed_signers(f"{line}\n{line}\n".encode())
    assert refused.value.codes == (Code.SIGNATURE_INVALID,) * 2


def test_a_file_that_is_no_key_neither_signs_nor_has_a_digest(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("not a key")
    path.chmod(0o600)
    with pytest.raises(Refused, match="a key that signs"):
        sign_bytes(DATA, path, Namespace.REVIEW)
    with pytest.raises(Refused, match="a private key"):
        public_key_sha256(path)


def test_a_key_without_its_public_file_has_the_same_digest(keys: dict[str, Path], tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.write_bytes(keys["ada"].read_bytes())
    alone.chmod(0o600)
    assert public_key_sha256(alone) == public_key_sha256(keys["ada"])


def test_a_machine_without_openssh_is_told_so(keys: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(Refused, match="install OpenSSH"):
        sign_bytes(DATA, keys["ada"], Namespace.REVIEW)

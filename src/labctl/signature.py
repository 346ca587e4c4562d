"""OpenSSH signatures over exact bytes, one namespace a purpose; the only module that runs `ssh-keygen`."""

import base64
import binascii
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import Problem, Refused

_ARMOR = re.compile(rb"-----BEGIN SSH SIGNATURE-----\n([A-Za-z0-9+/=\n]+)-----END SSH SIGNATURE-----\n?\Z")
_KEY_TYPE = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-[a-z0-9-]+(?:@openssh\.com)?\Z")
_PATTERN_CHARACTERS = frozenset("*?!")
_MAGIC = b"SSHSIG"
_TIMEOUT_S = 120


class Namespace(StrEnum):
    """What a signature is for; one made for another purpose does not verify."""

    REVIEW = "labctl-review@v1"
    SEAL = "labctl-seal@v1"
    ANALYSIS = "labctl-analysis@v1"


@dataclass(frozen=True, slots=True)
class Signer:
    """One line of an allowed-signers file: one person and one raw public key."""

    line: int
    principals: tuple[str, ...]
    key_sha256: str


@dataclass(frozen=True, slots=True)
class VerifiedSignature:
    """A signature that verified: by which raw key, and every name of the person it belongs to."""

    key_sha256: str
    principals: tuple[str, ...]


def sign_bytes(data: bytes, key: Path, namespace: Namespace) -> bytes:
    """The armored signature of some bytes by a private key, or by the agent where the file is a public key.

    Raises:
        Refused: the key does not sign (SIGNATURE_INVALID).
    """
    answer = _ssh_keygen(["-Y", "sign", "-q", "-f", str(key), "-n", namespace], data)
    if answer.returncode != 0:
        raise _invalid(str(key), "a key that signs", _last_line(answer), "name a private key that ssh-keygen can use")
    return answer.stdout


def verify_signature(
    data: bytes, signature: bytes, allowed_signers: bytes, namespace: Namespace, where: str
) -> VerifiedSignature:
    """Verify a signature over exact bytes against an allowed-signers file.

    Raises:
        Refused: the signature, the file or the pair does not hold (SIGNATURE_INVALID).
    """
    key_sha256 = sha256_hex(signing_key(signature, where))
    signers = [signer for signer in parse_allowed_signers(allowed_signers) if signer.key_sha256 == key_sha256]
    if not signers:
        raise _invalid(where, "a key of the allowed-signers file", "another key", "sign with a registered key")
    with tempfile.TemporaryDirectory(prefix="labctl-signature-") as folder:
        # ssh-keygen takes both only as files; they are scratch and never evidence
        signature_file, signers_file = Path(folder, "signature"), Path(folder, "allowed_signers")
        signature_file.write_bytes(signature)
        signers_file.write_bytes(allowed_signers)
        files = ["-f", str(signers_file), "-s", str(signature_file)]
        principal = signers[0].principals[0]
        answer = _ssh_keygen(["-Y", "verify", "-I", principal, "-n", namespace, *files], data)
    if answer.returncode != 0:
        raise _invalid(where, f"a signature for {namespace}", _last_line(answer), "sign the file as it is")
    return VerifiedSignature(key_sha256, tuple(sorted({name for signer in signers for name in signer.principals})))


def signing_key(signature: bytes, where: str) -> bytes:
    """The raw public key that an armored signature says it was made with.

    Raises:
        Refused: not an OpenSSH signature (SIGNATURE_INVALID).
    """
    armored = _ARMOR.match(signature)
    try:
        blob = base64.b64decode(armored[1].replace(b"\n", b""), validate=True) if armored else b""
    except binascii.Error:
        blob = b""
    start = len(_MAGIC) + 8
    length = int.from_bytes(blob[start - 4 : start], "big")
    key = blob[start : start + length]
    if not blob.startswith(_MAGIC) or length == 0 or len(key) != length:
        raise _invalid(where, "an OpenSSH signature", "something else", "make it with `labctl review approve --key`")
    return key


def parse_allowed_signers(data: bytes) -> tuple[Signer, ...]:
    """Read an allowed-signers file, in which every line names persons outright and one plain key.

    Raises:
        Refused: with every line that is wrong (SIGNATURE_INVALID).
    """
    signers: list[Signer] = []
    problems: list[Problem] = []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        signer = _signer(number, text)
        if signer is None:
            do = "write names without patterns, and no certificate authority"
            problems.append(_problem(f"allowed signers:{number}", "`mail[,mail] [options] type key`", text[:80], do))
        else:
            signers.append(signer)
    if problems:
        raise Refused(problems)
    return tuple(signers)


def public_key_sha256(key: Path) -> str:
    """The digest of the raw public key of a key file, private or public.

    Raises:
        Refused: not a key (SIGNATURE_INVALID).
    """
    public = key.with_name(key.name + ".pub")
    text = public.read_text() if public.is_file() else _ssh_keygen(["-y", "-f", str(key)], b"").stdout.decode()
    parts = text.split()
    raw = _raw_key(parts[1]) if len(parts) > 1 else None
    if raw is None:
        raise _invalid(str(key), "a private key", "something else", "name a private key that ssh-keygen can use")
    return sha256_hex(raw)


def _signer(number: int, text: str) -> Signer | None:
    names, _, rest = text.partition(" ")
    fields = _fields(rest)
    place = next((index for index, field in enumerate(fields) if _KEY_TYPE.match(field)), None)
    if place is None or place + 1 >= len(fields) or any(field.startswith("cert-authority") for field in fields[:place]):
        return None
    raw = _raw_key(fields[place + 1])
    principals = tuple(name.lower() for name in names.strip('"').split(","))
    if raw is None or not all(principals) or _PATTERN_CHARACTERS & set(names):
        return None
    return Signer(number, principals, sha256_hex(raw))


def _fields(text: str) -> list[str]:
    return re.findall(r'(?:[^\s"]|"[^"]*")+', text)


def _raw_key(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True) or None
    except binascii.Error:
        return None


def _ssh_keygen(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    passed = {name: os.environ[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK") if name in os.environ}
    try:
        return subprocess.run(
            ["ssh-keygen", *arguments],
            input=data,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
            env={**passed, "LC_ALL": "C"},
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise _invalid("ssh-keygen", "an answer", type(error).__name__, "install OpenSSH 8.2 or later") from error


def _last_line(answer: subprocess.CompletedProcess[bytes]) -> str:
    lines = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    return repr(lines[-1][:160]) if lines else f"exit {answer.returncode}"


def _invalid(where: str, expected: str, got: str, do: str) -> Refused:
    return Refused(_problem(where, expected, got, do))


def _problem(where: str, expected: str, got: str, do: str) -> Problem:
    return Problem(Code.SIGNATURE_INVALID, where, expected, got, do)

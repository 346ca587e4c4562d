"""What an author with the key can do after changing a sealed run: make everything that is computed agree with it again.

`resealed(files, run_dir, seal)` makes layout, bag info, manifest, tag manifest and seal anew. `mended(files)` does the
same, before that, for what lies inside the payload: the order digest of each leg's claim, the log digest and row count
of its end, its manifest, the chain of the journal, and the leg digests of a phase answer. Both take and return a run as
a mapping from path to bytes.
"""

from labctl.digest import manifest_lines, sha256_hex
from labctl.errors import LabctlError
from labctl.frozen import canonical_json
from labctl.records.run import NOTHING_SHA256, Outcome
from labctl.records.seal import RunSeal, SealOutcome
from labctl.seal.bag import BAGIT_TXT, bag_info, tag_manifest
from labctl.seal.manifest import FileFacts
from labctl.seal.statement import SealClaims, build_statement, claims_of, facts_of
from tests.tamper.card_legs import mend_card_leg
from tests.tamper.documents import parsed, update
from tests.tamper.mutations import Files

LAYOUT = "data/layout.json"


def resealed(files: Files, run_dir: str, seal: bytes) -> Files:
    """The run with all that lies around its payload made anew; the old seal where its documents no longer parse."""
    payload = {path: data for path, data in files.items() if path.startswith("data/") and path != LAYOUT}
    sizes = {path.removeprefix("data/"): len(data) for path, data in payload.items()}
    payload[LAYOUT] = canonical_json({"schema": "labctl/layout/1", "files": sizes})
    manifest = manifest_lines({path: sha256_hex(data) for path, data in payload.items()})
    info = bag_info(len(data) for data in payload.values())
    tags = tag_manifest(info, manifest)
    facts = {path: FileFacts(sha256_hex(data), len(data)) for path, data in payload.items()}
    try:
        documents = (payload["data/packet/packet.json"], payload["data/packet/marker.copy.json"])
        sealed = facts_of(run_dir, facts, (sha256_hex(manifest), sha256_hex(tags)), documents)
        seal = build_statement(sealed, _claims(payload, seal)).canonical()
    except (LabctlError, KeyError):  # such a packet or marker is refused whatever the seal says
        pass
    return payload | {
        "bagit.txt": BAGIT_TXT,
        "bag-info.txt": info,
        "manifest-sha256.txt": manifest,
        "tagmanifest-sha256.txt": tags,
        "seal.json": seal,
    }


def mended(files: Files) -> Files:
    """The run with every digest and count inside its payload made to agree with what it covers."""
    after = dict(files)
    for leg in sorted({"/".join(name.split("/")[:3]) for name in files if name.startswith("data/legs/")}):
        _mend_leg(after, leg)
    _mend_phase(after)
    if "data/journal.jsonl" in after:
        after["data/journal.jsonl"] = _chained(after["data/journal.jsonl"])
    return after


def _claims(payload: Files, seal: bytes) -> SealClaims:
    claims = claims_of(RunSeal.from_json(seal, "seal"))
    outcome = Outcome.from_json(payload["data/outcome.json"], "outcome")
    said = SealOutcome(outcome=outcome.outcome, cause=outcome.cause, detail=outcome.detail)
    return SealClaims(said, claims.tool, claims.prev_ledger_sha256)


def _mend_leg(files: Files, leg: str) -> None:
    if "data/host/devices.json" in files:
        update(files, f"{leg}/order.json", discovery_sha256=sha256_hex(files["data/host/devices.json"]))
        mend_card_leg(files, leg)
    else:
        log = files.get(f"{leg}/server.log", b"")
        rows = sum(path.startswith(f"{leg}/wire/") and path.endswith(".bin") for path in files)
        update(files, f"{leg}/postflight.json", log_sha256=sha256_hex(log), log_bytes=len(log))
        update(files, f"{leg}/exit.json", rows_completed=rows)
    update(files, f"{leg}/LEG_STARTED.json", order_sha256=sha256_hex(files.get(f"{leg}/order.json", b"")))
    manifest = f"{leg}/leg-manifest-sha256.txt"
    covered = {path for path in files if path.startswith(f"{leg}/") and path != manifest}
    if manifest in files:
        files[manifest] = manifest_lines({path[len(leg) + 1 :]: sha256_hex(files[path]) for path in covered})


def _mend_phase(files: Files) -> None:
    for path in [path for path in files if path.startswith("data/phase1/")]:
        answer = parsed(files[path])
        if answer is not None and isinstance(answer.get("legs"), dict):
            manifests = {leg: files.get(f"data/legs/{leg}/leg-manifest-sha256.txt", b"") for leg in answer["legs"]}
            update(files, path, legs={leg: sha256_hex(data) for leg, data in manifests.items()})


def _chained(journal: bytes) -> bytes:
    lines: list[bytes] = []
    for number, line in enumerate(journal.splitlines(keepends=True)):
        entry = parsed(line)
        prev = sha256_hex(lines[-1]) if lines else NOTHING_SHA256
        lines.append(line if entry is None else canonical_json(entry | {"seq": number, "prev": prev}))
    return b"".join(lines)

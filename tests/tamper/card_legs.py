"""Making the records of a leg on cards agree with each other again, after one of them was changed."""

from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from tests.tamper.documents import parsed, update
from tests.tamper.mutations import Files


def mend_card_leg(files: Files, leg: str) -> None:
    """Every digest and count in a leg's records of what lies beside them, as a worker, a rank or the leg wrote it."""
    ranks = [path for path in files if path.startswith(f"{leg}/rank-") and path.endswith(".exit.json")]
    if ranks:
        _mend_ranks(files, leg, [path.removesuffix(".exit.json") for path in ranks])
    else:
        _mend_worker(files, leg)


def _mend_worker(files: Files, leg: str) -> None:
    order, discovery, rows, log = (
        files.get(f"{leg}/{name}", b"") for name in ("order.json", "discovery.json", "rows.jsonl", "worker.log")
    )
    count = rows.count(b"\n")
    named = {"order_sha256": sha256_hex(order), "discovery_sha256": sha256_hex(discovery)}
    update(files, f"{leg}/pre-import.json", **named)
    seal = sha256_hex(files.get(f"{leg}/pre-import.json", b""))
    rows_named = {"rows_sha256": sha256_hex(rows), "rows": count}
    update(files, f"{leg}/component.json", order_sha256=named["order_sha256"], pre_import_sha256=seal, **rows_named)
    update(files, f"{leg}/process.json", rows_seen=count)
    update(files, f"{leg}/postflight.json", log_sha256=sha256_hex(log), log_bytes=len(log))
    update(files, f"{leg}/exit.json", rows_completed=count)


def _mend_ranks(files: Files, leg: str, ranks: list[str]) -> None:
    order_sha256 = sha256_hex(files.get(f"{leg}/order.json", b""))
    for rank in ranks:
        log = files.get(f"{rank}.log", b"")
        update(files, f"{rank}.exit.json", log_sha256=sha256_hex(log), log_bytes=len(log))
        if f"{rank}.jsonl" in files:
            lines = files[f"{rank}.jsonl"].splitlines(keepends=True)
            files[f"{rank}.jsonl"] = b"".join(_naming(line, order_sha256) for line in lines)


def _naming(line: bytes, order_sha256: str) -> bytes:
    stage = parsed(line)
    if stage is None or not isinstance(stage.get("detail"), dict) or "order_sha256" not in stage["detail"]:
        return line
    return canonical_json(stage | {"detail": stage["detail"] | {"order_sha256": order_sha256}})

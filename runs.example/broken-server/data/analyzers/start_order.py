"""In which order the starts had to run: as registered, or the mirror that the sealed coin chose."""

from .sealed_files import Doc, sha256

OTHER = {"A": "B", "B": "A"}


def drawn_order(prereg: Doc, marker: Doc) -> list[str]:
    """The registered order, or its mirror where a coin is registered and the marker's nonce says so."""
    schedule = prereg["schedule"]
    order: list[str] = schedule["order"]
    is_mirror = int(sha256(f"{marker['nonce']}:order".encode())[-1], 16) % 2
    has_coin = schedule.get("mirror") == "sealed_coin"
    return [OTHER[leg[0]] + leg[1:] for leg in order] if has_coin and is_mirror else order
